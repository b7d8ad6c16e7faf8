"""What run.json says of a run, and how two of them differ."""

from __future__ import annotations

import json
import os
import platform
import sys

import numpy as np
import torch

from seqloom.core.rows import Json
from seqloom.core.version import VERSION
from seqloom.runs.settings import RunConfig


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


def differences(before: Json, now: Json) -> list[str]:
    """`train.steps=200 (was 100)` for every option that differs."""
    return [
        f"{section}.{option}={value!r} (was {before.get(section, {}).get(option)!r})"
        for section, options in now.items()
        for option, value in options.items()
        if before.get(section, {}).get(option) != value
    ]
