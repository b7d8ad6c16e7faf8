"""Score by the number of labelled rows, for every entry: a chart and its table."""

from __future__ import annotations

from seqloom.compare.report import charts, facts
from seqloom.compare.report.facts import Entry, Result
from seqloom.core.rows import Json
from seqloom.pages import formats
from seqloom.pages.blocks import Axis, Cell, Chart, Column, Panel, Row, Series, Table
from seqloom.pages.words import Speaker


def chart(result: Result, say: Speaker) -> Chart | None:
    shown = [(number, entry, _points(result, entry)) for number, entry in facts.scored(result)]
    shown = [(number, entry, points) for number, entry, points in shown if points]
    if not shown:
        return None
    done = {number: [point for point in points if point["score"]] for number, _, points in shown}
    series = [
        Series(str(entry["name"]), [float(p["rows"]) for p in done[n]], [p["score"]["mean"] for p in done[n]], n)
        for n, entry, _ in shown
    ]
    numbers = sorted({x for line in series for x in line.x})
    axis = Axis(say("few rows"), True, [(x, formats.count(x)) for x in numbers], ",d")
    panel = Panel("", axis, Axis(charts.score_title(result, say)), series)
    places = formats.places(point["score"]["mean"] for points in done.values() for point in points)
    columns = [Column(say("model"), number=False), *(Column(_title(p, say)) for p in shown[0][2])]
    rows = [
        Row([Cell(str(entry["name"]), entry=number), *(_cell(point, places) for point in points)])
        for number, entry, points in shown
    ]
    seeds = len(facts.listed(result, "protocol", "seeds"))
    scored = facts.dig(shown[0][1], "few", "scored")
    remark = say("few remark", seeds=seeds, scored=formats.count(scored))
    table = Table(say("few chart"), columns, rows)
    return Chart("few", say("few chart"), [panel], charts.legend(result, [panel]), [table], remark)


def _points(result: Result, entry: Entry) -> list[Json]:
    """Those on few rows, and the final runs on all of them."""
    points = facts.listed(entry, "few", "points")
    rows = facts.dig(result, "protocol", "data", "train", "rows")
    whole = [{"rows": rows, "per_label": None, "score": entry["score"]}] if points and rows else []
    return [*points, *whole]


def _title(point: Json, say: Speaker) -> str:
    few = (
        say("few all") if point["per_label"] is None else say("few per label", count=formats.count(point["per_label"]))
    )
    return f"{formats.count(point['rows'])} ({few})"


def _cell(point: Json, places: int) -> Cell:
    score = point["score"]
    if not score:
        return Cell(formats.NONE, str(point.get("error") or ""))
    low, high = score.get("low"), score.get("high")
    around = "" if low is None or high is None else f"{formats.fixed(low, places)} – {formats.fixed(high, places)}"
    return Cell(formats.fixed(score["mean"], places), around)
