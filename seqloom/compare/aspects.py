"""Aspects of a model beside its score and its cost: what it makes of a longer past, what of it can be watched."""

from __future__ import annotations

from typing import Any

from seqloom.core.network import SequenceModel
from seqloom.core.taps import Tap
from seqloom.core.task import Task

_NAMES = 6  # taps shown as examples


def loss_by_position(model: SequenceModel, task: Task, rows: Any, length: int) -> dict[str, Any]:
    """`positions`: mean loss by the tokens read so far (None: not for this task); `trained_length` beside it."""
    return {"positions": task.by_position(model, rows, length), "trained_length": length}


def taps(model: SequenceModel) -> dict[str, Any]:
    """How many tensors of the model can be watched by name, and the first of the names."""
    found = [path for path, module in model.named_modules() if isinstance(module, Tap)]
    return {"count": len(found), "names": found[:_NAMES]}
