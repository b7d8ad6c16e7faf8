"""What is wrong with a text, and what suits it, before any training: read once, in bounded memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from seqloom.core.errors import UserError
from seqloom.data.files import read_blocks, suffix
from seqloom.data.findings import Finding, Level, Lines
from seqloom.data.rows import READERS
from seqloom.data.text import Source, open_text

CJK = ((0x3040, 0x3100), (0x3400, 0x4DC0), (0x4E00, 0xA000), (0xF900, 0xFB00), (0x20000, 0x40000))  # no blanks
CJK_RUN = re.compile("[" + "".join(f"{chr(first)}-{chr(end - 1)}" for first, end in CJK) + "]+")
CONTROL = [code for code in range(32) if chr(code) not in "\t\n\r\f"] + list(range(0x7F, 0xA0))
REPLACEMENT = 0xFFFD
LONG = 30  # characters from which a repeated line is no accident
SMALL, TINY = 100_000, 2_000  # bytes


@dataclass
class Survey:
    """What one reading of the text has found."""

    bytes: int = 0
    lines: int = 0
    longest: int = 0  # characters in the longest line
    words: int = 0  # counted in about one piece of eight, as bytes of it in `words_bytes`
    words_bytes: int = 0
    runs: int = 0  # of Chinese or Japanese characters between blanks or punctuation marks
    train: np.ndarray = field(default_factory=lambda: np.zeros(0x110000, np.int64))  # how often each code point occurs
    valid: np.ndarray = field(default_factory=lambda: np.zeros(0x110000, np.int64))
    repeats: Lines = field(default_factory=Lines)

    @property
    def counts(self) -> np.ndarray:
        return self.train + self.valid

    @property
    def characters(self) -> int:
        return int(self.train.sum() + self.valid.sum())

    @property
    def cjk(self) -> int:
        return int(sum(self.train[a:b].sum() + self.valid[a:b].sum() for a, b in CJK))


def examine_text(spec: str, column: str = "text", valid: float = 0.1) -> list[Finding]:
    """Everything worth knowing about a language model's text, errors among it; never raises for what is in the file."""
    try:
        source = open_text(spec, column)
        survey = _survey(source, valid)
        mixed = _mixed_line_ends(Path(spec)) if not spec.startswith("sample:") else []
    except UserError as error:
        return [Finding("error", str(error), "mend the file and look again")]
    findings = [*_size(survey), *_content(survey), *_parts(survey, valid), *mixed, *_tokenizers(survey)]
    if all(finding.level in ("ok", "note") for finding in findings):
        findings.append(Finding("ok", "nothing wrong found"))
    return findings


def _survey(source: Source, valid: float) -> Survey:
    found = Survey()
    training_bytes = int(source.bytes * (1 - valid))
    for number, (text, training) in enumerate(_parted(source, training_bytes)):
        codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        counts, part = np.bincount(codes), found.train if training else found.valid
        part[: len(counts)] += counts
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


def _parted(source: Source, training_bytes: int) -> Iterator[tuple[str, bool]]:
    """Pieces, and whether each belongs to the training part; to within a piece, unless the text is a single one."""
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
        yield Finding("warning", f"{size}: too little to learn a language from", "expect it to be learnt by heart")
    elif survey.bytes < SMALL:
        yield Finding("note", f"{size}: a small text", "a small model, dropout and early stopping suit it")
    else:
        yield Finding("ok", size)
    if survey.lines == 1 and survey.bytes > TINY:
        yield Finding("note", "the whole text is one line", "if it had lines once, keep them: they are worth learning")
    elif survey.longest > 100_000:
        yield Finding("note", f"the longest line has {survey.longest:,} characters or more", "is it really text?")


def _content(survey: Survey) -> Iterator[Finding]:
    counts = survey.counts
    distinct, rare = int((counts > 0).sum()), int(((counts > 0) & (counts < 5)).sum())
    message = f"{distinct:,} different characters, {rare:,} of them seen fewer than 5 times"
    if distinct == 1:
        yield Finding("error", "a single character, repeated: there is nothing to predict", "use another text")
    elif rare > 100 and rare > distinct / 4:
        yield Finding("note", message, "a min_count of 5 would make the rare ones <unk>")
    else:
        yield Finding("ok", message)
    if survey.cjk:
        share = survey.cjk / survey.characters
        yield Finding("ok", f"{share:.1%} of the characters are Chinese or Japanese")
    if control := int(counts[CONTROL].sum()):
        codes = ", ".join(f"U+{code:04X}" for code in CONTROL if counts[code])
        yield Finding(
            "warning", f"{control:,} control characters ({codes[:60]})", "remove them unless they mean something"
        )
    if broken := int(counts[REPLACEMENT]):
        advice = "the text was decoded wrongly once; go back to the original file"
        yield Finding("warning", f"{broken:,} replacement characters (U+FFFD)", advice)
    if (repeated := survey.repeats.repeated()) > 0.05:
        level: Level = "warning" if repeated > 0.3 else "note"
        advice = "remove duplicates, or the model learns them by heart"
        yield Finding(level, f"{repeated:.0%} of the lines of {LONG} characters or more are repeats", advice)


def _parts(survey: Survey, valid: float) -> Iterator[Finding]:
    if not valid:
        return
    level: Level
    new = np.flatnonzero((survey.valid > 0) & (survey.train == 0))
    if len(new):
        shown = " ".join(chr(code) if chr(code).isprintable() else f"U+{code:04X}" for code in new[:10])
        share = survey.valid[new].sum() / survey.valid.sum()
        message = f"{len(new):,} characters of the validation part are not in the training part ({shown})"
        level = "warning" if share > 0.001 else "note"
        yield Finding(level, message, "they become <unk> with the tokenizer characters; bytes and bpe know them all")
    if (overlap := survey.repeats.overlap()) > 0.01:
        message = f"{overlap:.0%} of the validation part's long lines are in the training part too"
        level = "warning" if overlap > 0.05 else "note"
        yield Finding(level, message, "the score will flatter the model; remove duplicates or give another --valid")


def _mixed_line_ends(path: Path) -> list[Finding]:
    if path.is_dir() or suffix(path) in READERS:
        return []
    windows = unix = old = 0
    last = b""
    for block in read_blocks(path):
        both = block.count(b"\r\n") + (last == b"\r" and block[:1] == b"\n")
        windows, unix, old = windows + both, unix + block.count(b"\n") - both, old + block.count(b"\r") - both
        last = block[-1:]
    kinds = {"\\r\\n": windows, "\\n": unix, "\\r": old}
    if sum(count > 0 for count in kinds.values()) < 2:
        return []
    shown = ", ".join(f"{count:,} {name}" for name, count in kinds.items() if count)
    return [Finding("note", f"mixed line ends ({shown})", "all are read as \\n; nothing to do")]


def _tokenizers(survey: Survey) -> Iterator[Finding]:
    words = round(survey.words * survey.bytes / max(survey.words_bytes, 1))
    unspaced = survey.cjk > 0.3 * survey.characters and survey.cjk > 3 * survey.runs
    subwords = round(survey.cjk / 1.4 + (survey.bytes - 3 * survey.cjk) / 4)
    kinds = {"characters": survey.characters, "bytes": survey.bytes, "bpe": subwords}
    if not unspaced:
        kinds["words"] = words
    estimates = ", ".join(f"{kind} {count:,}" for kind, count in kinds.items())
    yield Finding("note", f"tokens, about: {estimates}", f"{_suited(survey, unspaced)} suits this text")
    if unspaced:
        message = "no blanks between the words, so the tokenizer words does not suit it"
        yield Finding("note", message, "use characters, bytes or bpe, or segment the text first")


def _suited(survey: Survey, unspaced: bool) -> str:
    distinct = int((survey.counts > 0).sum())
    if survey.bytes < 5_000_000:
        return "bytes" if distinct > 1000 and not unspaced else "characters"
    return "bpe"
