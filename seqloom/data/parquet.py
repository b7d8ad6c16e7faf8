"""Parquet files: checked where they are opened, read batch by batch; whatever is wrong with one is one line.

Cells are numbers, texts, dates, or true and false, also dictionary-encoded; lists, objects and bytes count as texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seqloom.core.errors import UserError
from seqloom.core.memory import require
from seqloom.core.quoting import quoted, short
from seqloom.data.files import check_file

ROWS = 1 << 15  # read at once
_WIDEST = 100_000  # columns
_CELL = 16  # bytes of a cell in memory, at least


def parquet_batches(path: Path) -> Iterator[tuple[list[str], Any]]:
    """The names of the columns and a record batch (pyarrow) of some rows, over and over."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise UserError(f"{path}: parquet needs the pyarrow package: pip install 'seqloom[data]'") from None
    check_file(path)
    try:
        with parquet.ParquetFile(path) as file:
            names = _checked(path, file)
            for batch in file.iter_batches(ROWS):
                batch.validate(full=True)
                yield names, batch
    except (UserError, MemoryError):
        raise
    except OSError as error:
        if error.errno is not None:
            raise UserError(f"{path}: {error.strerror or error}") from None
        raise _damaged(path, error) from None
    except Exception as error:  # pyarrow raises a dozen kinds, also those of Python, for bytes that make no sense
        raise _damaged(path, error) from None


def _checked(path: Path, file: Any) -> list[str]:
    names = [str(name) for name in file.schema_arrow.names]
    if len(names) > _WIDEST:
        raise UserError(f"{path}: {len(names):,} columns; at most {_WIDEST:,} are read")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UserError(f"{path}: two columns are named {quoted(twice)}; give each its own name")
    for name in names:
        if any("\ud800" <= character <= "\udfff" for character in name):
            raise UserError(f"{path}: column {quoted(name)}: its name is not valid Unicode")
    rows = file.metadata.num_rows
    if rows < 0:
        raise UserError(f"{path}: damaged parquet file (says that it has {rows:,} rows); write it again")
    size = f"a table of {rows:,} rows and {len(names):,} columns"
    require(_CELL * rows * max(1, len(names)), f"{path}: {size}", "split it, or leave columns out")
    return names


def cells_of(path: Path, name: str, column: Any) -> Any:
    """A column of a batch: numbers and times as an array, all else as a list."""
    from pyarrow import types

    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    try:
        if any(is_(kind) for is_ in (types.is_floating, types.is_integer, types.is_timestamp, types.is_date)):
            return column.to_numpy(zero_copy_only=False)
        if types.is_nested(kind) or types.is_binary(kind) or types.is_large_binary(kind):
            return [quoted(value, 20) if value is not None else None for value in column.to_pylist()]
        return column.to_pylist()
    except Exception as error:
        raise UserError(f"{path}: column {quoted(name)}: its {kind} values cannot be read ({_said(error)})") from None


def _damaged(path: Path, error: Exception) -> UserError:
    return UserError(f"{path}: not a parquet file, or damaged ({_said(error)}); write it again")


def _said(error: Exception) -> str:
    return short(str(error).split("\n")[0].rstrip(". "), 120) or type(error).__name__
