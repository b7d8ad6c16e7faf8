"""How much of a source survives the way to the target: accuracy by step and place of the output, and by length."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from seqloom.tasks.translation.scores import References

BINS = 10  # at most


def forgetting(sources: Sequence[str], predictions: Sequence[str], references: References) -> dict[str, Any]:
    """Share of tokens that are right, by the step of the output, by its relative place and by the length of the source.

    The place is in per cent of the reference: where the order of both sides is alike (or reversed) it tells which part
    of the source was lost, whatever its length.

    A token is right when it stands at its place in the reference; of several, the one that agrees most counts.
    Tokens are separated by blanks where most texts of a side have blanks, else they are characters.
    """
    rows = [[row] if isinstance(row, str) else list(row) for row in references]
    cut, cut_source = _tokens(row[0] for row in rows), _tokens(sources)
    steps: list[tuple[int, bool]] = []  # (step of the output, right or not)
    places: list[tuple[int, bool]] = []
    lengths: list[tuple[int, bool]] = []
    for source, prediction, row in zip(sources, predictions, rows, strict=True):
        given = cut(prediction)
        right = max((_agreement(given, cut(reference)) for reference in row), key=lambda found: sum(found) / len(found))
        steps += enumerate(right, 1)
        places += ((100 * n // len(right), hit) for n, hit in enumerate(right))
        lengths += ((len(cut_source(source)), hit) for hit in right)
    return {"by_step": _binned(steps), "by_place": _binned(places, (0, 99)), "by_length": _binned(lengths)}


def _tokens(texts: Iterable[str]) -> Callable[[str], list[str]]:
    spaced = [len(text.split()) > 1 for text in texts]
    return str.split if sum(spaced) > len(spaced) / 2 else list


def _agreement(given: list[str], wanted: list[str]) -> list[bool]:
    """For each token of the reference; what is missing at the end is wrong."""
    return [n < len(given) and given[n] == token for n, token in enumerate(wanted)]


def _binned(found: list[tuple[int, bool]], ends: tuple[int, int] | None = None) -> list[dict[str, Any]]:
    """Bins of equal width from the smallest to the largest number (or `ends`), without those that are empty."""
    first, last = ends or (min(found)[0], max(found)[0])
    width = -(-(last - first + 1) // BINS)
    bins: dict[int, list[bool]] = {}
    for number, hit in found:
        bins.setdefault((number - first) // width, []).append(hit)
    return [
        {
            "from": first + n * width,
            "to": min(first + (n + 1) * width - 1, last),
            "accuracy": sum(bins[n]) / len(bins[n]),
            "count": len(bins[n]),
        }
        for n in sorted(bins)
    ]
