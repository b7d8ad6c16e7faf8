"""Pairs of texts with the output of a model, as a report shows them."""

from __future__ import annotations

from collections.abc import Sequence

from seqloom.core.order import spread
from seqloom.core.rows import Json
from seqloom.core.words import shorten
from seqloom.data.shapes.pairs.rows import PairRows

PAIRS = 5


def choose(rows: PairRows) -> list[tuple[str, str]]:
    """Evenly spaced pairs: source and target."""
    wanted = set(spread(min(PAIRS, len(rows)), len(rows)).tolist())
    return [pair for n, pair in enumerate(rows.texts()) if n in wanted]


def showcase(pairs: Sequence[tuple[str, str]], outputs: Sequence[str], of: int) -> Json:
    rows = [
        {
            "source": shorten(source),
            "reference": shorten(target),
            "output": shorten(output),
            "exact": output.split() == target.split(),
        }
        for (source, target), output in zip(pairs, outputs, strict=True)
    ]
    return {"kind": "pairs", "of": of, "rows": rows}
