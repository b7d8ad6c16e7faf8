"""General attention (the model of Brauwers & Frasincar 2022): queries attend to the features of a source.

    K = keys of F, V = W_V F        once per source
    e = score(q, K), a = align(e), c = a V        for each query

B rows, S features of size F; T queries of size Q; contexts of size `width`. docs/attention.md lists scores and
alignments. A score with its own matrix uses the features as keys, since W_K would only be multiplied into that matrix.
The others use the features directly if these have the size of the query, and project them with W_K otherwise.

*Heads* attend in parallel, each with its own projections of query, keys and values; their contexts are concatenated
and projected. *Hops* attend in sequence with shared weights: after each hop, the new query is a linear map of the query
and its context (memory networks with layer-wise tying, Sukhbaatar et al. 2015). With *multi-dimensional* weights, every
dimension of the context has its own.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from seqloom.core.backbone import matrix_flops
from seqloom.core.errors import unknown
from seqloom.core.taps import Tap
from seqloom.layers.alignments import ALIGNMENTS, softmax
from seqloom.layers.linear import Linear
from seqloom.layers.scores import SCORES

Source = tuple[tuple[tuple[Tensor, Tensor], ...], Tensor | None]  # (prepared keys, values) per head; mask


class GeneralAttention(nn.Module):
    def __init__(
        self,
        query: int,
        features: int,
        width: int,
        *,
        score: str = "additive",
        align: str = "soft",
        heads: int = 1,
        hops: int = 1,
        multi: bool = False,  # separate weights for each dimension of the context
        window: int = 5,  # reach of a local alignment to each side
    ) -> None:
        super().__init__()
        if score not in SCORES:
            raise unknown("score", score, SCORES)
        if align not in ALIGNMENTS:
            raise unknown("alignment", align, ALIGNMENTS)
        if heads < 1 or width % heads:
            raise ValueError(f"width={width} must be a multiple of heads={heads}")
        if hops < 1:
            raise ValueError(f"hops={hops} must be at least 1")
        self.hops = hops
        self.heads = nn.ModuleList(
            Head(query, features, width // heads, score, align, alone=heads == 1, multi=multi, window=window)
            for _ in range(heads)
        )
        self.out = Linear(width, width) if heads > 1 else None
        self.again = Linear(query + width, query) if hops > 1 else None
        self.alignment = Tap()  # (B, heads, T, S), once per hop

    def read(self, features: Tensor, mask: Tensor | None = None) -> Source:
        """The work done once per source (B, S, F); returns a state whose rows can be selected. No mask: no padding."""
        return tuple(head.read(features) for head in self.heads), mask  # type: ignore[operator]

    def forward(self, query: Tensor, source: Source, start: Tensor | int = 0) -> Tensor:
        """(B, T, Q) -> (B, T, width); `start`: index of the first query, for alignments that depend on it."""
        context = self._attend(query, source, start)
        for _ in range(self.hops - 1):
            query = self.again(torch.cat((query, context), dim=-1))  # type: ignore[misc]
            context = self._attend(query, source, start)
        return context

    def flops(self, length: int) -> float:
        """Floating-point operations per query, plus those of reading one feature, for a source of this length."""
        heads: list[Head] = list(self.heads)  # type: ignore[arg-type]
        once = sum(head.flops_to_read() for head in heads)
        per_hop = sum(head.flops(length) for head in heads) + (0.0 if self.out is None else matrix_flops(self.out))
        again = 0.0 if self.again is None else matrix_flops(self.again)
        return once + self.hops * per_hop + (self.hops - 1) * again

    def _attend(self, query: Tensor, source: Source, start: Tensor | int) -> Tensor:
        parts, mask = source
        found = [head(query, *part, mask, start) for head, part in zip(self.heads, parts, strict=True)]
        if self.alignment.watched:
            self.alignment(torch.stack([_average(weights) for _, weights in found], dim=1))
        if self.out is None:
            return found[0][0]
        return self.out(torch.cat([context for context, _ in found], dim=-1))


class Head(nn.Module):
    """One score, one alignment, contexts of size `size`. A single head (`alone`) does not project the query."""

    def __init__(
        self, query: int, features: int, size: int, score: str, align: str, *, alone: bool, multi: bool, window: int
    ) -> None:
        super().__init__()
        kind, projected = SCORES[score], query if alone else size
        same = alone and features == query
        self.ask = nn.Identity() if alone else Linear(query, size, bias=False)
        self.keys = Linear(features, projected, bias=False) if kind.alike and not same else nn.Identity()
        self.values = Linear(features, size, bias=False)
        self.score = kind(projected, projected if kind.alike else features, size, size if multi else 1)
        self.align = ALIGNMENTS[align](projected, size, window)

    def read(self, features: Tensor) -> tuple[Tensor, Tensor]:
        return self.score.prepare(self.keys(features)), self.values(features)

    def forward(
        self, query: Tensor, prepared: Tensor, values: Tensor, mask: Tensor | None, start: Tensor | int
    ) -> tuple[Tensor, Tensor]:
        """The contexts (B, T, size), and the attention weights."""
        query = self.ask(query)
        weights = self.align(self.score.compare(query, prepared), mask, query, start)
        if weights.dim() == 3:
            return weights @ values, weights
        return torch.einsum("btsd,bsd->btd", weights, values), weights

    def flops_to_read(self) -> float:
        return matrix_flops(self.keys) + matrix_flops(self.values) + self.score.flops_to_prepare()

    def flops(self, length: int) -> float:
        """Per query."""
        average = 2.0 * length * self.values.out_features
        return matrix_flops(self.ask) + matrix_flops(self.align) + self.score.flops(length) + average


def plain_self_attention(x: Tensor, mask: Tensor | None = None) -> Tensor:
    """softmax(x x^T / sqrt(W)) x, (B, T, W) -> (B, T, W): self-attention without learned weights."""
    scores = x @ x.mT / math.sqrt(x.size(-1))  # (B, T, T)
    return softmax(scores, None if mask is None else mask[:, None]) @ x


def _average(weights: Tensor) -> Tensor:
    """(B, T, S) for display: the mean over the dimensions of multi-dimensional weights."""
    return weights if weights.dim() == 3 else weights.mean(-1)
