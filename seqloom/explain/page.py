"""The explanation page: attention maps as SVG.

Text from users and models is escaped where it enters the page.
"""

from __future__ import annotations

import unicodedata
from html import escape

from seqloom.core.rows import Json
from seqloom.pages import shell

CELL = 20  # pixels
CHARACTER = 7.3  # pixels, width of a character in a label
LONGEST = 24  # characters of a label; its tooltip shows the rest
FAINT = 0.005  # weights below this are left blank
MOST_CELLS = 200_000  # of all maps; larger pages leave out the heads, to stay fast in browsers
VISIBLE = {" ": "␣", "\n": "↵", "\t": "⇥", "\r": "␍"}

Found = Json  # the result of explain_alignment


def page(found: Found) -> str:
    first, *others = found["maps"]
    cells = len(found["source_tokens"]) * len(found["target_tokens"])
    shown = [m for m in others if cells * len(found["maps"]) <= MOST_CELLS or ", head " not in m["name"]]
    left_out = len(others) - len(shown)
    groups = ["<h2>Layers and heads</h2>"] * bool(shown) + [_folded(group, found) for group in _layers(shown)]
    body = [
        "<main>", "<h1>Attention maps</h1>", f"<dl>{_facts(found)}</dl>",
        *(f"<p>{escape(remark)}</p>" for remark in _remarks(found, left_out)),
        _figure(first, found), *groups,
        "<h2>Numbers</h2>", f'<div class="scroll">{_numbers(found["maps"])}</div>', "</main>",
    ]  # fmt: skip
    return shell.page(f"Attention maps: {_short(found['source'], 60)}", "\n".join(body), css=shell.part("figures.css"))


def _facts(found: Found) -> str:
    facts = {"source": found["source"], "output (given)" if found["given"] else "output": found["target"]}
    if found["score"] is not None:
        facts["score"] = f"{found['score']:.4f}"
    return shell.facts(facts | {"model": found["model"], "run": found["run"]})


def _remarks(found: Found, left_out: int) -> list[str]:
    remarks = [
        "Each row is one output token and shows how much attention the model paid to each source token while writing "
        "it. Hover over a cell for its weight. Attention shows where a model looks, not why it wrote this output."
    ]
    if found["cut"]:
        remarks.append("The source is too long for this model: its end was cut off and is not shown.")
    if found["on_source"] < 0.999:
        share = f"{found['on_source']:.0%}"
        remarks.append(
            f"On average, {share} of the weight lies on the source; the rest, on the output so far, is not shown."
        )
    if left_out:
        remarks.append(f"{left_out} maps of single heads are left out to keep the page small; --data-out writes them.")
    return remarks


def _layers(maps: list[Found]) -> list[list[Found]]:
    """Maps grouped by layer: the mean, then the heads."""
    groups: dict[str, list[Found]] = {}
    for found in maps:
        groups.setdefault(_layer(found["name"]), []).append(found)
    return list(groups.values())


def _layer(name: str) -> str:
    return name.removesuffix(", mean").rpartition(", head ")[0] or name.removesuffix(", mean")


def _folded(group: list[Found], found: Found) -> str:
    figures = "\n".join(_figure(part, found) for part in group)
    return f"<details><summary>{escape(_layer(group[0]['name']))}</summary>\n<div>{figures}</div>\n</details>"


def _figure(part: Found, found: Found) -> str:
    largest = max((max(row) for row in part["weights"]), default=0.0) or 1.0
    caption = f"{escape(part['name'])} <span>largest weight: {largest:.2f}</span>"
    label = escape(f"{part['name']}: weights of source tokens (columns) for output tokens (rows)")
    drawing = _svg(part["weights"], found["source_tokens"], found["target_tokens"], largest, label)
    return f'<figure><figcaption>{caption}</figcaption><div class="scroll" tabindex="0">{drawing}</div></figure>'


def _svg(weights: list[list[float]], sources: list[str], targets: list[str], largest: float, label: str) -> str:
    across, down = [_label(token) for token in sources], [_label(token) for token in targets]
    left = 14 + CHARACTER * max(map(_width, down))
    top = 14 + 0.87 * CHARACTER * max(map(_width, across))  # column labels are rotated by 60 degrees
    width = left + CELL * len(sources) + 14 + 0.5 * CHARACTER * max(map(_width, across))
    height = top + CELL * len(targets) + 6
    parts = [
        f'<svg width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="{label}">',
        f'<rect class="field" x="{left:.1f}" y="{top:.1f}" width="{CELL * len(sources)}" '
        f'height="{CELL * len(targets)}"/>',
    ]
    for n, (text, token) in enumerate(zip(across, sources, strict=True)):
        place = f"translate({left + CELL * (n + 0.65):.1f} {top - 6:.1f}) rotate(-60)"
        parts.append(f'<text transform="{place}">{escape(text)}<title>{escape(token)}</title></text>')
    for n, (text, token) in enumerate(zip(down, targets, strict=True)):
        at = f'x="{left - 7:.1f}" y="{top + CELL * (n + 0.7):.1f}"'
        parts.append(f'<text class="row" {at}>{escape(text)}<title>{escape(token)}</title></text>')
    for t, row in enumerate(weights):
        for s, weight in enumerate(row):
            if weight >= FAINT:
                tooltip = escape(f"{down[t]} ← {across[s]}: {weight:.3f}")
                parts.append(
                    f'<rect class="cell" x="{left + CELL * s:.1f}" y="{top + CELL * t:.1f}" width="{CELL}" '
                    f'height="{CELL}" fill-opacity="{weight / largest:.3f}"><title>{tooltip}</title></rect>'
                )
    return "\n".join([*parts, "</svg>"])


def _numbers(maps: list[Found]) -> str:
    with_error = "error_rate" in maps[0]
    head = "<th>map</th><th>steps that do not move back</th>" + ("<th>alignment error rate</th>" if with_error else "")
    rows = []
    for part in maps:
        forward = "-" if part["forward"] is None else f"{part['forward']:.0%}"
        error = f"<td>{part['error_rate']:.3f}</td>" if with_error else ""
        rows.append(f"<tr><td>{escape(part['name'])}</td><td>{forward}</td>{error}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _label(token: str) -> str:
    """A token on one line, with visible white space, shortened if too long."""
    return _short("".join(VISIBLE.get(c, c if c.isprintable() else f"\\u{ord(c):04x}") for c in token), LONGEST)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _width(text: str) -> int:
    """In characters; wide ones, such as Chinese, count as two."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
