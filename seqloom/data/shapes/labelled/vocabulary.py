"""The vocabulary of a text classifier: its tokenizer and its labels."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from seqloom.data.labels import label_file, read_facts, read_labels
from seqloom.tokenizers.tokenizer import Tokenizer


class LabelledTokenizer:
    """A tokenizer and the ordered labels; `multi`: a row may have any number of labels; `lower`: texts are read in
    lower case."""

    def __init__(self, tokenizer: Tokenizer, labels: Sequence[str], multi: bool = False, lower: bool = False) -> None:
        self.tokenizer, self.labels, self.multi, self.lower = tokenizer, list(labels), multi, lower
        self.kind, self.size = tokenizer.kind, tokenizer.size
        self.pad, self.bos, self.eos, self.unk = tokenizer.pad, tokenizer.bos, tokenizer.eos, tokenizer.unk
        self.blank, self.specials = tokenizer.blank, tokenizer.specials
        self.hash = hashlib.sha256(f"{tokenizer.hash} ".encode() + self._label_file()).hexdigest()

    def encode(self, text: str) -> np.ndarray:
        return self.tokenizer.encode(text.lower() if self.lower else text)

    def files(self) -> dict[str, bytes]:
        return self.tokenizer.files() | {"labels.json": self._label_file()}

    def _label_file(self) -> bytes:
        return label_file(self.labels, self.multi, **({"lower": True} if self.lower else {}))

    @classmethod
    def load(cls, folder: Path) -> LabelledTokenizer:
        return cls(Tokenizer.load(folder), *read_labels(folder), lower=read_facts(folder).get("lower", False))
