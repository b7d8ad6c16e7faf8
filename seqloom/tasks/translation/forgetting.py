"""How much of the source reaches the output: accuracy by output step, by relative position and by source length."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from seqloom.core.rows import Json
from seqloom.tasks.translation.scores import References

BINS = 10  # at most


def forgetting(sources: Sequence[str], predictions: Sequence[str], references: References) -> Json:
    """Share of correct tokens by output step, by relative position in the output and by source length.

    The position is in percent of the reference: where both sides have the same (or the reverse) order, it shows which
    part of the source was lost, whatever its length.

    A token is correct if the reference has it at the same step; of several references, the best match counts. Tokens
    are separated by spaces if most texts of that side contain spaces, otherwise they are characters.
    """
    rows = [[row] if isinstance(row, str) else list(row) for row in references]
    split, split_source = _splitter(row[0] for row in rows), _splitter(sources)
    steps: list[tuple[int, bool]] = []  # (output step, correct or not)
    positions: list[tuple[int, bool]] = []
    lengths: list[tuple[int, bool]] = []
    for source, prediction, row in zip(sources, predictions, rows, strict=True):
        output = split(prediction)
        hits = max((_matches(output, split(reference)) for reference in row), key=lambda hits: sum(hits) / len(hits))
        steps += enumerate(hits, 1)
        positions += ((100 * n // len(hits), hit) for n, hit in enumerate(hits))
        lengths += ((len(split_source(source)), hit) for hit in hits)
    return {"by_step": _binned(steps), "by_place": _binned(positions, (0, 99)), "by_length": _binned(lengths)}


def _splitter(texts: Iterable[str]) -> Callable[[str], list[str]]:
    spaced = [len(text.split()) > 1 for text in texts]
    return str.split if sum(spaced) > len(spaced) / 2 else list


def _matches(output: list[str], reference: list[str]) -> list[bool]:
    """Whether each reference token is in the output at the same step; tokens missing at the end are wrong."""
    return [n < len(output) and output[n] == token for n, token in enumerate(reference)]


def _binned(found: list[tuple[int, bool]], ends: tuple[int, int] | None = None) -> list[Json]:
    """Bins of equal width from the smallest to the largest number (or between `ends`), empty ones left out."""
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
