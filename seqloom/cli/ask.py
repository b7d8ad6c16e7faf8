"""`seqloom ask`: an answer from indexed documents, with citations that are checked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seqloom.cli._files import check_out, check_page
from seqloom.cli._options import JsonOutput
from seqloom.cli._show import show
from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.core.waiting import before_imports, clear
from seqloom.runs.durable import make_folder, write_file

if TYPE_CHECKING:
    from seqloom.retrieve.answering import Asking


def command(
    index: Annotated[Path, typer.Argument(metavar="INDEX", help="Folder that `seqloom index` made.")],
    question: Annotated[str | None, typer.Argument(metavar="QUESTION", help="What to ask the documents.")] = None,
    answerer: Annotated[
        str,
        typer.Option(help="extractive: quotes sentences; RUN, weights:smollm2, hf:PATH or openai:URL#MODEL: writes."),
    ] = "extractive",
    reader: Annotated[
        str | None, typer.Option(metavar="RUN", help="Question answering run that helps extractive to choose.")
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, max=100, help="Passages to search for.")] = 8,
    out: Annotated[Path | None, typer.Option(help="File for a page with the answer and its sources (HTML).")] = None,
    evaluate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Ask all of these instead: JSONL with question and answers.")
    ] = None,
    as_json: JsonOutput = False,
) -> None:
    """Ask indexed documents: every sentence is a quotation with file and page or line, or is marked `not verified`."""
    if (question is None) == (evaluate is None):
        raise UserError("give a QUESTION, or --evaluate FILE with many")
    if evaluate is not None and out is not None:
        raise UserError("--out: the page shows one answer; leave it or --evaluate out")
    check_out(out)
    if out is not None and index.resolve() in out.resolve().parents:
        raise UserError(f"{out}: lies inside of the index; choose another place for the page")
    check_page(out)
    before_imports("searching")
    from seqloom.retrieve.answering import Asking, clean
    from seqloom.retrieve.index import Index

    question = clean(question) if question is not None else None
    with Index.open(index) as opened:
        asking = Asking(opened, answerer=answerer, reader=reader, k=k)
        if evaluate is not None:
            show(_evaluated(asking, evaluate), as_json, _print)
            return
        reply = asking.ask(question or "")
    clear()
    if out is not None:
        make_folder(out.parent)
        write_file(out, reply.page().encode("utf-8", "replace"))
    show(reply.facts | ({"page": str(out)} if out else {}), as_json, lambda _: print(reply))
    if out is not None and not as_json:
        print(f"written: {out}")


def _evaluated(asking: Asking, file: Path) -> Json:
    from seqloom.retrieve.asked import evaluate, read_questions
    from seqloom.runs.terminal import reporter

    return evaluate(asking, read_questions(file), reporter())


def _print(facts: Json) -> None:
    search = f"BM25 and {facts['encoder']}" if facts["encoder"] else "BM25 alone"
    print(f"{facts['questions']:,} questions; answerer: {facts['answerer']}; search: {search}, {facts['k']} passages")
    lines = {
        f"of {facts['with_answer']:,} with a known answer": None,
        "  answer stands in a cited quotation": facts["quoted"],
        "  answer stands in a passage that was found": facts["found"],
        "  refused, wrongly": facts["refused"],
        f"of {facts['without_answer']:,} without an answer": None,
        "  refused, rightly": facts["rightly_refused"],
        "citations": None,
        "  recall: sentences that are quotations": facts["citations"]["recall"],
        "  precision: citations that hold": facts["citations"]["precision"],
    }
    for name, value in lines.items():
        if value is not None:
            print(f"{name:<44}{value:7.1%}")
        elif not name.startswith(" ") and not name.startswith("of 0 "):
            print(name)
    print(f"sentences per answer: {facts['sentences_per_answer']:.1f}")
