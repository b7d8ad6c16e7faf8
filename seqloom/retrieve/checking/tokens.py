"""A sentence as tokens in a normal form, each with the part it plays: word, number, unit, negation and so on.

Words are reduced to a crude stem, contractions are expanded, numbers and units get one spelling ("1,000", "1000" and
"一千"). English is split at spaces. Of Chinese the words of `tables` are read whole and all else character by
character: no dictionary of the language is needed, because tokens are only ever compared with those of a source.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from seqloom.retrieve.checking import numbers
from seqloom.retrieve.checking.spelling import stem
from seqloom.retrieve.checking.tables import (
    ANTONYMS,
    CONDITIONS,
    DOUBTS,
    FUNCTION,
    INTENTIONS_CHINESE,
    LIGHT,
    MODALITIES,
    NEGATIONS,
    QUANTIFIERS,
    SYNONYMS,
    WHOLE,
)

CUES = ("negation", "quantifier", "modality", "condition")  # kinds that may be neither added nor dropped
CJK = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"


class Token(NamedTuple):
    form: str  # normal form, which tokens are compared by
    kind: str  # "word", "function", "number", "unit", "direction", "break" or one of CUES
    start: int
    end: int
    capital: bool = False


def _listed(text: str) -> list[str]:
    return [word.replace("_", " ") for word in text.split()]


def _opposites() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for pair in ANTONYMS.split():
        left, right = (_listed(side.replace("+", " ")) for side in pair.split("/"))
        for one, other in ((left, right), (right, left)):
            for word in one:
                word = SYNONYMS.get(word, word)
                found.setdefault(stem(word), set()).update(stem(SYNONYMS.get(o, o)) for o in other)
    return {word: frozenset(others) for word, others in found.items()}


OPPOSITES = _opposites()  # of a form: the forms that mean the opposite


# Words of direction in some contexts only: their opposite is noticed, their absence is not.
_FUNCTIONAL = (
    *("on", "with", "over", "since", "up", "down", "open", "to", "from", "for", "against"),
    *("because", "due", "although", "though", "despite", "and"),
)


def _roles() -> dict[str, tuple[str, str]]:
    """Of each listed word or phrase, its normal form and its kind. Later tables win."""
    roles = dict.fromkeys([*WHOLE.split(), *DOUBTS, *INTENTIONS_CHINESE.split(), "per cent"], ("", "word"))
    roles |= dict.fromkeys([*FUNCTION, "'s"], ("", "function"))
    for pair in ANTONYMS.split():
        roles |= dict.fromkeys(_listed(re.sub(r"[+/]", " ", pair)), ("", "direction"))
    roles |= dict.fromkeys(("fewer", "till"), ("", "direction"))
    for kind, table in (("quantifier", QUANTIFIERS), ("modality", MODALITIES)):
        roles |= {word: (form, kind) for form, words in table.items() for word in _listed(words)}
    roles |= {word: (form, "condition") for form, words in CONDITIONS.items() for word in _listed(words)}
    roles |= dict.fromkeys(_listed(NEGATIONS), ("not", "negation"))
    roles |= dict.fromkeys(_FUNCTIONAL, ("", "function"))
    return {word: (form or SYNONYMS.get(word, word), kind) for word, (form, kind) in roles.items()}


ROLES = _roles()
_CHINESE = sorted(
    (w for w in {*ROLES, *SYNONYMS, *numbers.UNITS} if not w.isascii() and re.match(f"[{CJK}]", w)), key=len
)
_PHRASES = sorted((word for word in {*ROLES, *numbers.UNITS} if " " in word), key=len)
_PATTERN = re.compile(
    "|".join(
        (
            rf"(?P<number>{numbers.PATTERN})",
            r"(?P<clock>\b[ap](?:m\b|\.\s?m\b\.?))",
            r"(?P<phrase>\b(?:" + "|".join(map(re.escape, reversed(_PHRASES))) + r")\b)",
            r"(?P<word>(?:\b(?:non|anti|ex|pre|post|sub|un|co)-)?[^\W\d_" + CJK + r"]+(?:['’][^\W\d_" + CJK + r"]+)*)",
            r"(?P<chinese>" + "|".join(map(re.escape, reversed(_CHINESE))) + rf"|[{CJK}])",
            r"(?P<symbol>[%％$€£¥°℃]C?)",
            r"(?P<break>[,;:()\[\]，；：（）【】。.!?！？—–、]|-{2})",
        )
    ),
    re.IGNORECASE,
)
_CONTRACTED = {"won't": ("will", "not"), "can't": ("can", "not"), "cannot": ("can", "not"), "shan't": ("shall", "not")}
_ENDINGS = {"re": "are", "ll": "will", "ve": "have", "m": "am", "d": "would"}


def tokens(text: str) -> list[Token]:
    """The tokens of a text, with their places in it."""
    found: list[Token] = []
    for match in _PATTERN.finditer(text):
        start, end, piece = match.start(), match.end(), match.group()
        after_number = bool(found) and found[-1].kind == "number" and not text[found[-1].end : start].strip(" -\u00a0")
        group = match.lastgroup
        if group == "number" and not (after_number and piece.lower() in numbers.UNITS):
            number = numbers.value(piece)
            found.append(Token(number.rstrip("%"), "number", start, end))
            if number.endswith("%"):
                found.append(Token("%", "unit", start, end))
        elif group == "break":
            found.append(Token(piece, "break", start, end))
        elif group == "clock" and after_number:
            time = numbers.clock(found[-1].form, piece[0].lower() + "m")
            found[-1] = found[-1]._replace(form=time or found[-1].form, end=end)
        elif group == "symbol" or (unit := numbers.unit(piece, after_number)):
            found.append(Token(numbers.unit(piece, True) if group == "symbol" else unit, "unit", start, end))
        elif group in ("word", "clock"):
            found += _word(piece, start, end, bool(found))
        else:
            form, kind = ROLES.get(piece.lower(), (SYNONYMS.get(piece, piece), "word"))
            found.append(Token(stem(form) if kind == "direction" else form, kind, start, end))
    return _in_context(found, text)


def _word(piece: str, start: int, end: int, within: bool) -> list[Token]:
    """An English word, its contraction expanded; one `within` a sentence may be a name."""
    capital, word = piece[0].isupper(), piece.lower().replace("’", "'")
    if word in numbers.EVERY and not (capital and within):
        return [Token("per", "function", start, end), Token(numbers.EVERY[word], "unit", start, end)]
    head, mark, tail = word.partition("'")
    parts: tuple[str, ...]
    if word in _CONTRACTED:
        parts = _CONTRACTED[word]
    elif word.endswith("n't"):
        parts = (word[:-3], "not")
    else:
        parts = (
            (head, _ENDINGS[tail])
            if tail in _ENDINGS
            else (head,)
            if not tail
            else (head, f"'{tail}" if tail == "s" else tail)
        )
    return [_english(part, start, end, capital) for part in parts if part]


def _english(word: str, start: int, end: int, capital: bool) -> Token:
    if number := numbers.word(word, capital):
        return Token(number, "number", start, end)
    word = SYNONYMS.get(word, word)
    if word in ROLES:
        form, kind = ROLES[word]
        return Token(stem(form) if kind == "direction" else form, kind, start, end, capital)
    form = stem(word)
    return Token(form, "direction" if form in OPPOSITES else "word", start, end, capital)


_WITH_NOUN = {stem(verb): stem(noun) for verb, noun in LIGHT.items()}


def _in_context(found: list[Token], text: str) -> list[Token]:
    """Words whose part depends on what follows: "about 40", "since 2009", "over 300"."""
    for n, token in enumerate(found):
        following = next((t for t in found[n + 1 : n + 3] if t.form not in ("a", "an", "the", "$", "€", "£")), None)
        written = text[token.start : token.end].lower()
        if written == "a" and text[token.start] == "A" and n and found[n - 1].kind != "break":
            found[n] = token._replace(form="A", kind="word")  # vitamin A
        if token.form == "的" and found[n + 1 : n + 2] and found[n + 1].form in ("，", ","):
            found[n] = token._replace(form="的话")  # 逾期付款的，应支付违约金
        if written in ("every", "each") and following is not None and following.kind == "unit":
            found[n] = token._replace(form="per", kind="function")  # every year, per year, a year
        if _WITH_NOUN.get(token.form) in {t.form for t in found[n + 1 : n + 4]}:
            found[n] = token._replace(form="have", kind="function")  # played a role, had a role
        if token.form == "any" and _no_longer(found, n):
            found[n : n + 2] = [t._replace(form="still", kind="function") for t in found[n : n + 2]]
        if token.form == "期间" and n and found[n - 1].kind in ("number", "unit"):
            found[n] = token._replace(kind="function")  # 5月至8月期间
        if following is None or following.kind != "number":
            continue
        if written in ("about", "around", "some"):
            found[n] = token._replace(form="about", kind="quantifier")
        elif written in ("since", "over", "under"):
            bound = {"over": "more than", "under": "less than"}.get(written)
            found[n] = token._replace(form=bound or written, kind="quantifier" if bound else "direction")
    return _joined(found, text)


def _no_longer(found: Sequence[Token], n: int) -> bool:
    """ "Any more" or "any longer" at the end of a clause with a negation: not supported any more."""
    more, behind = found[n + 1 : n + 2], found[n + 2 : n + 3]
    ends = not behind or behind[0].kind == "break" or behind[0].form in ("and", "but", "or", "because", "since")
    return (
        bool(more) and more[0].form in _LONGER and ends and any(t.kind == "negation" for t in found[max(0, n - 6) : n])
    )


_LONGER = frozenset(map(stem, ("more", "longer")))


def _joined(found: list[Token], text: str) -> list[Token]:
    """Numbers of several words as one: "four million", "twenty-five"; dates with the month first; "degrees Celsius"."""
    read: list[Token] = []
    for token in found:
        last = read[-1] if read else Token("", "", 0, 0)
        written = text[token.start : token.end].lower()
        between = text[last.end : token.start]
        if last.form == "," and token.kind == "number" and len(read) > 2 and read[-3].form in numbers.MONTHS:
            read.pop()  # May 5, 2021
        if (last.kind, token.kind) == ("number", "number"):
            spelled = text[last.start : last.end].isalpha() and numbers.joined(last.form, token.form, between)
            if written in numbers.SCALES:
                token = read.pop()._replace(form=numbers.scaled(last.form, written), end=token.end)
            elif spelled:
                token = read.pop()._replace(form=spelled, end=token.end)
            elif parts := numbers.fraction(last.form, token.form):
                token = read.pop()._replace(form=parts, end=token.end)
            elif token.form in numbers.MONTHS and len(last.form) < 4:  # 5 May, May 5, 5th May
                read[-1], token = last._replace(form=token.form), token._replace(form=last.form.rstrip("."))
            elif last.form in numbers.MONTHS and len(token.form) < 4:
                token = token._replace(form=token.form.rstrip("."))
            elif token.form == "2." and written == "second":
                token = token._replace(form="s", kind="unit")
        elif token.kind == "number" and last.form == "a":
            token = token._replace(form=numbers.fraction("a", token.form) or token.form)
        elif last.form == "°" and token.form.startswith("°"):
            read.pop()
        read.append(token)
    return read
