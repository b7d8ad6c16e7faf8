"""The rungs of a ladder: runs with 1/8, 1/4 and 1/2 of the budget, branched off the run with all of it.

The trunk is trained at a constant rate and keeps a checkpoint where the decay of each rung begins; a rung trains its
decay only. With a decay over a fifth of the budget, all four runs cost 1.175 times the largest.
"""

from __future__ import annotations

from seqloom.core.errors import UserError
from seqloom.lab.entries import Sized, changed
from seqloom.lab.rules import Budget
from seqloom.runs.registry import task_config
from seqloom.runs.settings import RunConfig

RUNGS = (("eighth", 1 / 8), ("quarter", 1 / 4), ("half", 1 / 2))  # below the full budget, ascending
_WARMING = 0.2  # largest share of the smallest rung that warm-up takes
_LEAST_STEPS = 10  # of the smallest rung: two of them decay


def cost(decay: float) -> float:
    """Training of a final run and its rungs, in final runs."""
    return 1 + decay * sum(share for _, share in RUNGS)


def scheduled(sized: Sized, budget: Budget) -> Sized:
    """The entry with a schedule that can be branched. Warm-up is the same number of steps for every rung."""
    if "train.schedule" in sized.pinned and sized.config.train.schedule != "stable":
        raise UserError(f"{sized.entry.name}: --ladder needs train.schedule=stable; leave the schedule out")
    steps = _steps(sized, RUNGS[0][1] * sized.budget(budget)["tokens"])
    if steps < _LEAST_STEPS:
        need = budget.amount * _LEAST_STEPS / max(steps, 1e-9)
        raise UserError(
            f"--ladder: with --budget {budget.kind}={budget.amount:g}, an eighth of it is {steps:.0f} steps of "
            f"{sized.entry.name}; use at least {budget.kind}={need:.3g}"
        )
    warmup = min(sized.config.train.warmup, int(_WARMING * steps))
    train = changed(sized.config.train, schedule="stable", warmup=warmup)
    config = sized.config.model_copy(update={"train": train})
    return Sized(sized.entry, config, sized.model, sized.task, sized.pinned, sized.length)


def trunk(config: RunConfig) -> RunConfig:
    """The run with the full budget, which keeps a checkpoint for each rung, before its decay begins."""
    stable = 1 - config.train.decay
    marks = [int(stable * _tokens(config, share)) for _, share in RUNGS]
    return config.model_copy(update={"train": changed(config.train, keep_at=marks)})


def branch(config: RunConfig, share: float) -> RunConfig:
    """The run with this share of the budget."""
    train = changed(config.train, tokens=_tokens(config, share), keep_at=())
    return config.model_copy(update={"train": train})


def _tokens(config: RunConfig, share: float) -> int:
    assert config.train.tokens
    return max(1, round(share * config.train.tokens))


def _steps(sized: Sized, tokens: float) -> float:
    return tokens / task_config(sized.config).tokens_per_step(sized.config.train.batch)
