"""Plot the results of every_model.py: python benchmarks/chart.py FILE.json [--out docs/images/speed.svg].

Two panels with logarithmic axes: training speed against sequence length, and decoding time per token against the number
of tokens already in the context. Each line is labelled at its right end. All colours have the same luminance, chosen to
be readable on both light and dark backgrounds.
"""

from __future__ import annotations

import argparse
import colorsys
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

WIDTH, HEIGHT = 460, 390  # of one panel
LEFT, RIGHT, TOP, BOTTOM = 58, 112, 44, 58  # margins around the axes; the line labels are on the right
GREY = "#7a828c"
LUMINANCE = 0.2
LINE = 13  # minimum distance between two labels
OUT = Path(__file__).parent.parent / "docs" / "images" / "speed.svg"

Spot = tuple[float, float]


@dataclass(frozen=True)
class Panel:
    kind: str
    title: str
    across: str
    value: Callable[[float], float]  # converts tokens per second to the value plotted


PANELS = (
    Panel("train", "Training: tokens per second", "sequence length", lambda speed: speed),
    Panel("decode", "Decoding: milliseconds per token", "tokens in the context", lambda speed: 1e3 / speed),
)


class Scale:
    """A logarithmic scale from values to coordinates."""

    def __init__(self, values: Sequence[float], first: float, last: float, margin: float = 0.0) -> None:
        low, high = math.log10(min(values)) - margin, math.log10(max(values)) + margin
        self.low, self.high, self.first, self.last = low, max(high, low + 0.1), first, last

    def __call__(self, value: float) -> float:
        return self.first + (math.log10(value) - self.low) / (self.high - self.low) * (self.last - self.first)

    def ticks(self) -> list[float]:
        """1, 2 and 5 times powers of ten, or only the powers if the range is wide."""
        digits = (1, 2, 5) if self.high - self.low < 2.5 else (1,)
        powers = range(math.floor(self.low), math.ceil(self.high) + 1)
        return [d * 10.0**p for p in powers for d in digits if self.low <= math.log10(d * 10.0**p) <= self.high]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, metavar="FILE.json", help="the JSON file written by every_model.py")
    parser.add_argument("--out", type=Path, default=OUT, help="SVG file to write (default: docs/images/speed.svg)")
    options = parser.parse_args()
    options.out.write_text(draw(json.loads(options.file.read_text())))


def draw(report: dict[str, Any]) -> str:
    """The complete chart, as SVG."""
    names = list(report["models"])
    order = names[::2] + names[1::2]  # neighbouring names get distant hues
    colours = {name: colour(n / len(names)) for n, name in enumerate(order)}
    panels = [draw_panel(report, panel, colours) for panel in PANELS]
    size = f"{report['size']['parameters'] / 1e3:,.0f} thousand parameters each"
    machine = f"{report['machine']['threads']} threads of {report['machine']['processor']}"
    moved = [f'<g transform="translate({n * WIDTH} 0)">{panel}</g>' for n, panel in enumerate(panels)]
    whole = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH} {HEIGHT}" width="{2 * WIDTH}" '
        f'height="{HEIGHT}" font-family="-apple-system, Segoe UI, Helvetica, Arial, sans-serif" font-size="11" '
        f'fill="{GREY}">'
    )
    note = text(2 * WIDTH - 8, HEIGHT - 6, f"{size}; {machine}", "end", size=10)
    return "\n".join([whole, "<title>Speed of every model</title>", *moved, note, "</svg>\n"])


def draw_panel(report: dict[str, Any], panel: Panel, colours: dict[str, str]) -> str:
    lines = find_lines(report, panel)
    lengths = sorted({x for line in lines.values() for x, _ in line})
    values = [y for line in lines.values() for _, y in line]
    across, up = Scale(lengths, LEFT, WIDTH - RIGHT), Scale(values, HEIGHT - BOTTOM, TOP, margin=0.05)
    parts = [text(LEFT, TOP - 22, panel.title, weight=600, size=13)]
    for value in up.ticks():
        parts.append(f'<path d="M{LEFT} {up(value):.1f}H{WIDTH - RIGHT}" stroke="{GREY}" stroke-opacity="0.25"/>')
        parts.append(text(LEFT - 6, up(value) + 4, format_tick(value), "end"))
    parts += [text(across(length), HEIGHT - BOTTOM + 16, f"{length:,}", "middle") for length in lengths]
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 32, panel.across, "middle"))
    drawn = {name: [(across(x), up(y)) for x, y in line] for name, line in lines.items()}
    ends = {name: spots[-1][1] for name, spots in drawn.items()}
    places = spread(ends, TOP, HEIGHT - BOTTOM)
    return "\n".join(parts + [draw_line(name, drawn[name], places[name], colours[name]) for name in drawn])


def find_lines(report: dict[str, Any], panel: Panel) -> dict[str, list[Spot]]:
    """The (length, value) points of each model, in order of length."""
    shapes = [tuple(shape) for shape in report["size"][f"{panel.kind}_lengths"]]
    points = {(p["rows"], p["length"]): p["figures"] for p in report["points"] if p["kind"] == panel.kind}
    found = {
        name: [(s[1], panel.value(points[s][name]["tokens_per_second"])) for s in shapes if name in points.get(s, {})]
        for name in report["models"]
    }
    return {name: line for name, line in found.items() if line}


def draw_line(name: str, spots: list[Spot], place: float, colour: str) -> str:
    (x, y), end = spots[-1], WIDTH - RIGHT
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in spots)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in spots)
    lead = f'<path d="M{x:.1f} {y:.1f}L{end + 14} {place:.1f}" stroke="{colour}" stroke-opacity="0.5" fill="none"/>'
    line = f'<path d="{path}" stroke="{colour}" stroke-width="2" stroke-linejoin="round" fill="none"/>'
    return lead + line + dots + text(end + 18, place + 4, name, fill=colour, weight=600)


def spread(wanted: dict[str, float], top: float, bottom: float) -> dict[str, float]:
    """Label positions close to `wanted` without overlaps: labels that would collide are centred as a group."""
    groups: list[list[str]] = []
    for name in sorted(wanted, key=lambda name: wanted[name]):
        groups.append([name])
        while len(groups) > 1 and first_of(groups[-1], wanted, top, bottom) < (
            first_of(groups[-2], wanted, top, bottom) + LINE * len(groups[-2])
        ):
            groups[-2:] = [groups[-2] + groups[-1]]
    return {name: first_of(g, wanted, top, bottom) + LINE * n for g in groups for n, name in enumerate(g)}


def first_of(group: list[str], wanted: dict[str, float], top: float, bottom: float) -> float:
    """Position of the first label in a group that is centred on its lines and kept inside the axes."""
    height = LINE * (len(group) - 1)
    middle = sum(wanted[name] for name in group) / len(group)
    return max(top, min(bottom - height, middle - height / 2))


def text(
    x: float, y: float, words: str, anchor: str = "start", size: int = 11, weight: int = 400, fill: str = GREY
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" '
        f'fill="{fill}">{escape(words)}</text>'
    )


def format_tick(value: float) -> str:
    return f"{value / 1e3:,.0f}k" if value >= 1e3 else f"{value:g}"


def colour(hue: float) -> str:
    """The colour with this hue (0 to 1) and the luminance LUMINANCE."""
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if luminance(colorsys.hls_to_rgb(hue, middle, 0.75)) < LUMINANCE else (low, middle)
    return "#" + "".join(f"{round(255 * part):02x}" for part in colorsys.hls_to_rgb(hue, low, 0.75))


def luminance(rgb: tuple[float, float, float]) -> float:
    """Relative luminance as defined by WCAG."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


if __name__ == "__main__":
    main()
