"""Forecasting: predict the next values of a time series, with prediction intervals.

Three strategies. Recursive: one step at a time, each forecast fed back. Direct: all steps at once, from one vector
after the history (head), or at one empty position per step (steps). Combined: a block of steps at a time, fed back
before the next block. In training, a recursive model reads the ground truth (forced: teacher forcing), its own
predictions (free), or a mix of both (mixed: scheduled sampling).
Inputs and windows are described in windows.py; missing values are read as 0 and excluded from the loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from seqloom.core.backbone import Kind
from seqloom.core.batch import Batch
from seqloom.core.choice import Choice, Demand
from seqloom.core.errors import UserError
from seqloom.core.instance import Instance
from seqloom.core.network import SequenceModel
from seqloom.core.order import shuffled_batches
from seqloom.core.rows import Facts, Json, Row
from seqloom.core.score import Text
from seqloom.core.state import State
from seqloom.core.task import Order, Step, Task, check_limit
from seqloom.data.shapes.series.rows import SeriesRows
from seqloom.data.shapes.series.scale import SeriesScale
from seqloom.layers.linear import Linear
from seqloom.tasks.forecasting import choices, showing
from seqloom.tasks.forecasting.backtests import (
    extra_scores,
    factors,
    first_step,
    gaps,
    margins,
    rolling,
    short_series,
    too_short,
)
from seqloom.tasks.forecasting.baselines import fit_autoregression, seasonal_name
from seqloom.tasks.forecasting.forecaster import Forecaster, Origins
from seqloom.tasks.forecasting.instance import instance
from seqloom.tasks.forecasting.leakage import Leak, probe
from seqloom.tasks.forecasting.options import ForecastOptions, check_columns
from seqloom.tasks.forecasting.outputs import Bins, ForecastHead, make_output
from seqloom.tasks.forecasting.phrases import PHRASES
from seqloom.tasks.forecasting.predictions import ForecastRows
from seqloom.tasks.forecasting.rollout import read_forced, read_mixed
from seqloom.tasks.forecasting.scores import SCORES
from seqloom.tasks.forecasting.windows import JoinedRows, Layout, Places, SeriesWindows, Windows, random_windows

_EQUATIONS = 256  # examples of the least-squares problem per batch
_MOST_EQUATIONS = 400_000  # of them; more are thinned out evenly
_ONE_WAY: frozenset[Kind] = frozenset({"causal", "encoder-decoder"})
_PROBED = 4  # series whose future the leakage probe changes


class Config(ForecastOptions):
    @classmethod
    def choose(cls, train: Any, given: Mapping[str, Any]) -> list[Choice]:
        return choices.choose(train, given)

    @classmethod
    def demand(cls, train: Any, settings: Mapping[str, Any]) -> Demand:
        return Demand(rows=train.count, tokens=train.points, length=settings["task.context"])

    def build(self, vocabulary: SeriesScale) -> Forecasting:
        return Forecasting(self, vocabulary)


class Forecasting(Task[SeriesRows]):
    name = "forecasting"
    predict_options = ("back",)
    title = ("forecasting", "时间序列预测")
    protocol_phrases = PHRASES
    baseline_titles: ClassVar[dict[str, Text]] = {
        "last value": ("last value", "最近值"),
        "drift": ("drift", "漂移法"),
        "seasonal naive": ("seasonal naive", "季节性朴素预测"),
        "moving average": ("moving average", "移动平均"),
        "autoregression": ("linear autoregression", "线性自回归"),
        "naive2": ("naive2 (M4)", "naive2（M4）"),
    }
    binned: Bins | None = None
    vocabulary: int  # only with binned values, which count-based models can read too

    def __init__(self, config: Config, scale: SeriesScale) -> None:
        """`scale`: names of targets and covariates, scaling of the values, and the season."""
        self.config, self.scale = config, scale
        self.metric = config.metric
        self.accepts = _ONE_WAY | {"bidirectional"} if config.by_head else _ONE_WAY
        self.encodes = config.by_head
        self.latency_unit = "row" if config.by_head else "token"
        check_columns(config, scale)
        self.baseline_titles = type(self).baseline_titles | {  # type: ignore[misc]
            seasonal_name(points): (seasonal_name(points), f"季节性朴素预测（{points}）")
            for points in scale.seasons
            if points != scale.season
        }
        c, self.apart = config, config.channels == "apart"
        flags = bool(set(scale.missing) & set(scale.targets)) if c.flags is None else c.flags
        targets = 1 if self.apart else len(scale.targets)
        self.layout = Layout(targets, flags or c.blank, len(scale.past), len(scale.known), c.size)
        self.output = make_output(c.output, c.error, c.levels, c.bins)
        self.conformal = c.intervals == "conformal"
        kind = self.output, self.apart, c.by_head, c.blank
        self.forecaster = Forecaster(*kind, c.levels, c.paths, self.conformal, max(1, scale.season))
        if isinstance(self.output, Bins) and self.layout.size == 1 and c.window_scale == "none":
            self.binned, self.vocabulary = self.output, self.output.size
        self.scores = tuple(
            score._replace(compared=score.compared and score.name != self.metric)
            for score in SCORES
            if score.name != "crps" or self.output.probabilistic
        )
        self._cuts: list[tuple[SeriesRows, SeriesWindows]] = []

    def embed(self, width: int) -> nn.Module:
        return Linear(self.layout.size, width)

    def head(self, width: int) -> nn.Module:
        c = self.config
        kept = self.conformal or not self.output.probabilistic
        measured = (c.horizon, len(self.scale.targets), len(c.levels)) if kept else None
        return ForecastHead(width, self.layout.block, self.layout.targets, self.output.size, measured)

    def check_model(self, model: SequenceModel) -> None:
        check_limit(model, "task.context", self.config.context)

    def check_rows(self, model: SequenceModel, parts: Mapping[str, SeriesRows]) -> str | None:
        """Refuse parts that are too short; report series left out and missing values."""
        c, remarks = self.config, []
        needed = c.tokens_per_row if model.joins else max(c.context, c.tokens_per_row - c.context + 1)
        if model.limit is not None and needed > model.limit:
            raise UserError(
                f"task.context={c.context} and task.horizon={c.horizon} need {needed:,} positions, more than the "
                f"model's context {model.limit:,}; set model.context={needed}"
            )
        if c.asked == "all" and not model.joins:
            raise UserError(
                "task.asked=all: this model encodes the whole history, so only its end can have targets; set it to full"
            )
        for part, rows in parts.items():
            windows = self._windows(rows)
            places = windows.trained() if part == "train" else windows.scored(c.stride)
            remarks += short_series(part, windows, places)
            if part == "train":
                remarks += gaps(rows)
        return "; ".join(remarks) or None

    def batches(self, rows: SeriesRows, order: Order, carry: bool) -> Iterator[list[Batch]]:
        """Windows, reshuffled every epoch; with channels=apart, every window once per target."""
        windows = self._windows(rows)
        places = windows.trained()
        count = len(places) * (len(self.scale.targets) if self.apart else 1)
        if not count:
            raise UserError(f"no series of the training set is longer than task.horizon={self.config.horizon}")
        for index in shuffled_batches(count, order.batch, order.seed, order.start):
            yield [self.collate(windows, places, index[mine]) for mine in order.rows()]

    def collate(self, windows: SeriesWindows, places: Places, index: np.ndarray) -> Windows:
        """The windows with these indices, including the actual future values."""
        channels = index // len(places) if self.apart else None
        series, ends = places.locate(index % len(places))
        return windows.cut(series, ends, channels, truth=True, blank=self.config.blank, dense=self.config.dense)

    def stream(self, rows: SeriesRows) -> np.ndarray:
        """All series as tokens, concatenated; missing values are skipped."""
        assert isinstance(self.output, Bins)
        values = np.concatenate([series.T.ravel() for series in rows.values])
        return self.output.tokens(torch.from_numpy(values[np.isfinite(values)])).numpy()

    @property
    def solvable(self) -> bool:
        """Whether least squares can fit it: point forecasts, all made from what was read."""
        return self.output.size == 1 and not self.config.blank

    @property
    def absolute(self) -> bool:
        return self.config.error == "absolute"

    @property
    def seasons(self) -> list[int]:
        """Points per season, the main one first; empty: none."""
        known = getattr(self.scale, "seasons", None) or [self.scale.season]
        return [season for season in known if season > 1]

    @property
    def reads(self) -> int:
        return self.config.context

    def lessons(self, rows: SeriesRows, stretch: tuple[int, int] = (0, 1)) -> Iterator[Batch]:
        """Each history with the block that follows; `stretch`: of (n, count), the n-th of so many stretches of time.

        With a window scale, the newest value of a history may always be the same; a strategy that feeds forecasts back
        must have seen others, so the last block is added.
        """
        c = self.config
        if c.blank:
            raise UserError("task.direct=steps predicts at empty positions, which least squares cannot fit; use head")
        if self.output.size > 1:
            raise UserError(f"task.output={c.output}: least squares fits point forecasts only; use task.output=point")
        reach = c.size if c.window_scale == "none" else c.horizon
        windows = SeriesWindows(rows, self.layout, c.context, reach, c.window_scale)
        places = windows.trained().stretch(*stretch)
        count = len(places) * (len(self.scale.targets) if self.apart else 1)
        every = max(1, -(-count * stretch[1] // _MOST_EQUATIONS))
        chosen = np.arange(0, count, every)
        for start in range(0, len(chosen), _EQUATIONS):
            batch = self.collate(windows, places, chosen[start : start + _EQUATIONS])
            assert batch.context is not None
            yield Batch(batch.context, batch.context_mask, batch.targets[:, 0])
            if batch.inputs.size(1) > 1 and batch.context_mask is None:
                whole = torch.cat((batch.context, batch.inputs[:, 1:]), dim=1)
                yield Batch(whole, None, batch.targets[:, -1])

    def loss(self, model: SequenceModel, batch: Batch, state: State = None) -> Step:
        assert isinstance(batch, Windows) and batch.context is not None
        before, outputs, targets = self._outputs(model, batch)
        loss, count = self._loss(outputs, targets)
        if before is not None and batch.before is not None:
            more, others = self._loss(before, batch.before)
            loss, count = loss + more, count + others
        rows, length = batch.context.shape[:2]
        history = rows * length if batch.context_mask is None else int(batch.context_mask.sum())
        return Step(loss, count, tokens=history + rows * (batch.inputs.size(1) - 1))

    def evaluate(
        self,
        model: SequenceModel,
        rows: SeriesRows,
        *,
        naive: Facts | None = None,
        quick: bool = False,
        brief: bool = False,
    ) -> Json:
        """A rolling backtest. `quick`: some windows, point forecasts only; `brief`: no baselines."""
        c, windows = self.config, self._windows(rows)
        places = windows.scored(c.stride)
        if not len(places):
            raise UserError(too_short(windows))
        chosen = places.some(c.validation if quick else c.scored)
        origins = places.locate(chosen)

        def forecast(some: Origins, quantiles: bool) -> tuple[np.ndarray, np.ndarray | None]:
            return self.forecaster.forecast(model, windows, some, quantiles)

        test = rolling(forecast, windows, rows, origins, () if quick else c.levels, self._drawn)
        scores = test.scores() | {"protocol": self._protocol(len(chosen), len(places))}
        if test.zeros:
            scores["protocol"] += f"; MAPE without {test.zeros:,} actual values of 0"
        scores[self.metric] = float("nan") if scores[self.metric] is None else scores[self.metric]
        if quick:
            return {name: scores[name] for name in ("mse", "mae", "mase", "smape", "protocol")}
        scores["pieces"] = test.pieces(self.metric)
        if brief:
            return scores
        scores |= extra_scores(forecast, windows, rows, origins, test, naive or {}, c.stride)
        return first_step(scores)

    @torch.no_grad()
    def settle(self, model: SequenceModel, valid: SeriesRows) -> list[Choice]:
        """Measure errors on the validation set, step by step: the prediction intervals of a point forecaster, and the
        calibration of the others."""
        windows = self._windows(valid)
        places = windows.scored(self.config.stride)
        head = model.part(ForecastHead)
        if head is None or head.margins is None or not len(places):
            return []
        head.margins.zero_()

        def forecast(some: Origins, _: bool) -> tuple[np.ndarray, np.ndarray | None]:
            if self.conformal:
                return self.forecaster.raw(model, windows, some)
            return self.forecaster.forecast(model, windows, some)

        if self.conformal:
            found = factors(forecast, windows, places, self.config.levels, self._drawn, self.forecaster.season)
        else:
            found = margins(forecast, windows, places, self.config.levels)
        head.margins.copy_(torch.from_numpy(found))
        return []

    def forecast(
        self, model: SequenceModel, rows: SeriesRows, origins: Origins, quantiles: bool = False
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Point forecasts (W, H, targets) and quantiles (W, H, targets, levels) at these origins, in scaled units."""
        return self.forecaster.forecast(model, self._windows(rows), origins, quantiles)

    def _predict(self, model: SequenceModel, rows: Iterable[Row], *, back: int = 0, **options: Any) -> Iterator[Row]:
        """`back`: start this many points before the end and add the actual values."""
        return self._answers(model, back).rows(rows)

    def pictures(self, model: SequenceModel, rows: Iterable[Row], **options: Any) -> Iterator[Json]:
        self.check_options(options)
        return self._answers(model, **options).each(rows)

    def instance(self, model: SequenceModel, row: Row, vocabulary: Any, target: str | None = None) -> Instance:
        return instance(self, model, row, target)

    def epoch_tokens(self, rows: SeriesRows) -> int:
        windows = len(self._windows(rows).trained()) * (len(self.scale.targets) if self.apart else 1)
        return windows * self.config.tokens_per_row

    def naive(self, rows: SeriesRows) -> Facts:
        """The fitted autoregression."""
        c = self.config
        fitted = fit_autoregression(rows.values, c.context, c.horizon if c.blank else c.size, c.window_scale)
        return {"autoregression": fitted.facts()} if fitted else {}

    def probe(self, model: SequenceModel, rows: SeriesRows) -> Leak:
        """Change the values after a point in some series: no forecast made before it may change."""
        chosen = [n for n, values in enumerate(rows.values) if len(values) > 3][:_PROBED]
        few = JoinedRows([rows], chosen)
        windows = [len(values) * 2 // 3 for values in few.values]
        return probe(lambda some, origins: self.forecast(model, some, origins)[0], few, windows)

    def showcase(self, model: SequenceModel, rows: SeriesRows) -> Json:
        windows = self._windows(rows)
        places = windows.scored(self.config.stride)
        origins = places.locate(places.some(showing.WINDOWS))
        forecasts, bands = self.forecaster.forecast(model, windows, origins, True)
        found = showing.showcase(rows, windows, origins, forecasts, bands, self.config.levels)
        return found | {"of": len(places)}

    def typical_length(self, rows: SeriesRows) -> int:
        return self.config.tokens_per_row

    def example(self, rows: int, length: int) -> Windows:
        """A history of that length and as many positions after it, rounded up to full blocks."""
        return random_windows(self.layout, rows, length, ends=self.config.by_head)

    @property
    def _drawn(self) -> int:
        """Windows of a part with intervals from sample paths; 0: all, or none are needed."""
        return self.config.drawn if self.output.probabilistic and self.forecaster.draws else 0

    def _answers(self, model: SequenceModel, back: int = 0) -> ForecastRows:
        c = self.config

        def windows(rows: SeriesRows, beyond: int) -> SeriesWindows:
            return SeriesWindows(rows, self.layout, c.context, c.horizon, c.window_scale, beyond)

        def forecast(some: SeriesWindows, origins: Origins) -> tuple[np.ndarray, np.ndarray | None]:
            return self.forecaster.forecast(model, some, origins, True)

        return ForecastRows(self.scale, c.horizon, c.levels, windows, forecast, back)

    def _windows(self, rows: SeriesRows) -> SeriesWindows:
        """Cached for the last few rows."""
        for known, windows in self._cuts:
            if known is rows:
                return windows
        c = self.config
        windows = SeriesWindows(rows, self.layout, c.context, c.horizon, c.window_scale)
        self._cuts = [*self._cuts[-3:], (rows, windows)]
        return windows

    def _outputs(self, model: SequenceModel, batch: Windows) -> tuple[Tensor | None, Tensor, Tensor]:
        """Outputs at the positions of the history (or None) and at those with targets, and these targets."""
        c = self.config
        assert batch.context is not None
        if c.by_head and (batch.before is None or not model.joins):
            return None, model.final(batch.context, batch.context_mask)[:, None], batch.targets
        if c.training == "forced" or not model.training:
            before, outputs = read_forced(model, batch)
            return before, outputs, batch.targets
        share = 1.0 if c.training == "free" else c.share
        before, outputs = read_mixed(model, batch, self.layout, self.output.guess, share)
        return before, outputs, batch.targets[:, :: c.size]

    def _loss(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, int]:
        known = targets.isfinite()
        exact = outputs if outputs.dtype == torch.float64 else outputs.float()
        each = self.output.loss(exact, targets.nan_to_num())
        return torch.where(known, each, 0.0).sum(), int(known.sum())

    def _protocol(self, count: int, total: int) -> str:
        c = self.config
        named = {"recursive": "recursive, one step at a time", "combined": f"combined, {c.block} steps at a time",
                 "direct": "direct, all steps at once"}[c.strategy]  # fmt: skip
        of = f"{count:,} windows" if count == total else f"{count:,} of {total:,} windows, evenly spaced"
        parts = [f"{named}; horizon {c.horizon}, context {c.context}; rolling origin, stride {c.stride}", of]
        parts += [f"each window scaled ({c.window_scale})"] * (c.window_scale != "none")
        parts += ["errors in " + ("data units" if self.scale.method == "none" else "training standard deviations")]
        if self.output.probabilistic and self.forecaster.draws:
            some = f" of {c.drawn} windows" if 0 < c.drawn < count else ""
            parts.append(f"intervals from {c.paths} sample paths{some}")
        if self.conformal:
            parts.append("intervals calibrated on the validation set")
        return "; ".join(parts)
