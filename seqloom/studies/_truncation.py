"""Where gradients are cut in back-propagation through time, for the study of truncation.

Every scheme is a factor per boundary between two steps, by which the gradient that flows back there is multiplied: 1
lets it through, 0 cuts it. The state itself is always handed on, so predictions do not depend on the scheme. As in
`task.truncation`, random cuts fall after chunks of a quarter of the mean length, each with probability 1/4.

T steps, B rows, N draws, P parameters.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise, product

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy

from seqloom.core.network import Network
from seqloom.core.state import detach_state, map_state, scale_gradient
from seqloom.studies._training import clipped

RATE, CLIP = 1e-2, 1.0  # of Adam, and of the norm of the whole gradient
PARTS = 4  # chunks that a random piece has on average
KEEP = 1 - 1 / PARTS  # probability that the gradient flows on
SCHEMES = {
    "full": ("full", "完整"),
    "regular": ("regular", "常规截断"),
    "random": ("random", "随机截断"),
    "reweighted": ("re-weighted random", "加权随机截断"),
}

Batches = Callable[[torch.Generator], tuple[Tensor, Tensor]]  # inputs, targets


def factors(scheme: str, steps: int, length: int, draw: torch.Generator) -> Tensor:
    """(T - 1,)"""
    found = torch.ones(steps - 1)
    if scheme == "regular":
        found[length - 1 :: length] = 0.0
    elif scheme != "full":
        chunk = length // PARTS
        boundaries = found[chunk - 1 :: chunk]
        kept = (torch.rand(len(boundaries), generator=draw) < KEEP).float()
        found[chunk - 1 :: chunk] = kept / KEEP if scheme == "reweighted" else kept
    return found


def every_pattern(steps: int) -> tuple[Tensor, Tensor]:
    """Cuts or no cut after each step: all factors (N, T - 1), not re-weighted, and the probability of each."""
    patterns = torch.tensor(list(product((0.0, 1.0), repeat=steps - 1)), dtype=torch.double)
    return patterns, (KEEP * patterns + (1 - KEEP) * (1 - patterns)).prod(dim=1)


class _Stepwise(nn.Module):
    """The loss of a network that reads step by step, with the gradient multiplied at every boundary."""

    def __init__(self, model: Network) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Tensor, targets: Tensor, given: Tensor) -> Tensor:
        state, hidden = None, []
        for t, x in enumerate(self.model.embed(inputs).split(1, dim=1)):
            if t:
                factor = given[t - 1]
                state = map_state(lambda h, w=factor: w * h + (1 - w) * h.detach(), state)  # type: ignore[misc]
            h, state = self.model.backbone(x, state)
            hidden.append(h)
        return cross_entropy(self.model.head(torch.cat(hidden, dim=1)).flatten(0, 1), targets.flatten())


def gradients(model: Network, inputs: Tensor, targets: Tensor, given: Tensor) -> Tensor:
    """Of the recurrent layer's parameters, for each row of factors: (N, P), in double precision."""
    model = model.double()
    read, prefix = _Stepwise(model), "model.backbone."
    weights = {name: p.detach() for name, p in read.named_parameters() if name.startswith(prefix)}

    def one(parameters: dict[str, Tensor], row: Tensor) -> Tensor:
        found: Tensor = functional_call(read, parameters, (inputs, targets, row))
        return found

    found = vmap(grad(one), in_dims=(None, 0), chunk_size=64)(weights, given.double())
    return torch.cat([part.flatten(1) for part in found.values()], dim=1).detach()


def full_gradient(model: Network, inputs: Tensor, targets: Tensor) -> Tensor:
    """The same without any cut, (P,), by reading the sequence at once."""
    model = model.double()
    loss = cross_entropy(model(inputs)[0].flatten(0, 1), targets.flatten())
    return torch.cat([part.flatten() for part in torch.autograd.grad(loss, list(model.backbone.parameters()))])


def against(full: Tensor, drawn: Tensor) -> tuple[float, float, float, float]:
    """Drawn gradients (N, P) relative to the full one: the mean along it (1: all of it), the squared bias (without the
    variance that the mean of few draws still has; it may come out negative), the variance, the mean squared error."""
    off = (drawn - full) / full.norm()
    mean, count = off.mean(dim=0), len(off)
    variance = float((off - mean).square().sum()) / (count - 1) if count > 1 else 0.0
    along = 1 + float(mean @ full / full.norm())
    return along, float(mean.square().sum()) - variance / count, variance, float(off.square().sum()) / count


def descend(model: Network, inputs: Tensor, targets: Tensor, given: Tensor) -> list[int]:
    """Gradients of the mean loss, piece by piece as in training: whatever lies before a cut is released. Returns the
    bytes of activations that each piece held. Targets of -100 are ignored in the loss."""
    bounds = [0, *((given != 1).nonzero()[:, 0] + 1).tolist(), inputs.size(1)]
    count = int((targets >= 0).sum())
    state, loss, held = None, torch.zeros(()), Held(model)
    for start, end in pairwise(bounds):
        factor = float(given[start - 1]) if start else 1.0
        if factor == 0.0:
            held.release(loss)
            state, loss = detach_state(state), torch.zeros(())
        with held.watch:
            state = scale_gradient(state, factor) if factor not in (0.0, 1.0) else state
            logits, state = model(inputs[:, start:end], state)
            lost = cross_entropy(logits.flatten(0, 1), targets[:, start:end].flatten(), reduction="sum")
            loss = loss + lost / count
    held.release(loss)
    return held.pieces


def train(model: Network, batch: Batches, scheme: str, length: int, updates: int, seed: int) -> tuple[float, float]:
    """One update per sequence, whatever the cuts; returns CPU seconds per update, and the bytes that the largest piece
    of an update held, on average."""
    data, cuts = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed + 1)
    parameters = list(model.parameters())
    optimizer = torch.optim.Adam(parameters, lr=RATE)
    held, started = [], time.process_time()
    for _ in range(updates):
        inputs, targets = batch(data)
        optimizer.zero_grad()
        held.append(max(descend(model, inputs, targets, factors(scheme, inputs.size(1), length, cuts))))
        clipped(parameters, CLIP)
        optimizer.step()
    return (time.process_time() - started) / updates, float(np.mean(held))


class Held:
    """Counts the bytes that the graph of a piece keeps for its backward pass, without the parameters."""

    def __init__(self, model: nn.Module) -> None:
        self.mine = {p.untyped_storage().data_ptr() for p in model.parameters()}
        self.pieces: list[int] = []
        self.seen: dict[int, int] = {}
        self.watch = torch.autograd.graph.saved_tensors_hooks(self._pack, lambda x: x)

    def _pack(self, x: Tensor) -> Tensor:
        storage = x.untyped_storage()
        if storage.data_ptr() not in self.mine:
            self.seen[storage.data_ptr()] = storage.nbytes()
        return x

    def release(self, loss: Tensor) -> None:
        if loss.requires_grad:
            loss.backward()
        self.pieces.append(sum(self.seen.values()))
        self.seen = {}
