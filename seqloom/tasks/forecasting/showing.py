"""Forecasts of some windows beside the actual values, as a report shows them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seqloom.core.rows import Json
from seqloom.data.shapes.series.rows import SeriesRows
from seqloom.tasks.forecasting.predictions import shown_times
from seqloom.tasks.forecasting.windows import SeriesWindows

WINDOWS = 4
_LEAST, _MOST = 24, 200  # points of the history

Origins = tuple[np.ndarray, np.ndarray]  # series and origin of each window


def showcase(
    rows: SeriesRows,
    windows: SeriesWindows,
    origins: Origins,
    forecasts: np.ndarray,
    bands: np.ndarray | None,
    levels: Sequence[float],
) -> Json:
    """`forecasts` (W, H, N) and `bands` (W, H, N, levels), scaled. The windows show the targets in turn."""
    scale = rows.scale
    before = min(windows.context, _MOST, max(_LEAST, 2 * windows.horizon))
    history, actual = scale.undo(windows.history(*origins, before)), scale.undo(windows.future(*origins))
    forecasts = scale.undo(forecasts)
    edges = None
    if bands is not None and len(levels) > 1:
        edges = [scale.undo(bands[..., int(k)]) for k in (np.argmin(levels), np.argmax(levels))]
    series = []
    for n, (number, end) in enumerate(zip(*origins, strict=True)):
        target = n % len(scale.targets)
        one: Json = {
            "name": str(rows.names[number] or ""),
            "target": scale.targets[target],
            "from": str(shown_times(rows.times[number][end : end + 1], scale.frequency)[0]),
            "history": _values(history[n, :, target]),
            "actual": _values(actual[n, :, target]),
            "forecast": _values(forecasts[n, :, target]),
        }
        if edges is not None:
            one |= {side: _values(edge[n, :, target]) for side, edge in zip(("low", "high"), edges, strict=True)}
        series.append(one)
    covered = {} if edges is None else {"covered": round(float(max(levels) - min(levels)), 6)}
    return {"kind": "forecasts", "series": series} | covered


def _values(values: np.ndarray) -> list[float | None]:
    """With six digits; None: missing."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in values.tolist()]
