"""Runs that are trained once for a server, to be evaluated, used and damaged: one for each task and kind of model."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

from fuzz.case import File, text
from fuzz.sources import LABELS, TAGS, WORDS
from fuzz.tables import Table, written

_RNG = random.Random(5)
_TEXTS = [f"{' '.join(_RNG.choices(WORDS, k=5))} n{n}" for n in range(48)]
_SMALL = "-o train.steps=2 -o train.threads=1 -o train.batch=4 -o model.width=8"
_WORDS = "-o tokenizer.kind=words"


def _conll() -> str:
    return "\n".join("\n".join(f"{w}\t{TAGS.get(w, 'O')}" for w in line.split()) + "\n" for line in _TEXTS)


def _questions() -> list[tuple[str, str, dict[str, list[object]]]]:
    return [
        (c, f"which n{n} ?", {"text": [c.split()[1]], "answer_start": [c.index(" ") + 1]}) for n, c in enumerate(_TEXTS)
    ]


def _series() -> Table:
    rows = [(f"2020-{n // 28 + 1:02}-{n % 28 + 1:02}", (n * 7 % 11) / 2, n % 5) for n in range(84)]
    return Table(("date", "load", "wind"), tuple(rows))


def _measured() -> Table:
    rows = [(n, LABELS[n % 3], n * 0.1, k * 0.5) for n in range(30) for k in range(4)]
    return Table(("id", "label", "x", "y"), tuple(rows))


DATA: dict[str, File] = {  # valid data for each task; the runs below were trained on it
    "texts": text("texts.txt", "\n".join(_TEXTS * 3)),
    "labelled": written(
        Table(("text", "label"), tuple((t, LABELS[n % 3]) for n, t in enumerate(_TEXTS))), "labelled", "csv"
    ),
    "both": written(
        Table(("text", "second", "label"), tuple((t, t[::-1], LABELS[n % 3]) for n, t in enumerate(_TEXTS))),
        "both",
        "csv",
    ),
    "pairs": written(Table(("source", "target"), tuple((t, t[::-1]) for t in _TEXTS)), "pairs", "tsv"),
    "tagged": text("tagged.conll", _conll()),
    "series": written(_series(), "series", "csv"),
    "measured": written(_measured(), "measured", "csv"),
    "questions": written(Table(("context", "question", "answers"), tuple(_questions())), "questions", "jsonl"),
}
_SHORT = "-o task.scored=2 -o task.max_new=4 -o task.beams=2"
RUNS: dict[str, tuple[str, str]] = {  # name: its data, and the rest of the command
    "lm": ("texts", f"--task language_model --model gpt -o task.length=8 -o model.depth=1 -o model.heads=2 {_SMALL}"),
    "lstm": ("texts", f"--task language_model --model lstm -o task.length=8 -o tokenizer.kind=bytes {_SMALL}"),
    "ngram": ("texts", "--task language_model --model ngram -o task.length=8 -o train.threads=1"),
    "mlm": ("texts", f"--task masked_lm --model bert -o task.length=8 -o model.depth=1 -o model.heads=2 {_SMALL}"),
    "labels": ("labelled", f"--task classification --model gru {_SMALL}"),
    "both": (
        "both",
        f"--task classification --model bert --columns second=second -o model.depth=1 -o model.heads=2 {_SMALL}",
    ),
    "measured": ("measured", f"--task classification --model gru -o task.input=measurements {_SMALL}"),
    "pairs": ("pairs", f"--task translation --model seq2seq {_WORDS} {_SHORT} {_SMALL}"),
    "prefix": ("pairs", f"--task translation --model gpt -o model.depth=1 -o model.heads=2 {_WORDS} {_SHORT} {_SMALL}"),
    "tags": ("tagged", f"--task tagging --model lstm {_WORDS} {_SMALL}"),
    "series": (
        "series",
        f"--task forecasting --model gru --columns targets=load -o task.horizon=3 -o task.context=8 {_SMALL}",
    ),
    "naive": ("series", "--task forecasting --model naive --columns targets=load -o task.horizon=3 -o task.context=8"),
    "questions": (
        "questions",
        f"--task question_answering --model bert {_WORDS} -o task.window=32 -o task.stride=8 -o task.longest_question=8"
        f" -o model.depth=1 -o model.heads=2 {_SMALL}",
    ),
    "adapters": (
        "labelled",
        f"--task classification --from lm -o lora.rank=2 {_SMALL.replace(' -o model.width=8', '')}",
    ),
}
TASK_OF = {name: command.split()[1] for name, (_, command) in RUNS.items()}
NOTES = (
    text("notes/terms.md", "# Terms\n\nThe guarantee lasts three years from the date of purchase.\n"),
    text("notes/berth.txt", "A berth costs 20 euros per night. The battery is not included.\n"),
    text("notes/prices.csv", "text,title\nA cat costs 5 euros.,cats\nA dog costs 7 euros.,dogs\n"),
)


def command_of(name: str) -> tuple[list[str], File]:
    """What follows `fit` to make a run, and its data."""
    source, rest = RUNS[name]
    return ["--data", DATA[source].path, "--out", "out", *rest.split()], DATA[source]


def shelf(name: str, root: Path) -> Path:
    """The folder of a run, or of the index of the notes; made when it is asked for first."""
    from fuzz.server import forked

    place = root / "shelf" / name
    if place.exists():
        return place
    start = shelf(RUNS[name][1].split()[3], root) if name == "adapters" else ""
    making = root / "making"
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir()
    if name == "index":
        for file in NOTES:
            (making / file.path).parent.mkdir(exist_ok=True)
            (making / file.path).write_text(file.content)
        argv = ["index", "notes", "--out", "out", "--encoder", "none"]
    else:
        words, data = command_of(name)
        (making / data.path).write_bytes(data.bytes())
        argv = ["fit", *(str(start) if word == "lm" else word for word in words)]
    done = forked(tuple(argv), making, root, limited=False)
    if done.code:
        raise RuntimeError(f"{name}: {json.dumps(done.err[-2000:])}")
    place.parent.mkdir(exist_ok=True)
    shutil.move(making / "out", place)
    return place
