"""Who acts: a verb in the passive that names the agent, laid beside an active one.

"The Office inspects the hives" may become "the hives are inspected by the Office"; what stands behind "by" must be
what stood before the verb. The same holds the other way round. 被 is noticed, not turned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from seqloom.retrieve.checking.alignment import BE, Alignment
from seqloom.retrieve.checking.tables import PREPOSITIONS
from seqloom.retrieve.checking.tokens import Token


class Passive(NamedTuple):
    verb: int
    by: int
    start: int  # of the clause
    end: int


def passives(tokens: Sequence[Token], clause: Sequence[int]) -> list[Passive]:
    """Verbs after a form of "be", with the next "by" of the clause, if a word follows it and no number."""
    found = []
    for n, token in enumerate(tokens):
        if token.form not in BE:
            continue
        start = next((m + 1 for m in range(n - 1, -1, -1) if clause[m] != clause[n] or tokens[m].form == "that"), 0)
        end = next((m for m in range(n, len(tokens)) if clause[m] != clause[n]), len(tokens))
        verb = next(
            (m for m in range(n + 1, end) if tokens[m].kind in ("word", "direction") and _verbal(tokens[m])), end
        )
        by = next((m for m in range(verb + 1, end - 1) if tokens[m].form == "by"), end)
        following = next((t for t in tokens[by + 1 : end] if t.kind != "function"), None)
        if following is not None and following.kind in ("word", "direction", "quantifier"):
            found.append(Passive(verb, by, start, end))
    return list({passive.by: passive for passive in found}.values())


def _verbal(token: Token) -> bool:
    return not token.form.endswith("ly")


def voice(pair: Alignment) -> bool:
    """What a verb's agent is has changed."""
    ours, theirs = passives(pair.sentence, pair.part), passives(pair.source, pair.piece)
    there = {n: at for n, at in enumerate(pair.partner) if at is not None}
    back = {at: n for n, at in there.items()}
    marked = [n for n, t in enumerate(pair.source) if t.form == "被"]
    if sum(t.form == "被" for t in pair.sentence) > len(marked):
        return True
    if any(n not in back and {n + 1, n + 2} & set(back) for n in marked):
        return True
    turned = [(p, pair.sentence, there, {q.verb for q in theirs}) for p in ours]
    turned += [(p, pair.source, back, {q.verb for q in ours}) for p in theirs]
    return _turned(pair, there) or any(
        partner.get(p.verb) not in verbs and _changed(p, tokens, partner) for p, tokens, partner, verbs in turned
    )


_HAVE = frozenset(("have", "has", "had"))


def _turned(pair: Alignment, there: Mapping[int, int]) -> bool:
    """The object of an active verb still follows it, but it is passive now: a wing houses, is housed in, a room."""
    for n, token in enumerate(pair.sentence[:-1]):
        at = there.get(n)
        if at is None or token.kind != "word" or not _verbal(token) or not n or pair.sentence[n - 1].form not in BE:
            continue
        active = not {t.form for t in pair.source[max(0, at - 3) : at]} & (BE | {"'s", "to", "not"}) and at > 0
        object_ = next(
            (m for m in range(at + 1, len(pair.source)) if pair.source[m].form not in ("the", "a", "an")), None
        )
        follows = next((m for m in range(n + 1, len(pair.sentence)) if pair.sentence[m].kind != "function"), None)
        subject = max((m for m in there if m < n and pair.sentence[m].kind == "word"), default=n)
        perfect = at > 0 and pair.source[at - 1].form in _HAVE and there[subject] < at
        if perfect and not _HAVE & {t.form for t in pair.sentence[max(0, n - 4) : n]}:
            return True  # they had warned, they were warned
        near = object_ is not None and pair.source[object_].kind == "word" and pair.piece[object_] == pair.piece[at]
        if active and near and follows is not None and there.get(follows) == object_:
            return True
    return False


def _changed(passive: Passive, tokens: Sequence[Token], partner: Mapping[int, int]) -> bool:
    """The verb is active on the other side, and the agent stands behind it there or its object before it."""
    verb = partner.get(passive.verb)
    if verb is None or passive.by in partner:
        return False
    agent = _first(tokens, partner, range(passive.by + 1, passive.end))
    patient = _first(tokens, partner, range(passive.start, passive.verb))
    return (agent is not None and agent > verb) or (patient is not None and patient < verb and agent is not None)


def _first(tokens: Sequence[Token], partner: Mapping[int, int], places: range) -> int | None:
    return next((partner[n] for n in places if n in partner and tokens[n].kind in ("word", "direction")), None)


def activated(pair: Alignment) -> list[int] | None:
    """Where the kept tokens stand in the source, in the order of the sentence with its passive put into the active.

    None if neither side is passive.
    """
    there = dict(pair.kept)
    back = {at: n for n, at in there.items()}
    ours, theirs = passives(pair.sentence, pair.part), passives(pair.source, pair.piece)
    for tokens, found, partner, others in (
        (pair.sentence, ours, there, {p.verb for p in theirs}),
        (pair.source, theirs, back, {p.verb for p in ours}),
    ):
        for p in found:
            if partner.get(p.verb) in others:  # passive on both sides
                continue
            phrase = (m for m in range(p.by + 2, p.end) if tokens[m].form in PREPOSITIONS - {"of"})
            end = next(phrase, p.end)  # of the agent: by the police in 2022
            agent = range(p.by + 1, end)
            turned = [*range(p.start), *agent, p.verb, *range(p.start, p.verb), *range(p.verb + 1, p.by)]
            turned += range(end, len(tokens))
            loose = [n for n in turned if tokens[n].kind == "negation" or tokens[n].form.endswith("ly")]
            order = [partner[n] for n in turned if n in partner and n not in loose]
            if all(one < other for one, other in pairwise(order)):
                return order
    return None
