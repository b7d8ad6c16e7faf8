"""Words that a writer put where the source has a pronoun: "it" became "the lighthouse", "the dose" "the dose of Velor".

The words must stand together in the same document: in the sentence itself or in one of the two before, or in its topic,
which is the first sentence and the name of the file. And the source must leave the place open: a pronoun or "this"
stands there, or nothing and the words are joined by "of" or a possessive, or a general noun ("the company") or one that
the document sets beside the name ("the chair, Priya Nair"). A name in the place of another name is an alteration.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from seqloom.retrieve.checking.spelling import stem
from seqloom.retrieve.checking.tokens import Token

LONGEST = 4  # English words of a reference
LONGEST_CHINESE = 9  # characters
MOST = 2  # references in a sentence
OPENING = 4  # words of a source sentence, after which a pronoun refers to something within it

_FOR_PERSONS = "he him his she her hers 他 她 他们 她们"
_FOR_THINGS = "it its they them their theirs this these those one ones 它 它们 其 该 此 这"
_PERSONAL = frozenset(_FOR_PERSONS.split())
PRONOUNS = _PERSONAL | frozenset(_FOR_THINGS.split())

# Nouns that stand for a name of their kind: "the company" for Sundlink.
_KINDS = """
company firm group organisation agency authority institute council committee court bank club school university team
party government ministry office appliance device unit machine product system software tool service drug medicine
building house tower bridge ship site facility project plan proposal programme island town city village river lake
mountain animal bird species plant man woman director chair president minister mayor captain author writer study book
soup dish bread vehicle car train line road station terminal museum hotel
"""
_KINDS_CHINESE = "本机 本品 本产品 本公司 公司 集团 本研究 本条例 本合同 本协议 本法 本书 大桥 机器 产品 设备 项目 工程"
_GENERAL, _GENERAL_CHINESE = frozenset(map(stem, _KINDS.split())), frozenset(_KINDS_CHINESE.split())
_POSSESSIVE = ("'s", "的")


class Found(NamedTuple):
    """What is accounted for by references."""

    named: frozenset[int]  # tokens of the sentence
    replaced: frozenset[int]  # tokens of the source


class Sides(NamedTuple):
    """A sentence beside its source, both without breaks; the clause of each token; partners of the sentence's."""

    sentence: Sequence[Token]
    source: Sequence[Token]
    parts: Sequence[int]
    pieces: Sequence[int]
    partner: Sequence[int | None]


class Document(Protocol):
    """Sentences that a reference may come from, without function words; the first of `near` is the source sentence."""

    @property
    def near(self) -> Sequence[Sequence[Token]]: ...
    @property
    def topic(self) -> Sequence[Sequence[Token]]: ...
    @property
    def every(self) -> Sequence[Sequence[Token]]: ...


def references(sides: Sides, document: Document | None) -> Found:
    named: set[int] = set()
    replaced: set[int] = set()
    runs = list(_runs(sides))
    for start, end in runs[: MOST + 1]:
        if document is not None and (gone := _accounted(sides, start, end, document)) is not None:
            named.update(range(start, end))
            replaced.update(gone)
    return Found(frozenset(named), frozenset(replaced)) if len(runs) <= MOST else Found(frozenset(), frozenset())


def _runs(sides: Sides) -> Iterator[tuple[int, int]]:
    """Stretches of words without a partner, [start, end), within a clause."""
    start = end = -1
    for n, token in enumerate(sides.sentence):
        new = token.kind in _NOMINAL and sides.partner[n] is None
        if start >= 0 and (sides.parts[n] != sides.parts[start] or (token.kind != "function" and not new)):
            yield start, end
            start = -1
        if new:
            start, end = (n if start < 0 else start), n + 1
    if start >= 0:
        yield start, end


def _accounted(sides: Sides, start: int, end: int, document: Document) -> list[int] | None:
    """Tokens of the source that the run replaces, or None if it is no reference."""
    run = [t for t in sides.sentence[start:end] if t.kind != "function"]
    chinese = not run[0].form.isascii() or not run[-1].form.isascii()
    if len(run) > (LONGEST_CHINESE if chinese else LONGEST) or all(t.kind == "number" for t in run):
        return None
    if chinese and len(run) < 2:  # one character does not make a word
        return None
    gap = _gap(sides, start, end)
    lost = [n for n in gap if sides.source[n].kind != "function" and sides.source[n].form not in _TITLES]
    if lost:
        whole = chinese and _whole(sides, lost, end, run, document)
        return lost if whole or _same_thing(sides, gap, lost, run, document) else None
    pronouns = PRONOUNS & {sides.source[n].form for n in gap}
    ours = {"we", "our", "us"} & {sides.source[n].form for n in gap}
    allowed = (
        (ours and len(run) == 1 and run[0].form in _AUTHORS)
        or _longer(sides, start, end, document.every)
        or (pronouns and _meant(sides, gap, pronouns, run, document))
        or (_joined(sides, start, end) and _stands(run, document.topic))
        or _closer(sides, gap, end, run, document)
        or (chinese and _left_out_subject(sides, start, end, run, document))
        or (chinese and _left_out_object(sides, start, end, run, document))
        or (chinese and _located(sides, end, run, document))
    )
    return [] if allowed else None


def _stands(run: Sequence[Token], sentences: Sequence[Sequence[Token]]) -> bool:
    return any(_places(run, tokens) for tokens in sentences)


def _meant(
    sides: Sides, gap: Sequence[int], pronouns: frozenset[str], run: Sequence[Token], document: Document
) -> bool:
    """A pronoun may mean the run: one within a long sentence what that has, one of a person who was named last."""
    if _within(sides, gap):
        return _stands(run, document.near[:1])
    if pronouns & _PERSONAL:
        return _stands(run[-1:], document.near[:2]) and _stands(run, document.every)
    return _stands(run, [*document.near[: 2 if run[0].capital else 3], *document.topic])


def _closer(sides: Sides, gap: Sequence[int], end: int, run: Sequence[Token], document: Document) -> bool:
    """The noun got a modifier that it has elsewhere: the terminal, the ferry terminal."""
    if end >= len(sides.sentence):
        return False
    definite = not run[0].form.isascii() or any(sides.source[n].form == "the" for n in gap)
    head = sides.sentence[end].form
    if definite and len(run) == 1 and run[0].form.isascii() and all(_places(run, topic) for topic in document.topic):
        return True  # the gannet population, in a file and under a first sentence about the gannet
    places = [(tokens, at) for tokens in (*document.near, *document.topic) for at in _places(run, tokens)]
    return (
        definite and head not in _SIDES and any(head in [t.form for t in tokens[at : at + 2]] for tokens, at in places)
    )


_AUTHORS = frozenset(map(stem, ("study", "authors", "researchers", "team", "trial", "paper")))  # who say "we"
_TITLES = frozenset(("mr", "mrs", "ms", "miss", "dr", "prof", "professor", "sir"))


def _within(sides: Sides, gap: Sequence[int]) -> bool:
    """A pronoun refers to something in its own sentence: much stands before it, and no other pronoun does."""
    before = sides.source[: gap[0]]
    opening = [t for n, t in enumerate(before) if sum(u.kind != "function" for u in before[:n]) < OPENING]
    return sum(t.kind != "function" for t in before) > OPENING and not any(t.form in PRONOUNS for t in opening)


def _longer(sides: Sides, start: int, end: int, document: Sequence[Sequence[Token]]) -> bool:
    """A name in full: Solvane Motors for Solvane, Rupert Lang for Mr Lang."""
    run = [t for t in sides.sentence[start:end] if t.kind != "function"]
    if not all(t.capital for t in run):
        return False
    before = sides.sentence[start - 1 : start] if start else ()
    for known in (before, sides.sentence[end : end + 1]):
        full = [*known, *run] if known is before else [*run, *known]
        if known and known[0].capital and any(_places(full, tokens) for tokens in document):
            return True
    return False


_NOMINAL = ("word", "direction", "number")
_VERBAL = ("modality", "negation")  # between a subject and its verb


def _places(run: Sequence[Token], tokens: Sequence[Token]) -> list[int]:
    """Where the run ends in the tokens of a sentence, which are taken without function words."""
    wanted = [t.form for t in run]
    there = [t.form for t in tokens]
    return [n + len(wanted) for n in range(len(there) - len(wanted) + 1) if there[n : n + len(wanted)] == wanted]


def _gap(sides: Sides, start: int, end: int) -> list[int]:
    """Tokens of the source where the run would stand that are no one's partner, and function words among them."""
    taken = {at for n, at in enumerate(sides.partner) if at is not None and _weighs(sides.sentence[n])}
    kinds = (*_NOMINAL, "unit")
    matched = [n for n, t in enumerate(sides.sentence) if sides.partner[n] is not None and t.kind in kinds]
    before = max((n for n in matched if n < start), default=None)
    after = min((n for n in matched if n >= end), default=None)
    found: set[int] = set()
    if after is not None and (at := sides.partner[after]) is not None and sides.parts[after] == sides.parts[start]:
        if sides.source[at + 1 : at + 2] and sides.source[at + 1].form in PRONOUNS and _first(sides, at):
            found.add(at + 1)  # descale it, the kettle must be descaled
        n = at - 1
        while n >= 0 and sides.pieces[n] == sides.pieces[at] and (n not in taken or sides.source[n].kind in _VERBAL):
            found.update({n} - taken)
            n -= 1
        n = next(n for n, piece in enumerate(sides.pieces) if piece == sides.pieces[at])
        opens = not any(
            t.kind == "word" and at is not None for t, at in zip(sides.sentence[:start], sides.partner, strict=False)
        )
        if opens and not any(_weighs(sides.source[m]) for m in found):  # the subject, if a phrase follows it
            while n < at and n not in taken:
                found.add(n)
                n += 1
    if before is not None and (at := sides.partner[before]) is not None and sides.parts[before] == sides.parts[start]:
        n = at + 1
        while n < len(sides.source) and sides.pieces[n] == sides.pieces[at]:
            if n in taken and sides.source[n].kind not in _VERBAL:
                break
            found.update({n} - taken)
            n += 1
    return sorted(found)


def _weighs(token: Token) -> bool:
    return token.kind != "function" or token.form in PRONOUNS


def _first(sides: Sides, at: int) -> bool:
    """The token of the source is the first of its clause that is no function word."""
    before = [t for t, piece in zip(sides.source[:at], sides.pieces, strict=False) if piece == sides.pieces[at]]
    return all(t.kind in ("function", "negation") for t in before)


def _joined(sides: Sides, start: int, end: int) -> bool:
    """The run is a complement: of Velorin, the Group's."""
    led = [t.form for t in sides.sentence[max(0, start - 2) : start] if t.form not in ("the", "a", "an")]
    follows = sides.sentence[end].form if end < len(sides.sentence) else ""
    return led[-1:] == ["of"] or follows in _POSSESSIVE


def _left_out_subject(sides: Sides, start: int, end: int, run: Sequence[Token], document: Document) -> bool:
    """A Chinese sentence has no subject in the source, and got one that begins a sentence of the document."""
    after = next((n for n in range(end, len(sides.sentence)) if sides.partner[n] is not None), None)
    if after is None or sides.parts[after] != sides.parts[start]:
        return False
    at = sides.partner[after] or 0
    leads = any(_leads(run, tokens, OPENING) for tokens in (*document.near, *document.topic))
    return _first(sides, at) and sides.pieces[at] == 0 and leads


def _titular(run: Sequence[Token], document: Document) -> bool:
    """The document is about the run: its file has the name, or no other word of the kind is before it in the text."""
    kind, (first, *names) = run[-1].form, document.topic
    return _stands(run, names) or (kind in _PLACES and _leads(run, first, len(first)))


def _leads(run: Sequence[Token], tokens: Sequence[Token], most: int) -> bool:
    """Whether at most `most` tokens precede the run and none of them ends like it: 青石岛, without a second 岛."""
    kind = [n + 1 for n, t in enumerate(tokens) if t.form == run[-1].form][:1]
    return bool(kind) and _places(run, tokens)[:1] == kind and kind[0] - len(run) <= most


_PLACES = frozenset("省市县区镇乡村州国岛港湾山河湖海江城桥楼寺塔站馆校院厂店")


def _whole(sides: Sides, lost: Sequence[int], end: int, run: Sequence[Token], document: Document) -> bool:
    """The name of what the document is about, for all of it: 青石岛 for 全岛."""
    head = sides.sentence[end : end + 1]
    behind = sides.source[lost[-1] + 1].form if lost[-1] + 1 < len(sides.source) else ""
    whole = len(lost) == 1 and sides.source[lost[0]].form in ("全", "本", "我")
    return whole and bool(head) and head[0].form == behind and _titular([*run, *head], document)


def _located(sides: Sides, end: int, run: Sequence[Token], document: Document) -> bool:
    """云州城北面的城墙 for 北面的城墙, in a document about 云州城."""
    head = sides.sentence[end].form if end < len(sides.sentence) else ""
    return head in _SIDES and sides.partner[end] is not None and _titular(run, document)


_SIDES = frozenset("东西南北内外上")


def _left_out_object(sides: Sides, start: int, end: int, run: Sequence[Token], document: Document) -> bool:
    """A Chinese clause ends with its verb in the source, and got what the document is about as its object: 使用本品."""
    at = sides.partner[start - 1] if start else None
    ends = end == len(sides.sentence) or sides.parts[end] != sides.parts[start]
    if at is None or not ends or sides.parts[start - 1] != sides.parts[start]:
        return False
    last = at + 1 == len(sides.source) or sides.pieces[at + 1] != sides.pieces[at]
    itself = "".join(t.form for t in run) in _GENERAL_CHINESE and run[0].form == "本" and _stands(run, document.every)
    subject = bool(_places(run, document.near[0][: len(run)]))  # 电池须由专人更换，用户不得拆卸电池
    return last and (itself or subject or _titular(run, document))


def _same_thing(
    sides: Sides, gap: Sequence[int], lost: Sequence[int], run: Sequence[Token], document: Document
) -> bool:
    """A noun was replaced by the name of what it means, or the name by the noun."""
    gone = [sides.source[n] for n in lost]
    if any(t.kind not in _NOMINAL for t in gone) or len(gone) > LONGEST:
        return False
    near = _stands(run, [*document.near, *document.topic])
    if not run[0].form.isascii():
        pointed = len(gone) <= 2 and lost[0] > 0 and sides.source[lost[0] - 1].form in ("该", "此", "这")
        general = "".join(t.form for t in gone) in _GENERAL_CHINESE
        return (near and pointed) or (general and _stands(run, document.topic))
    if any(t.capital for t in run) == gone[-1].capital:
        return False
    definite = any(sides.source[n].form in ("the", "this") for n in gap)
    if near and definite and len(gone) == 1 and gone[0].form in _GENERAL:
        return True
    beside = ([*gone, *run], [*run, *gone])
    return any(_places(both, tokens) for both in beside for tokens in document.every)
