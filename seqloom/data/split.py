"""Splitting a text in order: first for training, then for validation, last for testing; and random shares of it."""

from __future__ import annotations

import hashlib
from collections import deque
from itertools import chain, pairwise
from random import Random

from seqloom.core.errors import UserError
from seqloom.data.text import Marked, Source

_STRETCHES, _SHORTEST = 256, 4096  # of a text that a share is drawn from: their number, and the least bytes of one

Range = tuple[int, int]  # bytes from .. to


class Part(Source):
    """The bytes of another source in these ranges, which are in order and begin and end between characters."""

    def __init__(self, whole: Source, name: str, *ranges: Range) -> None:
        super().__init__(f"{whole.name} ({name})", self._within, whole.documents)
        self._whole, self._ranges = whole, ranges

    def _within(self) -> Marked:
        position, left = 0, deque(self._ranges)
        for text, ends in self._whole.marked():
            length = _utf8_length(text)
            while left and left[0][0] < position + length:
                begin, end = max(0, left[0][0] - position), min(length, left[0][1] - position)
                if end - begin == length:
                    yield text, ends
                else:
                    yield text.encode()[begin:end].decode(), ends and end == length
                if left[0][1] > position + length:
                    break
                left.popleft()
            position += length
            if not left:
                return

    def _measure(self) -> tuple[int, str]:
        place = " ".join([self._whole.hash, *map(str, chain(*self._ranges))])
        return sum(end - begin for begin, end in self._ranges), hashlib.sha256(place.encode()).hexdigest()


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
    return {name: Part(source, name, each) for name, each in zip(names, pairwise(places), strict=True)}


def draw_text(source: Source, share: float, draw: int) -> Source:
    """This share of the text: stretches drawn at random, in their order; `draw` is the seed. With the same seed, a
    smaller share is part of a larger one."""
    size = max(_SHORTEST, -(-source.bytes // _STRETCHES))
    count, left = -(-source.bytes // size), max(1, round(share * source.bytes))
    chosen: list[Range] = []
    for number in Random(draw).sample(range(count), count):
        begin = number * size
        end = min(begin + min(size, left), source.bytes)
        chosen.append((begin, end))
        left -= end - begin
        if left <= 0:
            break
    bounds = _boundaries(source, list(chain(*_joined(sorted(chosen)))))
    ranges = [each for each in zip(bounds[::2], bounds[1::2], strict=True) if each[0] < each[1]]
    if not ranges:
        raise UserError(f"data.examples={share:g}: {source.name} has only {source.bytes:,} bytes; use a larger share")
    return Part(source, f"{share:g} drawn, {draw}", *ranges)


def _joined(ranges: list[Range]) -> list[Range]:
    """The same bytes in as few ranges as possible."""
    found: list[Range] = []
    for begin, end in ranges:
        if found and found[-1][1] == begin:
            found[-1] = found[-1][0], end
        else:
            found.append((begin, end))
    return found


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
