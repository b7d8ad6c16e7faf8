"""Integrated gradients (Sundararajan et al. 2017) along the straight path from a baseline to the input.

The path is cut into pieces, first where the scores themselves bend or jump. Over each piece the gradients must add up
to the change of the score from its start to its end, which is known without them; where they do not, it is halved.
Where a score jumps (a normalised memory that changes its sign), halving never ends: over so short a piece the positions
move one after the other, each credited with the change its step brings. That is a path too, and it adds up.

K explained outputs, P positions, E the size of an embedding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from seqloom.core.network import SequenceModel
from seqloom.explain.places import EMBEDDED, edited

PIECES, NODES = 8, 4  # at first, and per piece
BEND = 0.05  # a piece is halved if its middle is further from a straight line, as a share of the range of scores
SHORTEST = 2.0**-11  # pieces are not halved further
STAIRS = 16  # times as many passes as nodes may go into steps by position
FLOOR = 0.01  # smaller differences of scores are compared with this one: logits, or scaled values
TOLERANCE = 0.01

Piece = tuple[float, float]
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
    start: Tensor  # (P, E)
    end: Tensor
    scores: Scores
    copies: int  # at a time

    def integrate(self, most: int) -> Integral:
        """With gradients at no more than `most` nodes."""
        known = self._bends(most // (2 * NODES))
        edges = sorted(known)
        difference = known[1.0] - known[0.0]
        allowed = TOLERANCE * np.maximum(np.abs(difference), FLOOR)
        waiting, nodes, stairs = list(pairwise(edges)), 0, STAIRS * most // len(self.end)
        pieces: dict[Piece, tuple[np.ndarray, np.ndarray]] = {}  # parts (K, P) and errors (K,)
        while waiting:
            for piece, parts in zip(waiting, self._over(waiting), strict=True):
                pieces[piece] = parts, np.abs(parts.sum(1) - (known[piece[1]] - known[piece[0]]))
            nodes += NODES * len(waiting)
            late = sum(error for _, error in pieces.values()) > allowed
            worst = [p for p, (_, error) in pieces.items() if (error[late] > allowed[late] / len(pieces)).any()]
            worst = sorted(worst, key=lambda p: -float((pieces[p][1] / allowed).max()))
            for piece in [p for p in worst if _short(p)][:stairs]:
                pieces[piece], stairs = (self._stairs(piece), np.zeros_like(difference)), stairs - 1
            worst = [p for p in worst if not _short(p)][: max(0, most - nodes) // (2 * NODES)]
            waiting = self._halve(worst, known)
            for piece in worst:
                del pieces[piece]
        total = np.sum([parts for parts, _ in pieces.values()], axis=0)
        return Integral(total, difference, nodes)

    def _bends(self, most: int) -> dict[float, np.ndarray]:
        """Scores (K,) at the ends of at most about `most` pieces, which are short where the scores bend."""
        edges = np.linspace(0, 1, PIECES + 1)
        known = dict(zip(edges.tolist(), self._scores(edges), strict=True))
        waiting: list[Piece] = list(pairwise(sorted(known)))
        kept = set(known)
        while waiting:
            self._halve(waiting, known)
            scale = BEND * np.maximum(np.ptp(np.stack(list(known.values())), axis=0), FLOOR)
            bent = [p for p in waiting if _bend(p, known, scale) > 1 and not _short(p)]
            bent = sorted(bent, key=lambda p: -_bend(p, known, scale))[: max(0, most - len(kept))]
            kept |= {(low + high) / 2 for low, high in bent}
            waiting = [half for low, high in bent for half in pairwise((low, (low + high) / 2, high))]
        return {at: known[at] for at in kept}

    def _halve(self, pieces: list[Piece], known: dict[float, np.ndarray]) -> list[Piece]:
        """Both halves of each piece; adds the scores in the middle."""
        middles = [(low + high) / 2 for low, high in pieces]
        known |= dict(zip(middles, self._scores(np.array(middles)), strict=True))
        return [half for (low, high), at in zip(pieces, middles, strict=True) for half in pairwise((low, at, high))]

    def _over(self, pieces: list[Piece]) -> np.ndarray:
        """The integral over each piece, (pieces, K, P)."""
        places, weights = np.polynomial.legendre.leggauss(NODES)
        low, high = np.array(pieces).T[..., None]
        nodes = (low + (high - low) * (places + 1) / 2).ravel()
        found = np.concatenate([self._gradients(some) for some in self._chunks(nodes)])  # (nodes, K, P)
        scaled = found.reshape(len(pieces), NODES, *found.shape[1:]) * weights[None, :, None, None] / 2
        total: np.ndarray = scaled.sum(1) * (high - low)[..., None]
        return total

    def _stairs(self, piece: Piece) -> np.ndarray:
        """From start to end of a piece, one position after the other: (K, P)."""
        low, high = self._vectors(np.array(piece))
        count = len(low)
        moved = torch.arange(count) < torch.arange(count + 1)[:, None]  # (P + 1, P)
        steps = [torch.where(some[..., None].to(low.device), high, low) for some in moved.split(self.copies)]
        with torch.no_grad():
            scores = torch.cat([self._through(vectors) for vectors in steps]).double().cpu().numpy()
        found: np.ndarray = np.diff(scores, axis=0).T
        return found

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


def _short(piece: Piece) -> bool:
    return piece[1] - piece[0] <= SHORTEST


def _bend(piece: Piece, known: dict[float, np.ndarray], scale: np.ndarray) -> float:
    """How far the score in the middle is from the mean of both ends, in units of `scale`; of the worst output."""
    low, high = piece
    away = known[(low + high) / 2] - (known[low] + known[high]) / 2
    return float((np.abs(away) / scale).max())


def put(vectors: Tensor) -> Callable[[str, Tensor, int], Tensor]:
    """In place of the embeddings; positions after the last one, such as forecasts fed back, pass as they are."""

    def edit(path: str, x: Tensor, first: int) -> Tensor:
        own = vectors[:, first : first + x.size(1)] if path == EMBEDDED else x
        return own if own.size(1) == x.size(1) else torch.cat((own, x[:, own.size(1) :]), dim=1)

    return edit
