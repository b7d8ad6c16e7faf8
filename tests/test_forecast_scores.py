"""Scores of forecasts against their definitions, and naive forecasts against forecasts made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from toys import ToyScale, ToySeries

from seqloom.tasks.forecasting.backtests import first_step
from seqloom.tasks.forecasting.baselines import Autoregression, fit_autoregression, naive2, simple_forecasts
from seqloom.tasks.forecasting.scores import Backtest, naive_errors, owa
from seqloom.tasks.forecasting.windows import Layout, SeriesWindows, fill_forward

SCALE = ToyScale(2)
RNG = np.random.default_rng(0)


def windows(rows: Any, context: int, horizon: int, **options: Any) -> SeriesWindows:
    return SeriesWindows(rows, Layout(len(rows.scale.targets), False, 0, 0, 1), context, horizon, **options)


def test_scores_are_their_definitions_however_the_windows_come() -> None:
    found, came = RNG.standard_normal((30, 5, 2)), RNG.standard_normal((30, 5, 2))
    came[RNG.random(came.shape) < 0.2] = np.nan
    naive, bands = RNG.random((30, 2)) + 0.5, np.sort(RNG.standard_normal((30, 5, 2, 3)), axis=-1)
    tests = []
    for cuts in ([30], [7, 20, 3]):
        test, start = Backtest(SCALE, 5, (0.1, 0.5, 0.9)), 0
        for size in cuts:
            part = slice(start, start + size)
            test.add(found[part], came[part], naive[part])
            test.add_bands(bands[part], came[part])
            start += size
        tests.append(test)
    scores = tests[0].scores()
    there = np.isfinite(came)
    error = (found - came)[there]
    raw_found, raw_came = SCALE.undo(found)[there], SCALE.undo(came)[there]
    assert scores["mse"] == pytest.approx((error**2).mean()) and scores["mae"] == pytest.approx(np.abs(error).mean())
    relative = np.abs(raw_found - raw_came) / (np.abs(raw_found) + np.abs(raw_came))
    assert scores["smape"] == pytest.approx(200 * relative.mean())
    assert scores["mase"] == pytest.approx((np.abs(found - came) / naive[:, None])[there].mean())
    inside = (came >= bands[..., 0]) & (came <= bands[..., 2])
    assert scores["coverage"] == pytest.approx(inside[there].mean()) and scores["interval"] == 0.8
    miss = came[..., None] - bands
    loss = np.maximum(np.array([0.1, 0.5, 0.9]) * miss, np.array([-0.9, -0.5, -0.1]) * miss)[there]
    assert scores["pinball"] == pytest.approx(loss.mean())
    assert scores["raw"]["x1"]["rmse"] == pytest.approx(np.sqrt(np.nanmean(((found - came)[..., 1] * 3.0) ** 2)))
    steps = tests[0].by_horizon()
    np.testing.assert_allclose(steps["rmse"], np.sqrt(np.nanmean((found - came) ** 2, axis=(0, 2))), rtol=1e-5)
    again = tests[1].scores()
    assert {k: v for k, v in again.items() if k != "raw"} == pytest.approx(
        {k: v for k, v in scores.items() if k != "raw"}
    )
    for metric in ("mse", "mae", "smape", "mase"):
        assert len(tests[0].pieces(metric)) == 30 and np.mean(tests[0].pieces(metric)) == pytest.approx(scores[metric])


def test_the_score_of_many_quantiles_is_that_of_the_distribution() -> None:
    """The closed form of a normal distribution (Gneiting & Raftery 2007, equation 5)."""
    levels = (np.arange(400) + 0.5) / 400
    mean, deviation, came = (
        RNG.standard_normal((20, 3, 2)),
        RNG.random((20, 3, 2)) + 0.2,
        RNG.standard_normal((20, 3, 2)),
    )
    test = Backtest(SCALE, 3, levels.tolist())
    test.add_bands(stats.norm.ppf(levels, mean[..., None], deviation[..., None]), came)
    test.add(mean, came, np.ones((20, 2)))
    z = (came - mean) / deviation
    exact = deviation * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))
    assert test.scores()["crps"] == pytest.approx(exact.mean(), rel=2e-3)


def test_what_nobody_knows_has_no_score() -> None:
    test = Backtest(SCALE, 3)
    test.add(np.zeros((2, 3, 2)), np.full((2, 3, 2), np.nan), np.full((2, 2), np.nan))
    assert test.scores()["mse"] is None and test.by_horizon()["rmse"] == [None] * 3
    assert owa(test.scores(), {"smape": 1.0, "mase": 1.0}) is None


def test_the_error_of_the_seasonal_naive_forecast() -> None:
    values = np.array([[1.0], [2.0], [4.0], [np.nan], [9.0], [100.0]])
    assert naive_errors([values], [5], 1)[0, 0] == pytest.approx(1.5)
    assert naive_errors([values], [5], 2)[0, 0] == pytest.approx((3 + 5) / 2)
    assert np.isnan(naive_errors([values], [1], 1)[0, 0]) and np.isnan(naive_errors([values], [0], 1)[0, 0])


def test_the_simple_rules_by_hand() -> None:
    scale = ToyScale(1)
    rows = ToySeries(scale, [8])
    rows.values[0][:, 0] = [0, 1, 2, 3, 4, 5, 6, np.nan]
    found = simple_forecasts(windows(rows, 4, 5), np.array([0, 0]), np.array([7, 8]), 3)
    assert found["last value"][0, :, 0].tolist() == [6] * 5 and found["last value"][1, 0, 0] == 6
    assert found["drift"][0, :, 0].tolist() == [7, 8, 9, 10, 11]
    assert found["seasonal naive"][0, :, 0].tolist() == [4, 5, 6, 4, 5]
    assert found["moving average"][0, 0, 0] == 5 and found["moving average"][1, 0, 0] == 5.5
    nothing = simple_forecasts(windows(rows, 4, 5), np.array([0]), np.array([1]), 3)
    assert all(np.isfinite(values).all() for values in nothing.values())


@pytest.mark.parametrize("rule", ["none", "last", "standard"])
@pytest.mark.parametrize("block", [1, 4])
def test_the_autoregression_finds_a_linear_rule(rule: Any, block: int) -> None:
    """Two waves follow a linear recurrence of order five exactly, whatever their level."""
    t = np.arange(300)
    series = [(np.sin(t / 5) + 0.5 * np.sin(t / 2) + level)[:, None].astype(np.float32) for level in (0, 2)]
    fitted = fit_autoregression([s[:250] for s in series], 12, block, rule)
    assert fitted is not None
    rows = ToySeries(ToyScale(1), [300, 300])
    rows.values = series
    again = Autoregression.of(fitted.facts())
    for kind in (fitted, again):
        found = kind.forecast(windows(rows, 12, 20), np.array([0, 1]), np.array([270, 260]))
        np.testing.assert_allclose(found[0], series[0][270:290], atol=0.03)
        np.testing.assert_allclose(found[1], series[1][260:280], atol=0.03)


def test_the_autoregression_leaves_out_what_has_gaps() -> None:
    values = RNG.standard_normal((50, 1)).astype(np.float32)
    values[::4] = np.nan
    assert fit_autoregression([values], 6, 1, "none") is None
    assert fit_autoregression([values[:3]], 6, 1, "none") is None


def test_naive2_removes_a_season_and_puts_it_back() -> None:
    t = np.arange(96)
    seasonal = 100 * (1 + 0.5 * np.sin(2 * np.pi * t / 12))
    found = naive2(seasonal[:90], 12, 6)
    np.testing.assert_allclose(found, seasonal[90:], rtol=0.01)
    plain = np.r_[RNG.random(50) + 5]
    np.testing.assert_allclose(naive2(plain, 12, 3), [plain[-1]] * 3)
    assert naive2(np.full(5, np.nan), 4, 2).tolist() == [0, 0]


def test_naive2_keeps_the_phase_where_values_are_missing() -> None:
    week = np.tile([10.0, 20, 30, 40, 30, 20, 15], 13)
    gappy = week[:84].copy()
    gappy[[20, 50, 83]] = np.nan
    np.testing.assert_allclose(naive2(gappy, 7, 7), week[84:], rtol=0.1)
    gappy[np.arange(84) % 7 > 4] = np.nan  # no weekends, ever
    assert np.isfinite(naive2(gappy, 7, 7)).all()
    np.testing.assert_allclose(naive2(gappy, 7, 5), week[84:89], rtol=0.25)


def test_a_variable_of_which_nothing_came_has_no_raw_error() -> None:
    test = Backtest(SCALE, 1)
    test.add(np.ones((3, 1, 2)), np.array([[[1.0, np.nan]]] * 3), np.ones((3, 2)))
    raw = test.scores()["raw"]
    assert raw["x0"]["mae"] == 0 and raw["x1"] == {"mae": None, "rmse": None}


def test_filling_forward_invents_nothing_before_the_first_value() -> None:
    values = np.array([[[np.nan], [1.0], [np.nan], [np.nan], [4.0]]])
    found = fill_forward(values)[0, :, 0]
    assert np.isnan(found[0]) and found[1:].tolist() == [1, 1, 1, 4]


def test_percentages_skip_what_has_none_and_never_become_infinite() -> None:
    scale = ToyScale(2)
    actual = np.array([[[10.0, 0], [20, 0], [0, 0], [np.nan, 0]]])
    test = Backtest(scale, 4)
    test.add(scale.apply(actual * 1.1 + 1), scale.apply(actual), np.ones((1, 2)))
    scores = test.scores()
    assert scores["mape"] == pytest.approx((20 + 15) / 2, rel=1e-4), "of the two values that are not 0"
    assert scores["wape"] == pytest.approx(100 * (2 + 3 + 1) / 30, rel=1e-4), "of the target that has a size"
    assert test.zeros == 5
    nothing = Backtest(scale, 4)
    nothing.add(scale.apply(actual), scale.apply(0 * actual), np.ones((1, 2)))
    assert nothing.scores()["mape"] is None and nothing.scores()["wape"] is None


def test_the_first_step_is_reported_where_the_last_value_is_better() -> None:
    def scores(ours: float | None) -> Any:
        steps = {"rmse": [ours, 1.0], "baselines": {"last value": [0.5, 2.0], "drift": [0.6, 3.0]}}
        return first_step({"horizon": steps, "baselines": {"last value": {}, "drift": {}}, "protocol": "direct"})

    assert "rmse_1" not in scores(0.4) and "rmse_1" not in scores(None)
    found = scores(0.7)
    assert found["rmse_1"] == 0.7 and found["baselines"]["drift"]["rmse_1"] == 0.6
    assert found["protocol"].endswith("one step ahead worse than repeating the last value (RMSE 0.7, 0.5)")
