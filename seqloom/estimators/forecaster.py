"""Forecaster: the next values of a series."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.metrics import r2_score
from sklearn.utils.validation import validate_data

from seqloom.core.rows import Row
from seqloom.data.memory import Data
from seqloom.estimators.base import InputError, Options, SequenceEstimator, as_value_error

_LARGEST = 1e150  # its square is still a number


class Forecaster(SequenceEstimator):
    """Forecasts of a numeric series, with prediction intervals.

    The series is an array (time,) or (time, variables) in order of time, or a pandas series or data frame; an index of
    times is used, and columns of other data frames are variables. A missing value is NaN.

    `horizon`: points to forecast, `context`: past points that a forecast is based on; both are chosen from the series
    if they are not given. `valid_fraction`: share of the points, the last ones, that are held out to stop training in
    time and to measure the intervals. Other parameters as in `SequenceClassifier`.

    After `fit`, `horizon_` is the number of points that are forecast, and `run_` is the run.
    """

    _task = "forecasting"

    def __init__(
        self,
        model: str | Mapping[str, object] = "linear",
        *,
        horizon: int | None = None,
        context: int | None = None,
        train: Options = None,
        options: Options = None,
        valid_fraction: float = 0.1,
        random_state: int | np.random.RandomState | None = None,
        out: str | Path | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            model,
            train=train,
            options=options,
            valid_fraction=valid_fraction,
            random_state=random_state,
            out=out,
            verbose=verbose,
        )
        self.horizon = horizon
        self.context = context

    def fit(self, X: Data, y: None = None) -> Self:
        """`X`: the series; `y` is not used: the values to forecast are those of the series itself."""
        series = self._read(X, reset=True)
        own = {
            "task__horizon": self.horizon,
            "task__context": self.context,
            "data__valid_fraction": self.valid_fraction,
        }
        self._learn(series, None, self._seed(), **own)
        self.horizon_ = int(self.run_.config.task["horizon"])
        self._series, self._flat = series, np.ndim(X) == 1
        self._targets = list(self.run_.tokenizer.targets)
        return self

    def predict(self, steps: int | Data | None = None, series: Data = None) -> np.ndarray:
        """The values after the end of `series`, by default the one of `fit`: (steps,) or (steps, variables).

        `steps`: at most the horizon, by default all of it. A series in its place is the series to continue, because
        scikit-learn's own tools pass it first.
        """
        if steps is not None and not isinstance(steps, int | np.integer):
            steps, series = None, steps
        found = self._forecast(series)
        return self._shaped(found, self._targets, self.horizon_ if steps is None else int(steps))

    def predict_interval(
        self, coverage: float = 0.9, steps: int | None = None, series: Data = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The lower and the upper ends of intervals that contain this share of the values."""
        rows, levels = self._forecast(series), self.run_.config.task["levels"]
        ends = [next((n for n in levels if abs(n - (1 + side * coverage) / 2) < 1e-9), None) for side in (-1, 1)]
        if None in ends:
            wanted = f"[{(1 - coverage) / 2:g}, 0.5, {(1 + coverage) / 2:g}]"
            shown = ", ".join(f"{n:g}" for n in levels)
            way_out = f'set options={{"task.levels": {wanted}}} before fit'
            raise InputError(f"coverage={coverage:g}: this run has the quantiles {shown}; {way_out}")
        if f"{self._targets[0]}_{ends[0]:g}" not in rows[0]:
            raise InputError("this run has no intervals: they need held-out points; set valid_fraction above 0")
        names = [[f"{name}_{end:g}" for name in self._targets] for end in ends]
        steps = self.horizon_ if steps is None else steps
        return self._shaped(rows, names[0], steps), self._shaped(rows, names[1], steps)

    def score(self, X: Data, y: None = None) -> float:
        """R² on the points that follow the series of `fit`, one horizon after the other, each from all points before.

        So `TimeSeriesSplit` fits `cross_val_score`, and a held-out end is scored by `fit(series[:-24])` and
        `score(series[-24:])`. Several variables count the same.
        """
        self._fitted()
        after, actual = self._read(X, reset=False), np.asarray(X, dtype=float)
        found = [self.predict(min(self.horizon_, len(actual)))]
        for start in range(self.horizon_, len(actual), self.horizon_):
            found.append(self.predict(min(self.horizon_, len(actual) - start), _joined(self._series, after[:start])))
        forecasts = np.concatenate(found)
        there = np.isfinite(actual).reshape(len(actual), -1).all(1)
        return float(r2_score(actual.reshape(forecasts.shape)[there], forecasts[there]))

    def _forecast(self, series: Data) -> list[Row]:
        run = self._fitted()
        given = self._series if series is None else self._read(series, reset=False)
        with as_value_error():
            found = run.predict(given)
        return list(found.to_dict("records") if hasattr(found, "to_dict") else found)

    def _shaped(self, rows: list[Row], columns: list[str], steps: int) -> np.ndarray:
        if not 1 <= steps <= self.horizon_:
            raise InputError(f"steps={steps}: this run forecasts 1 to {self.horizon_} points; set horizon={steps}")
        table = np.array([[row[name] for name in columns] for row in rows[:steps]], dtype=float)
        return table[:, 0] if self._flat else table

    def _read(self, X: Data, reset: bool) -> Data:
        """Numbers (time, variables); a pandas object with an index of times as it is."""
        timed = str(getattr(getattr(X, "index", None), "dtype", "")).startswith(("datetime64", "period"))
        flat = not issparse(X) and np.ndim(X) == 1
        columns = X.to_frame() if timed and flat else np.asarray(X)[:, None] if flat else X
        how = {"dtype": np.float64, "ensure_all_finite": "allow-nan", "ensure_min_samples": 2 if reset else 1}
        with np.errstate(over="ignore", invalid="ignore"):  # sums of what is refused below
            table = validate_data(self, columns, reset=reset, **how)
        if (large := np.abs(table) > _LARGEST).any():
            raise InputError(f"X: {table[large][0]:g} is too large to compute with; use another unit")
        return X if timed else table

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _joined(before: Data, after: Data) -> Data:
    """One series, of arrays or of pandas objects."""
    if isinstance(before, np.ndarray) and isinstance(after, np.ndarray):
        return np.concatenate((before, after))
    if isinstance(before, np.ndarray) or isinstance(after, np.ndarray):
        raise InputError("X: an index of times must be there in fit and in score, or in neither")
    pandas: Any = sys.modules["pandas"]  # whoever made the series has imported it
    return pandas.concat([before, after])
