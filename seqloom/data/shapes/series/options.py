"""The options of the `data` section for numeric series."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from seqloom.data.options import DataOptions


class Options(DataOptions):
    layout: Literal["long", "wide"] = Field("long", description="a line is one time step, or a whole series")
    time: str | None = Field(None, description="column with the time; line: there is none, lines are evenly spaced")
    series: str | None = Field(None, description="column that names the series a line belongs to")
    targets: str | None = Field(None, description="columns to forecast, a,b; else every column of numbers")
    past: str = Field("", description="covariates known only up to now: columns a,b")
    known: str = Field("", description="covariates known ahead: columns a,b; also in lines with empty targets")
    calendar: str = Field("", description="inputs from the time: hour,weekday,monthday,yearday,month; auto: what suits")
    scale: Literal["standard", "robust", "none"] = Field("standard", description="scale by mean, by median, or not")
    season: int = Field(0, ge=0, description="points of a season; 0: by frequency; 1: there is none")
    split_by: Literal["time", "share"] = Field("time", description="cut all series at one time, or each by its share")
    train_points: int = Field(0, ge=0, description="first points to train on; 0: all that are left")
    valid_points: int = Field(0, ge=0, description="points to validate on; 0: valid_fraction")
    test_points: int = Field(0, ge=0, description="points to test on; 0: test_fraction")
