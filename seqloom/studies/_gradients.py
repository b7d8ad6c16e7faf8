"""The recurrent matrix of an RNN and how gradients travel back through it, for studies of vanishing and exploding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from seqloom.core.backbone import Backbone
from seqloom.core.state import State, flatten_state, map_state
from seqloom.pages.plots import Curve
from seqloom.pages.words import Pair
from seqloom.studies._study import curve


def recurrent_matrix(model: nn.Module) -> nn.Parameter:
    return next(weights for name, weights in model.named_parameters() if name.endswith("weight_h"))


@torch.no_grad()
def spectral_radius(matrix: Tensor) -> float:
    return float(torch.linalg.eigvals(matrix.double()).abs().max())


@torch.no_grad()
def set_radius(model: nn.Module, radius: float) -> None:
    """Scale the recurrent matrix, so that its largest eigenvalue has this modulus."""
    matrix = recurrent_matrix(model)
    matrix.mul_(radius / spectral_radius(matrix))


def norms_by_lag(model: Backbone, x: Tensor, draw: torch.Generator) -> np.ndarray:
    """Norm of the gradient of one random direction of the last state, with respect to the states 0, 1, 2, ... steps
    before; at lag 0 it is 1. Means over rows of x (B, T, inputs), on the logarithmic scale."""
    states: list[Tensor] = []
    state: State = None
    for x_t in x.split(1, dim=1):
        _, state = model(x_t, state)
        state = map_state(lambda h: h if h.requires_grad else h.requires_grad_(), state)
        states.append(next(iter(flatten_state(state).values())))
    direction = nn.functional.normalize(torch.randn(states[-1].shape, generator=draw, dtype=x.dtype), dim=-1)
    found = torch.autograd.grad((states[-1] * direction).sum(), states)
    return torch.stack(found).flip(0).norm(dim=-1).log().mean(dim=1).exp().numpy()


def geometric(name: Pair, x: Sequence[float], logs: np.ndarray) -> Curve:
    """A curve of geometric means, with the band of their intervals, from logarithms: for each x those of all seeds."""
    found = curve(name, x, logs)
    y, low, high = (np.exp(values).tolist() for values in (found.y, found.low, found.high))
    return Curve(name, found.x, y, low, high)
