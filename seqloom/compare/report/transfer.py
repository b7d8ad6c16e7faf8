"""The effect of pre-training: a cell in the table of aspects, and a chart of score by labelled examples."""

from __future__ import annotations

from seqloom.compare.report import charts, facts
from seqloom.compare.report.facts import Entry, Result
from seqloom.pages import formats
from seqloom.pages.blocks import Axis, Cell, Chart, Column, Panel, Row, Series, Table
from seqloom.pages.words import Speaker


def measured(result: Result) -> bool:
    return any(facts.dig(entry, "aspects", "transfer") for _, entry in facts.scored(result))


def cell(entry: Entry, say: Speaker) -> Cell:
    """Scores without and with pre-training, for the fewest and the most examples."""
    points = facts.listed(entry, "aspects", "transfer", "points")
    if not points:
        error = facts.dig(entry, "aspects", "transfer", "error")
        return Cell(formats.NONE, str(error or ""))
    places = _places(points)
    few, *more = [
        say("transfer gain", before=formats.fixed(point["scratch"]["mean"], places),
            after=formats.fixed(point["pretrained"]["mean"], places), examples=formats.count(point["examples"]))
        for point in (points[:1] + points[-1:] if len(points) > 1 else points)
    ]  # fmt: skip
    return Cell(few, more[0] if more else "")


def chart(result: Result, say: Speaker) -> Chart | None:
    """Two lines per model: filled markers with pre-training, hollow without."""
    series, rows = [], []
    for number, entry in facts.scored(result):
        points, name = facts.listed(entry, "aspects", "transfer", "points"), str(entry["name"])
        places = _places(points)
        x = [float(point["examples"]) for point in points]
        for way, key in (("pretrained", "with pre-training"), ("scratch", "without pre-training")):
            hollow = [way == "scratch"] * len(x)
            y = [point[way]["mean"] for point in points]
            if points:
                series.append(Series(f"{name}{say('comma')}{say(key)}", x, y, number, open=hollow))
        rows += [
            Row([Cell(name, entry=number), Cell(formats.count(point["examples"])),
                 *(_with_interval(point[key], places, say) for key in ("scratch", "pretrained", "gain"))])
            for point in points
        ]  # fmt: skip
    if not series:
        return None
    numbers = sorted({x for line in series for x in line.x})
    axis = Axis(say("labelled examples"), True, [(x, formats.count(x)) for x in numbers], ",d")
    panel = Panel("", axis, Axis(charts.score_title(result, say)), series)
    columns = [Column(say("model"), number=False), Column(say("labelled examples")),
               *(Column(say(key)) for key in ("without pre-training", "with pre-training", "gain"))]  # fmt: skip
    table = Table(say("transfer chart"), columns, rows)
    remark = say("transfer remark", taught=_pretraining(result, say))
    return Chart("transfer", say("transfer chart"), [panel], charts.legend(result, [panel]), [table], remark)


def _with_interval(found: dict[str, float | None], places: int, say: Speaker) -> Cell:
    low, high = found.get("low"), found.get("high")
    around = "" if low is None or high is None else f"{formats.fixed(low, places)} – {formats.fixed(high, places)}"
    return Cell(formats.fixed(found["mean"], places), around)


def _places(points: list[dict[str, dict[str, float]]]) -> int:
    return formats.places(point[way]["mean"] for point in points for way in ("scratch", "pretrained"))


def _pretraining(result: Result, say: Speaker) -> str:
    """`gpt: language model, 2,000,000 tokens; ...`"""
    parts = []
    for _, entry in facts.scored(result):
        found = facts.dig(entry, "aspects", "transfer") or {}
        if found.get("points"):
            tokens = say("budget.tokens", amount=formats.count(found["tokens"]))
            english, chinese = found.get("teacher_title") or [found["teacher"]] * 2
            parts.append(f"{entry['name']}{say('colon')}{say.pick((english, chinese))}{say('comma')}{tokens}")
    return say("semicolon").join(parts)
