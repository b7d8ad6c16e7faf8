"""The result in a terminal: one line per model, then the recommendation."""

from __future__ import annotations

import textwrap
import unicodedata
from typing import Any

from seqloom.compare.report import details, facts
from seqloom.compare.report.facts import Entry, Result
from seqloom.compare.report.words import speaker
from seqloom.core.rows import Json
from seqloom.pages import formats

NAME = 20  # maximum width of a name in columns


def rows(result: Result) -> list[dict[str, str]]:
    """The cells as text: models, best first, then baselines. All rows have the same keys."""
    places = facts.decimals(result)
    context = facts.common_context(result)
    found = [
        _with_scores(result, _row(position, entry, places, context), entry)
        for position, (_, entry) in enumerate(facts.ranked(result))
    ]
    for baseline in facts.baselines(result):
        score = formats.fixed(baseline.get("score"), places) if baseline.get("score") is not None else ""
        row = _empty() | {"model": str(baseline.get("name")), "score": score, "verdict": "baseline"}
        found.append(_with_scores(result, row, baseline))
    return found


def lines(result: Result, width: int = 80) -> list[str]:
    """The table, at most `width` wide: the last columns are dropped first."""
    shown = [{key: _cut(value, NAME) for key, value in row.items()} for row in rows(result)]
    every = shown[0] if shown else _empty()
    heads = {key: key for key in every} | {"score": _name(str(facts.dig(result, "protocol", "metric") or "score"))}
    widths = {key: max([_width(heads[key]), *(_width(row[key]) for row in shown)]) for key in every}
    keys = [key for key in widths if any(row[key] for row in shown)]
    while sum(widths[key] for key in keys) + 2 * (len(keys) - 1) > width and len(keys) > 3:
        keys.pop()
    table = [heads, *shown]
    drawn = ["  ".join(_pad(row[key], widths[key], key) for key in keys).rstrip() for row in table]
    failed = [entry for _, entry in facts.ranked(result) if facts.mean(entry) is None] + facts.failed_baselines(result)
    return drawn + [line for entry in failed for line in _failure(entry, width)]


def recommendation(result: Result, width: int = 80) -> list[str]:
    """The recommendation as lines of plain text."""
    found, say = result.get("recommendation") or {}, speaker("en")
    choice, label = found.get("choice"), say("recommended" if found.get("certain", True) else "recommended for now")
    text = [f"{label}: {choice}" if choice else say("no recommendation")]
    text += [line for reason in say.of(found.get("reasons")) for line in _bullet(reason, width)]
    changes = say.of(found.get("would_change"))
    if changes:
        text += [say("would change") + ":", *(line for change in changes for line in _bullet(change, width))]
    return text


def notes(result: Result, width: int = 80) -> list[str]:
    """What to know about the figures, with an empty line before it."""
    say = speaker("en")
    stored = any(facts.size(entry)[1] for _, entry in facts.scored(result))
    found = [say("stored note") if stored else "", details.busy(result, say)]
    wrapped = [line for text in found if text for line in textwrap.wrap(text, width)]
    return ["", *wrapped] if wrapped else []


def use(result: Result) -> list[str]:
    """The command that uses the recommended model, on a line of its own, so that it can be copied."""
    found = facts.use(result)
    return [f"{speaker('en')(found[0], name=found[1])}:", f"  {found[2]}"] if found else []


def _row(position: int, entry: Entry, places: int, context: int | None) -> dict[str, str]:
    name, verdict = str(entry.get("name")), facts.verdict(entry)
    if facts.mean(entry) is None:
        return _empty() | {"model": name, "verdict": verdict}
    score, against = entry["score"], entry.get("against_best") or {}
    half = [abs(score[side] - score["mean"]) for side in ("low", "high") if score.get(side) is not None]
    shown = formats.fixed(score["mean"], places) + (f" ±{formats.fixed(max(half), places)}" if half else "")
    worse, (size, stored) = verdict != "best", facts.size(entry)
    return {
        "": facts.rank(position, entry),
        "model": name,
        "score": shown,
        "to best": formats.fixed(against.get("difference"), places, sign=True) if worse else "",
        "p": formats.chance(against.get("p")).removeprefix("p ").removeprefix("= ") if worse else "",
        "verdict": speaker("en").term("verdict", verdict),
        "size": f"{formats.scaled(size)}{' *' if stored else ''}" if size else "",
        "tokens/s": formats.count(facts.dig(entry, "cost", "tokens_per_second")),
        "latency": facts.latency(entry, context),
        "memory": formats.scaled(facts.dig(entry, "cost", "peak_bytes"), "B"),
    }


def _with_scores(result: Result, row: dict[str, str], scored: Json) -> dict[str, str]:
    """Add the additional scores: after the main one where baselines have no main score, else last."""
    beside, metric = {}, facts.dig(result, "protocol", "metric")
    for name, decimals in facts.shown_places(result).items():
        if name == metric:
            continue
        value = facts.dig(scored, "scores", name)
        value = value.get("mean") if isinstance(value, dict) else value
        beside[_name(name)] = "" if value is None else formats.fixed(value, decimals)
    if facts.yardstick(result) is None:
        return row | beside
    names = list(row)
    cut = names.index("score") + 1
    return {key: row[key] for key in names[:cut]} | beside | {key: row[key] for key in names[cut:]}


def _name(score: str) -> str:
    """As in the tables of `fit` and `eval`."""
    return score.replace("_", " ")


def _empty() -> dict[str, str]:
    return dict.fromkeys(("", "model", "score", "to best", "p", "verdict", "size", "tokens/s", "latency", "memory"), "")


def _failure(entry: Entry, width: int) -> list[str]:
    text = f"{entry.get('name')} failed: {entry.get('error') or speaker('en')('no reason')}"
    return textwrap.wrap(" ".join(text.split()), width, subsequent_indent="  ")


def _bullet(text: str, width: int) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), width, initial_indent="  - ", subsequent_indent="    ")


def _cut(text: Any, most: int) -> str:
    text = " ".join(str(text).split())
    if _width(text) <= most:
        return text
    while _width(text) > most - 1:
        text = text[:-1]
    return text + "…"


def _pad(text: str, width: int, key: str) -> str:
    room = " " * (width - _width(text))
    return text + room if key in ("model", "verdict") else room + text


def _width(text: str) -> int:
    """Width in terminal columns: Chinese characters take two."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
