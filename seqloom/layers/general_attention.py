"""General attention (the model of Brauwers & Frasincar 2022): queries attend to the features of a source.

    K = keys of F, V = W_V F        once per source
    e = score(q, K), a = align(e), c = a V        for each query

B rows, S features of size F; T queries of size Q; contexts of size `width`. docs/attention.md lists scores and
alignments. A score with its own matrix uses the features as keys, since W_K would only be multiplied into that matrix.
The others use the features directly if these have the size of the query, and project them with W_K otherwise.

*Heads* attend in parallel, each with its own projections of query, keys and values; their contexts are concatenated
and projected. *Hops* attend in sequence with shared weights: after each hop, the new query is a linear map of the query
and its context (memory networks with layer-wise tying, Sukhbaatar et al. 2015). With *multi-dimensional* weights, every
dimension of the context has its own; taps show the mean over the dimensions.
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

ALIGNED = [name for name in ALIGNMENTS if name != "hard_reinforce"]  # for models: no task passes the loss to it

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
        self.keys, self.values = Tap(), Tap()  # (B, heads, S, size)
        self.query, self.scores = Tap(), Tap()  # (B, heads, T, size), (B, heads, T, S); from here on once per hop
        self.alignment, self.context = Tap(), Tap()  # (B, heads, T, S), (B, heads, T, size)

    def read(self, features: Tensor, mask: Tensor | None = None) -> Source:
        """The work done once per source (B, S, F); returns a state whose rows can be selected. No mask: no padding."""
        heads = self._heads
        keys = _pass(self.keys, [head.keys(features) for head in heads])
        values = _pass(self.values, [head.values(features) for head in heads])
        prepared = [head.score.prepare(k) for head, k in zip(heads, keys, strict=True)]
        return tuple(zip(prepared, values, strict=True)), mask

    def forward(self, query: Tensor, source: Source, start: Tensor | int = 0) -> Tensor:
        """(B, T, Q) -> (B, T, width); `start`: index of the first query, for alignments that depend on it."""
        context = self._attend(query, source, start)
        for _ in range(self.hops - 1):
            query = self.again(torch.cat((query, context), dim=-1))  # type: ignore[misc]
            context = self._attend(query, source, start)
        return context

    def flops(self, length: int) -> float:
        """Floating-point operations per query, plus those of reading one feature, for a source of this length."""
        return self.flops_to_read() + self.flops_per_query(length)

    def flops_to_read(self) -> float:
        """Per feature."""
        return sum(head.flops_to_read() for head in self._heads)

    def flops_per_query(self, length: int) -> float:
        heads = sum(head.flops(length) for head in self._heads)
        per_hop = heads + (0.0 if self.out is None else matrix_flops(self.out))
        again = 0.0 if self.again is None else matrix_flops(self.again)
        return self.hops * per_hop + (self.hops - 1) * again

    @property
    def _heads(self) -> list[Head]:
        return list(self.heads)  # type: ignore[arg-type]

    def _attend(self, query: Tensor, source: Source, start: Tensor | int) -> Tensor:
        parts, mask = source
        prepared, values = [part[0] for part in parts], [part[1] for part in parts]
        heads = self._heads
        queries = _pass(self.query, [head.ask(query) for head in heads])
        scores = [head.score.compare(q, k) for head, q, k in zip(heads, queries, prepared, strict=True)]
        scores = _pass_weights(self.scores, scores)
        weights = [head.align(e, mask, q, start) for head, e, q in zip(heads, scores, queries, strict=True)]
        weights = _pass_weights(self.alignment, weights)
        contexts = _pass(self.context, [_mix(a, v) for a, v in zip(weights, values, strict=True)])
        return contexts[0] if self.out is None else self.out(torch.cat(contexts, dim=-1))


class Head(nn.Module):
    """The parts of one head: a score, an alignment, projections. A single head (`alone`) does not project the query."""

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

    def flops_to_read(self) -> float:
        return matrix_flops(self.keys) + matrix_flops(self.values) + self.score.flops_to_prepare()

    def flops(self, length: int) -> float:
        """Per query."""
        average = 2.0 * length * self.values.out_features
        return matrix_flops(self.ask) + matrix_flops(self.align) + self.score.flops(length) + average


def check_choices(width: int, score: str, align: str, heads: int, multi: bool) -> None:
    """Options of a model; raises ValueError, with the option that is wrong."""
    for option, given, known in (("score", score, list(SCORES)), ("align", align, ALIGNED)):
        if given not in known:
            raise ValueError(f"{option}={given!r}: choose {', '.join(known)}")
    if width % heads:
        raise ValueError(f"width={width} must be a multiple of heads={heads}")
    if multi and not SCORES[score].multi:
        able = ", ".join(name for name, kind in SCORES.items() if kind.multi)
        raise ValueError(f"multi=true needs score={able}, not {score}")


def plain_self_attention(x: Tensor, mask: Tensor | None = None) -> Tensor:
    """softmax(x x^T / sqrt(W)) x, (B, T, W) -> (B, T, W): self-attention without learned weights."""
    scores = x @ x.mT / math.sqrt(x.size(-1))  # (B, T, T)
    return softmax(scores, None if mask is None else mask[:, None]) @ x


def _mix(weights: Tensor, values: Tensor) -> Tensor:
    """The contexts (B, T, size)."""
    return weights @ values if weights.dim() == 3 else torch.einsum("btsd,bsd->btd", weights, values)


def _pass(tap: Tap, parts: list[Tensor]) -> list[Tensor]:
    """What the heads have, each (B, ...), through a tap of all, (B, heads, ...)."""
    if not tap.watched:
        return parts
    passed = tap(torch.stack(parts, dim=1))
    return list(passed.unbind(1)) if tap.edited else parts


def _pass_weights(tap: Tap, parts: list[Tensor]) -> list[Tensor]:
    """The same for scores or weights (B, T, S). Of multi-dimensional ones the mean passes, and what replaces it shifts
    all dimensions; a zero leaves nothing of them."""
    if not tap.watched or parts[0].dim() == 3:
        return _pass(tap, parts)
    means = [part.mean(-1) for part in parts]
    after = _pass(tap, means)
    if not tap.edited:
        return parts
    moved = []
    for part, old, new in zip(parts, means, after, strict=True):
        gone = (new == 0) & (old != 0)
        moved.append((part + (new - old)[..., None]).masked_fill(gone[..., None], 0.0))
    return moved
