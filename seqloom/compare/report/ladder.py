"""What changes with scale: score against budget, training data or size, the curve of each model, and who is ahead with
more of it."""

from __future__ import annotations

from seqloom.compare.report import axes, charts, facts
from seqloom.compare.report.facts import Entry, Result
from seqloom.core.rows import Json
from seqloom.pages import formats
from seqloom.pages.blocks import Axis, Block, Cell, Chart, Column, Panel, Row, Rule, Series, Table, Text
from seqloom.pages.words import Speaker


def measured(result: Result) -> bool:
    return any(facts.listed(entry, "ladder", "points") for _, entry in facts.scored(result))


def section(result: Result, say: Speaker) -> list[Block | None]:
    """Sentences about every pair and every model, then the chart with its numbers."""
    if not measured(result):
        return []
    pairs = [_pair(result, pair, say) for pair in facts.listed(result, "ladder", "pairs")]
    reached = [_reached(result, entry, say) for _, entry in facts.scored(result) if facts.dig(entry, "ladder")]
    partly = [_partly(result, entry, say) for _, entry in facts.scored(result) if facts.dig(entry, "ladder")]
    lead = [Text(sentence, "lead") for sentence in pairs if sentence]
    return [*lead, *(Text(sentence) for sentence in reached + partly if sentence), chart(result, say)]


def chart(result: Result, say: Speaker) -> Chart:
    bands, lines, points, rows = [], [], [], []
    for number, entry in facts.scored(result):
        name = str(entry["name"])
        found, drawn = facts.listed(entry, "ladder", "points"), facts.listed(entry, "ladder", "curve")
        sure = [point for point in drawn if point.get("low") is not None]
        if sure:
            x = [point["at"] for point in sure]
            edge = [point["high"] for point in sure] + [point["low"] for point in reversed(sure)]
            bands.append(Series(name, x + x[::-1], edge, number, draw="band"))
        if drawn:
            lines.append(Series(name, [p["at"] for p in drawn], [p["middle"] for p in drawn], number, draw="line"))
        if found:
            scores = [point["score"] for point in found]
            low, high = ([facts.possible(result, score.get(end)) for score in scores] for end in ("low", "high"))
            at, means = [point["at"] for point in found], [score["mean"] for score in scores]
            points.append(Series(name, at, means, number, low, high, "points", upright=True))
        rows += _rows(result, number, entry, say)
    series = [*bands, *lines, *points]
    across = axes.ticks([x for line in series for x in line.x])
    axis = Axis(_axis(result, say), True, across, ".3~s")
    full = facts.dig(result, "ladder", "full")
    rules = [Rule(_say(result, say, "ladder full"), x=full)] if full else []
    panel = Panel("", axis, Axis(charts.score_title(result, say)), series, rules)
    columns = [Column(say("model"), number=False), Column(_axis(result, say)),
               Column(say("score")), Column(say("ladder kind"), number=False)]  # fmt: skip
    share = formats.percent(facts.dig(result, "ladder", "confidence"))
    remark = _say(result, say, "ladder remark", share=share, seeds=facts.dig(result, "ladder", "seeds"))
    if any(facts.dig(entry, "ladder", "memorising") for _, entry in facts.scored(result)):
        remark = say.sentences(remark, say("ladder memorising"))
    title = _say(result, say, "ladder chart")
    table = Table(title, columns, rows)
    return Chart("ladder", title, [panel], charts.legend(result, [panel]), [table], remark)


def _rows(result: Result, number: int, entry: Entry, say: Speaker) -> list[Row]:
    places = facts.decimals(result)
    name = Cell(str(entry["name"]), entry=number)
    found, predicted = facts.listed(entry, "ladder", "points"), facts.listed(entry, "ladder", "predicted")
    kinds = [(point["at"], point["score"], "mean", "ladder measured") for point in found]
    kinds += [(point["at"], point, "middle", "ladder predicted") for point in predicted]
    return [
        Row([name, Cell(_amount(result, at, say)),
             Cell(formats.fixed(score.get(key), places), _around(result, score, places)), Cell(say(kind))])
        for at, score, key, kind in kinds
    ]  # fmt: skip


def _around(result: Result, found: Json, places: int) -> str:
    low, high = (facts.possible(result, found.get(end)) for end in ("low", "high"))
    return "" if low is None or high is None else f"{formats.fixed(low, places)}–{formats.fixed(high, places)}"


def _pair(result: Result, pair: Json, say: Speaker) -> str:
    """Who of two is ahead with ten times as much, and where that changes; or that it cannot be told."""
    verdict, first, second = str(pair.get("verdict")), str(pair.get("first")), str(pair.get("second"))
    end = _amount(result, _end(result), say)
    if verdict == "unclear" or pair.get("ahead") not in ("first", "second"):
        return say("ladder unclear", first=first, second=second, end=end)
    ahead, behind = (first, second) if pair["ahead"] == "first" else (second, first)
    where = {key: _amount(result, pair.get(key), say) for key in ("at", "low", "high")}
    return _say(result, say, f"ladder {verdict}", ahead=ahead, behind=behind, end=end, **where)


def _reached(result: Result, entry: Entry, say: Speaker) -> str:
    """What a model is expected to reach with ten times as much, or why no curve was fitted."""
    if problem := facts.dig(entry, "ladder", "problem"):
        return _say(result, say, f"ladder problem {problem}", name=entry["name"])
    predicted, full = facts.listed(entry, "ladder", "predicted"), facts.dig(result, "ladder", "full")
    if not predicted or not full:
        return ""
    places, last = facts.decimals(result), predicted[-1]
    shown = {key: formats.fixed(last[key], places) for key in ("middle", "low", "high")}
    times = formats.short(last["at"] / full)
    key = "ladder reached without training" if entry.get("fixed") else "ladder reached"
    end = _amount(result, last["at"], say)
    return _say(result, say, key, name=entry["name"], times=times, end=end, **shown)


def _partly(result: Result, entry: Entry, say: Speaker) -> str:
    """With a budget below one epoch, less data is nothing but a smaller budget."""
    epochs = facts.epochs(result, entry)
    if _kind(result) != "data" or epochs is None or epochs >= 1:
        return ""
    return say("ladder part", name=entry["name"], epochs=formats.percent(epochs))


def _kind(result: Result) -> str:
    return str(facts.dig(result, "ladder", "kind") or "budget")


def _over(result: Result) -> str:
    return str(facts.dig(result, "ladder", "over") or "tokens")


def _say(result: Result, say: Speaker, key: str, **values: object) -> str:
    """The text for this kind of ladder, if it has its own."""
    return say.by(_kind(result), key, **values)


def _axis(result: Result, say: Speaker) -> str:
    return say.term("ladder axis", f"{_kind(result)}.{_over(result)}")


def _end(result: Result) -> float | None:
    full, times = facts.dig(result, "ladder", "full"), facts.listed(result, "ladder", "times")
    return full * times[-1] if full and times else None


def _amount(result: Result, value: float | None, say: Speaker) -> str:
    """`9 M tokens`"""
    if _over(result) == "flops":
        return formats.scaled(value, "FLOPs")
    return say(f"ladder amount.{_over(result)}", amount=formats.scaled(value))
