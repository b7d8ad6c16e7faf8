"""Memory: fail early if training cannot fit, and keep freed memory in the process."""

from __future__ import annotations

import ctypes
import resource
import sys
from contextlib import suppress
from pathlib import Path

from torch import nn

from seqloom.core.errors import RunError
from seqloom.core.task import AnyTask, TaskConfig
from seqloom.train.settings import TrainConfig

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # mallopt parameters


def check_memory(
    blueprint: nn.Module,
    train: TrainConfig,
    task_config: TaskConfig,
    task: AnyTask,
    way_out: str = "lower model.width, model.depth or train.batch, or raise train.accumulate",
) -> None:
    """Raise if weights, gradients, optimiser state and the outputs of one micro-batch exceed the free memory; frozen
    weights have neither gradients nor optimiser state."""
    parameters = sum(p.numel() for p in blueprint.parameters())
    trained = sum(p.numel() for p in blueprint.parameters() if p.requires_grad)
    copies = 3 if train.optimizer == "sgd" else 4
    tokens = task_config.tokens_per_step(train.batch) // train.accumulate
    need = 4 * (parameters + trained * (copies - 1) + 3 * tokens * task.outputs)
    room = available()
    if room is not None and need > room:
        raise RunError(
            f"training needs about {need / 1e9:.1f} GB ({parameters / 1e6:.1f} M parameters), but only "
            f"{room / 1e9:.1f} GB are available; {way_out}"
        )


def keep_memory() -> None:
    """Keep freed memory in the process, for reuse by the next step.

    glibc returns large blocks to the system, and faulting them in again takes a tenth of a training step or more.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # not glibc
            libc = ctypes.CDLL("libc.so.6")
            libc.mallopt(_MMAP_THRESHOLD, 2**30)
            libc.mallopt(_TRIM_THRESHOLD, 2**31 - 1)


def available() -> int | None:
    """Bytes this process can still allocate; None if unknown."""
    rooms = []
    meminfo, status = Path("/proc/meminfo"), Path("/proc/self/status")
    if meminfo.exists():
        rooms.append(_kilobytes(meminfo, "MemAvailable:"))
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY and status.exists():
        rooms.append(soft - _kilobytes(status, "VmSize:"))
    return min(rooms, default=None)


def _kilobytes(path: Path, key: str) -> int:
    line = next(line for line in path.read_text().splitlines() if line.startswith(key))
    return int(line.split()[1]) * 1024
