"""A comparison of which only the data is given: the models that suit the task, and the time that each run may take."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seqloom.compare.plan import Plan
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Rows
from seqloom.core.task import AnyTask
from seqloom.lab import rungs
from seqloom.lab.entries import Sized
from seqloom.lab.rules import Budget
from seqloom.train.loop import EVALUATIONS

# A recurrent model and a Transformer for each task, and what else trains in seconds. Models that are fitted by counting
# or in closed form (n-grams, bags of words, linear and naive forecasts) join every comparison without being named.
MODELS = {
    "language_model": ("lstm", "gpt"),
    "masked_lm": ("lstm", "bert"),
    "classification": ("bag", "lstm", "bert"),
    "tagging": ("lstm", "bert"),
    "question_answering": ("lstm", "bert"),
    "translation": ("seq2seq", "transformer"),
    "forecasting": ("lstm", "patch"),
}
OTHERS = ("lstm", "gpt")  # for a task that is not in the table
BUDGET = "minutes=20"  # for the whole comparison
_LEAST = 5.0  # seconds of training
_START, _PROBE, _COSTS = 4.0, 20.0, 15.0  # seconds: to start a run, for recall probes, for the costs of a model


@dataclass(frozen=True)
class Allotment:
    seconds: float  # training time of a full run
    total: float  # estimated seconds for the whole comparison


def default_models(task: str) -> tuple[str, ...]:
    return MODELS.get(task, OTHERS)


def allot(plan: Plan, entries: Sequence[Sized], task: AnyTask, rows: Mapping[str, Rows], jobs: int) -> Allotment:
    """Divide the minutes of the plan among its runs, after a measurement of what takes time besides training."""
    trials, finals = len(entries) * plan.trials, len(entries) * plan.seeds
    model = entries[0].model.assemble(task).eval()
    quick = _timed(task, model, rows["valid"], quick=True)
    brief, whole = _timed(task, model, rows["valid"], brief=True), _timed(task, model, rows.get("test", rows["valid"]))
    besides = (trials + finals) * (_START + EVALUATIONS * quick + brief) + finals * whole
    besides += len(entries) * (_PROBE + _COSTS)
    units = trials * plan.trial_share + finals
    if plan.ladder:
        units += finals * (rungs.cost(entries[0].config.train.decay) - 1)
        besides += finals * len(rungs.RUNGS) * (_START + 2 * quick + brief + whole)
    seconds = max(_LEAST, (60 * plan.budget.amount * jobs - besides) / units)
    return Allotment(round(seconds, 1), (units * seconds + besides) / jobs)


def per_run(seconds: float) -> Budget:
    return Budget(kind="seconds", amount=seconds)


def _timed(task: AnyTask, model: SequenceModel, rows: Any, **how: bool) -> float:
    evaluate: Callable[..., Any] = task.evaluate
    started = time.perf_counter()
    evaluate(model, rows, **how)
    return time.perf_counter() - started
