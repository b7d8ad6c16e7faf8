"""Output distributions of a forecaster, their losses, point forecasts, quantiles and samples.

point      a point forecast; squared or absolute error
quantiles  one value per level; pinball loss (Koenker & Bassett 1978). Crossing quantiles are sorted when read
gauss      mean and standard deviation; negative log-likelihood
student    location, scale and degrees of freedom (above 2), for heavier tails; negative log-likelihood
bins       logits of intervals that are equally likely under a normal distribution; cross-entropy

A sample is the quantile at a level drawn uniformly from (0, 1).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.layers.linear import Linear

_LEAST_SCALE = 1e-4  # in scaled units: keeps the likelihood finite where values are predicted exactly
_HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)


class Output(ABC):
    """A distribution of values (...), given its parameters (..., size)."""

    size: int
    probabilistic: bool = True  # has quantiles and samples, not only a point forecast

    @abstractmethod
    def loss(self, parameters: Tensor, values: Tensor) -> Tensor:
        """The loss of each value."""

    @abstractmethod
    def guess(self, parameters: Tensor) -> Tensor:
        """The point forecast of each value."""

    @abstractmethod
    def at(self, parameters: Tensor, probabilities: Tensor) -> Tensor:
        """The quantile of each value, at a probability of its own."""

    def quantiles(self, parameters: Tensor, levels: Sequence[float]) -> Tensor:
        """(..., levels), in ascending order."""
        like = parameters[..., 0]
        return torch.stack([self.at(parameters, torch.full_like(like, level)) for level in levels], dim=-1)


class Point(Output):
    size = 1
    probabilistic = False

    def __init__(self, error: str = "squared") -> None:
        self.squared = error == "squared"

    def loss(self, parameters: Tensor, values: Tensor) -> Tensor:
        error = parameters[..., 0] - values
        return error.square() if self.squared else error.abs()

    def guess(self, parameters: Tensor) -> Tensor:
        return parameters[..., 0]

    def at(self, parameters: Tensor, probabilities: Tensor) -> Tensor:
        return parameters[..., 0]


class Quantiles(Output):
    def __init__(self, levels: Sequence[float]) -> None:
        self.levels, self.size = tuple(levels), len(levels)

    def loss(self, parameters: Tensor, values: Tensor) -> Tensor:
        return pinball(parameters, values, self.levels).mean(-1)

    def guess(self, parameters: Tensor) -> Tensor:
        return self.at(parameters, torch.full_like(parameters[..., 0], 0.5))

    def at(self, parameters: Tensor, probabilities: Tensor) -> Tensor:
        """Linear interpolation between levels, linear extrapolation beyond them."""
        ordered = parameters.sort(-1).values
        if self.size == 1:
            return ordered[..., 0]
        levels = torch.tensor(self.levels, dtype=parameters.dtype, device=parameters.device)
        right = torch.searchsorted(levels, probabilities.contiguous()).clamp(1, self.size - 1)
        low, high = levels[right - 1], levels[right]
        share = (probabilities - low) / (high - low)
        below, above = (ordered.gather(-1, place[..., None])[..., 0] for place in (right - 1, right))
        return below + share * (above - below)


class Gauss(Output):
    size = 2

    def loss(self, parameters: Tensor, values: Tensor) -> Tensor:
        deviation = _deviation(parameters[..., 1])
        return 0.5 * ((values - parameters[..., 0]) / deviation).square() + deviation.log() + _HALF_LOG_2_PI

    def guess(self, parameters: Tensor) -> Tensor:
        return parameters[..., 0]

    def at(self, parameters: Tensor, probabilities: Tensor) -> Tensor:
        found: Tensor = parameters[..., 0] + _deviation(parameters[..., 1]) * torch.special.ndtri(probabilities)
        return found


class Student(Output):
    size = 3

    def loss(self, parameters: Tensor, values: Tensor) -> Tensor:
        spread, freedom = _deviation(parameters[..., 1]), _freedom(parameters[..., 2])
        z = (values - parameters[..., 0]) / spread
        scale = torch.lgamma(freedom / 2) - torch.lgamma((freedom + 1) / 2) + 0.5 * (freedom * math.pi).log()
        return scale + spread.log() + 0.5 * (freedom + 1) * torch.log1p(z.square() / freedom)

    def guess(self, parameters: Tensor) -> Tensor:
        return parameters[..., 0]

    def at(self, parameters: Tensor, probabilities: Tensor) -> Tensor:
        """Not differentiable in the degrees of freedom, so not for training."""
        from scipy.special import stdtrit

        freedom = _freedom(parameters[..., 2]).detach().cpu().double().numpy()
        z = torch.from_numpy(stdtrit(freedom, probabilities.detach().cpu().double().numpy()))
        return parameters[..., 0] + _deviation(parameters[..., 1]) * z.to(parameters)


class Bins(Output):
    """Values as tokens, which count-based models can read too."""

    shape = (1, 1)  # of such a model's output at each position: one step of one target

    def __init__(self, count: int) -> None:
        self.size = count
        shares = torch.arange(count + 1, dtype=torch.float64) / count
        shares[0], shares[-1] = 0.05 / count, 1 - 0.05 / count  # the outermost bins are bounded too
        self.bounds = torch.special.ndtri(shares)
        self.middles = torch.special.ndtri((torch.arange(count, dtype=torch.float64) + 0.5) / count)

    def tokens(self, values: Tensor) -> Tensor:
        """The interval of each value; the outermost also take everything beyond them."""
        return torch.bucketize(values.contiguous(), self.bounds[1:-1].to(values))

    def loss(self, parameters: Tensor, values: Tensor) -> Tensor:
        log_probabilities = parameters.log_softmax(-1)
        return -log_probabilities.gather(-1, self.tokens(values)[..., None])[..., 0]

    def guess(self, parameters: Tensor) -> Tensor:
        found: Tensor = parameters.softmax(-1) @ self.middles.to(parameters)
        return found

    def at(self, parameters: Tensor, probabilities: Tensor) -> Tensor:
        """Values are uniform within an interval."""
        upper = parameters.softmax(-1).cumsum(-1)
        place = torch.searchsorted(upper, probabilities[..., None].contiguous()).clamp(max=self.size - 1)  # (..., 1)
        above = upper.gather(-1, place)[..., 0]
        below = torch.where(place[..., 0] > 0, upper.gather(-1, (place - 1).clamp(min=0))[..., 0], 0.0)
        share = ((probabilities - below) / (above - below).clamp(min=1e-9)).clamp(0, 1)
        low, high = (self.bounds.to(parameters)[place[..., 0] + n] for n in (0, 1))
        found: Tensor = low + share * (high - low)
        return found


class ForecastHead(nn.Module):
    """(..., width) -> (..., block, targets, size): output parameters for each of the next points.

    `margins`: quantiles of the errors of point forecasts, (steps, targets, levels), or the factors of calibrated
    intervals (intervals.py); 0 until they have been measured. None where the output is a distribution, not calibrated.
    """

    margins: Tensor | None

    def __init__(
        self, width: int, block: int, targets: int, size: int, margins: tuple[int, int, int] | None = None
    ) -> None:
        super().__init__()
        self.shape = block, targets, size
        self.out = Linear(width, block * targets * size)
        self.register_buffer("margins", None if margins is None else torch.zeros(margins))

    def forward(self, hidden: Tensor) -> Tensor:
        found: Tensor = self.out(hidden).unflatten(-1, self.shape)
        return found


def make_output(kind: str, error: str, levels: Sequence[float], bins: int) -> Output:
    kinds: dict[str, Callable[[], Output]] = {
        "point": lambda: Point(error),
        "quantiles": lambda: Quantiles(levels),
        "gauss": Gauss,
        "student": Student,
        "bins": lambda: Bins(bins),
    }
    return kinds[kind]()


def pinball(quantiles: Tensor, values: Tensor, levels: Sequence[float]) -> Tensor:
    """(..., levels): a quantile that is too low costs `level` per unit, one that is too high `1 - level`."""
    error = values[..., None] - quantiles
    weight = torch.tensor(levels, dtype=quantiles.dtype, device=quantiles.device)
    return torch.maximum(weight * error, (weight - 1) * error)


def _deviation(raw: Tensor) -> Tensor:
    return F.softplus(raw) + _LEAST_SCALE


def _freedom(raw: Tensor) -> Tensor:
    return 2.0 + F.softplus(raw) + _LEAST_SCALE
