"""Golden curves: what training gives, bit for bit, recorded to show that a change of structure changed nothing.

    python tests/golden.py            record all of it anew: tests/golden/curves.json and tests/golden/runs/

Every model is trained for twenty steps on every task that accepts it, on one thread, on the small files of
tests/golden/data. Recorded are the training losses, the final scores and the SHA-256 of the weights. Bits are equal
only on processors like the one that recorded them, so `machine` is recorded too.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import seqloom
from seqloom.core.errors import UserError

HERE = Path(__file__).parent / "golden"
CURVES, DATA, RUNS = HERE / "curves.json", HERE / "data", HERE / "runs"

SMALL = ["train.steps=20", "train.log_every=1", "train.threads=1", "train.batch=4", "train.evaluate_every=10"]
MODELS = {
    "bert": ["width=16", "depth=1", "heads=2"],
    "gpt": ["width=16", "depth=1", "heads=2", "dropout=0.1"],
    "gru": ["width=16", "dropout=0.1"],
    "linear_attention": ["width=16", "depth=1", "heads=2"],
    "lstm": ["width=16", "dropout=0.1"],
    "mingru": ["width=16", "depth=1"],
    "minlstm": ["width=16", "depth=1"],
    "ngram": [],
    "rnn": ["width=16"],
    "seq2seq": ["width=16"],
    "transformer": ["width=16", "depth=1", "heads=2"],
    "ttt": ["width=16", "depth=1", "heads=2"],
    "window": ["width=16", "hidden=32", "span=4"],
}
TASKS: dict[str, tuple[str, list[str]]] = {  # the file, and options
    "language_model": ("text.txt", ["task.length=16"]),
    "masked_lm": ("text.txt", ["task.length=16"]),
    "translation": ("pairs.tsv", ["task.batch_tokens=0", "task.scored=4", "task.max_new=8"]),
    "classification": ("labelled.csv", []),
    "tagging": ("tagged.conll", []),
    "question_answering": ("questions.jsonl", ["task.batch_tokens=0"]),
    "forecasting": ("series.csv", ["task.horizon=4", "task.context=12"]),
}
SPECIAL: dict[str, tuple[str, str, list[str]]] = {  # a case, its task, its model and options
    "forecasting solved": ("forecasting", "window", ["model.form=linear", "model.solve=true", "model.span=12"]),
    "forecasting direct": (
        "forecasting",
        "transformer",
        ["task.strategy=direct", "model.depth=1", "model.heads=2", "model.width=16", "data.valid_fraction=0.3"],
    ),
    "forecasting student": (
        "forecasting",
        "gru",
        ["model.width=16", "task.output=student", "task.strategy=recursive", "task.training=mixed"],
    ),
    "tagging crf": ("tagging", "lstm", ["model.width=16", "model.bidirectional=true"]),
    "translation attention": ("translation", "seq2seq", ["model.width=16", "model.cell=lstm", "model.depth=2"]),
    "lstm adamw tied": (
        "language_model",
        "lstm",
        ["model.width=16", "model.tie=true", "train.optimizer=adamw", "train.accumulate=2", "task.truncation=random"],
    ),
}
KEPT = {  # run folders that stay, one per task and one per kind of model that does not descend
    "language_model": ("language_model", "lstm"),
    "masked_lm": ("masked_lm", "bert"),
    "translation": ("translation", "seq2seq"),
    "classification": ("classification", "gru"),
    "measurements": ("classification", "gru"),
    "tagging": ("tagging", "lstm"),
    "question_answering": ("question_answering", "transformer"),
    "forecasting": ("forecasting", "gpt"),
    "counting": ("language_model", "ngram"),
    "solved": ("forecasting", "window"),
}


def machine() -> str:
    """Runs of two machines with the same description end with the same bits."""
    info = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    found = dict(line.split(":", 1) for line in info.split("\n\n")[0].splitlines() if ":" in line)
    cpu = [found[key].strip() for key in found if key.strip() in ("vendor_id", "cpu family", "model")]
    isa = os.environ.get("ONEDNN_MAX_CPU_ISA", "any")
    return (
        f"{sys.platform} {' '.join(cpu)}, {torch.backends.cpu.get_cpu_capability()}, {isa}, torch {torch.__version__}"
    )


def cases() -> Iterator[tuple[str, str, str, list[str]]]:
    """Name, task, model and options of every case; a pair that the task refuses is left out when it is recorded."""
    for task in TASKS:
        for model, options in MODELS.items():
            own = [f"model.{option}" for option in options]
            if task == "forecasting" and model == "ngram":
                own += ["task.output=bins", "task.strategy=recursive", "task.window_scale=none", "data.targets=sold"]
            yield f"{task} {model}", task, model, own
    for name, (task, model, options) in SPECIAL.items():
        yield name, task, model, options


def train(task: str, model: str, options: list[str], out: Path, data: str | None = None) -> seqloom.runs.run.Run:
    file, own = TASKS[task]
    return seqloom.fit(
        task=task, data=data or file, model=model, out=out, overrides=[*SMALL, *own, *options], choose=False, quiet=True
    )


def outcome(run: Any) -> dict[str, Any]:
    """What must not change."""
    files = run.folder.model_files()
    return {
        "losses": [entry["train"]["loss"] for entry in run.folder.metrics() if "train" in entry],
        "scores": {part: numbers(scores) for part, scores in run.summary["scores"].items()},
        "weights": hashlib.sha256((files / "model.safetensors").read_bytes()).hexdigest(),
    }


def numbers(scores: dict[str, Any]) -> dict[str, float]:
    return {name: value for name, value in scores.items() if isinstance(value, int | float)}


def predictions(run: Any, data: str) -> list[Any]:
    if run.task.verb == "generate":
        return [run.generate("the cat", max_new=20, temperature=0)]
    if run.task.name == "masked_lm":
        return []
    return list(run.predict("unlabelled.csv" if data == "frames.csv" else data))[:5]


def write_data(folder: Path) -> None:
    """Small files of every shape, always the same."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(0)
    words = ["the", "cat", "sat", "on", "a", "mat", "and", "then", "ran", "off", "again"]
    text = "\n".join(" ".join(rng.choices(words, k=rng.randint(4, 9))) + "." for _ in range(120))
    (folder / "text.txt").write_text(text + "\n")
    french = dict(
        zip(words, ["le", "chat", "assis", "sur", "un", "tapis", "et", "puis", "courut", "loin", "encore"], strict=True)
    )
    pairs = [rng.choices(words, k=rng.randint(2, 5)) for _ in range(60)]
    lines = [f"{' '.join(p)}\t{' '.join(french[w] for w in p)}" for p in pairs]
    (folder / "pairs.tsv").write_text("source\ttarget\n" + "\n".join(lines) + "\n")
    kinds = {"animal": "cat dog horse bird", "thing": "table chair lamp door", "place": "town river hill road"}
    rows = [(kind, rng.choice(own.split())) for _ in range(30) for kind, own in kinds.items()]
    lines = [f"the {word} is {rng.choice(['old', 'new', 'near', 'far'])},{kind}" for kind, word in rows]
    (folder / "labelled.csv").write_text("text,label\n" + "\n".join(lines) + "\n")
    names = {"PER": ["Ann", "Bob Lee", "Eve"], "LOC": ["Rome", "New York", "Bath"]}
    sentences = []
    for _ in range(60):
        sentence = []
        for label in rng.choices(["O", "PER", "LOC"], k=4):
            if label == "O":
                sentence += [(word, "O") for word in rng.choices(words, k=2)]
            else:
                parts = rng.choice(names[label]).split()
                sentence += [(part, f"{'I' if n else 'B'}-{label}") for n, part in enumerate(parts)]
        sentences.append("\n".join(f"{word} {tag}" for word, tag in sentence))
    (folder / "tagged.conll").write_text("\n\n".join(sentences) + "\n")
    questions = []
    for n in range(60):
        who, where = rng.choice(["Ann", "Bob", "Eve"]), rng.choice(["Rome", "York", "Bath"])
        passage = f"In the year {1900 + n} {who} went to {where} by train."
        answer, question = (who, "Who went?") if n % 2 else (where, f"Where did {who} go?")
        found = {"text": [answer], "answer_start": [passage.index(answer)]}
        questions.append({"id": str(n), "context": passage, "question": question, "answers": found})
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions))
    draw, lines = np.random.default_rng(0), ["date,sold,price"]
    for t in range(160):
        day = np.datetime64("2024-01-01") + np.timedelta64(t, "D")
        lines.append(f"{day},{10 + 3 * np.sin(t * 2 * np.pi / 7) + draw.normal(0, 0.3):.3f},{draw.random():.3f}")
    (folder / "series.csv").write_text("\n".join(lines) + "\n")
    lines = ["id,x,y,label"]
    for n in range(40):
        turn = 1 if n % 2 else -1
        lines += [f"{n},{np.sin(t / 2) + draw.normal(0, 0.2):.3f},{turn * np.cos(t / 2):.3f},{'l' if n % 2 else 'r'}"
                  for t in range(rng.randint(6, 10))]  # fmt: skip
    (folder / "frames.csv").write_text("\n".join(lines) + "\n")
    (folder / "unlabelled.csv").write_text("\n".join(line.rpartition(",")[0] for line in lines) + "\n")


def kept(name: str) -> tuple[str, str, list[str], str]:
    """Task, model, options and file of a run folder that stays."""
    task, model = KEPT[name]
    options = [f"model.{option}" for option in MODELS[model]] + ["train.steps=10"]
    if name == "measurements":
        return task, model, [*options, "task.input=measurements"], "frames.csv"
    if name == "solved":
        options += ["model.form=linear", "model.solve=true", "model.span=12"]
    return task, model, options, TASKS[task][0]


def record() -> None:
    shutil.rmtree(HERE, ignore_errors=True)
    write_data(DATA)
    torch.set_num_threads(1)
    os.chdir(DATA)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SEQLOOM_CACHE"] = f"{folder}/cache"
        for name, task, model, options in cases():
            try:
                found[name] = outcome(train(task, model, options, Path(folder) / name))
            except UserError as error:
                print(f"{name}: refused: {error}", file=sys.stderr)
        shown = {}
        for name in KEPT:
            task, model, options, file = kept(name)
            run = train(task, model, options, RUNS / name, file)
            shown[name] = {"predictions": predictions(run, file), "scores": numbers(run.evaluate(file))}
            (RUNS / name / ".lock").unlink(missing_ok=True)
    CURVES.write_text(json.dumps({"machine": machine(), "curves": found, "runs": shown}, indent=1) + "\n")


if __name__ == "__main__":
    record()
