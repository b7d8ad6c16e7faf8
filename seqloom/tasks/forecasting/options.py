"""Options of the forecasting task, which of them exclude each other, and what follows from them."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.core.task import TaskConfig
from seqloom.tasks.forecasting.windows import WindowScale


class ForecastOptions(TaskConfig):
    horizon: int = Field(24, ge=1, description="number of points to forecast")
    context: int = Field(96, ge=1, description="number of past points that a forecast is based on")
    strategy: Literal["recursive", "direct", "combined"] = Field(
        "direct", description="one step at a time, fed back; all steps at once; or a block of steps at a time, fed back"
    )
    block: int = Field(8, ge=1, description="combined: steps per block")
    direct: Literal["head", "steps"] = Field(
        "head", description="direct: from one vector after the history, or at one empty position per step"
    )
    training: Literal["forced", "free", "mixed"] = Field(
        "forced",
        description="future inputs in training: ground truth (teacher forcing), the model's own predictions, or a mix",
    )
    share: float = Field(0.5, gt=0, le=1, description="mixed: share of the model's own predictions")
    asked: Literal["auto", "all", "full"] = Field(
        "auto",
        description="positions with targets: all, or those with the full history behind them; auto: all where possible",
    )
    output: Literal["point", "quantiles", "gauss", "student", "bins"] = Field(
        "point", description="output distribution"
    )
    bins: int = Field(64, ge=2, description="bins: number of intervals, equally likely under a normal distribution")
    error: Literal["squared", "absolute"] = Field("squared", description="point: the error to minimise")
    levels: list[float] = Field([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95], description="quantile levels, ascending")
    intervals: Literal["plain", "conformal"] = Field(
        "plain", description="errors or quantiles as they are, or calibrated on the validation set (conformal)"
    )
    paths: int = Field(100, ge=2, description="recursive, combined: sample paths that intervals are estimated from")
    window_scale: WindowScale = Field(
        "none", description="normalise each window: subtract its last value, or standardise it; undone in forecasts"
    )
    channels: Literal["joint", "apart"] = Field(
        "joint", description="all targets in one vector, or each as a separate series through one shared model"
    )
    flags: bool | None = Field(None, description="inputs that flag missing values; none: if training data has gaps")
    stride: int = Field(1, ge=1, description="points between two scored origins")
    metric: Literal["mse", "mae", "smape", "mase"] = Field("mse", description="metric that runs are judged by")
    validation: int = Field(500, ge=1, description="validation windows scored during training")
    scored: int = Field(0, ge=0, description="windows of each part scored at the end; 0: all")
    drawn: int = Field(200, ge=0, description="windows of each part with intervals from sample paths; 0: all")

    shapes = ("series",)
    defaults: ClassVar[Json] = {"train.batch": 32, "train.optimizer": "adamw", "train.rate": 1e-3}
    shared: ClassVar[Json] = {"task.validation": 300, "task.scored": 1000}
    probes: ClassVar[tuple[Json, ...]] = tuple(
        {"horizon": 6, "context": 12, "window_scale": scale, "channels": channels} | how
        for how in ({"strategy": "recursive"}, {}, {"direct": "steps"}, {"strategy": "combined", "block": 4})
        for scale, channels in (("none", "joint"), ("last", "apart"), ("standard", "joint"))
    )
    whole = True

    @model_validator(mode="after")
    def _check(self) -> ForecastOptions:
        if not self.levels or self.levels != sorted(set(self.levels)) or not all(0 < n < 1 for n in self.levels):
            raise ValueError(f"levels={self.levels} must ascend between 0 and 1, with at least one level")
        if self.output == "quantiles" and not self.levels[0] <= 0.5 <= self.levels[-1]:
            raise ValueError(f"levels={self.levels} must enclose 0.5, the quantile used as point forecast")
        if self.strategy == "combined" and self.block > self.horizon:
            raise ValueError(f"block={self.block} is longer than horizon={self.horizon}")
        if self.asked == "all" and self.window_scale != "none":
            raise ValueError("asked=all would scale positions by later values; set window_scale=none or asked=full")
        if self.asked == "all" and self.blank:
            raise ValueError("asked=all: with direct=steps only future positions have targets; set asked=full")
        if self.training != "forced" and self.strategy == "direct":
            raise ValueError(
                f"training={self.training} needs a strategy that reads its own forecasts, and direct does not; "
                "set training=forced"
            )
        return self

    @property
    def blank(self) -> bool:
        return self.strategy == "direct" and self.direct == "steps"

    @property
    def by_head(self) -> bool:
        return self.strategy == "direct" and self.direct == "head"

    @property
    def size(self) -> int:
        """Points that each position predicts."""
        return {"recursive": 1, "combined": self.block, "direct": 1 if self.blank else self.horizon}[self.strategy]

    @property
    def tokens_per_row(self) -> int:
        return self.context + (-(-self.horizon // self.size) - 1) * self.size

    @property
    def dense(self) -> bool:
        """Whether every position of the history has targets, and not only its end."""
        return self.asked == "all" or (
            self.asked == "auto" and self.window_scale == "none" and self.strategy != "direct"
        )


def check_columns(c: ForecastOptions, scale: Any) -> None:
    if c.output == "bins" and scale.method == "none":
        raise UserError("task.output=bins: the intervals assume scaled values; set data.scale=standard or robust")
    columns = [name + end for name in scale.targets for end in ("", "_actual", *(f"_{level:g}" for level in c.levels))]
    if twice := [name for name in columns if columns.count(name) > 1]:
        raise UserError(f"two columns of the forecasts would be named {twice[0]!r}; rename a column of the data")
