"""Models from settings, without allocating their weights."""

from __future__ import annotations

import torch

from seqloom.core.network import SequenceModel
from seqloom.core.task import AnyTask
from seqloom.runs.registry import model_config
from seqloom.runs.settings import RunConfig


def blueprint(config: RunConfig, task: AnyTask) -> SequenceModel:
    """The model on the meta device, to count its weights before they are allocated."""
    with torch.device("meta"):
        return model_config(config).assemble(task)


def count_parameters(model: SequenceModel, trained: bool = False) -> int:
    """`trained`: only those that are not frozen."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad or not trained)
