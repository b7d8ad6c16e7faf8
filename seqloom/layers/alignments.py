"""Alignments: turn scores into attention weights over the features of a source.

B rows, T queries, S features (the mask is True where real, padding is on the right); scores and weights are (B, T, S),
or (B, T, S, D) with the D dimensions aligned independently. Padding gets weight zero, and so does everything in a row
that is all padding. Other weights sum to one, except in `local_predictive`, where the Gaussian reduces them.

`hard` and `hard_reinforce` select one feature: sampled in training, the most probable in evaluation. They differ in
the gradient. `hard` uses the straight-through estimator: biased, but plain back-propagation. `hard_reinforce` is
unbiased and needs the losses, which a layer does not know. So it exposes the log-probabilities of its choices through
a tap, and `reinforce` turns them into a term of value zero that carries the gradient:

    with record(model, "*.choice") as choices:
        losses = ...                                    # (B,), one per row
    (losses + reinforce(choices, losses)).sum().backward()
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from seqloom.core.taps import Tap
from seqloom.layers.linear import Linear


class Alignment(nn.Module, ABC):
    """Takes the query size, the hidden size and the window's reach to each side; subclasses use what they need."""

    def __init__(self, query: int, hidden: int, window: int) -> None:
        super().__init__()

    def forward(self, scores: Tensor, mask: Tensor | None, query: Tensor, start: Tensor | int = 0) -> Tensor:
        """`start`: index of the first query, one for all rows or (B,)."""
        if not scores.size(2):
            return scores  # no features, no weights
        return self.weigh(scores, None if mask is None else mask[:, None], query, start)

    @abstractmethod
    def weigh(self, scores: Tensor, real: Tensor | None, query: Tensor, start: Tensor | int) -> Tensor:
        """`real` is the mask as (B, 1, S)."""


class Soft(Alignment):
    """exp(e_s) / sum_r exp(e_r): every feature gets some weight."""

    def weigh(self, scores: Tensor, real: Tensor | None, query: Tensor, start: Tensor | int) -> Tensor:
        return softmax(scores, real)


class Sparsemax(Alignment):
    """max(e_s - tau, 0): the scores projected onto the simplex, so many are zero (Martins & Astudillo 2016)."""

    def weigh(self, scores: Tensor, real: Tensor | None, query: Tensor, start: Tensor | int) -> Tensor:
        return sparsemax(scores, real)


class LocalMonotonic(Alignment):
    """Softmax inside the window |s - p| <= D, with query t at p = t (Luong et al. 2015).

    A window entirely past the end of the source is empty: all its weights are zero.
    """

    def __init__(self, query: int, hidden: int, window: int) -> None:
        super().__init__(query, hidden, window)
        if window < 1:
            raise ValueError(f"a local alignment needs window >= 1, not {window}")
        self.window = window

    def weigh(self, scores: Tensor, real: Tensor | None, query: Tensor, start: Tensor | int) -> Tensor:
        return self.inside(scores, real, self.distances(scores, steps(query, start)))

    def distances(self, scores: Tensor, centres: Tensor) -> Tensor:
        """s - p for every feature: (1 or B, T) -> (1 or B, T, S)"""
        return torch.arange(scores.size(2), device=scores.device) - centres[..., None]

    def inside(self, scores: Tensor, real: Tensor | None, distances: Tensor) -> Tensor:
        near = distances.abs() <= self.window
        return softmax(scores, near if real is None else near & real)


class LocalPredictive(LocalMonotonic):
    """Window at p = S sigmoid(v^T tanh(W q)), the softmax times exp(-(s - p)^2 / (2 sigma^2)), sigma = D/2.

    S is the unpadded length of each source; p gets its gradient through the Gaussian (Luong et al. 2015).
    """

    def __init__(self, query: int, hidden: int, window: int) -> None:
        super().__init__(query, hidden, window)
        self.hidden = Linear(query, hidden, bias=False)
        self.place = Linear(hidden, 1, bias=False)

    def weigh(self, scores: Tensor, real: Tensor | None, query: Tensor, start: Tensor | int) -> Tensor:
        length = scores.size(2) if real is None else real.sum(2)  # (B, 1)
        centres = length * self.place(self.hidden(query).tanh()).squeeze(-1).sigmoid()  # (B, T)
        distances = self.distances(scores, centres)
        gaussian = (-2 * (distances / self.window).square()).exp()  # 2 sigma^2 = D^2 / 2
        return self.inside(scores, real, distances) * over_dimensions(gaussian, scores)


class Hard(Alignment):
    """One feature, sampled from the softmax, with the gradient of the softmax (straight-through)."""

    def weigh(self, scores: Tensor, real: Tensor | None, query: Tensor, start: Tensor | int) -> Tensor:
        weights = softmax(scores, real)
        return one_hot(weights, self.choose(weights)) + (weights - weights.detach())

    def choose(self, weights: Tensor) -> Tensor:
        """(B, T, S, ...) -> (B, T, 1, ...)"""
        return draw(weights) if self.training else weights.argmax(2, keepdim=True)


class HardReinforce(Hard):
    """One feature, sampled from the softmax, trained only by `reinforce` (Williams 1992; Xu et al. 2015)."""

    def __init__(self, query: int, hidden: int, window: int) -> None:
        super().__init__(query, hidden, window)
        self.choice = Tap()  # log p of each choice, (B, T)

    def weigh(self, scores: Tensor, real: Tensor | None, query: Tensor, start: Tensor | int) -> Tensor:
        weights = softmax(scores, real)
        chosen = self.choose(weights)
        if self.choice.watched:
            probs = weights.gather(2, chosen)
            probs = probs.masked_fill(probs == 0, 1.0)  # all padding: there was no choice, so log p = 0
            self.choice(probs.log().flatten(2).sum(2))
        return one_hot(weights, chosen)


ALIGNMENTS: dict[str, type[Alignment]] = {
    "soft": Soft,
    "sparsemax": Sparsemax,
    "local_monotonic": LocalMonotonic,
    "local_predictive": LocalPredictive,
    "hard": Hard,
    "hard_reinforce": HardReinforce,
}


def softmax(scores: Tensor, visible: Tensor | None = None) -> Tensor:
    """Softmax over the visible features, mask (1 or B, 1 or T, S); zeros where none is visible."""
    if visible is None:
        return scores.softmax(2)
    hidden = over_dimensions(~visible, scores)
    lowest = torch.finfo(scores.dtype).min  # not -inf: softmax over nothing but -inf is NaN
    return scores.masked_fill(hidden, lowest).softmax(2).masked_fill(hidden, 0.0)


def sparsemax(scores: Tensor, visible: Tensor | None = None) -> Tensor:
    """Projection onto the simplex by sorting: the support is the k largest scores, for the largest k with
    1 + k e_k > e_1 + ... + e_k."""
    hidden = None if visible is None else over_dimensions(~visible, scores)
    if hidden is not None:
        scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
    z = scores - scores.detach().amax(2, keepdim=True)  # same weights; keeps the cumulative sums small
    ordered = z.sort(2, descending=True).values
    sums = ordered.cumsum(2)
    ranks = over_dimensions(torch.arange(1, z.size(2) + 1, device=z.device), scores)
    k = (1 + ranks * ordered > sums).sum(2, keepdim=True)
    tau = (sums.gather(2, k - 1) - 1) / k
    weights = (z - tau).clamp(min=0)
    return weights if hidden is None else weights.masked_fill(hidden, 0.0)


def draw(weights: Tensor) -> Tensor:
    """Sample one feature index per query, with the weights as probabilities: (B, T, S, ...) -> (B, T, 1, ...)"""
    return (weights / torch.empty_like(weights).exponential_()).argmax(2, keepdim=True)


def one_hot(weights: Tensor, chosen: Tensor) -> Tensor:
    """1 for the chosen feature and 0 for the others; all zeros where every weight is zero."""
    ones = (weights.gather(2, chosen) > 0).to(weights.dtype)
    return torch.zeros_like(weights).scatter(2, chosen, ones)


def steps(query: Tensor, start: Tensor | int) -> Tensor:
    """Indices of the queries (B, T, Q), counted from `start`: (1 or B, T)"""
    first = torch.as_tensor(start, device=query.device).view(-1, 1)
    return first + torch.arange(query.size(1), device=query.device)


def over_dimensions(x: Tensor, scores: Tensor) -> Tensor:
    """Make (..., S) broadcast against scores (B, T, S) or (B, T, S, D)."""
    return x if scores.dim() == 3 else x[..., None]


def reinforce(choices: dict[str, list[Tensor]], losses: Tensor, baseline: Tensor | float = 0.0) -> Tensor:
    """(B,) zeros whose gradient is (loss - baseline) grad log p(choices), per row.

    Added to the losses, this gives an unbiased estimate of the gradient of the expected loss. A baseline that does not
    depend on the row's own choices (the mean of the other rows, a running mean) reduces variance and adds no bias.
    """
    log_probs = torch.stack([log.flatten(1).sum(1) for trace in choices.values() for log in trace]).sum(0)  # (B,)
    return (losses.detach() - baseline) * (log_probs - log_probs.detach())
