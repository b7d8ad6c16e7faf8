"""Questions about generated passages of real facts: currencies and since when they are used, official languages, the
native names of languages. From Babel's copy of the CLDR, in English or Chinese; always the same.

Every passage covers several territories and languages in varied wording, so that answering a question takes matching
both the name and the topic.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache, partial
from importlib.util import find_spec
from typing import Any, NamedTuple

from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.data.samples.sample import Sample

PASSAGES = 1000
ASKED = 4  # questions per passage
NO_PLACE = {"EU", "EZ", "UN", "XA", "XB", "ZZ", "QO"}


class Wording(NamedTuple):
    """Templates for one kind of fact: {t} is its subject, {a} the answer; `reverse` questions ask for {t}."""

    statements: tuple[str, ...]
    questions: tuple[str, ...]
    reverse: tuple[str, ...] = ()


ENGLISH = {
    "currency": Wording(
        (
            "The currency of {t} is the {a}.",
            "People in {t} pay with the {a}.",
            "In {t}, prices are given in the {a}.",
            "The {a} is what one pays with in {t}.",
        ),
        (
            "What is the currency of {t}?",
            "What do people in {t} pay with?",
            "Which currency are prices given in, in {t}?",
        ),
        ("Where do people pay with the {a}?", "In which place is the {a} the currency?"),
    ),
    "code": Wording(
        ("Banks write {a} for the money of {t}.", "The money of {t} has the code {a}.", "{a} stands for {t}'s money."),
        ("What do banks write for the money of {t}?", "Which code has the money of {t}?"),
    ),
    "since": Wording(
        (
            "{t} has had its present money since {a}.",
            "Since {a}, the money in {t} has been the same.",
            "The present money came to {t} in {a}.",
        ),
        ("Since when has {t} had its present money?", "In which year did the present money come to {t}?"),
    ),
    "official": Wording(
        ("Laws in {t} are written in {a}.", "What is official in {t} is said in {a}.", "{a} has official rank in {t}."),
        ("In what language are laws in {t} written?", "What has official rank in {t}?"),
        ("Where are laws written in {a}?", "In which place has {a} official rank?"),
    ),
    "own": Wording(
        (
            "Those who speak {t} call it {a}.",
            "In the language itself, {t} is called {a}.",
            "{a} is the own name of {t}.",
        ),
        ("What is the own name of {t}?", "What do those who speak {t} call it?"),
    ),
}
CHINESE = {
    "currency": Wording(
        ("{t}的货币是{a}。", "{t}人用{a}付款。", "在{t}，价格以{a}计算。", "{a}是{t}使用的货币。"),
        ("{t}的货币是什么？", "{t}人用什么付款？", "在{t}，价格以什么计算？"),
        ("哪里的货币是{a}？", "哪里的人用{a}付款？"),
    ),
    "code": Wording(
        ("银行把{t}的钱写作{a}。", "{t}的钱的代码是{a}。", "{a}代表{t}的钱。"),
        ("银行把{t}的钱写作什么？", "{t}的钱的代码是什么？"),
    ),
    "since": Wording(
        ("{t}从{a}年起使用现在的钱。", "自{a}年以来，{t}的钱没有变。", "现在的钱在{a}年来到{t}。"),
        ("{t}从哪一年起使用现在的钱？", "现在的钱在哪一年来到{t}？"),
    ),
    "official": Wording(
        ("{t}的法律用{a}写成。", "{t}的官方语言是{a}。", "{a}在{t}是官方语言。"),
        ("{t}的法律用什么语言写成？", "{t}的官方语言是什么？"),
        ("哪里的法律用{a}写成？", "哪里的官方语言是{a}？"),
    ),
    "own": Wording(
        ("说{t}的人把它叫做{a}。", "{t}自己的名称是{a}。", "{a}是{t}自己的名称。"),
        ("说{t}的人把它叫做什么？", "{t}自己的名称是什么？"),
    ),
}
WORDINGS = {"en": ENGLISH, "zh": CHINESE}
ASIDES = {
    "en": ("Such things change now and then.", "Travellers should ask before they leave.", "Much more could be said."),
    "zh": ("这些事情有时会改变。", "旅行者应当先问清楚。", "还可以说很多。"),
}
JOINTS = {"en": (" ", ", ", " and "), "zh": ("", "、", "和")}  # between sentences, in lists, before a list's last item


class Fact(NamedTuple):
    topic: str
    subject: str
    answer: str


def facts(language: str) -> Iterator[Json]:
    """Rows in the form of JSONL: context, question, answers."""
    known, rng = _known(language), random.Random(1)
    places, languages = [name for name in known if "own" not in known[name]], [n for n in known if "own" in known[n]]
    for _ in range(PASSAGES):
        stated = [
            Fact(topic, name, known[name][topic])
            for name in rng.sample(places, rng.randint(3, 4)) + rng.sample(languages, rng.randint(1, 2))
            for topic in rng.sample(sorted(known[name]), min(len(known[name]), rng.randint(2, 3)))
        ]
        if rng.random() < 0.5:
            rng.shuffle(stated)
        yield from _passage(stated, language, rng)


def _passage(stated: list[Fact], language: str, rng: random.Random) -> Iterator[Json]:
    wordings, space = WORDINGS[language], JOINTS[language][0]
    text, places = "", []
    for fact in stated:
        if rng.random() < 0.1:
            text += rng.choice(ASIDES[language]) + space
        template = rng.choice(wordings[fact.topic].statements)
        places.append({key: len(text) + _offset(template, key, fact) for key in ("t", "a")})
        text += template.format(t=fact.subject, a=fact.answer) + space
    context = text.strip()
    for n in rng.sample(range(len(stated)), ASKED):
        fact, wording = stated[n], wordings[stated[n].topic]
        unique = sum(other.topic == fact.topic and fact.answer in other.answer for other in stated) == 1
        reverse = bool(wording.reverse) and unique and rng.random() < 0.3
        templates = wording.reverse if reverse else wording.questions
        question = rng.choice(templates).format(t=fact.subject, a=fact.answer)
        start = places[n]["t" if reverse else "a"]
        answer = {"text": [fact.subject if reverse else fact.answer], "answer_start": [start]}
        yield {"context": context, "question": question, "answers": answer}


def _offset(template: str, key: str, fact: Fact) -> int:
    """Where the field begins in the filled-in template."""
    before = template[: template.index("{" + key + "}")]
    return len(before.format(t=fact.subject, a=fact.answer))


@cache
def _known(language: str) -> dict[str, dict[str, str]]:
    """The facts on each territory and language: {"Samoa": {"currency": "Samoan Tala", ...}, ...}."""
    if find_spec("babel") is None:
        raise UserError("sample:facts needs the babel package: pip install babel")
    from babel import Locale, UnknownLocaleError

    locale = Locale(language)
    found = {}
    for code, name in sorted(locale.territories.items()):
        if len(code) == 2 and code.isalpha() and code not in NO_PLACE and (facts := _of_territory(code, locale)):
            found[name] = facts
    for code, name in sorted(locale.languages.items()):
        try:
            own = Locale.parse(code).languages.get(code) if "_" not in code else None
        except (UnknownLocaleError, ValueError):
            continue
        if own and own.casefold() != name.casefold():
            found[name] = {"own": own}
    return found


def _of_territory(code: str, locale: Any) -> dict[str, str] | None:
    """None unless exactly one currency is in use."""
    from babel.languages import get_official_languages
    from babel.numbers import get_currency_name, get_territory_currencies

    currencies = get_territory_currencies(code, include_details=True)
    if len(currencies) != 1 or currencies[0]["from"] is None:
        return None
    currency = currencies[0]["currency"]
    facts = {
        "currency": get_currency_name(currency, locale=locale),
        "code": currency,
        "since": str(currencies[0]["from"].year),
    }
    official = [locale.languages.get(language) for language in get_official_languages(code, de_facto=True)]
    names = [name for name in official if name]
    if names and len(names) == len(official):
        _, comma, last = JOINTS[str(locale)]
        facts["official"] = last.join(filter(None, (comma.join(names[:-1]), names[-1])))
    return facts


SAMPLES = {
    "facts": Sample("questions", "4,000 questions about the world's currencies and languages", partial(facts, "en")),
    "facts-zh": Sample("questions", "4,000 questions of the same kind in Chinese", partial(facts, "zh")),
}
