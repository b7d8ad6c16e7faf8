"""Alignments: scores become weights, which say how much of each feature a query takes.

B rows, T queries, S features, of which the mask says which are real (padding is on the right); scores and weights are
(B, T, S), or (B, T, S, D), each of the D dimensions by itself. Padding weighs nothing, and a row of nothing but padding
has weights of zero. What remains sums to one, but for `local_predictive`, whose Gaussian takes some away.

`hard` and `hard_reinforce` choose one feature: at random in training, the likeliest in evaluation. They differ in how
they learn. `hard` pretends, going back, to have been soft (straight-through): biased, and ordinary back-propagation.
`hard_reinforce` is unbiased and needs the losses, which a layer does not know. So it hands out the log-probabilities of
its choices through a tap, and `reinforce` makes of them a term of value zero that carries the gradient:

    with record(model, "*.choice") as choices:
        losses = ...                                    # (B,), one for each row
    (losses + reinforce(choices, losses)).sum().backward()
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from seqloom.core.taps import Tap
from seqloom.layers.linear import Linear


class Alignment(nn.Module, ABC):
    """Sizes for those that need them: of a query, of a hidden layer, and how far a window reaches to each side."""

    def __init__(self, query: int, hidden: int, window: int) -> None:
        super().__init__()

    def forward(self, scores: Tensor, mask: Tensor | None, query: Tensor, start: Tensor | int = 0) -> Tensor:
        """`start`: the number of the first of these queries, one for all rows or (B,)."""
        if not scores.size(2):
            return scores  # no features, no weights
        return self.weigh(scores, None if mask is None else mask[:, None], query, start)

    @abstractmethod
    def weigh(self, scores: Tensor, real: Tensor | None, query: Tensor, start: Tensor | int) -> Tensor:
        """`real` is the mask as (B, 1, S)."""


class Soft(Alignment):
    """exp(e_s) over the sum of all: something of every feature."""

    def weigh(self, scores: Tensor, real: Tensor | None, query: Tensor, start: Tensor | int) -> Tensor:
        return softmax(scores, real)


class Sparsemax(Alignment):
    """max(e_s - tau, 0): the nearest weights to the scores, exactly zero for many (Martins & Astudillo 2016)."""

    def weigh(self, scores: Tensor, real: Tensor | None, query: Tensor, start: Tensor | int) -> Tensor:
        return sparsemax(scores, real)


class LocalMonotonic(Alignment):
    """Softmax inside the window |s - p| <= D, with query t at p = t (Luong et al. 2015).

    A window beyond the end of the source is empty, and its weights are zero.
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
    """The window at p = S sigmoid(v^T tanh(W q)), its softmax times exp(-(s - p)^2 / (2 sigma^2)), sigma = D/2.

    S is the true length of each source; p learns through the Gaussian (Luong et al. 2015).
    """

    def __init__(self, query: int, hidden: int, window: int) -> None:
        super().__init__(query, hidden, window)
        self.hidden = Linear(query, hidden, bias=False)
        self.place = Linear(hidden, 1, bias=False)

    def weigh(self, scores: Tensor, real: Tensor | None, query: Tensor, start: Tensor | int) -> Tensor:
        length = scores.size(2) if real is None else real.sum(2)  # (B, 1)
        centres = length * self.place(self.hidden(query).tanh()).squeeze(-1).sigmoid()  # (B, T)
        distances = self.distances(scores, centres)
        bell = (-2 * (distances / self.window).square()).exp()  # 2 sigma^2 = D^2 / 2
        return self.inside(scores, real, distances) * over_dimensions(bell, scores)


class Hard(Alignment):
    """One feature, drawn from the softmax; its gradient is that of the softmax (straight-through)."""

    def weigh(self, scores: Tensor, real: Tensor | None, query: Tensor, start: Tensor | int) -> Tensor:
        weights = softmax(scores, real)
        return one_hot(weights, self.choose(weights)) + (weights - weights.detach())

    def choose(self, weights: Tensor) -> Tensor:
        """(B, T, S, ...) -> (B, T, 1, ...)"""
        return draw(weights) if self.training else weights.argmax(2, keepdim=True)


class HardReinforce(Hard):
    """One feature, drawn from the softmax; it learns by `reinforce` alone (Williams 1992; Xu et al. 2015)."""

    def __init__(self, query: int, hidden: int, window: int) -> None:
        super().__init__(query, hidden, window)
        self.choice = Tap()  # log p of each choice, (B, T)

    def weigh(self, scores: Tensor, real: Tensor | None, query: Tensor, start: Tensor | int) -> Tensor:
        weights = softmax(scores, real)
        chosen = self.choose(weights)
        if self.choice.watched:
            likely = weights.gather(2, chosen)
            sure = likely.masked_fill(likely == 0, 1.0)  # nothing to choose from: the choice was certain
            self.choice(sure.log().flatten(2).sum(2))
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
    """Over the features that are visible, (1 or B, 1 or T, S); zeros where none is."""
    if visible is None:
        return scores.softmax(2)
    hidden = over_dimensions(~visible, scores)
    lowest = torch.finfo(scores.dtype).min  # not -inf, of which a softmax over nothing would make NaN
    return scores.masked_fill(hidden, lowest).softmax(2).masked_fill(hidden, 0.0)


def sparsemax(scores: Tensor, visible: Tensor | None = None) -> Tensor:
    """The projection, by sorting: the support is the k largest for which 1 + k e_k is more than their sum."""
    hidden = None if visible is None else over_dimensions(~visible, scores)
    if hidden is not None:
        scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
    z = scores - scores.detach().amax(2, keepdim=True)  # the same weights, and sums that stay small
    falling = z.sort(2, descending=True).values
    sums = falling.cumsum(2)
    ranks = over_dimensions(torch.arange(1, z.size(2) + 1, device=z.device), scores)
    k = (1 + ranks * falling > sums).sum(2, keepdim=True)
    tau = (sums.gather(2, k - 1) - 1) / k
    weights = (z - tau).clamp(min=0)
    return weights if hidden is None else weights.masked_fill(hidden, 0.0)


def draw(weights: Tensor) -> Tensor:
    """The number of one feature for each query, as likely as its weight: (B, T, S, ...) -> (B, T, 1, ...)"""
    return (weights / torch.empty_like(weights).exponential_()).argmax(2, keepdim=True)


def one_hot(weights: Tensor, chosen: Tensor) -> Tensor:
    """One for what was chosen and zero for the rest; zeros where there was nothing to choose from."""
    there = (weights.gather(2, chosen) > 0).to(weights.dtype)
    return torch.zeros_like(weights).scatter(2, chosen, there)


def steps(query: Tensor, start: Tensor | int) -> Tensor:
    """The numbers of the queries (B, T, Q), the first being `start`: (1 or B, T)"""
    first = torch.as_tensor(start, device=query.device).view(-1, 1)
    return first + torch.arange(query.size(1), device=query.device)


def over_dimensions(x: Tensor, scores: Tensor) -> Tensor:
    """(..., S) so that it meets scores (B, T, S) or (B, T, S, D)."""
    return x if scores.dim() == 3 else x[..., None]


def reinforce(choices: dict[str, list[Tensor]], losses: Tensor, baseline: Tensor | float = 0.0) -> Tensor:
    """(B,) zeros whose gradient is (loss - baseline) grad log p(choices), row by row.

    Added to the losses, the gradient is on average that of the expected loss. A baseline that does not depend on the
    row's own choices keeps it so and makes it less noisy: the mean of the other rows, or of losses so far.
    """
    logs = torch.stack([log.flatten(1).sum(1) for trace in choices.values() for log in trace]).sum(0)  # (B,)
    return (losses.detach() - baseline) * (logs - logs.detach())
