"""Files as people have them: roles of columns, layouts, dates, numbers and separators are found without options."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_series import NAN, config, hours, opened, same, write
from test_series_parts import parts_of

from seqloom.core.choice import Choice
from seqloom.core.errors import UserError
from seqloom.data.rows import find_delimiter, read_csv
from seqloom.data.shapes.series import SHAPE, blocks
from seqloom.data.shapes.series.clock import Clock
from seqloom.data.shapes.series.reading import open_series
from seqloom.data.shapes.series.scale import SeriesScale
from seqloom.data.shapes.series.split import check_no_leak


def chosen(path: Path, *lines: str, **given: Any) -> dict[str, Any]:
    """The roles found, which must give the same data when they are typed."""
    spec = str(write(path, *lines))
    found = SHAPE.roles(spec, given)
    assert all(choice.path.startswith("data.") and choice.reason for choice in found)
    typed = {choice.path.removeprefix("data."): choice.value for choice in found}
    assert SHAPE.roles(spec, given | typed) == []
    assert open_series(spec, config(spec, **given, **typed)).hash == open_series(spec, config(spec, **given)).hash
    return typed


DAYS = [f"2020-01-{day:02}" for day in range(1, 5)]


@pytest.mark.parametrize("name", ["time", "Date", "timestamp", "ds", "时间", "日期"])
def test_a_time_column_is_known_by_its_name(tmp_path: Path, name: str) -> None:
    assert chosen(tmp_path / "a.csv", f"y,{name}", *(f"{n},{day}" for n, day in enumerate(DAYS))) == {"time": name}


def test_a_time_column_is_known_by_its_dates(tmp_path: Path) -> None:
    lines = ["city,Messzeitpunkt,y", *(f"Rom,{day},{n}" for n, day in enumerate(DAYS))]
    assert chosen(tmp_path / "a.csv", *lines) == {"time": "Messzeitpunkt"}
    assert SHAPE.roles("sample:sunspots", {}) == [Choice("data.time", "year", "a column called year")]


@pytest.mark.parametrize(
    ("header", "wanted"),
    [("ds,unique_id,y", "unique_id"), ("date,store,y", "store"), ("date,town,y", "town"), ("日期,序列,y", "序列")],
)
def test_a_series_column_is_known_by_its_name_or_because_times_restart_within_it(
    tmp_path: Path, header: str, wanted: str
) -> None:
    lines = [f"{day},{name},{n}" for name in ("a", "b") for n, day in enumerate(DAYS)]
    time = header.split(",")[0]
    assert chosen(tmp_path / "a.csv", header, *lines) == {"time": time, "series": wanted}
    assert chosen(tmp_path / "a.csv", header, *sorted(lines)) == {"time": time, "series": wanted}


def test_a_number_names_series_only_in_a_column_that_is_called_so(tmp_path: Path) -> None:
    lines = [f"{day},{shop},{n}" for shop in (1, 2) for n, day in enumerate(DAYS)]
    assert chosen(tmp_path / "a.csv", "date,store,y", *lines)["series"] == "store"
    with pytest.raises(UserError, match="comes after"):
        opened(tmp_path / "a.csv", "date,x,y", *lines)
    one = [f"{day},{n},{n}" for n, day in enumerate(DAYS)]
    assert chosen(tmp_path / "a.csv", "date,id,y", *one) == {"time": "date"}


def test_two_columns_that_name_the_same_series_are_no_question(tmp_path: Path) -> None:
    lines = [f"{day},{name},{name.upper()},{n}" for name in ("a", "b") for n, day in enumerate(DAYS)]
    assert chosen(tmp_path / "a.csv", "date,town,label,y", *lines)["series"] == "town"


def test_times_may_restart_after_many_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 16)
    lines = [f'"{time}",{name},{n}' for name in "ab" for n, time in enumerate(hours(50))]
    assert chosen(tmp_path / "a.csv", "time,town,y", *lines)["series"] == "town"


@pytest.mark.parametrize(
    "lines",
    [
        ["V1,V2,V3,V4,V5", "H1,1,2,3,4", "H2,4,5,,"],
        ["a,1,2,3", "b,4,5", "c,6"],
        ["name,d_1,d_2,d_3", "x,1,2,3", "y,4,5,6"],
        ['"V1","V2","V3","V4"', '"H1","1","2","3"'],
    ],
)
def test_a_wide_file_is_recognised(tmp_path: Path, lines: list[str]) -> None:
    assert chosen(tmp_path / "a.csv", *lines) == {"layout": "wide"}
    assert opened(tmp_path / "a.csv").targets == ["value"]


@pytest.mark.parametrize(
    "lines",
    [
        ["city,a,b,c", "Rome,1,2,3", "Oslo,4,5,6"],
        ["x,V1,V2,V3", "2020-01-01,1,2,3", "2020-01-02,4,5,6"],
        ["time,V1,V2,V3", "1,1,2,3", "2,4,5,6"],
        ["id,V1,V2,V3", "a,1,2,x", "b,4,5,6"],
    ],
)
def test_a_long_file_is_not_taken_for_a_wide_one(tmp_path: Path, lines: list[str]) -> None:
    path = str(write(tmp_path / "a.csv", *lines))
    assert "layout" not in {choice.path.removeprefix("data.") for choice in SHAPE.roles(path, {})}


@pytest.mark.parametrize(
    ("names", "cells", "clock"),
    [
        ("year,month,day,hour", ["2020,12,31,23", "2021,1,1,0", "2021,1,1,1"], Clock("hour")),
        ("Year,Month,Day", ["2020,12,30", "2020,12,31", "2021,1,1"], Clock("day")),
        ("year,month", ["2020,11", "2020,12", "2021,1"], Clock("month")),
        ("年,月,日,时,分", ["2020,12,31,23,45", "2021,1,1,0,0", "2021,1,1,0,15"], Clock("minute", 15)),
    ],
)
def test_times_split_over_columns_are_joined(tmp_path: Path, names: str, cells: list[str], clock: Clock) -> None:
    found = chosen(tmp_path / "a.csv", f"{names},y", *(f"{cell},{n}" for n, cell in enumerate(cells)))
    assert found == {"time": names}
    source = opened(tmp_path / "a.csv")
    assert source.clock == clock and source.targets == ["y"] and str(source.series[0].times[1])[:4] in ("2020", "2021")
    with pytest.raises(UserError, match=r"a.csv:3: year, month, day: 2020, 13, 1 is not a time"):
        opened(tmp_path / "a.csv", "year,month,day,y", "2020,12,1,0", "2020,13,1,1")


@pytest.mark.parametrize(
    ("cells", "first", "clock"),
    [
        (["30/12/2019", "31/12/2019", "01/01/2020"], "2019-12-30", Clock("day")),
        (["12/30/2019", "12/31/2019", "01/01/2020"], "2019-12-30", Clock("day")),
        ([f"{n:02}.12.2019" for n in range(1, 14)], "2019-12-01", Clock("day")),
        (["2020/1/3", "2020/1/4", "2020/1/5"], "2020-01-03", Clock("day")),
        (["2020-1-3 9:05", "2020-1-3 9:10", "2020-1-3 9:15"], "2020-01-03T09:05", Clock("minute", 5)),
        (["1/13/2020 11:00 PM", "1/14/2020 12:00 AM", "1/14/2020 1:00 AM"], "2020-01-13T23", Clock("hour")),
        (["2020年1月3日 5时", "2020年1月3日 6时", "2020年1月3日 7时"], "2020-01-03T05", Clock("hour")),
        (["2020年1月", "2020年2月", "2020年3月"], "2020-01-01", Clock("month")),
        (["20201230", "20201231", "20210101"], "2020-12-30", Clock("day")),
        (["202011", "202012", "202101"], "2020-11-01", Clock("month")),
    ],
    ids=str,
)  # fmt: skip
def test_dates_in_other_orders_are_read_if_one_shows_the_order(
    tmp_path: Path, cells: list[str], first: str, clock: Clock
) -> None:
    lines = [f"{cell},{n}" for n, cell in enumerate(cells)]
    found = chosen(tmp_path / "a.csv", "date,y", *lines)
    source = opened(tmp_path / "a.csv")
    assert source.clock == clock and str(source.series[0].times[0]).startswith(first)
    assert found.get("dayfirst") == {"30/12": True, "12/30": False, "01.12": True, "1/13/": False}.get(cells[0][:5])


def test_an_option_decides_between_day_and_month(tmp_path: Path) -> None:
    lines = ["date,y", *(f"{n:02}/05/2020,{n}" for n in range(1, 9))]
    assert opened(tmp_path / "a.csv", *lines, dayfirst=True).clock == Clock("day")
    assert opened(tmp_path / "a.csv", *lines, dayfirst=False).clock == Clock("month")


def test_the_proof_of_an_order_may_come_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 4)
    days = [np.datetime64("2020-05-01") + n for n in range(31)]
    lines = [f'"{str(day)[8:]}/{str(day)[5:7]}/2020",{n}' for n, day in enumerate(days)]
    same(opened(tmp_path / "a.csv", "date,y", *lines).series[0].times, np.array(days, "datetime64[s]"))


def test_numbers_that_only_look_like_dates_stay_numbers(tmp_path: Path) -> None:
    numbers = opened(tmp_path / "a.csv", "time,y", *(f"{20200128 + n},{n}" for n in range(9)))
    assert numbers.clock == Clock("number")
    assert opened(tmp_path / "a.csv", "t,y", *(f"{200101 + n},{n}" for n in range(9)), time="t").clock == Clock(
        "number"
    )


@pytest.mark.parametrize(
    ("suffix", "lines", "wanted"),
    [
        (".csv", ["time,y", '1,"1,234.5"', "2,7", '3,"-12,345"'], [1234.5, 7, -12345]),
        (".csv", ["time,y", "1,7", '2,"1,234"', "3,"], [7, 1234, NAN]),
        (".csv", ["time;y", "1;1.234,5", "2;0,25", "3;"], [1234.5, 0.25, NAN]),
        (".csv", ["time;y;x", "1;1,500;0,5", "2;2,250;1,5", "3;7;2"], [1.5, 2.25, 7]),
        (".tsv", ["time\ty", "1\t3,5", "2\t4", "3\tNA"], [3.5, 4, NAN]),
    ],
)
def test_numbers_with_separators_are_read_if_the_file_shows_which(
    tmp_path: Path, suffix: str, lines: list[str], wanted: list[float]
) -> None:
    same(opened(tmp_path / f"a{suffix}", *lines).series[0].values[:, 0], wanted)


def test_a_text_that_begins_like_a_number_is_left_out_as_before(tmp_path: Path) -> None:
    source = opened(tmp_path / "a.csv", "time;codes;y", "1;1,2;5", "2;x;6")
    assert source.targets == ["y"] and source.facts.left_out == ("codes",)


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (["a;b", "1;2,5"], ";"),
        (["a;b,c", "1;2", "3;4"], ";"),
        (['"a;1";b', '"x,y";2', '"u;v";3'], ";"),
        (["a\tb", "1\t2"], "\t"),
        (["a,b", "1;2,3;4"], ","),
        (["text", "one; two", "three"], ","),
        (["text", "one; two", "three; four"], ","),
        (["a,b;c", "1,2;3"], ","),
        (['a,b', '"1;2","x;\n;y"'], ","),
        (["a;b"], ","),
        ([], ","),
    ],
)  # fmt: skip
def test_the_separator_is_found_from_the_first_lines_and_a_comma_file_stays_one(
    tmp_path: Path, lines: list[str], wanted: str
) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    assert find_delimiter(path) == wanted


def test_every_shape_of_data_reads_semicolons(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "text;label", '"one; two, three";1', "four;2")
    rows = [row for _, row in read_csv(path)]
    assert rows == [{"text": "one; two, three", "label": "1"}, {"text": "four", "label": "2"}]


def test_what_the_first_file_shows_holds_for_the_others(tmp_path: Path) -> None:
    """The second has neither two series nor a date that shows its order."""
    days = [f"{day:02}/12/2019" for day in range(10, 32)]
    train = str(
        write(tmp_path / "a.csv", "date,town,y", *(f"{day},{town},{n}" for town in "ab" for n, day in enumerate(days)))
    )
    test = str(write(tmp_path / "b.csv", "date,town,y", "01/01/2020,b,1", "02/01/2020,b,2"))
    rows, _ = parts_of(train, test=test)
    assert rows["test"].names == ["b"] and rows["test"].begins == [len(days)]


def weather(path: Path, count: int = 60, start: str = "2024-01-01T00", winds: str = "NESW") -> str:
    lines = [f"{time},{n % 7},{winds[n % len(winds)]}" for n, time in enumerate(hours(count, start))]
    return str(write(path, "time,y,wind", *lines))


def test_texts_are_covariates_with_a_column_for_each_level_of_the_training_part(tmp_path: Path) -> None:
    lines = Path(weather(tmp_path / "a.csv")).read_text().splitlines()
    lines[58:] = [line[:-1] + "X" for line in lines[58:]]  # only in the validation part
    lines[3] = lines[3][:-1]
    spec = str(write(tmp_path / "a.csv", *lines))
    rows, scale = parts_of(spec, past="wind", scale="none")
    names = ["wind=E", "wind=N", "wind=S", "wind=W"]
    assert scale.past == names and scale.levels == {"wind": ["E", "N", "S", "W"]} and scale.targets == ["y"]
    same(rows["train"].past[0][:3], [[0, 1, 0, 0], [1, 0, 0, 0], [NAN] * 4])
    assert (rows["valid"].past[0][57:] == 0).all() and "wind=X" not in rows["valid"].origin.columns
    known, scale = parts_of(spec, known="wind", scale="none", calendar="hour")
    assert scale.known == [*names, "hour_sin", "hour_cos"] and known["train"].known[0].shape == (60, 6)
    assert check_no_leak(open_series(spec, config(spec, past="wind")), config(spec, past="wind")) == []


def test_texts_of_another_file_are_those_of_training(tmp_path: Path) -> None:
    spec, other = weather(tmp_path / "a.csv"), weather(tmp_path / "b.csv", 12, "2024-01-03T12", "WX")
    rows, scale = parts_of(spec, past="wind", scale="none", test=other)
    same(rows["test"].past[0][60:62], [[0, 0, 0, 1], [0, 0, 0, 0]])
    for name, content in scale.files().items():
        (tmp_path / name).write_bytes(content)
    again = SeriesScale.load(tmp_path)
    assert again.levels == scale.levels and again.hash == scale.hash
    [row] = SHAPE.sources(other, config(spec, past="wind"))
    same(row["rows"](again).past[0][:2], [[0, 0, 0, 1], [0, 0, 0, 0]])
    numbers = weather(tmp_path / "c.csv", 12, "2024-01-03T12", "12")
    with pytest.raises(UserError, match="column 'wind' must have texts, as in training, but is a column of numbers"):
        next(SHAPE.sources(numbers, config(spec, past="wind")))["rows"](again)


def test_a_column_of_too_many_texts_is_refused(tmp_path: Path) -> None:
    lines = [f"{n},{n % 5},note{n}" for n in range(100)]
    with pytest.raises(UserError, match=r"column 'note' has 90 different texts in the training set, but at most 50"):
        parts_of(str(write(tmp_path / "a.csv", "time,y,note", *lines)), past="note")


def test_older_settings_and_scales_are_read(tmp_path: Path) -> None:
    assert config("x", layout="long").layout == "long" and config("x").layout == "auto"
    scale = SeriesScale({"targets": ["y"]}, {"targets": ([0.0], [1.0])})
    assert not {"levels", "seasons"} & json.loads(scale.files()["series.json"]).keys()
