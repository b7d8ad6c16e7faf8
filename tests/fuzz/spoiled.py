"""What spoils data by its content: columns, cells and rows of tables, arrays, lines, values of JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from fuzz.case import Wanted, binary, text
from fuzz.damage import FILES, Damage, Spoiled, content, emptied, file_of
from fuzz.sources import Draw, Source, npz
from fuzz.tables import UTF8, Cell, Table

CELLS: tuple[Cell, ...] = (
    *("", " ", "\x00", "\x1b[2J\x07", "=1+1", "\ud800", "\u202e\u200b\ufeff", "a" * 5000, "9" * 5000, "\u2028", "\t"),
    *("-1", "1e308", "1e-320", "nan", "NaN", "inf", "-Infinity", "1e999", "1+2j", "0x10", "1_000", "1,5", "٣", "½"),
    *("true", "None", "null", '"', "'", "\\", "\r", "a\rb", "a\nb", "{}", "[1]", "𝒳" * 50, "e\u0301" * 300),
    *("<unk>", "</s>", "2020-13-45", "99999-01-01"),
)
VALUES: tuple[Cell, ...] = (None, True, 0, -1, 1 << 70, 1.5, math.nan, math.inf, [], {}, ["a", 1], [[["a"]]], {"a": {}})
NO_NUMBERS = ("1+2j", "1e999", "inf", "-Infinity", "a" * 5000, "2020-13-45", "½", "{}")  # not in a column of values


def _column(draw: Draw, source: Source) -> tuple[Table, int, str] | None:
    """A column that has a role."""
    if source.table is None or not source.roles:
        return None
    role, name = draw(st.sampled_from(source.roles))
    return source.table, source.table.at(name), role


def dropped(draw: Draw, source: Source) -> Spoiled | None:
    if not (found := _column(draw, source)):
        return None
    table, column, role = found
    return source.rewritten(table.without(column)), "fail" if source.columns else "either", f"no column for {role}"


def doubled(draw: Draw, source: Source) -> Spoiled | None:
    """A header with one name twice. A JSON object cannot have it, and the writer of parquet would refuse."""
    if not (found := _column(draw, source)) or source.kind.startswith("json") or source.kind == "parquet":
        return None
    table, column, role = found
    cells = tuple((*row, "other") for row in table.rows)
    twice = Table((*table.header, table.header[column]), cells)
    return source.rewritten(twice), "fail" if role != "id" else "either", f"two columns have the name of {role}"


def renamed(draw: Draw, source: Source) -> Spoiled | None:
    if not (found := _column(draw, source)):
        return None
    table, column, role = found
    name = draw(st.sampled_from(["", " ", "\x1b[31m", "x" * 3000, "1", "-", "=", "no such"]))
    return (
        source.rewritten(table.renamed(column, name)),
        "fail" if source.columns else "either",
        f"{role} is called {name[:9]!r}",
    )


def swapped(draw: Draw, source: Source) -> Spoiled | None:
    """Two roles for one column."""
    if len(source.roles) < 2 or not source.table:
        return None
    (first, name), (second, _) = draw(st.permutations(source.roles))[:2]
    roles = tuple((role, name if role == second else old) for role, old in source.roles)
    return replace(source, roles=roles, columns=True), "fail", f"{first} = {second}"


def ragged(draw: Draw, source: Source) -> Spoiled | None:
    if source.table is None or source.kind not in ("csv", "tsv", "crlf.csv"):
        return None
    row = draw(st.integers(1, len(source.table.rows) - 1))
    lines = content(source).decode("utf-8", "surrogatepass").splitlines(keepends=True)
    separator = "\t" if source.kind == "tsv" else ","
    end = "\r\n" if source.kind == "crlf.csv" else "\n"
    line = lines[row].rstrip("\r\n")
    lines[row] = (line + separator + "x" if draw(st.booleans()) else line.rpartition(separator)[0]) + end
    file = binary(source.files[0].path, "".join(lines).encode())
    wide = source.task == "forecasting"  # lines that differ in length may be whole series
    return file_of(source, file), "either" if wide else "fail", f"row {row} has another number of cells"


def unclosed(draw: Draw, source: Source) -> Spoiled | None:
    if source.table is None or source.kind not in ("csv", "crlf.csv"):
        return None
    lines = content(source).decode().split("\n")
    row = draw(st.integers(1, len(source.table.rows) - 1))
    lines[row] = '"' + lines[row]
    return (
        file_of(source, binary(source.files[0].path, "\n".join(lines).encode())),
        "fail",
        f"quote opened in row {row}",
    )


def odd_cell(draw: Draw, source: Source) -> Spoiled | None:
    """An extreme value in one cell."""
    if not (found := _column(draw, source)):
        return None
    table, column, role = found
    row = draw(st.integers(1, len(table.rows) - 1))
    cell = draw(st.sampled_from([*CELLS, *VALUES] if "json" in source.kind or source.kind == "parquet" else CELLS))
    plain = source.kind in ("csv", "tsv", "semicolons.csv", "crlf.csv")
    wanted: Wanted = "either"
    if plain and (cell in ("\x00", "\ud800") or (role == "targets" and cell in NO_NUMBERS)):
        wanted = "fail"
    if plain and role == "label" and cell in ("", " ") and source.task == "classification":
        wanted = "fail"
    return source.rewritten(table.with_cell(row, column, cell)), wanted, f"{role} of row {row} is {str(cell)[:20]!r}"


def odd_column(draw: Draw, source: Source) -> Spoiled | None:
    """One value in the whole column, or a different one in each row."""
    if not (found := _column(draw, source)):
        return None
    table, column, role = found
    cell = draw(st.sampled_from([*CELLS, "EACH", "NUMBERS"]))
    make: dict[str, Callable[[int, Cell], Cell]] = {"EACH": lambda n, _: f"v{n}", "NUMBERS": lambda n, _: n}
    spoiled = table.with_column(column, make.get(str(cell), lambda n, _: cell))
    wanted: Wanted = "fail" if cell == "" and role in ("text", "source", "label") and source.kind in UTF8 else "either"
    return source.rewritten(spoiled), wanted, f"all of {role} is {str(cell)[:20]!r}"


def few_rows(draw: Draw, source: Source) -> Spoiled | None:
    if source.table is None:
        return None
    count = draw(st.sampled_from([0, 1, 2, 3]))
    rows = source.table.rows[:count]
    if count == 3:
        rows = source.table.rows[:1] * 40
    return (
        source.rewritten(replace(source.table, rows=rows)),
        "either" if count else "fail",
        f"{count} rows of {len(rows)}",
    )


def other_order(draw: Draw, source: Source) -> Spoiled | None:
    if source.table is None:
        return None
    rows = list(source.table.rows)
    way = draw(st.sampled_from(["reversed", "twice", "every other", "shuffled"]))
    made = {"reversed": rows[::-1], "twice": rows + rows, "every other": rows[::2], "shuffled": rows[::2] + rows[1::2]}
    return source.rewritten(replace(source.table, rows=tuple(made[way]))), "either", f"rows {way}"


TABLES: tuple[Damage, ...] = (
    dropped, doubled, renamed, swapped, ragged, unclosed, odd_cell, odd_cell, odd_column, few_rows, other_order,
)  # fmt: skip


def odd_arrays(draw: Draw, source: Source) -> Spoiled | None:
    """NPZ files that numpy can read and that make no sense."""
    if source.kind not in ("lengths", "offsets"):
        return None
    flat = source.kind == "offsets"
    label = np.array(["a", "b", "c"] * 10)
    frames = np.linspace(0, 1, 240, dtype=np.float32).reshape((120, 2) if flat else (30, 4, 2))
    index = np.arange(31) * 4 if flat else np.full(30, 4)
    name = "offsets" if flat else "lengths"
    arrays: dict[str, Any] = {"frames": frames, name: index, "label": label}
    spoiled: dict[str, dict[str, Any]] = {
        "negative": {name: -index},
        "too long": {name: index * 100},
        "too few": {name: index[:-3]},
        "descending": {name: index[::-1].copy() if flat else index - 5},
        "fractions": {name: index + 0.5},
        "texts": {name: index.astype(str)},
        "two dimensions": {name: index[:, None]},
        "few labels": {"label": label[:-1]},
        "labels in two dimensions": {"label": np.stack([label, label])},
        "objects": {"label": np.array([{}, None, 1] * 10, dtype=object)},
        "complex": {"frames": frames.astype(np.complex64)},
        "letters": {"frames": frames.astype(str)},
        "nan": {"frames": np.where(frames > 0.5, np.nan, frames)},
        "infinite": {"frames": np.where(frames > 0.5, np.inf, frames)},
        "no frames": {"frames": frames[:0]},
        "no rows": {"frames": frames[:0], name: index[:0], "label": label[:0]},
        "no features": {"frames": frames[..., :0]},
        "a number": {"frames": np.float32(1)},
        "five dimensions": {"frames": frames[None, None, None]},
        "huge numbers": {"frames": frames.astype(np.float64) * 1e300},
        "times": {"frames": np.full(frames.shape, np.datetime64("2020-01-01"))},
    }
    way = draw(st.sampled_from(sorted([*spoiled, "missing"])))
    if way == "missing":
        arrays.pop(draw(st.sampled_from(["frames", "label"])))
    wanted: Wanted = "either" if way == "huge numbers" else "fail"
    arrays |= spoiled.get(way, {})
    if draw(st.booleans()):  # other names, of which the roles are found
        arrays = {{"frames": "X", "label": "y"}.get(old, old): array for old, array in arrays.items()}
    return file_of(source, npz(arrays)), wanted, f"arrays: {way}"


def odd_lines(draw: Draw, source: Source) -> Spoiled | None:
    """CoNLL files: a line of another kind, or columns that are none."""
    if source.kind != "conll":
        return None
    if draw(st.booleans()):
        one, other = draw(st.sampled_from([(1, 1), (0, -1), (99, -1), (1, -99), (2, -1), ("x", "y"), (1, 1.5)]))
        columns = f"words={one},tags={other}"
        return replace(source, columns=True, roles=(("words", str(one)), ("tags", str(other)))), "fail", columns
    lines = content(source).decode().split("\n")
    at = draw(st.integers(1, len(lines) - 2))
    line = draw(
        st.sampled_from(
            [
                "alone",
                "\tO",
                "a\tb\tc\td\te",
                "word\t",
                "-DOCSTART-",
                "#",
                "\x00\tO",
                "a\tB-",
                "a\tI-X",
                "a\t" + "T" * 4000,
            ]
        )
    )
    wanted: Wanted = "fail" if "\x00" in line or (line == "alone") else "either"
    return (
        file_of(source, text(source.files[0].path, "\n".join([*lines[:at], line, *lines[at:]]))),
        wanted,
        f"line {line[:20]!r}",
    )


def odd_json(draw: Draw, source: Source) -> Spoiled | None:
    """Another value somewhere in a JSON file, or in one line of a JSONL file."""
    if source.kind not in ("squad", "jsonl"):
        return None
    lines = content(source).decode("utf-8", "surrogatepass").splitlines()
    at = draw(st.integers(0, len(lines) - 1))
    whole = json.loads(lines[at])
    steps, node = [], whole
    while isinstance(node, dict | list) and node and (not steps or draw(st.integers(0, 3))):
        steps.append(draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node)))))
        parent, node = node, node[steps[-1]]
    value = draw(st.sampled_from([*VALUES, *CELLS, 10**400, "DELETE", "DEEP"]))
    if value == "DELETE":
        parent.pop(steps[-1])
    else:
        parent[steps[-1]] = value
    lines[at] = json.dumps(whole)
    wanted: Wanted = "either"
    if value == "DEEP":
        lines[at], wanted = lines[at].replace('"DEEP"', "[" * 100_000 + "]" * 100_000), "either"
    return file_of(source, text(source.files[0].path, "\n".join(lines))), wanted, f"{steps} is {str(value)[:20]!r}"


SPECIAL: tuple[Damage, ...] = (odd_arrays, odd_arrays, odd_lines, odd_lines, odd_json, odd_json)


def damaged(draw: Draw, source: Source) -> Spoiled:
    special = source.kind in ("lengths", "offsets", "conll", "squad", "jsonl")
    kinds = [FILES, *([TABLES] * 2 if source.table else []), *([SPECIAL] if special else [])]
    for _ in range(12):
        if found := draw(st.sampled_from(draw(st.sampled_from(kinds))))(draw, source):
            return found
    found = emptied(draw, source)
    assert found
    return found
