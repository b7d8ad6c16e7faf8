"""The charts of the report as plain data. The HTML page draws them, Markdown shows them as tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from seqloom.compare.report import facts
from seqloom.compare.report.axes import score_axis, ticks, width_of
from seqloom.compare.report.facts import Result
from seqloom.core.rows import Json
from seqloom.pages import formats
from seqloom.pages.blocks import Axis, Cell, Chart, Column, Panel, Row, Rule, Series, Table
from seqloom.pages.words import Speaker

POINTS = 200  # maximum per curve in a chart
ROWS = 10  # maximum per curve in a table
NARROW = 230  # pixels of an axis on a telephone

Points = Callable[[facts.Entry], list[tuple[float, float]]]


def forest(result: Result, say: Speaker) -> Chart | None:
    """Scores with their intervals, best on top."""
    order = facts.scored(result)
    if not order:
        return None
    means, seeds = [], []
    for row, (number, entry) in enumerate(order):
        score, name = entry["score"], str(entry["name"])
        single = [run["score"] for run in facts.runs(entry) if run.get("score") is not None]
        if len(single) > 1:
            seeds.append(Series(name, single, [-row - 0.28] * len(single), number, draw="faint"))
        means.append(Series(name, [score["mean"]], [-row], number, [score.get("low")], [score.get("high")], "points"))
    names = Axis("", ticks=[(-row, _shorten(entry["name"])) for row, (_, entry) in enumerate(order)], named=True)
    panel = Panel("", Axis(score_title(result, say)), names, [*seeds, *means], _near_baselines(result, order, say))
    better = say("forest higher" if facts.higher_is_better(result) else "forest lower")
    bars = any(score is not None for line in means for score in line.low)
    remarks = [better, say("forest seeds") if seeds else "", say("forest bars") if bars else ""]
    return Chart("forest", say("forest"), [panel], [], remark=say.sentences(*filter(None, remarks)))


def learning(result: Result, say: Speaker) -> Chart | None:
    panels = [
        _learning_panel(result, say, "tokens", say("valid against tokens"), say("training tokens")),
        _learning_panel(result, say, "seconds", say("valid against seconds"), say.by(facts.clock(result), "seconds")),
    ]
    if not panels[0].series:
        return None
    return Chart(
        "learning", say("learning"), panels, legend(result, panels), [curve_table(panels[0])],
        remark=say("learning remark" if any(line.draw == "thin" for line in panels[0].series) else "learning single"),
    )  # fmt: skip


def quality_and_cost(result: Result, say: Speaker) -> Chart | None:
    """Score against each cost, with the Pareto front."""
    context = facts.common_context(result) or 0
    waiting = say.by(facts.latency_unit(result), "latency at", context=formats.count(context))
    costs: list[tuple[str, str, Callable[[facts.Entry], float | None]]] = [
        (say("FLOPs per token"), ".3~s", lambda entry: entry.get("flops_per_token")),
        (say.by(facts.clock(result), "training seconds"), ".3~r", facts.training_seconds),
        (waiting, ".3~r", lambda entry: 1e3 * facts.latencies(entry).get(context, 0)),
    ]
    panels, fronts = [], []
    for title, form, cost in costs:
        points = {
            number: (float(value), float(entry["score"]["mean"]))
            for number, entry in facts.scored(result)
            if (value := cost(entry))
        }
        if len(points) > 1:  # one alone is compared with nothing
            panels.append(_front_panel(result, say, title, form, points))
        fronts.append((points, facts.front(points, facts.higher_is_better(result))))
    if not panels:
        return None
    table = _front_table(result, say, [title for title, _, _ in costs], fronts)
    return Chart(
        "quality-cost", say("quality and cost"), panels, legend(result, panels), [table], remark=say("front remark")
    )


def cost(result: Result, say: Speaker) -> Chart | None:
    per = facts.latency_unit(result)
    latency = lines(
        result, say.by(per, "time per token"), Axis(say.by(per, "context"), format=",d"),
        Axis(say.by(per, "latency axis"), format=".3~r", unit=" ms"),
        lambda entry: _pairs(facts.listed(entry, "cost", "latency"), "context", "seconds", 1e3),
    )  # fmt: skip
    state = lines(
        result, say("size of state"), Axis(say.by(per, "context"), format=",d"),
        Axis(say("state axis"), format=".3~s", unit="B"),
        lambda entry: _pairs(facts.listed(entry, "cost", "state"), "context", "bytes"),
    )  # fmt: skip
    once = [say("measured once", names=say("comma").join(names)) for names in facts.measured_once(result)]
    remark = say.sentences(say.by(per, "cost remark"), *once)
    return chart("cost", say.by(per, "cost"), [latency, state], result, remark)


def aspects(result: Result, say: Speaker) -> Chart | None:
    """The aspects that are curves: loss by position, recall by distance, speed by sequence length."""
    panels = [
        panel for panel in (_positions(result, say), _recall(result, say), _throughput(result, say)) if panel.series
    ]
    if not panels:
        return None
    tables = [_position_table(result, say) if p.title == say("positions") else curve_table(p) for p in panels]
    thin = any(line.draw == "thin" for panel in panels for line in panel.series)
    remark = say("aspects remark") if thin else ""
    return Chart("aspects", say("aspects chart"), panels, legend(result, panels), tables, remark)


def score_title(result: Result, say: Speaker) -> str:
    return _with_unit(result, say, "test")


def validation_title(result: Result, say: Speaker) -> str:
    return _with_unit(result, say, "validation")


def legend(result: Result, panels: list[Panel]) -> list[tuple[int, str]]:
    drawn = {line.entry for panel in panels for line in panel.series}
    return [(number, str(entry["name"])) for number, entry in facts.ranked(result) if number in drawn]


def _with_unit(result: Result, say: Speaker, key: str) -> str:
    metric, unit = say.pick(facts.score_words(result)), say.pick(facts.unit(result))
    title = say(key, metric=f" {metric}" if say.language == "zh" and metric[:1].isascii() else metric)
    return f"{title}{say('comma')}{unit}" if unit else title


def _near_baselines(result: Result, order: list[tuple[int, facts.Entry]], say: Speaker) -> list[Rule]:
    """Baselines close to the models' scores (a distant one, such as uniform prediction, would squeeze them together).
    Of several whose labels would overlap on a telephone, only the best is drawn."""
    means = [entry["score"]["mean"] for _, entry in order]
    room = max((max(means) - min(means)) / 2, 0.05 * abs(max(means)))
    near = [
        row
        for row in facts.baselines(result)
        if row.get("score") is not None
        and (row["score"] > min(means) - room if facts.higher_is_better(result) else row["score"] < max(means) + room)
    ]
    ends = [row["score"] for row in near] + [end for _, entry in order for end in _ends(entry["score"])]
    pixels = NARROW / ((max(ends) - min(ends)) or 1.0)
    rules: list[tuple[float, str]] = []
    for row in near:
        label = say.pick(facts.baseline_title(result, row["name"]))
        if all(abs(x - row["score"]) * pixels > (width_of(label) + width_of(other)) / 2 for x, other in rules):
            rules.append((row["score"], label))
    return [Rule(label, x=x) for x, label in rules]


def _ends(score: dict[str, float]) -> list[float]:
    return [value for name in ("low", "mean", "high") if (value := score.get(name)) is not None]


def _learning_panel(result: Result, say: Speaker, key: str, title: str, axis: str) -> Panel:
    single, means = [], []
    for number, entry in facts.entries(result):
        curves = [facts.listed(run, "curve") for run in facts.runs(entry)]
        middle = _pairs(facts.mean_curve(entry), key, "valid")
        lines = [line for curve in curves if (line := _pairs(curve, key, "valid"))]
        if middle:
            means.append(_series(entry, number, middle, "line"))
        if len(lines) > 1 or not middle:
            single += [_series(entry, number, line, "thin" if middle else "line") for line in lines]
    series = single + means
    unit = "" if key == "tokens" else "s"
    x = Axis(axis, True, ticks([x for line in series for x in line.x], unit), ".3~s", unit)
    return Panel(title, x, score_axis(result, validation_title(result, say), series), series)


def _positions(result: Result, say: Speaker) -> Panel:
    """Each bin of positions is drawn at its geometric mean. Losses per token of different tokenizers do not compare."""
    one = (facts.dig(result, "protocol", "tokenizers") or 1) == 1
    panel = lines(
        result, say("positions"), Axis(say("position"), format=",.3~r"), Axis(say("loss axis"), format=".4~r"),
        lambda entry: [
            (math.sqrt(max(1, point["from"]) * max(1, point["to"])), point["loss"])
            for point in facts.listed(entry, "aspects", "positions")
            if one and point.get("loss") is not None
        ],
        log_y=False,
    )  # fmt: skip
    lengths = {facts.dig(entry, "aspects", "trained_length") for _, entry in facts.scored(result)} - {None}
    rules = [Rule(f"{say('trained length')} {formats.count(length)}", x=length) for length in sorted(lengths)]
    return replace(panel, rules=rules)


def _recall(result: Result, say: Speaker) -> Panel:
    panel = lines(
        result, say("recall"), Axis(say("distance"), format=",d"), Axis(say("recall axis"), format=".0%"),
        lambda entry: _pairs(facts.listed(entry, "aspects", "recall"), "distance", "accuracy"), log_y=False,
    )  # fmt: skip
    edges = [
        _series(entry, number, found, "thin") for number, entry in facts.scored(result) for edge in ("low", "high")
        if (found := _pairs(facts.listed(entry, "aspects", "recall"), "distance", edge))
    ]  # fmt: skip
    levels = {facts.dig(entry, "aspects", "chance") for _, entry in facts.scored(result)} - {None}
    rules = [Rule(say("chance"), y=value) for value in sorted(levels)]
    return replace(panel, series=[*edges, *panel.series], rules=rules)


def _throughput(result: Result, say: Speaker) -> Panel:
    return lines(
        result, say("throughput"), Axis(say("length"), format=",d"), Axis(say("throughput axis"), format=",.4~r"),
        lambda entry: _pairs(facts.listed(entry, "aspects", "throughput"), "length", "tokens_per_second"),
    )  # fmt: skip


def _front_panel(result: Result, say: Speaker, title: str, form: str, points: dict[int, tuple[float, float]]) -> Panel:
    names = {number: str(entry["name"]) for number, entry in facts.entries(result)}
    kept = facts.front(points, facts.higher_is_better(result))
    line = Series(say("front"), [points[n][0] for n in kept], [points[n][1] for n in kept], draw="front")
    marks = [Series(names[n], [x], [y], n, draw="points") for n, (x, y) in points.items()]
    axis = Axis(title, True, ticks([x for x, _ in points.values()]), form)
    return Panel("", axis, score_axis(result, score_title(result, say), marks), [line, *marks])


def _front_table(
    result: Result, say: Speaker, titles: list[str], fronts: list[tuple[dict[int, tuple[float, float]], list[int]]]
) -> Table:
    rows = []
    for number, entry in facts.scored(result):
        cells = [
            Cell(formats.scaled(points[number][0]) if number in points else formats.NONE,
                 say("on the front") if number in kept else "")
            for points, kept in fronts
        ]  # fmt: skip
        score = Cell(formats.fixed(facts.mean(entry), facts.decimals(result)))
        rows.append(Row([Cell(str(entry["name"]), entry=number), score, *cells]))
    columns = [Column(say("model"), number=False), Column(say("score")), *map(Column, titles)]
    return Table(say("quality and cost"), columns, rows)


def chart(key: str, title: str, panels: list[Panel], result: Result, remark: str = "") -> Chart | None:
    panels = [panel for panel in panels if panel.series]
    if not panels:
        return None
    return Chart(key, title, panels, legend(result, panels), [curve_table(panel) for panel in panels], remark)


def lines(
    result: Result, title: str, x: Axis, y: Axis, points: Points, *, log_x: bool = True, log_y: bool = True
) -> Panel:
    """One line per entry. A logarithmic x axis has its ticks at the measured values."""
    series = [_series(entry, number, found) for number, entry in facts.scored(result) if (found := points(entry))]
    across = sorted({value for line in series for value in line.x if value > 0})
    whole = len(across) <= 8 and len({round(value) for value in across}) == len(across)
    marks = [(value, formats.count(value)) for value in across] if whole else ticks(across)
    up = [value for line in series for value in line.y]
    log_y = log_y and min(up, default=0) > 0
    height = Axis(y.title, log_y, ticks(up, y.unit.strip()) if log_y else [], y.format, y.unit)
    return Panel(title, Axis(x.title, log_x, marks if log_x else [], x.format, x.unit), height, series)


def _series(entry: facts.Entry, number: int, points: list[tuple[float, float]], draw: str = "both") -> Series:
    points = _subsample(sorted(points), POINTS)
    return Series(str(entry["name"]), [x for x, _ in points], [y for _, y in points], number, draw=draw)


def _pairs(points: list[Json], x: str, y: str, factor: float = 1) -> list[tuple[float, float]]:
    return [(p[x], p[y] * factor) for p in points if p.get(x) is not None and p.get(y) is not None]


def curve_table(panel: Panel) -> Table:
    """The lines of a panel as columns, at a limited number of x values."""
    lines = [line for line in panel.series if line.draw != "thin"]
    at = _subsample(sorted({x for line in lines for x in line.x}), ROWS)
    values = [dict(zip(line.x, line.y, strict=True)) for line in lines]
    places = formats.places(y for line in lines for y in line.y)
    rows = [
        Row([Cell(formats.short(x)), *(Cell(_value(found.get(x), panel.y, places)) for found in values)]) for x in at
    ]
    unit = panel.y.unit.strip()
    title = f"{panel.title} ({unit})" if unit == "ms" else panel.title
    return Table(title, [Column(panel.x.title), *(Column(line.name) for line in lines)], rows)


def _position_table(result: Result, say: Speaker) -> Table:
    """One row per bin of positions, because the means used in the chart are not round numbers."""
    shown = [entry for _, entry in facts.scored(result) if facts.listed(entry, "aspects", "positions")]
    found = [{(p["from"], p["to"]): p.get("loss") for p in facts.listed(e, "aspects", "positions")} for e in shown]
    bins = sorted({positions for values in found for positions in values})
    places = formats.places(loss for values in found for loss in values.values())
    rows = [
        Row([Cell(f"{formats.count(first)}–{formats.count(last)}"),
             *(Cell(formats.fixed(values.get((first, last)), places)) for values in found)])
        for first, last in bins
    ]  # fmt: skip
    return Table(say("positions"), [Column(say("position")), *(Column(str(e["name"])) for e in shown)], rows)


def _value(value: float | None, axis: Axis, places: int) -> str:
    if value is None:
        return formats.NONE
    if axis.format.endswith("%"):
        return formats.percent(value)
    return formats.scaled(value, axis.unit) if axis.format.endswith("s") else formats.fixed(value, places)


def _subsample(items: list[Any], most: int) -> list[Any]:
    """At most `most` items, evenly spaced, including the first and the last."""
    if len(items) <= most:
        return items
    return [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]


def _shorten(name: Any, most: int = 18) -> str:
    text = str(name)
    return text if len(text) <= most else text[: most - 1] + "…"
