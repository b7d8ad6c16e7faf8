"""Numbers for the page: rounded; large arrays as 16-bit integers in base64, and very large ones in blocks."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np

from seqloom.core.rows import Json

PLAIN = 5_000  # values of an array that is written as numbers
MOST = 1_000_000  # cells of one map; a larger one is shown in blocks, each by its strongest value
DIGITS = 4
_STEPS = 32_767  # of a 16-bit integer


def packed(values: np.ndarray, most: int = MOST) -> Json:
    """`step`: how many rows and columns a cell of the last two axes stands for."""
    values = np.nan_to_num(np.asarray(values, np.float64), posinf=0.0, neginf=0.0)
    step = 1
    if values.ndim >= 2:
        step = max(1, math.ceil(math.sqrt(values.size / most)))
        values = in_blocks(values, step)
    found: Json = {"shape": list(values.shape), "step": step}
    if values.size <= PLAIN:
        return found | {"values": [rounded(value) for value in values.ravel().tolist()]}
    largest = float(np.abs(values).max()) or 1.0
    steps = np.rint(values / largest * _STEPS).astype("<i2")
    return found | {"scale": largest / _STEPS, "data": base64.b64encode(steps.tobytes()).decode()}


def in_blocks(values: np.ndarray, step: int) -> np.ndarray:
    """Of each block of the last two axes, the value that is farthest from zero."""
    if step == 1:
        return values
    *before, rows, columns = values.shape
    down, across = math.ceil(rows / step), math.ceil(columns / step)
    padded = np.zeros((*before, down * step, across * step))
    padded[..., :rows, :columns] = values
    blocks = padded.reshape(*before, down, step, across, step).swapaxes(-3, -2).reshape(*before, down, across, -1)
    strongest = np.abs(blocks).argmax(-1)[..., None]
    return np.take_along_axis(blocks, strongest, -1)[..., 0]


def rounded(value: Any) -> Any:
    """Numbers to a few digits, at any depth."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): rounded(item) for key, item in value.items()}
    if isinstance(value, np.generic | np.ndarray):
        return rounded(value.tolist())
    return [rounded(item) for item in value] if isinstance(value, list | tuple) else value
