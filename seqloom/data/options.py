"""Where data comes from and how it is split: the options of the `data` section common to all shapes of data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from seqloom.core.config import Strict
from seqloom.core.quoting import quoted
from seqloom.data.encodings import find_codec
from seqloom.data.role_names import flag


class DataOptions(Strict):
    """Each shape of data adds its own, such as the roles of columns."""

    model_config = ConfigDict(coerce_numbers_to_str=True)  # a column may be given by number

    roles: ClassVar[Mapping[str, str]] = {}  # role of a column, as the user names it: its option; all have to differ

    train: str = Field(min_length=1, description="file, folder or sample:NAME to train on")
    valid: str | None = Field(
        None, min_length=1, description="file, folder or sample:NAME to validate on; default: a share of train"
    )
    test: str | None = Field(
        None, min_length=1, description="file, folder or sample:NAME to test on; default: a share of train"
    )
    valid_fraction: float = Field(0.1, ge=0, lt=1, description="share of train held out if valid is not given")
    test_fraction: float = Field(0.0, ge=0, lt=1, description="share of train held out if test is not given")
    examples: int | float = Field(
        0,
        ge=0,
        description="train on this many randomly drawn rows only; below 1: on this share of the training set (random "
        "stretches of a text, the latest points of series); 0: all",
    )
    encoding: str | None = Field(
        None, description="encoding of the files, such as gb18030; default: UTF-8, or that of the byte order mark"
    )
    draw: int = Field(0, ge=0, description="random seed for drawing examples")

    @field_validator("examples")
    @classmethod
    def _is_a_number_or_a_share(cls, amount: int | float) -> int | float:
        if amount > 1 and amount != int(amount):
            raise ValueError("give a whole number of rows, or a share below 1")
        return amount if 0 < amount < 1 else int(amount)

    @field_validator("encoding")
    @classmethod
    def _is_an_encoding(cls, name: str | None) -> str | None:
        if name is not None:
            find_codec(name)
        return name

    @model_validator(mode="after")
    def _leave_something_to_learn_from(self) -> Self:
        if self.valid_fraction + self.test_fraction >= 1:
            raise ValueError("valid_fraction and test_fraction together leave nothing to train on")
        return self

    @model_validator(mode="after")
    def _give_each_column_one_role(self) -> Self:
        taken: dict[str, str] = {}
        for role, option in self.roles.items():
            name = getattr(self, option)
            name = str(int(name)) if name is not None and name.isdecimal() else name
            if name is not None and (first := taken.setdefault(name, role)) != role:
                raise ValueError(f"{first} and {role} are both column {quoted(name)}; choose another: {flag(role)}")
        return self

    @property
    def held_out(self) -> dict[str, str]:
        """The held-out sets that have files of their own."""
        return {name: spec for name, spec in (("valid", self.valid), ("test", self.test)) if spec}
