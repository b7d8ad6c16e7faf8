"""What a model must beat to be worth its training: naive baselines and, by the text it writes, models without training.

Where baselines only output text, they have no loss: models and baselines are compared by the main score of the texts,
on the same blocks of the test set. A model that needs no training, such as the nearest training pair, is then a
baseline too: it is ranked by its loss, but its probabilities are an afterthought, and what it is used for is its text.
"""

from __future__ import annotations

from typing import NamedTuple

from seqloom.compare.advice.models import Model
from seqloom.compare.report import facts
from seqloom.core.rows import Json
from seqloom.lab.statistics import Sample, difference


class Lead(NamedTuple):
    """How much better a model is than a baseline, with the interval of the paired difference."""

    gap: float
    low: float
    high: float


class Rivals:
    def __init__(self, result: Json, models: list[Model], everyone: list[Model]) -> None:
        """`models`: the candidates; `everyone`: all finished models."""
        self.models, self.confidence = models, result["protocol"].get("confidence", 0.95)
        self.shown, self._metric_up = facts.shown(result), facts.higher_is_better(result)
        self.by = facts.yardstick(result)  # the score by which models and baselines are compared; None: the metric
        entered = {model.name for model in everyone}  # entries are not naive baselines
        self._naive = [row for row in facts.listed(result, "baselines") if row["name"] not in entered]
        self.best = self._best([*self._valued(self.by), *self._untrained()], self.by)

    def _higher(self, by: str | None) -> bool:
        return self._metric_up if by is None else self.shown[by]

    def _valued(self, by: str | None) -> list[Json]:
        """The naive baselines that have this score, as their `value`."""
        return [{**row, "value": value} for row in self._naive if (value := facts.measured(row, by)) is not None]

    def _untrained(self) -> list[Json]:
        """The candidates that need no training, as baselines; by the metric, they are ranked with all others."""
        fixed = [model for model in self.models if model.fixed and self.by is not None and self.by in model.scores]
        return [{"name": m.name, "model": m.name, "entry": m, "value": self.score(m)["mean"]} for m in fixed]

    def _best(self, rows: list[Json], by: str | None) -> Json | None:
        return (max if self._higher(by) else min)(rows, key=lambda row: float(row["value"]), default=None)

    def score(self, model: Model) -> Json:
        """The score to compare with the baselines."""
        return model.score if self.by is None else model.scores[self.by]

    def of(self, model: Model) -> Json | None:
        """The best baseline other than the model itself."""
        rows = [row for row in self._untrained() if row["entry"] is not model]
        return self._best([*self._valued(self.by), *rows], self.by)

    def is_best(self, model: Model) -> bool:
        """Whether the model is itself the best baseline."""
        return self.best is not None and self.best.get("entry") is model

    def nearest(self) -> Model:
        """The best candidate by the score that is compared with the baselines, besides the best baseline itself."""
        others = [model for model in self.models if not self.is_best(model)] or self.models
        best = max if self._higher(self.by) else min
        return best(others, key=lambda model: float(self.score(model)["mean"]))

    def beaten_by(self, model: Model) -> bool:
        if self.best is None:
            return True
        mean, other = self.score(model)["mean"], self.best["value"]
        return bool(mean > other if self._higher(self.by) else mean < other)

    def holds_against(self, model: Model) -> bool:
        """Whether it beats the best baseline, or is it."""
        return self.is_best(model) or self.beaten_by(model)

    @property
    def unbeaten(self) -> bool:
        """No candidate beats the best baseline, and it is not the winner by the metric itself."""
        return not self.is_best(self.models[0]) and not any(map(self.beaten_by, self.models))

    def usable(self) -> Json | None:
        """The best baseline that is a model, if it is no worse than every candidate."""
        found = self._best([row for row in self._valued(self.by) if row.get("model")], self.by)
        best = self.score(self.nearest())["mean"]
        if found is None or (found["value"] < best if self._higher(self.by) else found["value"] > best):
            return None
        return found

    def lead(self, model: Model, baseline: Json) -> Lead | None:
        """By how much the model is better, paired by block of the test set; None where the blocks are not known, or
        with a single seed."""
        mine, other = model.samples.get(self.by or ""), self._sample(baseline)
        if mine is None or other is None or not mine.testable or mine.scores.shape[1] != other.scores.shape[1]:
            return None
        gap, error = difference(mine, other)
        gap, reach = gap if self._higher(self.by) else -gap, error.reach(1 - self.confidence)
        return Lead(gap, gap - reach, gap + reach)

    def _sample(self, baseline: Json) -> Sample | None:
        if baseline.get("entry"):
            found: Sample | None = baseline["entry"].samples.get(self.by)
            return found
        pieces = facts.listed(baseline, "score_pieces", self.by or "")
        off = baseline["value"] - sum(pieces) / len(pieces) if pieces else 0.0
        return Sample.of([[piece + off for piece in pieces]], fixed=True) if pieces else None

    def told(self, model: Model, baseline: Json) -> bool:
        """Whether the two are told apart: by the interval of their difference or, where the blocks are not known, by
        that of the model's score, which then lies on one side of the baseline's."""
        if lead := self.lead(model, baseline):
            return lead.low > 0 or lead.high < 0
        score = self.score(model)
        return score.get("low") is not None and not score["low"] <= baseline["value"] <= score["high"]

    def unbeaten_on(self) -> list[tuple[str, Json, float]]:
        """Further scores on which every candidate is worse than the best naive baseline: (score, baseline, best value
        of a candidate)."""
        found = []
        for name, up in self.shown.items():
            baseline = self._best(self._valued(name), name) if name != self.by and self.by is not None else None
            values = [model.scores[name]["mean"] for model in self.models if name in model.scores]
            best = (max if up else min)(values, default=None)
            if baseline and best is not None and (best < baseline["value"] if up else best > baseline["value"]):
                found.append((name, baseline, best))
        return found
