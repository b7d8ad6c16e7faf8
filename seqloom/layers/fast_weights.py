"""Fast weights: a small model inside a layer, trained by gradient descent on the sequence as it is read.

The model has one matrix per layer, z_j = x_{j-1} W_j and x_j = gelu(z_j); every x ends in a 1, so the last row of W is
the bias. A mini-batch starts from weights W. Each of its tokens has a key and a loss, whose gradients G are all taken
at W. After token t the weights have moved by tau_t times the sum of gradients so far (Sun et al. 2024, section 2):

    primal   W_t = W - tau_t S_t,  S_t = sum_{s<=t} x_s^T G_s;  the output for query t is q_t W_t
    dual     outputs = Q W - (tau_t tril(Q X^T)) G        the same for all t at once, without a matrix per token

G includes each token's learning rate. The part of a mini-batch that was read earlier enters through S.
Training is sequential over mini-batches; in the dual form, the outputs are then computed for all of them together.

N = heads x rows (x mini-batches, in the dual form), K tokens per mini-batch, D values per key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from seqloom.layers.transformer import gelu

EPS = 1e-6
Weights = tuple[Tensor, ...]  # one (N, inputs + 1, outputs) per layer of the model
Gradient = Callable[[Tensor], Tensor]  # of the loss, at the model's outputs for the keys


class Lesson(NamedTuple):
    """Forward and backward pass on the keys."""

    inputs: Weights  # (N, K, inputs + 1): inputs of each layer
    gradients: Weights  # (N, K, outputs): of the loss, at the outputs of each layer
    given: Tensor  # (N, K, D): outputs of the model


class Descent:
    """The inner model during training.

    `start`: initial weights; `learned`: the update accumulated over finished mini-batches, which the next one scales
    by `keep`; `sums`: summed gradients of the unfinished mini-batch, None if all rows are at a boundary; `last`: tau of
    a mini-batch's last token; `lesson`: the latest tokens.

    Both forms read queries and keys (M, N, K, D + 1) of M mini-batches, where `ends` marks the rows that complete each
    of them, and return the model's outputs for the queries and for the keys, (M * N, K, D).
    """

    def __init__(
        self, start: Weights, learned: Weights, sums: Weights | None, last: Tensor, keep: Tensor | None = None
    ) -> None:
        self.start, self.learned, self.sums, self.last, self.keep = start, learned, sums, last, keep
        self.lesson: Lesson | None = None

    def primal(
        self, queries: Tensor, keys: Tensor, gradients: list[Gradient], tau: Tensor, ends: list[list[bool]]
    ) -> tuple[Tensor, Tensor]:
        """For a single token: M = K = 1."""
        kept, weights = self._begin()
        self.lesson = lesson = learn(weights, keys[0], gradients[0])
        sums = _sum(self.sums, lesson)
        self._end(kept, sums, ends[0])
        return recall(_move(weights, tau, sums), queries[0]), lesson.given

    def dual(
        self, queries: Tensor, keys: Tensor, gradients: list[Gradient], tau: Tensor, ends: list[list[bool]]
    ) -> tuple[Tensor, Tensor]:
        """Train mini-batch by mini-batch, then compute the outputs for all of them."""
        first, begun, lessons = self.sums, [], []
        for key, gradient, end in zip(keys, gradients, ends, strict=True):
            kept, weights = self._begin()
            begun.append(weights)
            lessons.append(learn(weights, key, gradient))
            if self.sums is None and all(end):
                self.learned = _move_at_once(kept, self.last, lessons[-1])
            else:
                self._end(kept, _sum(self.sums, lessons[-1]), end)
        self.lesson = lesson = Lesson(
            _join([each.inputs for each in lessons]),
            _join([each.gradients for each in lessons]),
            torch.cat([each.given for each in lessons]),
        )
        return recall_all(_join(begun), first, queries.flatten(0, 1), lesson, tau), lesson.given

    def changes(self) -> Tensor:
        """How far each of the latest tokens moves the weights in the end, |tau x^T G| over all layers: (M * N, K)"""
        assert self.lesson is not None
        pairs = zip(self.lesson.inputs, self.lesson.gradients, strict=True)
        squares = [x.square().sum(-1) * g.square().sum(-1) for x, g in pairs]
        return self.last[..., 0] * torch.stack(squares).sum(0).sqrt()

    def _begin(self) -> tuple[Weights, Weights]:
        """The decayed update, and the weights that the mini-batch starts from."""
        kept = self.learned if self.keep is None else tuple(self.keep * x for x in self.learned)
        return kept, tuple(w + x for w, x in zip(self.start, kept, strict=True))

    def _end(self, kept: Weights, sums: Weights, ends: list[bool]) -> None:
        """Apply the update in the rows where the mini-batch is complete."""
        self.sums = sums
        if not any(ends):
            return
        moved = _move(kept, self.last, sums)
        if all(ends):
            self.learned, self.sums = moved, None
            return
        done = torch.tensor(ends, device=self.last.device).repeat_interleave(len(sums[0]) // len(ends))[:, None, None]
        self.learned = tuple(torch.where(done, new, old) for new, old in zip(moved, self.learned, strict=True))
        self.sums = tuple(s.masked_fill(done, 0) for s in sums)


def learn(weights: Weights, keys: Tensor, gradient: Gradient) -> Lesson:
    """Forward and backward through the model."""
    inputs, hidden = [keys], []
    for w in weights[:-1]:
        hidden.append(inputs[-1] @ w)
        inputs.append(with_one(gelu(hidden[-1])))
    given = inputs[-1] @ weights[-1]
    gradients = [gradient(given)]
    for w, z in zip(reversed(weights[1:]), reversed(hidden), strict=True):
        back = gradients[0] @ w[:, :-1].mT
        gradients.insert(0, torch.ops.aten.gelu_backward(back, z, approximate="tanh"))
    return Lesson(tuple(inputs), tuple(gradients), given)


def recall(weights: Weights, queries: Tensor) -> Tensor:
    """The model's outputs."""
    for w in weights[:-1]:
        queries = with_one(gelu(queries @ w))
    return queries @ weights[-1]


def recall_all(weights: Weights, sums: Weights | None, queries: Tensor, lesson: Lesson, tau: Tensor) -> Tensor:
    """The dual form: all outputs of mini-batches that start from these weights, each after its own token's step.

    `sums`: summed gradients of the part of the first mini-batch that was read earlier.
    """
    visible, x = tau.expand(-1, len(tau)).tril(), queries  # (K, K)
    for layer, w in enumerate(weights):
        x = with_one(gelu(x)) if layer else x
        z = torch.baddbmm(x @ w, visible * (x @ lesson.inputs[layer].mT), lesson.gradients[layer], alpha=-1)
        if sums is not None:
            s = sums[layer]
            z = torch.cat((z[: len(s)] - tau * (x[: len(s)] @ s), z[len(s) :]))
        x = z
    return x


def _sum(sums: Weights | None, lesson: Lesson) -> Weights:
    """S + x^T G"""
    pairs = zip(lesson.inputs, lesson.gradients, strict=True)
    if sums is None:
        return tuple(x.mT @ g for x, g in pairs)
    return tuple(torch.baddbmm(s, x.mT, g) for s, (x, g) in zip(sums, pairs, strict=True))


def _move(weights: Weights, tau: Tensor, sums: Weights) -> Weights:
    """W - tau S"""
    return tuple(torch.addcmul(w, tau, s, value=-1) for w, s in zip(weights, sums, strict=True))


def _move_at_once(weights: Weights, tau: Tensor, lesson: Lesson) -> Weights:
    """W - tau x^T G"""
    layers = zip(weights, lesson.inputs, lesson.gradients, strict=True)
    return tuple(torch.baddbmm(w, (tau * x).mT, g, alpha=-1) for w, x, g in layers)


def _join(parts: Sequence[Weights]) -> Weights:
    """Concatenate mini-batches, layer by layer."""
    return tuple(torch.cat(layer) for layer in zip(*parts, strict=True))


def with_one(x: Tensor) -> Tensor:
    """Append the 1 that multiplies the bias."""
    return F.pad(x, (0, 1), value=1.0)


def normalise(z: Tensor) -> Tensor:
    return F.layer_norm(z, z.shape[-1:], eps=EPS)


def norm_gradient(z: Tensor, a: Tensor, c: Tensor) -> Tensor:
    """The gradient at z of a loss whose gradient at x = normalise(z) is g = a * x + c:

    P(g) = (g - mean(g) - x mean(g x)) / std(z)
    """
    return _NormGradient.apply(z, a, c)


class _NormGradient(Function):
    """Training differentiates through this gradient, so it needs a backward itself. With u from above, G = P(g):

    dg = P(u),  dz = P(a dg) - (mean(g x) dg + mean(u x) G + mean(u G) x) / std(z)
    """

    @staticmethod
    def forward(ctx: Any, z: Tensor, a: Tensor, c: Tensor) -> Tensor:
        x, mean, scale = torch.native_layer_norm(z, z.shape[-1:], None, None, EPS)
        g = torch.addcmul(c, a, x)
        result = _project(g, z, mean, scale)
        ctx.save_for_backward(z, mean, scale, x, a, g, result)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        z, mean, scale, x, a, g, result = ctx.saved_tensors
        dg = _project(u, z, mean, scale)
        dz = _project(a * dg, z, mean, scale)
        for one, other, times in ((g, x, dg), (u, x, result), (u, result, x)):
            dz.addcmul_(scale * (one * other).mean(-1, keepdim=True), times, value=-1)
        return dz, dg * x, dg


def _project(g: Tensor, z: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
    wanted = (True, False, False)
    return torch.ops.aten.native_layer_norm_backward(g, z, z.shape[-1:], mean, scale, None, None, wanted)[0]
