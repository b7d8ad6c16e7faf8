"""Windows of numeric series: the history, the known future covariates, and the actual future values.

    ... e-C ........... e-1 | e ............ e+H-1 ...        e: the origin, where the future begins
        history (C points)    future (H points)

A position at time t holds what is known at t: the values (0 where missing), flags for those present, the past
covariates, and the known covariates of the next `block` points. Its targets are the values of these points. In the
future, past covariates keep their last value; inputs hold actual values only on request, for teacher forcing.
Sizes: B windows, C context, H horizon, N targets of a row (1 if channels are apart), K known and P past covariates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from seqloom.core.batch import Batch
from seqloom.core.order import spread

Rows = Any  # SeriesRows: values, past, known, begins, scale, future_known(series, steps)
WindowScale = Literal["none", "last", "standard"]

_STEADY = 1e-12  # relative to the largest value: a deviation below it is rounding error, the history is constant


@dataclass
class Windows(Batch):
    """`context`: the history. `inputs`: its last position, then those of the future; `targets` belong to them."""

    before: Tensor | None = None  # targets of the positions of the history, (B, C, block, N); None: not trained on
    centre: np.ndarray | None = None  # (B, 1, N) float64: subtracted from every value of the window
    spread: np.ndarray | None = None  # (B, 1, N) float64: every value was then divided by it


@dataclass(frozen=True)
class Layout:
    """The columns of the inputs, in order."""

    targets: int  # values of a row
    flags: bool  # one more column for each target: 1 where present, 0 where missing
    past: int
    known: int
    block: int  # points that each position predicts

    @property
    def size(self) -> int:
        return self.targets * (1 + self.flags) + self.past + self.block * self.known


class Places:
    """All windows without listing them: for each series a first origin, a number of windows and the stride."""

    def __init__(self, first: np.ndarray, counts: np.ndarray, stride: int = 1) -> None:
        self.first, self.counts, self.stride = first, np.maximum(counts, 0), stride
        self.ends = np.cumsum(self.counts)

    def __len__(self) -> int:
        return int(self.ends[-1]) if len(self.ends) else 0

    def locate(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The series and the origin of each window."""
        series = np.searchsorted(self.ends, index, side="right")
        number = index - (self.ends[series] - self.counts[series])
        return series, self.first[series] + number * self.stride

    def stretch(self, number: int, count: int) -> Places:
        """The windows of one of `count` consecutive stretches of each series. Where a series has fewer windows than
        that, the first of them begins elsewhere in every series, so that no stretch is left empty by all."""
        shift = np.arange(len(self.counts)) % count
        begin, end = ((self.counts * n + shift) // count for n in (number, number + 1))
        return Places(self.first + begin * self.stride, end - begin, self.stride)

    def some(self, most: int) -> np.ndarray:
        """Indices of at most `most` windows, evenly spaced; 0: all."""
        count = len(self)
        return spread(min(most or count, count), count)


class SeriesWindows:
    """All series concatenated, each followed by missing points, ready to cut windows from."""

    def __init__(
        self, rows: Rows, layout: Layout, context: int, horizon: int, scale: WindowScale = "none", beyond: int = 0
    ) -> None:
        """`beyond`: number of points after the end for which future covariates must be known."""
        self.layout, self.context, self.horizon, self.scale = layout, context, horizon, scale
        self.blocks = -(-horizon // layout.block)
        self.lengths = np.array([len(values) for values in rows.values], dtype=np.int64)
        self.begins = np.asarray(rows.begins, dtype=np.int64)
        ahead = (self.blocks + 1) * layout.block
        self.base = np.cumsum(self.lengths + ahead) - (self.lengths + ahead)
        self.names = list(rows.names)
        self.values = _flat([np.asarray(values) for values in rows.values], ahead, np.nan, np.float64)
        self.past = np.nan_to_num(_flat(rows.past, ahead, 0.0)) if layout.past else None
        self.known = None
        if layout.known:
            self.known = np.nan_to_num(_flat([self._known(rows, n, beyond) for n in range(len(self.lengths))], 0, 0.0))

    def trained(self) -> Places:
        """Every origin with a full context before it and a full horizon after it; a shorter series has one window,
        with the history available."""
        last = self.lengths - self.horizon
        first = np.minimum(self.context, last)
        return Places(first, np.where(last >= 1, last - first + 1, 0))

    def scored(self, stride: int = 1) -> Places:
        """Origins within this part that leave a full horizon before its end."""
        last = self.lengths - self.horizon
        first = np.where(self.begins > 0, self.begins, np.clip(last, 1, self.context))
        return Places(first, np.where(last >= first, (last - first) // stride + 1, 0), stride)

    def inside(self, stride: int = 1) -> Places:
        """Origins whose full horizon lies before the beginning of this part."""
        last = self.begins - self.horizon
        first = np.minimum(self.context, np.maximum(1, last))
        return Places(first, np.where(last >= first, (last - first) // stride + 1, 0), stride)

    def history(self, series: np.ndarray, ends: np.ndarray, length: int) -> np.ndarray:
        """(B, length, targets), all targets; NaN before the beginning of a series."""
        times = ends[:, None] - length + np.arange(length)
        found = self.values[self.base[series][:, None] + np.maximum(times, 0)]
        found[times < 0] = np.nan
        result: np.ndarray = found
        return result

    def future(self, series: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """(B, H, targets): actual future values."""
        found: np.ndarray = self.values[(self.base[series] + ends)[:, None] + np.arange(self.horizon)]
        return found

    def cut(
        self,
        series: np.ndarray,
        ends: np.ndarray,
        channels: np.ndarray | None = None,
        *,
        truth: bool,
        blank: bool = False,
        dense: bool = False,
    ) -> Windows:
        """A batch of windows; `channels`: for each, the single target to keep.

        `truth`: include the actual future values as targets and inputs; otherwise they are not even read.
        `blank`: future inputs hold no values. `dense`: positions of the history have targets too.
        """
        sizes = np.minimum(ends, self.context)
        real = np.arange(self.context) < sizes[:, None]  # (B, C), padding on the right
        times = np.where(real, (ends - sizes)[:, None] + np.arange(self.context), (ends - 1)[:, None])
        seen = np.where(real[..., None], self._values(series, times, channels), np.nan)
        centre, spread = window_scale(seen, self.scale)
        rest = ends[:, None] + np.arange((self.blocks - 1) * self.layout.block)  # future times to read
        later = np.full((*rest.shape, seen.shape[-1]), np.nan)
        if truth and not blank:
            later = self._values(series, rest, channels)
            later[rest >= (ends + self.horizon)[:, None]] = np.nan
        history = self._inputs((seen - centre) / spread, series, times, times, ends)
        held = np.broadcast_to((ends - 1)[:, None], rest.shape)
        future = self._inputs((later - centre) / spread, series, rest, held, ends)
        last = history[np.arange(len(ends)), sizes - 1][:, None]
        input_times = np.concatenate(((ends - 1)[:, None], rest), axis=1)
        nothing = np.full((len(ends), input_times.shape[1], self.layout.block, seen.shape[-1]), np.nan, np.float32)
        targets = self._targets(series, input_times, ends, channels, centre, spread) if truth else nothing
        before = self._targets(series, times, ends, channels, centre, spread) if dense else None
        if before is not None:
            before[~real] = np.nan
            before[np.arange(len(ends)), sizes - 1] = np.nan  # already among the targets
        return Windows(
            torch.from_numpy(np.concatenate((last, future), axis=1)),
            None,
            torch.from_numpy(targets),
            torch.from_numpy(history),
            None if real.all() else torch.from_numpy(real),
            before=None if before is None else torch.from_numpy(before),
            centre=centre,
            spread=spread,
            origin=f"series {series[:4].tolist()} at {ends[:4].tolist()} ...",
        )

    def _values(self, series: np.ndarray, times: np.ndarray, channels: np.ndarray | None) -> np.ndarray:
        places = self.base[series].reshape(-1, *[1] * (times.ndim - 1)) + times
        found: np.ndarray
        if channels is None:
            found = self.values[places]
            return found
        found = self.values[places, channels.reshape(-1, *[1] * (times.ndim - 1))][..., None]
        return found

    def _inputs(
        self, values: np.ndarray, series: np.ndarray, times: np.ndarray, past_times: np.ndarray, ends: np.ndarray
    ) -> np.ndarray:
        """(B, T, size); `past_times`: when the past covariates were measured. The last block may reach beyond the
        horizon, where known covariates are zeroed: they need not be available when forecasting."""
        there, base = np.isfinite(values), self.base[series][:, None]
        parts = [np.where(there, values, 0.0)]
        if self.layout.flags:
            parts.append(there.astype(np.float32))
        if self.past is not None:
            parts.append(self.past[base + past_times])
        if self.known is not None:
            ahead = times[..., None] + np.arange(1, self.layout.block + 1)
            known = self.known[base[..., None] + ahead]
            known[ahead >= (ends + self.horizon)[:, None, None]] = 0.0
            parts.append(known.reshape(*times.shape, self.layout.block * self.layout.known))
        return np.concatenate(parts, axis=-1, dtype=np.float32)

    def _targets(
        self,
        series: np.ndarray,
        times: np.ndarray,
        ends: np.ndarray,
        channels: np.ndarray | None,
        centre: np.ndarray,
        spread: np.ndarray,
    ) -> np.ndarray:
        """(B, T, block, N): the points after each time; NaN beyond the horizon."""
        ahead = times[..., None] + np.arange(1, self.layout.block + 1)
        found = self._values(series, ahead, channels)
        found[ahead >= (ends + self.horizon)[:, None, None]] = np.nan
        result: np.ndarray = ((found - centre[:, :, None]) / spread[:, :, None]).astype(np.float32)
        return result

    def _known(self, rows: Rows, series: int, beyond: int) -> np.ndarray:
        length, known = int(self.lengths[series]), np.asarray(rows.known[series])
        if beyond:
            known = np.concatenate((known[:length], rows.future_known(series, beyond)))
        needed = length + (self.blocks + 1) * self.layout.block
        known = known[:needed]
        return np.concatenate((known, np.zeros((needed - len(known), known.shape[1]), np.float32)))


class JoinedRows:
    """Several SeriesRows as one; `chosen`: indices of the series to keep."""

    names: list[str]
    values: list[np.ndarray]
    past: list[np.ndarray]
    known: list[np.ndarray]
    times: list[np.ndarray]
    begins: list[int]

    def __init__(self, rows: Sequence[Rows], chosen: Sequence[int] | None = None) -> None:
        owners = [(one, n) for one in rows for n in range(len(one.values))]
        self._owners = owners if chosen is None else [owners[n] for n in chosen]
        for name in ("names", "values", "past", "known", "times", "begins"):
            setattr(self, name, [getattr(one, name)[n] for one, n in self._owners])

    def future_known(self, series: int, steps: int) -> np.ndarray:
        one, n = self._owners[series]
        found: np.ndarray = one.future_known(n, steps)
        return found

    def future_times(self, series: int, steps: int) -> np.ndarray:
        one, n = self._owners[series]
        found: np.ndarray = one.future_times(n, steps)
        return found


def random_windows(layout: Layout, rows: int, length: int, ends: bool) -> Windows:
    """Random values: a history of that length and as many positions after it, rounded up to full blocks; `ends`: only
    the end of the history has targets."""
    draw, size = torch.Generator().manual_seed(0), layout.block
    inputs = 1 + -(-(length - 1) // size) * size
    return Windows(
        torch.randn(rows, inputs, layout.size, generator=draw),
        None,
        torch.randn(rows, 1 if ends else inputs, size, layout.targets, generator=draw),
        torch.randn(rows, length, layout.size, generator=draw),
        origin="random values",
    )


def window_scale(seen: np.ndarray, rule: WindowScale) -> tuple[np.ndarray, np.ndarray]:
    """Centre and spread (B, 1, N) of each history (B, C, N) without its missing values; a constant one is centred."""
    there = np.isfinite(seen)
    centre = np.zeros((len(seen), 1, seen.shape[-1]))
    spread = np.ones_like(centre)
    if rule == "last":
        centre = fill_forward(seen)[:, -1:]
        centre = np.where(np.isfinite(centre), centre, 0.0)
    if rule == "standard":
        counts = np.maximum(there.sum(1, keepdims=True), 1)
        values = np.where(there, seen, 0.0).astype(np.float64)
        mean = values.sum(1, keepdims=True) / counts
        deviation = np.sqrt((np.where(there, values - mean, 0.0) ** 2).sum(1, keepdims=True) / counts)
        centre = mean
        steady = deviation <= _STEADY * np.abs(values).max(1, keepdims=True, initial=0.0)
        spread = np.where(steady, 1.0, deviation)
    return centre, spread


def fill_forward(values: np.ndarray) -> np.ndarray:
    """Fill missing values along the second axis with the last one present; leading ones stay missing."""
    there = np.isfinite(values)
    steps = np.arange(values.shape[1]).reshape(1, -1, *[1] * (values.ndim - 2))
    place = np.maximum.accumulate(np.where(there, steps, 0), axis=1)
    return np.take_along_axis(values, place, axis=1)


def _flat(parts: list[np.ndarray], ahead: int, filling: float, kind: type = np.float32) -> np.ndarray:
    """(points, columns): all parts, each followed by `ahead` points of `filling`."""
    total = sum(len(part) + ahead for part in parts)
    found: np.ndarray = np.full((total, np.asarray(parts[0]).shape[1] if parts else 1), filling, kind)
    place = 0
    for part in parts:
        found[place : place + len(part)] = part
        place += len(part) + ahead
    return found
