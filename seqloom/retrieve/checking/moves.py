"""Are the words in another order, beyond what may change places without another meaning?

The tokens that a sentence shares with its source are a permutation. What a careful writer does is to exchange two
neighbouring stretches, "X Y" to "Y X": two predicates, a main clause and its subordinate clause, a phrase and what it
belongs to. Who does what to whom is turned by exchanging words around a verb, "X V Y" to "Y V X": no such exchange.
So a component of the permutation must be one exchange at joints: punctuation and conjunctions, or a phrase that
takes its preposition along, a genitive, an apposition, an instruction put into the passive. Only whole clauses may be
exchanged around another exchange. A clause keeps its subordinating conjunction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from seqloom.retrieve.checking.alignment import BE, Alignment
from seqloom.retrieve.checking.references import PRONOUNS
from seqloom.retrieve.checking.scope import rescoped
from seqloom.retrieve.checking.spelling import stem
from seqloom.retrieve.checking.tables import FUNCTION
from seqloom.retrieve.checking.tokens import Token
from seqloom.retrieve.checking.voice import activated

SHORT = 3  # words on each side of an apposition
APART = 3  # words between a noun and its pronoun
EQUATING = frozenset(("is", "was", "是", "the", "a", "an"))
SUBJECT = 6  # characters of a Chinese subject

_JOINING = """
and or but while whereas which who whom that then also 和 与 及 以及 并 并且 而 而且 且 但 但是 却 或 同时 也
"""
_COORDINATORS = frozenset(_JOINING.split())
_KINDS = {
    "because": "because as since due 因为 由于 因 鉴于",
    "although": "although though despite 虽然 尽管",
    "so": "so thus hence therefore 因此 所以 因而",
    "when": "when where whenever 当 时",
}
_SUBORDINATORS = {word: kind for kind, words in _KINDS.items() for word in words.split()}

Kept = Sequence[tuple[int, int]]  # tokens of the sentence that have a partner, with it


class Gap(NamedTuple):
    """What stands between two tokens that were kept."""

    border: bool  # the beginning or the end of the sentence, or punctuation
    forms: tuple[str, ...]

    @property
    def joint(self) -> bool:
        return self.border or bool(_COORDINATORS & set(self.forms)) or bool(self.kinds)

    @property
    def equates(self) -> bool:
        return bool({"is", "was", "是"} & set(self.forms)) and EQUATING.issuperset(self.forms)

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset(_SUBORDINATORS[form] for form in self.forms if form in _SUBORDINATORS)


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
            if _clauses(pair, first, second, plain) or (plain and _phrases(pair, first, second)):
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


def _gap(tokens: Sequence[Token], clause: Sequence[int], taken: set[int], start: int, end: int) -> Gap:
    """Between the tokens start and end, -1 and len(tokens) for none; function words only count as words."""
    border = start < 0 or end >= len(tokens) or clause[start] != clause[end]
    return Gap(border, tuple(tokens[n].form for n in range(start + 1, min(end, len(tokens))) if n not in taken))


class _Exchange(NamedTuple):
    """The gaps before, between and behind two runs, in the sentence and in the source, where their order differs."""

    ours: tuple[Gap, Gap, Gap]
    theirs: tuple[Gap, Gap, Gap]


def _exchange(pair: Alignment, first: Kept, second: Kept) -> _Exchange:
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
    return _Exchange(
        (ours(before, n), ours(first[-1][0], second[0][0]), ours(m, behind)),
        (theirs(lower, a), theirs(max(at for _, at in second), min(at for _, at in first)), theirs(b, upper)),
    )


def _clauses(pair: Alignment, first: Kept, second: Kept, plain: bool) -> bool:
    """Both runs end at joints in both orders; before them is a joint too or, if they are in order, what they share."""
    ours, theirs = _exchange(pair, first, second)
    if ours[0].kinds != theirs[1].kinds or ours[1].kinds != theirs[0].kinds:
        return False  # a clause got the conjunction of the other
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


def _phrases(pair: Alignment, first: Kept, second: Kept) -> bool:
    if rescoped(pair, first, second):
        return False
    if pair.led(first) or pair.led(second):
        return True
    ours, theirs = _exchange(pair, first, second)
    if _fronted(pair, first, ours, theirs):
        return True
    return (
        _genitive(pair, first, second, ours[1], theirs[1])
        or _apposition(pair, first, second, ours, theirs)
        or _instruction(pair, second)
        or _adverb(pair, first, second)
    )


def _genitive(pair: Alignment, first: Kept, second: Kept, ours: Gap, theirs: Gap) -> bool:
    """The consent of the landlord, the landlord's consent; hay fever symptoms, symptoms of hay fever; of single words
    also group with placebo, placebo group."""
    single, nouns = len(first) == len(second) == 1, [pair.sentence[n] for n, _ in (*first, *second)]
    joining = _JOINING_NOUNS if single else {"of"}
    short = single or (len(nouns) <= SHORT and all(t.kind == "word" for t in nouns))
    compound = short and not any(t.capital for t in nouns)
    for one, other in ((set(ours.forms), set(theirs.forms)), (set(theirs.forms), set(ours.forms))):
        if (_JOINING_NOUNS & one and _OWNING & other) or (compound and joining & one and not other):
            return not (ours.border or theirs.border)
    return False


_JOINING_NOUNS, _OWNING = frozenset(("of", "for", "from", "with", "by")), frozenset(("'s", "的"))


def _apposition(pair: Alignment, first: Kept, second: Kept, ours: Sequence[Gap], theirs: Sequence[Gap]) -> bool:
    """Chief executive Lena Marsh, and Lena Marsh, the chief executive, or Lena Marsh is the chief executive."""
    longest = SHORT if pair.sentence[first[0][0]].form.isascii() else SUBJECT
    short = len(first) <= longest and len(second) <= longest
    one = (ours[1].border or ours[1].equates) and ours[2].joint and not theirs[1].forms
    other = (theirs[1].border or theirs[1].equates) and theirs[2].joint and not ours[1].forms
    return short and (one or other)


def _instruction(pair: Alignment, second: Kept) -> bool:
    """Fill the kettle, and the kettle should be filled."""
    verb, at = second[-1]
    named = pair.sentence[verb].capital  # you refund RegioLine
    return pair.begins(at) and not named and any(t.form in BE for t in pair.sentence[:verb])


def _fronted(pair: Alignment, first: Kept, ours: Sequence[Gap], theirs: Sequence[Gap]) -> bool:
    """A first clause stands behind the subject now, with a comma: 乙方未经同意，不得 for 未经同意，乙方不得."""
    subject = len(first) <= SUBJECT and not pair.sentence[first[0][0]].form.isascii()
    follows = theirs[1].border and FUNCTION.issuperset(theirs[1].forms) and not theirs[2].border
    return subject and follows and theirs[0].border and ours[0].border and ours[2].border


def _adverb(pair: Alignment, first: Kept, second: Kept) -> bool:
    """Caused mainly, mainly caused; twice offered, offered twice."""
    alone = [pair.sentence[run[0][0]] for run in (first, second) if len(run) == 1]
    both = (*first, *second)
    within = len({pair.part[n] for n, _ in both}) == len({pair.piece[at] for _, at in both}) == 1
    if within and (any(t.form.endswith("ly") for t in alone) or any(_frequency(pair, run) for run in (first, second))):
        return True
    return len(alone) == 2 and any(t.form in ("most", "often") for t in alone)


def _frequency(pair: Alignment, run: Kept) -> bool:
    """Twice, three times; not twice as high."""
    number, counted = pair.sentence[run[0][0]], [pair.sentence[n].form for n, _ in run[1:]]
    behind = (*pair.sentence[run[-1][0] + 1 : run[-1][0] + 2], *pair.source[run[-1][1] + 1 : run[-1][1] + 2])
    often = number.form in ("once", "twice", "thrice") and not counted
    times = number.kind == "number" and counted in (["time"], ["tim"], ["次"])
    return (often or times) and not any(t.kind == "direction" or t.form in _COMPARED for t in behind)


_COMPARED = frozenset(("as", "the", "more", "than", "if", "when"))
