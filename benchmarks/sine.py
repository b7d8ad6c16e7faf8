"""Error growth of recursive forecasts on sin(0.01 t) with noise of 0.2, from a window of four points.

    python benchmarks/sine.py [--seeds 20] [--mlp]

The first 600 of 1,000 points are the training set. Prints the RMSE on the other 400 points, averaged over noise seeds:
1, 4, 16 and 64 steps ahead, starting from every point, and for a single free-running forecast of all 400 points from
the end of the training set. The last line is the noise floor, which no forecast can beat.
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
    """A scale that leaves values unchanged."""

    targets, past, known, missing, season, method = ("x",), (), (), (), 1, "none"

    def apply(self, values: np.ndarray, part: str = "targets") -> np.ndarray:
        return np.asarray(values, np.float32)

    def undo(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(values, np.float64)


def rows(seed: int, end: int, begins: int) -> Any:
    t = np.arange(1, POINTS + 1)
    noise = NOISE * np.random.default_rng(seed).standard_normal(POINTS)
    values = (np.sin(0.01 * t) + noise)[:end, None].astype(np.float32)
    empty = [values[:, :0]]  # no covariates
    return SimpleNamespace(values=[values], past=empty, known=empty, names=["sine"], begins=[begins], scale=Plain())


def learn(task: Forecasting, model: Any, train: Any, seed: int) -> None:
    """Solve the least-squares problem directly, or train with 300 steps of AdamW."""
    if not model.descends:
        model.solve(task.lessons(train))
        return
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for step, (batch,) in zip(range(300), task.batches(train, Order(16, seed=seed), False), strict=False):
        for group in optimizer.param_groups:
            group["lr"] = 5e-3 * (1 - step / 300)
        result = task.loss(model, batch)
        optimizer.zero_grad()
        (result.loss / result.count).backward()
        optimizer.step()


def errors(config: Window, seed: int) -> list[float]:
    """RMSE at each of STEPS, then of the free-running forecast."""
    task = Config(horizon=max(STEPS), context=TAU, strategy="recursive", asked="full").build(Plain())
    free = Config(horizon=POINTS - TRAINED, context=TAU, strategy="recursive").build(Plain())
    torch.manual_seed(seed)
    model: Any = config.assemble(task)
    learn(task, model, rows(seed, TRAINED, 0), seed)
    test = rows(seed, POINTS, TRAINED)
    rmse = []
    for variant, steps in ((task, STEPS), (free, ())):
        windows = variant._windows(test)
        places = windows.scored()
        origins = places.locate(places.some(0))
        score = Backtest(Plain(), variant.config.horizon)
        forecasts, _ = variant.forecast(model, test, origins)
        score.add(forecasts, windows.future(*origins), np.ones((len(origins[0]), 1)))
        by_step: Any = score.by_horizon()["rmse"]
        rmse += [by_step[step - 1] for step in steps] if steps else [score.scores()["rmse"]]
    return rmse


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="noise seeds to average over (default: 20)")
    parser.add_argument("--mlp", action="store_true", help="also train a small multilayer perceptron")
    options = parser.parse_args()
    noise = fmean(float(np.std(rows(seed, POINTS, 0).values[0][:, 0] - np.sin(0.01 * np.arange(1, POINTS + 1))))
                  for seed in range(options.seeds))  # fmt: skip
    print(f"{'RMSE':<24}" + "".join(f"{f'{step} ahead':>16}" for step in STEPS) + f"{'free-running':>16}")
    for name, config in {"linear, least squares": LINEAR, "perceptron": MLP}.items():
        if config is LINEAR or options.mlp:
            table = list(zip(*(errors(config, seed) for seed in range(options.seeds)), strict=True))
            spread = [stdev(column) if len(column) > 1 else 0.0 for column in table]
            print(f"{name:<24}" + "".join(f"{fmean(c):>9.3f} ± {s:.3f}" for c, s in zip(table, spread, strict=True)))
    print(f"noise floor {noise:.3f}; mean ± standard deviation over {options.seeds} seeds")


if __name__ == "__main__":
    main()
