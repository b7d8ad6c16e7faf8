"""What run.json and summary.json say of a run, and how two runs differ."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json
from seqloom.core.version import VERSION
from seqloom.runs.build import count_parameters
from seqloom.runs.settings import RunConfig
from seqloom.train.loop import Progress


def with_task(config: RunConfig, settings: Json) -> RunConfig:
    """With these options of the task, by path."""
    options = {path.removeprefix("task."): value for path, value in settings.items()}
    return config.model_copy(update={"task": config.task | options})


def plain(config: RunConfig) -> Json:
    """As written to run.json."""
    found: Json = json.loads(config.model_dump_json())
    return found


def versions() -> dict[str, str]:
    return {
        "seqloom": VERSION,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": f"{sys.platform} {platform.machine()}, {os.cpu_count()} cores",
    }


def summary(
    model: SequenceModel, tensors: Mapping[str, Tensor], size: tuple[int, int], progress: Progress, scores: Json
) -> Json:
    """`tensors`: the weights stored; `size`: bytes of their file, and of that with the weights they add to."""
    stored, borrowed = size
    return {
        "parameters": count_parameters(model),
        "trained_parameters": count_parameters(model, trained=True),
        "stored": sum(t.numel() for t in tensors.values()),  # a model that counts has no parameters
        "bytes": stored,
        "borrowed_bytes": borrowed,
        "seconds": round(progress.seconds, 3),
        "wall_seconds": round(progress.wall, 3),
        "steps": progress.step,
        "tokens": progress.tokens,
        "best_step": progress.best_step,
        "scores": scores,
    }


def differences(before: Json, now: Json) -> list[str]:
    """`train.steps=200 (was 100)` for every option that differs."""
    return [
        f"{section}.{option}={value!r} (was {before.get(section, {}).get(option)!r})"
        for section, options in now.items()
        for option, value in options.items()
        if before.get(section, {}).get(option) != value
    ]
