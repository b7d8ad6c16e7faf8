"""Forecasts of many windows: guesses, and quantiles; from one reading, or from paths that feed on their own draws.

A path draws every value from what the model says of it, reads it, and goes on; quantiles of many paths are those of
the forecast (recursive strategies say nothing else of steps beyond the first). The random numbers of a window depend on
the name of its series and its origin alone, so that it is the same in any company.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqloom.core.network import SequenceModel
from seqloom.tasks.forecasting.outputs import ForecastHead
from seqloom.tasks.forecasting.rollout import read_forced, run_on
from seqloom.tasks.forecasting.windows import SeriesWindows, Windows

_AT_ONCE = 1 << 16  # positions that are read together

Origins = tuple[np.ndarray, np.ndarray]  # series and origin of each window


@dataclass(frozen=True)
class Forecaster:
    output: Any  # what is said of a value: guess, quantiles, at
    apart: bool  # each target by itself
    whole: bool  # all steps at once, from one vector
    blank: bool  # all steps at once, each at a position of its own, which holds no value
    levels: Sequence[float]
    paths: int

    @property
    def draws(self) -> bool:
        """Whether quantiles need paths."""
        return not (self.whole or self.blank)

    @torch.inference_mode()
    def forecast(
        self, model: SequenceModel, windows: SeriesWindows, origins: Origins, quantiles: bool = False
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Guesses (W, H, N); quantiles (W, H, N, levels) if they are wanted and there are some; in scaled units.

        A model that says one number has as quantiles those of its errors on the validation part, step by step.
        """
        training = model.training
        model.eval()
        guesses, bands = [], []
        wanted, margins = quantiles and self.output.spreads, _margins(model) if quantiles else None
        for part in _parts(origins, self._rows_at_once(windows, 1)):
            batch = self.cut(windows, part).to(model.device)
            said = self._said(model, batch, windows)
            guess = self.output.guess(said)[..., None]
            guesses.append(self._undone(guess, batch, windows)[..., 0])
            if margins is not None:
                bands.append(guesses[-1][..., None] + margins * self._spreads(batch, windows))
            if wanted and not self.draws:
                bands.append(self._undone(self.output.quantiles(said, self.levels), batch, windows))
        if wanted and self.draws:
            bands = [
                self._drawn(model, windows, part) for part in _parts(origins, self._rows_at_once(windows, self.paths))
            ]
        model.train(training)
        return np.concatenate(guesses), np.concatenate(bands) if bands else None

    def cut(self, windows: SeriesWindows, origins: Origins) -> Windows:
        """Nothing that comes after an origin is looked at."""
        series, ends = origins
        if not self.apart:
            return windows.cut(series, ends, truth=False, blank=self.blank)
        targets = windows.values.shape[1]
        channels = np.tile(np.arange(targets), len(series))
        return windows.cut(
            np.repeat(series, targets), np.repeat(ends, targets), channels, truth=False, blank=self.blank
        )

    def _said(self, model: SequenceModel, batch: Windows, windows: SeriesWindows) -> Tensor:
        """(B, H, n, size): of every step, when guesses are read as if they had come."""
        assert batch.context is not None
        if self.whole:
            said = model.final(batch.context, batch.context_mask)[:, None]
        elif self.blank:
            said = read_forced(model, batch)[1]
        else:
            said = run_on(model, batch, windows.layout, lambda said, _: self.output.guess(said))
        return said.float().flatten(1, 2)[:, : windows.horizon]

    def _drawn(self, model: SequenceModel, windows: SeriesWindows, origins: Origins) -> np.ndarray:
        batch = self.cut(windows, origins).to(model.device)
        layout, seen = windows.layout, []
        chances = self._chances(windows, origins).to(model.device)  # (B * paths, blocks, block, n)

        def draw(said: Tensor, number: int) -> Tensor:
            seen.append(self.output.at(said.float(), chances[:, number]))
            found: Tensor = seen[-1]
            return found

        said = run_on(model, batch, layout, draw, copies=self.paths)
        seen.append(self.output.at(said[:, -1].float(), chances[:, -1]))
        values = torch.cat(seen, dim=1)[:, : windows.horizon].unflatten(0, (-1, self.paths))  # (B, paths, H, n)
        levels = torch.tensor(self.levels, dtype=values.dtype, device=values.device)
        found = torch.quantile(values, levels, dim=1).movedim(0, -1)  # (B, H, n, levels)
        return self._undone(found, batch, windows)

    def _chances(self, windows: SeriesWindows, origins: Origins) -> Tensor:
        """Even random numbers for every path, window by window."""
        targets = windows.values.shape[1]
        shape = (self.paths, windows.blocks, windows.layout.block, targets)
        drawn = []
        for series, end in zip(*origins, strict=True):
            name = hashlib.blake2b(windows.names[series].encode(), digest_size=8).digest()
            key = (int.from_bytes(name, "big") << 32) + int(end)
            even = np.random.Generator(np.random.Philox(key=key)).random(shape, np.float32)
            drawn += [even[..., [n]] for n in range(targets)] if self.apart else [even]
        return torch.from_numpy(np.concatenate(drawn)).clamp(1e-6, 1 - 1e-6)

    def _undone(self, values: Tensor, batch: Windows, windows: SeriesWindows) -> np.ndarray:
        """(B, H, n, anything) of rows -> (W, H, N, anything) of windows, without the scale of the window."""
        assert batch.spread is not None and batch.centre is not None
        found: np.ndarray = values.cpu().numpy() * batch.spread[..., None] + batch.centre[..., None]
        if not self.apart:
            return found
        targets = windows.values.shape[1]
        return found[:, :, 0].reshape(-1, targets, *found.shape[1:2], found.shape[-1]).swapaxes(1, 2)

    def _spreads(self, batch: Windows, windows: SeriesWindows) -> np.ndarray:
        """By how much each window was shrunk, (W, 1, N, 1)."""
        assert batch.spread is not None
        return batch.spread.reshape(-1, 1, windows.values.shape[1], 1)

    def _rows_at_once(self, windows: SeriesWindows, copies: int) -> int:
        targets = windows.values.shape[1] if self.apart else 1
        return max(1, _AT_ONCE // ((windows.context + windows.horizon) * targets * copies))


def _margins(model: SequenceModel) -> np.ndarray | None:
    """Of a model that says one number for each value: how far these numbers were off, if that is known."""
    head = model.part(ForecastHead)
    margins = None if head is None else head.margins
    return None if margins is None or not margins.any() else margins.cpu().numpy()


def _parts(origins: Origins, size: int) -> Iterator[Origins]:
    series, ends = origins
    for start in range(0, len(series), size):
        yield series[start : start + size], ends[start : start + size]
