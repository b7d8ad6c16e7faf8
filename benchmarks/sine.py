"""How errors grow: sin(0.01 t) and noise of 0.2, a window of four points, and forecasts that feed on themselves.

    python benchmarks/sine.py [--seeds 20] [--mlp]

Of 1,000 points the first 600 are learned from. Printed is the root of the mean squared error on the other 400 at 1, 4,
16 and 64 steps ahead, from every point, and of one forecast of all 400 from the last point that was learned from; mean
over the seeds of the noise. Beside them the noise itself, which no forecast can be better than.
"""

from __future__ import annotations

import argparse
from statistics import fmean, stdev
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from seqloom.core.task import Order
from seqloom.models.window import Config as Window
from seqloom.tasks.forecasting.scores import Backtest
from seqloom.tasks.forecasting.task import Config, Forecasting

POINTS, TRAINED, TAU, NOISE = 1_000, 600, 4, 0.2
STEPS = (1, 4, 16, 64)
LINEAR, MLP = Window(form="linear", solve=True, span=TAU), Window(span=TAU, width=16, hidden=32, depth=1)


class Plain:
    """Values as they are."""

    targets, past, known, missing, season, method = ("x",), (), (), (), 1, "none"

    def apply(self, values: np.ndarray, part: str = "targets") -> np.ndarray:
        return np.asarray(values, np.float32)

    def undo(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(values, np.float64)


def rows(seed: int, end: int, begins: int) -> Any:
    t = np.arange(1, POINTS + 1)
    noise = NOISE * np.random.default_rng(seed).standard_normal(POINTS)
    values = (np.sin(0.01 * t) + noise)[:end, None].astype(np.float32)
    nothing = [values[:, :0]]
    return SimpleNamespace(values=[values], past=nothing, known=nothing, names=["sine"], begins=[begins], scale=Plain())


def learn(task: Forecasting, model: Any, train: Any, seed: int) -> None:
    """Equations at once, or some hundred steps of AdamW."""
    if not model.descends:
        model.solve(task.lessons(train))
        return
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for step, (batch,) in zip(range(300), task.batches(train, Order(16, seed=seed), False), strict=False):
        for group in optimizer.param_groups:
            group["lr"] = 5e-3 * (1 - step / 300)
        found = task.loss(model, batch)
        optimizer.zero_grad()
        (found.loss / found.count).backward()
        optimizer.step()


def errors(config: Window, seed: int) -> list[float]:
    """At each of the steps, and free-running."""
    task = Config(horizon=max(STEPS), context=TAU, strategy="recursive", asked="full").build(Plain())
    free = Config(horizon=POINTS - TRAINED, context=TAU, strategy="recursive").build(Plain())
    torch.manual_seed(seed)
    model: Any = config.assemble(task)
    learn(task, model, rows(seed, TRAINED, 0), seed)
    test = rows(seed, POINTS, TRAINED)
    found = []
    for own, steps in ((task, STEPS), (free, ())):
        windows = own._windows(test)
        places = windows.scored()
        origins = places.locate(places.some(0))
        score = Backtest(Plain(), own.config.horizon)
        guesses, _ = own.forecast(model, test, origins)
        score.add(guesses, windows.future(*origins), np.ones((len(origins[0]), 1)))
        every: Any = score.by_horizon()["rmse"]
        found += [every[step - 1] for step in steps] if steps else [score.scores()["rmse"]]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--mlp", action="store_true", help="the small perceptron too")
    given = parser.parse_args()
    noise = fmean(float(np.std(rows(seed, POINTS, 0).values[0][:, 0] - np.sin(0.01 * np.arange(1, POINTS + 1))))
                  for seed in range(given.seeds))  # fmt: skip
    print(f"{'RMSE':<24}" + "".join(f"{f'{step} ahead':>16}" for step in STEPS) + f"{'free-running':>16}")
    for name, config in {"linear, least squares": LINEAR, "perceptron": MLP}.items():
        if config is LINEAR or given.mlp:
            table = list(zip(*(errors(config, seed) for seed in range(given.seeds)), strict=True))
            spread = [stdev(column) if len(column) > 1 else 0.0 for column in table]
            print(f"{name:<24}" + "".join(f"{fmean(c):>9.3f} ± {s:.3f}" for c, s in zip(table, spread, strict=True)))
    print(f"noise floor {noise:.3f}; mean ± deviation over {given.seeds} seeds")


if __name__ == "__main__":
    main()
