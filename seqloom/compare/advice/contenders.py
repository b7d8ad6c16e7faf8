"""The models a recommendation chooses from: how they stand, what they cost, and both in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from seqloom.compare.advice.sentences import Pair, say, term
from seqloom.compare.report import facts
from seqloom.compare.report.formats import chance, count, fixed, percent, scaled, short
from seqloom.compare.statistics import Scores, verdicts

COSTS = ("latency", "memory", "training")
NEAR = 1.05  # costs that differ by less are the same for a choice


@dataclass(frozen=True)
class Model:
    """A finished entry, as far as a decision needs it."""

    name: str
    score: dict[str, Any]
    pieces: Scores
    against_best: dict[str, Any]
    parameters: int | None
    latency: dict[int, float]  # seconds for one more token, by context
    state: dict[int, float]  # bytes, by context
    speed: float | None  # tokens per second in training
    peak: float | None  # bytes in training

    @property
    def grows(self) -> bool:
        return bool(self.state) and self.state[max(self.state)] != self.state[min(self.state)]

    def growth(self) -> dict[str, str]:
        """Its state at the shortest and the longest context, as values of a sentence."""
        low, high = min(self.state), max(self.state)
        sizes = {"first": scaled(self.state[low], "B"), "last": scaled(self.state[high], "B")}
        return {**sizes, "short": count(low), "long": count(high)}


def finished(result: dict[str, Any]) -> list[Model]:
    """The best score first."""
    entries = [entry for _, entry in facts.scored(result) if math.isfinite(entry["score"]["mean"])]
    sign = -1 if facts.higher_is_better(result) else 1
    return [_model(entry) for entry in sorted(entries, key=lambda entry: sign * float(entry["score"]["mean"]))]


def _model(entry: dict[str, Any]) -> Model:
    def measured(name: str, key: str) -> dict[int, float]:
        points = facts.listed(entry, "cost", name)
        return {point["context"]: point[key] for point in points if point.get(key) is not None}

    return Model(
        name=entry["name"],
        score=entry["score"],
        pieces=[run.get("pieces") or [run["score"]] for run in facts.runs(entry)],
        against_best=entry.get("against_best") or {},
        parameters=entry.get("parameters"),
        latency=measured("latency", "seconds"),
        state=measured("state", "bytes"),
        speed=facts.dig(entry, "cost", "tokens_per_second"),
        peak=facts.dig(entry, "cost", "peak_bytes"),
    )


class Race:
    """Those that may be chosen, best score first, and everyone who finished."""

    def __init__(self, result: dict[str, Any], models: list[Model], everyone: list[Model]) -> None:
        protocol = result["protocol"]
        self.models, self.everyone = models, everyone
        self.higher = facts.higher_is_better(result)
        self.unit = term("unit", str(protocol.get("unit") or ""))
        self.level, self.confidence = protocol.get("level", 0.01), protocol.get("confidence", 0.95)
        self.decimals = facts.decimals(result)
        self.baseline = self._best_baseline(result)
        self.standing = self._standing()

    def _best_baseline(self, result: dict[str, Any]) -> dict[str, Any] | None:
        entered = {model.name for model in self.everyone}  # and so no baseline any more
        found = [each for each in facts.listed(result, "baselines") if each.get("score") is not None]
        found = [each for each in found if each["name"] not in entered]
        return (max if self.higher else min)(found, key=lambda each: float(each["score"]), default=None)

    def _standing(self) -> dict[str, dict[str, Any]]:
        """Each against the best that may be chosen: as the table has it, or anew when the best of all may not be."""
        known = {model.name: model.against_best for model in self.models}
        if all(known.values()) and any(each["verdict"] == "best" for each in known.values()):
            return known
        pieces = {model.name: model.pieces for model in self.models}
        return {name: asdict(each) for name, each in verdicts(pieces, self.higher, self.level, self.confidence).items()}

    def find(self, name: str | None) -> Model | None:
        return next((model for model in self.models if model.name == name), None)

    def verdict(self, model: Model) -> str:
        return str(self.standing[model.name]["verdict"])

    def beats_baseline(self, model: Model) -> bool:
        if self.baseline is None:
            return True
        mean, other = model.score["mean"], self.baseline["score"]
        return bool(mean > other if self.higher else mean < other)

    def surely_beats_baseline(self, model: Model) -> bool:
        """With its whole interval."""
        worst = model.score.get("low" if self.higher else "high")
        if self.baseline is None or worst is None:
            return False
        return bool(worst > self.baseline["score"] if self.higher else worst < self.baseline["score"])

    # costs

    def cheapest(self, kind: str, models: list[Model], pick: Callable[[set[int]], int] = max) -> list[Model]:
        """The cheapest first, at the longest context; those that were not measured are not there."""
        prices = [(self.price(kind, model, pick), model) for model in models]
        return [model for price, model in sorted(prices, key=lambda each: each[0]) if price]

    def near(self, kind: str, models: list[Model], pick: Callable[[set[int]], int] = max) -> list[Model]:
        """Those that cost as little as the cheapest, best score first."""
        near = [model for model in models if self.price(kind, model, pick)]
        for part in range(2 if kind == "memory" else 1):
            prices = {model.name: self.price(kind, model, pick)[part] for model in near}
            near = [model for model in near if prices[model.name] <= min(prices.values()) * NEAR]
        return near

    def price(self, kind: str, model: Model, pick: Callable[[set[int]], int] = max) -> tuple[float, ...]:
        """What to keep low, the first part before the second; empty when it was not measured."""
        if kind == "training":
            return (1 / model.speed,) if model.speed else ()
        table, context = self._table(kind, model), self.context(kind, pick)
        if context not in table:
            return ()
        return (table[context],) if kind == "latency" else (table[context], model.peak or math.inf)

    def context(self, kind: str, pick: Callable[[set[int]], int] = max) -> int:
        """The longest (or the shortest) context at which everyone was measured who was measured at all; else 0."""
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
        values = {"value": self.number(model.score["mean"]), "unit": self.unit}
        if model.score.get("low") is None:
            return say("score of one seed", **values)
        low, high = self.number(model.score["low"]), self.number(model.score["high"])
        share = percent(self.confidence)
        return say("score", share=share, low=low, high=high, seeds=model.score.get("seeds"), **values)

    def behind(self, model: Model) -> Pair:
        """How much worse it is than the best."""
        found = self.standing[model.name]
        value = self.number(found["difference"])
        if found.get("low") is None:
            return say("behind by one seed", value=value)
        low, high = self.number(found["low"]), self.number(found["high"])
        return say("behind", value=value, share=percent(self.confidence), low=low, high=high, p=chance(found["p"]))

    def cost(self, kind: str, model: Model, *, brief: bool = False, pick: Callable[[set[int]], int] = max) -> Pair:
        """Its price, with the context unless brief."""
        price = self.price(kind, model, pick)
        if not price:
            return ("not measured", "未测量")
        shown = {
            "latency": lambda: short(price[0] * 1000, 3),
            "memory": lambda: scaled(price[0], "B"),
            "training": lambda: count(model.speed),
        }
        context = "" if kind == "training" else count(self.context(kind, pick))
        return say(kind if brief else f"{kind} at", value=shown[kind](), context=context)

    def costs(self, model: Model) -> list[Pair]:
        """All that is known of what it costs."""
        found = [say("parameters", value=count(model.parameters))] if model.parameters is not None else []
        measured = [kind for kind in COSTS if self.price(kind, model)]
        if {"latency", "memory"} <= set(measured) and self.context("latency") == self.context("memory"):
            both = {kind: self.cost(kind, model, brief=True) for kind in ("latency", "memory")}
            found.append(say("reading at", context=count(self.context("latency")), **both))
            measured = [kind for kind in measured if kind not in both]
        found += [self.cost(kind, model) for kind in measured]
        return found + ([say("peak", value=scaled(model.peak, "B"))] if model.peak is not None else [])
