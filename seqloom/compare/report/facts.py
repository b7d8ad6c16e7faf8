"""Access to a comparison result for the report. Any part may be missing: what was not measured is None or empty."""

from __future__ import annotations

import re
from functools import partial
from statistics import fmean
from typing import Any

from seqloom.core.rows import Json
from seqloom.pages.formats import places, span

Entry = Json
Result = Json
Pair = tuple[str, str]  # English, Chinese

_BLANK = r"([^\s;()，；（）]*[^\s,;()，；（）])"  # a number or a name in a protocol


def dig(thing: Any, *keys: str) -> Any:
    """The value at a path of keys; None if the path does not exist."""
    for key in keys:
        thing = thing.get(key) if isinstance(thing, dict) else None
    return thing


def listed(thing: Any, *keys: str) -> list[Any]:
    found = dig(thing, *keys)
    return found if isinstance(found, list) else []


def entries(result: Result) -> list[tuple[int, Entry]]:
    """Every entry with its number, which determines its colour."""
    return list(enumerate(listed(result, "entries")))


def mean(entry: Entry) -> float | None:
    return dig(entry, "score", "mean") if entry.get("state") == "done" else None


def higher_is_better(result: Result) -> bool:
    return bool(dig(result, "protocol", "higher_is_better"))


def ranked(result: Result) -> list[tuple[int, Entry]]:
    """Entries, best first, failed ones last."""
    sign = -1 if higher_is_better(result) else 1

    def order(item: tuple[int, Entry]) -> tuple[bool, bool, float]:
        score = mean(item[1])
        return score is None, item[1].get("name") != result.get("best"), sign * (score or 0.0)

    return sorted(entries(result), key=order)


def scored(result: Result) -> list[tuple[int, Entry]]:
    return [item for item in ranked(result) if mean(item[1]) is not None]


def verdict(entry: Entry) -> str:
    return str(dig(entry, "against_best", "verdict") or "") if mean(entry) is not None else "failed"


def rank(position: int, entry: Entry) -> str:
    """By mean score; whether the evidence separates it from the best is the verdict's business."""
    return "" if mean(entry) is None else str(position + 1)


def decimals(result: Result) -> int:
    """Decimals of the main score throughout the report, so that columns align and intervals are visible."""
    found = [entry["score"] for _, entry in scored(result)]
    spans = [(s["high"] - s["low"]) / 2 for s in found if s.get("low") is not None and s.get("high") is not None]
    return _resolved(places([score["mean"] for score in found], spans), list(bounds(result)))


def runs(entry: Entry) -> list[Json]:
    return [run for run in listed(entry, "runs") if run.get("state") == "done"]


def size(entry: Entry) -> tuple[int | None, bool]:
    """Parameters; of a model that has none, the values that it stores (counts, weights, keys), and True."""
    found = entry.get("parameters") or entry.get("stored")
    return found, not entry.get("parameters") and bool(found)


def training_seconds(entry: Entry) -> float | None:
    found = [run["seconds"] for run in runs(entry) if run.get("seconds") is not None]
    return fmean(found) if found else None


def training_tokens(entry: Entry) -> float | None:
    found = [run["tokens"] for run in runs(entry) if run.get("tokens") is not None]
    return fmean(found) if found else None


def epochs(result: Result, entry: Entry) -> float | None:
    """How often a final run reads the training set, on average."""
    tokens, once = training_tokens(entry), entry.get("epoch_tokens") or dig(result, "protocol", "epoch_tokens")
    return tokens / once if tokens and once and not entry.get("fixed") else None


def own_size(result: Result) -> list[str]:
    """Names of entries whose size was not matched, because they start from trained weights."""
    return [str(entry["name"]) for _, entry in ranked(result) if entry.get("start")]


def bounds(result: Result) -> tuple[float | None, float | None]:
    """The lowest and the highest possible value of the metric."""
    found = dig(result, "protocol", "titles", "scores", str(dig(result, "protocol", "metric")), "bounds")
    return (found[0], found[1]) if isinstance(found, list) and len(found) == 2 else (None, None)


def possible(result: Result, value: float | None) -> float | None:
    """The nearest possible value of the metric: with two seeds, the interval of a share may extend below zero."""
    low, high = bounds(result)
    if value is not None and low is not None:
        value = max(low, value)
    return min(high, value) if value is not None and high is not None else value


def latencies(entry: Entry) -> dict[int, float]:
    """Seconds per token, source or row, by context."""
    points = listed(entry, "cost", "latency")
    return {point["context"]: point["seconds"] for point in points if point.get("seconds") is not None}


def latency(entry: Entry, context: int | None) -> str:
    """`0.41 ms`; `≈ 0.41 ms` where the measurement did not settle."""
    points = [point for point in listed(entry, "cost", "latency") if point.get("context") == context]
    text = span(latencies(entry).get(context or 0))
    return f"≈ {text}" if points and points[0].get("stable") is False else text


def unstable(result: Result) -> bool:
    """Did any measurement of cost not settle?"""
    found = [point for _, entry in scored(result) for point in listed(entry, "cost", "latency")]
    found += [point for _, entry in scored(result) for point in listed(entry, "aspects", "throughput")]
    return any(point.get("stable") is False for point in found)


def measured_once(result: Result) -> list[list[str]]:
    """Entries that compute the same and share what was measured on one of them."""
    groups: dict[Any, list[str]] = {}
    for _, entry in scored(result):
        groups.setdefault(dig(entry, "cost", "measured_on") or entry.get("name"), []).append(str(entry.get("name")))
    return [names for names in groups.values() if len(names) > 1]


def common_context(result: Result) -> int | None:
    """The longest context at which every model was timed: some have a maximum context."""
    found = [set(times) for _, entry in scored(result) if (times := latencies(entry))]
    return max(set.intersection(*found), default=None) if found else None


def latency_unit(result: Result) -> str:
    """What latency is measured per: a token, a source, or a row."""
    return str(dig(result, "protocol", "latency_unit") or "token")


def clock(result: Result) -> str:
    """What seconds of training are: `cpu` or `wall` time."""
    return str(dig(result, "protocol", "clock") or "wall")


def task_title(result: Result) -> Pair:
    return _pair(dig(result, "protocol", "titles", "task"), str(dig(result, "protocol", "task") or ""))


def baseline_title(result: Result, name: Any) -> Pair:
    return _pair(dig(result, "protocol", "titles", "baselines", str(name)), str(name))


def score_title(result: Result, name: str | None = None) -> Pair:
    """The title declared by the task, for a column header; None: of the metric."""
    name = name or str(dig(result, "protocol", "metric") or "score")
    return _pair(dig(result, "protocol", "titles", "scores", name, "title"), name)


def score_words(result: Result, name: str | None = None) -> Pair:
    """The title within a sentence: `Macro F1` becomes `macro F1`, `BLEU` stays."""
    english, chinese = score_title(result, name)
    lower = english[:1].lower() + english[1:] if english[1:2].islower() else english
    return lower.removesuffix(", %"), chinese.removesuffix("（%）")


def unit(result: Result, name: str | None = None) -> Pair:
    """The unit of a score, or empty; None: of the metric."""
    name = name or str(dig(result, "protocol", "metric") or "")
    return _pair(dig(result, "protocol", "titles", "scores", name, "unit"), "")


def how_scored(result: Result) -> Pair:
    """How models were scored; the Chinese sentence is made from the phrases that the task declares."""
    english = str(dig(result, "protocol", "scored") or "")
    pairs = [_pair(phrase, "") for phrase in listed(result, "protocol", "titles", "protocol")]
    chinese = english
    for phrase, other in sorted(pairs, key=lambda pair: -len(pair[0])):
        if phrase:
            pattern = r"(?<![\w,.])" + re.escape(phrase).replace(r"\{\}", _BLANK) + r"(?!\w)"
            chinese = re.sub(pattern, partial(_filled, other), chinese)
    if chinese != english:
        chinese = chinese.replace("; ", "；").replace(", ", "，").replace(": ", "：")
        chinese = re.sub(r" ?([；，：（）]) ?", r"\1", chinese)
    return english, chinese


def _filled(template: str, found: re.Match[str]) -> str:
    """The template with what was found in its blanks, in order or by number."""
    values = iter(found.groups())
    return re.sub(r"\{(\d?)\}", lambda blank: found[int(blank[1]) + 1] if blank[1] else next(values), template)


def _pair(found: Any, otherwise: str) -> Pair:
    return (str(found[0]), str(found[1])) if isinstance(found, list) and len(found) == 2 else (otherwise, otherwise)


def shown(result: Result) -> dict[str, bool]:
    """Additional scores that any model or baseline has, main one first, and whether higher is better."""
    rows = [*listed(result, "baselines"), *(entry for _, entry in scored(result))]
    names = [
        name for name in listed(result, "protocol", "shown") if any(dig(r, "scores", name) is not None for r in rows)
    ]
    return {name: bool(dig(result, "protocol", "titles", "scores", name, "higher_is_better")) for name in names}


def shown_places(result: Result) -> dict[str, int]:
    """Decimals of each additional score."""
    means = [[dig(entry, "scores", name, "mean") for _, entry in scored(result)] for name in shown(result)]
    others = [[dig(row, "scores", name) for row in listed(result, "baselines")] for name in shown(result)]
    found = {name: places([*a, *b]) for name, a, b in zip(shown(result), means, others, strict=True)}
    scores = dig(result, "protocol", "titles", "scores")
    return {name: _resolved(n, dig(scores, name, "bounds")) for name, n in found.items()}


def _resolved(decimals: int, bounds: Any) -> int:
    """Shares are of some hundred or thousand rows: more than four decimals mean nothing."""
    return min(decimals, 4) if bounds == [0, 1] else decimals


def beside(result: Result) -> dict[str, int]:
    """The additional scores of the main table, which has the metric already, with their decimals."""
    return {name: n for name, n in shown_places(result).items() if name != dig(result, "protocol", "metric")}


def yardstick(result: Result) -> str | None:
    """The score by which models and baselines are compared: None for the metric, or the main additional score where
    some baselines only output text and have no loss."""
    rows = [row for row in listed(result, "baselines") if not row.get("error")]
    if all(row.get("score") is not None for row in rows):
        return None
    return next((name for name in shown(result) if any(dig(row, "scores", name) is not None for row in rows)), None)


def measured(row: Json, name: str | None) -> float | None:
    """The score of a baseline by a yardstick."""
    return row.get("score") if name is None else dig(row, "scores", name)


def baselines(result: Result) -> list[Json]:
    """Baselines, best first."""
    by = yardstick(result)
    sign = -1 if (higher_is_better(result) if by is None else shown(result)[by]) else 1
    found = [(value, row) for row in listed(result, "baselines") if (value := measured(row, by)) is not None]
    return [row for _, row in sorted(found, key=lambda each: sign * each[0])]


def failed_baselines(result: Result) -> list[Json]:
    return [row for row in listed(result, "baselines") if row.get("error")]


def mean_curve(entry: Entry) -> list[dict[str, float]]:
    """Mean over seeds; empty unless all were validated at the same numbers of tokens."""
    curves = [listed(run, "curve") for run in runs(entry)]
    curves = [[point for point in curve if point.get("valid") is not None] for curve in curves]
    grids = {tuple(point["tokens"] for point in curve) for curve in curves}
    if len(grids) != 1:
        return []
    return [
        {key: fmean(point.get(key) or 0.0 for point in points) for key in ("tokens", "seconds", "valid")}
        for points in zip(*curves, strict=True)
    ]


def state_bytes(entry: Entry) -> tuple[int, int, bool] | None:
    """State size in bytes at the shortest and the longest context, and whether it grows."""
    points = sorted(listed(entry, "cost", "state"), key=lambda point: point["context"])
    points = [point for point in points if point.get("bytes") is not None]
    if not points:
        return None
    first, last = points[0]["bytes"], points[-1]["bytes"]
    return first, last, last > first


def reach(entry: Entry) -> tuple[int, bool] | None:
    """The longest distance with recall above the midpoint between chance and 1 (0: none); is it the longest tested?"""
    points = [point for point in listed(entry, "aspects", "recall") if point.get("accuracy") is not None]
    if not points:
        return None
    far = max((point["distance"] for point in points if point["accuracy"] > _midpoint(entry)), default=0)
    return far, far == max(point["distance"] for point in points)


def recalled_at(entry: Entry, distance: int) -> tuple[float, float] | None:
    """The lowest and the highest recall over seeds; None with one seed."""
    found: Json = next((point for point in listed(entry, "aspects", "recall") if point["distance"] == distance), {})
    return (found["low"], found["high"]) if found.get("low") is not None else None


def unlearned(entry: Entry) -> int | None:
    """The steps of a recall probe whose control failed: it was trained too briefly to say anything about distances."""
    control = dig(entry, "aspects", "control", "accuracy")
    return dig(entry, "aspects", "probe", "steps") if control is not None and control <= _midpoint(entry) else None


def _midpoint(entry: Entry) -> float:
    return float((1 + (dig(entry, "aspects", "chance") or 0.0)) / 2)


def by_position(entry: Entry) -> tuple[Json | None, Json | None]:
    """Loss at the training length, and at the last positions beyond it."""
    points = [point for point in listed(entry, "aspects", "positions") if point.get("loss") is not None]
    length = dig(entry, "aspects", "trained_length")
    if not points or length is None:
        return None, None
    within = [point for point in points if point["from"] <= length]
    beyond = [point for point in points if point["from"] > length]
    return (within[-1] if within else None), (beyond[-1] if beyond else None)


def by_length(entry: Entry) -> list[Json]:
    """Output accuracy for the shortest and the longest sources."""
    points = listed(entry, "aspects", "forgetting", "by_length")
    return points[:1] + points[-1:] if len(points) > 1 else points


def use(result: Result) -> tuple[str, str, str] | None:
    """The words for it, the name of the model to use, and the command that uses it; None if there is no such model."""
    name, command = dig(result, "recommendation", "use"), dig(result, "protocol", "use")
    if not name or not command:
        return None
    return "use" if dig(result, "recommendation", "choice") else "use first", str(name), str(command)


def front(points: dict[int, tuple[float, float]], higher: bool) -> list[int]:
    """The Pareto front of (cost, score), cheapest first."""
    kept: list[int] = []
    for number, (_, score) in sorted(points.items(), key=lambda p: (p[1][0], -p[1][1] if higher else p[1][1])):
        if not kept or (score > points[kept[-1]][1] if higher else score < points[kept[-1]][1]):
            kept.append(number)
    return kept


def chosen_trial(entry: Entry, higher: bool) -> int | None:
    """Index of the trial whose settings were selected."""
    found = {
        number: trial["score"]
        for number, trial in enumerate(listed(entry, "search"))
        if trial.get("state") == "done" and trial.get("score") is not None
    }
    if not found:
        return None
    return (max if higher else min)(found, key=lambda number: found[number])
