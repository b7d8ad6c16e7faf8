"""A model as a graph of tensors: while it is traced, what decides by looking at numbers is replaced by what computes.

The recorded graph must hold for every number of rows and every length, so nothing may read a number out of a tensor.
Attention's cache becomes one that grows by concatenation; positions within a mini-batch become tensors; kernels that
ONNX does not know are written out. That the graph is right is not assumed: every export is run and compared.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from seqloom.core.state import State
from seqloom.layers import fast_weights
from seqloom.layers.cache import Cache
from seqloom.layers.kernels.holder import Compiled
from seqloom.layers.mini_batches import MiniBatches
from seqloom.layers.views import View, seen

OPSET = 18
_active: list[bool] = []


@contextmanager
def traceable() -> Iterator[None]:
    """Inside the block, models compute as a graph can; a block within another changes nothing."""
    if _active:
        yield
        return
    own = {Cache: GrowingCache, MiniBatches: TracedMiniBatches, fast_weights.norm_gradient: _norm_gradient}
    with ExitStack() as stack:
        _active.append(True)
        stack.callback(_active.clear)
        torch._C._jit_set_onnx_log_enabled(False)
        for name, module in list(sys.modules.items()):
            if name.startswith(("seqloom.models.", "seqloom.layers.", "seqloom.tasks.")):
                stack.enter_context(replaced(module, "len", _rows))
            for attribute, value in list(vars(module).items()) if name.startswith("seqloom.models.") else ():
                for old, new in own.items():
                    if value is old:
                        stack.enter_context(replaced(module, attribute, new))
        stack.enter_context(replaced(Compiled, "needs_modules", True))  # fast paths are written for numbers of rows
        stack.enter_context(replaced(F, "rms_norm", _rms_norm))
        stack.enter_context(replaced(F, "layer_norm", _layer_norm))
        stack.enter_context(replaced(F, "scaled_dot_product_attention", _attention))
        stack.enter_context(replaced(fast_weights.Descent, "_end", _end))
        stack.enter_context(replaced(torch.linalg, "vecdot", lambda a, b, dim=-1: (a * b).sum(dim)))
        stack.enter_context(replaced(Tensor, "mT", property(lambda t: t.transpose(-1, -2))))
        if features := sys.modules.get("seqloom.tasks.tagging.features"):  # no sorting: every word is read as it stands
            stack.enter_context(replaced(features, "distinct", lambda rows: (rows, torch.arange(rows.shape[0]))))
            stack.enter_context(replaced(features.SpelledEmbedding, "_by_length", lambda own, words: own._read(words)))
        stack.enter_context(replaced(Tensor, "unfold", _unfold))
        stack.enter_context(replaced(Tensor, "__rshift__", lambda t, n: torch.div(t, 2**n, rounding_mode="floor")))
        for name, how in _SYMBOLS.items():
            torch.onnx.register_custom_op_symbolic(f"aten::{name}", how, OPSET)
            stack.callback(torch.onnx.unregister_custom_op_symbolic, f"aten::{name}", OPSET)
        yield


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """An attribute of a module or a class; one that a class inherits is inherited again afterwards."""
    own, before = name in vars(owner), getattr(owner, name, None)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if own:
            setattr(owner, name, before)
        else:
            delattr(owner, name)


def _log_add_exp(graph: Any, a: Any, b: Any) -> Any:
    """max(a, b) + log(1 + exp(-|a - b|))"""
    apart = graph.op("Neg", graph.op("Abs", graph.op("Sub", a, b)))
    one = graph.op("Constant", value_t=torch.ones(()))
    rest = graph.op("Log", graph.op("Add", graph.op("Exp", apart), one))
    return graph.op("Add", graph.op("Max", a, b), rest)


def _cummax(graph: Any, x: Any, dim: Any) -> tuple[Any, Any]:
    """Over the one step that a graph has: the value itself. The places are not used."""
    return x, x


_SYMBOLS = {"cummax": _cummax, "logaddexp": _log_add_exp}  # operations that the exporter does not know


class GrowingCache:
    """As `Cache`, without spare capacity: state = (tokens read, (keys, values) per layer). All rows have read equally
    many tokens; with a window, what no later token sees is dropped."""

    def __init__(self, state: State, x: Tensor, mask: Tensor | None, window: int = 0) -> None:
        self.rows, self.steps, self.window = x.shape[0], x.shape[1], window
        past: Any = state
        self.read = torch.zeros(self.rows, dtype=torch.long) if past is None else past[0]
        self.layers: Any = () if past is None else past[1]
        self.nothing = mask is not None and not torch.jit.is_tracing() and not bool(mask.any())
        self.grown: list[tuple[Tensor, Tensor]] = []
        self.slots: Any = self.steps if past is None else self.steps + past[1][0][0].shape[2]

    def places(self, device: torch.device) -> Tensor:
        return self.read[:, None] + torch.arange(self.steps)

    def views(self, device: torch.device) -> list[View]:
        slots = self.slots
        visible = seen(torch.arange(slots - self.steps, slots), slots, self.window)
        return [View(slice(0, self.steps), slice(0, slots), visible)]

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        if self.layers:
            before = self.layers[layer]
            keys, values = torch.cat((before[0], keys), 2), torch.cat((before[1], values), 2)
        self.grown.append((self._keep(keys), self._keep(values)))
        return keys, values

    def close(self) -> State:
        return self.read + (0 if self.nothing else self.steps), tuple(self.grown)

    def _keep(self, full: Tensor) -> Tensor:
        if self.nothing or self.window == 1:
            return full[:, :, :0]
        return full[:, :, 1 - self.window :] if self.window else full


class TracedMiniBatches:
    """As `MiniBatches`, for one token whose place in its mini-batch is a tensor."""

    fresh, single, aligned, count, length = False, True, True, 1, 1

    def __init__(self, x: Tensor, read: Tensor, mask: Tensor | None, size: int) -> None:
        self.mask, self.starts = mask, read % size
        added = torch.ones_like(read) if mask is None else mask.sum(1)
        self.ends = [self.starts + added >= size]

    def places(self) -> Tensor:
        return self.starts[:, None]

    def split(self, x: Tensor, heads: int) -> Tensor:
        return x.unflatten(-1, (heads, -1)).permute(1, 0, 2, 3)[:, :, :, None]

    def merge(self, x: Tensor) -> Tensor:
        return x[:, :, :, 0].permute(1, 0, 2, 3).flatten(2)


def _end(descent: Any, kept: Any, sums: Any, ends: Tensor) -> None:
    """`ends`: the rows that complete their mini-batch, (B,)."""
    rows, done = ends.shape[0], ends[:, None, None, None]

    def chosen(new: Tensor, old: Tensor) -> Tensor:
        after, before = (t.reshape(rows, -1, *t.shape[1:]) for t in (new, old))
        return torch.where(done, after, before).flatten(0, 1)

    moved: Any = fast_weights._move(kept, descent.last, sums)
    descent.learned = tuple(map(chosen, moved, descent.learned))
    descent.sums = tuple(chosen(torch.zeros_like(s), s) for s in sums)


def _norm_gradient(z: Tensor, a: Tensor, c: Tensor) -> Tensor:
    """P(a x + c), written out: (g - mean(g) - x mean(g x)) / std(z)"""
    centred = z - z.mean(-1, keepdim=True)
    scale = torch.rsqrt(centred.square().mean(-1, keepdim=True) + fast_weights.EPS)
    x = centred * scale
    g = a * x + c
    return (g - g.mean(-1, keepdim=True) - x * (g * x).mean(-1, keepdim=True)) * scale


def _rows(of: Any) -> Any:
    """`len`, which of a tensor would be a number."""
    return of.shape[0] if isinstance(of, Tensor) and torch.jit.is_tracing() else len(of)


def _unfold(x: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Windows of the second dimension, as the last one."""
    starts = torch.arange(0, x.shape[1] - size + 1, step)
    return x[:, starts[:, None] + torch.arange(size)].movedim(2, -1)


@contextmanager
def untraced() -> Iterator[None]:
    """What is computed inside the block is a constant of the graph."""
    tracer: Any = torch._C
    before = tracer._get_tracing_state()
    tracer._set_tracing_state(None)
    try:
        yield
    finally:
        tracer._set_tracing_state(before)


def _layer_norm(x: Tensor, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """Over the last dimension; written out if its size comes from a tensor."""
    if weight is not None:
        return torch.layer_norm(x, shape, weight, bias, eps)
    centred = x - x.mean(-1, keepdim=True)
    return centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + eps)


def _rms_norm(x: Tensor, shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    least = torch.finfo(x.dtype).eps if eps is None else eps
    normed = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + least)
    return normed if weight is None else normed * weight


def _attention(
    q: Tensor,
    keys: Tensor,
    values: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: Any = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    groups = q.shape[1] // keys.shape[1]
    if enable_gqa:
        keys, values = keys.repeat_interleave(groups, 1), values.repeat_interleave(groups, 1)
    scores = q @ keys.transpose(-1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, torch.finfo(scores.dtype).min)
    return scores.softmax(-1) @ values
