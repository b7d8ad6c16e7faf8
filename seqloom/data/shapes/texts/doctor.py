"""Findings on a text, and the tokenizer that suits it: one pass, in bounded memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from seqloom.core.errors import UserError
from seqloom.data.files import read_utf8, suffix
from seqloom.data.findings import Finding, Level, Lines, concluded
from seqloom.data.rows import READERS
from seqloom.data.text import Source, open_text

CJK = ((0x3040, 0x3100), (0x3400, 0x4DC0), (0x4E00, 0xA000), (0xF900, 0xFB00), (0x20000, 0x40000))  # without spaces
CJK_RUN = re.compile("[" + "".join(f"{chr(first)}-{chr(end - 1)}" for first, end in CJK) + "]+")
CONTROL = [code for code in range(32) if chr(code) not in "\t\n\r\f"] + list(range(0x7F, 0xA0))
REPLACEMENT = 0xFFFD
LONG = 30  # characters; shorter lines repeat by chance
SMALL, TINY = 100_000, 2_000  # bytes


@dataclass
class Survey:
    """What one pass over the text finds."""

    bytes: int = 0
    lines: int = 0
    longest: int = 0  # characters in the longest line
    words: int = 0  # counted in one piece out of eight, whose bytes are `words_bytes`
    words_bytes: int = 0
    runs: int = 0  # of Chinese or Japanese characters between spaces or punctuation
    train: np.ndarray = field(default_factory=lambda: np.zeros(0x110000, np.int64))  # how often each code point occurs
    valid: np.ndarray = field(default_factory=lambda: np.zeros(0x110000, np.int64))
    repeats: Lines = field(default_factory=Lines)
    apart: bool = False  # the validation set is a file of its own, not a part of the text

    @property
    def counts(self) -> np.ndarray:
        """Of the text."""
        return self.train if self.apart else self.train + self.valid

    @property
    def characters(self) -> int:
        return int(self.counts.sum())

    @property
    def cjk(self) -> int:
        return int(sum(self.counts[a:b].sum() for a, b in CJK))


def examine_text(spec: str, column: str = "text", valid: float = 0.1, held: str | None = None) -> list[Finding]:
    """All findings on a text for language modelling, errors included; never raises for the content of the file.
    `valid`: share for validation, unless `held`, another file, is."""
    try:
        source = open_text(spec, column)
        survey = _survey(source, 0 if held else valid)
        if held:
            _add_valid(survey, open_text(held, column))
        mixed = _mixed_line_endings(Path(spec)) if not spec.startswith("sample:") else []
    except UserError as error:
        return [Finding("error", str(error), "fix the file and run the doctor again")]
    parts = _parts(survey) if valid or held else []
    return concluded([*_size(survey), *_content(survey), *parts, *mixed, *_tokenizers(survey)])


def _survey(source: Source, valid: float) -> Survey:
    found = Survey()
    training_bytes = int(source.bytes * (1 - valid))
    for number, (text, training) in enumerate(_split(source, training_bytes)):
        _count(text, found.train if training else found.valid)
        length = len(text.encode())
        found.bytes += length
        found.runs += len(CJK_RUN.findall(text)) if not text.isascii() else 0
        if number % 8 == 0:
            found.words += len(re.findall(r"\w+|[^\w\s]|\n", text))
            found.words_bytes += length
        for line in text.split("\n"):
            if len(line) >= LONG:
                found.repeats.add(line.strip(), training)
                found.longest = max(found.longest, len(line))
    found.lines = int(found.counts[ord("\n")]) + (not text.endswith("\n"))
    return found


def _add_valid(survey: Survey, source: Source) -> None:
    survey.apart = True
    for text in source.pieces():
        _count(text, survey.valid)
        for line in text.split("\n"):
            if len(line) >= LONG:
                survey.repeats.add(line.strip(), False)


def _count(text: str, part: np.ndarray) -> None:
    counts = np.bincount(np.frombuffer(text.encode("utf-32-le"), np.uint32))
    part[: len(counts)] += counts


def _split(source: Source, training_bytes: int) -> Iterator[tuple[str, bool]]:
    """Pieces, each with whether it belongs to the training set; the one at the boundary is cut in two."""
    position = 0
    for text in source.pieces():
        data = text.encode()
        if position < training_bytes < position + len(data):
            at = len(data[: training_bytes - position].decode(errors="ignore"))
            yield text[:at], True
            yield text[at:], False
        else:
            yield text, position < training_bytes
        position += len(data)


def _size(survey: Survey) -> Iterator[Finding]:
    size = f"{survey.bytes:,} bytes, {survey.characters:,} characters, {survey.lines:,} lines"
    if survey.bytes < TINY:
        yield Finding("warning", f"{size}: too little to learn a language from", "expect the model to memorise it")
    elif survey.bytes < SMALL:
        yield Finding("note", f"{size}: a small text", "use a small model, dropout and early stopping")
    else:
        yield Finding("ok", size)
    if survey.lines == 1 and survey.bytes > TINY:
        yield Finding("note", "the whole text is one line", "keep line breaks if the original has them")
    elif survey.longest > 100_000:
        yield Finding("note", f"the longest line has {survey.longest:,} characters or more", "is it really text?")


def _content(survey: Survey) -> Iterator[Finding]:
    counts = survey.counts
    distinct, rare = int((counts > 0).sum()), int(((counts > 0) & (counts < 5)).sum())
    message = f"{distinct:,} distinct characters, {rare:,} of them seen fewer than 5 times"
    if distinct == 1:
        yield Finding("error", "a single character, repeated: there is nothing to predict", "use another text")
    elif rare > 100 and rare > distinct / 4:
        yield Finding("note", message, "tokenizer.min_count=5 would turn the rare ones into <unk>")
    else:
        yield Finding("ok", message)
    if survey.cjk:
        share = survey.cjk / survey.characters
        yield Finding("ok", f"{share:.1%} of the characters are Chinese or Japanese")
    if control := int(counts[CONTROL].sum()):
        codes = ", ".join(f"U+{code:04X}" for code in CONTROL if counts[code])
        yield Finding(
            "warning", f"{control:,} control characters ({codes[:60]})", "remove them unless they are meaningful"
        )
    if broken := int(counts[REPLACEMENT]):
        advice = "the text was once decoded with the wrong encoding; go back to the original file"
        yield Finding("warning", f"{broken:,} replacement characters (U+FFFD)", advice)
    if (repeated := survey.repeats.repeated()) > 0.05:
        level: Level = "warning" if repeated > 0.3 else "note"
        advice = "remove them, or the model will memorise them"
        yield Finding(level, f"{repeated:.0%} of the lines of {LONG} characters or more are duplicates", advice)


def _parts(survey: Survey) -> Iterator[Finding]:
    level: Level
    if survey.valid.sum() < 2:
        message = "the validation set has fewer than 2 characters: too few to score a model on"
        yield Finding("error", message, "give more text, or another file with --valid")
    new = np.flatnonzero((survey.valid > 0) & (survey.train == 0))
    if len(new):
        shown = " ".join(chr(code) if chr(code).isprintable() else f"U+{code:04X}" for code in new[:10])
        share = survey.valid[new].sum() / survey.valid.sum()
        message = f"{len(new):,} characters of the validation set never occur in the training set ({shown})"
        level = "warning" if share > 0.001 else "note"
        yield Finding(level, message, "the characters tokenizer reads them as <unk>; bytes and bpe know them all")
    if (overlap := survey.repeats.overlap()) > 0.01:
        message = f"{overlap:.0%} of the validation set's long lines are also in the training set"
        level = "warning" if overlap > 0.05 else "note"
        yield Finding(level, message, "scores will look too good; remove duplicates or give a separate --valid")


def _mixed_line_endings(path: Path) -> list[Finding]:
    if path.is_dir() or suffix(path) in READERS:
        return []
    windows = unix = old = 0
    last = b""
    for block in read_utf8(path):
        both = block.count(b"\r\n") + (last == b"\r" and block[:1] == b"\n")
        windows, unix, old = windows + both, unix + block.count(b"\n") - both, old + block.count(b"\r") - both
        last = block[-1:]
    kinds = {"\\r\\n": windows, "\\n": unix, "\\r": old}
    if sum(count > 0 for count in kinds.values()) < 2:
        return []
    shown = ", ".join(f"{count:,} {name}" for name, count in kinds.items() if count)
    return [Finding("note", f"mixed line endings ({shown})", "all are read as \\n; nothing to do")]


def _tokenizers(survey: Survey) -> Iterator[Finding]:
    words = round(survey.words * survey.bytes / max(survey.words_bytes, 1))
    unspaced = survey.cjk > 0.3 * survey.characters and survey.cjk > 3 * survey.runs
    subwords = round(survey.cjk / 1.4 + (survey.bytes - 3 * survey.cjk) / 4)
    kinds = {"characters": survey.characters, "bytes": survey.bytes, "bpe": subwords}
    if not unspaced:
        kinds["words"] = words
    estimates = ", ".join(f"{kind} {count:,}" for kind, count in kinds.items())
    advice = f"the {_suited(survey, unspaced)} tokenizer suits this text"
    yield Finding("note", f"estimated tokens: {estimates}", advice)
    if unspaced:
        message = "no spaces between words, so the words tokenizer does not suit this text"
        yield Finding("note", message, "use characters, bytes or bpe, or segment the text first")


def _suited(survey: Survey, unspaced: bool) -> str:
    distinct = int((survey.counts > 0).sum())
    if survey.bytes < 5_000_000:
        return "bytes" if distinct > 1000 and not unspaced else "characters"
    return "bpe"
