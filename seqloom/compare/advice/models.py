"""What a recommendation needs to know about each finished entry of a comparison."""

from __future__ import annotations

import math
from dataclasses import dataclass

from seqloom.compare import judging
from seqloom.compare.report import facts
from seqloom.core.rows import Json
from seqloom.lab.statistics import Sample
from seqloom.pages.formats import count, scaled


@dataclass(frozen=True)
class Model:
    """What a decision needs to know about a finished entry."""

    name: str
    score: Json
    scores: Json  # further scores with their intervals: BLEU, ...
    sample: Sample  # its test scores, by seed and piece
    samples: dict[str, Sample]  # likewise of the further scores whose pieces are known
    fixed: bool  # fitted by counting or in closed form, to the whole training set
    seconds: float | None  # training time of a run
    tokens: float | None  # read in training
    epochs: float | None  # passes over the training set
    pretrained: bool  # from weights that others trained
    against_best: Json
    parameters: int | None
    stored: int | None  # values that a model without parameters stores: counts, weights, keys
    latency: dict[int, float]  # seconds by context length
    state: dict[int, float]  # bytes by context length
    speed: float | None  # tokens per second in training
    peak: float | None  # bytes in training

    @property
    def size(self) -> int:
        """Parameters, or stored values."""
        return self.parameters or self.stored or 0

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
    return [_model(result, entry) for entry in sorted(entries, key=lambda entry: sign * float(entry["score"]["mean"]))]


def _model(result: Json, entry: Json) -> Model:
    def measured(name: str, key: str) -> dict[int, float]:
        points = facts.listed(entry, "cost", name)
        return {point["context"]: point[key] for point in points if point.get(key) is not None}

    scores = {name: found for name, found in (entry.get("scores") or {}).items() if found}
    fixed = bool(entry.get("fixed"))
    samples = {name: judging.beside(facts.runs(entry), name, fixed) for name in scores}
    return Model(
        name=entry["name"],
        score=entry["score"],
        scores=scores,
        sample=judging.recorded(entry),
        samples={name: sample for name, sample in samples.items() if sample},
        fixed=fixed,
        seconds=facts.training_seconds(entry),
        tokens=facts.training_tokens(entry),
        epochs=facts.epochs(result, entry),
        pretrained=bool(entry.get("pretrained")),
        against_best=entry.get("against_best") or {},
        parameters=entry.get("parameters"),
        stored=entry.get("stored"),
        latency=measured("latency", "seconds"),
        state=measured("state", "bytes"),
        speed=facts.dig(entry, "cost", "tokens_per_second"),
        peak=facts.dig(entry, "cost", "peak_bytes"),
    )
