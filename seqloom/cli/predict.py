"""`seqloom predict`: predictions for new data."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seqloom.cli._files import check_outs, check_page, parse_file
from seqloom.cli._options import ColumnNames, DataOverride, Encoding, Int8, JsonOutput, RunPath, data_settings
from seqloom.cli._run import load_run
from seqloom.core.errors import UserError
from seqloom.core.json_text import to_json
from seqloom.core.rows import Json, Row
from seqloom.runs.durable import make_folder, write_file

if TYPE_CHECKING:
    from seqloom.runs.predicting import Predictions
    from seqloom.runs.run import Run

_PATIENCE = 5.0  # seconds between two progress lines

DataPath = Annotated[str | None, typer.Option(help="File or sample:NAME to predict from; -: standard input.")]
OneText = Annotated[str | None, typer.Option(help="One text to predict from, instead of --data.")]
Second = Annotated[str | None, typer.Option(help="Classification of two texts: the second one, beside --text.")]
Passage = Annotated[str | None, typer.Option(help="Question answering: passage for the question in --text.")]
OutPath = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        parser=parse_file,
        help="Output file: .jsonl, .csv, .tsv or .parquet; replaced only when complete; default: standard output.",
    ),
]
Beams = Annotated[int | None, typer.Option(help="Number of beams; default: as in training.")]
LengthPenalty = Annotated[
    float | None, typer.Option("--length-penalty", help="Scores are divided by the length to this power.")
]
MinNew = Annotated[int | None, typer.Option("--min-new", help="Minimum number of output tokens.")]
MaxNew = Annotated[int | None, typer.Option("--max-new", min=1, max=10_000, help="Maximum number of output tokens.")]
NoRepeat = Annotated[
    int | None, typer.Option("--no-repeat", help="Length of n-grams that an output must not repeat; 0: any.")
]
NBest = Annotated[
    int | None, typer.Option("--n-best", min=1, max=1000, help="Also give this many outputs, best first.")
]
Temperature = Annotated[float | None, typer.Option(help="Sampling temperature; above 0: sample instead of searching.")]
TopK = Annotated[int | None, typer.Option("--top-k", help="Sample from the k most likely tokens; 0: all.")]
TopP = Annotated[
    float | None, typer.Option("--top-p", help="Sample from the fewest tokens with this total probability.")
]
Seed = Annotated[int | None, typer.Option(min=0, max=2**62, help="Random seed; the same seed gives the same samples.")]
Alignments = Annotated[bool, typer.Option("--alignments", help="Also give the attention weights over the source.")]
Back = Annotated[
    int | None, typer.Option(min=1, help="Forecasts: start N points before the end and show the actual values.")
]
Chart = Annotated[
    Path | None,
    typer.Option(metavar="FILE", parser=parse_file, help="Forecasts: also draw charts in this file (HTML)."),
]


def command(
    run: RunPath,
    data: DataPath = None,
    text: OneText = None,
    second: Second = None,
    passage: Passage = None,
    out: OutPath = None,
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
    columns: ColumnNames = None,
    encoding: Encoding = None,
    override: DataOverride = None,
    int8: Int8 = False,
    as_json: JsonOutput = False,
) -> None:
    """Predict for each row, in order: its own columns and the prediction, as JSON lines or as a table."""
    given = {
        "beams": beams, "length_penalty": length_penalty, "min_new": min_new, "max_new": max_new, "seed": seed,
        "no_repeat": no_repeat, "n_best": n_best, "temperature": temperature, "top_k": top_k, "top_p": top_p,
        "alignments": alignments or None, "second": second, "passage": passage, "back": back,
    }  # fmt: skip
    _check_flags(data, text, {"--second": second, "--passage": passage}, chart)
    check_outs({"--out": out, "--chart": chart}, data)
    from seqloom.data.piped import spooled
    from seqloom.data.shapes.columns import parse_columns
    from seqloom.runs.outputs import check_output

    if out is not None:
        check_output(out)
    named = parse_columns(columns or ())
    how: Json = {name: value for name, value in given.items() if value is not None}
    how |= {"columns": named, "settings": {"encoding": encoding} | data_settings("predict", override or ())}
    loaded = load_run(run, int8=int8)
    numbered = any(name.isdecimal() for name in named.values())
    with spooled(sys.stdin.buffer, numbered) if data == "-" else nullcontext(data) as place:
        if chart is not None and place is not None:
            _draw(loaded, str(place), chart, how)
            loaded.say = lambda text: None  # the columns were told once
        texts = [] if text is None else [text.strip()]
        _deliver(loaded.predict(None if place is None else str(place), texts=texts, **how), out, as_json)


def _draw(run: Run, data: str, chart: Path, how: Json) -> None:
    from seqloom.explain.forecasts import page

    drawn = page(run.pictures(data, **how), run)
    make_folder(chart.parent)
    write_file(chart, drawn.encode())


def _deliver(predictions: Predictions, out: Path | None, as_json: bool) -> None:
    from seqloom.runs.outputs import write_predictions

    if out is None:
        for row in _watched(predictions):
            print(to_json(row).decode(), flush=True)
        return
    count, cut = write_predictions(_watched(predictions), out, predictions.complete)
    if as_json:
        print(to_json({"out": str(out), "predictions": count, "cut": cut}).decode())
    else:
        print(f"{out}: {count:,} predictions" + (f", {cut:,} from truncated sources" if cut else ""))


def _check_flags(data: str | None, text: str | None, beside: Mapping[str, str | None], chart: Path | None) -> None:
    if (data is None) == (text is None):
        raise UserError("predict: give --data PATH or --text TEXT, exactly one of them")
    if text is not None and not text.strip():
        raise UserError("--text: empty; there is nothing to predict from")
    if text is None and (strange := [option for option, other in beside.items() if other is not None]):
        first = "question" if strange[0] == "--passage" else "text"
        raise UserError(f"{strange[0]}: belongs to the {first} in --text; a row of --data has its own")
    check_page(chart)
    if chart is not None and data is None:
        raise UserError("--chart: draws forecasts from --data; use it with --data instead of --text")


def _watched(predictions: Predictions) -> Iterator[Row]:
    """The same predictions, with a progress line on standard error now and then."""
    started = reported = time.monotonic()
    for done, row in enumerate(predictions, 1):
        yield row
        now = time.monotonic()
        if now - reported >= _PATIENCE:
            reported = now
            print(_progress(predictions, done, now - started), file=sys.stderr, flush=True)


def _progress(predictions: Predictions, done: int, seconds: float) -> str:
    from seqloom.train.pace import told_time

    read, total = predictions.read, predictions.total
    rest = seconds * (total - read) / max(1, read)
    left = f", about {told_time(rest)} left" if read < total else ""
    return f"{done:,} predictions, {done / seconds:,.1f} per second{left}"
