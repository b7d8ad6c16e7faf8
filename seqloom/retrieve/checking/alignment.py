"""A sentence of an answer laid beside a sentence of a source: which of its tokens stand there, and where.

First the longest common runs in order (`difflib`), then runs that were moved. Function words are used to find the
runs, but need no partner. A single Chinese character has no partner out of order: it is too common to mean the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import pairwise

from seqloom.retrieve.checking.numbers import CALENDAR
from seqloom.retrieve.checking.references import Document, Sides, references
from seqloom.retrieve.checking.spelling import stem
from seqloom.retrieve.checking.tables import ANCHORS, PREPOSITIONS, SUBORDINATORS
from seqloom.retrieve.checking.tokens import Token

_WEIGHTY = ("word", "number", "unit", "direction")
_DATED = CALENDAR | {"year", "month", "day"}
BE = frozenset(("is", "are", "was", "were", "be", "been", "being"))
_INSTRUCTING = frozenset(("do", "and", "then", "please", "all", "let", "请", "应", "先"))
_DETERMINERS = frozenset(("the", "a", "an", "about", "that", "this", "these", "those", "its", "their", "his", "her"))
_LOOSE = frozenset(("or", "或", "$", "€", "£", "元", "约"))
_UNITS_OF_TIME = "year month week day h min night century decade quarter 年 月 日 天"
_WITH_TIMES = (
    "last next previous first late early morning afternoon evening night all 去 昨 今 明 次 上半年 下半年 底 末 初"
)
_TIMES, _TEMPORAL = frozenset(_UNITS_OF_TIME.split()), frozenset(_WITH_TIMES.split())
_LEADING = PREPOSITIONS | {stem(word) for word in PREPOSITIONS}
_TRAILING = frozenset(("之后", "之前", "间", "期间", "来", "内"))  # of a Chinese phrase that says when
_ORDERED = frozenset((stem("before"), "after"))  # 30 minutes before departure
_SPLITTING = frozenset(("because", "but", "whereas", "although", "though", "while"))


@dataclass(frozen=True)
class Alignment:
    """`partner[n]` is the index in `source` of the partner of `sentence[n]`, or None."""

    sentence: tuple[Token, ...]  # without breaks
    source: tuple[Token, ...]  # without breaks
    piece: tuple[int, ...]  # of each token of the source, the clause it stands in
    aside: frozenset[int]  # clauses in parentheses
    partner: tuple[int | None, ...]
    part: tuple[int, ...]  # of each token of the sentence, the clause it stands in
    named: frozenset[int] = frozenset()  # tokens of the sentence that stand for a pronoun of the source
    replaced: frozenset[int] = frozenset()  # tokens of the source that a name replaces

    @cached_property
    def missing(self) -> list[int]:
        """Tokens of the sentence that carry meaning and have no partner."""
        alone = [n for n, at in enumerate(self.partner) if at is None and self.sentence[n].kind != "function"]
        return [n for n in alone if n not in self.named]

    @cached_property
    def used(self) -> frozenset[int]:
        """Clauses of the source that the sentence takes a word from."""
        pairs = zip(self.sentence, self.partner, strict=True)
        return frozenset(self.piece[at] for token, at in pairs if at is not None and token.kind in _WEIGHTY)

    @property
    def descents(self) -> list[int]:
        """Where in the sentence the order of the source is left: indices into `kept`."""
        kept = self.kept
        return [n for n in range(1, len(kept)) if kept[n][1] < kept[n - 1][1]]

    @cached_property
    def kept(self) -> list[tuple[int, int]]:
        """Tokens whose order matters, with their partners."""
        pairs = enumerate(zip(self.sentence, self.partner, strict=True))
        return [(n, at) for n, (t, at) in pairs if at is not None and _ordered(t)]

    def led(self, run: Sequence[tuple[int, int]]) -> bool:
        """The run may have been moved as a whole: a date, a condition, or what follows the same preposition in both."""
        first, partner = run[0]
        ordered = all(one[1] < other[1] for one, other in pairwise(run))
        lead, old = _lead(self.sentence, first), _lead(self.source, partner)
        moved = [self.sentence[n] for n, _ in run]
        timed = all(t.kind in ("number", "unit") or t.form in _TEMPORAL for t in moved)
        dated = timed and any(t.form in _DATED | _TIMES or t.form.lstrip("每")[:1] == "周" for t in moved)
        same = lead == old != "of" and (lead in _LEADING or lead in SUBORDINATORS)
        measured = [t for t in moved if t.kind not in ("number", "unit", "quantifier")][:1]
        far = moved[0].kind != "word" and any(t.form in _ORDERED for t in measured)
        led = same or far or moved[0].kind == "condition" or moved[0].form in _LEADING
        return ordered and (dated or led or moved[-1].form in _TRAILING)

    def begins(self, n: int) -> bool:
        """A token of the source begins its clause, but for a negation: the verb of an instruction."""
        before = [t for m, t in enumerate(self.source[:n]) if self.piece[m] == self.piece[n]]
        while before and before[-1].kind == "negation":
            before.pop()
        if before and before[-1].form in ("and", "then") and before[0].kind != "function":
            return True
        return all(t.kind == "negation" or t.form in _INSTRUCTING for t in before)

    @cached_property
    def cut(self) -> frozenset[int]:
        """Tokens of the source in the last part of a clause, after a conjunction, if nothing of that part was kept."""
        taken, found = {at for at in self.partner if at is not None and self.source[at].kind != "function"}, set()
        for piece in set(self.piece):
            behind: list[int] = []
            for n in reversed([n for n, p in enumerate(self.piece) if p == piece]):
                if n in taken:
                    break
                behind.append(n)
                if self.source[n].form in ("and", "or", "but", "并", "且", "而"):
                    found.update(behind)
        return frozenset(found)

    def adjunct(self, lost: Sequence[int]) -> bool:
        """What was left out is a phrase that a preposition begins, within one clause."""
        begins = self.source[lost[0]].form in _LEADING or _lead(self.source, lost[0]) in _LEADING
        return begins and len({self.piece[n] for n in lost}) == 1

    def dropped(self, start: int, end: int) -> list[int]:
        """Tokens of the source in [start, end) that carry meaning and are no one's partner."""
        taken = {at for at in self.partner if at is not None} | self.replaced
        return [n for n in range(start, end) if n not in taken and self.source[n].kind != "function"]


def _ordered(token: Token) -> bool:
    """Its place among the others matters: not that of a modal verb, a conjunction or the sign of a currency."""
    return token.form in ANCHORS or (token.kind not in ("function", "modality") and token.form not in _LOOSE)


def _lead(tokens: Sequence[Token], n: int) -> str:
    """The word before a token, articles and what stands between left out."""
    for token in reversed(tokens[max(0, n - 3) : n]):
        if token.form not in _DETERMINERS and token.kind != "quantifier":
            return token.form
    return ""


def clauses(tokens: Sequence[Token]) -> tuple[list[Token], list[int], frozenset[int]]:
    """Tokens without breaks, the clause each stands in, and which clauses are in parentheses."""
    kept: list[Token] = []
    pieces: list[int] = []
    aside: set[int] = set()
    piece = 0
    for token, depth in _depths(tokens):
        if token.kind == "break":
            piece += 1
            continue
        piece += token.form in _SPLITTING
        kept.append(token)
        pieces.append(piece)
        if depth:
            aside.add(piece)
    return kept, pieces, frozenset(aside)


def outside(tokens: Sequence[Token]) -> list[Token]:
    """Tokens that are not in parentheses."""
    return [token for token, depth in _depths(tokens) if not depth]


def _depths(tokens: Sequence[Token]) -> Iterator[tuple[Token, int]]:
    depth = 0
    for token in tokens:
        if token.kind == "break":
            depth = max(0, depth + (token.form in "([（【") - (token.form in ")]）】"))
        yield token, depth


def align(sentence: Sequence[Token], source: Sequence[Token], document: Document | None = None) -> Alignment:
    """`document` has what a pronoun of the source may refer to."""
    ours, parts, _ = clauses(sentence)
    theirs, pieces, aside = clauses(source)
    a, b = [t.form for t in ours], [t.form for t in theirs]
    partner: list[int | None] = [None] * len(a)
    for i, j, size in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks():
        partner[i : i + size] = range(j, j + size)
    _match_moved(ours, a, b, partner)
    _settle(ours, b, partner)
    found = references(Sides(ours, theirs, parts, pieces, partner), document)
    return Alignment(
        tuple(ours), tuple(theirs), tuple(pieces), aside, tuple(partner), tuple(parts), found.named, found.replaced
    )


def _settle(ours: Sequence[Token], b: Sequence[str], partner: list[int | None]) -> None:
    """Exchange the partners of equal words where more of them then stand beside those of their neighbours."""
    places: dict[str, list[int]] = {}
    for at, form in enumerate(b):
        places.setdefault(form, []).append(at)
    for n, token in enumerate(ours):
        for at in places.get(token.form, ()):
            for step in (0, 1, -1):  # alone, or with the word behind it or before it
                pairs = {n: at, n + step: at + step}
                if all(0 <= m < len(ours) and 0 <= to < len(b) and ours[m].form == b[to] for m, to in pairs.items()):
                    changed = _given(ours, places, partner, pairs)
                    touched = [m for m, to in enumerate(changed) if to != partner[m]]
                    if _beside(ours, changed, touched) > _beside(ours, partner, touched):
                        partner[:] = changed


def _given(
    ours: Sequence[Token], places: Mapping[str, Sequence[int]], partner: Sequence[int | None], pairs: Mapping[int, int]
) -> list[int | None]:
    """With these partners; who had them before gets what was given up, or another equal word that is free."""
    changed = list(partner)
    for n, at in pairs.items():
        other = next((m for m, there in enumerate(changed) if there == at), None)
        if other is not None:
            free = next((place for place in places[ours[n].form] if place not in changed), None)
            changed[other] = free if changed[n] is None else changed[n]
        changed[n] = at
    return changed


def _beside(ours: Sequence[Token], partner: Sequence[int | None], places: Iterable[int]) -> int:
    """How many neighbours at the places have partners that are neighbours too; a function word counts a third."""
    found = 0
    for n in {n for m in places for n in (m - 1, m) if 0 <= n < len(partner) - 1}:
        one, other = partner[n], partner[n + 1]
        if one is not None and other == one + 1:
            found += 1 if "function" in (ours[n].kind, ours[n + 1].kind) else 3
    return found


def _match_moved(ours: Sequence[Token], a: list[str], b: list[str], partner: list[int | None]) -> None:
    """Give partners to runs that stand elsewhere in the source, the longest first."""
    passed: set[int] = set()  # function words that stand alone
    for _ in range(16):
        taken = {at for at in partner if at is not None}
        rest_a = [f"\0{n}" if partner[n] is not None or n in passed else form for n, form in enumerate(a)]
        rest_b = [f"\1{n}" if n in taken else form for n, form in enumerate(b)]
        i, j, size = SequenceMatcher(None, rest_a, rest_b, autojunk=False).find_longest_match()
        run = [t for t in ours[i : i + size] if t.kind != "function"]
        short = len(run) < 2 and all(
            t.kind in ("word", "direction") and len(t.form) == 1 and not t.form.isascii() for t in run
        )
        if not size:
            return
        if size == 1 and short:
            passed.add(i)
            continue
        partner[i : i + size] = range(j, j + size)
