"""The building blocks of a report, before rendering as HTML or Markdown. Texts are plain: renderers escape them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cell:
    text: str
    small: str = ""  # second line: an interval or a p-value
    mark: str = ""  # a verdict, shown as a coloured word: best, equivalent, worse, unclear, failed
    entry: int | None = None  # shown with the colour of this entry
    rank: str = ""  # shown before everything else
    span: int = 1  # columns it takes
    shade: float = 0.0  # strength of the background, up to 1
    tone: str = ""  # of the background: right, wrong
    link: str = ""  # address that the text leads to


@dataclass(frozen=True)
class Row:
    cells: list[Cell]
    kind: str = ""  # chosen: the recommended entry; failed; muted: a baseline


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
    even: bool = False  # all columns but the first have the same width
    matrix: bool = False  # narrow cells with shaded numbers
    prose: bool = False  # sentences: on a phone the cells of a row stand one below the other


@dataclass(frozen=True)
class Text:
    text: str
    kind: str = ""  # lead: the key message; muted: a remark


@dataclass(frozen=True)
class Answer:
    """The recommendation, in one sentence."""

    label: str
    title: str
    sentence: str
    remark: str
    entry: int | None = None


@dataclass(frozen=True)
class Points:
    """A list of sentences under a heading."""

    title: str
    items: list[str]


@dataclass(frozen=True)
class Axis:
    title: str
    log: bool = False
    ticks: list[tuple[float, str]] = field(default_factory=list)  # empty: left to the chart
    format: str = ".4~r"  # of values in tooltips (d3-format)
    unit: str = ""
    range: tuple[float, float] | None = None  # None: fitted to the data
    named: bool = False  # the ticks are names, one row each


@dataclass(frozen=True)
class Series:
    name: str
    x: list[float]
    y: list[float]
    entry: int | None = None  # None: belongs to no entry
    low: list[float | None] = field(default_factory=list)  # limits of an interval along x (upright: along y)
    high: list[float | None] = field(default_factory=list)
    draw: str = "both"  # line | points | both | thin | faint | front | truth | bar | band (the outline of an area)
    open: list[bool] = field(default_factory=list)  # hollow markers
    dash: int | None = None  # of a line that belongs to no entry: a number of the dashes of the page
    upright: bool = False


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
    tables: list[Table] = field(default_factory=list)  # the same numbers as tables
    remark: str = ""
    others: list[tuple[int | None, str]] = field(default_factory=list)  # lines of no entry: dash (None: truth), name


@dataclass(frozen=True)
class Piece:
    text: str
    tag: str = ""
    mark: str = ""  # right, wrong, key: what is asked for


@dataclass(frozen=True)
class Line:
    """A text in pieces, with its name before it."""

    name: str
    pieces: list[Piece]
    entry: int | None = None  # shown with the colour of this entry
    mark: str = ""  # right, wrong: a word after the text


@dataclass(frozen=True)
class Examples:
    items: list[list[Line]]  # what is given, what is wanted, and what each entry makes of it


@dataclass(frozen=True)
class Samples:
    items: list[tuple[int, str, str, str]]  # entry, name, prompt, text


@dataclass(frozen=True)
class Code:
    items: list[tuple[str, str]]  # what it does, command
    language: str = "bash"


@dataclass(frozen=True)
class Fold:
    title: str
    blocks: list[Block]


@dataclass(frozen=True)
class Picture:
    """A drawing: inside an HTML page as it is, in Markdown as the file beside it."""

    svg: str
    caption: str
    file: str
    link: str = ""  # address that it leads to


Block = Picture | Table | Text | Answer | Points | Chart | Examples | Samples | Code | Fold


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
