"""A value so far from all others that these would be lost in rounding, as after a slip of the keyboard (1e30) or in a
column with a special number for what is missing: every model, and repeating the last value, would seem perfect."""

from __future__ import annotations

import numpy as np

from seqloom.core.errors import UserError
from seqloom.core.quoting import short
from seqloom.data.shapes.series.table import Table

FAR = 1e12  # times as far from the median as the next one, on one side of which most values are
_FEWEST = 10  # values that differ from the median


def check_spikes(table: Table) -> None:
    for column, values in zip(table.columns, table.values.T, strict=True):
        if column in table.texts or _jump(values) is None:
            continue
        for series in np.unique(table.series):  # which may be in units of their own
            rows = np.flatnonzero(table.series == series)
            if (limit := _jump(values[rows])) is None:
                continue
            row = rows[(_distances(values[rows]) > limit).argmax()]
            place = f"{table.name}:{table.lines[row]}: {short(column)}={values[row]:g}"
            lost = "so much larger than the others that they would be lost in rounding"
            raise UserError(f"{place} is {lost}; fix it, or leave the cell empty")


def _jump(values: np.ndarray) -> float | None:
    """A distance from the median that most values are within, and all others far beyond; None: there is no such gap."""
    distances = _distances(values)
    found = np.sort(distances[distances > 0])
    if len(found) < _FEWEST:
        return None
    upper = found[len(found) // 2 :]
    with np.errstate(over="ignore"):
        gaps = upper[1:] / upper[:-1]
    return float(upper[gaps.argmax()]) if len(gaps) and gaps.max() > FAR else None


def _distances(values: np.ndarray) -> np.ndarray:
    there = values[~np.isnan(values)]
    return np.nan_to_num(np.abs(values - np.median(there))) if len(there) else np.zeros(len(values))
