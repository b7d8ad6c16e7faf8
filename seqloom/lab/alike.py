"""Entries that compute the same: their costs are equal, so they are measured once.

A probe, SetFit and fine-tuning of the same weights end as one network with different numbers in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from seqloom.core.rows import Json
from seqloom.runs.run import Run


def alike(runs: Mapping[str, Run], training: bool = False) -> dict[str, str]:
    """By entry, the first one that computes the same: in prediction, or in a step of training."""
    first: dict[str, str] = {}
    return {name: first.setdefault(_computation(run, training), name) for name, run in runs.items()}


def _computation(run: Run, training: bool) -> str:
    """Architecture, adapters, task and tokenizer; in training also dropout, and what is frozen."""
    config = run.config
    model: Json = config.model if training else config.model | {"dropout": 0.0}
    settings = [model, config.lora.model_dump(), config.task, run.tokenizer.hash]
    return json.dumps([*settings, config.train.freeze if training else None], sort_keys=True)
