"""Matched tuning: every architecture gets the same number of trials in the same search space, scored on validation.

The first trial uses the architecture's own settings. The next round varies the learning-rate multiplier, the last one
optimizer and dropout at the best multiplier; Optuna proposes the values. The size of a round depends only on the
number of trials, and a proposal only on the results of earlier rounds, so the search is the same for any number of
processes and after an interruption.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from seqloom.core.rows import Json

SCALES = (0.25, 4.0)
OPTIMIZERS = ("muon", "adamw")
DROPOUTS = (0.0, 0.3)
SPACE = {"scale of the learning rates": list(SCALES), "optimizer": list(OPTIMIZERS), "dropout": list(DROPOUTS)}
_FIRST_SCALES = (0.5, 2.0)  # tried before Optuna proposes any
_GRACE = 0.3  # share of the budget before which no trial is pruned

Settings = Json
Curve = list[tuple[float, float]]  # (share of the budget, validation score) during training
Outcome = tuple[float | None, Curve]  # final score (None: failed or pruned), and the curve


def rounds(trials: int, first: Settings, pinned: set[str], name: str, lower: bool) -> Generator[
    list[Settings], Sequence[Outcome], None
]:  # fmt: skip
    """Yield the settings of each round; receive their outcomes in the same order."""
    study = _Study(first, name, lower)
    outcomes = yield [first]
    study.tell([first], outcomes)
    rates = 0 if _fixed(pinned, "scale") else trials // 2
    others = [s for s in ("optimizer", "dropout") if not _fixed(pinned, s)]
    if not others and not _fixed(pinned, "scale"):
        rates = trials - 1
    for count, vary in ((rates, ["scale"]), (trials - 1 - rates, others)):
        if count > 0 and vary:
            asked = study.ask(count, vary)
            outcomes = yield asked
            study.tell(asked, outcomes)


def _fixed(pinned: set[str], setting: str) -> bool:
    return bool(pinned & set(_OPTIONS[setting]))


_OPTIONS = {
    "scale": ("train.rate", "train.matrix_rate"),
    "optimizer": ("train.optimizer",),
    "dropout": ("model.dropout",),
}


def first_settings(train: Any, model: Mapping[str, Any]) -> Settings:
    """The architecture's own settings."""
    return {"scale": 1.0, "optimizer": train.optimizer, "dropout": model.get("dropout", 0.0)}


def as_overrides(settings: Settings, train: Any) -> Json:
    """Settings as run options, with learning rates relative to those in `train`."""
    return {
        "train.rate": train.rate * settings["scale"],
        "train.matrix_rate": train.matrix_rate * settings["scale"],
        "train.optimizer": settings["optimizer"],
        "model.dropout": settings["dropout"],
    }


def hopeful(share: float, score: float, reference: Curve, lower: bool) -> bool:
    """False prunes a trial: past 30 % of its budget, it is behind the best trial so far at half that share."""
    sign = 1.0 if lower else -1.0
    reached = [known for at, known in reference if at <= share / 2 + 1e-9]
    return share < _GRACE or not reached or sign * score <= sign * reached[-1]


class _Study:
    """The trials so far and Optuna's proposals, deterministic given the outcomes."""

    def __init__(self, first: Settings, name: str, lower: bool) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.optuna, self.name, self.sign = optuna, name, 1.0 if lower else -1.0
        self.done: list[tuple[Settings, float]] = []
        self.best, self.lowest = first, math.inf  # among completed trials

    def tell(self, asked: Sequence[Settings], outcomes: Sequence[Outcome]) -> None:
        for settings, (score, curve) in zip(asked, outcomes, strict=True):
            last = curve[-1][1] if curve else score  # the last validation score, also of pruned trials
            if last is not None and math.isfinite(last):
                self.done.append((settings, self.sign * last))
            if score is not None and self.sign * score < self.lowest:
                self.best, self.lowest = settings, self.sign * score

    def ask(self, count: int, vary: Sequence[str]) -> list[Settings]:
        ready = self._fixed_proposals(self.best, vary)[:count]
        return ready + [self._propose(self.best, vary, n) for n in range(len(ready), count)]

    def _fixed_proposals(self, best: Settings, vary: Sequence[str]) -> list[Settings]:
        """Fixed proposals that come before Optuna's."""
        if "scale" in vary:
            return [best | {"scale": scale} for scale in _FIRST_SCALES]
        if "optimizer" in vary:
            return [best | {"optimizer": other} for other in OPTIMIZERS if other != best["optimizer"]]
        return []

    def _propose(self, best: Settings, vary: Sequence[str], number: int) -> Settings:
        o = self.optuna
        space: Json = {
            "scale": o.distributions.FloatDistribution(*SCALES, log=True),
            "optimizer": o.distributions.CategoricalDistribution(OPTIMIZERS),
            "dropout": o.distributions.FloatDistribution(*DROPOUTS, step=0.05),
        }
        seed = int.from_bytes(hashlib.sha256(f"{self.name} {vary} {number}".encode()).digest()[:4], "big")
        sampler = o.samplers.TPESampler(seed=seed, n_startup_trials=3)
        study = o.create_study(sampler=sampler)
        varied = {key: space[key] for key in vary}
        for settings, score in self.done:
            params = {key: settings[key] for key in vary}
            study.add_trial(o.trial.create_trial(params=params, distributions=varied, value=score))
        found: Settings = best | study.ask(varied).params
        return found
