"""Seasons are found where series repeat themselves, on the training part alone; noise, walks and trends have none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from test_series import config, hours, write
from toys import ToyScale, ToySeries

from seqloom.core.rows import Json
from seqloom.data.shapes.series import SHAPE
from seqloom.data.shapes.series.reading import open_series
from seqloom.data.shapes.series.scale import SeriesScale
from seqloom.data.shapes.series.seasons import find_seasons
from seqloom.data.shapes.series.split import changed_after, open_parts
from seqloom.tasks.forecasting.backtests import naive_tests
from seqloom.tasks.forecasting.task import Config
from seqloom.tasks.forecasting.windows import Layout, SeriesWindows
from seqloom.tokenizers.options import NoTokenizer


def noise(seed: int, size: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(size)


def persistent(seed: int, size: int, share: float = 0.9) -> np.ndarray:
    """AR(1)."""
    found = noise(seed, size)
    for n in range(1, size):
        found[n] += share * found[n - 1]
    return found


def load(days: int, points: int = 24, week: float = 2.0, seed: int = 0) -> np.ndarray:
    """A day pattern, less on weekends, with noise."""
    t = np.arange(days * points)
    wave = 3 * np.sin(2 * np.pi * t / points) + np.sin(4 * np.pi * t / points + 1)
    return 10 + wave - week * (t // points % 7 >= 5) + 0.3 * noise(seed, len(t))


def lengths(channels: list[np.ndarray], *likely: int) -> list[int]:
    return [season.points for season in find_seasons(channels, likely)]


@pytest.mark.parametrize("likely", [(), (12,), (7, 365), (24, 168)], ids=str)
@pytest.mark.parametrize(
    "make", [noise, lambda seed, size: noise(seed, size).cumsum(), persistent], ids=["white", "walk", "ar"]
)
def test_at_most_one_of_a_hundred_series_without_a_season_gets_one(make: Any, likely: tuple[int, ...]) -> None:
    sizes = np.random.default_rng(1).choice([60, 150, 400], 100)
    found = [lengths([make(seed, int(size))], *likely) for seed, size in enumerate(sizes)]
    assert sum(bool(one) for one in found) <= 1, [one for one in found if one]


def test_day_and_week_are_found_with_and_without_a_calendar() -> None:
    hourly, half = load(days=56), load(days=56, points=48)
    assert lengths([hourly], 24, 168, 8766) == [24, 168] and lengths([half], 48, 336, 17532) == [48, 336]
    assert lengths([hourly]) == [24, 168] and lengths([half]) == [48, 336]


def test_a_multiple_of_a_season_is_none_if_it_adds_nothing() -> None:
    assert lengths([load(days=56, week=0.0)], 24, 168) == [24] == lengths([load(days=56, week=0.0)])
    assert lengths([np.tile(np.arange(7.0), 40)], 7, 28) == [7]


def test_a_trend_neither_hides_a_season_nor_makes_one() -> None:
    t = np.arange(120.0)
    year = np.exp(0.01 * t) * (10 + np.sin(2 * np.pi * t / 12))
    assert lengths([year + 0.1 * noise(0, 120)], 12) == [12]
    assert lengths([0.3 * t + noise(0, 120)], 12) == [] == lengths([0.3 * t + noise(0, 120)])


def test_many_short_series_say_together_what_none_says_alone() -> None:
    def short(seed: int) -> np.ndarray:
        return np.tile(noise(seed, 12), 4)[:40] + 0.9 * noise(seed + 500, 40)

    assert lengths([short(seed) for seed in range(80)], 12) == [12]
    assert sum(lengths([short(seed)], 12) == [12] for seed in range(80)) < 40


def test_copies_of_one_walk_are_no_more_evidence_than_one() -> None:
    for seed in range(10):
        walk = noise(seed, 60).cumsum()
        assert lengths([walk + 0.01 * noise(seed + n, 60) for n in range(30)], 12) == []


def test_missing_values_and_constant_or_empty_series_do_no_harm() -> None:
    gappy = load(days=56)
    gappy[::7] = np.nan
    gappy[300:340] = np.nan
    assert lengths([np.full(500, 3.0), gappy, np.full(500, np.nan), np.zeros(3)], 24, 168)[0] == 24
    assert find_seasons([]) == [] == find_seasons([np.full(50, np.nan)], (12,))


def hourly_file(path: Path, days: int = 56) -> str:
    values = load(days)
    return str(write(path, "time,y", *(f"{time},{y:.4f}" for time, y in zip(hours(len(values)), values, strict=True))))


def test_seasons_are_those_of_the_training_part_and_say_why(tmp_path: Path) -> None:
    spec = hourly_file(tmp_path / "a.csv")
    parts = SHAPE.open_parts(config(spec))
    scale = SHAPE.make_vocabulary(NoTokenizer(), parts["train"])
    assert [part.seasons for part in parts.values()] == [[24, 168]] * 2
    assert (scale.season, scale.seasons) == (24, [24, 168])
    told = SHAPE.describe(SHAPE.prepare(parts["train"], scale), scale)
    assert "seasons 24 (autocorrelation 0.9" in told and "of the last value's MAE) and 168 (auto" in told
    assert any("seasons 24 (autocorrelation" in finding.message for finding in SHAPE.examine(config(spec)))
    whole = open_series(spec, config(spec))
    other = open_parts(changed_after(whole, {"": parts["train"].ends[0]}), config(spec), {})
    assert other["train"].given == parts["train"].given


@pytest.mark.parametrize(
    ("given", "season", "seasons"), [(1, 1, []), (7, 7, [7]), ("168, 24", 168, [168, 24]), ("24", 24, [24])]
)
def test_seasons_that_are_given_are_kept(tmp_path: Path, given: Any, season: int, seasons: list[int]) -> None:
    spec = hourly_file(tmp_path / "a.csv", days=3)
    train = SHAPE.open_parts(config(spec, season=given))["train"]
    assert (train.season, train.seasons) == (season, seasons)
    told = [finding.message for finding in SHAPE.examine(config(spec, season=given))]
    assert any("season" in message and "found" not in message for message in told)


def test_a_season_that_is_no_number_is_refused() -> None:
    for wrong in ("day", "24,", "1,24", -1, ""):
        with pytest.raises(ValidationError, match="points per season: a number, or several like 24,168"):
            config("x", season=wrong)
    assert config("x", season=24).model_dump()["season"] == 24 and config("x").seasons is None


def test_a_scale_written_before_there_could_be_several_seasons_is_read(tmp_path: Path) -> None:
    one = SeriesScale({"targets": ["y"]}, {"targets": ([0.0], [1.0])}, season=24)
    assert "seasons" not in json.loads(one.files()["series.json"])
    two = SeriesScale({"targets": ["y"]}, {"targets": ([0.0], [1.0])}, season=24, seasons=[24, 168])
    for scale in (one, two):
        (tmp_path / "series.json").write_bytes(scale.files()["series.json"])
        again = SeriesScale.load(tmp_path)
        assert (again.seasons, again.hash) == (scale.seasons, scale.hash)


def test_each_season_has_a_naive_forecast_with_a_title_in_both_languages() -> None:
    scale: Any = ToyScale(1, season=4)
    scale.seasons = [4, 12]
    rows = ToySeries(scale, [60, 50], begins=[40, 30])
    windows = SeriesWindows(rows, Layout(1, False, 0, 0, 1), 8, 6)
    found: Json = naive_tests(windows, rows, windows.scored().locate(np.arange(3)), {})
    assert [name for name in found if "seasonal" in name] == ["seasonal naive", "seasonal naive 12"]
    titles = Config(horizon=6, context=8).build(scale).baseline_titles
    assert titles["seasonal naive 12"] == ("seasonal naive 12", "季节性朴素预测（12）") and set(found) <= set(titles)
