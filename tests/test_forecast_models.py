"""Models for series: linear maps by least squares, and naive forecasts one can fit, save and compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toys import ToyScale, ToySeries, language_model

from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.layers.least_squares import RIDGES, Moments, best_ridge, total
from seqloom.models import linear, naive, patch
from seqloom.runs.fit import fit
from seqloom.runs.run import load
from seqloom.tasks.forecasting.baselines import fit_autoregression, simple_forecasts
from seqloom.tasks.forecasting.task import Config, Forecasting

HORIZON, CONTEXT = 5, 12
ORIGINS = np.array([0, 0, 1, 1]), np.array([20, 33, 14, 40])
TITLES = {"last": "last value", "seasonal": "seasonal naive", "drift": "drift", "average": "moving average"}


def task(targets: int = 2, season: int = 4, gaps: bool = False, **options: Any) -> Forecasting:
    given = {"horizon": HORIZON, "context": CONTEXT, **options}
    return Config.model_validate(given).build(ToyScale(targets, 0, 0, season, gaps))  # type: ignore[arg-type]


def fitted(config: Any, own: Forecasting, data: Any) -> SequenceModel:
    model: SequenceModel = config.reading(own.config.tokens_per_row).assemble(own)
    model.learn(own, data)
    return model.eval()


@pytest.mark.parametrize("scale", ["none", "last", "standard"])
@pytest.mark.parametrize("strategy", ["direct", "combined"])
def test_without_a_penalty_linear_is_the_autoregression_of_the_table(strategy: str, scale: str) -> None:
    own = task(strategy=strategy, block=5, window_scale=scale, channels="apart")
    data = ToySeries(own.scale, (80, 60))  # type: ignore[arg-type]
    model = fitted(linear.Config(ridge=0.0, span=CONTEXT), own, data)
    baseline = fit_autoregression(data.values, CONTEXT, HORIZON, scale)  # type: ignore[arg-type]
    assert baseline is not None
    found, _ = own.forecast(model, data, ORIGINS)  # type: ignore[arg-type]
    np.testing.assert_allclose(found, baseline.forecast(own._windows(data), *ORIGINS), atol=2e-3)  # type: ignore[arg-type]


def test_a_decomposition_changes_nothing_for_least_squares_without_a_penalty() -> None:
    own = task(channels="apart")
    data = ToySeries(own.scale, (80, 60))  # type: ignore[arg-type]
    plain, split = (fitted(linear.Config(ridge=0.0, decompose=points), own, data) for points in (0, 5))
    forecasts = [own.forecast(model, data, ORIGINS)[0] for model in (plain, split)]  # type: ignore[arg-type]
    np.testing.assert_allclose(*forecasts, atol=1e-4)


def test_the_trend_is_a_moving_average_with_repeated_ends() -> None:
    layer = linear.Decomposed(5, 2, 3, 3)
    window = torch.arange(5.0)[:, None] ** 2 * torch.tensor([1.0, -1.0])
    trend, remainder = layer.features(window.flatten()).unflatten(0, (2, 5, 2))
    torch.testing.assert_close(trend[:, 0], torch.tensor([1.0, 5, 14, 29, 41]) / 3)
    torch.testing.assert_close(trend + remainder, window)


def noisy(count: int, noise: float, seed: int) -> list[Moments]:
    """A hundred inputs of which one matters, in five parts."""
    draw, parts = torch.Generator().manual_seed(seed), []
    for _ in range(5):
        x = torch.randn(count, 100, generator=draw)
        part = Moments(100, 1)
        part.add(x, x[:, :1] + noise * torch.randn(count, 1, generator=draw))
        parts.append(part)
    return parts


def test_the_penalty_follows_the_noise() -> None:
    few, many = noisy(25, 3.0, 0), noisy(2_000, 0.01, 1)
    assert best_ridge(few) > 10 * best_ridge(many)
    truth = noisy(5_000, 0.0, 2)[0]
    assert truth.error(total(few).solve(best_ridge(few))) < truth.error(total(few).solve(0.0))
    assert best_ridge(many) <= RIDGES[-3] * total(many).input_square


def test_the_error_of_a_solution_follows_from_the_sums() -> None:
    x, y = torch.randn(40, 3), torch.randn(40, 2)
    y[3, 1] = torch.nan
    moments = Moments(3, 2)
    moments.add(x, y)
    solution, kept = torch.randn(4, 2, dtype=torch.float64), torch.arange(40) != 3
    wanted = (x[kept].double() @ solution[:3] + solution[3] - y[kept].double()).square().sum()
    assert moments.count == 39 and moments.error(solution) == pytest.approx(float(wanted), rel=1e-6)


def test_for_absolute_errors_a_few_wild_windows_do_not_decide() -> None:
    """A wave in which one value in forty is wildly wrong."""
    wave = np.sin(np.arange(400) / 3)
    wild = np.where(np.arange(400) % 40 == 7, 30.0, wave)[:, None].astype(np.float32)
    errors = {}
    for error in ("squared", "absolute"):
        own = task(1, error=error)
        data = ToySeries(own.scale, (400,))  # type: ignore[arg-type]
        data.values = [wild]
        model = fitted(linear.Config(), own, data)
        data.values, own._cuts = [wave[:, None].astype(np.float32)], []
        ends = np.arange(50, 390)
        found, _ = own.forecast(model, data, (0 * ends, ends))  # type: ignore[arg-type]
        errors[error] = np.abs(found - own._windows(data).future(0 * ends, ends)).mean()  # type: ignore[arg-type]
    assert errors["absolute"] < 0.8 * errors["squared"]


def test_stretches_of_time_are_all_windows_once_also_of_short_series() -> None:
    own = task(channels="apart")
    data = ToySeries(own.scale, (80, 60, 9, 10, 11))  # type: ignore[arg-type]
    places = own._windows(data).trained()  # type: ignore[arg-type]
    parts = [places.stretch(n, 5) for n in range(5)]
    found = sorted(pair for part in parts for pair in zip(*part.locate(np.arange(len(part))), strict=True))
    assert found == sorted(zip(*places.locate(np.arange(len(places))), strict=True))
    assert sum(part.counts[2:].any() for part in parts) > 1, "short series are spread over the stretches"


def test_linear_descends_where_least_squares_does_not_apply() -> None:
    assert linear.Config().assemble(language_model()).descends
    own = task(output="gauss")
    assert linear.Config(span=4).assemble(own).descends and not linear.Config(span=4).assemble(task()).descends
    with pytest.raises(UserError, match=r"model\.solve: least squares fits point forecasts"):
        linear.Config(solve=True).assemble(own)
    weights = sum(p.numel() for p in linear.Config(span=4, solve=False).assemble(task()).parameters())
    assert weights == (4 * 2 + 1) * HORIZON * 2, "one map from the numbers read to the numbers forecast"


def test_patches_are_counted_from_the_end() -> None:
    """The newest step always stands in the same place, however long the history; numbers are read as such."""
    own = task(1, channels="apart")
    model: Any = patch.Config(patch=4, stride=2, width=8, heads=2, context=CONTEXT).assemble(own).eval()
    assert model.backbone.inputs == 1 and model.backbone.count == 6
    x = torch.randn(1, CONTEXT, 1)
    cuts = []
    model.backbone.project.register_forward_hook(lambda _, given, __: cuts.append(given[0]))
    for length in (CONTEXT, 7, 3):
        model.final(x[:, -length:])
    assert [cut.size(1) for cut in cuts] == [6, 4, 2]
    assert all(cut[0, -1, -3:].equal(x[0, -3:, 0]) for cut in cuts)
    assert cuts[0][0, -2].equal(x[0, -6:-2, 0]) and not cuts[2][0, -2, :3].any(), "before the beginning is nothing"
    with pytest.raises(ValueError, match="steps would be left out"):
        patch.Config(patch=2, stride=3)


@pytest.mark.parametrize("rule", naive.RULES)
@pytest.mark.parametrize("options", [{}, {"window_scale": "standard", "channels": "apart"}], ids=str)
def test_every_rule_is_the_baseline_of_the_table(rule: Any, options: dict[str, Any]) -> None:
    own = task(gaps=True, **options)
    data = ToySeries(own.scale, (60, 50), missing=0.2)  # type: ignore[arg-type]
    for values in data.values:
        values[7] = 1.0  # every history of a baseline begins with a value that is present
    found, _ = own.forecast(fitted(naive.Config(rule=rule), own, data), data, ORIGINS)  # type: ignore[arg-type]
    wanted = simple_forecasts(own._windows(data), *ORIGINS, 4)[TITLES[rule]]  # type: ignore[arg-type]
    np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        (np.tile([0.0, 5, 1, 3], 30), "seasonal"),
        (np.arange(120.0), "drift"),
        (np.where(np.arange(120) % 40 < 20, 0.0, 1.0), "last"),
        (np.random.default_rng(0).standard_normal(120), "average"),
    ],
)
def test_the_best_rule_on_the_training_set_is_found(values: np.ndarray, rule: str) -> None:
    own = task(1)
    data = ToySeries(own.scale, (120,))  # type: ignore[arg-type]
    data.values = [values[:, None].astype(np.float32)]
    model: Any = fitted(naive.Config(), own, data)
    assert naive.RULES[int(model.backbone.chosen[0])] == rule


def test_what_naive_forecasts_cannot_do_is_one_line() -> None:
    for own, config, message in (
        (task(season=1), naive.Config(rule="seasonal"), "a season of 1 does not fit a context of 12"),
        (task(), naive.Config(rule="seasonal", season=13), "set model.season and task.context"),
        (task(output="gauss"), naive.Config(), "makes point forecasts of series"),
        (task(strategy="recursive"), naive.Config(), "this one is bidirectional"),
    ):
        with pytest.raises(UserError, match=message):
            config.assemble(own)


@pytest.mark.long
@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("model", ["naive", "linear"])
def test_from_a_file_to_forecasts(tmp_path: Path, model: str) -> None:
    week, noise = np.tile([1.0, 5, 2, 8, 3, 9, 4], 20), np.random.default_rng(0).normal(0, 0.1, 140)
    lines = [f"{np.datetime64('2024-01-01') + n},{value:.3f}" for n, value in enumerate(week + noise)]
    (tmp_path / "w.csv").write_text("\n".join(("day,sold", *lines)))
    options = ["task.horizon=7", "task.context=14", "data.test_fraction=0.2", "train.threads=1"]
    run = fit(None, task="forecasting", data=str(tmp_path / "w.csv"), model=model, out=tmp_path / "run",
              overrides=options, quiet=True)  # fmt: skip
    test = run.summary["scores"]["test"]
    assert test["mse"] <= test["baselines"]["seasonal naive"]["mse"] + 1e-9 and run.summary["steps"] == 0
    again = load(run.folder.path)
    rows = list(again.predict(str(tmp_path / "w.csv")))
    np.testing.assert_allclose([row["sold"] for row in rows], week[:7], atol=0.5)
    assert again.evaluate(str(tmp_path / "w.csv"))["mse"] < 0.05
