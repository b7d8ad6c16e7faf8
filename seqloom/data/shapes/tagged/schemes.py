"""Tag schemes, which mark where entities begin and end: IOB1, BIO, BIOES, BILOU and BMES are detected and become BIO.

    BIO     B- begins an entity, I- continues it, O is outside (also called IOB2)
    IOB1    B- only where an entity follows another of the same label; otherwise I- begins it
    BIOES   E- ends an entity, S- is an entity of one word; BILOU: L- and U-; BMES: M- in the middle

A tag that is invalid at its position (I-PER after O in BIO) begins an entity: it is kept, and counted as broken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

OUTSIDE = "O"
BEGINS, CONTINUES, OPENS = frozenset("BSU"), frozenset("IELM"), frozenset("BIM")  # OPENS: more words may follow
SHOWN = 5  # lines of broken tags to report


@lru_cache(1 << 16)
def parse(tag: str) -> tuple[str, str]:
    """`B-PER` is (B, PER), `O` is (O, ""), and any other tag has no prefix: ("", tag)."""
    if tag == OUTSIDE:
        return OUTSIDE, ""
    if len(tag) > 2 and tag[1] == "-" and tag[0] in "BIESLUM":
        return tag[0], tag[2:]
    return "", tag


def to_bio(tags: Sequence[str]) -> list[str]:
    """Entity tags of any scheme as BIO."""
    converted, before, in_entity = [], "", False
    for tag in tags:
        prefix, label = parse(tag)
        if prefix == OUTSIDE:
            before, in_entity = "", False
            converted.append(OUTSIDE)
            continue
        continues = prefix in CONTINUES and in_entity and label == before
        converted.append(f"{'I' if continues else 'B'}-{label}")
        before, in_entity = label, prefix in OPENS
    return converted


def spans_to_bio(count: int, spans: Iterable[tuple[int, int, str]]) -> list[str]:
    """Entities (first word, end, label) in a sentence of `count` words as tags."""
    tags = [OUTSIDE] * count
    for first, end, label in spans:
        tags[first:end] = [f"B-{label}", *[f"I-{label}"] * (end - first - 1)]
    return tags


@dataclass
class TagSurvey:
    """Statistics of tags from which their scheme is inferred; filled sentence by sentence."""

    tags: Counter[str] = field(default_factory=Counter)
    first_lines: dict[str, int] = field(default_factory=dict)  # line where each tag first occurs
    free_begins: int = 0  # B- not after an entity of its label: none in IOB1
    free_insides: list[int] = field(default_factory=list)  # I- that continues nothing: none in BIO; first lines
    insides: int = 0  # their number
    unended: list[int] = field(default_factory=list)  # entities not ended by E-, L-, S- or U-; first lines
    unended_count: int = 0

    def add(self, line: int, tags: Sequence[str]) -> None:
        self.tags.update(tags)
        before, in_entity = "", False
        for place, tag in enumerate(tags):
            if tag not in self.first_lines:
                self.first_lines[tag] = line + place
            prefix, label = parse(tag)
            continues = in_entity and label == before and prefix in CONTINUES
            if in_entity and not continues:
                self._note_unended(line + place - 1)
            if prefix in BEGINS and label != before:
                self.free_begins += 1
            if prefix in CONTINUES and not continues:
                self.insides += 1
                if len(self.free_insides) < SHOWN:
                    self.free_insides.append(line + place)
            before, in_entity = label, prefix in OPENS
        if in_entity:
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
        """Whether the tags mark entities: at least half of the distinct tags, O aside, have a prefix."""
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
        """The number of tags that are invalid in their scheme, and the first lines with such tags."""
        scheme = self.scheme
        if scheme in ("plain", "IOB1"):
            return 0, []
        if scheme == "BIO":
            return self.insides, self.free_insides
        lines = sorted({*self.free_insides, *self.unended})[:SHOWN]
        return self.insides + self.unended_count, lines
