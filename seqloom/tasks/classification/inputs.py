"""What a row to classify contains: one text, two texts, or a sequence of measurements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from seqloom.core.batch import Keep, cut
from seqloom.core.errors import UserError
from seqloom.core.rows import Row
from seqloom.data.shapes.frames.rows import FrameRows
from seqloom.data.shapes.frames.scale import LabelledScale
from seqloom.data.shapes.labelled.rows import LabelledRows
from seqloom.data.shapes.labelled.vocabulary import LabelledTokenizer
from seqloom.layers.inputs import PartedEmbedding
from seqloom.layers.linear import Linear
from seqloom.tasks.classification.baselines import Found, bag_of_frames, bag_of_words

Examples = LabelledRows | FrameRows
Chosen = Mapping[str, tuple[Examples, np.ndarray]]  # some rows of each split


class Inputs(ABC):
    @abstractmethod
    def embed(self, width: int) -> nn.Module: ...

    @abstractmethod
    def sequence(self, parts: Sequence[np.ndarray], most: int, keep: Keep) -> np.ndarray:
        """What the model reads of a row: at most `most` tokens or steps."""

    @abstractmethod
    def parts(self, row: Row) -> list[np.ndarray]:
        """The parts of a row to predict, as `sequence` takes them."""

    @abstractmethod
    def empty(self) -> np.ndarray:
        """A row without content, for an empty batch."""

    @abstractmethod
    def random(self, rows: int, length: int, draw: torch.Generator) -> Tensor: ...

    def word_dropout(self, inputs: Tensor, share: float) -> Tensor:
        """Replace a share of the tokens by <unk>, but no special tokens."""
        return inputs

    def texts(self, rows: Examples, chosen: np.ndarray) -> list[str]:
        """The chosen rows as text, in ascending order; empty: they are no texts."""
        return []

    @abstractmethod
    def baseline(self, train: Examples, targets: np.ndarray, chosen: Chosen) -> Found:
        """Logistic regression on features of the rows that ignore order."""


class TextInputs(Inputs):
    """A text is read between <bos> and <eos>; of two texts, the second follows with its own <eos>."""

    def __init__(self, tokenizer: LabelledTokenizer) -> None:
        self.tokenizer = tokenizer

    def embed(self, width: int) -> nn.Module:
        return PartedEmbedding(self.tokenizer.size + 1, width, self.tokenizer.eos)

    def sequence(self, parts: Sequence[np.ndarray], most: int, keep: Keep) -> np.ndarray:
        """The longer text is cut first."""
        room = max(len(parts), most - 1)
        while sum(map(len, parts)) > room:
            longer = max(range(len(parts)), key=lambda n: len(parts[n]))
            others = sum(map(len, parts)) - len(parts[longer])
            shorter = max([len(part) for n, part in enumerate(parts) if n != longer], default=0)
            kept = max(room - others, min(shorter, room // len(parts)), 1)
            whole = cut(parts[longer][:-1], kept - 1, keep)  # its <eos> stays
            parts = [*parts[:longer], np.concatenate((whole, parts[longer][-1:])), *parts[longer + 1 :]]
        return np.concatenate(([self.tokenizer.bos], *parts))

    def parts(self, row: Row) -> list[np.ndarray]:
        end, texts = [self.tokenizer.eos], [row["source"], *([row["second"]] if "second" in row else [])]
        return [np.concatenate((self.tokenizer.encode(text), end)) for text in texts]

    def empty(self) -> np.ndarray:
        return np.array([self.tokenizer.bos])

    def random(self, rows: int, length: int, draw: torch.Generator) -> Tensor:
        return torch.randint(self.tokenizer.size, (rows, length), generator=draw)

    def word_dropout(self, inputs: Tensor, share: float) -> Tensor:
        if not share:
            return inputs
        dropped = torch.rand(inputs.shape, device=inputs.device) < share
        special = torch.isin(inputs, torch.tensor(sorted(self.tokenizer.specials), device=inputs.device))
        return torch.where(dropped & ~special, self.tokenizer.blank, inputs)

    def baseline(self, train: Examples, targets: np.ndarray, chosen: Chosen) -> Found:
        texts = {part: self.texts(rows, indices) for part, (rows, indices) in chosen.items()}
        return bag_of_words(self.texts(train, np.arange(len(train))), targets, texts)

    def texts(self, rows: Examples, chosen: np.ndarray) -> list[str]:
        kept, labelled = set(chosen.tolist()), cast(LabelledRows, rows)
        return [" ".join(texts) for n, texts in enumerate(labelled.texts()) if n in kept]


class MeasuredInputs(Inputs):
    def __init__(self, scale: LabelledScale) -> None:
        self.scale = scale

    def embed(self, width: int) -> nn.Module:
        return Linear(self.scale.size, width)

    def sequence(self, parts: Sequence[np.ndarray], most: int, keep: Keep) -> np.ndarray:
        return cut(parts[0], most, keep)

    def parts(self, row: Row) -> list[np.ndarray]:
        frames: np.ndarray = row["frames"]
        if frames.shape[1] != self.scale.size:
            raise UserError(
                f"sequence {row['line']} has {frames.shape[1]} features, but the run was trained on {self.scale.size}"
            )
        return [self.scale.apply(frames)]

    def empty(self) -> np.ndarray:
        return np.zeros((1, self.scale.size), np.float32)

    def random(self, rows: int, length: int, draw: torch.Generator) -> Tensor:
        return torch.randn(rows, length, self.scale.size, generator=draw)

    def baseline(self, train: Examples, targets: np.ndarray, chosen: Chosen) -> Found:
        frames = {part: [rows.parts(n)[0] for n in indices] for part, (rows, indices) in chosen.items()}
        return bag_of_frames([train.parts(n)[0] for n in range(len(train))], targets, frames)


def inputs_of(known: LabelledTokenizer | LabelledScale) -> Inputs:
    return MeasuredInputs(known) if isinstance(known, LabelledScale) else TextInputs(known)
