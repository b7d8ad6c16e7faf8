"""The options of classification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from seqloom.core.batch import Keep
from seqloom.core.choice import Choice, Demand, Start
from seqloom.core.rows import Json
from seqloom.core.task import TaskConfig
from seqloom.decode.templates import find_template
from seqloom.tasks.classification import choices
from seqloom.tasks.classification.pooling import Rule


class Options(TaskConfig):
    input: Literal["text", "measurements"] = Field("text", description="what each row contains")
    longest: int = Field(256, ge=2, description="tokens or steps read per row; fit reports how many rows are longer")
    keep: Keep = Field("start", description="which end of a longer row to read; both: half from each")
    pooling: Rule = Field("mean", description="how outputs of all positions become one vector")
    head_dropout: float = Field(0.2, ge=0, lt=1, description="dropout on the pooled vector")
    word_dropout: float = Field(0.0, ge=0, lt=1, description="share of tokens read as <unk> in training")
    batch_tokens: int = Field(2048, ge=0, description="tokens per batch, padding included; 0: train.batch rows")
    weights: Literal["equal", "balanced"] = Field(
        "equal", description="of labels in the loss; balanced: rare ones count more"
    )
    smoothing: float = Field(0.0, ge=0, lt=1, description="label smoothing: probability spread over all labels")
    select: Literal["accuracy", "loss"] = Field(
        "accuracy", description="validation score that selects the checkpoint; the loss is less noisy on few rows"
    )
    calibrate: bool = Field(True, description="fit a temperature on the validation set after training")
    prompt: str = Field(
        "", description="train.method=prompt: the template, default or the path of a TOML file; empty: no prompt"
    )
    shots: int = Field(0, ge=0, description="train.method=prompt: labelled examples per label in the prompt")
    calibration: bool = Field(
        True, description="train.method=prompt: subtract the scores that labels get for an input without content"
    )
    validation: int = Field(2000, ge=1, description="rows of the validation set to score during training")
    scored: int = Field(0, ge=0, description="rows of each split to score at the end; 0: all")

    defaults: ClassVar[Json] = {"train.batch": 32, "train.optimizer": "adamw", "train.rate": 2e-3}
    own = frozenset({"prompt", "shots", "calibration"})
    shared: ClassVar[Json] = {"task.validation": 1000, "task.scored": 5000}
    shapes = ("labelled", "frames")
    whole = True

    @classmethod
    def shape(cls, options: Mapping[str, object]) -> str:
        return "frames" if options.get("input") == "measurements" else "labelled"

    @classmethod
    def reading(cls, shape: str) -> Json:
        return {"input": "measurements"} if shape == "frames" else {}

    @classmethod
    def choose(cls, train: Any, given: Mapping[str, Any]) -> list[Choice]:
        return choices.choose(train, given)

    @classmethod
    def demand(cls, train: Any, settings: Mapping[str, Any]) -> Demand:
        return choices.demand(train, settings)

    @classmethod
    def tune(cls, start: Start, train: Any, settings: Mapping[str, Any]) -> list[Choice]:
        return choices.tune(start, train, settings)

    @property
    def tokens_per_row(self) -> int:
        return self.longest

    def tokens_per_step(self, rows: int) -> int:
        return self.batch_tokens or rows * self.longest

    @field_validator("prompt")
    @classmethod
    def _read_template(cls, given: str) -> str:
        """The content takes the place of the path, so that a run does not depend on the file."""
        return given and find_template(given).model_dump_json()

    @property
    def next_token(self) -> bool:
        return bool(self.prompt)
