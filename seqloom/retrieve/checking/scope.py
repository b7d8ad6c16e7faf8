"""A phrase that was moved out of what somebody says or agrees to, or into it.

"On Monday they said that the road was flooded" and "they said that the road was flooded on Monday" differ in what
happened on Monday. A phrase is outside if it stands before the verb or between it and its "that" or "to".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from seqloom.retrieve.checking.alignment import Alignment
from seqloom.retrieve.checking.spelling import stem
from seqloom.retrieve.checking.tables import EMBEDDING, EMBEDDING_CHINESE
from seqloom.retrieve.checking.tokens import Token

NEAR = 8  # tokens between a verb and its "that" or "to"

_EMBEDDING = frozenset(map(stem, EMBEDDING.split()))
_EMBEDDING_CHINESE = frozenset(EMBEDDING_CHINESE.split())


def rescoped(pair: Alignment, first: Sequence[tuple[int, int]], second: Sequence[tuple[int, int]]) -> bool:
    """One of two exchanged runs stands outside of what a verb says in one text, and inside in the other."""
    ours, theirs = {n for n, _ in pair.kept}, {at for _, at in pair.kept}
    for n, at in pair.kept:
        for run in (first, second):
            here = _outside(pair.sentence, n, run[0][0], ours)
            there = _outside(pair.source, at, run[0][1], theirs)
            if here is not None and there is not None and here != there and (n, at) not in run:
                return True
    return False


def _outside(tokens: Sequence[Token], verb: int, moved: int, kept: Collection[int]) -> bool | None:
    """A token stands outside of what a verb says; None if the verb says nothing."""
    form = tokens[verb].form
    chinese = any(not t.form.isascii() for t in tokens[max(0, verb - 1) : verb + 2])
    if form in _EMBEDDING_CHINESE or (form == "say" and chinese):
        return moved < verb
    if form not in _EMBEDDING and form != "say":
        return None
    marker = next((m for m in range(verb + 1, min(verb + NEAR, len(tokens))) if _opens(tokens, m)), None)
    if marker is None and form != "say":
        return None
    end = marker if marker is not None else next((m for m in range(verb + 1, len(tokens)) if m in kept), verb) + 1
    return moved < end


def _opens(tokens: Sequence[Token], n: int) -> bool:
    behind = tokens[n + 1 : n + 2]
    return tokens[n].form == "that" or (
        tokens[n].form == "to" and bool(behind) and behind[0].kind in ("word", "direction") and not behind[0].capital
    )
