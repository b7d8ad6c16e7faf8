"""What a report is made of, before it is HTML or Markdown. All texts are plain: whoever renders them escapes them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cell:
    text: str
    small: str = ""  # second line: an interval, a p value
    mark: str = ""  # a verdict, shown as a coloured word: best, tie, worse, unclear, failed
    entry: int | None = None  # the entry whose colour stands before it
    rank: str = ""  # its place, before everything
    span: int = 1  # columns it takes


@dataclass(frozen=True)
class Row:
    cells: list[Cell]
    kind: str = ""  # chosen: the one to look at; failed; muted: a baseline


@dataclass(frozen=True)
class Column:
    title: str
    small: str = ""
    number: bool = True


@dataclass(frozen=True)
class Table:
    caption: str
    columns: list[Column]
    rows: list[Row]
    even: bool = False  # all columns but the first equally wide


@dataclass(frozen=True)
class Text:
    text: str
    kind: str = ""  # lead: the sentence to remember; muted: a remark


@dataclass(frozen=True)
class Answer:
    """The recommendation."""

    label: str
    title: str
    remark: str
    groups: list[tuple[str, list[str]]]
    entry: int | None = None


@dataclass(frozen=True)
class Axis:
    title: str
    log: bool = False
    ticks: list[tuple[float, str]] = field(default_factory=list)  # none: left to the chart
    format: str = ".4~r"  # of a value under the pointer (d3-format)
    unit: str = ""
    range: tuple[float, float] | None = None  # None: what the data needs
    named: bool = False  # the ticks are names, one row each


@dataclass(frozen=True)
class Series:
    name: str
    x: list[float]
    y: list[float]
    entry: int | None = None  # None: belongs to no entry
    low: list[float | None] = field(default_factory=list)  # interval along x
    high: list[float | None] = field(default_factory=list)
    draw: str = "both"  # line | points | both | thin | faint | front
    open: list[bool] = field(default_factory=list)  # hollow markers


@dataclass(frozen=True)
class Rule:
    """A dotted line across the chart."""

    label: str
    x: float | None = None
    y: float | None = None


@dataclass(frozen=True)
class Panel:
    title: str
    x: Axis
    y: Axis
    series: list[Series]
    rules: list[Rule] = field(default_factory=list)


@dataclass(frozen=True)
class Chart:
    key: str
    title: str
    panels: list[Panel]
    legend: list[tuple[int, str]]
    tables: list[Table] = field(default_factory=list)  # the same numbers, to read
    remark: str = ""


@dataclass(frozen=True)
class Samples:
    items: list[tuple[int, str, str, str]]  # entry, name, prompt, text


@dataclass(frozen=True)
class Code:
    items: list[tuple[str, str]]  # what it does, command


@dataclass(frozen=True)
class Fold:
    title: str
    blocks: list[Block]


Block = Table | Text | Answer | Chart | Samples | Code | Fold


@dataclass(frozen=True)
class Section:
    key: str
    title: str
    blocks: list[Block]


@dataclass(frozen=True)
class Document:
    language: str
    title: str
    date: str
    facts: list[tuple[str, str]]
    sections: list[Section]
