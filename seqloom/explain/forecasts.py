"""The forecast page: history, point forecasts, prediction intervals and actual values, as SVG.

Text from users is escaped where it enters the page.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from itertools import islice
from typing import Any

import numpy as np

from seqloom.core.rows import Json
from seqloom.pages import shell

WIDTH, HEIGHT = 900, 260
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 10, 26  # margins for the labels
MOST = 24  # charts
ROWS = 400  # rows of the table

Found = Json  # a chart: series, times, forecast, bands, actual, history, history_times


def page(pictures: Iterable[Found], run: Any) -> str:
    """`run`: the run that made the forecasts."""
    targets, levels = run.task.scale.targets, list(run.task.config.levels)
    found = list(islice(pictures, max(1, MOST // len(targets))))
    shown = [(one, n) for one in found for n in range(len(targets))][:MOST]
    banded = bool(found) and found[0]["bands"] is not None
    there = any(np.isfinite(one["actual"]).any() for one in found)
    title = f"Forecast: {run.folder.path.name}"
    body = [
        "<main>", "<h1>Forecast</h1>", f"<dl>{_facts(run, found)}</dl>",
        f"<p>This page shows at most {MOST} charts and {ROWS} rows; predict --out writes all of them.</p>",
        _key(banded, there, levels),
        *(_figure(one, n, targets[n], levels) for one, n in shown),
        "<h2>Numbers</h2>", f'<div class="scroll">{_numbers(found, targets, levels, banded, there)}</div>', "</main>",
    ]  # fmt: skip
    css = files("seqloom.explain").joinpath("forecasts.css").read_text(encoding="utf-8")
    return shell.page(title, "\n".join(body), css=f"{shell.part('figures.css')}\n{css}")


def _facts(run: Any, found: Sequence[Found]) -> str:
    c = run.task.config
    facts = {
        "run": str(run.folder.path),
        "model": run.config.model["name"],
        "strategy": c.strategy,
        "horizon": f"{c.horizon} steps from {c.context} points",
        "series": ", ".join(str(one["series"]) for one in found[:5] if one["series"])
        + (", ..." if len(found) > 5 else ""),
    }
    return shell.facts(facts)


def _key(banded: bool, there: bool, levels: Sequence[float]) -> str:
    kinds = [("history", "history"), ("forecast", "forecast")] + [("actual", "actual values")] * there
    lines = [
        f'<span><svg viewBox="0 0 35 14"><path class="{k}" d="M0 7H35"/></svg>{escape(text)}</span>'
        for k, text in kinds
    ]
    if banded:
        text = ", ".join(f"{high - low:.0%}" for low, high in _pairs(levels))
        box = '<svg viewBox="0 0 35 14"><path class="band" d="M0 1H35V13H0Z"/></svg>'
        lines.append(f"<span>{box}{text} prediction intervals</span>")
    return f'<p class="key">{"".join(lines)}</p>'


def _pairs(levels: Sequence[float]) -> list[tuple[float, float]]:
    """Pairs of levels symmetric about the median, the widest first."""
    found = [(low, high) for low, high in zip(levels, reversed(levels), strict=True) if low < high]
    return [(low, high) for low, high in found if abs(low + high - 1) < 1e-9]


def _figure(one: Found, target: int, name: str, levels: Sequence[float]) -> str:
    past, forecast, actual = one["history"][:, target], one["forecast"][:, target], one["actual"][:, target]
    bands = None if one["bands"] is None else one["bands"][:, target]
    count, steps = len(past), len(forecast)
    every = np.concatenate(
        [values.ravel() for values in (past, forecast, actual, forecast if bands is None else bands)]
    )
    every = every[np.isfinite(every)]
    low, high = (float(every.min()), float(every.max())) if len(every) else (0.0, 1.0)
    room = max(0.5, 1e-6 * abs(low))
    low, high = (low - room, high + room) if low == high else (low - 0.03 * (high - low), high + 0.03 * (high - low))

    def x(place: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * place / max(1, count + steps - 1)

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low)

    def line(kind: str, first: int, values: np.ndarray) -> str:
        return f'<path class="{kind}" d="{_path([(x(first + n), y(v)) for n, v in enumerate(values)])}"/>'

    label = f"{one['series']}: {name}" if one["series"] else name
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">']
    for tick in _ticks(low, high):
        parts.append(f'<path class="grid" d="M{LEFT} {y(tick):.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text class="end" x="{LEFT - 7}" y="{y(tick) + 4:.1f}">{tick:,.6g}</text>')
    times = [*one["history_times"], *one["times"]]
    for place in sorted({0, count, count + steps - 1}):
        where = "end" if place == count + steps - 1 else "" if place == 0 else "middle"
        if where != "middle" or 140 < x(place) - LEFT < WIDTH - LEFT - RIGHT - 140:
            parts.append(
                f'<text class="{where}" x="{x(place):.1f}" y="{HEIGHT - 8}">{escape(str(times[place]))}</text>'
            )
    joined = np.concatenate((past[-1:], forecast))
    for below, above in _pairs(levels):
        if bands is None:
            break
        lower, upper = bands[:, levels.index(below)], bands[:, levels.index(above)]
        edge = [(x(count + n), y(v)) for n, v in enumerate(upper)] + [
            (x(count + n), y(lower[n])) for n in reversed(range(steps))
        ]
        parts.append(f'<path class="band" d="{_path(edge)}Z"/>')
    parts += [line("history", 0, past), line("forecast", max(0, count - 1), joined)]
    if np.isfinite(actual).any():
        parts.append(line("actual", max(0, count - 1), np.concatenate((past[-1:], actual))))
    parts.append(f'<path class="origin" d="M{x(count - 0.5):.1f} {TOP}V{HEIGHT - BOTTOM}"/></svg>')
    return f'<figure><figcaption>{escape(label)}</figcaption><div class="scroll">{"".join(parts)}</div></figure>'


def _path(points: Sequence[tuple[float, float]]) -> str:
    """A line through the values, broken where some are missing."""
    found, pen = [], "M"
    for x, y in points:
        if not math.isfinite(y):
            pen = "M"
            continue
        found.append(f"{pen}{x:.1f} {y:.1f}")
        pen = "L"
    return "".join(found) or "M0 0"


def _ticks(low: float, high: float) -> list[float]:
    """Three to six round values."""
    power = 10.0 ** math.floor(math.log10(high - low))
    step = next(s * power for s in (0.1, 0.2, 0.25, 0.5, 1, 2, 5) if (high - low) / (s * power) <= 6)
    return [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _numbers(found: Sequence[Found], targets: Sequence[str], levels: Sequence[float], banded: bool, there: bool) -> str:
    head = ["series", "variable", "time", "forecast", *(f"{level:g}" for level in levels if banded)] + [
        "actual value"
    ] * there
    rows = []
    for one in found:
        for n, name in enumerate(targets):
            for step, time in enumerate(one["times"]):
                numbers = [one["forecast"][step, n], *(one["bands"][step, n] if banded else ())]
                numbers += [one["actual"][step, n]] if there else []
                cells = [one["series"] or "", name, time, *("" if not np.isfinite(v) else f"{v:,.6g}" for v in numbers)]
                rows.append("".join(f"<td>{escape(str(cell))}</td>" for cell in cells))
                if len(rows) >= ROWS:
                    break
    body = "".join(f"<tr>{row}</tr>" for row in rows[:ROWS])
    return (
        f"<table><thead><tr>{''.join(f'<th>{escape(h)}</th>' for h in head)}</tr></thead><tbody>{body}</tbody></table>"
    )
