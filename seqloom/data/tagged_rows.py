"""Sentences as ids: tokens, where words begin among them, tags, and how words are spelled; compact, in memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from seqloom.data.conll import Sentence


class Encodes(Protocol):
    """What is asked of a vocabulary here."""

    tags: list[str]
    letters: Any

    def tokens(self, word: str) -> list[int]: ...
    def spell(self, word: str) -> tuple[int, ...]: ...


class Sentences(Protocol):
    """What is asked of where they come from."""

    def rows(self) -> Iterator[Sentence]: ...


class TaggedRows:
    """Row by row the words from `word_bounds[n]` to `word_bounds[n + 1]`; of each the tokens from `begins` on.

    A tag that the vocabulary does not know has a number behind those it knows: `tags` names them all.
    """

    def __init__(self, sentences: Iterable[Sentence], vocabulary: Encodes, origin: Any = None) -> None:
        self.origin, self.known = origin, len(vocabulary.tags)
        numbers = {tag: number for number, tag in enumerate(vocabulary.tags)}
        forms: dict[str, int] = {}
        ids, begins, tags, spelled, bounds = array("i"), array("q", [0]), array("i"), array("i"), array("q", [0])
        for sentence in sentences:
            for word in sentence.words:
                ids.extend(vocabulary.tokens(word))
                begins.append(len(ids))
                if vocabulary.letters:
                    spelled.append(forms.setdefault(word, len(forms)))
            known = sentence.tags or [vocabulary.tags[0]] * len(sentence.words)  # none to compare with: any will do
            tags.extend(numbers.setdefault(tag, len(numbers)) for tag in known)
            bounds.append(len(begins) - 1)
        self.tags = list(numbers)
        self.ids, self.begins, self.tag_ids = _array(ids), _array(begins), _array(tags)
        self.word_bounds, self.spelled = _array(bounds), _array(spelled)
        self.spellings = _table([vocabulary.spell(form) for form in forms]) if vocabulary.letters else None

    def __len__(self) -> int:
        return len(self.word_bounds) - 1

    @property
    def words(self) -> int:
        return len(self.tag_ids)

    @property
    def tokens(self) -> int:
        return len(self.ids)

    @property
    def unknown(self) -> int:
        """Words whose tag the vocabulary does not know."""
        return int((self.tag_ids >= self.known).sum())

    def sentences(self) -> Iterator[Sentence]:
        """As they were written."""
        return self.origin.rows()


def _array(values: array) -> np.ndarray:
    return np.frombuffer(values, values.typecode) if len(values) else np.zeros(0, values.typecode)


def _table(spellings: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Side by side, padded with zeros."""
    table = np.zeros((len(spellings), max(map(len, spellings), default=1)), np.int32)
    for row, spelling in enumerate(spellings):
        table[row, : len(spelling)] = spelling
    return table
