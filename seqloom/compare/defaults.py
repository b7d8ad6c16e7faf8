"""A comparison of which only the data is given: the models that suit the task, its folder, and the time or the tokens
that each run may take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from seqloom.compare.plan import Plan
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Rows
from seqloom.core.task import AnyTask
from seqloom.lab import rungs
from seqloom.lab.entries import Sized, changed
from seqloom.lab.recall import RecallTask
from seqloom.lab.rules import Budget
from seqloom.train.clock import Clock
from seqloom.train.engine import Engine
from seqloom.train.loop import EVALUATIONS
from seqloom.train.pace import estimate

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


def named_after(data: str) -> Path:
    """The folder of a comparison on this data."""
    first = data.partition(",")[0].removeprefix("sample:")
    return Path("runs") / f"compare-{Path(first).name.partition('.')[0] or 'data'}"


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
        climbed = len(entries) * rungs.climbed(plan.ladder, plan.seeds)
        validations = 2 if rungs.branched(plan.ladder) else EVALUATIONS
        units += climbed * rungs.cost(plan.ladder, entries[0].config.train.decay)
        besides += climbed * len(rungs.RUNGS) * (_START + validations * quick + brief + whole)
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


def tokens_within(
    seconds: float, entries: Sequence[Sized], task: AnyTask, rows: Mapping[str, Rows], threads: int
) -> tuple[int, str]:
    """The tokens that the slowest entry can train on in this time, from a few measured steps, and its name."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        paces = {sized.entry.name: _pace(sized, task, rows["train"]) for sized in entries}
    finally:
        torch.set_num_threads(before)
    slowest = min(paces, key=lambda name: paces[name])
    return _rounded(paces[slowest] * seconds), slowest


def _pace(sized: Sized, task: AnyTask, train: Any) -> float:
    """Training tokens per second."""
    config = changed(sized.config.train, epochs=1.0)
    needed = estimate(sized.model.assemble(task), task, config, Engine(config), train, None)
    return task.epoch_tokens(train) / max(1e-9, needed.training)


def _rounded(tokens: float) -> int:
    """Two significant digits, rounded down."""
    unit = 10 ** max(0, len(str(int(tokens))) - 2)
    return max(1, int(tokens) // unit * unit)


def _timed(task: AnyTask, model: SequenceModel, rows: Any, **how: bool) -> float:
    """In CPU time, like the budgets of the runs: other programs on the machine change neither."""
    evaluate: Callable[..., Any] = task.evaluate
    clock = Clock("cpu", model.device.type)
    evaluate(model, rows, **how)
    return clock.lap().seconds
