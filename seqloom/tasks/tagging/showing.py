"""Which sentences a report shows, and how."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seqloom.core.order import spread
from seqloom.core.rows import Json
from seqloom.core.words import join_words
from seqloom.data.shapes.tagged.rows import TaggedRows

SENTENCES = 5
_WORDS = 40  # shown of each sentence


def choose(rows: TaggedRows) -> np.ndarray:
    """Evenly spaced sentences; where words can be outside of all entities, of those that contain one."""
    outside = np.array([tag == "O" for tag in rows.tags])
    words = np.flatnonzero(~outside[rows.tag_ids])
    with_tags = np.unique(np.searchsorted(rows.word_bounds, words, side="right") - 1)
    among = with_tags if len(with_tags) else np.arange(len(rows))
    chosen: np.ndarray = among[spread(min(SENTENCES, len(among)), len(among))]
    return chosen


def shown(words: Sequence[str], gold: Sequence[str], predicted: Sequence[str]) -> Json:
    return {
        "words": list(words[:_WORDS]),
        "gold": list(gold[:_WORDS]),
        "predicted": list(predicted[:_WORDS]),
        "cut": len(words) > _WORDS,
        "space": "" if join_words(list(words)) == "".join(words) else " ",
    }
