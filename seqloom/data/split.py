"""Splitting a text in order: first for training, then for validation, last for testing."""

from __future__ import annotations

import hashlib
from itertools import pairwise

from seqloom.core.errors import UserError
from seqloom.data.text import Marked, Source


class Part(Source):
    """The bytes from `begin` to `end` of another source, both on character boundaries."""

    def __init__(self, whole: Source, name: str, begin: int, end: int) -> None:
        super().__init__(f"{whole.name} ({name})", self._between, whole.documents)
        self._whole, self._begin, self._end = whole, begin, end

    def _between(self) -> Marked:
        position = 0
        for text, ends in self._whole.marked():
            length = _utf8_length(text)
            begin, end = self._begin - position, self._end - position
            position += length
            if begin <= 0 and end >= length:
                yield text, ends
            elif begin < length and end > 0:
                yield text.encode()[max(begin, 0) : end].decode(), ends and end >= length
            if position >= self._end:
                return

    def _measure(self) -> tuple[int, str]:
        place = f"{self._whole.hash} {self._begin} {self._end}"
        return self._end - self._begin, hashlib.sha256(place.encode()).hexdigest()


def shares_of(what: str, valid: float, test: float) -> dict[str, float]:
    """The share of each split that is not empty."""
    for name, share in (("valid", valid), ("test", test)):
        if not 0 <= share < 1:
            raise UserError(f"{name}={share}: must be a share of the {what}, at least 0 and below 1")
    if valid + test >= 1:
        raise UserError(f"valid={valid} and test={test} leave nothing to train on")
    shares = {"train": 1 - valid - test, "valid": valid, "test": test}
    return {name: share for name, share in shares.items() if share > 0}


def split_text(source: Source, valid: float = 0.1, test: float = 0.0) -> dict[str, Source]:
    """Splits by share of the text's bytes, cut between characters; a split of share 0 is left out."""
    shares = shares_of("text", valid, test)
    names = list(shares)
    offsets = [int(source.bytes * round(sum(shares[n] for n in names[:i]), 9)) for i in range(1, len(names))]
    places = [0, *_boundaries(source, offsets), source.bytes]
    for name, (begin, end) in zip(names, pairwise(places), strict=True):
        if begin >= end:
            raise UserError(f"{source.name}: too little text ({source.bytes} bytes) for a {name} split; give more")
    return {name: Part(source, name, begin, end) for name, (begin, end) in zip(names, pairwise(places), strict=True)}


def _boundaries(source: Source, places: list[int]) -> list[int]:
    """The same offsets, each moved forward to a character boundary."""
    found: list[int] = []
    position = 0
    for text in source.pieces() if places else ():
        length = _utf8_length(text)
        while len(found) < len(places) and places[len(found)] < position + length:
            data, at = text.encode(), places[len(found)] - position
            while at < length and data[at] & 0xC0 == 0x80:  # inside a character
                at += 1
            found.append(position + at)
        if len(found) == len(places):
            break
        position += length
    return found + [source.bytes] * (len(places) - len(found))


def _utf8_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
