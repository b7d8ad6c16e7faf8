"""How often are the verdicts of a comparison wrong? Simulated comparisons whose truth is known.

    python benchmarks/verdicts.py [--studies 1000] [--json FILE]

Every model is tuned by a noisy search, trained with several seeds and scored on a text in pieces, as `compare` does.

- *false alarm*: all models are equal, and some model is called worse (nominal: the level, 5 % over all looks)
- *coverage*: share of the 95 % intervals of a score, and of a difference of two scores, that hold the true value
- *growing*: seeds are added one by one from 3 to 10, each time with a look at the result, under the spending rule
- *found*: share of the models that are truly 5 % behind one that are called worse, with 5 seeds that vary by 1 %
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from seqloom.lab.selection import noise_variances, tuning_variances
from seqloom.lab.spending import level_at
from seqloom.lab.statistics import Sample, difference, score_interval, verdicts

PIECES = 100
SEEDS = (3, 5, 10)
MODELS = (2, 5, 8)


@dataclass(frozen=True)
class World:
    """Where scores come from; all figures relative to a score of 1."""

    seed: float = 0.01  # deviation over seeds
    settings: float = 0.0  # deviation of the true scores of settings around the best
    trials: int = 8
    tails: float | None = None  # degrees of freedom of Student's t for seeds; None: normal
    unequal: float = 1.0  # factor between the most and the least noisy model
    topics: float = 0.0  # deviation of a model's score over topics, each several pieces long
    pieces: float = 0.05  # deviation of the score over pieces, common to all models
    own: float = 0.02  # deviation of a model's own score over pieces


WORLDS = {
    "plain noise": World(),
    "noisy search": World(settings=0.01),
    "very noisy search": World(settings=0.02, trials=12),
    "four trials": World(settings=0.02, trials=4),
    "heavy tails": World(tails=3.0),
    "unequal variances": World(unequal=8.0),
    "topics": World(topics=0.01),
    "all together": World(settings=0.01, tails=4.0, unequal=4.0, topics=0.005),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=1000, help="simulated comparisons per cell")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args()
    rows = []
    for name, world in WORLDS.items():
        for models in MODELS:
            for seeds in SEEDS:
                row = {"world": name, "models": models, "seeds": seeds} | _cell(world, models, seeds, options.studies)
                rows.append(row)
                print(_line(row), flush=True)
            alarms = _growing(world, models, options.studies)
            rows.append({"world": name, "models": models, "seeds": "3 to 10", "false alarm": alarms})
            print(_line(rows[-1]), flush=True)
    for models in MODELS:
        row = {"world": "true 5 %", "models": models, "seeds": 5, "found": _power(models, options.studies)}
        rows.append(row)
        print(_line(row), flush=True)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(rows, indent=1))


def study(world: World, models: int, seeds: int, rng: np.random.Generator, better: float = 0.0) -> tuple[
    list[Sample], np.ndarray
]:  # fmt: skip
    """One comparison, and the true expected score of each model; `better`: lead of the first model."""
    lead = np.zeros(models)
    lead[0] = -better
    noise = world.seed * np.geomspace(1.0, world.unequal, models) / np.sqrt(world.unequal)
    common = rng.normal(0, world.pieces, PIECES)
    tables, searches, validations, means = [], [], [], []
    for k in range(models):
        kept, trials, mean = _search(world, noise[k], rng)
        runs = 1 + lead[k] + kept + _noise(world, noise[k], seeds, rng)
        validations.append(runs + _noise(world, noise[k] / 2, seeds, rng))
        own = rng.normal(0, world.own, PIECES) + _topics(world, rng)
        tables.append(runs[:, None] + common + own + rng.normal(0, world.own, (seeds, PIECES)))
        searches.append(trials)
        means.append(1 + lead[k] + mean)
    variances = noise_variances([list(values) for values in validations])
    luck = tuning_variances([list(trials) for trials in searches], variances, lower=True)
    samples = [
        Sample.of(table, tuning=tuning, trials=len(trials))
        for table, trials, tuning in zip(tables, searches, luck, strict=True)
    ]
    return samples, np.array(means)


def _search(world: World, noise: float, rng: np.random.Generator) -> tuple[float, np.ndarray, float]:
    """True score of the settings that were kept, validation scores of the trials, mean true score over searches."""
    if not world.settings:
        return 0.0, np.zeros(0), 0.0
    quantiles = (np.arange(world.trials) + 0.5) / world.trials
    true = 4 * world.settings * quantiles**2  # the same settings in every comparison: many near the best, a few far off
    trials = true + _noise(world, noise * 1.1, world.trials, rng)
    return float(true[np.argmin(trials)]), trials, _expected(world, noise)


_KNOWN: dict[tuple[World, float], float] = {}


def _expected(world: World, noise: float) -> float:
    if (world, noise) not in _KNOWN:
        rng = np.random.default_rng(1)
        quantiles = (np.arange(world.trials) + 0.5) / world.trials
        true = 4 * world.settings * quantiles**2
        kept = [np.argmin(true + _noise(world, noise * 1.1, world.trials, rng)) for _ in range(20_000)]
        _KNOWN[world, noise] = float(true[kept].mean())
    return _KNOWN[world, noise]


def _noise(world: World, deviation: float, count: int, rng: np.random.Generator) -> np.ndarray:
    if world.tails is None:
        return rng.normal(0, deviation, count)
    return deviation * rng.standard_t(world.tails, count) / np.sqrt(world.tails / (world.tails - 2))


def _topics(world: World, rng: np.random.Generator) -> np.ndarray:
    """A model is better on some topics and worse on others; topics are 2 to 10 pieces long."""
    found = np.zeros(PIECES)
    start = 0
    while world.topics and start < PIECES:
        length = int(rng.integers(2, 11))
        found[start : start + length] = rng.normal(0, world.topics)
        start += length
    return found


def _cell(world: World, models: int, seeds: int, studies: int) -> dict[str, float]:
    rng = np.random.default_rng((models, seeds))
    alarms, scores, pairs = 0, [], []
    for _ in range(studies):
        samples, true = study(world, models, seeds, rng)
        alarms += _alarm(samples, true, level_at(1))
        for sample, mean in zip(samples, true, strict=True):
            found = score_interval(sample)
            scores.append(found.low <= mean <= found.high)  # type: ignore[operator]
        gap, error = difference(samples[0], samples[1])
        pairs.append(abs(gap - (true[0] - true[1])) <= error.reach(0.05))
    return {"false alarm": alarms / studies, "scores": float(np.mean(scores)), "differences": float(np.mean(pairs))}


def _alarm(samples: list[Sample], true: np.ndarray, level: float) -> bool:
    """Some model is called worse than the others, though it is not: models whose search is luckier by chance of the
    noise alone are equal in what is expected of them, up to their own noise."""
    centred = [replace(sample, scores=sample.scores - mean) for sample, mean in zip(samples, true, strict=True)]
    found = verdicts({str(n): sample for n, sample in enumerate(centred)}, False, level)
    return any(each.verdict == "worse" for each in found.values())


def _growing(world: World, models: int, studies: int) -> float:
    rng = np.random.default_rng((models, 99))
    alarms = 0
    for _ in range(studies):
        samples, true = study(world, models, max(SEEDS), rng)
        looks = [[replace(sample, scores=sample.scores[:seeds]) for sample in samples] for seeds in range(3, 11)]
        alarms += any(_alarm(found, true, level_at(number)) for number, found in enumerate(looks, 1))
    return alarms / studies


def _power(models: int, studies: int) -> float:
    rng = np.random.default_rng((models, 5))
    found = 0
    for _ in range(studies):
        samples, _ = study(World(), models, 5, rng, better=0.05)
        verdict = verdicts({str(n): sample for n, sample in enumerate(samples)}, False, level_at(1))
        found += sum(verdict[str(n)].verdict == "worse" for n in range(1, models))
    return found / studies / (models - 1)


def _line(row: dict[str, object]) -> str:
    figures = [f"{key} {value:.3f}" for key, value in row.items() if isinstance(value, float)]
    return f"{row['world']:18s} {row['models']} models, {row['seeds']!s:>7s} seeds: {', '.join(figures)}"


if __name__ == "__main__":
    sys.exit(main())
