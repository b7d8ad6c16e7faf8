"""The forms in which data comes from Python, recognised without importing pandas, polars or datasets."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

import numpy as np

from seqloom.core.errors import UserError
from seqloom.core.quoting import quoted

Data: TypeAlias = Any  # a path, or one of the forms below: naming their types would import three packages
Columns = dict[str, Sequence[Any]]

_VALUE, _TIME = "value", "time"  # names of columns that have none


@dataclass(frozen=True)
class Layout:
    """The columns that a shape of data gives to the parts of an example, and to numbers."""

    parts: Sequence[str] = ()  # of an example: ("text", "label")
    words: str | None = None  # the first part is a list of words; the column of a text still to be split into them
    series: bool = False  # numbers are points in time; `parts` are the variables, if they are known


def is_path(data: Data) -> TypeGuard[str | Path]:
    return isinstance(data, str | os.PathLike)


def package(data: Data) -> str:
    """The package that its type comes from."""
    return type(data).__module__.partition(".")[0]


def is_frame(data: Data) -> bool:
    """Whether it is a table with named columns of its own type."""
    kind = package(data)
    return (kind in ("pandas", "polars") and hasattr(data, "columns")) or (
        kind in ("datasets", "pyarrow") and hasattr(data, "column_names")
    )


def to_columns(data: Data, layout: Layout) -> tuple[Columns, dict[str, str]]:
    """Columns by name, and the settings (by path) with which they are read."""
    if is_frame(data):
        return _of_frame(data), {}
    if isinstance(data, Mapping):
        return {str(name): _listed(column) for name, column in data.items()}, {}
    if layout.series and not (isinstance(data, list) and data and isinstance(data[0], Mapping)):
        return _of_numbers(data, layout)
    first, second = sides(data)
    if first and isinstance(first[0], Mapping):
        names = list(dict.fromkeys(str(name) for row in first for name in row))
        return {name: [row.get(name) for row in first] for name in names}, {}
    if not layout.parts:
        raise UserError("data: this task needs named columns; give a list of dicts or a data frame")
    if second is None:
        split = layout.words is None or not (first and isinstance(first[0], str))
        return {layout.parts[0] if split else str(layout.words): first}, {}
    if len(layout.parts) < 2:
        raise UserError("data: pairs, but this task reads single texts; give a list of texts")
    return {layout.parts[0]: first, layout.parts[1]: second}, {}


def sides(data: Data) -> tuple[list[Any], list[Any] | None]:
    """Inputs, and targets if there are any: from `(X, y)`, a list of pairs, or a list of tagged words per sentence."""
    if _is_two(data):
        first, second = (_listed(side) for side in data)
        _check_lengths(first, second)
        return first, second
    rows = _listed(data)
    if rows and all(map(_is_pair, rows)):
        return [row[0] for row in rows], [row[1] for row in rows]
    if rows and all(isinstance(row, list) and row and all(map(_is_pair, row)) for row in rows):
        return [[word for word, _ in row] for row in rows], [[tag for _, tag in row] for row in rows]
    return rows, None


def measurements(data: Data) -> tuple[list[np.ndarray], list[Any] | None] | None:
    """Sequences (time, features), and their labels if given; None if the data is something else."""
    labels: list[Any] | None = None
    if _is_two(data):
        data, labels = data[0], _listed(data[1])
    if isinstance(data, np.ndarray):
        found = list(data) if data.ndim == 3 and np.issubdtype(data.dtype, np.number) else None
    else:
        arrays = isinstance(data, list) and data and all(isinstance(a, np.ndarray) and a.ndim == 2 for a in data)
        found = data if arrays else None
    if found is not None and labels is not None:
        _check_lengths(found, labels)
    return None if found is None else (found, labels)


def guess(data: Data) -> str | None:
    """The task that the form of the data shows; None for a table, whose columns tell."""
    if measurements(data) is not None:
        return "classification"
    if is_frame(data) or isinstance(data, Mapping):
        return None
    first, second = sides(data)
    if not first or isinstance(first[0], Mapping):
        return None
    if second is None:
        return "language_model" if isinstance(first[0], str) else "forecasting"
    if isinstance(second[0], list | tuple | np.ndarray):
        return "tagging"
    texts = all(isinstance(target, str) for target in second)
    return "translation" if texts and 2 * len(set(second)) > len(second) else "classification"


def _of_frame(data: Data) -> Columns:
    kind = package(data)
    if kind == "pandas":
        if _is_timed(data.index) or data.index.name is not None:
            data = data.reset_index(names=str(data.index.name or _TIME))
        names = [str(name) for name in data.columns]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise UserError(f"data: two columns are named {quoted(twice)}; give each its own name")
        return {str(name): _listed(column) for name, column in data.items()}
    if kind == "datasets" and isinstance(data.column_names, dict):
        raise UserError(f"data: several splits; give one of them: {', '.join(data.column_names)}")
    columns = {"polars": "to_dict", "datasets": "to_dict", "pyarrow": "to_pydict"}[kind]
    options = {"as_series": False} if kind == "polars" else {}
    return {str(name): column for name, column in getattr(data, columns)(**options).items()}


def _of_numbers(data: Data, layout: Layout) -> tuple[Columns, dict[str, str]]:
    """Points in order of time; without an index of times they are evenly spaced."""
    index = getattr(data, "index", None) if package(data) == "pandas" else None
    try:
        raw = np.asarray(data.to_numpy() if hasattr(data, "to_numpy") else data)
        if np.iscomplexobj(raw):
            raise UserError("data: complex numbers; forecasting needs real ones")
        values = raw.astype(float)
    except (TypeError, ValueError):
        raise UserError("data: forecasting needs numbers, or a table with a column of times") from None
    if values.ndim not in (1, 2) or not values.size:
        raise UserError(f"data: shape {values.shape}; give (time,) or (time, variables)")
    values = values[:, None] if values.ndim == 1 else values
    width, own = values.shape[1], getattr(data, "name", None) if index is not None else None
    names = list(layout.parts) or [str(own)] * (own is not None)
    names = names or ([_VALUE] if width == 1 else [f"{_VALUE}_{n + 1}" for n in range(width)])
    if len(names) != width:
        raise UserError(f"data: {width} variables, but the run has {len(names)}: {', '.join(names)}")
    columns: Columns = {name: values[:, n].tolist() for n, name in enumerate(names)}
    if index is not None and _is_timed(index):
        return {str(index.name or _TIME): _listed(index)} | columns, {}
    return columns, {"data.time": "line"}


def _is_two(data: Data) -> bool:
    """`(X, y)`, and not a tuple of two texts."""
    return isinstance(data, tuple) and len(data) == 2 and not any(isinstance(side, str) for side in data)


def _is_pair(row: Any) -> bool:
    return isinstance(row, tuple) and len(row) == 2


def _is_timed(index: Any) -> bool:
    return str(getattr(index, "dtype", "")).startswith(("datetime64", "period"))


def _listed(side: Any) -> list[Any]:
    """A column as a list."""
    if _is_timed(side):
        return list(side)  # as times: as numbers they would lose their meaning
    for method in ("tolist", "to_list", "to_pylist"):
        if hasattr(side, method):
            found: list[Any] = getattr(side, method)()
            return found
    if isinstance(side, str | bytes | Mapping) or not hasattr(side, "__iter__"):
        raise UserError(f"data: {type(side).__name__}: give a path, a list, an array, a data frame or a dataset")
    return list(side)


def _check_lengths(first: Sequence[Any], second: Sequence[Any]) -> None:
    if len(first) != len(second):
        raise UserError(f"data: X has {len(first):,} rows, but y has {len(second):,}")
