"""The candidates of a recommendation: their standing and their costs, as numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass

from seqloom.compare import judging
from seqloom.compare.advice.sentences import Pair, say, say_by
from seqloom.compare.report import facts
from seqloom.core.rows import Json
from seqloom.lab.rules import Margin
from seqloom.lab.spending import LEVEL
from seqloom.lab.statistics import Sample
from seqloom.pages.formats import chance, count, fixed, percent, scaled, short

COSTS = ("latency", "memory", "training")
NEAR = 1.05  # costs within this factor are treated as equal


@dataclass(frozen=True)
class Model:
    """What a decision needs to know about a finished entry."""

    name: str
    score: Json
    scores: Json  # further scores with their intervals: BLEU, ...
    sample: Sample  # its test scores, by seed and piece
    fixed: bool  # fitted by counting or in closed form, to the whole training set
    seconds: float | None  # training time of a run
    tokens: float | None  # read in training
    against_best: Json
    parameters: int | None
    latency: dict[int, float]  # seconds by context length
    state: dict[int, float]  # bytes by context length
    speed: float | None  # tokens per second in training
    peak: float | None  # bytes in training

    @property
    def grows(self) -> bool:
        return bool(self.state) and self.state[max(self.state)] != self.state[min(self.state)]

    def growth(self) -> dict[str, str]:
        """State size at the shortest and the longest context, as values for a sentence."""
        low, high = min(self.state), max(self.state)
        sizes = {"first": scaled(self.state[low], "B"), "last": scaled(self.state[high], "B")}
        return {**sizes, "short": count(low), "long": count(high)}


def finished(result: Json) -> list[Model]:
    """Finished models, best score first."""
    entries = [entry for _, entry in facts.scored(result) if math.isfinite(entry["score"]["mean"])]
    sign = -1 if facts.higher_is_better(result) else 1
    return [_model(entry) for entry in sorted(entries, key=lambda entry: sign * float(entry["score"]["mean"]))]


def _model(entry: Json) -> Model:
    def measured(name: str, key: str) -> dict[int, float]:
        points = facts.listed(entry, "cost", name)
        return {point["context"]: point[key] for point in points if point.get(key) is not None}

    return Model(
        name=entry["name"],
        score=entry["score"],
        scores={name: found for name, found in (entry.get("scores") or {}).items() if found},
        sample=judging.recorded(entry),
        fixed=bool(entry.get("fixed")),
        seconds=facts.training_seconds(entry),
        tokens=facts.training_tokens(entry),
        against_best=entry.get("against_best") or {},
        parameters=entry.get("parameters"),
        latency=measured("latency", "seconds"),
        state=measured("state", "bytes"),
        speed=facts.dig(entry, "cost", "tokens_per_second"),
        peak=facts.dig(entry, "cost", "peak_bytes"),
    )


class Race:
    """The candidates, best score first (`models`), and all finished models (`everyone`)."""

    def __init__(self, result: Json, models: list[Model], everyone: list[Model]) -> None:
        protocol = result["protocol"]
        self.models, self.everyone = models, everyone
        self.higher = facts.higher_is_better(result)
        self.result = result
        self.level, self.confidence = protocol.get("level", LEVEL), protocol.get("confidence", 0.95)
        self.margin = Margin.parse(str(protocol.get("margin") or "1%"))
        self.decimals = facts.decimals(result)
        self.latency_unit = facts.latency_unit(result)
        self.shown, self._places = facts.shown(result), facts.shown_places(result)
        self.by = facts.yardstick(result)  # the score by which models and baselines are compared; None: the metric
        self._rows = facts.listed(result, "baselines")
        self.baseline = self.best_baseline(self.by)
        self.standing = self._standing()

    def best_baseline(self, by: str | None, usable: bool = False) -> Json | None:
        """The best baseline by this score, with its `value`; `usable`: of those that are models in a run folder."""
        entered = {model.name for model in self.everyone}  # entries are not baselines
        found = [{**each, "value": value} for each in self._rows if (value := facts.measured(each, by)) is not None]
        found = [each for each in found if each["name"] not in entered and (each.get("model") or not usable)]
        return (max if self._higher(by) else min)(found, key=lambda each: float(each["value"]), default=None)

    def _higher(self, by: str | None) -> bool:
        return self.higher if by is None else self.shown[by]

    def _standing(self) -> dict[str, Json]:
        """Every candidate against the best of the others; recomputed when constraints exclude a model, because a model
        may be worse than an excluded one alone."""
        known = {model.name: model.against_best for model in self.models}
        if len(self.models) == len(self.everyone) and all(known.values()):
            return known
        samples = {model.name: model.sample for model in self.models}
        bounds = facts.bounds(self.result)
        found = judging.verdicts(samples, self.higher, self.level, self.margin, bounds)
        return {name: asdict(each) for name, each in found.items()}

    def find(self, name: str | None) -> Model | None:
        return next((model for model in self.models if model.name == name), None)

    def verdict(self, model: Model) -> str:
        return str(self.standing[model.name]["verdict"])

    def tested(self, model: Model) -> bool:
        """Whether its distance to the best of the others has an interval."""
        found = self.standing[model.name]
        return found.get("low") is not None and found.get("high") is not None

    def shared_score(self, model: Model) -> Json:
        """The score to compare with the baselines."""
        return model.score if self.by is None else model.scores[self.by]

    def nearest_to_baseline(self) -> Model:
        """The best candidate by the score that is compared with the baselines."""
        best = max if self._higher(self.by) else min
        return best(self.models, key=lambda model: float(self.shared_score(model)["mean"]))

    def beats_baseline(self, model: Model) -> bool:
        if self.baseline is None:
            return True
        mean, other = self.shared_score(model)["mean"], self.baseline["value"]
        return bool(mean > other if self._higher(self.by) else mean < other)

    def worthwhile(self) -> list[Model]:
        """The candidates to choose from by cost: those that beat the baselines and are no worse than the best of the
        models that need no training, or are not shown to be."""
        better = [model for model in self.models if self.beats_baseline(model)]
        sign = 1.0 if self.higher else -1.0
        bar = max((sign * model.score["mean"] for model in better if model.fixed), default=-math.inf)
        return [m for m in better if sign * m.score["mean"] >= bar or (self.tested(m) and self.verdict(m) != "worse")]

    def usable_baseline(self) -> Json | None:
        """The best baseline that is a model, if it is no worse than every candidate."""
        found, best = self.best_baseline(self.by, usable=True), self.shared_score(self.nearest_to_baseline())["mean"]
        if found is None or (found["value"] < best if self._higher(self.by) else found["value"] > best):
            return None
        return found

    def told_from(self, model: Model, value: float) -> bool:
        """Whether its whole confidence interval lies on one side of this value of a baseline."""
        score = self.shared_score(model)
        return score.get("low") is not None and not score["low"] <= value <= score["high"]

    def unbeaten(self) -> list[tuple[str, Json, float]]:
        """Further scores on which every candidate is worse than the best baseline: (score, baseline, best value)."""
        found = []
        for name, up in self.shown.items():
            baseline = self.best_baseline(name) if name != self.by and self.by is not None else None
            values = [model.scores[name]["mean"] for model in self.models if name in model.scores]
            best = (max if up else min)(values, default=None)
            if baseline and best is not None and (best < baseline["value"] if up else best > baseline["value"]):
                found.append((name, baseline, best))
        return found

    # costs

    def cheapest(self, kind: str, models: list[Model], pick: Callable[[set[int]], int] = max) -> list[Model]:
        """Measured models, cheapest first, at the longest context (or the one picked)."""
        prices = [(self.price(kind, model, pick), model) for model in models]
        return [model for price, model in sorted(prices, key=lambda each: each[0]) if price]

    def near(self, kind: str, models: list[Model], pick: Callable[[set[int]], int] = max) -> list[Model]:
        """Models within 5 % of the cheapest, best score first."""
        near = [model for model in models if self.price(kind, model, pick)]
        for part in range(2 if kind == "memory" else 1):
            prices = {model.name: self.price(kind, model, pick)[part] for model in near}
            near = [model for model in near if prices[model.name] <= min(prices.values()) * NEAR]
        return near

    def price(self, kind: str, model: Model, pick: Callable[[set[int]], int] = max) -> tuple[float, ...]:
        """The cost to minimise, compared lexicographically; empty if it was not measured."""
        if kind == "training":
            return (1 / model.speed,) if model.speed else ()
        table, context = self._table(kind, model), self.context(kind, pick)
        if context not in table:
            return ()
        return (table[context],) if kind == "latency" else (table[context], model.peak or math.inf)

    def context(self, kind: str, pick: Callable[[set[int]], int] = max) -> int:
        """The longest (or shortest) context at which every measured candidate has a value; 0 if there is none."""
        tables = [set(self._table(kind, model)) for model in self.models]
        shared = set.intersection(*(table for table in tables if table)) if any(tables) else set()
        return pick(shared) if shared else 0

    @staticmethod
    def _table(kind: str, model: Model) -> dict[int, float]:
        return model.latency if kind == "latency" else model.state

    # in words

    def number(self, value: float) -> str:
        return fixed(value, self.decimals)

    def score(self, model: Model) -> Pair:
        return self._interval(model, model.score, self.decimals)

    def shared_score_words(self, model: Model) -> Pair:
        if self.by is None:
            return self.score(model)
        return self._interval(model, self.shared_score(model), self._places[self.by], self.by)

    def shared_number(self, value: float, by: str | None = None) -> Pair:
        """A value of the score compared with the baselines: a bare number for the metric, else with its name."""
        by = by or self.by
        if by is None:
            return self.number(value), self.number(value)
        return self._measure(value, self._places[by], by)

    def _measure(self, value: float, decimals: int, name: str | None) -> Pair:
        """`1.48 nats per token`, or `accuracy 0.91` where a score has no unit."""
        unit = facts.unit(self.result, name)
        if unit[0]:
            return say("with unit", value=fixed(value, decimals), unit=unit)
        return say("with title", value=fixed(value, decimals), title=facts.score_words(self.result, name))

    def _interval(self, model: Model, score: Json, decimals: int, name: str | None = None) -> Pair:
        value = self._measure(score["mean"], decimals, name)
        if score.get("low") is None:
            return value if model.fixed else say("score of one seed", value=value)
        low, high = fixed(score["low"], decimals), fixed(score["high"], decimals)
        values = {"value": value, "share": percent(self.confidence), "low": low, "high": high}
        return say("score without seeds", **values) if model.fixed else say("score", seeds=score.get("seeds"), **values)

    def behind(self, model: Model) -> Pair:
        """How much worse than the best of the others, with an interval that holds for all models together."""
        found = self.standing[model.name]
        value = self.number(found["difference"])
        if not self.tested(model):
            return say("behind without interval", value=value)
        low, high = self.number(found["low"]), self.number(found["high"])
        return say("behind", value=value, share=percent(1 - self.level), low=low, high=high, p=chance(found["p"]))

    def cost(self, kind: str, model: Model, *, brief: bool = False, pick: Callable[[set[int]], int] = max) -> Pair:
        """The cost in words, with its context unless brief."""
        price = self.price(kind, model, pick)
        if not price:
            return ("not measured", "未测量")
        shown = {
            "latency": lambda: short(price[0] * 1000, 3),
            "memory": lambda: scaled(price[0], "B"),
            "training": lambda: count(model.speed),
        }
        context = "" if kind == "training" else count(self.context(kind, pick))
        return say_by(self.latency_unit, kind if brief else f"{kind} at", value=shown[kind](), context=context)

    def costs(self, model: Model) -> list[Pair]:
        """All measured costs."""
        found = [say("parameters", value=count(model.parameters))] if model.parameters else []
        measured = [kind for kind in COSTS if self.price(kind, model)]
        if {"latency", "memory"} <= set(measured) and self.context("latency") == self.context("memory"):
            both = {kind: self.cost(kind, model, brief=True) for kind in ("latency", "memory")}
            found.append(say_by(self.latency_unit, "reading at", context=count(self.context("latency")), **both))
            measured = [kind for kind in measured if kind not in both]
        found += [self.cost(kind, model) for kind in measured]
        return found + ([say("peak", value=scaled(model.peak, "B"))] if model.peak is not None else [])
