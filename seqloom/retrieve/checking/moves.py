"""Are the words in another order, beyond what may change places without another meaning?

The tokens that a sentence shares with its source are a permutation. What a careful writer does is to exchange two
neighbouring stretches, "X Y" to "Y X": two predicates, a main clause and its subordinate clause, a phrase and what it
belongs to. Who does what to whom is turned by exchanging words around a verb, "X V Y" to "Y V X": no such exchange.
So a component of the permutation must be one exchange at joints, which are punctuation and conjunctions, or one of
phrases (see `phrases`). Only whole clauses and dates may be exchanged around another exchange. A clause keeps its
subordinating conjunction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seqloom.retrieve.checking.alignment import Alignment
from seqloom.retrieve.checking.gaps import Gap, Kept, exchange
from seqloom.retrieve.checking.phrases import apart, phrases
from seqloom.retrieve.checking.references import PRONOUNS
from seqloom.retrieve.checking.spelling import stem
from seqloom.retrieve.checking.tokens import Token
from seqloom.retrieve.checking.voice import activated

APART = 3  # words between a noun and its pronoun


def moved(pair: Alignment) -> bool:
    """Some words stand where they may not have been moved to."""
    kept = pair.kept
    if {"respective", "respectively", "分别"} & {t.form for t in pair.source} and pair.descents:
        return True
    if _explained(pair, kept, 0, len(kept)) or activated(pair) is not None:
        return False
    return not any(_explained(pair, rest, 0, len(rest)) for rest in _without_noun(pair, kept))


def _explained(pair: Alignment, kept: Kept, start: int, end: int) -> bool:
    """kept[start:end] is in order, or made of exchanges."""
    at = [partner for _, partner in kept[start:end]]
    size = len(at)
    if all(at[n] < at[n + 1] for n in range(size - 1)):
        return True
    highest, lowest = [at[0]], [at[-1]]
    for n in range(1, size):
        highest.append(max(highest[-1], at[n]))
        lowest.append(min(lowest[-1], at[-1 - n]))
    lowest.reverse()
    for n in range(1, size):  # everything before stands before everything after: two components
        if highest[n - 1] < lowest[n]:
            return _explained(pair, kept, start, start + n) and _explained(pair, kept, start + n, end)
    for n in range(1, size):
        if min(at[:n]) > max(at[n:]):
            first, second = kept[start : start + n], kept[start + n : end]
            plain = _ordered(first) and _ordered(second)
            exchanged = phrases if plain else apart
            if _clauses(pair, first, second, plain) or exchanged(pair, first, second):
                return _explained(pair, kept, start, start + n) and _explained(pair, kept, start + n, end)
    return False


def _without_noun(pair: Alignment, kept: Kept) -> Iterator[Kept]:
    """Without a noun that changed places with its pronoun: A ends the lease if B breaks it, if B breaks the lease."""
    back = {at: n for n, at in kept}
    for n in range(len(kept)):
        for size in (1, 2, 3):
            run, rest = kept[n : n + size], [*kept[:n], *kept[n + size :]]
            if n + size > len(kept) or run[-1][1] - run[0][1] != run[-1][0] - run[0][0]:
                break
            if any(pair.sentence[i].kind != "word" for i, _ in run):
                break
            before = kept[n - 1][1] if n else -1
            lower = max((at for _, at in rest if at < run[0][1]), default=None)
            other = back[lower] if lower is not None else -1
            apart = min(abs(run[0][0] - other), abs(run[0][1] - before)) > APART
            if apart and _pronoun(pair.source, before) and _pronoun(pair.sentence, other):
                yield rest


def _pronoun(tokens: Sequence[Token], n: int) -> bool:
    """A pronoun follows the token, with at most two function words between."""
    for token in tokens[n + 1 : n + 4]:
        if token.form in PRONOUNS:
            return True
        if token.kind not in ("function", "condition", "modality"):
            return False
    return False


def _ordered(run: Kept) -> bool:
    return all(run[n][1] < run[n + 1][1] for n in range(len(run) - 1))


def _clauses(pair: Alignment, first: Kept, second: Kept, plain: bool) -> bool:
    """Both runs end at joints in both orders; before them is a joint too or, if they are in order, what they share."""
    ours, theirs = exchange(pair, first, second)
    if ours[0].kinds != theirs[1].kinds or ours[1].kinds != theirs[0].kinds:
        return False  # a clause got the conjunction of the other
    if not plain and any(all(pair.sentence[n].capital for n, _ in run) for run in (first, second)):
        return False  # a name is no clause
    shared = max((n for n, _ in pair.kept if n < first[0][0]), default=-1)
    if shared >= 0 and _conditional(pair.sentence[shared]):
        return False  # so did the clause behind "if"
    if plain and ours[0].border and ours[1].border and theirs[1].border and theirs[2].border:
        return True  # an aside stands on the other side of its noun
    if not (ours[1].joint and theirs[1].joint and ours[2].joint and theirs[2].joint):
        return _reported(pair, first, theirs)
    return plain or (ours[0].joint and theirs[0].joint)


def _conditional(token: Token) -> bool:
    return token.kind == "condition" or token.form in _ORDERING


_ORDERING = frozenset(map(stem, ("before", "after", "until", "unlike", "instead")))


def _reported(pair: Alignment, first: Kept, theirs: tuple[Gap, Gap, Gap]) -> bool:
    """Who said it, in front or behind."""
    speaks = pair.sentence[first[-1][0]].form == "say"
    return speaks and theirs[1].border and theirs[2].border and pair.part[first[0][0]] == pair.part[first[-1][0]]
