"""Small figures as SVG text: narrow enough for a phone, in the colours of the pages, light or dark.

The drawing carries its own style and background, so that it looks the same inside a page and as a file of its own.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from html import escape

from seqloom.pages.axes import Scale, scale, tick_label
from seqloom.pages.formats import short
from seqloom.pages.plots import Bars, Heat, Level, Lines, Panel
from seqloom.pages.words import LANGUAGES

WIDTH, EDGE, PLOT = 440, 12, 210  # pixels
LINE = 18  # height of a line of text
HUES = 7
DASHES = ("", "7 3", "2 3", "9 3 2 3", "12 4")
MARKS = (
    "M-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0Z", "M-3-3h6v6h-6Z", "M0-4L4 0L0 4L-4 0Z", "M0-4L4 3H-4Z", "M0 4L4-3H-4Z",
)  # fmt: skip
STYLE = """
.drawn{--card:#ffffff;--ink:#1d2126;--soft:#565d66;--line:#e3e4e2;--heat:#0b5c8f;--c0:#0072b2;--c1:#d55e00;--c2:#009e73;
--c3:#cc79a7;--c4:#b87e00;--c5:#2f93cc;--c6:#444b54;background:var(--card);
font:13px system-ui,-apple-system,"Segoe UI",Roboto,"PingFang SC","Microsoft YaHei","Noto Sans CJK SC",sans-serif}
@media screen and (prefers-color-scheme:dark){.drawn{--card:#1b1f24;--ink:#e7e9ec;--soft:#a4abb4;--line:#2d333a;
--heat:#8fd0f5;--c0:#3a9bd9;--c1:#f0762a;--c2:#22b98c;--c3:#d992bb;--c4:#e9ad26;--c5:#8fd0f5;--c6:#c3c8ce}}
.drawn text{fill:var(--ink)}.drawn .soft{fill:var(--soft)}.drawn .head{font-weight:600}.drawn .grid{stroke:var(--line)}
.drawn .level{stroke:var(--soft);stroke-dasharray:2 4}
.drawn .curve{fill:none;stroke:var(--c);stroke-width:2;stroke-linejoin:round}
.drawn .band{fill:var(--c);opacity:.18}.drawn .mark,.drawn .bar{fill:var(--c)}.drawn .span{stroke:var(--ink);fill:none}
.drawn .halo{stroke:var(--card);stroke-width:3;paint-order:stroke}
.drawn .cell{fill:var(--heat)}.drawn .grey{--c:var(--soft)}
"""
_CLASSES = "".join(f".drawn .c{n}{{--c:var(--c{n})}}" for n in range(HUES))


def draw(panels: Sequence[Panel], language: str, title: str) -> str:
    """`title`: what a screen reader says of the figure."""
    column, down = LANGUAGES.index(language), float(EDGE)
    body: list[str] = []
    for panel in panels:
        sheet = _Sheet(column, down)
        sheet.panel(panel)
        body += sheet.parts
        down = sheet.down + 2 * EDGE
    height = round(down - EDGE)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="drawn" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img" aria-label="{escape(title)}">'
    )
    return "\n".join([head, f"<style>{STYLE.strip()}\n{_CLASSES}</style>", *body, "</svg>"]) + "\n"


class _Sheet:
    """Draws panels from `down` on, in one language."""

    def __init__(self, column: int, down: float) -> None:
        self.column, self.down = column, down
        self.parts: list[str] = []

    def panel(self, panel: Panel) -> None:
        if panel.title[self.column]:
            self.paragraph(panel.title[self.column], "head")
        match panel:
            case Lines():
                self.lines(panel)
            case Bars():
                self.bars(panel)
            case Heat():
                self.heat(panel)

    def lines(self, panel: Lines) -> None:
        self.legend(
            [(self.style(n, c.draw == "dashed"), c.draw, c.name[self.column]) for n, c in enumerate(panel.curves)]
        )
        self.paragraph(panel.y[self.column], "soft")
        top, bottom = self.down + 6, self.down + 6 + PLOT
        heights = [v for c in panel.curves for v in (*c.y, *c.low, *c.high)] + [level.at for level in panel.levels]
        up = scale(heights, panel.log_y, bottom, top, zero=panel.from_zero)
        left = EDGE + max(_width(tick_label(v)) for v in up.ticks()) + 6
        across = scale([v for c in panel.curves for v in c.x], panel.log_x, left, WIDTH - EDGE - 4)
        for value in up.ticks():
            self.rule("grid", left, up(value), WIDTH - EDGE, up(value))
            self.text(left - 6, up(value) + 4.5, tick_label(value), "soft", "end")
        self.axis(across, panel.ticks or across.ticks(), bottom)
        for level in panel.levels:
            self.rule("level", left, up(level.at), WIDTH - EDGE, up(level.at))
            self.text(left + 4, up(level.at) - 4, level.name[self.column], "soft halo")
        for n, curve in enumerate(panel.curves):
            points = [(across(x), up(y)) for x, y in zip(curve.x, curve.y, strict=True)]
            if curve.low:
                edge = [(across(x), up(y)) for x, y in zip(curve.x, curve.high, strict=True)]
                edge += [(across(x), up(y)) for x, y in zip(curve.x[::-1], curve.low[::-1], strict=True)]
                self.parts.append(f'<path class="band {self.style(n, False)}" d="{_path(edge)}Z"/>')
            if curve.draw != "points":
                self.curve(n, curve.draw == "dashed", points)
            if curve.draw == "points" or (curve.draw == "line" and len(points) <= 24):
                self.parts += [self.mark(n, *point) for point in points]
        self.down = bottom + LINE
        self.paragraph(panel.x[self.column], "soft", middle=True)

    def bars(self, panel: Bars) -> None:
        if len(panel.series) > 1:
            self.legend([(f"c{n % HUES}", "bar", one.name[self.column]) for n, one in enumerate(panel.series)])
        values = [v for one in panel.series for v in (*one.values, *one.low, *one.high)]
        values += [level.at for level in panel.levels]
        room = max(_width(short(v, 3)) for one in panel.series for v in one.values) + 10
        across = scale(values, panel.log, EDGE, WIDTH - EDGE - room, zero=True)
        top = self.down
        for place, group in enumerate(panel.groups):
            self.paragraph(group[self.column])
            for n, one in enumerate(panel.series):
                self.bar(
                    f"c{n % HUES}", across, one.values[place], [ends[place] for ends in (one.low, one.high) if ends]
                )
            self.down += 5
        ticks = across.ticks(5)
        for level in panel.levels:
            self.rule("level", across(level.at), top, across(level.at), self.down)
        self.axis(across, ticks, self.down)
        self.down += LINE
        self.levels(panel.levels, panel.x[self.column])

    def levels(self, levels: list[Level], axis: str) -> None:
        self.paragraph(axis, "soft", middle=True)
        for level in levels:
            self.paragraph(f"┊ {level.name[self.column]}", "soft")

    def bar(self, style: str, across: Scale, value: float, ends: list[float]) -> None:
        start = across.start if across.log else across(0.0)
        left, right = sorted((start, across(value)))
        self.block(style, left, self.down + 2, max(1.0, right - left))
        middle = self.down + 8
        for end, other in [(ends[0], ends[1])] if len(ends) == 2 else []:
            shape = f"M{across(end):.1f} {middle - 3:.1f}v6m0-3H{across(other):.1f}m0-3v6"
            self.parts.append(f'<path class="span" d="{shape}"/>')
        self.text(max([right, *map(across, ends)]) + 5, self.down + 12.5, short(value, 3), "soft")
        self.down += 17

    def heat(self, panel: Heat) -> None:
        self.paragraph(panel.y[self.column], "soft")
        left = EDGE + max((_width(name) for name in panel.rows), default=0) + 6
        side = min(34.0, (WIDTH - EDGE - left) / max(1, len(panel.columns)))
        every = max(1, round(max((_width(name) for name in panel.columns), default=0) / side + 0.3))
        flat = [value for row in panel.values for value in row]
        low, high = panel.range or (min(flat), max(flat))
        tall = min(side, 22.0)
        for name, row in zip(panel.rows, panel.values, strict=True):
            self.text(left - 6, self.down + tall / 2 + 4.5, name, "soft", "end")
            for n, value in enumerate(row):
                share = min(1.0, max(0.0, (value - low) / (high - low))) if high > low else 0.0
                self.parts.append(
                    f'<rect class="cell" x="{left + n * side:.1f}" y="{self.down:.1f}" width="{side - 1:.1f}" '
                    f'height="{tall - 1:.1f}" opacity="{0.04 + 0.96 * share:.2f}"/>'
                )
            self.down += tall
        for n, name in enumerate(panel.columns):
            if n % every == 0:
                self.text(left + (n + 0.5) * side, self.down + 14, name, "soft", "middle")
        self.down += LINE
        self.paragraph(panel.x[self.column], "soft", middle=True)

    def axis(self, across: Scale, ticks: list[float], down: float) -> None:
        """Ticks along x; those that would touch the one before are left out."""
        free = 0.0
        for value in ticks:
            label, place = tick_label(value), across(value)
            half = _width(label) / 2
            self.rule("grid", place, down, place, down + 4)
            if place - half >= free:
                self.text(min(place, WIDTH - 2 - half), down + 16, label, "soft", "middle")
                free = place + half + 6

    def legend(self, items: list[tuple[str, str, str]]) -> None:
        """Keys side by side where they fit."""
        left = float(EDGE)
        for n, (style, kind, name) in enumerate(items):
            long = 32 + _width(name) + 14
            if left > EDGE and left + long > WIDTH:
                left, self.down = float(EDGE), self.down + LINE
            middle = self.down + 9
            if kind == "bar":
                self.block(style, left, middle - 6, 24)
            elif kind != "points":
                self.curve(n, kind == "dashed", [(left, middle), (left + 24, middle)])
            if kind in ("line", "points"):
                self.parts.append(self.mark(n, left + 12, middle))
            self.text(left + 30, middle + 4.5, name)
            left += long
        self.down += LINE + 4 if items else 0

    def paragraph(self, text: str, kind: str = "", middle: bool = False) -> None:
        for line in _wrapped(text, WIDTH - 2 * EDGE):
            self.text(WIDTH / 2 if middle else EDGE, self.down + 13, line, kind, "middle" if middle else "")
            self.down += LINE

    def curve(self, number: int, quiet: bool, points: list[tuple[float, float]]) -> None:
        dash = "4 4" if quiet else DASHES[number % len(DASHES)]
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<path class="curve {self.style(number, quiet)}"{dashed} d="{_path(points)}"/>')

    def mark(self, number: int, x: float, y: float) -> str:
        shape = MARKS[number % len(MARKS)]
        return f'<path class="mark c{number % HUES}" transform="translate({x:.1f} {y:.1f})" d="{shape}"/>'

    @staticmethod
    def style(number: int, quiet: bool) -> str:
        return "grey" if quiet else f"c{number % HUES}"

    def block(self, style: str, x: float, y: float, width: float) -> None:
        size = f'width="{width:.1f}" height="12"'
        self.parts.append(f'<rect class="bar {style}" x="{x:.1f}" y="{y:.1f}" {size}/>')

    def rule(self, kind: str, x: float, y: float, to_x: float, to_y: float) -> None:
        self.parts.append(f'<path class="{kind}" d="M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}"/>')

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "") -> None:
        where = f' text-anchor="{anchor}"' if anchor else ""
        named = f' class="{kind}"' if kind else ""
        self.parts.append(f'<text{named} x="{x:.1f}" y="{y:.1f}"{where}>{escape(text)}</text>')


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _width(text: str) -> float:
    """Of a line of 13 pixels; Chinese characters are twice as wide."""
    return sum(13.0 if unicodedata.east_asian_width(letter) in "WF" else 7.0 for letter in text)


def _wrapped(text: str, room: float) -> list[str]:
    """Lines no wider than the room: broken at spaces, Chinese anywhere."""
    lines = [""]
    for piece in re.findall(r"[\u3000-\u9fff\uff00-\uffef]|[^\s\u3000-\u9fff\uff00-\uffef]+\s*|\s+", text):
        if lines[-1] and _width((lines[-1] + piece).rstrip()) > room and piece not in "，。；：、）":
            lines.append("")
        lines[-1] += piece
    return [line.rstrip() for line in lines if line.strip()]
