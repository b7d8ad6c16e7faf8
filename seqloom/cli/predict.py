"""`seqloom predict`: an answer to each source."""

from __future__ import annotations

import csv
import io
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from seqloom.cli._files import check_out
from seqloom.cli._options import Int8, Json, RunPath, SourceColumn
from seqloom.core.errors import UserError
from seqloom.runs.durable import make_folder, new_file, to_json, write_file

_PATIENCE = 5.0  # seconds between two lines about the progress

DataPath = Annotated[str | None, typer.Option(help="File or sample:NAME with the sources.")]
OneText = Annotated[str | None, typer.Option(help="One source, instead of --data.")]
Passage = Annotated[str | None, typer.Option(help="Questions: what --text, the question, is about.")]
OutPath = Annotated[Path | None, typer.Option(help="Write here (replaced when all is done); else to the screen.")]
Beams = Annotated[int | None, typer.Option(help="Continuations kept in the search; else as in training.")]
LengthPenalty = Annotated[
    float | None, typer.Option("--length-penalty", help="Power of the length that scores are divided by.")
]
MinNew = Annotated[int | None, typer.Option("--min-new", help="Fewest tokens of an output.")]
MaxNew = Annotated[int | None, typer.Option("--max-new", help="Most tokens of an output.")]
NoRepeat = Annotated[int | None, typer.Option("--no-repeat", help="Length of n-grams that an output may not repeat.")]
NBest = Annotated[int | None, typer.Option("--n-best", help="Also give so many outputs, best first.")]
Temperature = Annotated[float | None, typer.Option(help="Above 0: draw instead of searching.")]
TopK = Annotated[int | None, typer.Option("--top-k", help="Draw from the k most likely.")]
TopP = Annotated[float | None, typer.Option("--top-p", help="Draw from the most likely that hold this.")]
Seed = Annotated[int | None, typer.Option(min=0, max=2**62, help="The same seed, the same drawing.")]
Alignments = Annotated[bool, typer.Option("--alignments", help="Also give where it looked in the source.")]
Back = Annotated[
    int | None, typer.Option(min=1, help="Forecasts: begin so many points before the end, with what came beside.")
]
Chart = Annotated[Path | None, typer.Option(help="Forecasts: also draw them here (HTML).")]


def command(
    run: RunPath,
    data: DataPath = None,
    text: OneText = None,
    passage: Passage = None,
    out: OutPath = None,
    source: SourceColumn = None,
    beams: Beams = None,
    length_penalty: LengthPenalty = None,
    min_new: MinNew = None,
    max_new: MaxNew = None,
    no_repeat: NoRepeat = None,
    n_best: NBest = None,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    seed: Seed = None,
    alignments: Alignments = False,
    back: Back = None,
    chart: Chart = None,
    int8: Int8 = False,
    as_json: Json = False,
) -> None:
    """Answer each source: one JSON object per row, in order; forecasts as a table if --out ends with .csv."""
    given = {
        "beams": beams, "length_penalty": length_penalty, "min_new": min_new, "max_new": max_new, "seed": seed,
        "no_repeat": no_repeat, "n_best": n_best, "temperature": temperature, "top_k": top_k, "top_p": top_p,
        "alignments": alignments or None, "passage": passage, "back": back,
    }  # fmt: skip
    if (data is None) == (text is None):
        raise UserError("predict: give --data PATH or --text TEXT, one of them")
    if text is not None and not text.strip():
        raise UserError("--text: empty; there is nothing to predict from")
    if passage is not None and text is None:
        raise UserError("--passage: of the question in --text; in --data each question has its own")
    if chart is not None and data is None:
        raise UserError("--chart: draws what is forecast from --data; a text has no chart")
    check_out(out, data)
    check_out(chart, data)
    from seqloom.runs.run import load

    loaded, columns = load(run, int8=int8), {"source": source} if source else {}
    how = {name: value for name, value in given.items() if value is not None}
    if chart is not None and data is not None:
        from seqloom.explain.forecasts import page

        drawn = page(loaded.pictures(data, columns=columns, **how), loaded)
        make_folder(chart.parent)
        write_file(chart, drawn.encode())
    answers = loaded.predict(data, texts=[] if text is None else [text.strip()], columns=columns, **how)
    if out is None:
        _print_lines(_watched(answers))
        return
    make_folder(out.parent)
    with new_file(out) as file:
        count, cut = (_write_table if out.suffix == ".csv" else _write_lines)(_watched(answers), file)
    if as_json:
        print(to_json({"out": str(out), "predictions": count, "cut": cut}).decode())
    else:
        print(f"{out}: {count:,} predictions" + (f", {cut:,} from sources that were too long and cut" if cut else ""))


def _watched(answers: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The same; of many, a line now and then on standard error."""
    started = said = time.monotonic()
    for done, answer in enumerate(answers, 1):
        yield answer
        now = time.monotonic()
        if now - said >= _PATIENCE:
            said = now
            print(f"{done:,} predictions, {done / (now - started):,.1f} per second", file=sys.stderr, flush=True)


def _print_lines(answers: Iterable[dict[str, Any]]) -> None:
    for answer in answers:
        print(to_json(answer).decode(), flush=True)


def _write_lines(answers: Iterable[dict[str, Any]], file: BinaryIO) -> tuple[int, int]:
    """How many there were, and how many of them from a source that was cut."""
    count = cut = 0
    for answer in answers:
        file.write(to_json(answer) + b"\n")
        count, cut = count + 1, cut + bool(answer.get("cut"))
    return count, cut


def _write_table(answers: Iterable[dict[str, Any]], file: BinaryIO) -> tuple[int, int]:
    """The same as CSV: the keys of the first are the columns, and what is not one value is written as JSON."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer: csv.DictWriter | None = None
    count = 0
    for answer in answers:
        if writer is None:
            writer = csv.DictWriter(text, list(answer), extrasaction="ignore")
            writer.writeheader()
        plain = {k: to_json(v).decode() if isinstance(v, dict | list) else v for k, v in answer.items()}
        writer.writerow(plain)
        count += 1
    text.detach()
    return count, 0
