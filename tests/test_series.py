"""Series from every format, on every clock, and every way they can be wrong."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqloom.core.errors import UserError
from seqloom.data import files
from seqloom.data.shapes.series import blocks
from seqloom.data.shapes.series.calendar import calendar_features
from seqloom.data.shapes.series.clock import Clock
from seqloom.data.shapes.series.options import Options
from seqloom.data.shapes.series.reading import SeriesSource, open_series
from seqloom.data.shapes.series.times import OffClock, parse_times

NAN = float("nan")


def config(spec: Any, **options: Any) -> Options:
    return Options.model_validate({"train": str(spec), **options})


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def opened(path: Path, *lines: str, **options: Any) -> SeriesSource:
    spec = write(path, *lines) if lines else path
    return open_series(str(spec), config(spec, **options))


def same(one: Any, two: Any) -> None:
    np.testing.assert_array_equal(np.asarray(one), np.asarray(two))


def hours(count: int, start: str = "2024-02-28T20") -> list[str]:
    times = np.datetime64(start, "s") + np.arange(count) * np.timedelta64(3600, "s")
    return [str(time).replace("T", " ") for time in times]


ROWS = [("a", time, x, y) for n, time in enumerate(hours(6)) for x, y in [(n + 0.5, -n)]]
ROWS += [("b", time, 10.0 * n, NAN if n == 1 else n) for n, time in enumerate(hours(4))]


def formats(folder: Path) -> list[Path]:
    import pyarrow
    from pyarrow import parquet

    header = ["name", "date", "x", "y"]
    cells = [[name, time, repr(x), "" if y != y else repr(y)] for name, time, x, y in ROWS]
    whole = "\n".join(",".join(row) for row in [header, *cells]) + "\n"
    (folder / "a.csv").write_text(whole)
    (folder / "windows.csv").write_bytes(b"\xef\xbb\xbf" + whole.replace("\n", "\r\n\r\n").encode())
    (folder / "quoted.csv").write_text("\n".join(",".join(f'"{c}"' for c in row) for row in [header, *cells]))
    (folder / "a.tsv").write_text(whole.replace(",", "\t"))
    (folder / "a.csv.gz").write_bytes(gzip.compress(whole.encode()))
    (folder / "a.csv.xz").write_bytes(lzma.compress(whole.encode()))
    rows = [dict(zip(header, (*row[:3], None if row[3] != row[3] else row[3]), strict=True)) for row in ROWS]
    (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in header}
    parquet.write_table(pyarrow.table(columns), folder / "text.parquet")
    columns["date"] = np.array(columns["date"], dtype="datetime64[us]")
    parquet.write_table(pyarrow.table(columns), folder / "times.parquet")
    return sorted(folder.iterdir())


def test_the_same_series_from_every_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = formats(tmp_path)
    assert len(paths) == 9
    for size in (3, 1 << 15):
        monkeypatch.setattr(blocks, "BLOCK", size)
        found = [opened(path, series="name") for path in paths]
        assert len({source.hash for source in found}) == 1
    one = found[0]
    assert one.columns == one.targets == ["x", "y"] and [s.name for s in one.series] == ["a", "b"]
    same(one.series[1].values, [[0, 0], [10, NAN], [20, 2], [30, 3]])
    assert one.ends == [6, 4] and one.points == 10 and one.count == 2
    assert one.clock == Clock("hour") and one.season == 1 and one.given is None and one.facts.missing == {"y": 1}


def test_series_may_stand_among_each_other(tmp_path: Path) -> None:
    lines = [f"{time},{name},{n}" for n, time in enumerate(hours(5)) for name in ("b", "a")]
    source = opened(tmp_path / "a.csv", "ds,id,y", *lines, series="id")
    assert [one.name for one in source.series] == ["b", "a"]
    assert all((one.values[:, 0] == np.arange(5)).all() for one in source.series)


def test_a_quote_in_the_middle_of_a_large_file_changes_nothing(tmp_path: Path) -> None:
    lines = [f"{time},{n}" for n, time in enumerate(hours(20_000))]
    plain = opened(tmp_path / "a.csv", "time,y", *lines)
    lines[15_000] = lines[15_000].replace("15000", '"15000"')
    lines[15_001] = lines[15_001].replace("15001", '"15001\n"')
    assert opened(tmp_path / "b.csv", "time,y", *lines).hash == plain.hash
    lines[16_000] = lines[16_000].replace("16000", "x")
    with pytest.raises(UserError, match=r"b.csv:16003: y='x' is not a number"):
        opened(tmp_path / "b.csv", "time,y", *lines)


def test_a_block_may_end_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a line, of a quote, of a line end."""
    paths = [path for path in formats(tmp_path) if path.suffix == ".csv"]
    (tmp_path / "odd.csv").write_text((tmp_path / "quoted.csv").read_text().replace('"a"', '"a,""\n"'))
    wanted = [opened(path, series="name").hash for path in [*paths, tmp_path / "odd.csv"]]
    assert len(set(wanted[:3])) == 1 and opened(tmp_path / "odd.csv", series="name").series[0].name == 'a,"'
    for size in (3, 5, 64):
        monkeypatch.setattr(files.read_blocks, "__defaults__", (size,))
        assert [opened(path, series="name").hash for path in [*paths, tmp_path / "odd.csv"]] == wanted


@pytest.mark.parametrize("seed", range(20))
def test_any_rows_of_any_series_find_their_place(tmp_path: Path, seed: int) -> None:
    """Drawn clocks, gaps, missing cells and orders of the series, against a dictionary."""
    chance = np.random.default_rng(seed)
    times = [time for time, *_ in CLOCKS[:12]][seed % 12]
    clock = CLOCKS[seed % 12][1]
    grid = clock.after(np.datetime64(times[0], "s"), 60)
    truth, rows = {}, []
    for name in "abc":
        begin = int(chance.integers(0, 20))
        kept = [n for n in range(begin, 60) if n in (begin, begin + 1, 59) or chance.random() > 0.1]
        truth[name] = {grid[n]: chance.normal() if chance.random() > 0.1 or n == 59 else NAN for n in kept}
        rows += [(time, name, number) for time, number in truth[name].items()]
    rows.sort(key=lambda row: (row[0], chance.random()))
    lines = [f"{time},{name},{'' if number != number else repr(float(number))}" for time, name, number in rows]
    source = opened(tmp_path / "a.csv", "time,id,y", *lines, series="id")
    assert source.clock == clock
    for one in source.series:
        start = min(truth[one.name])
        same(one.times, [time for time in grid if time >= start])
        same(one.values[:, 0], [truth[one.name].get(time, NAN) for time in grid if time >= start])
    assert source.facts.filled == source.points - len(rows)
    assert source.facts.missing.get("y", 0) == sum(number != number for _, _, number in rows)


def test_a_file_without_header_and_without_times(tmp_path: Path) -> None:
    source = opened(tmp_path / "a.txt", "1,2", "3,", "5,6", time="line")
    assert source.targets == ["1", "2"] and not source.dated and source.clock == Clock("number")
    same(source.series[0].values, [[1, 2], [3, NAN], [5, 6]])
    assert opened(tmp_path / "b.csv", "1,2", "2,3", "3,4", time="1").targets == ["2"]


def test_a_wide_file_has_a_series_in_each_line(tmp_path: Path) -> None:
    lines = ['"V1","V2","V3","V4"', '"H1","1","2","3"', '"H2","4",,', '"H3",,"5",', '"H4",,,']
    for content in (lines, lines[1:]):
        source = opened(tmp_path / "a.csv", *content, layout="wide", season=24)
        assert [(one.name, one.ends) for one in source.series] == [("H1", 3), ("H2", 1), ("H3", 2)]
        same(source.series[2].values[:, 0], [NAN, 5])
        assert source.season == 24 and source.facts.empty == 1 and source.targets == ["value"]
    for wrong, message in [
        (["a,1", "a,2"], r"a.csv:2: duplicate series 'a'"),
        (["a,1", "b,x"], r"a.csv:2: value='x' is not a number"),
        (["V1,V2"], "contains no rows"),
    ]:
        with pytest.raises(UserError, match=message):
            opened(tmp_path / "a.csv", *wrong, layout="wide")
    with pytest.raises(UserError, match=r"only names and values; leave out data.past"):
        opened(tmp_path / "a.csv", "a,1", layout="wide", past="x")
    with pytest.raises(UserError, match="is for CSV and TSV files"):
        opened(write(tmp_path / "a.jsonl", '{"time": 1}'), layout="wide")


def every(start: str, unit: str, step: int = 1, count: int = 8) -> list[str]:
    return [str(time) for time in np.datetime64(start, unit) + step * np.arange(count)]


CLOCKS = [
    (every("2020-02-27", "D"), Clock("day"), [7, 365], "2020-03-06"),
    (every("2020-02-27", "D", 7), Clock("week"), [52], "2020-04-23"),
    (every("2020-02-27T12:00", "m", 15), Clock("minute", 15), [96, 672, 35064], "2020-02-27T14:00"),
    (every("2020-02-27T12:00:00", "s"), Clock("second"), [60, 3600, 86400, 604800, 31557600], "2020-02-27T12:00:08"),
    (every("2020-02-27T12:00:00", "s", 30), Clock("second", 30), [120, 2880, 20160, 1051920], "2020-02-27T12:04"),
    (every("2020-02-27T12:00", "m"), Clock("minute"), [60, 1440, 10080, 525960], "2020-02-27T12:08"),
    (every("2020-02-27T12:00", "h", 6), Clock("hour", 6), [4, 28, 1461], "2020-02-29T12:00"),
    (every("1949-01", "M"), Clock("month"), [12], "1949-09-01"),
    (every("1949-01", "M", 3), Clock("month", 3), [4], "1951-01-01"),
    ([f"{month}-15" for month in every("1949-01", "M")], Clock("month"), [12], "1949-09-15"),
    ([str(np.datetime64(m, "D") - 1) for m in every("1949-02", "M")], Clock("month", 1, True), [12], "1949-09-30"),
    ([f"{year}-01-01" for year in every("1949", "Y")], Clock("year"), [], "1957-01-01"),
    ([f"{time}Z" for time in every("2020-02-27T12:00", "h")], Clock("hour"), [24, 168, 8766], "2020-02-27T20:00"),
    ([f"{time}+01:00" for time in every("2020-02-27T12:00", "h")], Clock("hour"), [24, 168, 8766], "2020-02-27T19:00"),
]


@pytest.mark.parametrize(("times", "clock", "seasons", "following"), CLOCKS, ids=lambda value: str(value)[:40])
def test_the_clock_is_found_and_goes_on(
    tmp_path: Path, times: list[str], clock: Clock, seasons: list[int], following: str
) -> None:
    """Also when a point is left out, which becomes a row of missing values."""
    rows = [f"{time},{n}" for n, time in enumerate(times)]
    source = opened(tmp_path / "a.csv", "time,y", *rows)
    assert (source.clock, clock.seasons) == (clock, seasons)
    assert str(clock.after(source.series[0].times[-1], 1)[0]).startswith(following)
    same(clock.after(source.series[0].times[0], 7), source.series[0].times[1:])
    gappy = opened(tmp_path / "b.csv", "time,y", *rows[:3], *rows[5:])
    assert gappy.clock == clock and (gappy.facts.gaps, gappy.facts.filled) == (1, 2)
    same(gappy.series[0].times, source.series[0].times)
    same(gappy.series[0].values[:, 0], [0, 1, 2, NAN, NAN, 5, 6, 7])


def test_numbers_are_times_too_and_a_column_called_year_has_years(tmp_path: Path) -> None:
    whole = opened(tmp_path / "a.csv", "time,y", "10,1", "12,2", "16,3", "18,4")
    assert whole.clock == Clock("number", 2) and whole.series[0].times.dtype == np.int64
    same(whole.series[0].values[:, 0], [1, 2, NAN, 3, 4])
    small = opened(tmp_path / "a.csv", "t,y", *(f"{0.1 * n:.1f},{n}" for n in range(50) if n != 7), time="t")
    assert small.facts.filled == 1 and abs(small.clock.step - 0.1) < 1e-9  # type: ignore[union-attr]
    years = opened(tmp_path / "a.csv", "Year,y", "1700,1", "1701,2", "1702,3")
    assert years.clock == Clock("year") and str(years.series[0].times[0]).startswith("1700-01-01")
    assert str(Clock("number", 2.0)) == "number, step 2" and str(Clock("minute", 15)) == "15 minutes"


@pytest.mark.parametrize(
    ("lines", "options", "wanted"),
    [
        (["time,y"], {}, "a.csv: contains no rows"),
        (["time,y", "2020-01-02,1", "2020-01-01,2"], {}, "a.csv:3: 2020-01-01 comes after 2020-01-02 in the"),
        (["time,y", "1,1", "2,2", "2,3"], {}, "a.csv:4: duplicate time 2 in the series, also on line 3.*s series="),
        (["time,id,y", "1,a,1", "1,b,1", "1,b,2"], {"series": "id"}, "a.csv:4: duplicate time 1 in series 'b', also"),
        (["time,y", "1,1", "2,oops"], {}, "a.csv:3: y='oops' is not a number"),
        (["time\ty", "1\t1,5", "2\t2.5"], {"suffix": ".tsv", "targets": "y"}, "a.tsv:2: y='1,5' .*with a point"),
        (["time\ty", "1\t1,500", "2\t2"], {"suffix": ".tsv"}, "column 'y': a number like 1,234 may be 1234 or 1.234"),
        (["time,y", "1,5%", "2,6%"], {"targets": "y"}, "a.csv:2: y='5%' is not a number; leave out the per cent sign"),
        (["time,y", "1,1", "2,inf"], {}, "a.csv:3: y=inf is infinite"),
        (["time,y", "1,1", "2,-1e999"], {}, "a.csv:3: y=-1e999 is infinite"),
        (["time,y", "1,1,2"], {}, "a.csv:2: 3 fields, but the header has 2"),
        (["time,y", '"1",1,2'], {}, "a.csv:2: 3 fields, but the header has 2"),
        (["time,y,y", "1,1,2"], {}, "two columns are named 'y'"),
        (["t,y", "1,2"], {}, "no time column found.*--columns time=NAME.*available: t, y.*--columns time=line"),
        (["time,y", "1,2"], {"targets": "x"}, "no column 'x'; available: time, y"),
        (["time,load", "1,2"], {"targets": "lod"}, "no column 'lod'; .*did you mean 'load'"),
        (["time,y,x", "1,2,3"], {"past": "x", "known": "x"}, "column 'x' is named twice"),
        (["time,y", "1,2"], {"past": "y"}, "no column is left to forecast"),
        (["name,1980,1981,1982", "a,1,2,3"], {"layout": "wide"}, "a.csv:1: a header of years, .*--columns series=name"),
        (["time,step,y", "1,2,3"], {}, "column 'step' cannot be a target, .*--columns series=step"),
        (["time,y", "1,a"], {}, "no numeric column; available: time, y"),
        (["time,y,x", "1,,2", "2,,3"], {"targets": "y"}, r"contains no series; no target \(y\) has a value"),
        (["time,y", "2020-01-01,1", "yesterday,2"], {}, "a.csv:3: time: 'yesterday' is neither a date, like"),
        (["time,y", "01/02/2020,1"], {}, "a.csv: time: '01/02/2020' may begin with the day or .*data.dayfirst=true or"),
        (["time,y", "13/01/2020,1", "01/13/2020,2"], {}, "a.csv:2: time: '13/01/2020' is neither a date"),
        (["time,y", "2020/1/31,1", "2020/2/30,2"], {}, "a.csv:3: time: '2020/2/30' is not a date like those before"),
        (["a,b,y", "2020-01-01,2020-02-01,1", "2020-01-02,2020-02-02,2"], {}, "a and b both hold dates.*s time=a"),
        (
            ["time,shop,item,y", "1,a,x,1", "1,b,y,2", "2,a,y,1", "2,b,x,2"],
            {},
            "times repeat, and shop and item may both name the series; set --columns series=shop",
        ),
        (["time,y", "1,1", ",2"], {}, "a.csv:3: time: '' is not a number, unlike the times before it"),
        (["time,y", ",1", "1,2"], {}, "a.csv:2: time: '' is neither a date"),
        (["time,y", "nan,1", "1,2"], {}, "a.csv:2: time: 'nan' is not a time"),
        (["time,y", "2020-01-01 00:00:00.5,1"], {}, "finer than a second"),
        (["time,id,y", "1,a,1", "2,,2"], {"series": "id"}, "a.csv:3: no series name on this line"),
        (["time,y", "2020-01-01,1"], {"calendar": "moon"}, "unknown calendar feature 'moon'"),
        (["time,y", "1,1", "2,2"], {"calendar": "hour"}, "needs dates"),
        (
            ["time,y", *(f"2020-01-01 {h:02}:00,1" for h in range(9)), "2020-01-01 09:17,2"],
            {},
            "a.csv:11: the series: its distance to the point before .77 minutes. is not a multiple of the step .hour.",
        ),
        (
            ["time,id,y", *(f"{t},a,1" for t in hours(8)), *(f"{t},b,1" for t in every("2020-01", "D"))],
            {"series": "id"},
            "a.csv:11: series 'b': its frequency is day, but that of most is hour; resample",
        ),
        (
            ["time,y", *(f"{t},1" for t in every("2020-01-01", "D", 1, 9)), "2021-01-01,2"],
            {},
            "would take 357 rows, more than the 10 there are; the longest gap ends on line 11",
        ),
    ],
)  # fmt: skip
def test_bad_input_is_one_clear_line(tmp_path: Path, lines: list[str], options: dict[str, Any], wanted: str) -> None:
    path = tmp_path / f"a{options.pop('suffix', '.csv')}"
    with pytest.raises(UserError, match=wanted):
        opened(path, *lines, **options)


def test_strange_files_are_refused(tmp_path: Path) -> None:
    for name, content, message in [
        ("a.bin", b"x", "give series as CSV, TSV, JSONL or parquet"),
        ("a.parquet", b"no", "not a parquet file"),
        ("a.csv.gz", b"no", "damaged compressed file"),
        ("a.csv", b"time,y\n1,\xff\n", "a.csv:2: not UTF-8"),
        ("a.jsonl", b'{"time": 1, "y": 2}\n{"time": 2, "z": 3}\n', "a.jsonl:2: 'z' is not in the first row"),
        ("b.jsonl", b'{"time": 1, "y": [2]}\n', "no numeric column"),
    ]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UserError, match=message):
            opened(tmp_path / name)
    with pytest.raises(UserError, match="a folder"):
        opened(tmp_path)
    with pytest.raises(UserError, match="no such file"):
        opened(tmp_path / "nowhere.csv")
    with pytest.raises(UserError, match=r"has pairs of texts, but numeric series are needed; available: sample:sine"):
        open_series("sample:cmudict")


def test_missing_cells_in_every_spelling_and_flags_are_numbers(tmp_path: Path) -> None:
    spellings = ["", "NaN", "nan", "NA", "N/A", "null", "None", " ", "<NA>"]
    lines = [f"{n},{cell},{n % 2 == 0}" for n, cell in enumerate(spellings)]
    source = opened(tmp_path / "a.csv", "time,y,holiday", *lines, "9,1,true", known="holiday")
    assert source.facts.missing == {"y": len(spellings)} and source.ends == [10]
    same(source.series[0].values[:, 1], [1, 0, 1, 0, 1, 0, 1, 0, 1, 1])


def test_texts_and_empty_columns_are_left_out_and_told(tmp_path: Path) -> None:
    source = opened(tmp_path / "a.csv", "time,city,y,none", "1,Rome,2,", "2,,3,")
    assert source.targets == ["y"] and source.facts.left_out == ("city", "none")
    with pytest.raises(UserError, match=r"a.csv:2: city='Rome' is not a number"):
        opened(tmp_path / "a.csv", targets="y,city")


def test_what_follows_the_last_value_is_the_future(tmp_path: Path) -> None:
    source = opened(tmp_path / "a.csv", "time,y,price", "1,5,1", "2,6,2", "3,,3", "4,,4", targets="y", known="price")
    assert source.ends == [2] and len(source.series[0].times) == 4 and source.facts.ahead == 2
    assert source.facts.missing == {} and source.points == 2


def test_series_without_a_value_are_left_out_and_constant_ones_counted(tmp_path: Path) -> None:
    lines = [f"{n},{name},{value}" for n in range(3) for name, value in (("a", ""), ("b", 7), ("c", n))]
    source = opened(tmp_path / "a.csv", "time,id,y", *lines, series="id")
    assert source.facts.empty == 1 and source.constant() == ["b"] and source.count == 2


def test_the_calendar_goes_round() -> None:
    """Monday midnight on the first of January is where all circles begin."""
    names = ["hour", "weekday", "monthday", "yearday", "month"]
    start = calendar_features(np.array(["2024-01-01T00:00:00"], "datetime64[s]"), names)
    np.testing.assert_allclose(start[0], [0, 1] * 5, atol=1e-6)
    times = np.datetime64("2023-12-31T23:59:59", "s") + np.arange(3)
    hour, *_, month = np.split(calendar_features(times, names), 5, axis=1)
    assert np.abs(np.diff(hour, axis=0)).max() < 1e-3  # midnight is no jump
    assert abs(np.hypot(*month[0]) - 1) < 1e-6
    noon = calendar_features(np.array(["2024-01-04T12:00"], "datetime64[s]"), ["hour", "weekday"])
    np.testing.assert_allclose(noon[0], [0, -1, np.sin(6 * np.pi / 7), np.cos(6 * np.pi / 7)], atol=1e-6)


def test_times_of_an_array_are_checked() -> None:
    with pytest.raises(OffClock, match="finer than a second"):
        parse_times(np.array(["2020-01-01T00:00:00.5"], "datetime64[ms]"))
    with pytest.raises(OffClock, match="the time is missing"):
        parse_times(np.array(["NaT"], "datetime64[s]"))


def test_samples_are_the_same_every_time() -> None:
    sine, sun = open_series("sample:sine"), open_series("sample:sunspots")
    assert sine.points == 1000 and sine.hash == open_series("sample:sine").hash
    noise = sine.series[0].values[:, 0] - np.sin(0.01 * sine.series[0].times)
    assert abs(noise.std() - 0.2) < 0.01
    assert sun.points == 309 and sun.clock == Clock("year") and sun.series[0].values[257, 0] == 190.2


def test_years_above_a_wide_file_are_its_header_once_they_are_named(tmp_path: Path) -> None:
    found = opened(tmp_path / "a.csv", "name,1980,1981,1982", "a,1,2,3", "b,4,5,6", layout="wide", series="name")
    assert [one.name for one in found.series] == ["a", "b"]


def test_a_column_without_a_name_is_an_index(tmp_path: Path) -> None:
    found = opened(tmp_path / "a.csv", ",date,value", "0,2024-01-01,5", "1,2024-01-02,6", "2,2024-01-03,7")
    assert found.targets == ["value"] and found.facts.left_out == ("(no name)",)


def test_numbers_have_no_season_and_a_step_without_noise(tmp_path: Path) -> None:
    clocks = [
        opened(tmp_path / "a.csv", "time,y", *(f"{first + n / 10:.1f},{n}" for n in range(count)), time="time").clock
        for first, count in ((0, 100), (0, 12), (1000, 30))
    ]
    assert clocks == [Clock("number", 0.1)] * 3 and clocks[0].seasons == []  # type: ignore[union-attr]
