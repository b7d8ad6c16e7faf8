"""Optimisers and learning-rate schedules: AdamW, SGD, and Muon for matrices with AdamW for the rest.

We implement Muon ourselves for two reasons, both measured: torch's version computes in bfloat16, which is slow on
CPUs, and it treats stacked matrices (q, k and v of attention) as one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, AdamW, Optimizer

from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json
from seqloom.train.settings import TrainConfig


class Muon(Optimizer):
    """Orthogonalised momentum (Jordan et al. 2024): every direction of a matrix is updated at the same rate.

    A parameter's `blocks` attribute is the number of matrices stacked in it, or a list of their row counts.
    """

    def __init__(self, params: Any, lr: float, momentum: float, weight_decay: float) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            alike: dict[tuple[int, ...], list[tuple[Tensor, Tensor]]] = defaultdict(list)
            for p in group["params"]:
                if p.grad is not None:
                    for part, blocks in _stacks(p, self._momentum(p, group["momentum"])):
                        alike[tuple(blocks.shape[1:])].append((part, blocks))
            for shape, members in alike.items():
                updates = orthogonal(torch.cat([blocks for _, blocks in members]))
                scale = math.sqrt(max(1, shape[0] / shape[1]))
                for (p, _), update in zip(members, updates.split([len(b) for _, b in members]), strict=True):
                    p.mul_(1 - group["lr"] * group["weight_decay"])
                    p.add_(update.flatten(0, 1), alpha=-group["lr"] * scale)

    def _momentum(self, p: nn.Parameter, momentum: float) -> Tensor:
        state = self.state[p]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(p)
        gradient: Any = p.grad
        return gradient.lerp(state["momentum_buffer"].lerp_(gradient, 1 - momentum), momentum)


def _stacks(p: nn.Parameter, update: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """The parts of a weight, each with its update as a stack of matrices; neighbours of equal size form one stack."""
    blocks = getattr(p, "blocks", 1)
    sizes = [len(p) // blocks] * blocks if isinstance(blocks, int) else blocks
    stacks = [(len(list(same)), rows) for rows, same in groupby(sizes)]
    lengths = [matrices * rows for matrices, rows in stacks]
    for (matrices, _), part, change in zip(stacks, p.split(lengths), update.split(lengths), strict=True):
        yield part, change.unflatten(0, (matrices, -1))


def orthogonal(matrices: Tensor, rounds: int = 5) -> Tensor:
    """Approximately the nearest orthogonal matrices, with all singular values near one (Newton-Schulz).

    x <- (a + b G + c G^2) x with G = x x^T. For long matrices the small factors are multiplied first and applied once.
    """
    tall = matrices.size(-2) > matrices.size(-1)
    x = matrices.mT if tall else matrices
    if x.is_cuda:
        x = x.bfloat16()
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    a, b, c = 3.4445, -4.7750, 2.0315
    if x.size(-1) < 2 * x.size(-2):
        for _ in range(rounds):
            gram = x @ x.mT
            x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    else:
        gram, factor = x @ x.mT, None
        for n in range(rounds):
            p = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
            p.diagonal(dim1=-2, dim2=-1).add_(a)
            factor = p if factor is None else p @ factor
            gram = p @ gram @ p if n < rounds - 1 else gram
        x = factor @ x
    return (x.mT if tall else x).to(matrices.dtype)


class Optimizers:
    """All optimisers of a run as one, with the learning-rate schedule and a state that can be saved."""

    def __init__(self, model: SequenceModel, config: TrainConfig) -> None:
        self.config = config
        self.names: dict[Any, str] = {p: name for name, p in model.named_parameters()}
        self.members = _build(model, config)
        self.rates = [[group["lr"] for group in member.param_groups] for member in self.members]
        self.parameters = [p for p in self.names if p.requires_grad]

    def step(self, share: float, step: int) -> float:
        """Update the weights; `share`: fraction of the budget spent. Returns the learning-rate multiplier."""
        factor = SCHEDULES[self.config.schedule](share, step, self.config)
        for member, rates in zip(self.members, self.rates, strict=True):
            for group, rate in zip(member.param_groups, rates, strict=True):
                group["lr"] = rate * factor
            member.step()
        return factor

    def zero_grad(self) -> None:
        for member in self.members:
            member.zero_grad(set_to_none=True)

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        for member in self.members:
            for p, state in member.state.items():
                for key, value in state.items():
                    yield f"{self.names[p]}/{key}", value

    def load(self, tensors: dict[str, Tensor], place: Callable[[Tensor, Tensor], Tensor]) -> None:
        owners = {
            self.names[p]: (member, p) for member in self.members for g in member.param_groups for p in g["params"]
        }
        for path, value in tensors.items():
            name, _, key = path.rpartition("/")
            member, p = owners[name]
            value = value.clone()  # tensors from a file may be unaligned, and kernels round differently then
            member.state[p][key] = place(value, p) if value.shape == p.shape else value


def _build(model: SequenceModel, c: TrainConfig) -> list[Optimizer]:
    trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    factors = _factors(model, c.stage_decay)
    if c.optimizer == "sgd":
        groups = _by_rate([{"params": [p for _, p in trained]}], c.rate, factors)
        return [SGD(groups, lr=c.rate, momentum=c.momentum, weight_decay=c.weight_decay)]
    matrices = []
    if c.optimizer == "muon":  # embeddings are looked up, not multiplied: AdamW handles them, and the head
        embeddings = {m.weight for m in model.modules() if isinstance(m, nn.Embedding)}
        inside = [p for name, p in trained if name.startswith("backbone.")]
        matrices = [p for p in inside if p.dim() == 2 and p not in embeddings]
    chosen = set(matrices)
    rest = [p for _, p in trained if p not in chosen]
    groups = [{"params": rest, "weight_decay": 0.0}]
    if c.weight_decay:  # for matrices and embeddings only, not for gains and biases
        groups = [{"params": [p for p in rest if p.dim() <= 1], "weight_decay": 0.0}]
        groups += [{"params": [p for p in rest if p.dim() > 1], "weight_decay": c.weight_decay}]
    groups = _by_rate(groups, c.rate, factors)
    members: list[Optimizer] = [AdamW(groups, lr=c.rate, betas=(c.beta1, c.beta2), fused=True)]
    if matrices:
        alike = _by_rate([{"params": matrices}], c.matrix_rate, factors)
        members.append(Muon(alike, c.matrix_rate, c.momentum, c.weight_decay))
    return members


def _factors(model: SequenceModel, decay: float) -> dict[Any, float]:
    """Learning-rate multiplier per weight: 1 for the head, times `decay` per stage below (Howard & Ruder 2018)."""
    if decay == 1:
        return {}
    stages = model.stages()
    return {p: decay ** (len(stages) - 1 - n) for n, stage in enumerate(stages) for p in stage}


def _by_rate(groups: list[Json], rate: float, factors: dict[Any, float]) -> list[Json]:
    """The same groups, split by learning rate."""
    if not factors:
        return groups
    found = []
    for group in groups:
        for factor in sorted({factors[p] for p in group["params"]}):
            members = [p for p in group["params"] if factors[p] == factor]
            found.append({**group, "params": members, "lr": rate * factor})
    return found


def _constant(share: float, step: int, c: TrainConfig) -> float:
    """Warm-up takes at most a tenth of the budget, so that short runs also reach the full learning rate."""
    return min(1.0, max((step + 1) / (c.warmup + 1), 10 * share))


def _cosine(share: float, step: int, c: TrainConfig) -> float:
    return _constant(share, step, c) * (c.floor + (1 - c.floor) * 0.5 * (1 + math.cos(math.pi * min(1.0, share))))


def _inverse_sqrt(share: float, step: int, c: TrainConfig) -> float:
    return _constant(share, step, c) * max(c.floor, min(1.0, math.sqrt(max(1, c.warmup) / (step + 1))))


def _stable(share: float, step: int, c: TrainConfig) -> float:
    """Warm-up, stable, decay: until its decay begins, a run does what a run with any larger budget does.

    The decay is 1 - sqrt, which Hägele et al. (2024, arXiv 2405.18392) found better than linear. The warm-up is in
    steps alone: as a share of the budget, it would differ between budgets.
    """
    decayed = min(1.0, max(0.0, (share - (1 - c.decay)) / c.decay))
    return min(1.0, (step + 1) / (c.warmup + 1)) * (c.floor + (1 - c.floor) * (1 - math.sqrt(decayed)))


SCHEDULES = {"constant": _constant, "cosine": _cosine, "inverse_sqrt": _inverse_sqrt, "stable": _stable}
