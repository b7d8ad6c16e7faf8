"""Influence maps where the truth is known, and where it is not: does the largest influence fall where it must?

    python benchmarks/influence.py [--runs runs/influence] [--rows 25] [--tasks copy,reversal,recall] [--models lstm,gpt]
                                   [--delete FILE]

Copy, reversal and recall decide each output by one source position. Small models are trained to solve them, then the
share of outputs is counted whose largest influence (by absolute value) is at that position, among all positions that
the model reads, source and target. Every output token of the rows counts, right or wrong, but not the end of the
target: no one position decides it. Models are trained on all strings and looked at on those in which no letter occurs
twice, because of two equal letters either can be the source.

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

from seqloom.core.rows import Json
from seqloom.explain.views.influence import influence
from seqloom.runs.fit import fit
from seqloom.runs.run import Run, load

LETTERS, KEYS, LENGTH, PAIRS = "abcdefghijkl", "ABCDEFGH", 8, 4
TRAINED, SECONDS, ENOUGH = 20_000, 150, 0.01  # rows, most time, loss at which training stops
SIZES: dict[str, Json] = {"lstm": {"width": 128}, "seq2seq": {"width": 128}}
STACK: Json = {"width": 128, "depth": 2, "heads": 4}
MODELS = ("lstm", "gpt", "ttt", "seq2seq", "transformer")
DELETED, DRAWS, RESAMPLED = 0.1, 8, 2_000

Known = tuple[list[str], list[str], list[int]]  # source, target, and the source position that decides each output


def copy(rng: random.Random) -> Known:
    letters = rng.choices(LETTERS, k=LENGTH)
    return letters, letters, list(range(LENGTH))


def reversal(rng: random.Random) -> Known:
    letters = rng.choices(LETTERS, k=LENGTH)
    return letters, letters[::-1], list(range(LENGTH))[::-1]


def recall(rng: random.Random) -> Known:
    """Keys with their values, then a key: its value."""
    keys, values, asked = rng.sample(KEYS, PAIRS), rng.choices(LETTERS, k=PAIRS), rng.randrange(PAIRS)
    source = [token for pair in zip(keys, values, strict=True) for token in pair]
    return [*source, keys[asked]], [values[asked]], [2 * asked + 1]


TASKS: dict[str, Callable[[random.Random], Known]] = {"copy": copy, "reversal": reversal, "recall": recall}


def draw(task: str, count: int, seed: int) -> list[Known]:
    rng = random.Random(seed)
    return [TASKS[task](rng) for _ in range(count)]


def distinct(rng: random.Random, task: str) -> Known:
    """A row in which no letter stands twice, so that only one position holds what is asked."""
    while True:
        source, target, truth = TASKS[task](rng)
        if len({*source[:-1]}) == len(source) - 1 and (task == "recall" or len({*source}) == len(source)):
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


def hits(run: Run, rows: Sequence[Known]) -> tuple[float, dict[str, float], float, float]:
    """Share of outputs that are right, share of largest influences that are (by method), the worst share of a score
    difference that gradients miss, and the mean number of nodes."""
    right, missed, nodes = [], [], []
    found: dict[str, list[bool]] = {"occlusion": [], "gradients": []}
    for source, target, truth in rows:
        row = {"line": 1, "source": " ".join(source)}
        instance: Any = run.task.instance(run.model, row, run.tokenizer, " ".join(target))  # type: ignore[attr-defined]
        count = len(target)
        with torch.no_grad():
            likely = instance.read(run.model, 1)[0, :count].argmax(-1).tolist()
        right += [n == output.chosen for n, output in zip(likely, instance.outputs, strict=False)]
        view = influence(run.model, instance, outputs=range(count))
        for method, hit in found.items():
            hit += (np.abs(view.tensors[method][:count]).argmax(1) == truth).tolist()
        missed.append(float(np.abs(1 - np.array(view.facts["accounted"])).max()))
        nodes.append(view.facts["nodes"])
    shares = {method: float(np.mean(hit)) for method, hit in found.items()}
    return float(np.mean(right)), shares, max(missed), float(np.mean(nodes))


def deletion(run: Run, texts: Sequence[str], split: str) -> dict[str, tuple[float, float, float, float]]:
    """By method: the mean fall of the log-probability, after random deletions, and the interval of their difference."""
    rng = random.Random(0)
    falls: dict[str, list[float]] = {"occlusion": [], "gradients": [], "random": []}
    for text in texts:
        words = text.split(split) if split else list(text)
        instance = looked(run, text)
        chosen = instance.outputs[0].chosen
        view = influence(run.model, instance)
        offset = len(instance.inputs) - len(words)
        if offset < 0 or len(words) < 2:
            continue  # the model reads only a part of it, or nothing would be left
        count = max(1, round(DELETED * len(words)))
        whole = score(run, text, chosen)
        for method in ("occlusion", "gradients"):
            by_word = view.tensors[method][0, offset:] if offset else view.tensors[method][0]
            gone = set(np.argsort(-by_word)[:count].tolist())
            falls[method].append(whole - score(run, without(words, gone, split), chosen))
        drawn = [set(rng.sample(range(len(words)), count)) for _ in range(DRAWS)]
        falls["random"].append(
            float(np.mean([whole - score(run, without(words, gone, split), chosen) for gone in drawn]))
        )
    return {method: compared(falls[method], falls["random"]) for method in ("occlusion", "gradients")}


def looked(run: Run, text: str) -> Any:
    return run.task.instance(run.model, {"line": 1, "source": text}, run.tokenizer)  # type: ignore[attr-defined]


def without(words: Sequence[str], gone: set[int], split: str) -> str:
    return split.join(word for n, word in enumerate(words) if n not in gone)


def score(run: Run, text: str, chosen: int) -> float:
    with torch.no_grad():
        return float(looked(run, text).read(run.model, 1)[0, 0, chosen])


def compared(ours: list[float], others: list[float]) -> tuple[float, float, float, float]:
    gaps = np.array(ours) - np.array(others)
    draws = np.random.default_rng(0).integers(len(gaps), size=(RESAMPLED, len(gaps)))
    low, high = np.quantile(gaps[draws].mean(1), (0.025, 0.975))
    return float(np.mean(ours)), float(np.mean(others)), float(low), float(high)


def classifier(folder: Path, data: str, tokenizer: str, model: str) -> Run:
    if (folder / "summary.json").exists():
        return load(folder)
    options = {"dropout": 0.1, **({"width": 64} if model in SIZES else {**STACK, "width": 64})}
    return fit(
        data=data, task="classification", model={"name": model, **options}, tokenizer={"kind": tokenizer},
        train={"seconds": SECONDS / 2, "threads": 1}, out=folder, quiet=True,
    )  # fmt: skip


def held_out(data: str, count: int) -> list[str]:
    """Texts to look at: the first of the file, or of the sample in random order."""
    if data.startswith("sample:"):
        from seqloom.data.samples import find_sample

        rows = list(find_sample(data.removeprefix("sample:")).rows())
        random.Random(1).shuffle(rows)
        return [str(row[0]) for row in rows[:count]]
    lines = Path(data).read_text().splitlines()[1:]
    return [line.split("\t")[0] for line in lines[:count]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, default=Path("runs/influence"))
    parser.add_argument("--rows", type=int, default=25)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--models", default=",".join(MODELS))
    args = parser.parse_args()
    torch.set_num_threads(1)
    print("task      model        right  occlusion  gradients  missed  nodes  seconds", flush=True)
    for task in args.tasks.split(","):
        for model in args.models.split(","):
            run, started = trained(args.runs / f"{task}-{model}", task, model), time.perf_counter()
            rng = random.Random(2)
            rows = [distinct(rng, task) for _ in range(args.rows * (LENGTH if task == "recall" else 1))]
            right, shares, missed, nodes = hits(run, rows)
            print(
                f"{task:9} {model:11} {right:6.1%} {shares['occlusion']:10.1%} {shares['gradients']:10.1%} "
                f"{missed:7.2%} {nodes:6.0f} {time.perf_counter() - started:8.1f}", flush=True,
            )  # fmt: skip


if __name__ == "__main__":
    main()
