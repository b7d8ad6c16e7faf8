"""What can be read off a model without changing it, and what changing its input shows: linear probes, and occlusion.

N rows, T positions, F features, V tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

from seqloom.core.network import Network
from seqloom.core.taps import record
from seqloom.pages.words import Pair

RIDGE = 1e-4  # relative to the square of each feature, and as much for features that never occur
READINGS: dict[str, Pair] = {
    "mean": ("attention, mean of all heads", "注意力，所有头的平均"),
    "last": ("attention, last layer", "注意力，最后一层"),
    "rollout": ("attention rollout", "注意力 rollout"),
    "head": ("best single head", "最好的单个头"),
    "near": ("nearness alone", "仅按远近"),
}


class Probe:
    """Least squares from features (n, F) to targets (n, K); a yes-or-no target is decided halfway between the means of
    its two kinds of examples."""

    def __init__(self, features: Tensor, targets: Tensor) -> None:
        x = self._with_one(features)
        gram = x.T @ x
        gram.diagonal()[:-1].mul_(1 + RIDGE).add_(RIDGE)  # the intercept has no penalty
        self.solution = torch.linalg.solve(gram, x.T @ targets.double())

    def read(self, features: Tensor) -> Tensor:
        return self._with_one(features) @ self.solution

    @staticmethod
    def _with_one(features: Tensor) -> Tensor:
        return pad(features.double(), (0, 1), value=1.0)


def threshold(scores: Tensor, truth: Tensor) -> float:
    return float(scores[truth].mean() + scores[~truth].mean()) / 2


def balanced(scores: Tensor, truth: Tensor, limit: float) -> float:
    """Mean of the shares of both kinds that are recognised."""
    return float((scores[truth] > limit).double().mean() + (scores[~truth] <= limit).double().mean()) / 2


def fit_of(scores: Tensor, truth: Tensor) -> float:
    """R²: 1 is exact, 0 as good as the mean."""
    return 1 - float((scores - truth).square().sum() / (truth - truth.mean()).square().sum())


def window(ids: Tensor, length: int, tokens: int) -> Tensor:
    """The last `length` tokens at each position, one-hot: (N, T, length * V); nothing before the first."""
    shifted = [torch.cat((ids.new_full((len(ids), k), tokens), ids[:, : ids.size(1) - k]), 1) for k in range(length)]
    return torch.cat([one_hot(each, tokens + 1)[..., :tokens] for each in shifted], dim=2).float()


@torch.inference_mode()
def influence(model: Network, ids: Tensor, unigrams: Tensor, draws: int, generator: torch.Generator) -> Tensor:
    """By how much the prediction at the last position changes, in nats (KL divergence), when an earlier token is
    replaced by one drawn from the frequencies `unigrams`; (N, T - 1), mean over the draws."""
    found = []
    places = torch.arange(ids.size(1) - 1).repeat(draws)
    for row in ids:
        changed = row.repeat(len(places) + 1, 1)  # the last one stays as it is
        drawn = torch.multinomial(unigrams, len(places), replacement=True, generator=generator)
        changed[torch.arange(len(places)), places] = drawn
        logs = model.final(changed).double().log_softmax(-1)
        found.append((logs[-1].exp() * (logs[-1] - logs[:-1])).sum(-1).view(draws, -1).mean(0))
    return torch.stack(found)


@torch.inference_mode()
def attended(model: Network, ids: Tensor) -> Tensor:
    """Attention weights of every layer and head, (layers, heads, N, T, T)."""
    with record(model, "*.attention.weights") as traces:
        model(ids)
    return torch.stack([torch.cat(passed) for passed in traces.values()]).transpose(1, 2)


def rollout(weights: Tensor) -> Tensor:
    """Attention multiplied through the layers, half of it for the residual branch (Abnar & Zuidema 2020): (N, T, T)"""
    own = torch.eye(weights.size(-1))
    flow = own
    for layer in weights.mean(1):
        flow = (layer + own) / 2 @ flow
    return flow


def rank_correlation(one: Tensor, other: Tensor) -> float:
    """Spearman's, mean over rows."""
    a, b = (x.argsort(1).argsort(1).double() for x in (one, other))
    a, b = (x - x.mean(1, keepdim=True) for x in (a, b))
    return float(((a * b).sum(1) / (a.square().sum(1) * b.square().sum(1)).sqrt()).mean())


def same_top(one: Tensor, other: Tensor) -> float:
    """Share of rows with the largest value at the same place."""
    return float((one.argmax(1) == other.argmax(1)).double().mean())


def agreement(weights: Tensor, truth: Tensor) -> dict[str, tuple[float, float]]:
    """Rank correlation and share of equal largest values with the influence (N, T - 1) on the last position, of several
    readings of its attention. The best head is chosen on half of the rows; all are judged on the other half."""
    heads = weights[..., -1, :-1].flatten(0, 1)  # (layers * heads, N, T - 1)
    chosen, others = slice(0, None, 2), slice(1, None, 2)
    readings = {
        "mean": heads.mean(0),
        "last": weights[-1].mean(0)[:, -1, :-1],
        "rollout": rollout(weights)[:, -1, :-1],
        "head": max(heads, key=lambda head: rank_correlation(head[chosen], truth[chosen])),
        "near": torch.arange(truth.size(1)).expand(len(truth), -1),
    }
    return {
        name: (rank_correlation(one[others], truth[others]), same_top(one[others], truth[others]))
        for name, one in readings.items()
    }
