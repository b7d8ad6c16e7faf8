"""Least squares from sums of products, with an L2 penalty (ridge regression, Hoerl & Kennard 1970), and the parts of a
network that reads and writes plain numbers.

Only the sums are kept, so a problem of any length fits into memory; the error on data left out follows from sums too.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from seqloom.core.errors import UserError
from seqloom.core.task import AnyTask

RIDGES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # candidates, relative to the mean square of an input


class Moments:
    """Sums of products of inputs (with a constant 1 at the end) and targets, in double precision."""

    def __init__(self, inputs: int, outputs: int) -> None:
        self.gram, self.moment = (torch.zeros(inputs + 1, n, dtype=torch.float64) for n in (inputs + 1, outputs))
        self.squares, self.count = 0.0, 0

    def add(self, x: Tensor, y: Tensor, weights: Tensor | None = None) -> None:
        """Examples (n, inputs) and targets (n, outputs); those with a missing target are skipped. `weights`: (n,)"""
        complete = y.isfinite().all(1)
        x, y = x[complete].double(), y[complete].double()
        x = torch.cat((x, x.new_ones(len(x), 1)), dim=1)
        if weights is not None:
            root = weights[complete].double().sqrt()[:, None]
            x, y = x * root, y * root
        self.gram.addmm_(x.T, x)
        self.moment.addmm_(x.T, y)
        self.squares += float(y.square().sum())
        self.count += len(x)

    def solve(self, ridge: float) -> Tensor:
        """(inputs + 1, outputs); the penalty `ridge` is relative to the mean squared error, the intercept has none."""
        self.gram.diagonal()[:-1].add_(ridge * self.count)
        found: Tensor = torch.linalg.lstsq(self.gram, self.moment, rcond=1e-12, driver="gelsd").solution
        return found

    def error(self, solution: Tensor) -> float:
        """Sum of squared errors of a solution on these examples."""
        fitted = (solution * (self.gram @ solution)).sum() - 2 * (solution * self.moment).sum()
        return float(fitted) + self.squares

    @property
    def input_square(self) -> float:
        """Mean square of an input."""
        return float(self.gram.diagonal()[:-1].mean()) / max(1, self.count)


def total(parts: Sequence[Moments]) -> Moments:
    """The moments of all parts together."""
    whole = Moments(len(parts[0].gram) - 1, parts[0].moment.size(1))
    for part in parts:
        whole.gram += part.gram
        whole.moment += part.moment
        whole.squares += part.squares
        whole.count += part.count
    return whole


def best_ridge(parts: Sequence[Moments]) -> float:
    """Cross-validation: the penalty with the least squared error on each part, fitted on the others."""
    whole = total(parts)
    candidates = [ridge * whole.input_square for ridge in RIDGES]
    errors = [0.0] * len(candidates)
    for left_out in parts:
        rest = total([part for part in parts if part is not left_out])
        if not rest.count or not left_out.count:
            continue
        for n, solution in enumerate(_ridge_path(rest, candidates)):
            errors[n] += left_out.error(solution)
    return candidates[min(range(len(errors)), key=errors.__getitem__)]


def _ridge_path(moments: Moments, ridges: Sequence[float]) -> list[Tensor]:
    """Solutions for several penalties from one eigendecomposition, of the moments about the means."""
    count, mean = moments.count, moments.gram[:-1, -1] / moments.count
    target = moments.moment[-1] / count
    values, vectors = torch.linalg.eigh(moments.gram[:-1, :-1] - count * torch.outer(mean, mean))
    rotated = vectors.T @ (moments.moment[:-1] - count * torch.outer(mean, target))
    found = []
    for ridge in ridges:
        weights = vectors @ (rotated / (values.clamp(min=0) + ridge * count + 1e-300)[:, None])
        found.append(torch.cat((weights, (target - mean @ weights)[None])))
    return found


def number_sizes(task: AnyTask) -> tuple[int, int] | None:
    """How many numbers the task has per step as input, and as output; None: they are not numbers."""
    parts = [_linear(part) for part in (task.embed(1), task.head(1))]
    if None in parts:
        return None
    reads, writes = parts
    assert reads is not None and writes is not None
    return reads.in_features, writes.out_features


def need_number_sizes(task: AnyTask, option: str, way_out: str) -> tuple[int, int]:
    if (sizes := number_sizes(task)) is None:
        raise UserError(f"{option}: needs numeric inputs and outputs, which this task lacks; {way_out}")
    return sizes


def make_identity(part: nn.Module) -> None:
    """Replace the weights of the only linear layer with a fixed identity."""
    linear = _linear(part)
    assert linear is not None
    weight, bias = torch.eye(linear.out_features), torch.zeros(linear.out_features)
    del linear.weight, linear.bias
    linear.register_buffer("weight", weight)
    linear.register_buffer("bias", bias)


def _linear(part: nn.Module) -> nn.Linear | None:
    found = [module for module in part.modules() if isinstance(module, nn.Linear)]
    if len(found) != 1 or any(isinstance(module, nn.Embedding) for module in part.modules()):
        return None
    return found[0]
