"""The complete configuration of a run, from what the user said."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator

from seqloom.core.config import Strict
from seqloom.data.options import DataConfig
from seqloom.train.settings import TrainConfig


class RunConfig(Strict):
    """The complete configuration of a run, to JSON and back."""

    task: dict[str, Any] = Field(description="name of the task, and its options")
    model: dict[str, Any] = Field(description="name of the model, and its options")
    data: DataConfig
    train: TrainConfig

    @field_validator("task", "model")
    @classmethod
    def _has_a_name(cls, section: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(section.get("name"), str):
            raise ValueError("a name is needed")
        return section
