"""Models from settings, without allocating their weights."""

from __future__ import annotations

import torch

from seqloom.core.network import SequenceModel
from seqloom.core.task import AnyTask
from seqloom.runs import methods
from seqloom.runs.registry import model_config, task_config
from seqloom.runs.settings import RunConfig
from seqloom.train.memory import check_memory, check_time
from seqloom.train.pace import told_time

_LONG_STEP = 10.0  # seconds, after which a person wonders


def blueprint(config: RunConfig, task: AnyTask) -> SequenceModel:
    """The model on the meta device, to count its weights before they are allocated."""
    with torch.device("meta"):
        return model_config(config).assemble(task)


def check_size(config: RunConfig, plan: SequenceModel, task: AnyTask, tokens: int, device: str) -> str:
    """Refuse what this machine cannot do, before it is allocated; what a user should know otherwise, if anything.

    `plan`: the blueprint; `tokens`: of the training set.
    """
    model, settings = model_config(config), task_config(config)
    check_memory(plan, config.train, settings, task, model, tokens)
    if device != "cpu" or not (plan.descends and methods.descends(config)):
        return ""
    seconds = check_time(plan, config.train, settings, model, tokens)
    return f"every training step takes {told_time(seconds)} or more on this machine" if seconds > _LONG_STEP else ""


def count_parameters(model: SequenceModel, trained: bool = False) -> int:
    """`trained`: only those that are not frozen."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad or not trained)
