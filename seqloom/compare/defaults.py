"""A comparison of which only the data is given: the models that suit the task, its folder, and the time or the tokens
that each run may take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from seqloom.compare.plan import Plan
from seqloom.core.network import SequenceModel
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
SHORT = 0.2  # of a final run: training on few rows, roughly
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


def allot(plan: Plan, entries: Sequence[Sized], closed: Sequence[Sized], jobs: int) -> Allotment:
    """Divide the minutes of the plan among its runs, after a measurement of what takes time besides training.
    `closed`: models that are fitted in closed form, and measured like the others."""
    spent = _evaluations([*entries, *(sized for sized in closed if sized.started)], plan.threads)
    cheapest = min(spent.values(), key=sum)
    trained, besides = [sized for sized in entries if sized.trained], 0.0
    for sized in entries:
        quick, brief, whole = spent[sized.entry.name]
        besides += plan.seeds * (_START + brief + whole) + _COSTS
        if sized.trained:
            besides += plan.seeds * EVALUATIONS * quick + plan.trials * (_START + EVALUATIONS * quick + brief)
        if not sized.started and sized.blueprint.kind in RecallTask.accepts:
            besides += _PROBE
    for sized in closed:
        quick, brief, whole = spent.get(sized.entry.name, cheapest)
        besides += _START + brief + whole + _COSTS
    few = len(plan.per_label) * plan.seeds
    besides += sum(few * (_START + sum(spent.get(s.entry.name, cheapest)[1:])) for s in (*entries, *closed))
    units = len(trained) * (plan.trials * plan.trial_share + plan.seeds) + (jobs - 1) * _TAIL
    units += SHORT * few * len(trained)
    if plan.ladder:
        climbed = rungs.climbed(plan.ladder, plan.seeds)
        validations = 2 if rungs.branched(plan.ladder) else EVALUATIONS
        units += len(trained) * climbed * rungs.cost(plan.ladder, trained[0].config.train.decay)
        for quick, brief, whole in (spent[sized.entry.name] for sized in trained):
            besides += climbed * len(rungs.RUNGS) * (_START + validations * quick + brief + whole)
    seconds = max(_LEAST, (60 * plan.budget.amount * jobs - besides) / units)
    return Allotment(round(seconds, 1), (units * seconds + besides) / jobs)


def per_run(seconds: float) -> Budget:
    return Budget(kind="seconds", amount=seconds)


def _evaluations(entries: Sequence[Sized], threads: int) -> dict[str, tuple[float, float, float]]:
    """By entry, seconds for a validation during training, after it, and for scoring the test set, with the threads of
    a run. Measured for the smallest entry; for the others it is in proportion to their FLOPs, because scoring a large
    pretrained model takes minutes."""
    before, first = torch.get_num_threads(), min(entries, key=_work)
    torch.set_num_threads(threads)
    try:
        task, rows, model = first.task, first.reading.rows, first.model.assemble(first.task).eval()
        valid = rows["valid"]
        quick, brief = _timed(task, model, valid, quick=True), _timed(task, model, valid, brief=True)
        whole = _timed(task, model, rows.get("test", valid))
    finally:
        torch.set_num_threads(before)
    factors = {sized.entry.name: _work(sized) / _work(first) if sized.started else 1.0 for sized in entries}
    return {name: (factor * quick, factor * brief, factor * whole) for name, factor in factors.items()}


def _work(sized: Sized) -> float:
    """FLOPs of reading the training set once."""
    return max(1.0, sized.flops_per_token * sized.reading.epoch_tokens)


def within(seconds: float, entries: Sequence[Sized], threads: int, unit: str = "tokens") -> tuple[int, Sized]:
    """The tokens, or bytes of text, that the slowest entry can train on in this time, from a few measured steps."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        paces = [(_pace(s) * (s.reading.bytes_per_token if unit == "bytes" else 1), s) for s in entries if s.trained]
    finally:
        torch.set_num_threads(before)
    pace, slowest = min(paces, key=lambda found: found[0])
    return _rounded(pace * seconds), slowest


def _pace(sized: Sized) -> float:
    """Training tokens per second."""
    config, train = changed(sized.config.train, epochs=1.0), sized.reading.rows["train"]
    needed = estimate(sized.model.assemble(sized.task), sized.task, config, Engine(config), train, None)
    return sized.reading.epoch_tokens / max(1e-9, needed.training)


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
