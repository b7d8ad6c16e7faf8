"""The options of the `data` section for numeric series."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from seqloom.data.options import DataOptions


class Options(DataOptions):
    layout: Literal["long", "wide"] = Field("long", description="a line is one time step, or a whole series")
    time: str | None = Field(None, description="time column; line: there is none, lines are evenly spaced")
    series: str | None = Field(None, description="column that names the series of a line")
    targets: str | None = Field(None, description="columns to forecast: a,b; default: every numeric column")
    past: str = Field("", description="covariates known only up to now: a,b")
    known: str = Field("", description="covariates known in advance: a,b; future values on lines with empty targets")
    calendar: str = Field("", description="calendar features: hour,weekday,monthday,yearday,month; auto: by frequency")
    scale: Literal["standard", "robust", "none"] = Field("standard", description="scale by mean, by median, or not")
    season: int = Field(0, ge=0, description="points per season; 0: by frequency; 1: no season")
    split_by: Literal["time", "share"] = Field(
        "time", description="split all series at one time, or each by its length"
    )
    train_points: int = Field(0, ge=0, description="training points per series; 0: all that are left")
    valid_points: int = Field(0, ge=0, description="validation points per series; 0: valid_fraction")
    test_points: int = Field(0, ge=0, description="test points per series; 0: test_fraction")
