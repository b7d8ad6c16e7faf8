"""The vocabulary of a forecaster: names and scale of the columns, frequency and season."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.core.errors import UserError

FILE = "series.json"


class SeriesScale:
    """Centre and spread of every column in the training set: scaled = (raw - centre) / spread."""

    kind = "series"

    def __init__(
        self,
        columns: Mapping[str, Sequence[str]],
        scale: Mapping[str, tuple[Any, Any]],
        *,
        calendar: Sequence[str] = (),
        frequency: str = "number",
        step: float = 1,
        month_end: bool = False,
        season: int = 1,
        seasons: Sequence[int] | None = None,
        method: str = "standard",
        missing: Sequence[str] = (),
        levels: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """`columns` and `scale` by role: targets, past, known; `calendar`: names of the calendar features; `missing`:
        columns with missing values in the training set; `seasons`: all of them, the main one (`season`) first;
        `levels`: of columns of texts."""
        self.columns = {role: list(columns.get(role, ())) for role in ("targets", "past", "known")}
        self._scale = {
            role: tuple(np.asarray(numbers, np.float64) for numbers in scale.get(role, ((), ())))
            for role in self.columns
        }
        self.targets, self.past = self.columns["targets"], self.columns["past"]
        self.known = [*self.columns["known"], *calendar]
        self.calendar = list(calendar)
        self.frequency, self.step, self.month_end, self.season = frequency, step, month_end, season
        self.seasons = list(seasons) if seasons is not None else self._only
        self.method, self.missing = method, list(missing)
        self.levels = {column: list(texts) for column, texts in (levels or {}).items()}
        self.size = len(self.targets)
        self.hash = hashlib.sha256(b"\0".join(self.files().values())).hexdigest()

    @property
    def _only(self) -> list[int]:
        return [self.season] if self.season > 1 else []

    def apply(self, values: np.ndarray, part: str = "targets") -> np.ndarray:
        """(..., columns) from original units to numbers of order 1; NaN stays NaN.

        Targets stay float64: scaled together with a series of large numbers, one of small numbers varies only in the
        last digits.
        """
        centre, spread = self._scale[part]
        found = (values - centre) / spread
        return found if part == "targets" else found.astype(np.float32)

    def undo(self, values: np.ndarray) -> np.ndarray:
        """Scaled targets in original units, float64."""
        centre, spread = self._scale["targets"]
        return np.asarray(values, np.float64) * spread + centre

    @property
    def centre(self) -> np.ndarray:
        """Of each target."""
        return self._scale["targets"][0]

    @property
    def spread(self) -> np.ndarray:
        """Of each target: the factor from scaled errors to original units."""
        return self._scale["targets"][1]

    def files(self) -> dict[str, bytes]:
        facts = {
            "columns": self.columns,
            "scale": {role: [numbers.tolist() for numbers in pair] for role, pair in self._scale.items()},
            "calendar": self.calendar,
            "frequency": self.frequency,
            "step": self.step,
            "month_end": self.month_end,
            "season": self.season,
            "method": self.method,
            "missing": self.missing,
        }
        if self.seasons != self._only:  # otherwise as before there could be several, so that hashes stay the same
            facts["seasons"] = self.seasons
        if self.levels:
            facts["levels"] = self.levels
        return {FILE: json.dumps(facts, ensure_ascii=False).encode()}

    @classmethod
    def load(cls, folder: Path) -> SeriesScale:
        path = Path(folder) / FILE
        try:
            return cls(**json.loads(path.read_bytes()))
        except OSError as error:
            raise UserError(f"{path}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UserError(f"{path}: damaged; not a scale file written by seqloom") from None
