"""`seqloom predict`: predictions for new data."""

from __future__ import annotations

import csv
import io
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from seqloom.cli._files import check_out
from seqloom.cli._options import DataOverride, Encoding, Int8, JsonOutput, RunPath, SourceColumn, data_settings
from seqloom.core.errors import UserError
from seqloom.core.rows import Row
from seqloom.runs.durable import make_folder, new_file, to_json, write_file

_PATIENCE = 5.0  # seconds between two progress lines

DataPath = Annotated[str | None, typer.Option(help="File or sample:NAME to predict from.")]
OneText = Annotated[str | None, typer.Option(help="One text to predict from, instead of --data.")]
Passage = Annotated[str | None, typer.Option(help="Question answering: passage for the question in --text.")]
OutPath = Annotated[
    Path | None, typer.Option(help="Output file, replaced only when complete; default: standard output.")
]
Beams = Annotated[int | None, typer.Option(help="Number of beams; default: as in training.")]
LengthPenalty = Annotated[
    float | None, typer.Option("--length-penalty", help="Scores are divided by the length to this power.")
]
MinNew = Annotated[int | None, typer.Option("--min-new", help="Minimum number of output tokens.")]
MaxNew = Annotated[int | None, typer.Option("--max-new", help="Maximum number of output tokens.")]
NoRepeat = Annotated[int | None, typer.Option("--no-repeat", help="Length of n-grams that an output must not repeat.")]
NBest = Annotated[int | None, typer.Option("--n-best", help="Also give this many outputs, best first.")]
Temperature = Annotated[float | None, typer.Option(help="Sampling temperature; above 0: sample instead of searching.")]
TopK = Annotated[int | None, typer.Option("--top-k", help="Sample from the k most likely tokens.")]
TopP = Annotated[
    float | None, typer.Option("--top-p", help="Sample from the fewest tokens with this total probability.")
]
Seed = Annotated[int | None, typer.Option(min=0, max=2**62, help="Random seed; the same seed gives the same samples.")]
Alignments = Annotated[bool, typer.Option("--alignments", help="Also give the attention weights over the source.")]
Back = Annotated[
    int | None, typer.Option(min=1, help="Forecasts: start N points before the end and show the actual values.")
]
Chart = Annotated[Path | None, typer.Option(help="Forecasts: also draw charts in this file (HTML).")]


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
    encoding: Encoding = None,
    override: DataOverride = None,
    int8: Int8 = False,
    as_json: JsonOutput = False,
) -> None:
    """Predict for each row: one JSON object per line, in order; a CSV table if --out ends in .csv."""
    given = {
        "beams": beams, "length_penalty": length_penalty, "min_new": min_new, "max_new": max_new, "seed": seed,
        "no_repeat": no_repeat, "n_best": n_best, "temperature": temperature, "top_k": top_k, "top_p": top_p,
        "alignments": alignments or None, "passage": passage, "back": back,
    }  # fmt: skip
    _check_flags(data, text, passage, chart)
    check_out(out, data)
    check_out(chart, data)
    from seqloom.runs.run import load

    loaded = load(run, int8=int8)
    named = {"source": source, "encoding": encoding}
    columns = {name: value for name, value in named.items() if value} | data_settings("predict", override or ())
    how = {name: value for name, value in given.items() if value is not None}
    if chart is not None and data is not None:
        from seqloom.explain.forecasts import page

        drawn = page(loaded.pictures(data, columns=columns, **how), loaded)
        make_folder(chart.parent)
        write_file(chart, drawn.encode())
    predictions = loaded.predict(data, texts=[] if text is None else [text.strip()], columns=columns, **how)
    if out is None:
        _print_lines(_watched(predictions))
        return
    make_folder(out.parent)
    with new_file(out) as file:
        count, cut = (_write_table if out.suffix == ".csv" else _write_lines)(_watched(predictions), file)
    if as_json:
        print(to_json({"out": str(out), "predictions": count, "cut": cut}).decode())
    else:
        print(f"{out}: {count:,} predictions" + (f", {cut:,} from truncated sources" if cut else ""))


def _check_flags(data: str | None, text: str | None, passage: str | None, chart: Path | None) -> None:
    if (data is None) == (text is None):
        raise UserError("predict: give --data PATH or --text TEXT, exactly one of them")
    if text is not None and not text.strip():
        raise UserError("--text: empty; there is nothing to predict from")
    if passage is not None and text is None:
        raise UserError("--passage: belongs to the question in --text; in --data each question has its own passage")
    if chart is not None and data is None:
        raise UserError("--chart: draws forecasts from --data; use it with --data instead of --text")


def _watched(predictions: Iterable[Row]) -> Iterator[Row]:
    """The same predictions, with a progress line on standard error now and then."""
    started = reported = time.monotonic()
    for done, row in enumerate(predictions, 1):
        yield row
        now = time.monotonic()
        if now - reported >= _PATIENCE:
            reported = now
            print(f"{done:,} predictions, {done / (now - started):,.1f} per second", file=sys.stderr, flush=True)


def _print_lines(predictions: Iterable[Row]) -> None:
    for row in predictions:
        print(to_json(row).decode(), flush=True)


def _write_lines(predictions: Iterable[Row], file: BinaryIO) -> tuple[int, int]:
    """The number of predictions, and of those from a truncated source."""
    count = cut = 0
    for row in predictions:
        file.write(to_json(row) + b"\n")
        count, cut = count + 1, cut + bool(row.get("cut"))
    return count, cut


def _write_table(predictions: Iterable[Row], file: BinaryIO) -> tuple[int, int]:
    """The same as CSV: the keys of the first prediction are the columns; lists and objects are written as JSON."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer: csv.DictWriter | None = None
    count = 0
    for row in predictions:
        if writer is None:
            writer = csv.DictWriter(text, list(row), extrasaction="ignore")
            writer.writeheader()
        plain = {k: to_json(v).decode() if isinstance(v, dict | list) else v for k, v in row.items()}
        writer.writerow(plain)
        count += 1
    text.detach()
    return count, 0
