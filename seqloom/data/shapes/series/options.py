"""The options of the `data` section for numeric series."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator

from seqloom.data.options import DataOptions

_DIGITS = 9  # of the points per season


class Options(DataOptions):
    layout: Literal["auto", "long", "wide"] = Field(
        "auto", description="a line is one time step (long), or a whole series (wide); auto: found from the file"
    )
    time: str | None = Field(
        None,
        description="time column, or year,month,day,hour; line: none, lines are evenly spaced; default: found",
    )
    dayfirst: bool | None = Field(None, description="whether dates like 01/02/2020 begin with the day; default: found")
    series: str | None = Field(None, description="column that names the series of a line; default: found")
    targets: str | None = Field(None, description="columns to forecast: a,b; default: every numeric column")
    past: str = Field("", description="covariates known only up to now: a,b")
    known: str = Field("", description="covariates known in advance: a,b; future values on lines with empty targets")
    calendar: str = Field("", description="calendar features: hour,weekday,monthday,yearday,month; auto: by frequency")
    scale: Literal["standard", "robust", "none"] = Field("standard", description="scale by mean, by median, or not")
    season: int | str = Field(0, description="points per season, or several: 24,168; 0: found from the data; 1: none")
    split_by: Literal["time", "share"] = Field(
        "time", description="split all series at one time, or each by its length"
    )
    train_points: int = Field(0, ge=0, description="training points per series; 0: all that are left")
    valid_points: int = Field(0, ge=0, description="validation points per series; 0: valid_fraction")
    test_points: int = Field(0, ge=0, description="test points per series; 0: test_fraction")

    @field_validator("season", mode="before")
    @classmethod
    def _check_season(cls, given: Any) -> int | str:
        """One number, or several as `24,168`; the first is the one that MASE uses."""
        parts = given if isinstance(given, list | tuple) else str(given).split(",")
        texts = [str(part).strip() for part in parts]
        if not texts or not all(text.isdecimal() for text in texts) or (len(texts) > 1 and min(map(int, texts)) < 2):
            raise ValueError("give points per season: a number, or several like 24,168; 0: from the data; 1: none")
        if max(map(len, texts)) > _DIGITS:
            raise ValueError(f"a number of points per season has at most {_DIGITS} digits")
        return int(texts[0]) if len(texts) == 1 else ",".join(dict.fromkeys(str(int(text)) for text in texts))

    @property
    def seasons(self) -> list[int] | None:
        """Those given, without 1; None: to be found."""
        given = [int(part) for part in str(self.season).split(",")]
        return None if given == [0] else [points for points in given if points > 1]
