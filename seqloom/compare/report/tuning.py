"""The search for settings: what was tried, where the best lies, and what more trials would be expected to change."""

from __future__ import annotations

from typing import Any

from seqloom.compare.report import axes, charts, facts
from seqloom.compare.report.facts import Entry, Result
from seqloom.core.rows import Json
from seqloom.pages import formats
from seqloom.pages.blocks import Axis, Block, Cell, Chart, Column, Fold, Panel, Row, Series, Table, Text
from seqloom.pages.words import Speaker

ENOUGH = 4  # finished trials of a model, to say what more of them would change
_FORMER_NAMES = {"scale of the learning rates": "scale"}  # of settings, in older results


def section(result: Result, say: Speaker) -> list[Block | None]:
    found = _searched(result)
    if not found:
        return []
    protocol = result.get("protocol") or {}
    counts = [len(facts.listed(entry, "search")) for _, entry in found]
    remark = say("search remark", trials=_covered(counts, say), share=formats.percent(protocol.get("trial_share")))
    names = _settings(result)
    columns = [Column(say("model"), number=False), Column(say("trial")),
               *(Column(say.term("setting", name)) for name in names),
               Column(say("state"), number=False), Column(say("score")), Column(say("share"))]  # fmt: skip
    rows = [row for number, entry in found for row in _trials(result, say, number, entry, names)]
    return [
        *(Text(text, "lead") for text in outlook(result, say)),
        *(Text(text) for text in edges(result, say)),
        Text(_joined(say, remark, say("search order") if _told(result) else "")),
        _tried_table(result, say),
        chart(result, say),
        Fold(say("trials"), [Table(say("trials"), columns, rows)]),
    ]


def outlook(result: Result, say: Speaker) -> list[str]:
    """Whether more trials would be expected to put another model first. A model may overtake the best if the gain of
    its last doubling of trials is larger than its distance on the validation set."""
    known = {str(entry["name"]): entry for _, entry in _told(result) if entry.get("state") != "failed"}
    higher = facts.higher_is_better(result)
    scores = {name: score for name, entry in known.items() if (score := _best_score(entry, higher)) is not None}
    if len(scores) < 2:
        return []
    few = [name for name in scores if (facts.dig(known[name], "tuning", "finished") or 0) < ENOUGH]
    if few:
        return [say("order unknown", count=ENOUGH, names=say("comma").join(few))]
    best = (max if higher else min)(scores, key=lambda name: scores[name])
    others = {name: (abs(scores[name] - scores[best]), gain(known[name])) for name in scores if name != best}
    may = [name for name, (distance, more) in others.items() if more > distance]
    shown = may or [min(others, key=lambda name: others[name][0] - others[name][1])]
    facts_told = say("semicolon").join(
        say("order item", name=name, best=best, distance=formats.short(others[name][0], 3),
            gain=formats.short(others[name][1], 3))
        for name in shown
    )  # fmt: skip
    return [say("order may change" if may else "order stays", items=facts_told)]


def gain(entry: Entry) -> float:
    """What all trials gained over half of them, on average."""
    means = [point["mean"] for point in facts.listed(entry, "tuning", "expected")]
    return abs(means[-1] - means[max(1, len(means) // 2) - 1])


def edges(result: Result, say: Speaker) -> list[str]:
    """One sentence for every model whose best trial has the highest or lowest multiplier tried."""
    found = []
    for _, entry in _told(result):
        at = facts.dig(entry, "tuning", "at_edge")
        settings = _kept(entry, facts.higher_is_better(result)).get("settings") or {}
        if at in ("high", "low", "both") and settings:
            found.append(say(f"edge told {at}", name=entry["name"], scale=formats.short(settings.get("scale")),
                             optimizer=settings.get("optimizer")))  # fmt: skip
    return found


def space(result: Result, say: Speaker) -> list[tuple[str, str]]:
    """Rows for the protocol: what the proposals were taken from, and what was tried over all models."""
    rows = []
    for name, values in (facts.dig(result, "protocol", "space") or {}).items():
        setting = _FORMER_NAMES.get(name, name)
        tried = [value for _, entry in _searched(result) for value in _values(entry, setting)]
        title = say("space", name=say.term("setting", setting))
        proposed = say("depths") if setting == "depth" else _range(values, say)
        if tried:
            rows.append((title, say("proposed and tried", proposed=proposed, tried=_covered(tried, say))))
    return rows


def chart(result: Result, say: Speaker) -> Chart | None:
    """Score against learning-rate multiplier, and the expected best score against the number of trials."""
    panels = [panel for panel in (_scales(result, say), _expected(result, say)) if panel is not None]
    if not panels:
        return None
    tables = [_expected_table(result, say)] if panels[-1].title == say("expected best") else []
    hollow = any(any(line.open) for panel in panels for line in panel.series)
    remarks = [say("search chart remark") if hollow else "", _expected_remark(result, say) if tables else ""]
    remark = _joined(say, *remarks)
    return Chart("search", say("search chart"), panels, charts.legend(result, panels), tables, remark=remark)


def _scales(result: Result, say: Speaker) -> Panel | None:
    """Trials that were stopped early are hollow, at their last score."""
    series = []
    for number, entry in facts.entries(result):
        trials = [
            (scale, score, trial.get("state") != "done")
            for trial in facts.listed(entry, "search")
            if (scale := facts.dig(trial, "settings", "scale")) and (score := _shown(trial)) is not None
        ]
        if trials:
            x, y, hollow = map(list, zip(*sorted(trials), strict=True))
            series.append(Series(str(entry["name"]), x, y, number, draw="points", open=hollow))
    tried = [x for line in series for x in line.x]
    if len(set(tried)) < 2:  # it would show nothing about the multiplier
        return None
    ends = min(tried) / 1.15, max(tried) * 1.15
    scale = Axis(say("scale"), log=True, ticks=axes.ticks(tried), format=".3~r", unit=" ×", range=ends)
    height = axes.score_axis(result, charts.validation_title(result, say), series)
    return Panel(say("search by scale"), scale, height, series)


def _expected(result: Result, say: Speaker) -> Panel | None:
    means, limits = [], []
    for number, entry in _told(result):
        points = facts.listed(entry, "tuning", "expected")
        x, name = [point["trials"] for point in points], str(entry["name"])
        if len(points) > 1:
            means.append(Series(name, x, [point["mean"] for point in points], number))
            ends = ([point[end] for point in points] for end in ("low", "high"))
            limits += [Series(name, x, end, number, draw="thin") for end in ends]
    if not means:
        return None
    most = max(x for line in means for x in line.x)
    marks = [(float(n), formats.count(n)) for n in range(1, round(most) + 1, max(1, round(most / 8)))]
    axis = Axis(say("number of trials"), ticks=marks, format=",d")
    series = [*limits, *means]
    return Panel(
        say("expected best"), axis, axes.score_axis(result, charts.validation_title(result, say), series), series
    )


def _expected_table(result: Result, say: Speaker) -> Table:
    found = [(entry, facts.listed(entry, "tuning", "expected")) for _, entry in _told(result)]
    found = [(entry, points) for entry, points in found if len(points) > 1]
    places = formats.places(point["mean"] for _, points in found for point in points)
    rows = [
        Row([Cell(formats.count(n + 1)), *(_expected_cell(points[n] if n < len(points) else {}, places)
                                           for _, points in found)])
        for n in range(max(len(points) for _, points in found))
    ]  # fmt: skip
    share = say("expected interval", share=formats.percent(facts.dig(result, "protocol", "confidence")))
    columns = [Column(say("number of trials")), *(Column(str(entry["name"]), share) for entry, _ in found)]
    return Table(say("expected best"), columns, rows)


def _expected_cell(point: Json, places: int) -> Cell:
    ends = "–".join(formats.fixed(point[end], places) for end in ("low", "high")) if point else ""
    return Cell(formats.fixed(point.get("mean"), places), ends)


def _expected_remark(result: Result, say: Speaker) -> str:
    return say("expected remark", share=formats.percent(facts.dig(result, "protocol", "confidence")))


def _tried_table(result: Result, say: Speaker) -> Table:
    """What each model tried."""
    names, told = _settings(result), bool(_told(result))
    rows = []
    for number, entry in _searched(result):
        trials = facts.listed(entry, "search")
        states = [trial.get("state") for trial in trials]
        counted = [
            f"{say.term('state', state)}{say('colon')}{states.count(state)}"
            for state in ("done", "pruned", "failed")
            if state in states
        ]
        kept = facts.dig(_kept(entry, facts.higher_is_better(result)), "settings", "scale")
        edge = facts.dig(entry, "tuning", "at_edge") or "inside"
        best = Cell(formats.plain(kept), say.term("edge", edge) if kept is not None and told else "")
        rows.append(Row([
            Cell(str(entry["name"]), entry=number), Cell(formats.count(len(trials)), say("comma").join(counted)),
            *(Cell(_covered(_values(entry, name), say)) for name in names), best,
        ]))  # fmt: skip
    columns = [Column(say("model"), number=False), Column(say("number of trials")), *(
        Column(say.term("setting", name), say("tried")) for name in names
    ), Column(say("best scale"))]  # fmt: skip
    return Table(say("tried caption"), columns, rows)


def _trials(result: Result, say: Speaker, number: int, entry: Entry, names: list[str]) -> list[Row]:
    kept = facts.chosen_trial(entry, facts.higher_is_better(result))
    places = formats.places(_shown(trial) for trial in facts.listed(entry, "search"))
    rows = []
    for position, trial in enumerate(facts.listed(entry, "search")):
        settings = trial.get("settings") or {}
        error = "" if trial.get("state") == "pruned" else str(trial.get("error") or "")  # its score says why
        state = Cell(say.term("state", trial.get("state")), error)
        if position == kept:
            state = Cell(state.text + say("comma") + say("kept"))
        early = trial.get("state") != "done" and _shown(trial) is not None
        rows.append(Row(
            [Cell(str(entry["name"]), entry=number), Cell(str(trial.get("trial"))),
             *(Cell(formats.plain(settings.get(name))) for name in names), state,
             Cell(formats.fixed(_shown(trial), places), say("when stopped") if early else ""),
             Cell(formats.percent(trial.get("share")))],
            "chosen" if position == kept else "",
        ))  # fmt: skip
    return rows


def _joined(say: Speaker, *sentences: str) -> str:
    return ("" if say.language == "zh" else " ").join(filter(None, sentences))


def _searched(result: Result) -> list[tuple[int, Entry]]:
    return [(number, entry) for number, entry in facts.entries(result) if facts.listed(entry, "search")]


def _told(result: Result) -> list[tuple[int, Entry]]:
    """Searches with at least one finished trial; older results do not have what is told of them."""
    return [(number, entry) for number, entry in _searched(result) if facts.listed(entry, "tuning", "expected")]


def _settings(result: Result) -> list[str]:
    trials = [trial for _, entry in _searched(result) for trial in facts.listed(entry, "search")]
    return list(dict.fromkeys(name for trial in trials for name in trial.get("settings") or {}))


def _values(entry: Entry, name: str) -> list[Any]:
    found = [facts.dig(trial, "settings", name) for trial in facts.listed(entry, "search")]
    return [value for value in found if value is not None]


def _shown(trial: Json) -> float | None:
    score = trial.get("score")
    return trial.get("last") if score is None else score


def _kept(entry: Entry, higher: bool) -> Json:
    number = facts.chosen_trial(entry, higher)
    return {} if number is None else facts.listed(entry, "search")[number]


def _best_score(entry: Entry, higher: bool) -> float | None:
    return _kept(entry, higher).get("score")


def _covered(values: list[Any], say: Speaker) -> str:
    """The range of numbers, or all other values."""
    distinct = sorted(set(values))
    numbers = all(isinstance(value, int | float) for value in distinct)
    return _range([distinct[0], distinct[-1]] if numbers and len(distinct) > 1 else distinct, say)


def _range(values: Any, say: Speaker) -> str:
    """Two numbers are a range, anything else is a list of choices."""
    if isinstance(values, list) and len(values) == 2 and all(isinstance(v, int | float) for v in values):
        return say("from to", low=formats.short(values[0]), high=formats.short(values[1]))
    return formats.plain(values) or formats.NONE
