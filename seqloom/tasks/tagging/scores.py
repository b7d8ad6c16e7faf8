"""Entity F1, as in CoNLL and seqeval: an entity is correct if its first word, its last word and its label are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from seqloom.core.rows import Json
from seqloom.core.words import join_words

Tags = Sequence[str]
Name = tuple[int, int, str]  # an entity: first word, end, label


class Counts(NamedTuple):
    """Entities of each sentence."""

    right: np.ndarray  # predicted, and in the reference
    found: np.ndarray  # predicted
    wanted: np.ndarray  # in the reference


def names_of(tags: Tags) -> list[Name]:
    """The entities in BIO tags; an I- tag that continues no entity of its type starts one."""
    names: list[Name] = []
    begin, label = 0, ""
    for position, tag in enumerate([*tags, "O"]):
        prefix, here = tag[:2], tag[2:]
        if label and not (prefix == "I-" and here == label):
            names.append((begin, position, label))
            label = ""
        if not label and prefix in ("B-", "I-"):
            begin, label = position, here
    return names


def told_names(
    words: Sequence[str], tags: Tags, text: str | None = None, places: Sequence[tuple[int, int]] | None = None
) -> list[Json]:
    """Entities as JSON: label, text and, in running text, character offsets, otherwise word indices from 0."""
    entities: list[Json] = []
    for first, end, label in names_of(tags):
        if text is not None and places:
            begin, stop = places[first][0], places[end - 1][1]
            entities.append({"label": label, "text": text[begin:stop], "start": begin, "end": stop})
        else:
            span = join_words(list(words[first:end]))
            entities.append({"label": label, "text": span, "first": first, "last": end - 1})
    return entities


def count_names(predicted: Sequence[Tags], reference: Sequence[Tags]) -> Counts:
    both = [(set(names_of(ours)), set(names_of(theirs))) for ours, theirs in zip(predicted, reference, strict=True)]
    numbers = [(len(ours & theirs), len(ours), len(theirs)) for ours, theirs in both]
    return Counts(*np.array(numbers, np.int64).reshape(-1, 3).T)


def f1_score(counts: Counts) -> dict[str, float]:
    """Micro-averaged precision, recall and F1, over all entities of all sentences."""
    correct, predicted, actual = (int(numbers.sum()) for numbers in counts)
    return {
        "f1": 2 * correct / max(1, predicted + actual),
        "precision": correct / max(1, predicted),
        "recall": correct / max(1, actual),
    }


def f1_pieces(counts: Counts, pieces: int) -> list[float]:
    """F1 of groups of sentences, each divided by the mean number of entities per group instead of its own, so that the
    mean of all pieces is the overall F1."""
    cuts = [np.array_split(numbers, pieces) for numbers in counts]
    share = max(1.0, float(counts.found.sum() + counts.wanted.sum())) / pieces
    return [2 * float(correct.sum()) / share for correct in cuts[0]]


def score_names(predicted: Sequence[Tags], reference: Sequence[Tags]) -> Json:
    """The same scores by seqeval, and those of each label with its number of entities."""
    if not any(tag != "O" for tags in (*predicted, *reference) for tag in tags):
        return {"f1": 0.0, "precision": 0.0, "recall": 0.0, "types": {}}
    from seqeval.metrics import classification_report

    true, ours = list(map(list, reference)), list(map(list, predicted))
    table = classification_report(true, ours, output_dict=True, zero_division=0)
    averages = {name: _plain(table.pop(name)) for name in ("micro avg", "macro avg", "weighted avg")}
    micro = averages["micro avg"]
    scores = {name: micro[name] for name in ("f1", "precision", "recall")}
    return scores | {"types": {label: _plain(row) for label, row in table.items()}}


def _plain(row: Json) -> dict[str, float]:
    named = {"f1": "f1-score", "precision": "precision", "recall": "recall"}
    return {name: float(row[theirs]) for name, theirs in named.items()} | {"count": int(row["support"])}
