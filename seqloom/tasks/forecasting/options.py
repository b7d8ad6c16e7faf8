"""What can be chosen of a forecast: how its steps come about, what is said of them, how they are judged; what goes
together, and what follows."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from seqloom.core.rows import Json
from seqloom.core.task import TaskConfig
from seqloom.tasks.forecasting.windows import WindowScale


class ForecastOptions(TaskConfig):
    horizon: int = Field(24, ge=1, description="points that are forecast")
    context: int = Field(96, ge=1, description="points of history that a forecast is made from")
    strategy: Literal["recursive", "direct", "combined"] = Field(
        "direct", description="one step, read before the next; all steps at once; a block at once, read before the next"
    )
    block: int = Field(8, ge=1, description="combined: steps at once")
    direct: Literal["head", "steps"] = Field(
        "head", description="direct: from one vector after the history; or at one empty position for each step"
    )
    training: Literal["forced", "free", "mixed"] = Field(
        "forced", description="what is read of the future while learning: what came; what was said; both by turns"
    )
    share: float = Field(0.5, gt=0, le=1, description="mixed: share of what was said")
    asked: Literal["auto", "all", "full"] = Field(
        "auto",
        description="which positions learn: all, or those with the whole history behind them; auto: all if they can",
    )
    output: Literal["point", "quantiles", "gauss", "student", "bins"] = Field(
        "point", description="what is said of a value"
    )
    bins: int = Field(64, ge=2, description="bins: intervals, with equal shares of a normal distribution each")
    error: Literal["squared", "absolute"] = Field("squared", description="point: the error that is made small")
    levels: list[float] = Field(
        [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95], description="levels of the quantiles, ascending"
    )
    paths: int = Field(100, ge=2, description="recursive, combined: paths that intervals are drawn from")
    window_scale: WindowScale = Field(
        "none", description="each window: minus its last value, or in deviations from its mean; undone afterwards"
    )
    channels: Literal["joint", "apart"] = Field(
        "joint", description="all targets in one vector, or each as a series of its own through one model"
    )
    flags: bool | None = Field(None, description="tell which values are there; none: if training data has gaps")
    stride: int = Field(1, ge=1, description="points between two origins that are scored")
    metric: Literal["mse", "mae", "smape", "mase"] = Field("mse", description="what runs are judged by")
    validation: int = Field(500, ge=1, description="windows of the validation part scored while training")
    scored: int = Field(0, ge=0, description="windows of each part that are scored at the end; 0: all")
    drawn: int = Field(200, ge=0, description="windows of each part whose intervals are drawn by paths; 0: all")

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
            raise ValueError(f"levels={self.levels} must ascend between 0 and 1, one at least")
        if self.output == "quantiles" and not self.levels[0] <= 0.5 <= self.levels[-1]:
            raise ValueError(f"levels={self.levels}: the guess is the quantile at 0.5, which must lie between them")
        if self.strategy == "combined" and self.block > self.horizon:
            raise ValueError(f"block={self.block} is longer than horizon={self.horizon}")
        if self.asked == "all" and self.window_scale != "none":
            raise ValueError(
                "asked=all would scale early positions by what came later; window_scale=none, or asked=full"
            )
        if self.asked == "all" and self.blank:
            raise ValueError("asked=all: with direct=steps only the future has positions to ask")
        if self.training != "forced" and self.strategy == "direct":
            raise ValueError(f"training={self.training} is for strategies that read what they said; direct does not")
        return self

    @property
    def blank(self) -> bool:
        return self.strategy == "direct" and self.direct == "steps"

    @property
    def by_head(self) -> bool:
        return self.strategy == "direct" and self.direct == "head"

    @property
    def size(self) -> int:
        """Points that every position is asked for."""
        return {"recursive": 1, "combined": self.block, "direct": 1 if self.blank else self.horizon}[self.strategy]

    @property
    def tokens_per_row(self) -> int:
        return self.context + (-(-self.horizon // self.size) - 1) * self.size

    @property
    def dense(self) -> bool:
        """Whether every position of a history learns, and not its end alone."""
        return self.asked == "all" or (
            self.asked == "auto" and self.window_scale == "none" and self.strategy != "direct"
        )
