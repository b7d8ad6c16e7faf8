"""The history of a series and the forecasts made from it, for `explain`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor

from seqloom.core.errors import unknown
from seqloom.core.instance import Instance, Output, repeat
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json, Row
from seqloom.tasks.forecasting.predictions import shown_times
from seqloom.tasks.forecasting.windows import SeriesWindows, Windows

_TENSORS = ("inputs", "targets", "context", "context_mask")


def instance(task: Any, model: SequenceModel, row: Row, target: str | None) -> Instance:
    """The forecast after the end of a series, in scaled units; `target`: the variable, by default the first. Forecasts
    that are fed back depend on the history too: their share is in it."""
    c, rows, names = task.config, row["rows"](task.scale), task.scale.targets
    number, end = _variable(names, target), len(rows.values[0])
    windows = SeriesWindows(rows, task.layout, c.context, c.horizon, c.window_scale, c.horizon)
    whole = task.forecaster.cut(windows, (np.zeros(1, int), np.array([end])))
    batch = _only(whole, number if task.apart else 0).to(model.device)

    def read(model: SequenceModel, copies: int) -> Tensor:
        found: Tensor = task.forecaster.point(model, _copied(batch, copies), windows)
        return found[..., 0 if task.apart else number, None]

    times = shown_times(rows.times[0][max(0, end - c.context) :], task.scale.frequency)
    after = shown_times(rows.future_times(0, c.horizon), task.scale.frequency)
    outputs = tuple(Output(f"{names[number]}, {time}", 0, False) for time in after)
    return Instance("forecasting", tuple(map(str, times)), outputs, read, lambda _: "value", unit="value")


def _variable(names: Sequence[str], wanted: str | None) -> int:
    if wanted is not None and wanted not in names:
        raise unknown("variable", wanted, names)
    return 0 if wanted is None else list(names).index(wanted)


def _copied(batch: Windows, copies: int) -> Windows:
    found: Json = {
        name: repeat(value, copies) for name in _TENSORS if isinstance(value := getattr(batch, name), Tensor)
    }
    return replace(batch, **found, before=None)


def _only(batch: Windows, row: int) -> Windows:
    """One row; a history shorter than the context without its padding."""
    found: Json = {name: value[row : row + 1] for name in _TENSORS if isinstance(value := getattr(batch, name), Tensor)}
    if (mask := found.pop("context_mask", None)) is not None:
        found["context"] = found["context"][:, : int(mask.sum())]
    return replace(batch, **found, context_mask=None, before=None)
