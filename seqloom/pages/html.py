"""A document as one HTML page, with plotly charts and a language switch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from typing import Any

from seqloom.pages.blocks import (
    Answer,
    Block,
    Cell,
    Chart,
    Code,
    Column,
    Document,
    Examples,
    Fold,
    Line,
    Panel,
    Picture,
    Piece,
    Points,
    Row,
    Samples,
    Section,
    Table,
    Text,
)  # fmt: skip
from seqloom.pages.shell import embedded, page, part
from seqloom.pages.words import LANGUAGES, TAGS, Speaker

HUES = 7  # colours in base.css; further entries reuse them with another shape and dash
SHAPES = [  # plotly's name, and the same shape as an SVG path around 0,0
    ("circle", "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0Z"),
    ("square", "M-4-4h8v8h-8Z"),
    ("diamond", "M0-5.5L5.5 0L0 5.5L-5.5 0Z"),
    ("triangle-up", "M0-5L5 4H-5Z"),
    ("cross", "M-1.7-5h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3v-3.4h3.3Z"),
    ("triangle-down", "M0 5L5-4H-5Z"),
    ("x", "M-5-2.6L-2.6-5L0-2.4L2.6-5L5-2.6L2.4 0L5 2.6L2.6 5L0 2.4L-2.6 5L-5 2.6L-2.4 0Z"),
    ("hexagon", "M-2.6-4.6h5.2L5.2 0L2.6 4.6h-5.2L-5.2 0Z"),
]
DASHES = ["solid", "7px,3px", "2px,3px", "9px,3px,2px,3px", "12px,4px"]


_BAR = """<header class="bar">
<span class="brand">seqloom</span>
<nav class="languages" aria-label="Language / 语言">
<button type="button" data-language="en" lang="en" aria-pressed="true">EN</button>
<button type="button" data-language="zh" lang="zh-CN" aria-pressed="false">中文</button>
</nav>
</header>"""


def render(documents: Sequence[Document], *, entries: int, version: str) -> str:
    """`documents`: the same content in each language; `entries`: the number of entries that its charts compare."""
    panels: dict[str, Panel] = {}
    articles = [_Article(found, panels, version).html() for found in documents]
    styles = [_style(number) for number in range(entries)]
    drawn = {key: asdict(panel) for key, panel in panels.items()}
    charts = embedded({"styles": styles, "dashes": DASHES, "panels": drawn})
    body = [
        _BAR, "<main>", *articles, "</main>", '<div class="paper" hidden></div>',
        f'<script type="application/json" id="charts">{charts}</script>',
    ]  # fmt: skip
    scripts = [*([_plotly()] if panels else []), part("report.js")]
    return page(documents[0].title, "\n".join(body), css=part("report.css"), scripts=scripts)


def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs()).replace("\r\n", "\n")


class _Article:
    """The page in one language. Charts are collected in `panels`, keyed by the id of the element to draw them in."""

    def __init__(self, content: Document, panels: dict[str, Panel], version: str) -> None:
        self.content, self.panels, self.version = content, panels, version
        self.say = Speaker(content.language)
        self.titles = {section.title for section in content.sections}  # charts do not repeat them

    def html(self) -> str:
        content, say = self.content, self.say
        links = [f'<li><a href="#{self._id(s.key)}">{escape(s.title)}</a></li>' for s in content.sections[1:]]
        facts = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in content.facts)
        return "\n".join([
            f'<article data-language="{content.language}" lang="{TAGS[content.language]}" '
            f'data-title="{escape(content.title)}"{"" if content.language == LANGUAGES[0] else " hidden"}>',
            f"<h1>{escape(content.title)}</h1>",
            f'<p class="date">{escape(content.date)}</p>',
            f'<dl class="headline">{facts}</dl>',
            f'<noscript><p class="muted">{escape(say("no script"))}</p></noscript>',
            *map(self.section, content.sections[:1]),  # the recommendation, before the table of contents
            f'<nav class="contents" aria-label="{escape(say("contents"))}"><ul>{"".join(links)}</ul></nav>',
            *map(self.section, content.sections[1:]),
            f'<footer class="muted">{escape(say("made by", version=self.version))}</footer>',
            "</article>",
        ])  # fmt: skip

    def section(self, section: Section) -> str:
        name = ' class="answer-section"' if any(isinstance(block, Answer) for block in section.blocks) else ""
        inside = "\n".join(map(self.block, section.blocks))
        return f'<section id="{self._id(section.key)}"{name}>\n<h2>{escape(section.title)}</h2>\n{inside}\n</section>'

    def block(self, block: Block) -> str:
        match block:
            case Text():
                return f'<p class="{block.kind}">{_nonbreaking(block.text)}</p>'
            case Table():
                return self.table(block)
            case Chart():
                return self.chart(block)
            case Picture():
                return _picture(block)
            case Answer():
                return self.answer(block)
            case Points():
                items = "".join(f"<li>{_nonbreaking(item)}</li>" for item in block.items)
                return f'<div class="points"><h3>{escape(block.title)}</h3><ul>{items}</ul></div>'
            case Fold():
                inside = "".join(map(self.block, block.blocks))
                return f"<details><summary>{escape(block.title)}</summary>{inside}</details>"
            case Examples():
                return f'<div class="examples">{"".join(map(self.example, block.items))}</div>'
            case Samples():
                return f'<div class="samples">{"".join(_sample(*item) for item in block.items)}</div>'
            case Code():
                shown = [f"<p>{escape(title)}</p><pre><code>{_options(c)}</code></pre>" for title, c in block.items]
                return f'<div class="commands">{"".join(shown)}</div>'

    def answer(self, block: Answer) -> str:
        return (
            f'<div class="answer {_hue(block.entry)}"><p class="label">{escape(block.label)}</p>'
            f'<p class="choice">{escape(block.title)}</p><p>{_nonbreaking(block.sentence)}</p>'
            f'<p class="remark">{escape(block.remark)}</p></div>'
        )

    def example(self, lines: list[Line]) -> str:
        return f'<dl class="example">{"".join(map(self.line, lines))}</dl>'

    def line(self, line: Line) -> str:
        swatch = _swatch(line.entry) if line.entry is not None else ""
        mark = f' <span class="mark {line.mark}">{escape(self.say.term("mark", line.mark))}</span>' if line.mark else ""
        return f"<dt>{swatch}{escape(line.name)}</dt><dd>{''.join(map(_piece, line.pieces))}{mark}</dd>"

    def table(self, table: Table) -> str:
        head = "".join(_heading(column, "sticky" if place == 0 else "") for place, column in enumerate(table.columns))
        body = "\n".join(self.row(row, table.columns) for row in table.rows)
        kinds = {"even": table.even, "matrix": table.matrix, "prose": table.prose, "wide": len(table.columns) > 6}
        kind = next((name for name, given in kinds.items() if given), "")
        caption = escape(table.caption)
        return (
            f'<div class="scroll {kind}" style="--columns: {len(table.columns)}" role="region" tabindex="0" '
            f'aria-label="{caption}"><table><caption><span>{caption}</span></caption>'
            f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
        )

    def row(self, row: Row, columns: list[Column]) -> str:
        cells, place = [], 0
        for cell in row.cells:
            column = columns[place]
            number = "number" if column.number and cell.span == 1 else ""
            span = f' colspan="{cell.span}"' if cell.span > 1 else ""
            tag, name = ("th scope=row", "sticky") if place == 0 else ("td", number)
            if cell.tone:
                name, span = f"{name} {cell.tone}", f'{span} style="--shade: {min(1.0, cell.shade):.3f}"'
            cells.append(f'<{tag} class="{name}"{span}>{self.cell(cell)}</{tag.split()[0]}>')
            place += cell.span
        return f'<tr class="{row.kind}">{"".join(cells)}</tr>'

    def cell(self, cell: Cell) -> str:
        swatch = _swatch(cell.entry) if cell.entry is not None else ""
        name = "top" if cell.mark == "top" else "reason" if cell.span > 1 else ""
        text = f'<a href="{escape(cell.link)}">{escape(cell.text)}</a>' if cell.link else _options(cell.text)
        text = f'<span class="{name}">{text}</span>' if name else text
        small = f'<span class="small">{_breakable(cell.small)}</span>' if cell.small else ""
        mark = ""
        if cell.mark and cell.mark != "top":
            word = escape(self.say.term("verdict", cell.mark))
            mark = f'<span class="verdict"><span class="mark {escape(cell.mark)}">{word}</span></span>'
        rank = f'<span class="rank">{escape(cell.rank)}</span>' if cell.rank else ""
        return f"{rank}{swatch}{text}{small}{mark}"

    def chart(self, chart: Chart) -> str:
        panels = "".join(self.panel(chart, number, panel) for number, panel in enumerate(chart.panels))
        keys = "".join(_key(entry, name) for entry, name in chart.legend)
        keys += "".join(_other(dash, name) for dash, name in chart.others)
        legend = (
            f'<div class="legend" role="group" aria-label="{escape(self.say("legend"))}">{keys}</div>' if keys else ""
        )
        title = "" if chart.title in self.titles else f"<h3>{escape(chart.title)}</h3>"
        remark = f'<p class="muted">{escape(chart.remark)}</p>' if chart.remark else ""
        tables = "".join(map(self.table, chart.tables))
        fold = f"<details><summary>{escape(self.say('numbers'))}</summary>{tables}</details>" if tables else ""
        return (
            f'<figure><figcaption>{title}{remark}</figcaption>{legend}<div class="panels">{panels}</div>{fold}</figure>'
        )

    def panel(self, chart: Chart, number: int, panel: Panel) -> str:
        key = self._id(f"{chart.key}-{number}")
        self.panels[key] = panel
        label = self.say("colon").join(filter(None, [panel.title or chart.title, panel.x.title, panel.y.title]))
        title = f"<h4>{escape(panel.title)}</h4>" if panel.title not in ("", chart.title) else ""
        up = f'<p class="up">{escape(panel.y.title)}</p>' if panel.y.title else ""
        plot = f'<div class="plot" id="{key}" role="img" aria-label="{escape(label)}"></div>'
        return f'<div class="panel">{title}{up}{plot}</div>'

    def _id(self, key: str) -> str:
        return f"{self.content.language}-{key}"


def _nonbreaking(text: str) -> str:
    """Escaped, with non-breaking spaces between numbers and units, and no line break inside an option."""
    return re.sub(
        r"(?<=\d) (?=(?:[kMGT]?B|[mµ]?s|[kMGT]|nats)\b|%)|(?<=\bp) (?=[=<])|(?<=[=<]) (?=\d)", "\u00a0", _options(text)
    )


def _options(text: str) -> str:
    """Escaped; an option such as `--max-new` or `-o` is not broken at its hyphens."""
    return re.sub(r"(?<![\w-])--?[a-z][a-z-]*", r'<span class="option">\g<0></span>', escape(text))


def _breakable(text: str) -> str:
    """Escaped, with line breaks allowed inside long dotted names."""
    return re.sub(r"(?<=\w)[._](?=[A-Za-z])", lambda found: found[0] + "<wbr>", escape(text))


def _heading(column: Column, name: str) -> str:
    number = "number" if column.number and not name else ""
    small = f'<span class="small">{escape(column.small)}</span>' if column.small else ""
    return f'<th scope="col" class="{name or number}">{escape(column.title)}{small}</th>'


def _sample(entry: int, name: str, prompt: str, text: str) -> str:
    return (
        f'<div class="sample {_hue(entry)}"><h3>{_swatch(entry)}{escape(name)}</h3>'
        f"<blockquote><b>{escape(prompt)}</b>{escape(text)}</blockquote></div>"
    )


def _picture(picture: Picture) -> str:
    drawn = f'<a href="{escape(picture.link)}">{picture.svg}</a>' if picture.link else picture.svg
    return f'<figure class="picture"><figcaption class="muted">{escape(picture.caption)}</figcaption>{drawn}</figure>'


def _piece(piece: Piece) -> str:
    """Spaces before and after stay outside of the mark."""
    text = escape(piece.text)
    if not piece.tag and not piece.mark:
        return text
    tag = f"<small>{escape(piece.tag)}</small>" if piece.tag else ""
    inside = f'<span class="piece {escape(piece.mark)}">{escape(piece.text.strip())}{tag}</span>'
    lead = piece.text[: len(piece.text) - len(piece.text.lstrip())]
    rest = piece.text[len(piece.text.rstrip()) :] if piece.text.strip() else ""
    return f"{lead}{inside}{rest}"


def _style(entry: int) -> dict[str, Any]:
    return {"hue": entry % HUES, "symbol": SHAPES[entry % len(SHAPES)][0], "dash": DASHES[entry % len(DASHES)]}


def _hue(entry: int | None) -> str:
    return "" if entry is None else f"hue-{entry % HUES}"


def _swatch(entry: int) -> str:
    shape = SHAPES[entry % len(SHAPES)][1]
    frame = f'<svg class="swatch {_hue(entry)}" viewBox="-6 -6 12 12" aria-hidden="true">'
    return f'{frame}<path d="{shape}" fill="currentColor"/></svg>'


def _other(dash: int | None, name: str) -> str:
    """A legend item for a line that belongs to no entry."""
    kind = "truth" if dash is None else "thin"
    dashes = "none" if dash is None else DASHES[dash % len(DASHES)].replace("px", "").replace("solid", "none")
    return (
        f'<span class="other {kind}"><svg viewBox="-15 -6 30 12" aria-hidden="true"><path d="M-15 0H15" '
        f'stroke="currentColor" stroke-dasharray="{dashes}"/></svg>{escape(name)}</span>'
    )


def _key(entry: int, name: str) -> str:
    """A legend button with the line and marker of the entry, as the charts draw them."""
    dash = DASHES[entry % len(DASHES)].replace("px", "").replace("solid", "none")
    return (
        f'<button type="button" aria-pressed="true" data-entry="{entry}" class="{_hue(entry)}">'
        f'<svg viewBox="-15 -6 30 12" aria-hidden="true"><path d="M-15 0H15" stroke="currentColor" stroke-width="2.5" '
        f'stroke-dasharray="{dash}"/><path d="{SHAPES[entry % len(SHAPES)][1]}" fill="currentColor"/></svg>'
        f"{escape(name)}</button>"
    )
