"""The checks of a sentence that is no quotation. Each can say that something is wrong, none that a sentence is true."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

from seqloom.retrieve.checking import modals
from seqloom.retrieve.checking.alignment import Alignment, align, outside
from seqloom.retrieve.checking.moves import moved
from seqloom.retrieve.checking.quantities import quantities
from seqloom.retrieve.checking.references import Document
from seqloom.retrieve.checking.tables import DOUBTS, WEAK_CONDITIONS
from seqloom.retrieve.checking.tokens import OPPOSITES, Token
from seqloom.retrieve.checking.voice import voice

FAR = 2  # words of a source that may be left out within a clause

_SURNAMES = frozenset(
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林高梁郑罗宋谢唐韩曹许邓萧冯曾程蔡彭潘袁于董余苏叶吕魏蒋田杜丁沈姜范江"
    "傅钟卢汪戴崔任陆廖姚方金邱夏谭韦贾邹石熊孟秦阎薛侯雷白龙段郝孔邵史毛常万顾赖武康贺严尹钱施牛洪龚"
)
_PLACES = "省市县区镇乡村州国洲岛港湾山河湖海江队厂校院所局部社寺桥路街站"


def words(pair: Alignment) -> bool:
    """A word of the sentence does not stand in the source sentence, or the sentence has none that could."""
    if all(token.kind == "function" for token in pair.sentence):
        return True
    return any(pair.sentence[n].kind in ("word", "direction") for n in pair.missing)


def numbers(pair: Alignment) -> bool:
    """A number, date or unit of the sentence does not stand in the source sentence, or stands with another unit."""
    written = [token for n, token in enumerate(pair.sentence) if n not in pair.named]
    ours, theirs = Counter(quantities(written)), Counter(quantities(pair.source))
    single = [n for n in pair.missing if _single(pair, n)]
    ours -= Counter(quantities(pair.sentence[n : n + 2])[0] for n in single)
    alone = [n for n in pair.missing if n not in single and not _counted(pair, n)]
    if ours - theirs or any(pair.sentence[n].kind in ("number", "unit") for n in alone):
        return True
    both = [(n, at) for n, at in enumerate(pair.partner) if at is not None and pair.sentence[n].kind == "number"]
    leads = [(_LEADS.get(_before(pair.sentence, n)), _LEADS.get(_before(pair.source, at))) for n, at in both]
    return any(one and other and one != other for one, other in leads)


def _counted(pair: Alignment, n: int) -> bool:
    """A unit of a number of the source, which is compared with it: 30 seconds to 60 seconds, 30 to 60 seconds."""
    beside = [m for m in (n - 1, n + 1) if 0 <= m < len(pair.sentence) and pair.sentence[m].kind == "number"]
    return pair.sentence[n].kind == "unit" and any(pair.partner[m] is not None for m in beside)


def _single(pair: Alignment, n: int) -> bool:
    """One teaspoon, where the source has a teaspoon; once a week, where it has weekly."""
    counted = pair.sentence[n + 1].form if n + 1 < len(pair.sentence) else ""
    if pair.sentence[n].form == "once" and counted in ("a", "per"):
        at = pair.partner[n + 2] if n + 2 < len(pair.sentence) else None
        return at is not None and pair.source[at - 1].form == "per" and pair.source[at - 2].kind != "number"
    return pair.sentence[n].form == "1" and any(
        one.form in ("a", "an") and other.form == counted for one, other in pairwise(pair.source)
    )


# "rose by 5" and "rose to 5" differ
_LEADS = {"by": "by", "to": "to", "from": "from", "了": "by", "到": "to", "至": "to", "从": "from", "由": "from"}


def _before(tokens: Sequence[Token], n: int) -> str:
    """The word that a number depends on."""
    near = reversed(tokens[max(0, n - 4) : n])
    return next((t.form for t in near if t.kind == "function" and t.form not in ("than", "a")), "")


def names(pair: Alignment) -> bool:
    """A word that looks like a name does not stand in the source sentence.

    In English: a capital within the sentence, or at its start if a word with a capital was left out of the source.
    In Chinese: a surname and up to two characters, or up to three characters and a word such as 市 or 队. A name that
    looks otherwise is caught by `words`.
    """
    missing = set(pair.missing)
    left_out = any(pair.source[n].capital for n in pair.dropped(0, len(pair.source)))
    for n in missing:
        token = pair.sentence[n]
        if token.kind == "word" and token.capital and (n > 0 or left_out):
            return True
        if token.kind == "word" and not token.form.isascii():
            around = [t.form for t in pair.sentence[max(0, n - 2) : n + 4]]
            here = min(n, 2)
            if set("".join(around[: here + 1])) & _SURNAMES or any(form[-1] in _PLACES for form in around[here:]):
                return True
    return False


def _stated(tokens: Sequence[Token]) -> set[str]:
    return {token.form for token in tokens if token.kind == "condition"}


def forms(tokens: Sequence[Token]) -> set[str]:
    return {token.form for token in tokens}


def _changed(pair: Alignment, kind: str) -> bool:
    """Words of a kind were added to the sentence, or left out of the clauses that it takes up."""
    if any(pair.sentence[n].kind == kind for n in pair.missing):
        return True
    return bool(_lost(pair, kind))


def _lost(pair: Alignment, kind: str) -> list[int]:
    """Words of a kind that were left out of the clauses that the sentence takes up."""
    lost = [n for n in pair.dropped(0, len(pair.source)) if n not in pair.cut]
    return [n for n in lost if pair.source[n].kind == kind and pair.piece[n] in pair.used]


def negation(pair: Alignment) -> bool:
    return _changed(pair, "negation")


def quantifiers(pair: Alignment) -> bool:
    """As above, but 始终 before a negation only stresses it; and what happens every day does not happen this day."""
    if any(pair.sentence[n].kind == "quantifier" and not _denied(pair.sentence, n) for n in pair.missing):
        return True
    lost = _lost(pair, "quantifier")
    return any(not _stresses(pair.source[n : n + 2]) for n in lost) or _once(pair)


def _denied(tokens: Sequence[Token], n: int) -> bool:
    """ "Not have any influence" says no more than "no influence"."""
    return tokens[n].form == "any" and any(t.kind == "negation" for t in tokens[max(0, n - 3) : n])


def _stresses(both: Sequence[Token]) -> bool:
    return both[0].form == "always" and [t.kind for t in both[1:]] == ["negation"]


def _once(pair: Alignment) -> bool:
    units = [(n, at) for n, at in enumerate(pair.partner) if n and at and pair.sentence[n].kind == "unit"]
    return any(pair.source[at - 1].form == "per" and pair.sentence[n - 1].form in ("this", "that") for n, at in units)


def modality(pair: Alignment) -> bool:
    """As the others; besides, a modal verb went to another verb, or something intended is said to be done."""
    return modals.added(pair) or bool(_lost(pair, "modality")) or modals.exchanged(pair) or modals.done(pair)


def conditions(pair: Alignment) -> bool:
    """A condition or exception was left out, also one in a clause of its own."""
    ours, theirs = _stated(pair.sentence), _stated(pair.source)
    weak_ours, weak_theirs = WEAK_CONDITIONS & forms(pair.sentence), WEAK_CONDITIONS & forms(pair.source)
    if ours - theirs - ({"if"} if weak_theirs else set()) or theirs - ours - ({"if"} if weak_ours else set()):
        return True
    return any(_limits(pair, n) for n in pair.dropped(0, len(pair.source)))


def _limits(pair: Alignment, n: int) -> bool:
    """An exception, or a clause that begins with "only"."""
    form, begins = pair.source[n].form, n < 2 or pair.piece[n - 2] != pair.piece[n]
    return form == "except" or (form == "only" and begins)


def direction(pair: Alignment) -> bool:
    """A word of direction is not in the source sentence, or its opposite is and it was left out."""
    ours = {t.form for t in pair.sentence}
    theirs = {t.form for t in pair.source}
    lost = theirs - ours
    if any(OPPOSITES.get(form, frozenset()) & lost for form in ours - theirs):
        return True
    return any(pair.sentence[n].kind == "direction" for n in pair.missing)


def order(pair: Alignment) -> bool:
    """Words stand in another order than may be, or who acts has changed."""
    return voice(pair) or moved(pair)


def _equated(pair: Alignment) -> bool:
    """An added "is" joins two things that a verb of the source stands between, which was left out."""
    for (n, one), (m, other) in pairwise(pair.kept):
        between = [pair.sentence[i].form for i in range(n + 1, m) if pair.partner[i] is None]
        added = bool({"is", "are", "was", "were", "是"} & set(between)) and pair.piece[one] != pair.piece[other]
        if added and any(pair.source[i].kind == "word" for i in pair.dropped(one + 1, other)):
            return True
    return False


def stitched(pair: Alignment) -> bool:
    """Parts of the sentence stand apart in the source sentence, with more than an aside or a few words between them."""
    for (_, one), (_, other) in pairwise(pair.kept):
        lost = pair.dropped(one + 1, other)
        halves = {pair.piece[one], pair.piece[other]} & {pair.piece[n] for n in lost}
        if len(lost) > FAR and halves and not pair.adjunct(lost):
            return True
    return _equated(pair)


CHECKS: dict[str, Callable[[Alignment], bool]] = {
    "words": words,
    "numbers": numbers,
    "names": names,
    "negation": negation,
    "quantifiers": quantifiers,
    "modality": modality,
    "conditions": conditions,
    "direction": direction,
    "order": order,
    "stitched": stitched,
}


def failed(sentence: Sequence[Token], source: Sequence[Token], document: Document | None = None) -> tuple[str, ...]:
    """Names of the checks that a sentence fails beside a sentence of a source; see `align` for `document`."""
    whole = align(sentence, source, document)
    pairs = [whole, align(sentence, outside(source), document)] if whole.aside else [whole]
    found = min((_found(pair) for pair in pairs), key=len)
    if "conditions" not in found and conditions(whole):
        found = (*found, "conditions")
    return (*found, "question") if _asked(source) and not _asked(sentence) else found


def _found(pair: Alignment) -> tuple[str, ...]:
    return tuple(name for name, check in CHECKS.items() if check(pair))


def _asked(tokens: Sequence[Token]) -> bool:
    return bool(tokens) and tokens[-1].form in ("?", "？")


def cut(fragment: Sequence[Token], source: Sequence[Token]) -> tuple[str, ...]:
    """Of a part of a source sentence, the checks it fails because of what was cut away.

    A verbatim part may say the opposite of the whole: "X is safe" of "it is not true that X is safe".
    """
    pair = align(fragment, source)
    names = ("negation", "quantifiers", "modality", "conditions")
    found = [name for name in names if CHECKS[name](pair)]
    said = {t.form for t in fragment}
    if any(t.form in DOUBTS and t.form not in said for t in source):
        found.append("doubt")
    if _asked(source) and not _asked(fragment):
        found.append("question")
    return tuple(found)
