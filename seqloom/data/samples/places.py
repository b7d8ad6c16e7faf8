"""Names in sentences: countries, languages and currencies in English, German, French and Chinese.

The names are those of the Unicode CLDR, by way of Babel; the sentences are generated from a fixed seed. One name in
seven is reserved for a second dataset, whose names never occur in the first.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterator
from functools import cache

from seqloom.data.samples.sample import Sample

SENTENCES, NEW = 4_000, 800  # in all languages together: with common names, and with reserved ones
NO_COUNTRY = {"EU", "EZ", "UN", "QO", "XA", "XB", "ZZ"}
SLOT = re.compile(r"\{(LOC|LANG|MONEY)\}")

TEMPLATES = {
    "en": [
        "We spent three weeks in {LOC} last summer .",
        "{LOC} and {LOC} signed the agreement on Friday .",
        "She speaks {LANG} at home and {LANG} at work .",
        "The price is given in {MONEY} , not in {MONEY} .",
        "Few people in {LOC} still write {LANG} .",
        "He changed his {MONEY} before the flight to {LOC} .",
        "Our office in {LOC} is looking for someone who reads {LANG} .",
        "Exports from {LOC} to {LOC} rose by {N} percent in {Y} .",
        "A dictionary of {LANG} with {N} pages appeared in {Y} .",
        "The central bank of {LOC} bought {N} million {MONEY} .",
        "On Monday the minister did not answer any of the {N} questions .",
        "The meeting begins at {N} and nobody knows how long it will take .",
        "Is {LANG} harder to learn than {LANG} ?",
        "{MONEY} fell to its lowest level since {Y} .",
        "Rain is expected in the south , and {N} centimetres of snow in the north .",
        "Born in {LOC} in {Y} , she later moved to {LOC} , where she taught {LANG} .",
    ],
    "de": [
        "Die Reise nach {LOC} dauerte {N} Stunden .",
        "Zwischen {LOC} und {LOC} gibt es seit {Y} einen Vertrag .",
        "Der Text liegt auf {LANG} und auf {LANG} vor .",
        "Bezahlt wurde in der Währung {MONEY} , nicht in {MONEY} .",
        "Sie übersetzt aus der Sprache {LANG} .",
        "Die Ausfuhren nach {LOC} stiegen um {N} Prozent .",
        "Am Montag beantwortete der Minister keine der {N} Fragen .",
        "Im Jahr {Y} erschien ein Wörterbuch für {LANG} .",
        "Ein Kurs von {N} für die Währung {MONEY} gilt als niedrig .",
        "Aus {LOC} kamen {N} Gäste , aus {LOC} nur einer .",
        "Wer {LANG} lernt , versteht auch etwas {LANG} .",
        "Im Süden regnet es , im Norden fallen {N} Zentimeter Schnee .",
    ],
    "fr": [
        "Le voyage ( destination : {LOC} ) a duré {N} heures .",
        "Un accord a été signé en {Y} par {LOC} et {LOC} .",
        "Langue du document : {LANG} ; traduction : {LANG} .",
        "Le paiement se fait dans la devise suivante : {MONEY} .",
        "Elle parle {LANG} depuis {Y} et apprend maintenant une autre langue , {LANG} .",
        "Lundi , le ministre n’a répondu à aucune des {N} questions .",
        "Le dictionnaire ( {LANG} ) compte {N} pages .",
        "Les exportations vers ce pays , {LOC} , ont augmenté de {N} pour cent .",
        "Cours de la devise {MONEY} : {N} , contre {N} en {Y} .",
        "Il pleut dans le sud et il neige dans le nord depuis {N} heures .",
        "Pays d’origine : {LOC} . Monnaie : {MONEY} . Langue : {LANG} .",
    ],
    "zh": [
        "他去年夏天在{LOC}住了三个星期。",
        "{LOC}和{LOC}于{Y}年签署了协议。",
        "她在家说{LANG}，上班时说{LANG}。",
        "价格以{MONEY}计算，不收{MONEY}。",
        "{LOC}的出口增长了百分之{N}。",
        "这本{LANG}词典有{N}页。",
        "出发去{LOC}之前，他换了一些{MONEY}。",
        "部长星期一没有回答那{N}个问题。",
        "{MONEY}跌到{Y}年以来的最低点。",
        "学{LANG}比学{LANG}难吗？",
        "南方有雨，北方下了{N}毫米的雪。",
        "我们在{LOC}的办公室需要懂{LANG}的人。",
    ],
}

Marked = tuple[str, list[tuple[int, int, str]]]


def places() -> Iterator[Marked]:
    return _sentences(SENTENCES, 0)


def places_new() -> Iterator[Marked]:
    return _sentences(NEW, 1)


def _sentences(count: int, which: int) -> Iterator[Marked]:
    """Texts with the spans of their names: (begin, end, label)."""
    rng, languages = random.Random(which), list(TEMPLATES)
    for number in range(count):
        language = languages[number % len(languages)]
        yield _fill(rng, rng.choice(TEMPLATES[language]), _names(language)[which])


def _fill(rng: random.Random, template: str, names: dict[str, list[str]]) -> Marked:
    template = re.sub(r"\{N\}", lambda _: str(rng.randint(2, 400)), template)
    template = re.sub(r"\{Y\}", lambda _: str(rng.randint(1900, 2024)), template)
    text, spans, last = "", [], 0
    for slot in SLOT.finditer(template):
        text += template[last : slot.start()]
        name = rng.choice(names[slot[1]])
        spans.append((len(text), len(text) + len(name), slot[1]))
        text, last = text + name, slot.end()
    text += template[last:]
    return text, spans


@cache
def _names(language: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """By label, the common names and the reserved ones."""
    from babel import Locale

    locale = Locale(language)
    countries = {code: name for code, name in locale.territories.items() if re.fullmatch("[A-Z]{2}", code)}
    languages = {code: name for code, name in locale.languages.items() if re.fullmatch("[a-z]{2,3}", code)}
    found = {
        "LOC": [name for code, name in countries.items() if code not in NO_COUNTRY],
        "LANG": list(languages.values()),
        "MONEY": list(locale.currencies.values()),
    }
    whole = {label: sorted({name for name in names if _is_plain(name)}) for label, names in found.items()}
    common, reserved = (
        {label: [name for name in names if _is_reserved(name) == which] for label, names in whole.items()}
        for which in (False, True)
    )
    return common, reserved


def _is_plain(name: str) -> bool:
    """No brackets, no years: `German Mark`, but not `Peruvian Sol (1863–1965)`."""
    return not re.search(r"[()（）\[\]0-9]", name)


def _is_reserved(name: str) -> bool:
    return hashlib.blake2b(name.encode(), digest_size=1).digest()[0] % 7 == 0


SAMPLES = {
    "places": Sample("tagged", "4,000 sentences naming countries, languages and currencies, in four languages", places),
    "places-new": Sample("tagged", "800 more such sentences, with names that never occur in places", places_new),
}
