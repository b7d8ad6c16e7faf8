"""Tokens of different tokenizers, compared by the text they stand for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from seqloom.core.instance import Instance

Span = tuple[int, int]  # first character, and the one after the last


@dataclass(frozen=True)
class Stretches:
    """`spans` of the text, and the one that each output and each input belongs to; None: it stands for no text."""

    spans: list[Span]
    outputs: list[int | None]
    inputs: list[int | None]

    def of_outputs(self, values: np.ndarray) -> np.ndarray:
        """Sums over the outputs of each stretch."""
        return _summed(values, self.outputs, len(self.spans))

    def of_map(self, values: np.ndarray) -> np.ndarray:
        """(O, P) -> (stretches, stretches)."""
        by_output = _summed(values, self.outputs, len(self.spans))
        return _summed(by_output.T, self.inputs, len(self.spans)).T


def common(text: str, one: Instance, other: Instance) -> tuple[Stretches, Stretches]:
    """Of two language models on one text; the first token of each, which is not predicted, is left out."""
    sides = [spans_of(text, instance.inputs) for instance in (one, other)]
    begin = max(_predicted_from(spans) for spans in sides)
    cuts = set.intersection(*({end for _, end in spans} for spans in sides)) - {0}
    edges = sorted({cut for cut in cuts if cut > begin} | {begin})
    spans = list(pairwise(edges))
    first, second = (_placed(found, spans) for found in sides)
    return first, second


def spans_of(text: str, tokens: Sequence[str]) -> list[Span]:
    """Where each token stands, by its name; one whose name is not in the text (a byte, a special token) reaches to the
    next that is."""
    starts: list[int | None] = []
    at = 0
    for token in tokens:
        place = text.find(token, at, at + len(token) + 2) if token else -1
        starts.append(place if place >= 0 else None)
        if place >= 0:
            at = place + len(token)
    found: list[Span] = []
    after = len(text)
    for n in reversed(range(len(tokens))):
        start = starts[n]
        if start is None:
            before = next((s + len(tokens[k]) for k in range(n - 1, -1, -1) if (s := starts[k]) is not None), 0)
            start = min(before, after)
        found.append((start, after))
        after = start
    return found[::-1]


def _predicted_from(spans: Sequence[Span]) -> int:
    """The end of the first token: what comes after it is predicted."""
    return spans[0][1] if spans else 0


def _placed(tokens: Sequence[Span], spans: list[Span]) -> Stretches:
    """Output n of a language model is the token after input n; the last is no token of the text."""
    starts = [start for start, _ in spans]

    def stretch(span: Span) -> int | None:
        start, end = span
        place = bisect_right(starts, start) - 1
        return place if place >= 0 and end <= spans[place][1] else None

    inputs = [stretch(span) for span in tokens]
    return Stretches(spans, [*inputs[1:], None], inputs)


def _summed(values: np.ndarray, places: Sequence[int | None], count: int) -> np.ndarray:
    found = np.zeros((count, *values.shape[1:]))
    for value, place in zip(values, places, strict=True):
        if place is not None:
            found[place] += value
    return found
