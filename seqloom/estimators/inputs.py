"""The forms of X that an estimator reads as sequences: texts, or sequences of measurements (time, features)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_array, validate_data

from seqloom.core.errors import check_encodable
from seqloom.core.rows import Row
from seqloom.data.columns import clean
from seqloom.estimators.base import InputError, as_value_error


@dataclass(frozen=True)
class Sequences:
    """Texts, or arrays (time, features) in float32."""

    items: Sequence[Any]
    texts: bool

    def rows(self) -> Iterator[Row]:
        """As a classifier predicts from them."""
        for n, item in enumerate(self.items, 1):
            yield {"line": n, "source": clean(item)} if self.texts else {"line": n, "frames": item}

    @property
    def features(self) -> int:
        """Measurements per step; 0: texts."""
        return 0 if self.texts else self.items[0].shape[1]


def read_sequences(estimator: Any, X: Any, reset: bool) -> Sequences:
    """Checked X; `reset`: remember its number and names of columns, else compare them with those of `fit`."""
    if issparse(X):
        validate_data(estimator, X, reset=reset)  # raises, with the way out
    if isinstance(X, str | bytes | Mapping):
        raise InputError(f"X: a single {type(X).__name__}; give a list of texts, or arrays of measurements")
    if (arrays := _arrays(X)) is not None:
        return Sequences([_frames(array, n) for n, array in enumerate(arrays)], texts=False)
    array = np.asarray(X, dtype=object) if isinstance(X, list | tuple) else np.asarray(X)
    if array.dtype.kind in "OUST" and any(isinstance(value, str) for value in array.flat):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return Sequences(_texts(array), texts=True)
    if array.ndim == 3:
        checked = check_array(array, dtype=np.float32, allow_nd=True, input_name="X")
        return Sequences([_frames(one, n) for n, one in enumerate(checked)], texts=False)
    table = validate_data(estimator, X, reset=reset, dtype=np.float32)
    return Sequences(list(table[:, :, None]), texts=False)


def _arrays(X: Any) -> list[np.ndarray] | None:
    """Sequences that may differ in length: a list, or a column of arrays."""
    column = getattr(X, "ndim", 0) == 1 and str(getattr(X, "dtype", "")) == "object"
    rows = list(X) if isinstance(X, list | tuple) or column else []
    return rows if rows and all(isinstance(row, np.ndarray) and row.ndim == 2 for row in rows) else None


def _frames(array: np.ndarray, n: int) -> np.ndarray:
    if not len(array):
        raise InputError(f"X[{n}]: an empty sequence; leave it out")
    checked: np.ndarray = check_array(array, dtype=np.float32, input_name=f"X[{n}]")
    return checked


def _texts(array: np.ndarray) -> list[str]:
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(f"X: texts of shape {array.shape}; give a list, or a table with one column")
    texts = array.tolist()
    for n, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"X[{n}]: {text!r} is not a text; replace missing texts by an empty one")
        with as_value_error():
            check_encodable(f"X[{n}]", text)
    return texts
