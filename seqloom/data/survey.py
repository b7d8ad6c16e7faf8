"""A survey of texts: how many, how long, in which script. One pass, in bounded memory; settings are chosen from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from seqloom.core.words import CJK, cut_words

_SAMPLED = 20_000  # texts whose words are counted
_UNSPACED = 0.3  # share of Chinese or Japanese characters from which words cannot be split at spaces
_SINGLE = 1.5  # words per text
_CJK = re.compile(f"[{CJK}]")


@dataclass(frozen=True)
class TextSurvey:
    rows: int  # texts
    characters: int  # in all of them
    lengths: np.ndarray  # (sampled texts, 2): characters, and words and punctuation marks; evenly sampled
    cjk: float  # share of Chinese and Japanese characters

    @property
    def unspaced(self) -> bool:
        """Words are not separated by spaces."""
        return self.cjk > _UNSPACED

    @property
    def single(self) -> bool:
        """A text is hardly ever more than one word, as where words are spelt, inflected or pronounced."""
        return self.mean("words") < _SINGLE

    @property
    def script(self) -> str:
        """For the log."""
        if self.unspaced:
            return f"{self.cjk:.0%} of the characters are Chinese or Japanese"
        return "single words" if self.single else "words separated by spaces"

    def quantile(self, kind: str, share: float) -> int:
        """The length in tokens of this kind that this share of the texts does not exceed."""
        return int(np.ceil(np.quantile(self._lengths(kind), share)))

    def mean(self, kind: str) -> float:
        return float(self._lengths(kind).mean())

    def tokens(self, kind: str) -> int:
        """Estimated, in all texts."""
        return round(self.rows * self.mean(kind))

    def _lengths(self, kind: str) -> np.ndarray:
        """Sub-words are about 1.3 per word of a language with spaces, and 0.7 per character of one without."""
        characters, words = self.lengths[:, 0], self.lengths[:, 1]
        if kind in ("bpe", "pretrained"):
            return 0.7 * characters if self.unspaced else 1.3 * words
        return words if kind == "words" else characters


def survey_texts(texts: Iterable[str]) -> TextSurvey:
    rows = characters = cjk = sampled = 0
    lengths: list[tuple[int, int]] = []
    for text, every in _thinned(texts, lengths):
        rows += 1
        characters += len(text)
        if every:
            found = len(_CJK.findall(text))
            cjk, sampled = cjk + found, sampled + len(text)
            lengths.append((len(text), len(cut_words(text))))
    return TextSurvey(rows, characters, np.array(lengths or [(0, 0)]), cjk / max(1, sampled))


def _thinned(texts: Iterable[str], kept: list[tuple[int, int]]) -> Iterator[tuple[str, bool]]:
    """Each text, and whether it belongs to the sample: every one, then every second, every fourth, ..."""
    every = 1
    for number, text in enumerate(texts):
        if len(kept) >= _SAMPLED:
            del kept[1::2]
            every *= 2
        yield text, number % every == 0
