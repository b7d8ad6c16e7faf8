"""Predictions in the form that the data came in."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from seqloom.core.rows import Row
from seqloom.data.flat import ACTUAL, flat
from seqloom.data.memory.forms import Data, is_frame, package


def like(data: Data, rows: Sequence[Row], beside: bool) -> Any:
    """A data frame or dataset if one came in, else dicts. `beside`: there is one prediction for each row of data, so
    that its own columns come first, as they were; forecasts have rows of their own."""
    rows = [{name: value for name, value in row.items() if name != "line"} for row in rows]
    kind = package(data)
    if kind not in ("pandas", "polars", "datasets"):
        return rows
    rows = [flat(row) for row in rows]
    if not beside or not is_frame(data):
        return _made(kind, rows)
    own = list(data.column_names if kind == "datasets" else data.columns)
    names = list(dict.fromkeys(name for row in rows for name in row))
    moved = {name: name + ACTUAL for name in own if name + ACTUAL in names and name + ACTUAL not in own}
    added = [name for name in names if (name not in own or name in moved) and name not in moved.values()]
    return _joined(data, kind, moved, {name: [row.get(name) for row in rows] for name in added})


def _joined(data: Data, kind: str, moved: dict[str, str], columns: dict[str, list[Any]]) -> Any:
    own: Any = sys.modules[kind]  # whoever made the data has imported it
    if kind == "pandas":
        series = {name: own.Series(values, index=data.index) for name, values in columns.items()}
        return data.rename(columns=moved).assign(**series)
    if kind == "polars":
        return data.rename(moved).with_columns([own.Series(name, v, strict=False) for name, v in columns.items()])
    data = data.rename_columns(moved) if moved else data
    for name, values in columns.items():
        data = data.add_column(name, values)
    return data


def _made(kind: str, rows: list[Row]) -> Any:
    own: Any = sys.modules[kind]
    if kind == "datasets":
        return own.Dataset.from_list(rows)
    return own.DataFrame(rows, **({"infer_schema_length": None} if kind == "polars" else {}))
