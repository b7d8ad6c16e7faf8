"""Results of comparisons as they might be, with all their corners: ties, failures, one seed, baselines that win, scores
at their bounds, costs that were not measured. Number n is the same result every time."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

import numpy as np
from compare_example import judged

from seqloom.compare import judging
from seqloom.core.score import Score
from seqloom.lab.statistics import score_interval

Result = dict[str, Any]
HUNDRED = range(100)
MANY = range(600)  # enough for every kind of sentence

LOSS = Score("loss", ("Loss", "损失"), unit=("nats per token", "奈特/词元"))
BLEU = Score("bleu", ("BLEU", "BLEU"), True, compared=True, most=100.0)
EXACT = Score("exact", ("Exact match", "完全匹配率"), True, compared=True)
ACCURACY = Score("accuracy", ("Accuracy", "准确率"), True)

TASKS: dict[str, tuple[Score, list[Score], str]] = {
    "text": (LOSS, [], "token"),
    "labels": (ACCURACY, [], "row"),
    "pairs": (LOSS, [BLEU, EXACT], "source"),
}
CONTEXTS = (64, 512, 2048)


def generated(number: int) -> tuple[Result, dict[str, Any]]:
    """A result with its recommendation, and what was asked for."""
    rng = np.random.default_rng(number)
    metric, shown, unit = TASKS[("text", "labels", "text", "pairs")[number % 4]]
    result: Result = {
        "protocol": _protocol(rng, metric, shown, unit),
        "entries": _entries(rng, metric, shown, unit),
        "baselines": [],
        "best": None,
    }
    done = [entry for entry in result["entries"] if entry["state"] == "done"]
    result["baselines"] = _baselines(rng, metric, shown, done)
    if rng.random() < 0.4:
        result["protocol"]["fit"] = {row["name"]: f"seqloom fit --model {row['name']}" for row in result["baselines"]}
    wishes = {"prefer": str(rng.choice(["quality", "quality", "latency", "memory", "training"])), **_limits(rng)}
    plain = json.loads(json.dumps(result, default=lambda value: value.item()))
    return judged(plain, **wishes), wishes


def _protocol(rng: np.random.Generator, metric: Score, shown: list[Score], unit: str) -> Result:
    return {
        "metric": metric.name, "higher_is_better": metric.higher_is_better, "shown": [score.name for score in shown],
        "latency_unit": unit, "trials": 4, "confidence": 0.95, "level": float(rng.choice([0.04, 0.005])),
        "margin": str(rng.choice(["0", "1%", "5%", "0.01"])),
        "plan": {"sha256": "0" * 64, "look": int(rng.integers(1, 3)), "amendments": 0},
        "epoch_tokens": int(rng.choice([1000, 40_000, 3_000_000])),
        "titles": {"task": ["a task", "任务"], "scores": {s.name: s.to_json() for s in (metric, *shown)}},
    }  # fmt: skip


def _entries(rng: np.random.Generator, metric: Score, shown: list[Score], unit: str) -> list[Result]:
    """Scores may be exactly equal, without any variance, close, or far apart; or at the bounds of an accuracy."""
    style = str(rng.choice(["equal", "still", "close", "close", "close", "far", "bounds"]))
    seeds, pieces = int(rng.choice([1, 2, 3, 5, 5])), int(rng.choice([1, 2, 20, 40, 40]))
    middle = 0.6 if metric.higher_is_better else 1.5
    names = list(rng.permutation(["lstm", "gpt", "gru", "rnn"])[: rng.integers(1, 5)])
    fixed = list(rng.permutation(["ngram", "naive"])[: rng.integers(0, 3)])
    hard = rng.normal(0, 0.05, pieces) * (style not in ("equal", "still"))
    found = []
    for name in names + fixed:
        gap = {"equal": 0.0, "still": 0.1, "close": 0.01, "far": 0.3, "bounds": 0.0}[style] * rng.random()
        noise = 0.0 if style in ("equal", "still") else float(rng.choice([0.001, 0.01]))
        count = 1 if name in fixed else seeds
        table = middle + gap + hard + rng.normal(0, noise, (count, 1)) + rng.normal(0, noise / 3, (count, pieces))
        if style == "bounds" and metric.higher_is_better:
            table = np.full((count, pieces), float(rng.integers(0, 2)))
        entry = _entry(rng, str(name), np.clip(table, 0, 1) if metric.higher_is_better else table, shown, unit)
        entry |= {"pretrained": "weights:minilm"} if rng.random() < 0.15 else {}
        found.append(entry | (_without_training(rng) if name in fixed else {}))
        if name not in fixed and rng.random() < 0.6:
            scores = [middle + gap + 0.01 * rng.random() for _ in range(4)]
            found[-1]["search"] = [
                {"trial": n, "state": "done", "score": score, "settings": {}, "share": 1.0}
                for n, score in enumerate(scores)
            ]
    for entry in found:
        if rng.random() < 0.08:
            entry |= {"state": "failed", "error": "out of memory", "score": None}
    return found


def _without_training(rng: np.random.Generator) -> Result:
    """Some solve for parameters, others store counts."""
    counts = rng.random() < 0.6
    return {"fixed": True, "parameters": 0 if counts else 495, "stored": 251_388 if counts else None}


def _in_pieces(rng: np.random.Generator, middle: float) -> list[float]:
    """A score of texts on blocks of the test set, some of which are hard for everyone."""
    hard = 4 * np.sin(np.arange(10))
    return [float(value) for value in middle + hard + rng.normal(0, float(rng.choice([0.1, 3.0])), 10)]


def _entry(rng: np.random.Generator, name: str, table: np.ndarray, shown: list[Score], unit: str) -> Result:
    growing = rng.random() < 0.4
    state, latency = 1000.0 * rng.integers(1, 60), float(rng.choice([1e-4, 1.02e-4, 5e-4, 1e-4 * rng.integers(1, 90)]))
    contexts = CONTEXTS[: rng.integers(2, 4)]
    cost: Result = {
        "tokens_per_second": float(rng.integers(5000, 40_000)), "peak_bytes": int(rng.integers(1, 300)) * 10**6,
        "latency": [{"context": c, "seconds": latency * (1 + growing * c / 100)} for c in contexts],
        "state": [{"context": c, "bytes": state * (1 + growing * c / 64)} for c in contexts] if unit != "row" else [],
    }  # fmt: skip
    missing = str(rng.choice(["all", "latency", "state", "peak_bytes", *["nothing"] * 12]))
    cost = {} if missing == "all" else {key: value for key, value in cost.items() if key != missing}
    tokens = int(rng.choice([20_000, 50_000]))
    runs = [
        {"seed": n, "state": "done", "score": float(row.mean()), "valid": float(row.mean()), "pieces": row.tolist(),
         "tokens": tokens, "seconds": 30.0 if missing != "all" else None}
        for n, row in enumerate(table, 1)
    ]  # fmt: skip
    scores: Result = {}
    known = rng.random() < 0.8  # the pieces of the main score of texts
    for place, score in enumerate(shown):
        mean, some = float(rng.uniform(0.1, 0.6)) * score.bounds[1], len(runs) > 1  # type: ignore[operator]
        if place == 0 and known:
            for run in runs:
                pieces = _in_pieces(rng, mean + float(rng.normal(0, 0.5)))
                run |= {"scores": {score.name: float(np.mean(pieces))}, "score_pieces": {score.name: pieces}}
            sample = judging.beside(runs, score.name, fixed=name in ("ngram", "naive"))
            assert sample is not None
            scores[score.name] = asdict(score_interval(sample, 0.95, score.bounds))
            continue
        scores[score.name] = {"mean": mean, "low": mean * 0.9 if some else None, "high": mean * 1.1 if some else None,
                              "seeds": len(runs)}  # fmt: skip
    return {
        "name": name, "model": name, "state": "done", "error": None, "runs": runs,
        "parameters": int(rng.choice([0, 12_345, 800_000])),
        "scores": scores, "cost": cost, "command": f"seqloom fit --model {name}",
    }  # fmt: skip


def _baselines(rng: np.random.Generator, metric: Score, shown: list[Score], done: list[Result]) -> list[Result]:
    """Naive scores: far behind, within the intervals, or ahead of all models."""
    means = [float(np.mean([run["score"] for run in entry["runs"]])) for entry in done] or [1.0]
    sign = 1 if metric.higher_is_better else -1
    best = sign * max(sign * mean for mean in means)
    rows: list[Result] = []
    for name, lag in zip(("uniform", "unigram"), rng.choice([0.5, 0.3, 0.3, 0.3, 0.003, -0.05], 2), strict=True):
        if rng.random() < 0.7:
            score = float(min(max(best - sign * lag, 0.0), 1.0 if sign > 0 else math.inf))
            row: Result = {"name": name, "score": score}
            if shown:
                row = {"name": name, "score": None, "scores": {}}
                for place, score in enumerate(shown):
                    row["scores"][score.name] = float(rng.uniform(0.05, 0.5)) * score.bounds[1]  # type: ignore[operator]
                    if place == 0 and rng.random() < 0.8:
                        row["score_pieces"] = {score.name: _in_pieces(rng, row["scores"][score.name])}
            rows.append(row | ({"model": name} if rng.random() < 0.3 else {}))
    return rows


def _limits(rng: np.random.Generator) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if rng.random() < 0.15:
        found["max_params"] = int(rng.choice([1, 12_345, 900_000]))
    if rng.random() < 0.15:
        found["max_latency_ms"] = float(rng.choice([0.001, 2.0, 20.0]))
    if rng.random() < 0.15:
        found["streaming"] = True
    return found
