"""What a classifier knows of its data: a tokenizer for texts, or the scale of measurements; and the labels."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from seqloom.core.errors import UserError
from seqloom.tokenizers.tokenizer import Tokenizer


class LabelledTokenizer:
    """A tokenizer, and the labels in their order; `multi`: a row may have any number of them."""

    def __init__(self, tokenizer: Tokenizer, labels: Sequence[str], multi: bool = False) -> None:
        self.tokenizer, self.labels, self.multi = tokenizer, list(labels), multi
        self.kind, self.size = tokenizer.kind, tokenizer.size
        self.pad, self.bos, self.eos, self.unk = tokenizer.pad, tokenizer.bos, tokenizer.eos, tokenizer.unk
        self.hash = hashlib.sha256(f"{tokenizer.hash} ".encode() + label_file(self.labels, multi)).hexdigest()

    def encode(self, text: str) -> np.ndarray:
        return self.tokenizer.encode(text)

    def files(self) -> dict[str, bytes]:
        return self.tokenizer.files() | {"labels.json": label_file(self.labels, self.multi)}

    @classmethod
    def load(cls, folder: Path) -> LabelledTokenizer:
        return cls(Tokenizer.load(folder), *read_labels(folder))


class LabelledScale:
    """Mean and deviation of every feature of the training part, and the labels in their order."""

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
            raise UserError(f"{path}: damaged; not a scale that seqloom wrote") from None


def label_file(labels: Sequence[str], multi: bool) -> bytes:
    return json.dumps({"labels": list(labels), "multi": multi}, ensure_ascii=False).encode()


def read_labels(folder: Path) -> tuple[list[str], bool]:
    path = Path(folder) / "labels.json"
    try:
        content = json.loads(path.read_bytes())
        return [str(label) for label in content["labels"]], bool(content["multi"])
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{path}: damaged; not labels that seqloom wrote") from None
