"""What may be asked for, and the command it stands for: a closed list of fields, never an option or a path."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from seqloom.core.rows import Json
from seqloom.data.samples import SAMPLES
from seqloom.runs.registry import names

RUN = "run"  # the folder of the result, in that of the job
BUDGETS = {"steps": 10**9, "tokens": 10**12, "bytes": 10**12, "seconds": 10**7, "minutes": 10**5}  # and the most
_OF_FIT = {"steps", "tokens", "seconds", "minutes"}
_OF_COMPARE = {"tokens", "bytes", "seconds", "minutes"}
_AMOUNT = re.compile(r"([a-z]+)=([0-9]{1,12}(?:\.[0-9]{1,6})?)([kMG]?)")
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}

Data = Annotated[str, StringConstraints(pattern=r"^(upload:[0-9a-f]{32}|sample:[a-z0-9_-]{1,40})$")]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]{1,40}$")]
Amount = Annotated[str, StringConstraints(pattern=r"^[a-z]{1,10}=[0-9.]{1,20}[kMG]?$")]
Params = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,11}(\.[0-9]{1,3})?[kM]?$")]
Role = Annotated[str, StringConstraints(pattern=r"^[a-z_]{1,20}$")]
Column = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Key = Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{1,100}$")]


class Order(BaseModel):
    """What to train: `fit` one model, or `compare` several."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    kind: Literal["fit", "compare"]
    data: Data = Field(description="upload:ID or sample:NAME")
    task: Name | None = Field(None, description="of compare the default is guessed from the data")
    model: Name | None = Field(None, description="of fit")
    models: list[Name] | None = Field(None, max_length=12, description="of compare; default: those that suit the task")
    budget: Amount | None = Field(None, description="steps, tokens, bytes, seconds or minutes, such as minutes=5")
    params: Params | None = Field(None, description="of compare: parameters of every model, such as 800k")
    trials: int | None = Field(None, ge=0, le=50, description="of compare: tuning trials per model")
    seeds: int | None = Field(None, ge=1, le=50, description="of compare: final runs per model")
    seed: int | None = Field(None, ge=0, lt=2**31, description="of the random numbers")
    columns: dict[Role, Column] | None = Field(None, max_length=20, description="which column is what")
    key: Key | None = Field(None, description="the same key again is the same job, not a second one")

    @field_validator("data")
    @classmethod
    def _is_known(cls, data: str) -> str:
        check_data(data)
        return data

    @model_validator(mode="after")
    def _fits_together(self) -> Order:
        others = {"fit": ("models", "params", "trials", "seeds"), "compare": ("model",)}[self.kind]
        if strange := [name for name in others if getattr(self, name) is not None]:
            raise ValueError(f"{strange[0]}: does not go with {self.kind}")
        if self.kind == "fit" and self.model is None:
            raise ValueError("model: is needed to fit one")
        if self.kind == "fit" and self.task is None:
            raise ValueError("task: is needed to fit a model; POST /api/jobs/look says which suits the data")
        check_task(self.task)
        if not {*(self.models or ()), *([self.model] if self.model else ())} <= set(names("models")):
            raise ValueError("model: unknown; GET /api/jobs/choices lists them")
        if self.models is not None and len(set(self.models)) != len(self.models):
            raise ValueError("models: one is named twice")
        if self.budget:
            self._spent()
        return self

    @property
    def upload(self) -> str | None:
        """The id of the upload that is trained on."""
        return self.data.removeprefix("upload:") if self.data.startswith("upload:") else None

    def command(self, data: str) -> list[str]:
        """The words after `seqloom`; `data`: the path of the upload, or sample:NAME. Every value is in one word with
        its option, so none can be taken for an option itself."""
        words = [self.kind, f"--data={data}", f"--out={RUN}", "--json"]
        words += [f"--task={self.task}"] if self.task else []
        words += [f"--columns={role}={column}" for role, column in (self.columns or {}).items()]
        return words + (self._fit() if self.kind == "fit" else self._compare())

    def _fit(self) -> list[str]:
        words = [f"--model={self.model}"]
        words += ["-o", f"train.{self._spent()}"] if self.budget else []
        return words + (["-o", f"train.seed={self.seed}"] if self.seed is not None else [])

    def _compare(self) -> list[str]:
        words = [f"--models={','.join(self.models)}"] if self.models else []
        words += [f"--budget={self._spent()}"] if self.budget else []
        given = {"params": self.params, "trials": self.trials, "seeds": self.seeds, "seed": self.seed}
        return words + [f"--{name}={value}" for name, value in given.items() if value is not None]

    def _spent(self) -> str:
        """The budget as a name and a plain number; ValueError says what is wrong with it."""
        found, allowed = _AMOUNT.fullmatch(self.budget or ""), _OF_FIT if self.kind == "fit" else _OF_COMPARE
        if not found or found[1] not in allowed:
            raise ValueError(
                f"budget: for {self.kind} write {', '.join(sorted(allowed))} and a number, as in minutes=5"
            )
        amount = float(found[2]) * _UNITS[found[3]]
        whole = found[1] in ("steps", "tokens", "bytes")
        if not 0 < amount <= BUDGETS[found[1]] or (whole and amount != int(amount)):
            what = "a whole number" if whole else "more than 0"
            raise ValueError(f"budget: {found[1]} must be {what}, at most {BUDGETS[found[1]]:,}")
        return f"{found[1]}={int(amount) if amount == int(amount) else amount}"


def check_data(data: str) -> None:
    """ValueError if it is a sample that there is not."""
    kind, _, name = data.partition(":")
    if kind == "sample" and name not in SAMPLES:
        raise ValueError("data: no sample of this name; GET /api/jobs/choices lists them")


def check_task(task: str | None) -> None:
    if task is not None and task not in names("tasks"):
        raise ValueError("task: unknown; GET /api/jobs/choices lists them")


def told(order: Order) -> Json:
    """As JSON, without what was not given."""
    return {name: value for name, value in order.model_dump().items() if value is not None and name != "key"}
