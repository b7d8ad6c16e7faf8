"""Where the data comes from and how it is split."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field, model_validator

from seqloom.core.config import Strict


class DataConfig(Strict):
    """Where the data comes from and how it is split."""

    model_config = ConfigDict(coerce_numbers_to_str=True)  # a column may be a number

    train: str = Field(min_length=1, description="file, folder or sample:NAME to learn from")
    valid: str | None = Field(None, description="file, folder or sample:NAME to validate on; else a part of train")
    test: str | None = Field(None, description="file, folder or sample:NAME to test on; else a part of train")
    column: str = Field("text", min_length=1, description="column with the text, in JSONL and CSV files")
    source: str = Field("source", min_length=1, description="pairs: column of what is given; a number: no header")
    target: str = Field("target", min_length=1, description="pairs: column of what is wanted; a number: no header")
    label: str = Field("label", min_length=1, description="labelled: column of the label; a number: no header")
    second: str | None = Field(None, description="labelled: column of a second text, read after the first")
    separator: str | None = Field(None, description="labelled: rows have several labels, with this between them")
    row: str = Field("id", min_length=1, description="measurements in a table: column that says which sequence it is")
    word: int = Field(1, description="CoNLL columns: that of the words; from 1, or from the end: -1 is the last")
    tag: int = Field(-1, description="CoNLL columns: that of the tags")
    layout: Literal["long", "wide"] = Field("long", description="series: a line is one time step, or a whole series")
    time: str | None = Field(None, description="series: column that says when; line: none, lines follow evenly")
    series: str | None = Field(None, description="series: column that says which series a line belongs to")
    targets: str | None = Field(None, description="series: what is forecast, a,b; else every column of numbers")
    past: str = Field("", description="series: columns that are known only up to now, a,b")
    known: str = Field("", description="series: columns that are known ahead, a,b; in lines with empty targets too")
    calendar: str = Field("", description="series: hour,weekday,monthday,yearday,month as inputs; auto: what suits")
    scale: Literal["standard", "robust", "none"] = Field("standard", description="series: by mean or by median")
    season: int = Field(0, ge=0, description="series: points of a season; 0: by frequency; 1: there is none")
    split_by: Literal["time", "share"] = Field("time", description="series: cut at one moment, or each in its own time")
    train_points: int = Field(0, ge=0, description="series: first points to train on; 0: all that is left")
    valid_points: int = Field(0, ge=0, description="series: points to validate on; 0: valid_fraction")
    test_points: int = Field(0, ge=0, description="series: points to test on; 0: test_fraction")
    valid_fraction: float = Field(0.1, ge=0, lt=1, description="part of train set aside when valid is not given")
    test_fraction: float = Field(0.0, ge=0, lt=1, description="part of train set aside when test is not given")
    examples: int = Field(0, ge=0, description="learn from so many rows only, drawn from the training part; 0: all")
    draw: int = Field(0, ge=0, description="which rows are drawn: another number, others")

    @model_validator(mode="after")
    def _leave_something_to_learn_from(self) -> DataConfig:
        if self.valid_fraction + self.test_fraction >= 1:
            raise ValueError("valid_fraction and test_fraction together leave nothing to train on")
        return self
