"""The complete settings of a run, to JSON and back. Nothing here loads torch.

The sections `task`, `model`, `data` and `tokenizer` are dicts, because their options depend on which task and model it
is; runs/registry.py makes checked objects of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import Field, field_validator, model_validator

from seqloom.core.config import Strict
from seqloom.core.rows import Json
from seqloom.train.settings import TrainConfig

Say = Callable[[str], None]

MOVED = {  # options that stood elsewhere before version 0.2, and where they stand now
    "task.tokenizer": "tokenizer.kind",
    "task.vocabulary": "tokenizer.vocabulary",
    "task.min_count": "tokenizer.min_count",
    "task.split": "tokenizer.split",
    "task.lower": "tokenizer.lower",
    "task.joint": "tokenizer.joint",
    "task.target_tokenizer": "tokenizer.target_kind",
    "task.target_vocabulary": "tokenizer.target_vocabulary",
}


class RunConfig(Strict):
    task: Json = Field(description="name of the task, and its options")
    model: Json = Field(description="name of the model, and its options")
    data: Json = Field(description="where the data comes from and how it is read")
    tokenizer: Json = Field(description="what a token is")
    train: TrainConfig

    @model_validator(mode="before")
    @classmethod
    def _understand_older_records(cls, values: object) -> object:
        """Run folders written before there was a tokenizer section."""
        if isinstance(values, dict) and "tokenizer" not in values and isinstance(values.get("task"), dict):
            return {"tokenizer": {}} | move_options(values, lambda _: None)
        return values

    @field_validator("task", "model")
    @classmethod
    def _has_a_name(cls, section: Json) -> Json:
        if not isinstance(section.get("name"), str):
            raise ValueError("a name is needed")
        return section


def move_options(sections: Mapping[str, Json], say: Say) -> dict[str, Json]:
    """The same settings with every option where it stands now; says once where it moved."""
    found = {name: dict(options) for name, options in sections.items()}
    for old, new in MOVED.items():
        (section, option), (place, name) = old.split("."), new.split(".")
        if option in found.get(section, {}):
            value = found[section].pop(option)
            found.setdefault(place, {}).setdefault(name, value)
            say(f"{old} is now {new}; the old spelling still works in this version")
    return found
