"""What a forecaster says of a value: a number, some of its quantiles, or a distribution; and what that costs when the
value comes.

point      one number; squared or absolute error
quantiles  one number for each level; pinball loss (Koenker & Bassett 1978). Lines that cross are sorted when asked
gauss      mean and deviation; negative log likelihood
student    the same with heavier tails: also the degrees of freedom, above 2
bins       a chance for each of some intervals, as many as hold equal shares of a normal distribution; cross-entropy

Whatever it is, it has a best guess, quantiles, and draws: a draw is the quantile of an even random number.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.layers.linear import Linear

_LEAST = 1e-4  # of a deviation, in scaled units: a value that is known exactly must not end the learning
_HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)


class Output(ABC):
    """Parameters (..., size) of values (...)."""

    size: int
    spreads: bool = True  # it says how sure it is

    @abstractmethod
    def loss(self, said: Tensor, values: Tensor) -> Tensor:
        """Of each value."""

    @abstractmethod
    def guess(self, said: Tensor) -> Tensor:
        """The best guess of each value."""

    @abstractmethod
    def at(self, said: Tensor, chances: Tensor) -> Tensor:
        """The quantile of each value at a level of its own."""

    def quantiles(self, said: Tensor, levels: Sequence[float]) -> Tensor:
        """(..., levels), in ascending order."""
        return torch.stack([self.at(said, torch.full_like(said[..., 0], level)) for level in levels], dim=-1)


class Point(Output):
    size = 1
    spreads = False

    def __init__(self, error: str = "squared") -> None:
        self.squared = error == "squared"

    def loss(self, said: Tensor, values: Tensor) -> Tensor:
        error = said[..., 0] - values
        return error.square() if self.squared else error.abs()

    def guess(self, said: Tensor) -> Tensor:
        return said[..., 0]

    def at(self, said: Tensor, chances: Tensor) -> Tensor:
        return said[..., 0]


class Quantiles(Output):
    def __init__(self, levels: Sequence[float]) -> None:
        self.levels, self.size = tuple(levels), len(levels)

    def loss(self, said: Tensor, values: Tensor) -> Tensor:
        return pinball(said, values, self.levels).mean(-1)

    def guess(self, said: Tensor) -> Tensor:
        return self.at(said, torch.full_like(said[..., 0], 0.5))

    def at(self, said: Tensor, chances: Tensor) -> Tensor:
        """Between two levels a straight line, beyond the last the line goes on."""
        ordered = said.sort(-1).values
        if self.size == 1:
            return ordered[..., 0]
        levels = torch.tensor(self.levels, dtype=said.dtype, device=said.device)
        right = torch.searchsorted(levels, chances.contiguous()).clamp(1, self.size - 1)
        low, high = levels[right - 1], levels[right]
        share = (chances - low) / (high - low)
        below, above = (ordered.gather(-1, place[..., None])[..., 0] for place in (right - 1, right))
        return below + share * (above - below)


class Gauss(Output):
    size = 2

    def loss(self, said: Tensor, values: Tensor) -> Tensor:
        deviation = _deviation(said[..., 1])
        return 0.5 * ((values - said[..., 0]) / deviation).square() + deviation.log() + _HALF_LOG_2_PI

    def guess(self, said: Tensor) -> Tensor:
        return said[..., 0]

    def at(self, said: Tensor, chances: Tensor) -> Tensor:
        found: Tensor = said[..., 0] + _deviation(said[..., 1]) * torch.special.ndtri(chances)
        return found


class Student(Output):
    size = 3

    def loss(self, said: Tensor, values: Tensor) -> Tensor:
        spread, freedom = _deviation(said[..., 1]), _freedom(said[..., 2])
        z = (values - said[..., 0]) / spread
        scale = torch.lgamma(freedom / 2) - torch.lgamma((freedom + 1) / 2) + 0.5 * (freedom * math.pi).log()
        return scale + spread.log() + 0.5 * (freedom + 1) * torch.log1p(z.square() / freedom)

    def guess(self, said: Tensor) -> Tensor:
        return said[..., 0]

    def at(self, said: Tensor, chances: Tensor) -> Tensor:
        """Not for learning: it has no gradient in the degrees of freedom."""
        from scipy.special import stdtrit

        freedom = _freedom(said[..., 2]).detach().cpu().double().numpy()
        z = torch.from_numpy(stdtrit(freedom, chances.detach().cpu().double().numpy()))
        return said[..., 0] + _deviation(said[..., 1]) * z.to(said)


class Bins(Output):
    """A value as one of so many tokens, which a model that counts can read too."""

    shape = (1, 1)  # of what such a model says at each position: one step of one target

    def __init__(self, count: int) -> None:
        self.size = count
        shares = torch.arange(count + 1, dtype=torch.float64) / count
        shares[0], shares[-1] = 0.05 / count, 1 - 0.05 / count  # the outermost have an end too
        self.bounds = torch.special.ndtri(shares)
        self.middles = torch.special.ndtri((torch.arange(count, dtype=torch.float64) + 0.5) / count)

    def tokens(self, values: Tensor) -> Tensor:
        """Which interval each value lies in; the outermost hold all that lies beyond."""
        return torch.bucketize(values.contiguous(), self.bounds[1:-1].to(values))

    def loss(self, said: Tensor, values: Tensor) -> Tensor:
        chances = said.log_softmax(-1)
        return -chances.gather(-1, self.tokens(values)[..., None])[..., 0]

    def guess(self, said: Tensor) -> Tensor:
        found: Tensor = said.softmax(-1) @ self.middles.to(said)
        return found

    def at(self, said: Tensor, chances: Tensor) -> Tensor:
        """Within an interval all values are as likely."""
        upper = said.softmax(-1).cumsum(-1)
        place = torch.searchsorted(upper, chances[..., None].contiguous()).clamp(max=self.size - 1)  # (..., 1)
        above = upper.gather(-1, place)[..., 0]
        below = torch.where(place[..., 0] > 0, upper.gather(-1, (place - 1).clamp(min=0))[..., 0], 0.0)
        share = ((chances - below) / (above - below).clamp(min=1e-9)).clamp(0, 1)
        low, high = (self.bounds.to(said)[place[..., 0] + n] for n in (0, 1))
        found: Tensor = low + share * (high - low)
        return found


class ForecastHead(nn.Module):
    """(..., width) -> (..., block, targets, size): for each of the next points what is said of it.

    `margins`: how far what came lay from the guesses, (steps, variables, levels), once that has been measured, before
    that 0; None where the guesses say themselves how sure they are.
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


def pinball(said: Tensor, values: Tensor, levels: Sequence[float]) -> Tensor:
    """(..., levels): what misses upwards weighs the level, what misses downwards the rest."""
    error = values[..., None] - said
    weight = torch.tensor(levels, dtype=said.dtype, device=said.device)
    return torch.maximum(weight * error, (weight - 1) * error)


def _deviation(raw: Tensor) -> Tensor:
    return F.softplus(raw) + _LEAST


def _freedom(raw: Tensor) -> Tensor:
    return 2.0 + F.softplus(raw) + _LEAST
