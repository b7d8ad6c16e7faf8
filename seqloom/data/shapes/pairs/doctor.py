"""Findings on pairs of texts, and the tokenizers that suit them: one pass, in bounded memory."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from seqloom.core.errors import UserError
from seqloom.data.findings import Finding, Level, Lines, concluded, size_finding
from seqloom.data.portions import split_rows
from seqloom.data.shapes.pairs.reading import PairSource, open_pairs

FEW, SMALL = 100, 10_000  # pairs
LONG = 2_000  # characters in one text
ENOUGH = 20  # characters from which a ratio of lengths is meaningful
RATIO = 3  # factor by which a length ratio must differ from the usual one to be odd
CLOSED = 500  # maximum number of distinct words in a closed vocabulary
STEPS_PER_OCTAVE = 16  # resolution of the ratios
EAST_ASIAN = "Chinese or Japanese"
SCRIPTS = {"CJK": EAST_ASIAN, "HIRAGANA": EAST_ASIAN, "KATAKANA": EAST_ASIAN, "IDEOGRAPHIC": EAST_ASIAN}
NO_SCRIPT = {"MODIFIER", "MATHEMATICAL", "MICRO", "FEMININE", "MASCULINE", "FULLWIDTH", "HALFWIDTH", ""}
VOCABULARIES = {50_000: 2_000, 200_000: 8_000, 1_000_000: 16_000}  # pairs, up to: subwords; above, 32,000


@dataclass
class Seen:
    """The number of rows with some property, and the line of the first."""

    count: int = 0
    first: int = 0

    def add(self, line: int) -> None:
        self.first = self.first or line
        self.count += 1


@dataclass
class Side:
    name: str
    lengths: Counter[int] = field(default_factory=Counter)  # in characters
    characters: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)  # collected until there are more than CLOSED
    word_count: int = 0
    scripts: dict[str, Seen] = field(default_factory=dict)  # rows that are mostly in each script

    def add(self, line: int, text: str) -> None:
        self.lengths[len(text)] += 1
        characters = set(text)
        self.characters |= characters
        words = text.split()
        self.word_count += len(words)
        if len(self.words) <= CLOSED:
            self.words.update(words[: CLOSED + 1])
        found = Counter(filter(None, map(script_of, characters)))
        if found:
            self.scripts.setdefault(max(found, key=lambda script: found[script]), Seen()).add(line)

    def length_at(self, share: float) -> int:
        """This quantile of the lengths."""
        return _at_share(self.lengths, share)


@dataclass
class Survey:
    """What one pass over the pairs finds."""

    count: int = 0
    source: Side = field(default_factory=lambda: Side("source"))
    target: Side = field(default_factory=lambda: Side("target"))
    long: Seen = field(default_factory=Seen)
    identical: Seen = field(default_factory=Seen)
    ratios: dict[int, Seen] = field(default_factory=dict)  # by the logarithm of target over source length, in steps
    pairs: Lines = field(default_factory=Lines)
    sources: Lines = field(default_factory=Lines)

    def add(self, line: int, source: str, target: str) -> None:
        self.count += 1
        self.source.add(line, source)
        self.target.add(line, target)
        self.pairs.add(f"{source}\0{target}", True)
        self.sources.add(source, True)
        if source == target:
            self.identical.add(line)
        if max(len(source), len(target)) > LONG:
            self.long.add(line)
        if max(len(source), len(target)) >= ENOUGH:
            step = round(STEPS_PER_OCTAVE * math.log2(len(target) / len(source)))
            self.ratios.setdefault(step, Seen()).add(line)


@lru_cache(1 << 16)
def script_of(character: str) -> str:
    """`Latin`, `Cyrillic`, ...: the first word of a letter's Unicode name; empty if it is not a letter."""
    first = unicodedata.name(character, "").partition(" ")[0].partition("-")[0] if character.isalpha() else ""
    return "" if first in NO_SCRIPT else SCRIPTS.get(first, first.capitalize())


def examine_pairs(spec: str, source: str = "source", target: str = "target", valid: str | None = None) -> list[Finding]:
    """All findings on pairs, errors included; never raises for the content of the file."""
    try:
        pairs = open_pairs(spec, source, target)
        survey = Survey()
        for row in pairs.rows():
            survey.add(*row)
        findings = [*_size(survey, pairs), *_lengths(survey), *_repeats(survey), *_content(survey)]
        findings += _overlap(survey, open_pairs(valid, source, target)) if valid else _split(pairs)
    except UserError as error:
        advice = "" if spec.startswith("sample:") else "fix the file and run the doctor again"
        return [Finding("error", str(error), advice)]
    findings += [_suited(side, survey.count) for side in (survey.source, survey.target)]
    return concluded(findings)


def _size(survey: Survey, pairs: PairSource) -> Iterator[Finding]:
    size = f"{survey.count:,} pairs, {pairs.bytes:,} bytes"
    yield size_finding(size, survey.count, FEW, SMALL, "early stopping")
    if pairs.dropped:
        message = f"{pairs.dropped:,} rows are left out: a side is empty, or a catalogue entry is not translated"
        level: Level = "warning" if pairs.dropped > survey.count / 10 else "note"
        yield Finding(level, message, "nothing to do, unless this is unexpected")


def _lengths(survey: Survey) -> Iterator[Finding]:
    for side in (survey.source, survey.target):
        lengths = f"median {side.length_at(0.5):,}, 95% up to {side.length_at(0.95):,}, longest {max(side.lengths):,}"
        yield Finding("ok", f"{side.name} characters per row: {lengths}; {len(side.characters):,} distinct characters")
    if survey.long.count:
        message = f"{_rows(survey.long, 'has', 'have')} more than {LONG:,} characters"
        yield Finding("note", message, "long rows take most of the memory; split them into sentences, or remove them")
    usual = _at_share(Counter({step: seen.count for step, seen in survey.ratios.items()}), 0.5)
    odd = [seen for step, seen in survey.ratios.items() if abs(step - usual) > STEPS_PER_OCTAVE * math.log2(RATIO)]
    if odd:
        all_odd = Seen(sum(seen.count for seen in odd), min(seen.first for seen in odd))
        message = f"{_rows(all_odd, 'has', 'have')} a target more than {RATIO} times longer or shorter than usual"
        level: Level = "warning" if all_odd.count > survey.count / 10 else "note"  # summaries vary in length
        yield Finding(level, message, "check that the two sides belong together")


def _repeats(survey: Survey) -> Iterator[Finding]:
    same, again = survey.pairs.repeated(), survey.sources.repeated()
    if same > 0.001:
        level: Level = "warning" if same > 0.1 else "note"
        yield Finding(level, f"{same:.1%} of the pairs are duplicates", "remove them, or they weigh more than others")
    if again - same > 0.001:
        message = f"{again - same:.1%} of the pairs give another target for a source seen before"
        yield Finding("note", message, "a prediction may match any of them, but only one can be learnt as the best")


def _content(survey: Survey) -> Iterator[Finding]:
    level: Level
    if survey.identical.count:
        share = survey.identical.count / survey.count
        level = "warning" if share > 0.05 else "note"
        first = survey.identical.first
        message = f"{share:.1%} of the pairs have the same text on both sides; the first is on line {first}"
        yield Finding(level, message, "remove untranslated pairs, or the model learns to copy")
    for side in (survey.source, survey.target):
        total = sum(seen.count for seen in side.scripts.values())
        main = max(side.scripts, key=lambda script: side.scripts[script].count, default="")
        for script, seen in sorted(side.scripts.items(), key=lambda item: -item[1].count):
            if script == main:
                continue
            level = "warning" if seen.count > total / 100 else "note"
            share = seen.count / total
            message = f"{side.name}: {share:.2%} of the rows are in {script}, but most are in {main}"
            advice = "are the sides swapped, or is it another language?"
            yield Finding(level, f"{message}; the first is on line {seen.first}", advice)


def _overlap(survey: Survey, valid: PairSource) -> Iterator[Finding]:
    for _, source, _ in valid.rows():
        survey.sources.add(source, False)
    message = f"{survey.sources.overlap():.1%} of the sources in {valid.name} are also in the training set"
    if survey.sources.overlap() > 0.01:
        yield Finding("warning", message, "scores will look too good; remove them from one of the two")
    else:
        yield Finding("ok", message)


def _split(source: PairSource) -> Iterator[Finding]:
    try:
        split_rows(source)
    except UserError as error:
        yield Finding("error", str(error))
    else:
        yield Finding("ok", "validation: pairs are split by source, so no source is in two splits")


def _suited(side: Side, pairs: int) -> Finding:
    """The tokenizer for one side, by its words and the number of pairs to learn them from."""
    words = side.word_count / pairs
    main = max(side.scripts, key=lambda script: side.scripts[script].count, default="")
    if len(side.words) <= CLOSED and side.word_count > 20 * len(side.words) and words > 2:
        return Finding("note", f"{side.name}: only {len(side.words)} distinct words", "the words tokenizer suits it")
    if words < 1.5 and main != EAST_ASIAN:
        return Finding("note", f"{side.name}: mostly single words", "the characters tokenizer suits it")
    if pairs < SMALL or (main == EAST_ASIAN and pairs < 200_000):
        return Finding("note", f"{side.name}: {words:.1f} words per row", "the characters tokenizer suits it")
    size = next((size for limit, size in VOCABULARIES.items() if pairs <= limit), 32_000)
    advice = f"the bpe tokenizer with about {size:,} subwords suits it"
    return Finding("note", f"{side.name}: {words:.1f} words per row", advice)


def _at_share(counts: Counter[int], share: float) -> int:
    """This quantile of the counted numbers."""
    left = share * counts.total()
    for number in sorted(counts):
        left -= counts[number]
        if left <= 0:
            return number
    return 0


def _rows(seen: Seen, one: str, many: str) -> str:
    return (
        f"1 row (line {seen.first}) {one}"
        if seen.count == 1
        else f"{seen.count:,} rows (the first is on line {seen.first}) {many}"
    )
