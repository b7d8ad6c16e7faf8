"""What stands between words that a sentence shares with its source, where two runs of them changed places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from seqloom.retrieve.checking.alignment import Alignment
from seqloom.retrieve.checking.tokens import Token

_JOINING = """
and or but while whereas which who whom that then also 和 与 及 以及 并 并且 而 而且 且 但 但是 却 或 同时 也
"""
_COORDINATORS = frozenset(_JOINING.split())
_KINDS = {
    "because": "because as since due 因为 由于 因 鉴于",
    "although": "although though despite 虽然 尽管",
    "so": "so thus hence therefore 因此 所以 因而",
    "when": "when where whenever if 当 时 如果 若 如",
}
_SUBORDINATORS = {word: kind for kind, words in _KINDS.items() for word in words.split()}

_EQUATING = frozenset(("is", "was", "是", "the", "a", "an"))

Kept = Sequence[tuple[int, int]]  # tokens of the sentence that have a partner, with it


class Gap(NamedTuple):
    """What stands between two tokens that were kept."""

    border: bool  # the beginning or the end of the sentence, or punctuation
    forms: tuple[str, ...]
    own: tuple[str, ...]  # those in the clause of the second token

    @property
    def joint(self) -> bool:
        return self.border or bool(_COORDINATORS & set(self.forms)) or bool(self.kinds)

    @property
    def coordinates(self) -> bool:
        return bool({"and", "or", "but", "和", "或", "但"} & set(self.forms))

    @property
    def equates(self) -> bool:
        return bool({"is", "was", "是"} & set(self.forms)) and _EQUATING.issuperset(self.forms)

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset(_SUBORDINATORS[form] for form in self.own if form in _SUBORDINATORS)


def _gap(tokens: Sequence[Token], clause: Sequence[int], taken: set[int], start: int, end: int) -> Gap:
    """Between the tokens start and end, -1 and len(tokens) for none; function words only count as words."""
    border = start < 0 or end >= len(tokens) or clause[start] != clause[end]
    between = [n for n in range(start + 1, min(end, len(tokens))) if n not in taken]
    own = [n for n in between if end >= len(tokens) or clause[n] == clause[end]]
    return Gap(border, tuple(tokens[n].form for n in between), tuple(tokens[n].form for n in own))


class Exchange(NamedTuple):
    """The gaps before, between and behind two runs, in the sentence and in the source, where their order differs."""

    ours: tuple[Gap, Gap, Gap]
    theirs: tuple[Gap, Gap, Gap]


def exchange(pair: Alignment, first: Kept, second: Kept) -> Exchange:
    mine, yours = {n for n, _ in pair.kept}, {at for _, at in pair.kept}

    def ours(start: int, end: int) -> Gap:
        return _gap(pair.sentence, pair.part, mine, start, end)

    def theirs(start: int, end: int) -> Gap:
        return _gap(pair.source, pair.piece, yours, start, end)

    n, m = first[0][0], second[-1][0]
    a, b = min(at for _, at in second), max(at for _, at in first)
    before, behind = (
        max((i for i in mine if i < n), default=-1),
        min((i for i in mine if i > m), default=len(pair.sentence)),
    )
    lower, upper = (
        max((i for i in yours if i < a), default=-1),
        min((i for i in yours if i > b), default=len(pair.source)),
    )
    return Exchange(
        (ours(before, n), ours(first[-1][0], second[0][0]), ours(m, behind)),
        (theirs(lower, a), theirs(max(at for _, at in second), min(at for _, at in first)), theirs(b, upper)),
    )
