"""The vocabulary of a text classifier: its tokenizer and its labels."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from seqloom.data.labels import label_file, read_labels
from seqloom.tokenizers.tokenizer import Tokenizer


class LabelledTokenizer:
    """A tokenizer and the ordered labels; `multi`: a row may have any number of labels."""

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
