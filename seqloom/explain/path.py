"""Integrated gradients (Sundararajan et al. 2017) along the straight path from a baseline to the input.

The path is cut into pieces. Over each one the gradients must add up to what the score changes from its start to its
end, which is known without them; pieces on which they do not are halved. So the nodes go where the score bends.

K explained outputs, P positions, E the size of an embedding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from seqloom.core.instance import Instance
from seqloom.core.network import SequenceModel
from seqloom.explain.places import EMBEDDED, edited

PIECES, NODES = 4, 8  # at first, and per piece
FLOOR = 0.01  # smaller differences of scores are compared with this one, in nats or scaled units
TOLERANCE = 0.01

Scores = Callable[[SequenceModel, int], Tensor]  # copies -> (copies, K)


@dataclass(frozen=True)
class Integral:
    parts: np.ndarray  # (K, P): influence of each position
    difference: np.ndarray  # (K,): score of the input minus that of the baseline
    nodes: int  # at which gradients were taken

    @property
    def accounted(self) -> np.ndarray:
        """(K,): the share of the difference that the parts add up to; tiny differences are measured against FLOOR."""
        missing = (self.difference - self.parts.sum(1)) * np.where(self.difference < 0, -1, 1)
        return 1 - missing / np.maximum(np.abs(self.difference), FLOOR)


@dataclass(frozen=True)
class Path:
    model: SequenceModel
    instance: Instance
    start: Tensor  # (P, E)
    end: Tensor
    scores: Scores
    copies: int  # at a time

    def integrate(self, most: int) -> Integral:
        """With at most about `most` nodes."""
        edges = np.linspace(0, 1, PIECES + 1)
        at_edge = dict(zip(edges.tolist(), self._scores(edges), strict=True))
        difference = at_edge[1.0] - at_edge[0.0]
        allowed = TOLERANCE * np.maximum(np.abs(difference), FLOOR)
        waiting, nodes = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)), 0
        pieces: dict[tuple[float, float], tuple[np.ndarray, np.ndarray]] = {}  # parts (K, P) and errors (K,)
        while waiting:
            for piece, parts in zip(waiting, self._over(waiting), strict=True):
                pieces[piece] = parts, np.abs(parts.sum(1) - (at_edge[piece[1]] - at_edge[piece[0]]))
            nodes += NODES * len(waiting)
            late = sum(error for _, error in pieces.values()) > allowed
            worst = [p for p, (_, error) in pieces.items() if (error[late] > allowed[late] / len(pieces)).any()]
            room = max(0, (most - nodes) // (2 * NODES))
            worst = sorted(worst, key=lambda p: -float((pieces[p][1] / allowed).max()))[:room]
            middles = [(low + high) / 2 for low, high in worst]
            at_edge |= dict(zip(middles, self._scores(np.array(middles)), strict=True))
            halves = [((p[0], at), (at, p[1])) for p, at in zip(worst, middles, strict=True)]
            waiting = [half for both in halves for half in both]
            for piece in worst:
                del pieces[piece]
        total = np.sum([parts for parts, _ in pieces.values()], axis=0)
        return Integral(total, difference, nodes)

    def _over(self, pieces: list[tuple[float, float]]) -> np.ndarray:
        """The integral over each piece, (pieces, K, P)."""
        places, weights = np.polynomial.legendre.leggauss(NODES)
        low, high = np.array(pieces).T[..., None]
        nodes = (low + (high - low) * (places + 1) / 2).ravel()
        found = np.concatenate([self._gradients(some) for some in self._chunks(nodes)])  # (nodes, K, P)
        scaled = found.reshape(len(pieces), NODES, *found.shape[1:]) * weights[None, :, None, None] / 2
        total: np.ndarray = scaled.sum(1) * (high - low)[..., None]
        return total

    def _gradients(self, nodes: np.ndarray) -> np.ndarray:
        """Of each output along the path, by position: (nodes, K, P)."""
        step = self.end - self.start
        with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
            vectors = self._vectors(nodes).requires_grad_()
            scores = self._through(vectors)
            parts = []
            for k, score in enumerate(scores.unbind(1)):
                last = k + 1 == scores.size(1)
                (slope,) = torch.autograd.grad(score.sum(), vectors, retain_graph=not last, materialize_grads=True)
                parts.append((slope * step).sum(-1))
        return torch.stack(parts, dim=1).double().cpu().numpy()

    def _scores(self, nodes: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            found = [self._through(self._vectors(some)).double().cpu().numpy() for some in self._chunks(nodes)]
        return np.concatenate(found) if found else np.zeros((0, 0))

    def _chunks(self, nodes: np.ndarray) -> list[np.ndarray]:
        return [nodes[n : n + self.copies] for n in range(0, len(nodes), self.copies)]

    def _vectors(self, nodes: np.ndarray) -> Tensor:
        share = torch.as_tensor(nodes, dtype=self.end.dtype, device=self.end.device)[:, None, None]
        return self.start + share * (self.end - self.start)  # (copies, P, E)

    def _through(self, vectors: Tensor) -> Tensor:
        with edited(self.model, [], put(vectors)):
            return self.scores(self.model, len(vectors))


def put(vectors: Tensor) -> Callable[[str, Tensor, int], Tensor]:
    """In place of the embeddings; positions after the last one, such as forecasts fed back, pass as they are."""

    def edit(path: str, x: Tensor, first: int) -> Tensor:
        own = vectors[:, first : first + x.size(1)] if path == EMBEDDED else x
        return own if own.size(1) == x.size(1) else torch.cat((own, x[:, own.size(1) :]), dim=1)

    return edit
