"""Sentences as ids: tokens, word boundaries, tags and the characters of words; compact, in memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np


class Sentence(Protocol):
    """The interface of a sentence that is needed here."""

    @property
    def words(self) -> list[str]: ...
    @property
    def tags(self) -> list[str]: ...


class Encodes(Protocol):
    """The interface of a vocabulary that is needed here."""

    tags: list[str]
    letters: Any

    def tokens(self, word: str) -> list[int]: ...
    def spell(self, word: str) -> tuple[int, ...]: ...


class Pieces(NamedTuple):
    """Sentences, or parts of long ones, as ranges of word indices: from `first` to `end`."""

    first: np.ndarray
    end: np.ndarray
    lengths: np.ndarray  # in tokens, including the start and end tokens
    inner: np.ndarray  # not the start of its sentence


class TaggedRows:
    """Row n has the words from `word_bounds[n]` to `word_bounds[n + 1]`, and word w the tokens from `begins[w]` on.

    Tags unknown to the vocabulary are numbered after the known ones: `tags` names them all.
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
            known = sentence.tags or [vocabulary.tags[0]] * len(sentence.words)  # no ground truth: any tag will do
            tags.extend(numbers.setdefault(tag, len(numbers)) for tag in known)
            bounds.append(len(begins) - 1)
        self.tags = list(numbers)
        self.ids, self.begins, self.tag_ids = _array(ids), _array(begins), _array(tags)
        self.word_bounds, self.spelled = _array(bounds), _array(spelled)
        self.spellings = _padded([vocabulary.spell(form) for form in forms]) if vocabulary.letters else None

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
        """The number of words whose tag is not in the vocabulary."""
        return int((self.tag_ids >= self.known).sum())

    def pieces(self, most: int, count: int | None = None) -> Pieces:
        """The first `count` sentences; those of more than `most` tokens are cut between words."""
        bounds = self.word_bounds[: (len(self) if count is None else count) + 1]
        first, end = bounds[:-1], bounds[1:]
        lengths = self.begins[end] - self.begins[first] + 2
        if (lengths <= most).all():
            return Pieces(first, end, lengths, np.zeros(len(first), bool))
        cut: list[tuple[int, int, bool]] = []
        for begin, stop in zip(first.tolist(), end.tolist(), strict=True):
            inner = False
            while begin < stop:
                fits = int(np.searchsorted(self.begins, self.begins[begin] + most - 2, side="right")) - 1
                place = max(begin + 1, min(fits, stop))
                cut.append((begin, place, inner))
                begin, inner = place, True
        firsts, ends, inners = (np.array(part) for part in zip(*cut, strict=True))
        return Pieces(firsts, ends, np.minimum(self.begins[ends] - self.begins[firsts] + 2, most), inners)

    def named(self, tags: np.ndarray) -> list[list[str]]:
        """Tag ids, of all words or of the first, as the tags of each sentence."""
        names = [self.tags[number] for number in tags.tolist()]
        bounds = self.word_bounds[: np.searchsorted(self.word_bounds, len(names), side="right")].tolist()
        return [names[begin:end] for begin, end in pairwise(bounds)]

    def sentences(self) -> Iterator[Any]:
        """The original sentences."""
        return self.origin.rows()


def _array(values: array) -> np.ndarray:
    return np.frombuffer(values, values.typecode) if len(values) else np.zeros(0, values.typecode)


def _padded(spellings: Sequence[tuple[int, ...]]) -> np.ndarray:
    """As one array, padded with zeros."""
    padded = np.zeros((len(spellings), max(map(len, spellings), default=1)), np.int32)
    for row, spelling in enumerate(spellings):
        padded[row, : len(spelling)] = spelling
    return padded
