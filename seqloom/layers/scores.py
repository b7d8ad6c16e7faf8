"""Attention scores: how well a key matches a query, one number per pair (or D of them).

B rows, T queries of size Q, S keys of size K. The part that depends only on the keys is computed once per source by
`prepare`, so that step-by-step decoding does not repeat it; `compare` is the part per query.

The names follow the taxonomy of Brauwers & Frasincar 2022; docs/attention.md lists all formulas side by side.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.core.backbone import matrix_flops
from seqloom.layers.linear import Linear


class Score(nn.Module, ABC):
    """(B, T, Q) and (B, S, K) -> (B, T, S), or (B, T, S, D) with `dims` = D > 1.

    `hidden` is the size of the hidden layer, for scores that have one.
    """

    alike: bool = False  # compares query and key directly, so Q = K
    multi: bool = False  # supports more than one number per pair

    def __init__(self, query: int, key: int, hidden: int, dims: int = 1) -> None:
        super().__init__()
        self.products = query  # multiplications per query-key pair
        name = type(self).__name__
        if self.alike and query != key:
            raise ValueError(f"{name} needs query and keys of equal size, not {query} and {key}; use the score general")
        if dims > 1 and not self.multi:
            raise ValueError(f"{name} gives one score per key, not {dims}; only the score additive supports several")

    def forward(self, q: Tensor, keys: Tensor) -> Tensor:
        return self.compare(q, self.prepare(keys))

    def prepare(self, keys: Tensor) -> Tensor:
        """Query-independent part: (B, S, K) -> (B, S, any)"""
        return keys

    @abstractmethod
    def compare(self, q: Tensor, prepared: Tensor) -> Tensor: ...

    def flops_to_prepare(self) -> float:
        """Floating-point operations per key."""
        return matrix_flops(self)

    def flops(self, keys: int) -> float:
        """Floating-point operations per query, compared with `keys` keys."""
        return 2.0 * keys * self.products


class Additive(Score):
    """w^T tanh(W_1 q + W_2 k + b); for D > 1, w is a matrix (Bahdanau et al. 2015)."""

    multi = True

    def __init__(self, query: int, key: int, hidden: int, dims: int = 1) -> None:
        super().__init__(query, key, hidden, dims)
        self.of_query = Linear(query, hidden, bias=False)
        self.of_key = Linear(key, hidden)
        self.weigh = Linear(hidden, dims, bias=False)
        self.products = hidden * dims

    def prepare(self, keys: Tensor) -> Tensor:
        return self.of_key(keys)

    def compare(self, q: Tensor, prepared: Tensor) -> Tensor:
        sums = self.of_query(q)[:, :, None] + prepared[:, None]  # (B, T, S, hidden)
        scores = self.weigh(sums.tanh_())  # in place: this is the largest tensor
        return scores.squeeze(-1) if self.weigh.out_features == 1 else scores

    def flops_to_prepare(self) -> float:
        return matrix_flops(self.of_key)

    def flops(self, keys: int) -> float:
        return matrix_flops(self.of_query) + super().flops(keys)


class Dot(Score):
    """q^T k"""

    alike = True

    def compare(self, q: Tensor, prepared: Tensor) -> Tensor:
        return q @ prepared.mT


class ScaledDot(Score):
    """q^T k / sqrt(K): unit variance if the components of q and k have it (Vaswani et al. 2017)."""

    alike = True

    def compare(self, q: Tensor, prepared: Tensor) -> Tensor:
        return (q / math.sqrt(q.size(-1))) @ prepared.mT


class General(Score):
    """k^T W q (Luong et al. 2015). W is applied to the keys, once per source, not to every query."""

    def __init__(self, query: int, key: int, hidden: int, dims: int = 1) -> None:
        super().__init__(query, key, hidden, dims)
        self.matrix = Linear(key, query, bias=False)

    def prepare(self, keys: Tensor) -> Tensor:
        return self.matrix(keys)

    def compare(self, q: Tensor, prepared: Tensor) -> Tensor:
        return q @ prepared.mT


class BiasedGeneral(General):
    """k^T (W q + b) (Sordoni et al. 2016): `General` with a 1 appended to the query, so that W's last column is b."""

    def __init__(self, query: int, key: int, hidden: int, dims: int = 1) -> None:
        super().__init__(query + 1, key, hidden, dims)

    def compare(self, q: Tensor, prepared: Tensor) -> Tensor:
        return super().compare(F.pad(q, (0, 1), value=1.0), prepared)


class ActivatedGeneral(General):
    """tanh(k^T W q + b), b a scalar (Ma et al. 2017)."""

    def __init__(self, query: int, key: int, hidden: int, dims: int = 1) -> None:
        super().__init__(query, key, hidden, dims)
        self.bias = nn.Parameter(torch.zeros(1))

    def compare(self, q: Tensor, prepared: Tensor) -> Tensor:
        return (super().compare(q, prepared) + self.bias).tanh()


class Similarity(Score):
    """cos(q, k); zero if either vector is zero."""

    alike = True

    def prepare(self, keys: Tensor) -> Tensor:
        return F.normalize(keys, dim=-1)

    def compare(self, q: Tensor, prepared: Tensor) -> Tensor:
        return F.normalize(q, dim=-1) @ prepared.mT


SCORES: dict[str, type[Score]] = {
    "additive": Additive,
    "dot": Dot,
    "scaled_dot": ScaledDot,
    "general": General,
    "biased_general": BiasedGeneral,
    "activated_general": ActivatedGeneral,
    "similarity": Similarity,
}
