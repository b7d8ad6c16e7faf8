"""Series as a task gets them: cut in time, joined to what stands before, scaled by the training set; nothing leaks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import examine
from test_series import config, hours, same, write

from seqloom import cli
from seqloom.core.errors import UserError
from seqloom.core.progress import Silent
from seqloom.data.shapes.series import SHAPE
from seqloom.data.shapes.series.options import Options
from seqloom.data.shapes.series.reading import SeriesSource, open_series
from seqloom.data.shapes.series.rows import SeriesRows
from seqloom.data.shapes.series.scale import SeriesScale
from seqloom.data.shapes.series.split import changed_after, check_no_leak, scale_of, split_series
from seqloom.tokenizers.options import NoTokenizer


def table(path: Path, *series: tuple[str, str, int], columns: str = "y", seed: int = 0) -> str:
    """An hourly file of (name, first hour, points), of random numbers."""
    chance, names = np.random.default_rng(seed), columns.split(",")
    lines = [
        ",".join([time, name, *(f"{number:.4f}" for number in chance.normal(5, 3, len(names)))])
        for name, start, count in series
        for time in hours(count, start)
    ]
    return str(write(path, f"time,id,{columns}", *lines))


def parts_of(spec: str, **options: Any) -> tuple[dict[str, SeriesRows], SeriesScale]:
    parts = SHAPE.open_parts(config(spec, **options))
    scale = SHAPE.make_vocabulary(NoTokenizer(), parts["train"])
    return SHAPE.prepare_parts(parts, scale, Silent()), scale


def bounds(rows: dict[str, SeriesRows]) -> dict[str, list[tuple[int, int]]]:
    return {
        name: [(begin, len(times)) for begin, times in zip(part.begins, part.times, strict=True)]
        for name, part in rows.items()
    }


A, B = ("a", "2024-01-01T00", 100), ("b", "2024-01-03T00", 60)


@pytest.mark.parametrize(
    ("options", "ends"),
    [
        ({"split_by": "share", "test_fraction": 0.2}, [[70, 42], [80, 48], [100, 60]]),
        ({"valid_points": 10, "test_points": 5}, [[85, 45], [95, 55], [100, 60]]),
        ({"valid_points": 10, "train_points": 20}, [[20, 20], [30, 30]]),
        ({"valid_points": 10, "test_fraction": 0.1}, [[80, 44], [90, 54], [100, 60]]),
        ({"valid_fraction": 0.0}, [[100, 60]]),
    ],
)
def test_parts_are_cut_in_time(tmp_path: Path, options: dict[str, Any], ends: list[list[int]]) -> None:
    rows, _ = parts_of(table(tmp_path / "a.csv", A, B), series="id", **options)
    found = bounds(rows)
    assert [[end for _, end in part] for part in found.values()] == ends
    assert [[begin for begin, _ in part] for part in found.values()] == [[0, 0], *ends][: len(ends)]
    for name, part in rows.items():
        assert part.tokens == sum(end - begin for begin, end in found[name]) == part.lengths.sum()
        assert len(part) == len(part.names) == 2 and part.origin.bytes == part.bytes == 8 * part.tokens


def test_all_series_are_cut_at_one_moment(tmp_path: Path) -> None:
    """The shares are those of all points; not of each series."""
    series = A, ("b", "2024-01-03T12", 40)
    rows, _ = parts_of(table(tmp_path / "a.csv", *series), series="id", test_fraction=0.2)
    ends = {name: sum(end for _, end in part) for name, part in bounds(rows).items()}
    assert ends == {"train": 98, "valid": 112, "test": 140}
    for name in ("valid", "test"):
        first = {times[begin] for times, begin in zip(rows[name].times, rows[name].begins, strict=True)}
        assert len(first) == 1


def test_one_series_is_cut_by_share_of_its_points() -> None:
    rows, _ = parts_of("sample:sine", valid_fraction=0.1, test_fraction=0.3)
    assert bounds(rows) == {"train": [(0, 600)], "valid": [(600, 700)], "test": [(700, 1000)]}
    rows, scale = parts_of("sample:sine", train_points=600, valid_points=100)
    assert bounds(rows) == {"train": [(0, 600)], "valid": [(600, 700)]}
    assert "300 points after the last split not used" in SHAPE.describe(rows["train"], scale)
    assert {n: p.points for n, p in SHAPE.split(open_series("sample:sine"), 0.1, 0.3).items()} == {
        "train": 600,
        "valid": 100,
        "test": 300,
    }


def test_a_series_that_begins_late_is_only_validated_on_and_one_that_ends_early_is_not(tmp_path: Path) -> None:
    path = table(
        tmp_path / "a.csv", ("old", "2024-01-01T00", 50), ("long", "2024-01-01T00", 100), ("new", "2024-01-05T00", 4)
    )
    rows, _ = parts_of(path, series="id")
    assert rows["train"].names == ["old", "long"] and rows["valid"].names == ["long", "new"]
    assert rows["valid"].begins[1] == 0


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"valid_points": 60}, r"1 of 2 series are too short to split, the first 'b' with 60 points, but 1 \+ 60"),
        ({"train_points": 95, "valid_points": 10}, r"2 of 2 series are too short .* 'a' with 100 points, but 95 \+ 10"),
    ],
)  # fmt: skip
def test_what_is_too_short_to_be_cut_is_named(tmp_path: Path, options: dict[str, Any], wanted: str) -> None:
    with pytest.raises(UserError, match=wanted):
        parts_of(table(tmp_path / "a.csv", A, B), **{"series": "id", **options})
    with pytest.raises(UserError, match=r"too few points \(3\) for a train split"):
        parts_of(str(write(tmp_path / "b.csv", "time,y", "1,2", "2,3", "3,4")), valid_fraction=0.9)


def test_files_of_their_own_follow_on(tmp_path: Path) -> None:
    train = table(tmp_path / "train.csv", A, B)
    valid = table(tmp_path / "valid.csv", ("a", "2024-01-05T04", 10), ("c", "2024-01-05T04", 7), seed=1)
    test = table(tmp_path / "test.csv", ("a", "2024-01-05T17", 5), ("b", "2024-09-05T04", 9), seed=2)
    rows, _ = parts_of(train, valid=valid, test=test, series="id")
    assert bounds(rows) == {
        "train": [(0, 100), (0, 60)],
        "valid": [(100, 110), (0, 7)],
        "test": [(113, 118), (0, 9)],  # three hours lack; a half year later there is no history
    }
    same(rows["test"].values[0][:110], rows["valid"].values[0])
    assert np.isnan(rows["test"].values[0][110:113]).all() and rows["test"].origin.facts.apart == 1
    whole = rows["test"].times[0]
    assert (np.diff(whole) == np.timedelta64(3600, "s")).all()
    assert str(whole[113]) == "2024-01-05T17:00:00"
    rows, _ = parts_of(train, test=valid, series="id")
    assert bounds(rows)["valid"][0][1] == bounds(rows)["test"][0][0] == 100  # validation cut from what is trained on


def test_wide_files_follow_on_by_name(tmp_path: Path) -> None:
    train, test = (
        write(tmp_path / "a.csv", "V1,V2,V3,V4", "x,1,2,3", "y,4,7,"),
        write(tmp_path / "b.csv", "V1,V2", "y,6"),
    )
    rows, _ = parts_of(str(train), test=str(test), layout="wide", valid_fraction=0.0, scale="none")
    assert rows["test"].names == ["y"] and rows["test"].begins == [2]
    same(rows["test"].values[0][:, 0], [4, 7, 6])
    same(rows["test"].future_times(0, 2), [3, 4])


@pytest.mark.parametrize(
    ("start", "columns", "options", "wanted"),
    [
        (
            "2024-01-05T03",
            "y",
            {},
            r"test.csv: series 'a' begins at 2024-01-05T03:00:00, but .*ends at .*must not overlap",
        ),
        ("2024-01-05T04:30", "y", {}, "does not fit frequency hour"),
        ("2024-01-05T04", "z", {}, "no column 'y'; available: z"),
        (
            "2024-01-05T04",
            "y",
            {"valid": "test", "test": None, "test_points": 3},
            "would come before it; give data.test",
        ),
    ],
)
def test_files_that_do_not_follow_are_refused(
    tmp_path: Path, start: str, columns: str, options: dict[str, Any], wanted: str
) -> None:
    test = table(tmp_path / "test.csv", ("a", start, 10), columns=columns)
    options = {name: test if value == "test" else value for name, value in {"test": "test", **options}.items()}
    with pytest.raises(UserError, match=wanted):
        parts_of(table(tmp_path / "train.csv", A, B), series="id", **options)


def test_another_clock_is_refused(tmp_path: Path) -> None:
    train = table(tmp_path / "train.csv", A)
    daily = str(write(tmp_path / "test.csv", "time,id,y", "2025-01-01,a,1", "2025-01-02,a,2"))
    with pytest.raises(UserError, match=r"frequency day, but that of .*train.csv is hour"):
        parts_of(train, test=daily, series="id")
    _, scale = parts_of(train, series="id")
    with pytest.raises(UserError, match="frequency day, but that of training is hour"):
        SHAPE.prepare(SHAPE.open(daily, config(daily, series="id")), scale)


@pytest.mark.parametrize("method", ["standard", "robust", "none"])
def test_the_scale_is_that_of_the_training_part_and_can_be_undone(tmp_path: Path, method: str) -> None:
    path = table(tmp_path / "a.csv", A, B, columns="y,flat,p,k")
    lines = Path(path).read_text().splitlines()
    lines = [lines[0], *(",".join([*line.split(",")[:3], "7", *line.split(",")[4:]]) for line in lines[1:])]
    lines[5] = ",".join([*lines[5].split(",")[:2], "", "7", "", ""])
    write(Path(path), *lines)
    rows, scale = parts_of(
        path, series="id", past="p", known="k", scale=method, calendar="hour,weekday", split_by="share"
    )
    raw = np.concatenate([one.values[:end] for one, end in zip(rows["train"].origin.series, (90, 54), strict=True)])
    low, middle, high = np.nanpercentile(raw[:, 0], [25, 50, 75])
    centre, spread = {
        "standard": (np.nanmean(raw[:, 0]), np.nanstd(raw[:, 0])),
        "robust": (middle, (high - low) / 1.349),
        "none": (0, 1),
    }[method]
    one = rows["valid"].origin.series[1].values
    np.testing.assert_allclose(rows["valid"].values[1][:, 0], (one[:, 0] - centre) / spread, rtol=1e-5, atol=1e-6)
    assert (rows["train"].values[0][:, 1] == (7 if method == "none" else 0)).all()  # flat, but for its mean
    assert np.isnan(rows["train"].values[0][4, 0]) and np.isnan(rows["train"].past[0][4, 0])
    assert not any(np.isnan(known).any() for part in rows.values() for known in part.known)
    np.testing.assert_allclose(scale.undo(rows["valid"].values[1]), one[:, :2], rtol=1e-5, atol=1e-5)
    assert rows["train"].past[0].dtype == np.float32 and scale.undo(rows["train"].values[0]).dtype == np.float64
    same(scale.undo(np.zeros((3, 2))), np.tile(scale.centre, (3, 1)))
    assert scale.known == ["k", "hour_sin", "hour_cos", "weekday_sin", "weekday_cos"] and scale.missing == [
        "y",
        "p",
        "k",
    ]
    assert rows["train"].known[0].shape == (100, 5) and rows["train"].past[0].shape == (90, 1)


def test_a_spread_of_mostly_one_value_is_not_nothing(tmp_path: Path) -> None:
    lines = [f"{n},{n % 10 == 0:d}" for n in range(100)]
    rows, _ = parts_of(str(write(tmp_path / "a.csv", "time,y", *lines)), scale="robust")
    assert np.abs(rows["train"].values[0]).max() < 10


def test_a_scale_is_read_as_it_was_written_and_damage_is_named(tmp_path: Path) -> None:
    _, scale = parts_of(table(tmp_path / "a.csv", A), series="id", calendar="auto", season=5)
    for name, content in scale.files().items():
        (tmp_path / name).write_bytes(content)
    again = SHAPE.load_vocabulary(tmp_path)
    assert again.hash == scale.hash and again.files() == scale.files()
    assert (again.frequency, again.step, again.season, again.size, again.kind) == ("hour", 1, 5, 1, "series")
    (tmp_path / "series.json").write_text(json.dumps({"columns": 3}))
    with pytest.raises(UserError, match="damaged; not a scale"):
        SeriesScale.load(tmp_path)
    (tmp_path / "series.json").unlink()
    with pytest.raises(UserError, match="No such file"):
        SeriesScale.load(tmp_path)


def test_a_column_without_a_value_to_train_on_is_refused(tmp_path: Path) -> None:
    lines = [f"{n},{n},{'' if n < 95 else n}" for n in range(100)]
    with pytest.raises(UserError, match="column 'x' has no values in the training set"):
        parts_of(str(write(tmp_path / "a.csv", "time,y,x", *lines)))
    with pytest.raises(UserError, match="no target changes in the training set"):
        parts_of(str(write(tmp_path / "a.csv", "time,y", *(f"{n},3" for n in range(100)))))


def test_the_future_is_known_as_far_as_the_file_or_the_calendar_goes(tmp_path: Path) -> None:
    lines = [f"{time},{n if n < 40 else ''},{n}" for n, time in enumerate(hours(45))]
    path = str(write(tmp_path / "a.csv", "time,y,price", *lines))
    how = {"known": "price", "calendar": "hour", "scale": "none", "valid_fraction": 0.0}
    rows, scale = parts_of(path, **how)
    train = rows["train"]
    same(train.future_known(0, 5)[:, 0], np.arange(40, 45))
    same(train.future_times(0, 5), train.origin.series[0].times[40:])
    with pytest.raises(UserError, match=r"the series has price for 5 steps after its last value, but 6 are needed"):
        train.future_known(0, 6)
    endless, _ = parts_of(path, **how | {"known": "", "targets": "y"})
    ahead = endless["train"].future_known(0, 48)
    np.testing.assert_allclose(ahead[:24], ahead[24:], atol=1e-6)
    np.testing.assert_allclose(ahead[:5], train.future_known(0, 5)[:, 1:], atol=1e-6)


def test_sources_are_histories_that_end_with_the_last_value(tmp_path: Path) -> None:
    train = table(tmp_path / "train.csv", A, B)
    _, scale = parts_of(train, series="id")
    fresh = table(tmp_path / "fresh.csv", ("a", "2025-01-01T00", 30), ("z", "2025-01-01T00", 3), columns="other,y")
    lines = Path(fresh).read_text().splitlines()
    lines[30] = lines[30].rpartition(",")[0] + ","  # the last value of y is not there yet
    write(Path(fresh), *lines)
    sources = list(SHAPE.sources(fresh, config(train, series="id")))
    assert [(row["line"], row["series"]) for row in sources] == [(1, "a"), (2, "z")]
    rows = [row["rows"](scale) for row in sources]
    assert [(len(one), one.begins, len(one.values[0])) for one in rows] == [(1, [29], 29), (1, [3], 3)]
    assert str(rows[0].future_times(0, 1)[0]) == "2025-01-02T05:00:00"
    with pytest.raises(UserError, match="no column 'y'"):
        next(SHAPE.sources("sample:sine", config(train)))["rows"](scale)


def random_case(seed: int, folder: Path) -> tuple[SeriesSource, Options]:
    chance = np.random.default_rng(seed)
    starts = [f"2024-01-0{chance.integers(1, 4)}T{chance.integers(0, 24):02}" for _ in range(4)]
    series = [(f"s{n}", start, int(chance.integers(80, 150))) for n, start in enumerate(starts)]
    path = table(folder / "a.csv", *series, columns="y,p,k", seed=seed)
    lines = Path(path).read_text().splitlines()
    kept = [line for n, line in enumerate(lines) if n == 0 or chance.random() > 0.05]  # gaps
    gone = [line if n == 0 or chance.random() > 0.05 else line.rpartition(",")[0] + "," for n, line in enumerate(kept)]
    write(Path(path), *gone)
    drawn = {
        "scale": str(chance.choice(["standard", "robust", "none"])),
        "split_by": str(chance.choice(["time", "share"])),
        "test_fraction": float(chance.choice([0, 0.2])),
        "valid_points": int(chance.choice([0, 15])),
    }
    data = config(path, series="id", past="p", known="k", calendar="auto", valid_fraction=0.2, **drawn)
    return open_series(path, data), data


@pytest.mark.parametrize("seed", range(12))
def test_nothing_before_moves_when_the_future_changes(tmp_path: Path, seed: int) -> None:
    """From any moment on: what a part shows of the time before it is the same, bit for bit."""
    whole, data = random_case(seed, tmp_path)
    assert check_no_leak(whole, data) == []
    parts = split_series(whole, data)
    for name in parts:
        cut = {one.name: end for one, end in zip(parts[name].series, parts[name].ends, strict=True)}
        moments = {one.name: cut.get(one.name, 0) for one in whole.series}
        others = split_series(changed_after(whole, moments), data)
        scale, other = (SHAPE.make_vocabulary(NoTokenizer(), found["train"]) for found in (parts, others))
        assert scale.hash == other.hash
        one, two = SeriesRows(parts[name], scale), SeriesRows(others[name], other)
        assert one.begins == two.begins and parts[name].hash == others[name].hash
        for n in range(len(one)):
            same(one.values[n], two.values[n])
            same(one.past[n], two.past[n])
            same(one.times[n], two.times[n])


def test_the_check_finds_a_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, data = open_series("sample:sine"), config("sample:sine")
    assert check_no_leak(whole, data) == []
    monkeypatch.setattr(
        "seqloom.data.shapes.series.split.scale_of", lambda train, columns: (train.series[0].values.mean(0),)
    )
    assert check_no_leak(whole, data) == ["the scale"]
    assert any("changes the scale" in finding.message for finding in examine("forecasting", "sample:sine"))


def test_describe_tells_what_was_found(tmp_path: Path) -> None:
    lines = [f"{time},{name},{value},x" for name, value in (("a", ""), ("b", 3)) for time in hours(40)]
    lines += [f"{time},c,{'' if n == 4 else n},x" for n, time in enumerate(hours(40)) if n not in (7, 8)]
    rows, scale = parts_of(str(write(tmp_path / "a.csv", "time,id,y,city", *lines)), series="id")
    told = SHAPE.describe(rows["train"], scale)
    for part in (
        "2 series, 72 training points of 1 targets",
        "4.2% of them missing",
        "every hour, no season",
        "1 gaps filled with 2 missing rows",
        "1 constant",
        "1 empty series left out",
        "non-numeric columns left out: city",
    ):
        assert part in told, told
    rows, scale = parts_of("sample:sine")
    assert "no season" in SHAPE.describe(rows["train"], scale)


def said(findings: list[Any], *levels: str) -> str:
    return "\n".join(f"{f.message} -> {f.advice}" for f in findings if not levels or f.level in levels)


def test_the_doctor_finds_nothing_wrong_with_good_series(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", ("a", "2024-01-01T00", 400))
    found = examine("forecasting", path, series="id", calendar="auto")
    assert {finding.level for finding in found} == {"ok"}, said(found)
    assert "1 series of 400 points" in said(found) and "nothing leaks" in said(found)
    assert "no time column found" in said(
        examine("forecasting", path, time="x") + examine("forecasting", str(write(tmp_path / "b.csv", "a,b", "1,2"))),
        "error",
    )


def test_the_doctor_says_what_is_wrong_with_series(tmp_path: Path) -> None:
    lines = ["date,id,y,flat,still,note"]
    for name, unit in (("a", 1.0), ("b", 5000.0), ("short", 1.0)):
        for n in range(30 if name == "short" else 400):
            day = np.datetime64("2020-01-01") + n
            if (day.astype(int) + 3) % 7 < 5:  # markets close
                value = "" if n % 3 == 0 and name == "a" else f"{unit * (np.sin(n) + n / 40):.3f}"
                value = "1e9" if (name, n) == ("b", 103) else value
                lines.append(f"{day},{name},{value},7,{'' if n % 2 else 1},text")
    lines += [f"{np.datetime64('2021-02-05') + n},empty,,7,1,text" for n in range(3)]
    found = examine("forecasting", str(write(tmp_path / "a.csv", *lines)), series="id", targets="y", past="flat,still")
    told = said(found, "warning", "note")
    for part in (
        "1 series have fewer than 50 training points: short",
        "1 series have no values",
        "gaps, filled with",
        "all of them weekends",
        "no calendar features",
        "y: 95 values",
        "still: ",
        "constant in the training set: flat, still",
        "y: 1 outliers, such as 1e+09",
        "times as much as others",
    ):
        assert part in told, f"{part}\n{told}"


def test_the_doctor_sees_trends_late_series_and_empty_parts(tmp_path: Path) -> None:
    lines = [f"{n},{n % 7},a" for n in range(100)] + [f"{n},{n},b" for n in range(97, 100)]
    found = said(examine("forecasting", str(write(tmp_path / "a.csv", "time,y,id", *lines)), series="id"))
    assert "1 series begin after the training period ends" in found
    rising = str(
        write(tmp_path / "b.csv", "time,y,x", *(f"{n},{n},{n % 5 if n < 80 else ''}" for n in range(100)), "100,,")
    )
    found = said(examine("forecasting", rising, valid_points=10, train_points=70, targets="y"))
    assert "in standard deviations: y by +2.0" in found and "20 points are not used" in found
    assert "task.window_scale=last" in found
    assert "1 rows come after the last target value" in found and "they are left out" in found
    assert "the valid split has no values of x" in said(examine("forecasting", rising), "warning")
    still = str(write(tmp_path / "c.csv", "time,y", *(f"{n},3" for n in range(100))))
    assert "constant in the training set" in said(examine("forecasting", still), "error")
    one = str(write(tmp_path / "d.csv", "time,y", "1,2"))
    assert "too few points" in said(examine("forecasting", one), "error")
    with pytest.raises(UserError, match=r"data.sries: no such option; did you mean data.series"):
        examine("forecasting", one, sries="id")


def test_a_known_column_that_lacks_is_the_mean(tmp_path: Path) -> None:
    lines = [f"{n},{n % 4},{'' if n == 5 else n}" for n in range(50)]
    rows, _ = parts_of(str(write(tmp_path / "a.csv", "time,y,k", *lines)), known="k")
    assert rows["train"].known[0][5, 0] == 0


def test_the_doctor_takes_any_setting_of_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    path = table(tmp_path / "a.csv", A, B)
    command = ["seqloom", "doctor", "--task", "forecasting", "--data", path, "-o", "data.series=id", "-o"]
    for setting, code, wanted in [
        ("data.valid_points=7", 0, "14 points for validation"),
        ("data.valid_point=7", 2, "did you mean data.valid_points?"),
        ("data.valid_points=99", 2, "1 of 2 series are too short"),
        ("task.horizon=3", 2, "the doctor takes data settings only, which begin with `data.`"),
    ]:
        monkeypatch.setattr("sys.argv", [*command, setting])
        with pytest.raises(SystemExit) as end:
            cli.main()
        told = capsys.readouterr()
        assert end.value.code == code and wanted in told.out + told.err


def test_dates_and_numbers_do_not_go_together(tmp_path: Path) -> None:
    dates = table(tmp_path / "a.csv", A)
    (tmp_path / "b.csv").write_text("time,id,y\n7,a,1\n")
    with pytest.raises(UserError, match="dates and plain numbers do not go together"):
        SHAPE.open_parts(config(dates, series="id", test=str(tmp_path / "b.csv")))


def test_numbers_of_any_size_have_a_scale(tmp_path: Path) -> None:
    for unit in (1e-200, 1e99):
        (tmp_path / "a.csv").write_text("\n".join(("time,y", *(f"{n},{n % 5 * unit}" for n in range(60)))))
        centre, spread = scale_of(open_series(str(tmp_path / "a.csv")), ["y"])
        assert centre[0] / unit == pytest.approx(2) and spread[0] / unit == pytest.approx(2**0.5)
