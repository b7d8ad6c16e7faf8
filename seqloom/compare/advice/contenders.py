"""The candidates of a recommendation: their standing and their costs, as numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict

from seqloom.compare import judging
from seqloom.compare.advice.models import Model
from seqloom.compare.advice.rivals import Rivals
from seqloom.compare.advice.sentences import Pair, say, say_by
from seqloom.compare.report import facts
from seqloom.core.rows import Json
from seqloom.lab.rules import Margin
from seqloom.lab.spending import LEVEL
from seqloom.pages.formats import chance, count, fixed, percent, scaled, short

COSTS = ("latency", "memory", "training")
NEAR = 1.05  # costs within this factor are treated as equal


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
        self._places = facts.shown_places(result)
        self.rivals = Rivals(result, models, everyone)
        self.standing = self._standing()

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

    def worthwhile(self) -> list[Model]:
        """The candidates to choose from by cost: those that beat the baselines and are no worse than the best of the
        models that need no training, or are not shown to be."""
        better = [model for model in self.models if self.rivals.holds_against(model)]
        sign = 1.0 if self.higher else -1.0
        bar = max((sign * model.score["mean"] for model in better if model.fixed), default=-math.inf)
        return [m for m in better if sign * m.score["mean"] >= bar or (self.tested(m) and self.verdict(m) != "worse")]

    # costs

    def cheapest(self, kind: str, models: list[Model], pick: Callable[[set[int]], int] = max) -> list[Model]:
        """Measured models, cheapest first, at the longest context (or the one picked)."""
        prices = [(self.price(kind, model, pick), model) for model in models]
        return [model for price, model in sorted(prices, key=lambda each: each[0]) if price]

    def near(self, kind: str, models: list[Model], pick: Callable[[set[int]], int] = max) -> list[Model]:
        """Models within 5 % of the cheapest, best score first; of those with a state of about the same size, the ones
        that need the least memory in training."""
        return self._alike(kind, models, pick, 2 if kind == "memory" else 1)

    def alike(self, models: list[Model]) -> list[Model]:
        """Models whose state is within 5 % of the smallest."""
        return self._alike("memory", models, max, 1)

    def _alike(self, kind: str, models: list[Model], pick: Callable[[set[int]], int], parts: int) -> list[Model]:
        near = [model for model in models if self.price(kind, model, pick)]
        for part in range(parts):
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
        """Its score by which it is compared with the baselines."""
        by = self.rivals.by
        if by is None:
            return self.score(model)
        return self._interval(model, self.rivals.score(model), self._places[by], by)

    def shared_number(self, value: float, by: str | None = None) -> Pair:
        """A value of the score compared with the baselines: a bare number for the metric, else with its name."""
        by = by or self.rivals.by
        if by is None:
            return self.number(value), self.number(value)
        return self._measure(value, self._places[by], by)

    def lead(self, model: Model, baseline: Json) -> Pair | None:
        """How much better than a baseline, with the interval of the paired difference; None if there is none."""
        found, by = self.rivals.lead(model, baseline), self.rivals.by
        if found is None or by is None:
            return None
        gap, low, high = (fixed(value, self._places[by]) for value in found)
        return say("better by", gap=gap, low=low, high=high, share=percent(self.confidence))

    def title(self, baseline: Json) -> Pair:
        """A baseline in words; an entry of the comparison has its own name."""
        if baseline.get("entry"):
            return str(baseline["name"]), str(baseline["name"])
        return facts.baseline_title(self.result, baseline["name"])

    def _measure(self, value: float, decimals: int, name: str | None) -> Pair:
        """`1.48 nats per token`, or `accuracy 0.91` where a score has no unit, or one that is no word for a quantity:
        0.66 variances of the training set are `MSE 0.66`."""
        unit = facts.unit(self.result, name)
        if unit[0] and not unit[0].endswith("of the training set"):
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
        found = [say("parameters" if model.parameters else "stored", value=count(model.size))] if model.size else []
        measured = [kind for kind in COSTS if self.price(kind, model)]
        if {"latency", "memory"} <= set(measured) and self.context("latency") == self.context("memory"):
            both = {kind: self.cost(kind, model, brief=True) for kind in ("latency", "memory")}
            found.append(say_by(self.latency_unit, "reading at", context=count(self.context("latency")), **both))
            measured = [kind for kind in measured if kind not in both]
        found += [self.cost(kind, model) for kind in measured]
        return found + ([say("peak", value=scaled(model.peak, "B"))] if model.peak is not None else [])
