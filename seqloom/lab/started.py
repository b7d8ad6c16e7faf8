"""Entries that start from another run, fine-tuned in full or in part: they have its size and its tokenizer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from seqloom.core.errors import UserError
from seqloom.lab.entries import Entry, Sized
from seqloom.lab.matching import TOLERANCE
from seqloom.runs.folder import RunFolder
from seqloom.runs.record import differences
from seqloom.runs.settings import RunConfig
from seqloom.tokenizers import Tokenizer


def tokenizer(entries: Sequence[Entry], configs: Sequence[RunConfig]) -> Tokenizer | None:
    """The tokenizer of the runs that all entries start from; None: they are trained from scratch. Refuses entries that
    could not be compared."""
    starts = [config.train.start for config in configs]
    if not any(starts):
        return None
    if None in starts:
        raise UserError(
            f"--models: {entries[starts.index(None)].name} is trained from scratch, others start from a run and its "
            "tokenizer; set train.start for all of them or for none"
        )
    for entry, config in zip(entries, configs, strict=True):
        if changed := differences({"task": configs[0].task}, {"task": config.task}):
            raise UserError(f"{entry.name}: {changed[0]} for {entries[0].name}; set it for all with -o")
    found = [Tokenizer.load(RunFolder(Path(str(start))).model_files()) for start in starts]
    if other := next((start for start, own in zip(starts, found, strict=True) if own.hash != found[0].hash), None):
        raise UserError(f"--models: {starts[0]} and {other} have different tokenizers, so their scores do not compare")
    return found[0]


def check_size(sized: Sized, target: int, parameters: int) -> None:
    if abs(parameters / target - 1) > TOLERANCE:
        raise UserError(
            f"{sized.entry.name}: {sized.config.train.start} has {parameters:,} parameters, another one {target:,}; "
            "compare models that start from runs of one size"
        )


def with_absolute_start(config: RunConfig) -> RunConfig:
    """Valid in any working directory."""
    start = config.train.start and os.path.abspath(config.train.start)
    return config.model_copy(update={"train": config.train.model_copy(update={"start": start})})
