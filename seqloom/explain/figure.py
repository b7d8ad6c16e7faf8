"""The main figure of an explanation as an SVG file: a map of outputs (rows) against inputs (columns).

Text from users and models is escaped where it enters the drawing.
"""

from __future__ import annotations

import math
import re
import unicodedata
from html import escape

import numpy as np

from seqloom.core.errors import UserError
from seqloom.explain.packing import in_blocks
from seqloom.explain.side import Result, Side

CELL, SMALL = 20, 6  # pixels
CHARACTER = 7.3  # pixels, width of a character in a label
LONGEST = 24  # characters of a label; its tooltip shows the rest
LABELLED = 60  # rows or columns of a map that has labels; of a larger one, blocks are drawn
BLOCKS = 150  # rows or columns of blocks
FAINT = 0.005  # values below this share of the largest are left blank
BETWEEN = 16  # pixels between two maps
VISIBLE = {"\n": "↵", "\t": "⇥", "\r": "␍"}
STYLE = """
svg { background: #ffffff; }
text { font: 12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #1d2126; }
.row { text-anchor: end; } .title { font-weight: 600; }
.field { fill: #ffffff; stroke: #b9bdc2; } .for { fill: #0072b2; } .against { fill: #d55e00; }
"""

_METHODS = {"occlusion": "occlusion", "gradients": "integrated gradients"}

Drawing = tuple[float, float, list[str]]  # width, height, elements


def figure(shown: Result) -> str:
    """The influence map of each run; the difference of two stands below them."""
    drawings = [_influence(one) for one in shown.explanations() if "influence" in one.views]
    if not drawings:
        raise UserError("there is no influence map to draw; write a page instead: --out FILE.html")
    width = max(one[0] for one in drawings)
    height = sum(one[1] for one in drawings) + BETWEEN * (len(drawings) - 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="influence of inputs on outputs">',
        f"<style>{STYLE}</style>",
    ]
    down = 0.0
    for _, tall, elements in drawings:
        parts += [f'<g transform="translate(0 {down:.1f})">', *elements, "</g>"]
        down += tall + BETWEEN
    return "\n".join([*parts, "</svg>"]) + "\n"


def _influence(one: Side) -> Drawing:
    view, outputs = one.views["influence"], [output.label for output in one.outputs]
    method = next(name for name in ("occlusion", "gradients") if name in view.tensors)
    rows = [outputs[n] for n in view.facts["explained"]] if method == "gradients" else outputs
    title = f"{one.name}: influence of inputs (columns) on outputs (rows), by {_METHODS[method]}"
    return drawing(view.tensors[method], list(one.inputs), rows, title)


def drawing(values: np.ndarray, columns: list[str], rows: list[str], title: str) -> Drawing:
    """A map of signed values: blue for, orange against."""
    step = 1
    if max(values.shape) > LABELLED:
        step = math.ceil(max(values.shape) / BLOCKS)
        values, title = in_blocks(values, step), f"{title}; one cell for {step} x {step}"
        columns, rows = [""] * values.shape[1], [""] * values.shape[0]
    cell = CELL if max(values.shape) <= LABELLED else SMALL
    across, down = [label(token) for token in columns], [label(token) for token in rows]
    left = 14 + CHARACTER * max(map(width_of, down))
    top = 34 + 0.87 * CHARACTER * max(map(width_of, across))  # column labels are rotated by 60 degrees
    width = left + cell * len(across) + 14 + 0.5 * CHARACTER * max(map(width_of, across))
    height = top + cell * len(down) + 6
    size = f'width="{cell * len(across)}" height="{cell * len(down)}"'
    parts = [f'<text class="title" x="8" y="16">{escape(title)}</text>']
    parts.append(f'<rect class="field" x="{left:.1f}" y="{top:.1f}" {size}/>')
    for n, (text, token) in enumerate(zip(across, columns, strict=True)):
        if text:
            place = f"translate({left + cell * (n + 0.65):.1f} {top - 6:.1f}) rotate(-60)"
            parts.append(f'<text transform="{place}">{escape(text)}<title>{escape(_clean(token))}</title></text>')
    for n, (text, token) in enumerate(zip(down, rows, strict=True)):
        if text:
            at = f'x="{left - 7:.1f}" y="{top + cell * (n + 0.7):.1f}"'
            parts.append(f'<text class="row" {at}>{escape(text)}<title>{escape(_clean(token))}</title></text>')
    parts += _cells(values, across, down, cell, left, top)
    return max(width, 16 + CHARACTER * width_of(title)), height, parts


def _cells(values: np.ndarray, across: list[str], down: list[str], cell: int, left: float, top: float) -> list[str]:
    values = np.nan_to_num(values, posinf=0.0, neginf=0.0)
    largest, parts = float(np.abs(values).max()) or 1.0, []
    for t, s in np.argwhere(np.abs(values) >= FAINT * largest).tolist():
        value = float(values[t, s])
        kind, tooltip = "for" if value > 0 else "against", escape(f"{down[t]} ← {across[s]}: {value:+.3g}")
        place = f'x="{left + cell * s:.1f}" y="{top + cell * t:.1f}" width="{cell}" height="{cell}"'
        opacity = abs(value) / largest
        parts.append(f'<rect class="{kind}" {place} fill-opacity="{opacity:.3f}"><title>{tooltip}</title></rect>')
    return parts


def label(token: str) -> str:
    """A token on one line, shortened if too long; white space at its ends and in a row is shown."""
    ends = re.sub("^ +| +$| {2,}", lambda found: "␣" * len(found[0]), token)
    text = "".join(VISIBLE.get(c, c) for c in _clean(ends, keep=""))
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def width_of(text: str) -> int:
    """In characters; wide ones, such as Chinese, count as two."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _clean(token: str, keep: str = "\n\t") -> str:
    """XML has no control characters: they are shown by their code."""
    return "".join(c if c.isprintable() or c in keep or c in VISIBLE else f"\\u{ord(c):04x}" for c in token)
