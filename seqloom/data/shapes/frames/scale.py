"""The vocabulary of a classifier of measurements: mean and standard deviation of every feature, and the labels."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from seqloom.core.errors import UserError
from seqloom.data.labels import label_file, read_labels


class LabelledScale:
    """Mean and standard deviation of every feature in the training set, and the ordered labels."""

    kind = "measurements"

    def __init__(self, mean: np.ndarray, deviation: np.ndarray, labels: Sequence[str], multi: bool = False) -> None:
        self.mean, self.deviation = mean.astype(np.float32), deviation.astype(np.float32)
        self.labels, self.multi = list(labels), multi
        self.size = len(mean)
        self.hash = hashlib.sha256(b"\0".join(self.files().values())).hexdigest()

    def apply(self, frames: np.ndarray) -> np.ndarray:
        return (frames - self.mean) / self.deviation

    def files(self) -> dict[str, bytes]:
        scale = {"mean": self.mean.tolist(), "deviation": self.deviation.tolist()}
        return {"scale.json": json.dumps(scale).encode(), "labels.json": label_file(self.labels, self.multi)}

    @classmethod
    def load(cls, folder: Path) -> LabelledScale:
        path = Path(folder) / "scale.json"
        try:
            scale = json.loads(path.read_bytes())
            return cls(np.array(scale["mean"]), np.array(scale["deviation"]), *read_labels(folder))
        except OSError as error:
            raise UserError(f"{path}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{path}: damaged; not a scale file written by seqloom") from None
