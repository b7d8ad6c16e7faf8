"""How well tags are found: names as a whole (entity F1, as in CoNLL and seqeval), or word by word.

A name counts when its first word, its last word and its label are right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from seqloom.core.words import join_words

Tags = Sequence[str]
Name = tuple[int, int, str]  # first word, end, label


class Counts(NamedTuple):
    """For each sentence."""

    right: np.ndarray  # names that are wanted and found
    found: np.ndarray
    wanted: np.ndarray


def names_of(tags: Tags) -> list[Name]:
    """The names that BIO tags tell; an I- that follows no name of its kind begins one."""
    names: list[Name] = []
    begin, label = 0, ""
    for place, tag in enumerate([*tags, "O"]):
        prefix, here = tag[:2], tag[2:]
        if label and not (prefix == "I-" and here == label):
            names.append((begin, place, label))
            label = ""
        if not label and prefix in ("B-", "I-"):
            begin, label = place, here
    return names


def told_names(
    words: Sequence[str], tags: Tags, text: str | None = None, places: Sequence[tuple[int, int]] | None = None
) -> list[dict[str, Any]]:
    """For people: label and text; where it stands in a running text, or else the numbers of its words, from 0."""
    told: list[dict[str, Any]] = []
    for first, end, label in names_of(tags):
        if text is not None and places:
            begin, stop = places[first][0], places[end - 1][1]
            told.append({"label": label, "text": text[begin:stop], "start": begin, "end": stop})
        else:
            told.append({"label": label, "text": join_words(list(words[first:end])), "first": first, "last": end - 1})
    return told


def count_names(found: Sequence[Tags], wanted: Sequence[Tags]) -> Counts:
    both = [(set(names_of(ours)), set(names_of(theirs))) for ours, theirs in zip(found, wanted, strict=True)]
    numbers = [(len(ours & theirs), len(ours), len(theirs)) for ours, theirs in both]
    return Counts(*np.array(numbers, np.int64).reshape(-1, 3).T)


def f1_score(counts: Counts) -> dict[str, float]:
    """Precision, recall and their harmonic mean, over all names of all sentences (micro)."""
    right, found, wanted = (int(numbers.sum()) for numbers in counts)
    return {
        "f1": 2 * right / max(1, found + wanted),
        "precision": right / max(1, found),
        "recall": right / max(1, wanted),
    }


def f1_pieces(counts: Counts, pieces: int) -> list[float]:
    """The score of groups of sentences, each divided by the mean count of names and not its own: so that the mean of
    all pieces is the score of all."""
    cuts = [np.array_split(numbers, pieces) for numbers in counts]
    share = max(1.0, float(counts.found.sum() + counts.wanted.sum())) / pieces
    return [2 * float(right.sum()) / share for right in cuts[0]]


def score_names(found: Sequence[Tags], wanted: Sequence[Tags]) -> dict[str, Any]:
    """By seqeval: the same scores, and those of every label with the count of its names."""
    if not any(tag != "O" for tags in (*found, *wanted) for tag in tags):
        return {"f1": 0.0, "precision": 0.0, "recall": 0.0, "types": {}}
    from seqeval.metrics import classification_report

    table = classification_report(list(map(list, wanted)), list(map(list, found)), output_dict=True, zero_division=0)
    averages = {name: _plain(table.pop(name)) for name in ("micro avg", "macro avg", "weighted avg")}
    micro = averages["micro avg"]
    scores = {name: micro[name] for name in ("f1", "precision", "recall")}
    return scores | {"types": {label: _plain(row) for label, row in table.items()}}


def _plain(row: dict[str, Any]) -> dict[str, float]:
    named = {"f1": "f1-score", "precision": "precision", "recall": "recall"}
    return {name: float(row[theirs]) for name, theirs in named.items()} | {"count": int(row["support"])}
