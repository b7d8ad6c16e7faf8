"""The rungs of a ladder: runs with 1/8, 1/4 and 1/2 of the budget, of the training set or of the size.

Those with less of the budget are branched off the run with all of it: the trunk is trained at a constant rate and keeps
a checkpoint where the decay of each rung begins; a rung trains its decay only. With a decay over a fifth of the budget,
all four runs cost 1.175 times the largest. Those with less data or of a smaller size are trained from the beginning:
1.875 times the largest (smaller models somewhat more), so only the first two seeds have them.
"""

from __future__ import annotations

from seqloom.core.errors import UserError
from seqloom.lab.entries import Sized, changed
from seqloom.lab.rules import Budget, Ladder
from seqloom.runs.registry import task_config
from seqloom.runs.settings import RunConfig

RUNGS = (("eighth", 1 / 8), ("quarter", 1 / 4), ("half", 1 / 2))  # below the final run, ascending
_SEEDS = 2  # that have rungs which are trained from the beginning
_PACE = 0.75  # the time of a token goes with the size to this power, as measured on a CPU (docs/compare.md)
_WARMING = 0.2  # largest share of the smallest rung that warm-up takes
_LEAST_STEPS = 10  # of the smallest rung: two of them decay


def branched(ladder: Ladder | None) -> bool:
    """Whether the rungs are branched off the final runs, which then need another schedule than without a ladder."""
    return ladder == "budget"


def climbed(ladder: Ladder | None, seeds: int) -> int:
    """The number of seeds, of so many, that have rungs."""
    return seeds if branched(ladder) else min(_SEEDS, seeds)


def cost(ladder: Ladder | None, decay: float) -> float:
    """Training time of the rungs of one seed, in final runs."""
    shares = [share**_PACE if ladder == "size" else share for _, share in RUNGS]
    return sum(shares) * (decay if branched(ladder) else 1.0)


def scheduled(sized: Sized, budget: Budget) -> Sized:
    """The entry with a schedule that can be branched. Warm-up is the same number of steps for every rung."""
    if "train.schedule" in sized.pinned and sized.config.train.schedule != "stable":
        raise UserError(f"{sized.entry.name}: --ladder needs train.schedule=stable; leave the schedule out")
    steps = check_steps(sized, budget, RUNGS[0][1] * sized.budget(budget)["tokens"])
    warmup = min(sized.config.train.warmup, int(_WARMING * steps))
    train = changed(sized.config.train, schedule="stable", warmup=warmup)
    config = sized.config.model_copy(update={"train": train})
    return sized.with_config(config)


def check_steps(sized: Sized, budget: Budget, tokens: float) -> float:
    """Steps of the smallest rung, which trains on this many tokens; refused if they are too few."""
    steps = tokens / task_config(sized.config).tokens_per_step(sized.config.train.batch)
    if steps < _LEAST_STEPS:
        need = budget.amount * _LEAST_STEPS / max(steps, 1e-9)
        raise UserError(
            f"--ladder: with --budget {budget.kind}={budget.amount:g}, the smallest run is {steps:.0f} steps of "
            f"{sized.entry.name}; use at least {budget.kind}={need:.3g}"
        )
    return steps


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
