"""Opening a table of series: which layout it has, and the columns that nobody named.

The time column is found by its name, or because it is the only column whose cells are dates; times may be split over
columns (year, month, day, ...). The column that names the series is found by its name or because it holds texts, if
times repeat or go back in the file but increase within each of its values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from seqloom.core.choice import Choice
from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.data.files import check_file, suffix
from seqloom.data.role_names import flag
from seqloom.data.rows import find_delimiter, read_fields, read_jsonl
from seqloom.data.samples import find_sample
from seqloom.data.shapes.series.blocks import Block, csv_blocks, json_blocks, parquet_blocks
from seqloom.data.shapes.series.cells import is_missing, is_number
from seqloom.data.shapes.series.dates import PARTS, Ambiguous, find_order, joined, parse_ordered, split_columns
from seqloom.data.shapes.series.options import Options
from seqloom.data.shapes.series.spikes import check_spikes
from seqloom.data.shapes.series.table import BY_LINE, Table, listed, read_long
from seqloom.data.shapes.series.times import OffClock, parse_times
from seqloom.data.shapes.series.wide import looks_wide, read_wide

WHEN = (
    "time", "date", "datetime", "timestamp", "ds", "date_time", "时间", "日期", "时间戳", "日期时间",
    "month", "year", "week", "day", "年月", "月份", "年份",
)  # fmt: skip
SERIES = (
    "series", "unique_id", "series_id", "id", "item_id", "item", "store", "store_id", "shop", "sku", "product", "name",
    "symbol", "ticker", "station", "sensor", "序列", "编号", "名称", "门店", "商品", "站点",
)  # fmt: skip
_FIRST = 100  # lines that tell the layout
_MANY = 100_000  # lines that tell whether times repeat
_DATES = 1_000  # cells that tell whether a column holds dates

Blocks = Callable[[], Iterator[Block]]


def read_table(spec: str, data: Options) -> Table:
    """The table, with the roles of its columns as given or found."""
    data = resolved(spec, data)
    path, separator = _file(spec)
    if data.layout == "wide":
        assert path is not None
        table = read_wide(spec, read_fields(path, separator), data)
    else:
        table = read_long(spec, _blocks(spec, path, separator), data, separator)
    check_spikes(table)
    return table


def resolved(spec: str, data: Options) -> Options:
    """The options with what the file shows."""
    found = {choice.path.removeprefix("data."): choice.value for choice in find_roles(spec, data)}
    return data.model_copy(update=found)


def find_roles(spec: str, data: Options) -> list[Choice]:
    """Layout, time column, order of day and month, and series column, as far as they are not given."""
    path, separator = _file(spec)
    if data.layout == "wide":
        if not separator:
            raise UserError(f"{spec}: data.layout=wide, one line per series, is for CSV and TSV files")
        return []
    roles = (data.time, data.targets, data.past, data.known)
    if data.layout == "auto" and separator and path and not any(roles):
        rows = [fields for _, fields in islice(read_fields(path, separator), _FIRST)]
        if not _named(rows[0] if rows else [], WHEN) and looks_wide(rows):
            reason = "every line is a name followed by numbers"
            return [Choice("data.layout", "wide", reason)]
    return list(_long_roles(spec, _peek(spec, _blocks(spec, path, separator)()), data))


def first_cells(spec: str) -> Json:
    """The first lines of a long table, column by column."""
    return _peek(spec, _blocks(spec, *_file(spec))())


def _peek(spec: str, blocks: Iterator[Block]) -> Json:
    """The first lines: many of columns that may be times or names of series, some of the others."""
    first = next(blocks, None)
    if first is None:
        raise UserError(f"{spec}: contains no rows")
    known = {*WHEN, *SERIES, *(name for names in PARTS for name in names)}
    wanted = [name for name, cells in first[1].items() if name.strip().lower() in known or not is_number(cells[0])]
    count, parts = len(first[0]), {name: [first[1][name]] for name in wanted}
    for lines, block in blocks:
        for name in wanted:
            parts[name].append(block[name])
        count += len(lines)
        if count >= _MANY:
            break
    return first[1] | {name: _joined(found) for name, found in parts.items()}


def _joined(parts: Sequence[Any]) -> Any:
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else [cell for part in parts for cell in part]


def _long_roles(spec: str, cells: Json, data: Options) -> Iterator[Choice]:
    taken = {*listed(data.targets), *listed(data.past), *listed(data.known), data.series}
    there = [name for name in cells if name not in taken]
    time = data.time
    if not time and (found := _find_time(spec, cells, there)):
        time = found.value
        yield found
    if not time or time == BY_LINE:
        return
    columns = [time] if time in cells else listed(time)
    if any(column not in cells for column in columns):
        return  # refused when it is read
    times, order = _times([cells[column] for column in columns], data.dayfirst)
    if data.dayfirst is None and order in ("day", "month"):
        yield Choice("data.dayfirst", order == "day", f"only with the {order} first are all cells of {time} dates")
    if not data.series and times is not None:
        others = [name for name in there if name not in columns]
        yield from _find_series(spec, {name: cells[name] for name in others}, times)


def _find_time(spec: str, cells: Json, there: Sequence[str]) -> Choice | None:
    parts = split_columns(there)
    whole = _named(there, WHEN[: WHEN.index("month")])
    if parts and not whole:
        return Choice(
            "data.time", ",".join(parts), f"times are split over {' and '.join((', '.join(parts[:-1]), parts[-1]))}"
        )
    if name := whole or _named(there, WHEN):
        return Choice("data.time", name, f"a column called {name}")
    dates = [name for name in there if name and _increases(cells[name])]
    if len(dates) > 1:
        raise UserError(f"{spec}: {' and '.join(dates)} both hold dates; set {flag('time', dates[0])}, or the other")
    return Choice("data.time", dates[0], f"{dates[0]} is the only column of dates") if dates else None


def _find_series(spec: str, cells: Json, times: np.ndarray) -> Iterator[Choice]:
    restart = bool((times[1:] <= times[:-1]).any())
    named = [name for name in cells if name.strip().lower() in SERIES]
    if not restart:
        strong = [name for name in named if name.strip().lower() in SERIES[:3] and _are_texts(cells[name])]
        yield from (Choice("data.series", name, f"a column called {name}") for name in strong[:1])
        return
    tried = [name for name in cells if name in named or _are_texts(cells[name])]
    fitting = {name: codes for name in tried if (codes := _fitting(cells[name], times)) is not None}
    by_name = [name for name in named if name in fitting]
    by_text = [name for name in fitting if name not in by_name]
    found = by_name if len(by_name) == 1 else [*by_name, *by_text]
    ways = {fitting[name].tobytes() for name in found}
    if len(ways) > 1:
        raise UserError(
            f"{spec}: times repeat, and {' and '.join(found)} may both name the series; set "
            f"{flag('series', found[0])}, "
            "or another"
        )
    if found:
        called = f"a column called {found[0]}" if found[0] in by_name else f"{found[0]} has texts"
        yield Choice("data.series", found[0], f"{called}, and times increase within each of its values only")


def _fitting(cells: Sequence[Any], times: np.ndarray) -> np.ndarray | None:
    """The index of each cell among the distinct ones, if times increase within each of several."""
    texts = [str(cell) for cell in cells]
    codes = {text: n for n, text in enumerate(dict.fromkeys(texts))}
    which = np.array([codes[text] for text in texts])
    order = np.argsort(which, kind="stable")
    inside = which[order][1:] == which[order][:-1]
    back = times[order][1:] <= times[order][:-1]
    return which if 1 < len(codes) < len(texts) and not (inside & back).any() else None


def _times(cells: Sequence[Sequence[Any]], dayfirst: bool | None) -> tuple[np.ndarray | None, str | None]:
    """The times of the first block, None if they are no times, which is refused when all is read; and their order."""
    try:
        if len(cells) > 1:
            return joined(cells), None
        try:
            return parse_times(cells[0])[0], None
        except OffClock:
            order = find_order(cells[0], dayfirst)
            return (parse_ordered(cells[0], order), order) if order else (None, None)
    except (OffClock, Ambiguous):
        return None, None


def _increases(cells: Sequence[Any]) -> bool:
    """Whether these are dates that mostly increase."""
    cells = cells[:_DATES]
    if any(is_missing(cell) or is_number(cell) for cell in cells[:1]) or not _are_texts_or_dates(cells):
        return False
    try:
        order = find_order(cells, True)
        times = parse_ordered(cells, order) if order else None
    except (OffClock, Ambiguous):
        return False
    return times is not None and (len(times) < 2 or bool((times[1:] >= times[:-1]).mean() > 0.5))


def _are_texts(cells: Sequence[Any]) -> bool:
    value = next((cell for cell in cells if not is_missing(cell)), None)
    return isinstance(value, str) and not is_number(value)


def _are_texts_or_dates(cells: Any) -> bool:
    return (isinstance(cells, np.ndarray) and cells.dtype.kind == "M") or _are_texts(cells) or hasattr(cells[0], "year")


def _named(there: Sequence[str], names: Sequence[str]) -> str | None:
    """The column with the first of these names, in upper or lower case."""
    lower = {name.strip().lower(): name for name in reversed(there)}
    return next((lower[name] for name in names if name in lower), None)


def _file(spec: str) -> tuple[Path | None, str]:
    """The file, unless it is a sample, and the separator of its columns, if it is a table of text."""
    if spec.startswith("sample:"):
        return None, ""
    path = Path(spec)
    check_file(path)
    if path.is_dir():
        raise UserError(f"{path}: is a folder; give one file: CSV, TSV, JSONL or parquet")
    kind = suffix(path)
    if kind not in (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".parquet"):
        raise UserError(f"{path}: unknown format; give series as CSV, TSV, JSONL or parquet")
    return path, "\t" if kind == ".tsv" else find_delimiter(path) if kind in (".csv", ".txt") else ""


def _blocks(spec: str, path: Path | None, separator: str) -> Blocks:
    if path is None:
        return lambda: json_blocks(spec, enumerate(find_sample(spec, "series").read(), 1))
    if separator:
        return lambda: csv_blocks(path, separator)
    if suffix(path) == ".parquet":
        return lambda: parquet_blocks(path)
    return lambda: json_blocks(spec, read_jsonl(path))


def roles_of(spec: str, given: Mapping[str, object]) -> list[Choice]:
    """What is found in a file beside the options that the user gave; mistakes in those are reported elsewhere."""
    try:
        return find_roles(spec, Options.model_validate({"train": spec, **given}))
    except ValidationError:
        return []
