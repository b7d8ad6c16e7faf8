"""What changes with scale: curves of score against budget, what they predict, and where two of them cross.

    loss(n) = E + exp(a - alpha x + d(x)),   x = log(n / full budget)

a power law with an offset E, whose exponent may drift: d is Brownian motion integrated once, from 0 at the full budget,
with a standard deviation of kappa * alpha per e-fold in the exponent. Without d, four points near a power law would
predict ten times the budget far too surely (curves bend: Caballero et al. 2023). Least squares with three parameters
and four points is no better, so E, alpha, kappa and the standard deviation of single runs are weighted on a grid by
their posterior, and a, which is linear given the rest, is integrated out. Scores of which higher is better are fitted
as their distance from the highest possible one.

Where training data is read again, a model begins to memorise it, and the power law may end in overfitting that its
first part does not show; the training loss does. So half of the draws follow another curve beyond the full budget: the
training loss as such a power law, plus the gap to the test loss, which grows by the same amount with every doubling.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

TIMES = (2, 4, 10)  # multiples of the budget that are predicted
CONFIDENCE = 0.95
SURE = 0.9  # probability from which on a sentence says who is ahead
_OFFSETS = (np.arange(32) + 0.5) / 32  # E as a share of the lowest loss
_EXPONENTS = np.geomspace(0.02, 3.0, 24)
_MEDIAN, _WIDTH = 0.35, 0.9  # of the log-normal prior of the exponent
_DRIFTS = {0.03: 0.4, 0.1: 0.25, 0.25: 0.15, 0.5: 0.1, 1.0: 0.1}  # kappa: prior probability
_NOISES = np.geomspace(1 / 3, 3, 5)  # times the first guess of the standard deviation of a run
_USUAL_NOISE, _SPREAD = 0.004, 1.0  # its log-normal prior, relative to the loss
_DRAWS = 4000


@dataclass(frozen=True)
class Rung:
    at: float  # budget
    scores: Sequence[float]  # one per seed
    training: Sequence[float] = ()  # training losses at the end of these runs; empty: not comparable with the scores


@dataclass(frozen=True)
class Prediction:
    at: float
    middle: float
    low: float
    high: float


@dataclass(frozen=True)
class Crossing:
    """Who is ahead between the full budget and the largest predicted one, and where that changes."""

    verdict: Literal["stays", "crosses", "passed", "unclear"]
    ahead: Literal["first", "second"] | None  # at the largest budget
    now: float  # probability that the first one is ahead at the full budget
    later: float  # and at the largest one
    at: float | None = None  # where the leader changes, with an interval
    low: float | None = None
    high: float | None = None


class Curve:
    """The posterior of one curve, as draws."""

    def __init__(
        self, rungs: Sequence[Rung], ceiling: float | None = None, seed: int = 0, once: float | None = None
    ) -> None:
        """`ceiling`: the highest possible score, where higher is better; `once`: beyond this budget training data is
        read again (None: never)."""
        self.rungs, self.ceiling = sorted(rungs, key=lambda rung: rung.at), ceiling
        self.full = self.rungs[-1].at
        self.x = np.log([rung.at / self.full for rung in self.rungs])
        losses = [self._turned(np.asarray(rung.scores, float)) for rung in self.rungs]
        self.means, self.counts = np.array([loss.mean() for loss in losses]), np.array([len(loss) for loss in losses])
        self.squares = float(sum(((loss - loss.mean()) ** 2).sum() for loss in losses))
        self.random = np.random.default_rng(seed)
        self.problem = self._problem()
        self.once, self.memory = once, None
        if not self.problem:
            self._weigh()
            self.memory = self._memorising(seed)

    def _memorising(self, seed: int) -> _Memorising | None:
        """The other curve, where data is repeated and training losses are known."""
        if self.once is None or self.ceiling is not None or not all(len(rung.training) for rung in self.rungs):
            return None
        training = Curve([Rung(rung.at, rung.training) for rung in self.rungs], None, seed)
        if training.problem:
            return None
        return _Memorising(training, self.means - training.means, self.x)

    def _turned(self, values: np.ndarray) -> np.ndarray:
        """Scores as losses, or losses as scores."""
        return values if self.ceiling is None else self.ceiling - values

    def _problem(self) -> Literal["", "few", "worse", "perfect"]:
        """Why no curve is fitted: too few rungs, a score that gets worse, or one at its limit."""
        if len(self.means) < 3 or not np.isfinite(self.means).all():
            return "few"
        if self.means.min() <= 0:
            return "perfect"
        single = math.sqrt(self.squares / self._freedom) if self._freedom else _USUAL_NOISE * self.means.min()
        noise = 3 * max(single, 1e-3 * self.means.min()) * math.sqrt(2 / self.counts.min())
        return "worse" if self.means[-1] > self.means.min() + noise or self.means[-1] >= self.means[0] else ""

    @property
    def _freedom(self) -> float:
        """Degrees of freedom of the noise; halved, because the rungs of a seed share most of their training."""
        return float(np.sum(self.counts - 1)) / 2

    def _weigh(self) -> None:
        """Weight every point of the grid and draw from it."""
        usual = _USUAL_NOISE * self.means.mean()
        guess = math.sqrt((self.squares / 2 + usual**2) / (self._freedom + 1))
        offset, alpha, kappa, sigma = (
            axis.ravel() for axis in np.meshgrid(
                _OFFSETS * self.means.min(), _EXPONENTS, np.array(list(_DRIFTS)), guess * _NOISES, indexing="ij")
        )  # fmt: skip
        above = self.means - offset[:, None]  # (grid, rungs)
        target = np.log(above) + alpha[:, None] * self.x
        covariance = (kappa * alpha)[:, None, None] ** 2 * _integrated(-self.x, -self.x)
        covariance += np.eye(len(self.x)) * ((sigma[:, None] / above) ** 2 / self.counts)[:, None, :]
        inverse = np.linalg.inv(covariance)
        precision = inverse.sum((1, 2))
        level = (inverse.sum(1) * target).sum(1) / precision
        rest = target - level[:, None]
        misfit = np.einsum("gi,gij,gj->g", rest, inverse, rest)
        weight = 0.5 * (np.linalg.slogdet(inverse)[1] - np.log(precision) - misfit) - np.log(above).sum(1)
        weight -= 0.5 * (np.log(alpha / _MEDIAN) / _WIDTH) ** 2  # the grid is even in log alpha and in log sigma
        weight -= 0.5 * (np.log(sigma / usual) / _SPREAD) ** 2
        weight -= 2 * self._freedom * np.log(sigma) / 2 + self.squares / 2 / (2 * sigma**2)
        weight += np.log(np.array([_DRIFTS[k] for k in kappa]))
        weight = np.exp(weight - weight.max())
        chosen = self.random.choice(len(weight), _DRAWS, p=weight / weight.sum())
        self.offset, self.alpha, self.sigma = offset[chosen], alpha[chosen], sigma[chosen]
        self.tau = kappa[chosen] * self.alpha
        self.level = level[chosen] + self.random.standard_normal(_DRAWS) / np.sqrt(precision[chosen])
        self.pull = (inverse[chosen] * rest[chosen][:, None, :]).sum(2)  # of the rungs on the drift between them

    def paths(self, budgets: Sequence[float] | np.ndarray) -> np.ndarray:
        """Expected losses at ascending budgets, one row per draw: (draws, budgets)."""
        x = np.log(np.asarray(budgets, float) / self.full)
        inside, beyond = x[x <= 0], x[x > 0]
        drift = np.zeros((_DRAWS, len(x)))
        if len(inside):
            drift[:, : len(inside)] = self.tau[:, None] ** 2 * (self.pull @ _integrated(-self.x, -inside))
        if len(beyond):
            root = np.linalg.cholesky(_integrated(beyond, beyond) + 1e-12 * np.eye(len(beyond)))
            noise = self.random.standard_normal((_DRAWS, len(beyond))) @ root.T
            drift[:, len(inside) :] = self.tau[:, None] * noise
        power = np.minimum(self.level[:, None] - self.alpha[:, None] * x + drift, 50.0)
        found: np.ndarray = self.offset[:, None] + np.exp(power)
        if self.memory and self.once is not None:
            again = np.asarray(budgets, float) > max(self.once, self.full)
            found[::2, again] = self.memory.paths(budgets)[::2, again]
        return found

    def band(self, budgets: Sequence[float], single: bool = False) -> list[Prediction]:
        """The expected score at each budget; `single`: with an interval for one more run, not for the expectation."""
        losses = self.paths(budgets)
        if single:
            losses = losses + self.sigma[:, None] * self.random.standard_normal(losses.shape)
        scores = self._turned(np.maximum(losses, 0.0))
        tail = (1 - CONFIDENCE) / 2
        low, middle, high = np.quantile(scores, [tail, 0.5, 1 - tail], axis=0)
        columns = zip(budgets, middle, low, high, strict=True)
        return [Prediction(float(at), float(m), float(a), float(b)) for at, m, a, b in columns]

    def predict(self, times: Sequence[float] = TIMES) -> list[Prediction]:
        """The score of one more run at multiples of the full budget."""
        return self.band([factor * self.full for factor in times], single=True)

    def parameters(self) -> dict[str, list[float]]:
        """Medians and intervals of the offset (as a score) and of the exponent."""
        tail = (1 - CONFIDENCE) / 2
        offsets = self._turned(self.offset)
        return {
            name: [float(value) for value in np.quantile(draws, [0.5, tail, 1 - tail])]
            for name, draws in (("offset", offsets), ("exponent", self.alpha))
        }


class _Memorising:
    """Training loss plus gap. The gap is a straight line over the logarithm of the budget, by least squares; its draws
    have the uncertainty of a line through so few points."""

    def __init__(self, training: Curve, gaps: np.ndarray, x: np.ndarray) -> None:
        self.training = training
        design = np.stack([np.ones_like(x), x], axis=1)
        inverse = np.linalg.inv(design.T @ design)
        line, freedom = inverse @ design.T @ gaps, len(x) - 2
        squares = float(((gaps - design @ line) ** 2).sum()) + (_USUAL_NOISE * training.means.mean()) ** 2
        deviations = np.sqrt(squares / training.random.chisquare(freedom, _DRAWS))
        noise = training.random.standard_normal((_DRAWS, 2)) @ np.linalg.cholesky(inverse).T
        self.lines = line + deviations[:, None] * noise  # (draws, 2)

    def paths(self, budgets: Sequence[float] | np.ndarray) -> np.ndarray:
        x = np.log(np.asarray(budgets, float) / self.training.full)
        found: np.ndarray = self.training.paths(budgets) + self.lines[:, :1] + self.lines[:, 1:] * x
        return found


def crossing(first: Curve, second: Curve) -> Crossing:
    """Where the order of two curves over the same budgets changes, up to the largest prediction."""
    start, full, end = first.rungs[0].at, first.full, first.full * TIMES[-1]
    budgets = np.unique(np.concatenate([np.geomspace(start, full, 15), np.geomspace(full, end, 25)]))
    ahead = first.paths(budgets) < second.paths(budgets)  # (draws, budgets)
    here = int(np.searchsorted(budgets, full * (1 - 1e-9)))
    now, later, before = (float(ahead[:, place].mean()) for place in (here, -1, 0))
    if max(later, 1 - later) < SURE or max(now, 1 - now) < SURE:
        return Crossing("unclear", None, now, later)
    leads: Literal["first", "second"] = "first" if later > 0.5 else "second"
    if (now > 0.5) != (later > 0.5):
        return Crossing("crosses", leads, now, later, *_last_change(ahead[:, here:], budgets[here:]))
    if max(before, 1 - before) >= SURE and (before > 0.5) != (now > 0.5):
        return Crossing("passed", leads, now, later, *_last_change(ahead[:, : here + 1], budgets[: here + 1]))
    return Crossing("stays", leads, now, later)


def _last_change(ahead: np.ndarray, budgets: np.ndarray) -> tuple[float, float, float]:
    """Median and interval of the budget of the last change of the leader, over the draws in which there is one."""
    changes = ahead[:, 1:] != ahead[:, :-1]
    changed = changes[changes.any(1)]
    last = changed.shape[1] - 1 - np.argmax(changed[:, ::-1], axis=1)
    places = np.sqrt(budgets[last] * budgets[last + 1])
    middle, low, high = np.quantile(places, [0.5, (1 - SURE) / 2, (1 + SURE) / 2])
    return float(middle), float(low), float(high)


def _integrated(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Covariance of Brownian motion integrated once, at times a and b >= 0: (a, b)."""
    short, long = np.minimum(a[:, None], b), np.maximum(a[:, None], b)
    found: np.ndarray = short**2 * (3 * long - short) / 6
    return found
