"""Point forecasts and quantiles of many windows, from one forward pass or from sample paths.

A path samples each value from the output distribution and feeds it back; the quantiles of a forecast are those of many
paths (recursive strategies have no other distribution beyond the first step). The random numbers of a window depend
only on the name of its series and its origin, so its forecast does not depend on the other windows of the batch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqloom.core.network import SequenceModel
from seqloom.tasks.forecasting.intervals import bands as calibrated
from seqloom.tasks.forecasting.intervals import deviations
from seqloom.tasks.forecasting.outputs import ForecastHead
from seqloom.tasks.forecasting.rollout import read_forced, run_on
from seqloom.tasks.forecasting.windows import SeriesWindows, Windows

_POSITIONS = 1 << 16  # per forward pass

Origins = tuple[np.ndarray, np.ndarray]  # series and origin of each window


@dataclass(frozen=True)
class Forecaster:
    output: Any  # an Output: the distribution of each value
    apart: bool  # each target as a separate series
    whole: bool  # all steps at once, from one vector
    blank: bool  # all steps at once, at one empty position per step
    levels: Sequence[float]
    paths: int
    conformal: bool = False  # calibrated intervals
    season: int = 1  # points per season, 1: none

    @property
    def draws(self) -> bool:
        """Whether quantiles need sample paths."""
        return not (self.whole or self.blank)

    @torch.inference_mode()
    def forecast(
        self, model: SequenceModel, windows: SeriesWindows, origins: Origins, quantiles: bool = False
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Point forecasts (W, H, N) and, if requested and available, quantiles (W, H, N, levels); in scaled units.

        The quantiles of a point forecaster come from its errors on the validation set, step by step; with `conformal`,
        those of a distribution are calibrated by such errors.
        """
        training = model.training
        model.eval()
        forecasts, bands = [], []
        probabilistic, margins = quantiles and self.output.probabilistic, _margins(model) if quantiles else None
        for part in _parts(origins, self._rows_at_once(windows, 1)):
            batch = self.cut(windows, part).to(model.device)
            outputs = self._outputs(model, batch, windows)
            point = self.output.guess(outputs)[..., None]
            forecasts.append(self._unscaled(point, batch, windows)[..., 0])
            if margins is not None and not self.conformal:
                bands.append(forecasts[-1][..., None] + margins * self._scales(batch, windows))
            if probabilistic and not self.draws:
                bands.append(self._unscaled(self.output.quantiles(outputs, self.levels), batch, windows))
        if probabilistic and self.draws:
            pieces = _parts(origins, self._rows_at_once(windows, self.paths))
            bands = [self._path_quantiles(model, windows, part) for part in pieces]
        model.train(training)
        points, raw = np.concatenate(forecasts), np.concatenate(bands) if bands else None
        if quantiles and self.conformal and not (raw is None and margins is None):
            raw = calibrated(points, raw, deviations(windows, *origins, self.season), margins, self.levels)
        return points, raw

    def raw(
        self, model: SequenceModel, windows: SeriesWindows, origins: Origins
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Point forecasts and the quantiles of the output distribution, if there is one, not calibrated."""
        return replace(self, conformal=False).forecast(model, windows, origins, self.output.probabilistic)

    def cut(self, windows: SeriesWindows, origins: Origins) -> Windows:
        """Windows without anything that lies after their origins."""
        series, ends = origins
        if not self.apart:
            return windows.cut(series, ends, truth=False, blank=self.blank)
        targets = windows.values.shape[1]
        channels = np.tile(np.arange(targets), len(series))
        return windows.cut(
            np.repeat(series, targets), np.repeat(ends, targets), channels, truth=False, blank=self.blank
        )

    def _outputs(self, model: SequenceModel, batch: Windows, windows: SeriesWindows) -> Tensor:
        """(B, H, n, size): output parameters of every step, with point forecasts fed back."""
        assert batch.context is not None
        if self.whole:
            outputs = model.final(batch.context, batch.context_mask)[:, None]
        elif self.blank:
            outputs = read_forced(model, batch)[1]
        else:
            outputs = run_on(model, batch, windows.layout, lambda outputs, _: self.output.guess(outputs))
        return outputs.float().flatten(1, 2)[:, : windows.horizon]

    def point(self, model: SequenceModel, batch: Windows, windows: SeriesWindows) -> Tensor:
        """Point forecasts (B, H, n), scaled as the window is; differentiable."""
        return self.output.guess(self._outputs(model, batch, windows))  # type: ignore[no-any-return]

    def _path_quantiles(self, model: SequenceModel, windows: SeriesWindows, origins: Origins) -> np.ndarray:
        batch = self.cut(windows, origins).to(model.device)
        layout, sampled = windows.layout, []
        uniforms = self._uniforms(windows, origins).to(model.device)  # (B * paths, blocks, block, n)

        def draw(outputs: Tensor, number: int) -> Tensor:
            sampled.append(self.output.at(outputs.float(), uniforms[:, number]))
            found: Tensor = sampled[-1]
            return found

        outputs = run_on(model, batch, layout, draw, copies=self.paths)
        sampled.append(self.output.at(outputs[:, -1].float(), uniforms[:, -1]))
        values = torch.cat(sampled, dim=1)[:, : windows.horizon].unflatten(0, (-1, self.paths))  # (B, paths, H, n)
        levels = torch.tensor(self.levels, dtype=values.dtype, device=values.device)
        found = torch.quantile(values, levels, dim=1).movedim(0, -1)  # (B, H, n, levels)
        return self._unscaled(found, batch, windows)

    def _uniforms(self, windows: SeriesWindows, origins: Origins) -> Tensor:
        """Uniform random numbers for every path, window by window."""
        targets = windows.values.shape[1]
        shape = (self.paths, windows.blocks, windows.layout.block, targets)
        drawn = []
        for series, end in zip(*origins, strict=True):
            name = hashlib.blake2b(windows.names[series].encode(), digest_size=8).digest()
            key = (int.from_bytes(name, "big") << 32) + int(end)
            uniform = np.random.Generator(np.random.Philox(key=key)).random(shape, np.float32)
            drawn += [uniform[..., [n]] for n in range(targets)] if self.apart else [uniform]
        return torch.from_numpy(np.concatenate(drawn)).clamp(1e-6, 1 - 1e-6)

    def _unscaled(self, values: Tensor, batch: Windows, windows: SeriesWindows) -> np.ndarray:
        """(B, H, n, ...) of rows -> (W, H, N, ...) of windows, with the window scale undone."""
        assert batch.spread is not None and batch.centre is not None
        found: np.ndarray = values.cpu().numpy() * batch.spread[..., None] + batch.centre[..., None]
        if not self.apart:
            return found
        targets = windows.values.shape[1]
        return found[:, :, 0].reshape(-1, targets, *found.shape[1:2], found.shape[-1]).swapaxes(1, 2)

    def _scales(self, batch: Windows, windows: SeriesWindows) -> np.ndarray:
        """The spread that each window was divided by, (W, 1, N, 1)."""
        assert batch.spread is not None
        return batch.spread.reshape(-1, 1, windows.values.shape[1], 1)

    def _rows_at_once(self, windows: SeriesWindows, copies: int) -> int:
        targets = windows.values.shape[1] if self.apart else 1
        return max(1, _POSITIONS // ((windows.context + windows.horizon) * targets * copies))


def _margins(model: SequenceModel) -> np.ndarray | None:
    """Error quantiles of a point forecaster, if they have been measured."""
    head = model.part(ForecastHead)
    margins = None if head is None else head.margins
    return None if margins is None or not margins.any() else margins.cpu().numpy()


def _parts(origins: Origins, size: int) -> Iterator[Origins]:
    series, ends = origins
    for start in range(0, len(series), size):
        yield series[start : start + size], ends[start : start + size]
