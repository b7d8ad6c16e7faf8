"""How a run learns (`train.method`): by gradient descent, by solving its output layer on a frozen encoder (probe), by
tuning the encoder first (setfit), or not at all: a language model is given a prompt (prompt)."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from seqloom.core.choice import Choice
from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Rows
from seqloom.core.task import AnyTask
from seqloom.runs.settings import RunConfig
from seqloom.train.clock import Clock
from seqloom.train.loop import Progress
from seqloom.train.transfer import freeze


@runtime_checkable
class ProbedTask(Protocol):
    """A task whose output layer can be solved on a frozen encoder."""

    def solve_head(self, model: SequenceModel, rows: Any) -> int:
        """Fit it to all rows; returns the tokens read."""

    def contrast(self) -> AnyTask:
        """The objective that tunes the encoder before."""


def descends(config: RunConfig) -> bool:
    """Whether this way of learning has gradient descent in it."""
    return config.train.method in ("descent", "setfit")


@runtime_checkable
class PromptedTask(Protocol):
    """A task that a language model does when it is given a prompt."""

    def draw_prompt(self, model: SequenceModel, rows: Any, seed: int) -> int:
        """Prepare the prompt with examples from these rows; returns the tokens read."""


@runtime_checkable
class SettledTask(Protocol):
    """A task that calibrates something on the validation set after training, in addition to the weights; it returns
    those of its own settings that it chose there."""

    def settle(self, model: SequenceModel, valid: Any) -> list[Choice]: ...


def check(config: RunConfig) -> None:
    """Refuse settings that do not go together, before any data is read."""
    method, prompt, start = config.train.method, config.task.get("prompt"), config.train.start
    if prompt and method != "prompt":
        raise UserError(f"task.prompt: train.method={method} has no prompt; set train.method=prompt, or leave it out")
    if method == "descent":
        return
    if config.lora.rank:
        raise UserError(f"train.method={method}: does not combine with adapters; leave out lora.rank or train.method")
    if method == "prompt" and "prompt" in config.task:
        if not start:
            raise UserError("train.method=prompt: needs a language model; set --from, such as --from weights:smollm2")
        if not prompt:
            raise UserError(
                "train.method=prompt: needs a template; set task.prompt=default, or the path of a TOML file"
            )


def check_head(config: RunConfig, same: bool) -> None:
    """`same`: the run starts from the output layer of one that predicts the same."""
    if config.train.method == "prompt" and not same:
        raise UserError(
            f"train.method=prompt: {config.train.start} does not predict the next token; start from a language model, "
            "such as weights:smollm2"
        )


def objective(config: RunConfig, model: SequenceModel, task: AnyTask) -> AnyTask | None:
    """What gradient descent is to minimise; None: nothing, the output layer alone is solved."""
    method = config.train.method
    if method == "descent":
        return task
    if not isinstance(task, PromptedTask if method == "prompt" else ProbedTask):
        raise UserError(f"train.method={method}: {task.name} does not support it; classification does")
    if not model.descends:
        raise UserError(f"train.method={method}: {config.model['name']} has no encoder; leave it out")
    if method == "prompt":
        return None
    if method == "probe":
        freeze(model, len(model.stages()) - 1)
        return None
    return task.contrast()


def solve(config: RunConfig, model: SequenceModel, task: Any, train: Rows, progress: Progress) -> None:
    """Solve the output layer, or prepare the prompt, and count what that takes."""
    clock = Clock(config.train.clock, model.device.type)
    prompted = config.train.method == "prompt"
    progress.tokens += task.draw_prompt(model, train, config.train.seed) if prompted else task.solve_head(model, train)
    spent = clock.lap()
    progress.seconds += spent.seconds
    progress.wall += spent.wall
