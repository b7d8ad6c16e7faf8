"""Pick the next token: greedy, or sampled with temperature, top-k and top-p; some tokens can be forbidden."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from seqloom.core.errors import UserError

_COLD = 1e-30  # a lower temperature is 0 in float32


@dataclass(frozen=True, kw_only=True)
class Choice:
    """How to pick a token from the logits."""

    temperature: float = 1.0  # 0: greedy
    top_k: int = 0  # keep the k most likely tokens; 0: all
    top_p: float = 1.0  # keep the smallest set of tokens with this much probability

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < math.inf:
            raise UserError(f"temperature={self.temperature}: must be 0 (greedy) or more")
        if self.top_k < 0:
            raise UserError(f"top_k={self.top_k}: must be 0 (all) or more")
        if not 0 < self.top_p <= 1:
            raise UserError(f"top_p={self.top_p}: must be above 0 and at most 1")

    def __call__(self, logits: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """(B, V) -> (B,)"""
        if self.greedy:
            return logits.argmax(-1)
        return torch.multinomial(self.probabilities(logits), 1, generator=generator)[:, 0]

    @property
    def greedy(self) -> bool:
        return self.temperature == 0 or self.top_k == 1

    def probabilities(self, logits: Tensor) -> Tensor:
        """With which each token is drawn, unless the choice is greedy: (B, V) -> (B, V)"""
        logits = logits.float()
        logits = (logits - logits.amax(-1, keepdim=True)) / max(self.temperature, _COLD)  # the maximum stays 0
        if 0 < self.top_k < logits.size(-1):
            least = logits.topk(self.top_k).values[:, -1:]
            logits = logits.masked_fill(logits < least, -torch.inf)
        if self.top_p < 1:
            logits = _nucleus(logits, self.top_p)
        return logits.softmax(-1)


def seeded(seed: int | None, device: torch.device) -> torch.Generator | None:
    """A seeded generator; None: torch's global one."""
    if seed is not None and not 0 <= seed < 2**63:
        raise UserError(f"seed={seed}: must be from 0 to 2^63 - 1")
    return None if seed is None else torch.Generator(device).manual_seed(seed)


def forbid_token(logits: Tensor, token: int) -> Tensor:
    """Set the logit of a token to -inf, (B, V) -> (B, V)."""
    return logits.index_fill(1, torch.tensor([token], device=logits.device), -torch.inf)


def forbid_repeats(logits: Tensor, written: Tensor, size: int) -> Tensor:
    """Forbid tokens that would repeat an n-gram of this size in `written` (B, T); (B, V) -> (B, V)."""
    length = written.size(1)
    if length < size:
        return logits
    grams = written.unfold(1, size, 1)  # (B, T-size+1, size)
    again = (grams[..., :-1] == written[:, None, length - size + 1 :]).all(-1)  # n-grams that start like the suffix
    count = logits.size(1)
    spare = torch.where(again, grams[..., -1], count)  # an extra column absorbs what is allowed
    banned = torch.zeros(logits.size(0), count + 1, dtype=torch.bool, device=logits.device).scatter_(1, spare, True)
    return logits.masked_fill(banned[:, :count], -torch.inf)


def _nucleus(logits: Tensor, share: float) -> Tensor:
    """Keep the smallest set of tokens with `share` of the probability (Holtzman et al. 2020)."""
    values, places = logits.sort(descending=True)
    probabilities = values.softmax(-1)
    beyond = probabilities.cumsum(-1) - probabilities >= share
    beyond[..., 0] = False  # also if the share is 0 in float32
    return values.masked_fill(beyond, -torch.inf).gather(-1, places.argsort(-1))
