"""Rows of predictions as the columns of a table."""

from __future__ import annotations

from seqloom.core.rows import Row

ACTUAL = "_actual"  # ending of a column of the data that has the name of a predicted one


def flat(row: Row) -> Row:
    """An object as one column for each of its keys, in sorted order: `probability_yes` of `probabilities`."""
    found: Row = {}
    for name, value in row.items():
        if isinstance(value, dict):
            one = f"{name.removesuffix('ies')}y" if name.endswith("ies") else name
            found |= {_free(f"{one}_{key}", row): part for key, part in sorted(value.items())}
        else:
            found[name] = value
    return found


def _free(name: str, row: Row) -> str:
    while name in row:
        name += "_"
    return name
