"""How quality changes along a sequence: by output position, source length and forecast step."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from seqloom.compare.report import charts, facts
from seqloom.compare.report.facts import Result
from seqloom.pages.blocks import Axis, Chart, Series
from seqloom.pages.words import Speaker

_MARKED = 16  # lines with more points are drawn without markers
_NAIVE = 3  # naive forecasts drawn; the table has all


def forgetting(result: Result, say: Speaker) -> Chart | None:
    """Output accuracy by relative position, output position and source length."""
    panels = [
        charts.lines(
            result, say(f"forgetting {by}"), Axis(say(f"axis {by}"), format=",.3~r"),
            Axis(say("forgetting axis"), format=".0%"), partial(_middles, by), log_x=False, log_y=False,
        )
        for by in ("by_place", "by_step", "by_length")
    ]  # fmt: skip
    return charts.chart("forgetting", say("forgetting"), panels, result, say("forgetting remark"))


def horizon(result: Result, say: Speaker) -> Chart | None:
    """Error by forecast step on the test set, with the best naive forecasts as thin lines, and before the test set."""
    naive = [
        Series(say.pick(facts.baseline_title(result, row.get("name"))), *_columns(row["horizon"]), draw="thin", dash=n)
        for n, row in enumerate(row for row in facts.baselines(result) if facts.listed(row, "horizon"))
    ]
    panels, tables = [], []
    for part in ("rmse", "inside"):
        panel = charts.lines(
            result, say(f"horizon {part}"), Axis(say("steps ahead"), format=",d"),
            Axis(say("horizon axis"), format=".4~r"), partial(_by_step, part), log_x=False, log_y=False,
        )  # fmt: skip
        if panel.series:
            crowded = max(len(line.x) for line in panel.series) > _MARKED
            lines = [replace(line, draw="line") if crowded else line for line in panel.series]
            others = naive if part == "rmse" else []
            panels.append(replace(panel, series=[*others[:_NAIVE], *lines]))
            every = [*lines, *(replace(line, draw="line") for line in others)]
            tables.append(charts.curve_table(replace(panel, series=every)))
    if not panels:
        return None
    drawn = [(line.dash, line.name) for line in naive[:_NAIVE]]
    legend, remark = charts.legend(result, panels), say("horizon remark")
    return Chart("horizon", say("horizon"), panels, legend, tables, remark, drawn)


def _by_step(part: str, entry: facts.Entry) -> list[tuple[float, float]]:
    return list(zip(*_columns(facts.listed(entry, "aspects", "horizon", part)), strict=True))


def _columns(values: list[float | None]) -> tuple[list[float], list[float]]:
    """Steps and errors, without missing values."""
    points = [(step, value) for step, value in enumerate(values, 1) if value is not None]
    return [float(x) for x, _ in points], [y for _, y in points]


def _middles(by: str, entry: facts.Entry) -> list[tuple[float, float]]:
    """Each bin is drawn at its midpoint."""
    points = facts.listed(entry, "aspects", "forgetting", by)
    return [((point["from"] + point["to"]) / 2, point["accuracy"]) for point in points]
