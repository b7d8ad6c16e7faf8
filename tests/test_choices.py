"""Default rules of the forecasting task: chosen from the training part, never against what was given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from seqloom.data.shapes.series.reading import Facts, Series, SeriesSource
from seqloom.data.shapes.series.seasons import Season
from seqloom.tasks.forecasting.choices import choose

RNG = np.random.default_rng(0)


def source(lengths: list[int], targets: int = 1, *seasons: int, spread: float = 1.0) -> SeriesSource:
    """`spread`: of each series, relative to the one before."""
    names = [f"x{n}" for n in range(targets)]
    series = [
        Series(f"s{n}", np.arange(length), RNG.standard_normal((length, targets)) * spread**n, length)
        for n, length in enumerate(lengths)
    ]
    return SeriesSource("f", names, names, [], [], None, False, series, [0] * len(series), lengths, Facts(), [],
                        "standard", tuple(Season(points) for points in seasons if points > 1))  # fmt: skip


def chosen(part: SeriesSource, **given: Any) -> dict[str, Any]:
    paths = {path.replace("_", ".", 1): value for path, value in given.items()}
    found = choose(part, paths)
    assert not {choice.path for choice in found} & set(paths), "what is given is left alone"
    assert all(choice.reason and "\n" not in choice.reason for choice in found)
    return {choice.path: choice.value for choice in found}


def test_hours_with_a_daily_season() -> None:
    found = chosen(source([8640], 7, 24))
    assert (found["task.horizon"], found["task.context"]) == (24, 96)
    assert found["task.channels"] == "apart" and found["task.window_scale"] == "last"
    assert found["task.intervals"] == "conformal" and "task.error" not in found
    assert found["train.batch"] == 64 and found["train.epochs"] == 1 and found["model.width"] == 64


def test_the_context_follows_the_horizon_that_was_given() -> None:
    assert chosen(source([8640], 7, 24), task_horizon=96)["task.context"] == 384
    assert chosen(source([8640], 7, 24), task_horizon=300)["task.context"] == 512


def test_the_longest_of_several_seasons_is_seen_twice() -> None:
    assert chosen(source([8640], 7, 24, 168))["task.context"] == 504
    assert chosen(source([8640], 7, 24, 8766))["task.context"] == 96, "a season that does not fit is left out"


def test_a_short_series_gets_a_context_it_can_afford() -> None:
    months = source([86], 1, 12)
    assert (chosen(months)["task.horizon"], chosen(months, task_horizon=12)["task.context"]) == (8, 12)
    assert chosen(source([100]))["task.horizon"] == 10 and chosen(source([1_000]))["task.horizon"] == 24
    tiny = chosen(source([3]))
    assert tiny["task.horizon"] == 1 and tiny["task.context"] == 1 and tiny["train.batch"] == 16


@pytest.mark.parametrize(("spread", "scale"), [(1.0, "last"), (3.0, "standard")])
def test_series_of_different_spread_are_scaled_one_by_one(spread: float, scale: str) -> None:
    found = chosen(source([300] * 8, 1, 24, spread=spread))
    assert found["task.window_scale"] == scale
    assert (found.get("task.error"), found.get("task.metric")) == (
        (None, None) if spread == 1 else ("absolute", "mase")
    )


def test_targets_of_different_units_are_no_reason_for_it() -> None:
    part = source([300], 2)
    part.series[0].values[:, 1] *= 1e6
    assert chosen(part)["task.window_scale"] == "last"


def test_choices_do_not_contradict_what_was_given() -> None:
    many = source([300] * 8, 1, 24, spread=3.0)
    assert "task.window_scale" not in chosen(many, task_asked="all")
    assert "task.window_scale" not in chosen(many, task_output="bins")
    assert "task.error" not in chosen(many, task_output="gauss")
    assert "train.epochs" not in chosen(many, train_steps=100)


def test_constant_and_missing_values_do_not_matter() -> None:
    part = source([50] * 4)
    part.series[0].values[:] = 3.0
    part.series[1].values[:] = np.nan
    part.series[2].values[::2] = np.nan
    assert chosen(part)["task.window_scale"] == "last"
    assert chosen(replace(part, series=[], begins=[], ends=[]))["task.horizon"] == 1
