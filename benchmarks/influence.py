"""Influence maps where the truth is known, and where it is not: does the largest influence fall where it must?

    python benchmarks/influence.py [--runs runs/influence] [--rows 25] [--tasks copy,recall] [--models lstm,gpt]
                                   [--readers lstm,bert] [--labelled FILE]

In copy and reversal one source position decides each output, in recall three: the value, its key, and the key where it
is asked for (change any of them, and the answer is another). Small models are trained to solve them, then the share of
outputs is counted whose largest influence (by absolute value) is at such a position, among all positions that the model
reads, source and target; for recall also the share at the value itself. Every output token of the rows counts, right or
wrong, but not the end of the target: no one position decides it. Models are trained on all strings and looked at on
those in which no letter occurs twice, because of two equal letters either can be the source.

On classification no position is known to be right. There, the most influential tenth of the tokens (at least one) is
deleted, and the fall of the score is compared with that after deleting as many at random, with a 95 % bootstrap
interval of the difference over rows. Data: the sample of names by language, by characters, or a file with labels.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from seqloom.core.instance import Instance
from seqloom.core.rows import Json
from seqloom.data.samples import find_sample
from seqloom.explain.views.influence import influence
from seqloom.runs.fit import fit
from seqloom.runs.run import Run, load
from seqloom.tasks.classification.instance import instance as labelled

LETTERS, KEYS, LENGTH, PAIRS = "abcdefghijkl", "ABCD", 8, 3
TRAINED, SECONDS, ENOUGH = 20_000, 300, 0.003  # rows, most time, loss at which training stops
SIZES: dict[str, Json] = {
    "lstm": {"width": 128, "dropout": 0.1},
    "seq2seq": {"width": 128},
    "mingru": {"width": 128, "depth": 2},
}
STACK: Json = {"width": 128, "depth": 2, "heads": 4}
MODELS = ("lstm", "gpt", "ttt", "seq2seq", "transformer")
DELETED, DRAWS, RESAMPLED = 0.1, 8, 2_000

Fall = tuple[float, float, float, float]  # ours, at random, interval of the difference
Known = tuple[
    list[str], list[str], list[list[int]]
]  # source, target, and where each output is decided: its letter first


def copy(rng: random.Random) -> Known:
    letters = rng.choices(LETTERS, k=LENGTH)
    return letters, letters, [[n] for n in range(LENGTH)]


def reversal(rng: random.Random) -> Known:
    letters = rng.choices(LETTERS, k=LENGTH)
    return letters, letters[::-1], [[n] for n in reversed(range(LENGTH))]


def recall(rng: random.Random) -> Known:
    """Keys with their values, then some of the keys, drawn with replacement: their values."""
    keys, values, asked = rng.sample(KEYS, PAIRS), rng.choices(LETTERS, k=PAIRS), rng.choices(range(PAIRS), k=PAIRS)
    source = [token for pair in zip(keys, values, strict=True) for token in pair]
    truth = [[2 * n + 1, 2 * n, 2 * PAIRS + at] for at, n in enumerate(asked)]
    return [*source, *(keys[n] for n in asked)], [values[n] for n in asked], truth


TASKS: dict[str, Callable[[random.Random], Known]] = {"copy": copy, "reversal": reversal, "recall": recall}


def draw(task: str, count: int, seed: int) -> list[Known]:
    rng = random.Random(seed)
    return [TASKS[task](rng) for _ in range(count)]


def distinct(rng: random.Random, task: str) -> Known:
    """A row in which no letter stands twice, so that only one position holds what is asked."""
    while True:
        source, target, truth = TASKS[task](rng)
        if len({*target}) == len(target):
            return source, target, truth


def trained(folder: Path, task: str, model: str) -> Run:
    """A model of the task; from its folder, if it is there."""
    if (folder / "summary.json").exists():
        return load(folder)
    pairs = [[(" ".join(s), " ".join(t)) for s, t, _ in draw(task, *some)] for some in ((TRAINED, 0), (200, 1))]
    options = {"name": "translation", "smoothing": 0.0, "scored": 100, "beams": 1, "batch_tokens": 0}
    training = {"batch": 64, "seconds": SECONDS, "enough": ENOUGH, "optimizer": "adamw", "rate": 2e-3}
    return fit(
        data=pairs[0], valid=pairs[1], task=options, model={"name": model, "dropout": 0.0, **SIZES.get(model, STACK)},
        tokenizer={"kind": "words", "split": "space"}, train={**training, "threads": 1}, out=folder, quiet=True,
    )  # fmt: skip


def hits(run: Run, rows: Sequence[Known]) -> Json:
    """Shares: right outputs; largest influences at a position that decides, and at the letter itself, by method;
    the most of a difference that gradients miss. And the mean number of nodes."""
    right, missed, nodes = [], [], []
    found: dict[str, list[bool]] = {name: [] for name in ("occlusion", "gradients", "o, letter", "g, letter")}
    for source, target, truth in rows:
        row = {"line": 1, "source": " ".join(source)}
        instance: Any = run.task.instance(run.model, row, run.tokenizer, " ".join(target))  # type: ignore[attr-defined]
        count = len(target)
        with torch.no_grad():
            likely = instance.read(run.model, 1)[0, :count].argmax(-1).tolist()
        right += [n == output.chosen for n, output in zip(likely, instance.outputs, strict=False)]
        view = influence(run.model, instance, outputs=range(count))
        for method in ("occlusion", "gradients"):
            largest = np.abs(view.tensors[method][:count]).argmax(1).tolist()
            found[method] += [at in places for at, places in zip(largest, truth, strict=True)]
            found[f"{method[0]}, letter"] += [at == places[0] for at, places in zip(largest, truth, strict=True)]
        missed.append(float(np.abs(1 - np.array(view.facts["accounted"])).max()))
        nodes.append(view.facts["nodes"])
    shares = {method: float(np.mean(hit)) for method, hit in found.items()}
    return {"right": float(np.mean(right)), **shares, "missed": max(missed), "nodes": float(np.mean(nodes))}


def deletion(run: Run, texts: Sequence[str]) -> tuple[int, dict[str, Fall]]:
    """How many texts were used, and by method: the mean fall of the log-probability of the predicted label, that after
    random deletions, and the interval of the difference. Special tokens are not deleted."""
    rng = random.Random(0)
    task: Any = run.task
    falls: dict[str, list[float]] = {"occlusion": [], "gradients": [], "random": []}
    for text in texts:
        sequence = task.sequence(task.inputs.parts({"line": 1, "source": text}))
        instance = looked(run, sequence, None)
        content = [at for at in range(len(sequence)) if at not in instance.marks]
        if len(content) < 2:
            continue  # nothing would be left
        count, label = max(1, round(DELETED * len(content))), instance.outputs[0].label
        view = influence(run.model, instance)
        orders = {method: np.argsort(-view.tensors[method][0, content]) for method in ("occlusion", "gradients")}
        chosen = {method: [[content[n] for n in order[:count]]] for method, order in orders.items()}
        chosen["random"] = [rng.sample(content, count) for _ in range(DRAWS)]
        whole = log_probability(run, instance)
        for method, several in chosen.items():
            left = [log_probability(run, looked(run, np.delete(sequence, gone, axis=0), label)) for gone in several]
            falls[method].append(whole - float(np.mean(left)))
    used = {method: compared(falls[method], falls["random"]) for method in ("occlusion", "gradients")}
    return len(falls["random"]), used


def looked(run: Run, sequence: np.ndarray, label: str | None) -> Instance:
    task: Any = run.task
    return labelled(run.model, sequence, task.tokenizer.tokenizer, label, labels=task.labels, multi=False)


def log_probability(run: Run, instance: Instance) -> float:
    with torch.no_grad():
        return float(instance.scores(run.model)[0, 0])


def compared(ours: list[float], others: list[float]) -> Fall:
    gaps = np.array(ours) - np.array(others)
    draws = np.random.default_rng(0).integers(len(gaps), size=(RESAMPLED, len(gaps)))
    low, high = np.quantile(gaps[draws].mean(1), (0.025, 0.975))
    return float(np.mean(ours)), float(np.mean(others)), float(low), float(high)


def classifier(folder: Path, rows: list[tuple[str, str]], kind: str, model: str) -> Run:
    if (folder / "summary.json").exists():
        return load(folder)
    options = {"dropout": 0.1, **SIZES.get(model, STACK), "width": 64}
    return fit(
        data=rows, task="classification", model={"name": model, **options}, tokenizer={"kind": kind},
        train={"seconds": SECONDS / 2, "threads": 1}, out=folder, quiet=True,
    )  # fmt: skip


def labelled_rows(file: str | None) -> list[tuple[str, str]]:
    """Of a TSV with the columns text and label, or of the sample of names and their languages; in random order."""
    if file is None:
        rows = [(str(text), str(label)) for text, label in find_sample("languages", "labelled").read()]
    else:
        lines = [line.split("\t") for line in Path(file).read_text(encoding="utf-8").splitlines()]
        rows = [(line[0], line[1]) for line in lines[1:]]
    random.Random(1).shuffle(rows)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, default=Path("runs/influence"))
    parser.add_argument("--rows", type=int, default=25)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--labelled", help="a TSV with the columns text and label; default: names and their languages")
    parser.add_argument("--readers", default="lstm,bert", help="classifiers")
    args = parser.parse_args()
    torch.set_num_threads(1)
    known_truth(args.runs, args.tasks.split(","), args.models.split(","), args.rows)
    deletions(args.runs, args.labelled, [model for model in args.readers.split(",") if model], 8 * args.rows)


def known_truth(runs: Path, tasks: list[str], models: list[str], rows: int) -> None:
    print(
        "task      model        right  occlusion  gradients  o, letter  g, letter  missed  nodes  seconds", flush=True
    )
    for task in filter(None, tasks):
        for model in models:
            run, started = trained(runs / f"{task}-{model}", task, model), time.perf_counter()
            rng = random.Random(2)
            found = hits(run, [distinct(rng, task) for _ in range(rows * (LENGTH // PAIRS if task == "recall" else 1))])
            shares = "".join(f"{found[name]:11.1%}" for name in ("occlusion", "gradients", "o, letter", "g, letter"))
            print(
                f"{task:9} {model:11} {found['right']:6.1%}{shares} {found['missed']:7.2%} {found['nodes']:6.0f} "
                f"{time.perf_counter() - started:8.1f}", flush=True,
            )  # fmt: skip


def deletions(runs: Path, file: str | None, models: list[str], count: int) -> None:
    rows, kind = labelled_rows(file), "characters" if file is None else "words"
    name = "languages" if file is None else Path(file).stem
    for model in models:
        run = classifier(runs / f"{name}-{model}", rows[count:], kind, model)
        used, found = deletion(run, [text for text, _ in rows[:count]])
        print(f"{name}, {model}: {used} of {count} texts, {run.summary.get('test', run.history[-1])}")
        for method, (ours, others, low, high) in found.items():
            print(
                f"  {method:10} {ours:6.3f} nats, random {others:6.3f}; difference {low:.3f} to {high:.3f}", flush=True
            )


if __name__ == "__main__":
    main()
