"""How tags tell where a name begins and ends: IOB1, BIO, BIOES, BILOU and BMES are told apart, and all become BIO.

    BIO     B- begins a name, I- goes on with it, O is outside (also called IOB2)
    IOB1    B- only where a name follows another of its kind; else I- begins it
    BIOES   E- ends a name, S- is a name of one word; BILOU: L- and U-; BMES: M- in the middle

A tag that stands where it cannot (I-PER after O in BIO) begins a name: what it says is kept, and counted as broken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

OUTSIDE = "O"
BEGINS, CONTINUES, OPENS = frozenset("BSU"), frozenset("IELM"), frozenset("BIM")  # OPENS: more may follow
SHOWN = 5  # lines of broken tags that are kept to be shown


@lru_cache(1 << 16)
def parse(tag: str) -> tuple[str, str]:
    """`B-PER` is (B, PER), `O` is (O, ""), and any other tag has no prefix: ("", tag)."""
    if tag == OUTSIDE:
        return OUTSIDE, ""
    if len(tag) > 2 and tag[1] == "-" and tag[0] in "BIESLUM":
        return tag[0], tag[2:]
    return "", tag


def to_bio(tags: Sequence[str]) -> list[str]:
    """Tags of names, of whichever scheme, as BIO."""
    converted, before, open_name = [], "", False
    for tag in tags:
        prefix, label = parse(tag)
        if prefix == OUTSIDE:
            before, open_name = "", False
            converted.append(OUTSIDE)
            continue
        goes_on = prefix in CONTINUES and open_name and label == before
        converted.append(f"{'I' if goes_on else 'B'}-{label}")
        before, open_name = label, prefix in OPENS
    return converted


def spans_to_bio(count: int, spans: Iterable[tuple[int, int, str]]) -> list[str]:
    """Names as (first word, end, label), of so many words, as tags."""
    tags = [OUTSIDE] * count
    for first, end, label in spans:
        tags[first:end] = [f"B-{label}", *[f"I-{label}"] * (end - first - 1)]
    return tags


@dataclass
class TagSurvey:
    """What the tags of a file tell of their scheme; filled sentence by sentence."""

    tags: Counter[str] = field(default_factory=Counter)
    first_lines: dict[str, int] = field(default_factory=dict)  # where each tag is first
    free_begins: int = 0  # B- that does not follow a name of its kind: there are none in IOB1
    free_insides: list[int] = field(default_factory=list)  # I- that follows nothing: there are none in BIO; some lines
    insides: int = 0  # how many of them
    unended: list[int] = field(default_factory=list)  # names that are not ended by E-, L-, S- or U-; some lines
    unended_count: int = 0

    def add(self, line: int, tags: Sequence[str]) -> None:
        self.tags.update(tags)
        before, open_name = "", False
        for place, tag in enumerate(tags):
            if tag not in self.first_lines:
                self.first_lines[tag] = line + place
            prefix, label = parse(tag)
            goes_on = open_name and label == before and prefix in CONTINUES
            if open_name and not goes_on:
                self._note_unended(line + place - 1)
            if prefix in BEGINS and label != before:
                self.free_begins += 1
            if prefix in CONTINUES and not goes_on:
                self.insides += 1
                if len(self.free_insides) < SHOWN:
                    self.free_insides.append(line + place)
            before, open_name = label, prefix in OPENS
        if open_name:
            self._note_unended(line + len(tags) - 1)

    def _note_unended(self, line: int) -> None:
        self.unended_count += 1
        if len(self.unended) < SHOWN:
            self.unended.append(line)

    @property
    def prefixes(self) -> set[str]:
        return {parse(tag)[0] for tag in self.tags}

    @property
    def entities(self) -> bool:
        """Whether the tags are those of names: half of the kinds and more, O aside, have a prefix."""
        kinds = [tag for tag in self.tags if tag != OUTSIDE]
        return 2 * sum(bool(parse(tag)[0]) for tag in kinds) >= len(kinds)

    @property
    def bare(self) -> list[str]:
        """Tags without a prefix."""
        return [tag for tag in self.tags if not parse(tag)[0]]

    @property
    def scheme(self) -> str:
        prefixes = self.prefixes
        if not self.entities:
            return "plain"
        if prefixes & {"L", "U"}:
            return "BILOU"
        if prefixes & {"E", "S", "M"}:
            return "BMES" if "M" in prefixes else "BIOES"
        return "IOB1" if self.insides > self.free_begins else "BIO"

    @property
    def broken(self) -> tuple[int, list[int]]:
        """How many tags stand where their scheme forbids it, and the first few lines of such."""
        scheme = self.scheme
        if scheme in ("plain", "IOB1"):
            return 0, []
        if scheme == "BIO":
            return self.insides, self.free_insides
        lines = sorted({*self.free_insides, *self.unended})[:SHOWN]
        return self.insides + self.unended_count, lines
