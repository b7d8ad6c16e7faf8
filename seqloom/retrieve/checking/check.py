"""A sentence of an answer, checked against sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from seqloom.retrieve.checking import checks
from seqloom.retrieve.checking.alignment import align
from seqloom.retrieve.checking.leadins import readings, without
from seqloom.retrieve.checking.quotation import find
from seqloom.retrieve.checking.sources import Source, around, joined, parsed, place, read, words
from seqloom.retrieve.checking.tokens import Token, tokens
from seqloom.retrieve.document import Quotation, Sentence

Similarity = Callable[[str, str], float]  # of two texts, 1 for the same

SIMILAR = 0.6  # of a sentence and its nearest source sentence: below, the check "similarity" fails
ENTAILED = 0.5  # of a judge: below, the check "entailment" fails
SHORTEST = 3  # words, or Chinese characters, of a quotation that is not a whole sentence
CANDIDATES = 3  # source sentences that a sentence is laid beside


class Judge(Protocol):
    """A reader or an entailment model of the user's."""

    def entails(self, source: str, sentence: str) -> float:
        """How certain it is, from 0 to 1, that the sentence follows from the source."""
        ...


def check(
    sentence: str, sources: Sequence[Source], similarity: Similarity | None = None, judge: Judge | None = None
) -> Sentence:
    """The sentence as a quotation, or as not verified with its nearest source sentence and the checks it fails."""
    short: Sentence | None = None
    for source in sources:
        for start, end in find(sentence, source.text):
            problems = _cut_away(source.text, start, end)
            if not problems:
                return Sentence(sentence, quotation=place(source, start, end))
            short = short or Sentence(sentence, nearest=_around(source, start, end), failed=problems)
    return short or _unverified(sentence, sources, similarity, judge)


def check_citation(
    sentence: str,
    path: str,
    sources: Sequence[Source],
    similarity: Similarity | None = None,
    judge: Judge | None = None,
) -> Sentence:
    """As `check`, of a sentence that is attributed to the file `path`: what stands elsewhere only fails "source"."""
    claimed = [source for source in sources if source.path == path]
    checked = check(sentence, claimed, similarity, judge)
    if checked.quotation is not None:
        return checked
    anywhere = check(sentence, sources, similarity, judge)
    if anywhere.quotation is not None:
        return Sentence(sentence, nearest=anywhere.quotation, failed=("source",))
    elsewhere = anywhere.nearest is not None and anywhere.nearest.path != path
    return Sentence(
        sentence, nearest=checked.nearest, failed=("source", *checked.failed) if elsewhere else checked.failed
    )


def _cut_away(text: str, start: int, end: int) -> tuple[str, ...]:
    """What is wrong with a verbatim stretch because it is a part of a sentence only."""
    touched = [(s.start, s.end) for s in parsed(text) if s.start < end and start < s.end]
    if not touched:
        return ()
    first, last = touched[0][0], touched[-1][1]
    if not text[first:start].strip(_MARKS) and not text[end:last].strip(_MARKS):
        return ()
    fragment, whole = read(text[start:end]), read(text[first:last])
    if len([t for t in fragment if t.kind != "break"]) < SHORTEST:
        return ("length",)
    problems = checks.cut(fragment, whole)
    unit = [t for t in whole if t.start >= end - first and t.kind != "break"][:1]
    if fragment[-1].kind == "number" and unit and unit[0].kind == "unit":
        return (*problems, "numbers")
    return problems


_MARKS = " \t\r\n.。!！;；,，\"'“”‘’「」『』*_`-•#>"


def _around(source: Source, start: int, end: int) -> Quotation:
    touched = [s for s in parsed(source.text) if s.start < end and start < s.end]
    return place(source, touched[0].start, touched[-1].end)


def _nearest(sentence: str, sources: Sequence[Source]) -> list[tuple[Source, int, int]]:
    """The source sentences that share most with a sentence, the best first."""
    ours = words(sentence)
    found: list[tuple[float, int, Source, int, int]] = []
    for source in sources:
        for part in (*parsed(source.text), *joined(source.text)):
            if shared := len(ours & part.words):
                found.append((-shared / (len(ours) + 0.2 * len(part.words)), len(found), source, part.start, part.end))
    return [(source, start, end) for _, _, source, start, end in sorted(found, key=lambda f: f[:2])[:CANDIDATES]]


def _unverified(
    sentence: str, sources: Sequence[Source], similarity: Similarity | None, judge: Judge | None
) -> Sentence:
    near = _nearest(sentence, sources)
    if not near:
        return Sentence(sentence, failed=("words",))
    ours = tokens(without(sentence, near[0][0].path, near[0][0].text))
    results = [_failed(sentence, *candidate) for candidate in near]
    best = min(range(len(near)), key=lambda n: (bool(results[n]) and "words" in results[n], len(results[n]), n))
    source, start, end = near[best]
    nearest, problems = place(source, start, end), list(results[best])
    if "stitched" not in problems and "words" in problems and _elsewhere(ours, nearest.text, near, best):
        problems.append("stitched")
    if similarity is not None and similarity(sentence, nearest.text) < SIMILAR:
        problems.append("similarity")
    if judge is not None and judge.entails(nearest.text, sentence) < ENTAILED:
        problems.append("entailment")
    return Sentence(sentence, nearest=nearest, failed=tuple(problems))


def _failed(sentence: str, source: Source, start: int, end: int) -> tuple[str, ...]:
    """Checks that a sentence fails beside a sentence of a source, read with and without its lead-in."""
    theirs, document = read(source.text[start:end]), around(source, start)
    claims = readings(sentence, source.path, source.text)
    return min((checks.failed(read(claim), theirs, document) for claim in claims), key=len)


def _elsewhere(ours: Sequence[Token], text: str, near: Sequence[tuple[Source, int, int]], best: int) -> bool:
    """Words that the nearest source sentence lacks stand together in another one."""
    pair = align(ours, read(text))
    missing = {pair.sentence[n].form for n in pair.missing}
    for n, (source, start, end) in enumerate(near):
        there = {t.form for t in read(source.text[start:end])}
        if n != best and len(missing & there) >= 2:
            return True
    return False
