"""A comparison of which only the data is given: the models that suit the task, and the time that each run may take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from seqloom.compare.plan import Plan
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Rows
from seqloom.core.task import AnyTask
from seqloom.lab import rungs
from seqloom.lab.entries import Sized
from seqloom.lab.recall import RecallTask
from seqloom.lab.rules import Budget
from seqloom.train.clock import Clock
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
_START, _PROBE, _COSTS = 4.0, 20.0, 15.0  # seconds: to start a run, for the recall probes and the costs of a model
_TAIL = 0.5  # of a run: how long each further worker waits at the end for the last one


@dataclass(frozen=True)
class Allotment:
    seconds: float  # training time of a full run
    total: float  # estimated seconds for the whole comparison


def default_models(task: str) -> tuple[str, ...]:
    return MODELS.get(task, OTHERS)


def allot(
    plan: Plan, entries: Sequence[Sized], closed: int, task: AnyTask, rows: Mapping[str, Rows], jobs: int
) -> Allotment:
    """Divide the minutes of the plan among its runs, after a measurement of what takes time besides training.
    `closed`: number of models that are fitted in closed form, and measured like the others."""
    trials, finals = len(entries) * plan.trials, len(entries) * plan.seeds
    quick, brief, whole = _evaluations(entries[0], task, rows, plan.threads)
    besides = (trials + finals) * (_START + EVALUATIONS * quick + brief) + finals * whole
    besides += closed * (_START + brief + whole) + (len(entries) + closed) * _COSTS
    besides += sum(_PROBE for sized in entries if sized.blueprint.kind in RecallTask.accepts)
    units = trials * plan.trial_share + finals + (jobs - 1) * _TAIL
    if plan.ladder:
        units += finals * (rungs.cost(entries[0].config.train.decay) - 1)
        besides += finals * len(rungs.RUNGS) * (_START + 2 * quick + brief + whole)
    seconds = max(_LEAST, (60 * plan.budget.amount * jobs - besides) / units)
    return Allotment(round(seconds, 1), (units * seconds + besides) / jobs)


def per_run(seconds: float) -> Budget:
    return Budget(kind="seconds", amount=seconds)


def _evaluations(sized: Sized, task: AnyTask, rows: Mapping[str, Rows], threads: int) -> tuple[float, float, float]:
    """Seconds for a validation during training, after it, and for scoring the test set, with the threads of a run."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        model, valid = sized.model.assemble(task).eval(), rows["valid"]
        quick, brief = _timed(task, model, valid, quick=True), _timed(task, model, valid, brief=True)
        return quick, brief, _timed(task, model, rows.get("test", valid))
    finally:
        torch.set_num_threads(before)


def _timed(task: AnyTask, model: SequenceModel, rows: Any, **how: bool) -> float:
    """In CPU time, like the budgets of the runs: other programs on the machine change neither."""
    evaluate: Callable[..., Any] = task.evaluate
    clock = Clock("cpu", model.device.type)
    evaluate(model, rows, **how)
    return clock.lap().seconds
