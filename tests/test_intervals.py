"""Calibrated prediction intervals: they cover what they promise, contain their forecast, and never cross."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from toys import ToyScale, ToySeries, alive

from seqloom.runs.registry import find_config
from seqloom.tasks.forecasting.backtests import factors, naive_history
from seqloom.tasks.forecasting.intervals import (
    History,
    bands,
    correction,
    deviations,
    distances,
    independent_windows,
    multipliers,
)
from seqloom.tasks.forecasting.task import Config, Forecasting
from seqloom.tasks.forecasting.windows import Layout, Places, SeriesWindows

LEVELS = [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95]
RNG = np.random.default_rng(0)


def covered(lines: np.ndarray, actual: np.ndarray, pair: int = 0) -> float:
    return float(((actual >= lines[..., pair]) & (actual <= lines[..., -1 - pair])).mean())


def spread_errors(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Errors that grow with the steps and with the deviation of each window, which differs a hundredfold."""
    deviation = np.exp(RNG.uniform(0, np.log(100), (count, 1, 2)))
    return RNG.standard_t(5, (count, 4, 2)) * deviation * np.arange(1, 5)[:, None], deviation


def test_intervals_cover_what_they_promise_at_every_step() -> None:
    errors, deviation = spread_errors(3_000)
    nothing = np.zeros_like(errors)
    factors = multipliers(errors, distances(nothing, None, deviation, 7), LEVELS, 3_000)
    new, other = spread_errors(3_000)
    lines = bands(nothing, None, other, factors, LEVELS)
    for pair, share in enumerate((0.9, 0.8, 0.5)):
        for step in range(4):
            assert covered(lines[:, step], new[:, step], pair) == pytest.approx(share, abs=0.04)


@pytest.mark.parametrize("sure", [0.3, 1.0, 3.0])
def test_quantiles_of_a_model_that_is_too_sure_or_not_sure_enough_are_corrected(sure: float) -> None:
    actual, deviation = spread_errors(2_000)
    normal = np.array([-1.645, -1.282, -0.674, 0, 0.674, 1.282, 1.645])
    said = (np.zeros_like(actual) + deviation)[..., None] * normal / sure
    points = np.zeros_like(actual)
    factors = multipliers(actual, distances(points, said, deviation, 7), LEVELS, 2_000)
    assert covered(bands(points, said, deviation, factors, LEVELS), actual) == pytest.approx(0.9, abs=0.02)


def test_quantiles_that_are_not_calibrated_stay_as_the_model_gives_them() -> None:
    actual, deviation = spread_errors(20)
    said = deviation[..., None] * np.array([-1.6, -1.2, -0.6, 0, 0.7, 1.3, 1.9]) * np.ones_like(actual)[..., None]
    np.testing.assert_allclose(bands(np.zeros_like(actual), said, 2 * deviation, None, LEVELS), said)


def test_few_windows_make_intervals_wider_many_do_not() -> None:
    found = [correction(0.9, windows) for windows in (1, 1.8, 4, 20, 1e6)]
    assert found == sorted(found, reverse=True) and found[0] > 3 and found[2] == pytest.approx(1.22, abs=0.01)
    assert found[-1] == pytest.approx(1, abs=1e-4)
    shares = []
    for _ in range(2_000):  # six independent values of which two say how far the next may lie
        seen, new = RNG.standard_normal((2, 6, 1, 1))
        one = np.ones((6, 1, 1))
        factors = multipliers(seen, distances(0 * seen, None, one, 2), [0.05, 0.95], 3)
        shares.append(covered(bands(0 * new, None, one, factors, [0.05, 0.95]), new))
    assert 0.88 < np.mean(shares) < 0.97


def test_overlapping_windows_count_as_little_as_they_tell() -> None:
    assert independent_windows(Places(np.array([10, 5]), np.array([25, 1])), 12) == pytest.approx(3 + 1)
    assert independent_windows(Places(np.array([10]), np.array([3]), 12), 12) == pytest.approx(3)


def test_a_step_nobody_saw_is_no_narrower_than_the_others() -> None:
    errors, deviation = spread_errors(50)
    errors[:, 2] = np.nan
    factors = multipliers(errors, distances(0 * errors, None, deviation, 7), LEVELS, 50)
    assert np.isfinite(factors).all() and (factors[2, :, [0, -1]] == factors[..., [0, -1]].max()).all()


def test_levels_without_a_counterpart_are_calibrated_too() -> None:
    errors, deviation = spread_errors(1_000)
    factors = multipliers(errors, distances(0 * errors, None, deviation, 2), [0.5, 0.9], 1_000)
    lines = bands(0 * errors, None, deviation, factors, [0.5, 0.9])
    assert not lines[..., 0].any() and (errors <= lines[..., 1]).mean() == pytest.approx(0.9, abs=0.03)


def short_validation(wild: float, mild: float, season: int = 1) -> tuple[SeriesWindows, Places]:
    """600 points in stretches of 30, half of them calm and half of them `wild`; 30 `mild` ones for validation."""
    rng = np.random.default_rng(5)
    sizes = np.append(np.repeat(np.tile([1.0, wild], 10), 30), np.repeat(mild, 30))
    values = np.sin(np.arange(630) / 3) + sizes * rng.standard_normal(630)
    rows: Any = ToySeries(ToyScale(1, 0, 0, season), (630,), (600,))
    rows.values = [values[:, None]]
    windows = SeriesWindows(rows, Layout(1, False, 0, 0, 10), 40, 10)
    return windows, windows.scored()


def wave(windows: SeriesWindows) -> Any:
    """The forecaster that knows the sine and nothing of the noise."""
    return lambda some, _: (np.sin((some[1][:, None] + np.arange(windows.horizon)) / 3)[..., None], None)


def test_a_mild_validation_set_after_a_wild_history_does_not_make_narrow_intervals() -> None:
    windows, places = short_validation(wild=6, mild=1)
    found = factors(wave(windows), windows, places, LEVELS)
    whole = windows.trained()
    origins = whole.locate(np.arange(len(whole)))
    points, actual = wave(windows)(origins, False)[0], windows.future(*origins)
    deviation = deviations(windows, *origins)
    alone = multipliers(*_scored(windows, places), LEVELS, independent_windows(places, 10))
    assert covered(bands(points, None, deviation, alone, LEVELS), actual) < 0.82
    assert 0.85 < covered(bands(points, None, deviation, found, LEVELS), actual) < 0.97


def test_a_wild_validation_set_after_a_mild_history_does_not_make_wide_intervals() -> None:
    windows, places = short_validation(wild=1, mild=6)
    alone = multipliers(*_scored(windows, places), LEVELS, independent_windows(places, 10))
    found = factors(wave(windows), windows, places, LEVELS)
    assert (found[..., [0, -1]] < 0.7 * alone[..., [0, -1]]).all()


def test_the_history_counts_where_there_are_few_validation_windows_only() -> None:
    windows, _ = short_validation(wild=6, mild=1)
    many = Places(np.array([40]), np.array([400]))
    alone = multipliers(*_scored(windows, many), LEVELS, independent_windows(many, 10))
    np.testing.assert_array_equal(factors(wave(windows), windows, many, LEVELS), alone)


def test_a_season_longer_than_the_history_leaves_one_naive_forecast() -> None:
    windows, places = short_validation(wild=3, mild=1, season=700)
    history = naive_history(windows, places, 700)
    assert np.isnan(history.valid[1]).all() and (history.ratio(0.9) > 1).all()


def test_the_ratio_to_the_history_is_bounded_and_safe_without_errors() -> None:
    ones = np.ones((50, 4, 2))
    np.testing.assert_allclose(History([ones], [1000 * ones], 9).ratio(0.9), 4)
    np.testing.assert_allclose(History([0 * ones], [ones], 9).ratio(0.9), 1)
    np.testing.assert_allclose(History([ones, ones], [ones, 4 * ones], 9).ratio(0.9), 2)


def test_bands_widen_where_a_series_has_lately_been_hard_to_foresee() -> None:
    windows, _ = short_validation(wild=6, mild=1)
    calm, wild = deviations(windows, np.array([0, 0]), np.array([330, 360]))  # after 30 calm points, after 30 wild ones
    assert wild > 1.5 * calm
    values = windows.values.copy()
    windows.values[330:] = 1e6
    np.testing.assert_array_equal(deviations(windows, np.array([0]), np.array([330]))[0], calm)  # nothing of the future
    windows.values = values
    windows.values[:400] = np.nan
    few = deviations(windows, np.array([0, 0]), np.array([405, 2]), season=12)
    assert np.isfinite(few).all() and (few > 0).all()


def _scored(windows: SeriesWindows, places: Places) -> tuple[np.ndarray, np.ndarray]:
    origins = places.locate(np.arange(len(places)))
    points = wave(windows)(origins, False)[0]
    errors = windows.future(*origins) - points
    return errors, distances(points, None, deviations(windows, *origins), len(LEVELS))


def task(**options: Any) -> Forecasting:
    given = {"horizon": 7, "context": 9, "paths": 20, "drawn": 12, "intervals": "conformal", **options}
    return Config.model_validate(given).build(ToyScale(2, 0, 0, 4))  # type: ignore[arg-type]


@pytest.mark.parametrize("output", ["point", "quantiles", "gauss", "student", "bins"])
@pytest.mark.parametrize("strategy", ["direct", "recursive"])
def test_every_band_of_every_output_contains_its_forecast(strategy: str, output: str) -> None:
    own = task(output=output, strategy=strategy, channels="apart" if output == "gauss" else "joint")
    torch.manual_seed(0)
    model = alive(find_config("models", "gru").model_validate({"width": 8}).assemble(own)).float()
    valid: Any = ToySeries(own.scale, (70, 60), (40, 35))  # type: ignore[arg-type]
    origins = np.array([0, 0, 1]), np.array([45, 60, 40])
    before = own.forecast(model, valid, origins, quantiles=True)[1]
    assert (before is None) == (output == "point")
    own.settle(model, valid)
    points, lines = own.forecast(model, valid, origins, quantiles=True)
    for found in (before, lines):
        if found is not None:
            assert (np.diff(found, axis=-1) >= 0).all()
            assert (found[..., :3] <= points[..., None]).all() and (found[..., -3:] >= points[..., None]).all()
    scores = own.evaluate(model, valid)
    assert scores["coverage"] > 0.8 and "intervals calibrated on the validation set" in scores["protocol"]
    own.settle(model, valid)
    np.testing.assert_array_equal(own.forecast(model, valid, origins, quantiles=True)[1], lines)  # type: ignore[arg-type]
