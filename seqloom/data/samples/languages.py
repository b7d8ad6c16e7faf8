"""Names of countries, languages and currencies in 16 languages, from Babel's copy of the CLDR."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from seqloom.data.samples.sample import Sample

LANGUAGES = ("cs", "de", "en", "es", "fi", "fr", "hu", "it", "ja", "nl", "pl", "pt", "ru", "sv", "tr", "zh")


@cache
def _languages() -> list[tuple[str, str]]:
    """Names of countries, languages and currencies, each with its language; some are the same in several."""
    from babel import Locale

    rows = set()
    for code in LANGUAGES:
        locale = Locale.parse(code)
        names = (*locale.territories.values(), *locale.languages.values(), *locale.currencies.values())
        rows |= {(name, code) for name in names if len(name) > 2 and not name.isdigit()}
    return sorted(rows)


def languages() -> Iterator[tuple[str, str]]:
    return iter(_languages())


SAMPLES = {
    "languages": Sample(
        "labelled", "19,000 names of places, languages and currencies, each in one of 16 languages", languages
    ),
}
