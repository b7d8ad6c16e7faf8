"""The complete settings of a run, as saved to JSON. Nothing here imports torch.

The sections `task`, `model`, `data` and `tokenizer` are dicts, because their options depend on the task and the model;
runs/registry.py validates them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import Field, field_validator, model_validator

from seqloom.core.config import Strict
from seqloom.core.rows import Json
from seqloom.train.settings import NO_ADAPTERS, LoraConfig, TrainConfig

Say = Callable[[str], None]

MOVED = {  # options that were renamed in version 0.2: old name, new name
    "task.tokenizer": "tokenizer.kind",
    "task.vocabulary": "tokenizer.vocabulary",
    "task.min_count": "tokenizer.min_count",
    "task.split": "tokenizer.split",
    "task.lower": "tokenizer.lower",
    "task.joint": "tokenizer.joint",
    "task.target_tokenizer": "tokenizer.target_kind",
    "task.target_vocabulary": "tokenizer.target_vocabulary",
}


# Options that may change when a run continues; any other change makes it a different run.
BUDGET = {"steps", "tokens", "epochs", "seconds", "clock", "minutes", "patience"}
FREE = BUDGET | {"evaluate_every", "save_every", "log_every", "keep", "keep_at", "threads", "tensorboard", "device"}


class RunConfig(Strict):
    task: Json = Field(description="name and options of the task")
    model: Json = Field(description="name and options of the model")
    data: Json = Field(description="source and format of the data")
    tokenizer: Json = Field(description="options of the tokenizer")
    train: TrainConfig
    lora: LoraConfig = NO_ADAPTERS

    @model_validator(mode="before")
    @classmethod
    def _understand_older_records(cls, values: object) -> object:
        """Accept run folders from before the tokenizer section existed, or before the layout of series was found from
        the file: what could be read line by line still is."""
        if isinstance(values, dict) and isinstance(data := values.get("data"), dict):
            old = data.get("layout") == "long" and "dayfirst" not in data
            values = values | {"data": data | {"layout": "auto"}} if old else values
        if not isinstance(values, dict) or not all(isinstance(options, dict) for options in values.values()):
            return values
        if "tokenizer" not in values and "task" in values:
            return {"tokenizer": {}} | move_options(values, lambda _: None)
        return values

    @field_validator("task", "model")
    @classmethod
    def _has_a_name(cls, section: Json) -> Json:
        if not isinstance(section.get("name"), str):
            raise ValueError("name is missing")
        return section


def move_options(sections: Mapping[str, Json], say: Say) -> dict[str, Json]:
    """The same settings with renamed options under their new names; reports each renamed one."""
    found = {name: dict(options) for name, options in sections.items()}
    for old, new in MOVED.items():
        (section, option), (place, name) = old.split("."), new.split(".")
        if option in found.get(section, {}):
            value = found[section].pop(option)
            found.setdefault(place, {}).setdefault(name, value)
            say(f"{old} is now {new}; the old name still works in this version")
    return found
