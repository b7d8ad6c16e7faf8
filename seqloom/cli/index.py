"""`seqloom index`: make a folder of documents searchable, and keep its index up to date."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqloom.cli._options import ColumnNames, JsonOutput
from seqloom.cli._show import show
from seqloom.cli._table import print_table
from seqloom.core.errors import RunError, UserError
from seqloom.core.rows import Json
from seqloom.core.waiting import before_imports
from seqloom.runs.durable import shown

if TYPE_CHECKING:
    from seqloom.retrieve.index import Index

SHOWN = 5  # files of each list; --json has all


def command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Texts, md, html, pdf, docx, tables, code.")],
    out: Annotated[Path, typer.Option(help="Folder for the index; if it exists, it is brought up to date.")],
    encoder: Annotated[
        str | None,
        typer.Option(help="weights:minilm, hf:PATH, a run, or none; default: weights:minilm if it is installed."),
    ] = None,
    store: Annotated[
        str | None, typer.Option(help="edge (files in --out, the default), qdrant:URL or postgres:URL.")
    ] = None,
    columns: ColumnNames = None,
    evaluate: Annotated[
        Path | None, typer.Option(metavar="QUERIES", help="Score the search: JSONL with _id and text.")
    ] = None,
    judgements: Annotated[
        Path | None, typer.Option(metavar="QRELS", help="Which documents answer which query: TSV of BEIR's form.")
    ] = None,
    as_json: JsonOutput = False,
) -> None:
    """Index a folder of documents for `seqloom ask`: what is new or changed is read, what is gone is deleted."""
    if (evaluate is None) != (judgements is None):
        raise UserError("--evaluate and --judgements: give both, queries and which documents answer them")
    if not folder.exists():
        raise UserError(f"{folder}: no such folder")
    from seqloom.data.shapes.columns import parse_columns
    from seqloom.retrieve.choosing import choose_encoder
    from seqloom.runs.terminal import reporter

    chosen, said = choose_encoder(encoder, out)
    progress = reporter()
    if said:
        progress.say(said)
    before_imports("preparing")
    from seqloom.retrieve.index import index

    names = parse_columns(columns or ()) or None
    with index(folder, out, encoder=chosen, store=store, columns=names, progress=progress) as found:
        facts = _facts(found)
        if evaluate is not None and judgements is not None:
            facts["evaluation"] = _evaluated(found, evaluate, judgements)
    show(facts, as_json, _print)
    if not facts["documents"]:
        raise RunError(f"{shown(folder)}: no document could be read; see the reasons above")


def _facts(found: Index) -> Json:
    done, encoder = found.changes, found.settings.encoder
    facts: Json = {"index": str(found.path), "encoder": encoder.name if encoder else None}
    facts |= {name: value for name, value in found.counts().items() if name != "skipped"}
    facts |= {"unchanged": done.unchanged, "added": done.added, "deleted": done.removed, "seconds": done.seconds}
    return facts | {"skipped": done.skipped, "notes": done.notes, "ignored": done.ignored}


def _evaluated(found: Index, queries: Path, judgements: Path) -> Any:
    from seqloom.retrieve.evaluation import evaluate, read_judgements, read_queries
    from seqloom.runs.terminal import reporter

    return evaluate(found, read_queries(queries), read_judgements(judgements), reporter()).as_json()


def _print(facts: Json) -> None:
    from seqloom.retrieve.showing import printable

    how = f"BM25 and {facts['encoder']}" if facts["encoder"] else "BM25 alone"
    there = f"{_many(facts['documents'], 'document')}, {_many(facts['chunks'], 'chunk')}"
    print(f"{printable(facts['index'])}: {there}; search: {how}")
    done = f"{_many(facts['added'], 'document')} added or updated, {facts['deleted']:,} deleted"
    print(f"{done}, {_many(facts['unchanged'], 'file')} unchanged; {facts['seconds']:.1f} s")
    for title, files in (("skipped", facts["skipped"]), ("read, with a note", facts["notes"])):
        for line in _listed(title, files):
            print(printable(line))
    if facts["ignored"]:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in facts["ignored"].items())
        print(f"left out: {printable(kinds)}")
    if "evaluation" in facts:
        _print_evaluation(facts["evaluation"])


def _listed(title: str, files: dict[str, str]) -> Iterator[str]:
    if files:
        yield f"{title}: {_many(len(files), 'file')}"
        yield from (f"  {name}: {reason}" for name, reason in list(files.items())[:SHOWN])
        if len(files) > SHOWN:
            yield f"  and {len(files) - SHOWN:,} more: --json lists all"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _print_evaluation(found: Json) -> None:
    print(found["protocol"])
    rows = []
    for way, scores in found["scores"].items():
        shown = {name: value["mean"] for name, value in scores.items()}
        gain = found["hybrid_minus"].get(way)
        behind = f"{gain['mean']:+.3f} [{gain['low']:+.3f}, {gain['high']:+.3f}]" if gain else ""
        rows.append({"search": way, **shown, "hybrid is better by (nDCG@10)": behind})
    print_table(rows)
    if found["absent"] or found["unjudged"]:
        print(f"judged documents that the index lacks: {found['absent']:,}; queries left out: {found['unjudged']:,}")
