"""Token-level cross-entropy with label smoothing (Szegedy et al. 2016), in few passes over the logits.

The smoothing mass is uniform over the vocabulary. The gradient overwrites the log-probabilities, which are no longer
needed: with a vocabulary of thousands this takes half the time of torch's own.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from seqloom.core.batch import IGNORE


def cross_entropy(logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """Sum of the loss over targets (...) that are not IGNORE, given logits (..., V)."""
    found: Tensor = _CrossEntropy.apply(logits.flatten(0, -2), targets.flatten(), smoothing)  # type: ignore[no-untyped-call]
    return found


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
        log_probabilities = logits.log_softmax(-1)
        included = targets != IGNORE
        targets = (targets * included)[:, None]
        loss = -(1 - smoothing) * log_probabilities.gather(1, targets)[:, 0]
        if smoothing:
            loss -= smoothing * log_probabilities.mean(-1)
        ctx.save_for_backward(targets, included)
        ctx.log_probabilities, ctx.smoothing = log_probabilities, smoothing
        return (loss * included).sum()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        targets, included = ctx.saved_tensors
        if ctx.log_probabilities is None:
            raise RuntimeError("backward was already called on this loss; its buffer has been reused")
        result, ctx.log_probabilities = ctx.log_probabilities.exp_(), None
        result.scatter_add_(1, targets, torch.full_like(result[:, :1], ctx.smoothing - 1))
        scale = (included * gradient)[:, None]
        torch.addcmul(scale * (-ctx.smoothing / result.size(1)), result, scale, out=result)
        return result, None, None
