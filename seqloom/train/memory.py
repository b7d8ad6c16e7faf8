"""Memory and time: fail early if training cannot fit or end, and keep freed memory in the process."""

from __future__ import annotations

import ctypes
import math
import sys
from contextlib import suppress

import torch
from torch import nn

from seqloom.core.errors import RunError
from seqloom.core.memory import require
from seqloom.core.model import ModelConfig
from seqloom.core.network import SequenceModel
from seqloom.core.task import AnyTask, TaskConfig
from seqloom.train.settings import TrainConfig

_FLOPS = 2e11  # per second and thread: more than a core with AVX-512 reaches in float32
_TRAINING = 3  # forward and backward, in forward passes
_LONGEST = 60.0  # seconds of a training step at that speed; real ones take several times as long
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # mallopt parameters


def check_memory(
    blueprint: nn.Module,
    train: TrainConfig,
    task_config: TaskConfig,
    task: AnyTask,
    model: ModelConfig,
    tokens: int | None = None,
    way_out: str = "",
) -> None:
    """Raise if training cannot fit into the free memory. `blueprint`: the model on the meta device; `tokens`: of the
    training set, if it is known; `way_out`: what to lower, by default what the settings show.

    It is a lower bound: weights, gradients, optimiser state and what a checkpoint holds of them while it is written;
    frozen weights have neither. Of one micro-batch, the results of every matrix, and the outputs with their gradients.
    """
    parameters = sum(p.numel() for p in blueprint.parameters())
    trained = sum(p.numel() for p in blueprint.parameters() if p.requires_grad)
    copies, saved = (3, 2) if train.optimizer == "sgd" else (4, 3)
    read = _tokens(train, task_config, tokens) // train.accumulate
    weights = 4 * (parameters + trained * (copies - 1 + saved))
    batch = 4 * read * (3 * task.outputs + _results(blueprint))
    lower = way_out or _way_out(train, task_config, model, weights > batch)
    detail = f"{parameters / 1e6:.1f} M parameters, {read:,} tokens at once"
    require(weights + batch, "training", f"lower {lower}", detail)


def check_time(
    blueprint: SequenceModel,
    train: TrainConfig,
    task_config: TaskConfig,
    model: ModelConfig,
    tokens: int | None = None,
) -> float:
    """Seconds that a training step takes at least on CPU cores; raises if nobody would wait for them."""
    read = _tokens(train, task_config, tokens)
    length = min(task_config.tokens_per_row, read)
    work = _TRAINING * blueprint.flops(length) * read + (_muon(blueprint) if train.optimizer == "muon" else 0.0)
    seconds = work / (_FLOPS * torch.get_num_threads())
    if seconds > _LONGEST:
        lower = _way_out(train, task_config, model, weights=False)
        least = f"{math.ceil(seconds / 60):,} minutes or more on this machine"
        raise RunError(f"every training step would take {least} ({read:,} tokens); lower {lower}")
    return seconds


def _tokens(train: TrainConfig, task_config: TaskConfig, total: int | None) -> int:
    """Most that a training step reads."""
    rows = train.batch
    return task_config.tokens_per_step(rows) if total is None else max(1, task_config.tokens_of_step(rows, total))


def _results(blueprint: nn.Module) -> int:
    """Numbers that the matrices give for a token, at least."""
    return sum(min(p.shape) for p in _matrices(blueprint))


def _muon(blueprint: nn.Module) -> float:
    """Operations to make the updates of all matrices orthogonal (train/optimizers.py)."""
    sizes = [(min(p.shape), max(p.shape)) for p in _matrices(blueprint)]
    return sum(5.0 * (4 * short**2 * long + 2 * short**3) for short, long in sizes)


def _matrices(blueprint: nn.Module) -> list[nn.Parameter]:
    """Those that are no tables."""
    tables = {id(p) for part in blueprint.modules() if isinstance(part, nn.Embedding | nn.EmbeddingBag)
              for p in part.parameters()}  # fmt: skip
    return [p for p in blueprint.parameters() if p.dim() == 2 and id(p) not in tables]


def _way_out(train: TrainConfig, task_config: TaskConfig, model: ModelConfig, weights: bool) -> str:
    """The options to lower: those of the model for its weights, else those that make a step smaller."""
    size = task_config.tokens_per_step(train.batch)
    numbers = {name: value for name, value in task_config if isinstance(value, int) and value > 1}
    smaller = [f"task.{name} ({value:,})" for name, value in numbers.items()
               if task_config.model_copy(update={name: value // 2}).tokens_per_step(train.batch) < size]  # fmt: skip
    growth = {name: value / _usual(model, name) for name, value in model if isinstance(value, int)}
    raised = sorted((name for name, ratio in growth.items() if ratio > 1), key=lambda name: -growth[name])
    sizes = [f"model.{name} ({getattr(model, name):,})" for name in raised[:2] or model.knobs[:1]]
    return ", ".join(sizes if weights else [*smaller, f"train.batch ({train.batch:,})", *sizes]) + (
        "" if weights or train.accumulate >= train.batch else ", or raise train.accumulate"
    )


def _usual(model: ModelConfig, name: str) -> float:
    default = type(model).model_fields[name].default
    return max(default, 1.0) if isinstance(default, int | float) else math.inf


def keep_memory() -> None:
    """Keep freed memory in the process, for reuse by the next step.

    glibc returns large blocks to the system, and faulting them in again takes a tenth of a training step or more.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # not glibc
            libc = ctypes.CDLL("libc.so.6")
            libc.mallopt(_MMAP_THRESHOLD, 2**30)
            libc.mallopt(_TRIM_THRESHOLD, 2**31 - 1)
