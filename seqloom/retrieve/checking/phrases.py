"""Exchanges of two neighbouring runs of words that leave the meaning: a phrase with its preposition, a genitive, an
apposition, an instruction put into the passive, an adverb, the particle of a verb, 将 and its object.
"""

from __future__ import annotations

from collections.abc import Sequence

from seqloom.retrieve.checking.alignment import BE, Alignment
from seqloom.retrieve.checking.gaps import Gap, Kept, exchange
from seqloom.retrieve.checking.numbers import CALENDAR
from seqloom.retrieve.checking.scope import rescoped
from seqloom.retrieve.checking.spelling import stem
from seqloom.retrieve.checking.tables import FUNCTION
from seqloom.retrieve.checking.tokens import Token

SHORT = 3  # words on each side of an apposition
SUBJECT = 6  # characters of a Chinese subject
OBJECT = 4  # words between a verb and its particle
NOUN = 8  # characters of a Chinese noun that is counted


def phrases(pair: Alignment, first: Kept, second: Kept) -> bool:
    """The exchange of two neighbouring runs is one that a careful writer makes."""
    if rescoped(pair, first, second):
        return False
    ours, theirs = exchange(pair, first, second)
    if pair.led(first) or pair.led(second):
        return ours[1].coordinates == theirs[1].coordinates  # rose by 5 and fell, fell by 5
    between = ours[1], theirs[1]
    return (
        _fronted(pair, first, ours, theirs)
        or _genitive(pair, first, second, *between)
        or _apposition(pair, first, second, ours, theirs)
        or _instruction(pair, second)
        or _adverb(pair, first, second)
        or _particle(pair, first, second, *between)
        or _denied(pair, first, second, *between)
        or _counted(pair, first, second)
        or _listed(pair, first, second, *between)
        or _disposed(pair, first, second, ours, theirs)
    )


def apart(pair: Alignment, first: Kept, second: Kept) -> bool:
    """A date went to the other side of words that are in another order themselves, and hold no date."""
    for run, other in ((first, second), (second, first)):
        moved = [pair.sentence[n] for n, _ in run]
        dated = any(map(_calendar, moved)) and all(t.kind in ("number", "unit") for t in moved)
        if dated and not any(_calendar(pair.sentence[n]) for n, _ in other) and pair.led(run):
            ours, theirs = exchange(pair, first, second)
            return ours[1].coordinates == theirs[1].coordinates and not rescoped(pair, first, second)
    return False


def _calendar(token: Token) -> bool:
    """A month, a day of the week, a year."""
    named = token.form in CALENDAR or token.form.startswith("周")
    return token.kind == "number" and (named or (token.form.isdigit() and len(token.form) == 4))


def _genitive(pair: Alignment, first: Kept, second: Kept, ours: Gap, theirs: Gap) -> bool:
    """The consent of the landlord, the landlord's consent; hay fever symptoms, symptoms of hay fever; of single words
    also group with placebo, placebo group."""
    single, nouns = len(first) == len(second) == 1, [pair.sentence[n] for n, _ in (*first, *second)]
    joining = _JOINING_NOUNS if single else {"of", "in"}
    short = single or (len(nouns) <= SHORT and all(t.kind == "word" for t in nouns))
    compound = short and not any(t.capital for t in nouns)
    for one, other in ((set(ours.forms), set(theirs.forms)), (set(theirs.forms), set(ours.forms))):
        if (_JOINING_NOUNS & one and _OWNING & other) or (compound and joining & one and not other):
            return not (ours.border or theirs.border)
    return False


_JOINING_NOUNS, _OWNING = frozenset(("of", "for", "from", "with", "by", "in")), frozenset(("'s", "的"))


def _apposition(pair: Alignment, first: Kept, second: Kept, ours: Sequence[Gap], theirs: Sequence[Gap]) -> bool:
    """Chief executive Lena Marsh, and Lena Marsh, the chief executive, or Lena Marsh is the chief executive."""
    longest = SHORT if pair.sentence[first[0][0]].form.isascii() else SUBJECT
    short = len(first) <= longest and len(second) <= longest
    one = (ours[1].border or ours[1].equates) and ours[2].joint and not theirs[1].forms
    other = (theirs[1].border or theirs[1].equates) and theirs[2].joint and not ours[1].forms
    return short and (one or other)


def _instruction(pair: Alignment, second: Kept) -> bool:
    """Fill the kettle, and the kettle should be filled; we caught bees, and bees were caught."""
    verb, at = second[-1]
    named = pair.sentence[verb].capital  # you refund RegioLine
    passive = not named and any(t.form in BE for t in pair.sentence[:verb])
    return passive and (pair.begins(at) or _agentless(pair, verb, at))


def _agentless(pair: Alignment, verb: int, at: int) -> bool:
    """We caught bees, bees were caught: whoever acts in the source is not named."""
    kept = {m for _, m in pair.kept if pair.source[m].kind != "negation"}
    named = any(m in kept for m in range(at) if pair.piece[m] == pair.piece[at])
    helped = [t.form for t in pair.sentence[max(0, verb - 2) : verb] if t.kind == "function"]
    active = not BE & {t.form for t in pair.source[max(0, at - 2) : at]}
    return not named and active and bool(BE & set(helped[-1:]))


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
    if within and (
        any(t.kind == "word" and t.form.endswith("ly") for t in alone)
        or any(_frequency(pair, run) for run in (first, second))
    ):
        return True
    return (len(alone) == 2 and any(t.form in ("most", "often") for t in alone)) or (
        within and _only_if(pair, alone, both)
    )


def _only_if(pair: Alignment, alone: Sequence[Token], both: Kept) -> bool:
    """Are only allowed if, are allowed only if; not: only dogs are allowed if."""
    places = [(n, at) for n, at in both if pair.sentence[n].form == "only"]
    if not places or all(t.form != "only" for t in alone):
        return False
    sides = ((pair.sentence, places[0][0]), (pair.source, places[0][1]))
    before = [[t.kind for t in tokens[n + 1 : n + 2]] == ["condition"] for tokens, n in sides]
    verbal = [n > 0 and (tokens[n - 1].form in BE or tokens[n - 1].kind == "modality") for tokens, n in sides]
    return (before[0] and verbal[1]) or (before[1] and verbal[0])


def _frequency(pair: Alignment, run: Kept) -> bool:
    """Twice, three times; not twice as high."""
    number, counted = pair.sentence[run[0][0]], [pair.sentence[n].form for n, _ in run[1:]]
    behind = (*pair.sentence[run[-1][0] + 1 : run[-1][0] + 2], *pair.source[run[-1][1] + 1 : run[-1][1] + 2])
    often = number.form in ("once", "twice", "thrice") and not counted
    times = number.kind == "number" and counted in ([stem("time")], ["次"])
    return (often or times) and not any(t.kind == "direction" or t.form in _COMPARED for t in behind)


_COMPARED = frozenset(("as", "the", "more", "than", "if", "when"))


def _particle(pair: Alignment, first: Kept, second: Kept, ours: Gap, theirs: Gap) -> bool:
    """Switch the oven off, switch off the oven."""
    for run, other in ((first, second), (second, first)):
        lone = len(run) == 1 and pair.sentence[run[0][0]].form in _PARTICLES and len(other) <= OBJECT
        if lone and not ours.joint and not theirs.joint and all(pair.sentence[n].kind == "word" for n, _ in other):
            return _contiguous(run, other)
    return False


_PARTICLES = frozenset(map(stem, ("off", "on", "up", "down", "out", "away", "back")))


def _contiguous(one: Kept, other: Kept) -> bool:
    """Nothing but articles can stand within two runs, in either text."""
    both = [*one, *other]
    spans = [max(side) - min(side) for side in ([n for n, _ in both], [at for _, at in both])]
    return all(span <= len(both) for span in spans)


def _denied(pair: Alignment, first: Kept, second: Kept, ours: Gap, theirs: Gap) -> bool:
    """Used no poison, did not use poison."""
    if len(first) != 1 or len(second) != 1 or ours.joint or theirs.joint:
        return False
    n, (m, to) = first[0][0], second[0]
    if pair.sentence[n].kind == "negation":
        before, verb = pair.sentence[n - 1 : n] if n else (), pair.sentence[m]
    else:
        before, verb = pair.source[to - 1 : to] if to else (), pair.sentence[n]
    helped = [t.form for t in before] in (["do"], ["does"], ["did"])
    return (
        helped and verb.kind in ("word", "direction") and "negation" in (pair.sentence[n].kind, pair.sentence[m].kind)
    )


def _counted(pair: Alignment, first: Kept, second: Kept) -> bool:
    """17家图书馆, 图书馆17家."""
    for run, other in ((first, second), (second, first)):
        number, *counted = [pair.sentence[n] for n, _ in run]
        noun = [pair.sentence[n] for n, _ in other]
        short = number.kind == "number" and len(counted) <= 1 and len(noun) <= NOUN
        if short and all(t.kind == "word" and not t.form.isascii() for t in (*counted, *noun)):
            return _contiguous(run, other)
    return False


def _listed(pair: Alignment, first: Kept, second: Kept, ours: Gap, theirs: Gap) -> bool:
    """岩羊和山羊, 山羊和岩羊; not 与甲相比. English "and" may join clauses: the dog bit the cat and the man ran."""
    joined = ours.forms == theirs.forms and ours.forms in (("和",), ("及",), ("以及",)) and not ours.border
    compared = {"比", "相"} & {t.form for n, t in enumerate(pair.sentence) if pair.part[n] == pair.part[first[0][0]]}
    return joined and not compared and max(len(first), len(second)) <= NOUN


def _disposed(pair: Alignment, first: Kept, second: Kept, ours: Sequence[Gap], theirs: Sequence[Gap]) -> bool:
    """将滤芯冲洗, 冲洗滤芯."""
    marked = ours[0].forms[-1:] in (("将",), ("把",)), theirs[0].forms[-1:] in (("将",), ("把",))
    short = len(first) <= SUBJECT and len(second) <= SUBJECT
    return (
        short and marked[0] != marked[1] and not ours[1].forms and not theirs[1].border and _contiguous(first, second)
    )
