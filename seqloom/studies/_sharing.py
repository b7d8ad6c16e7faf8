"""A gated cell that reads every step or a cell for each step, and two tasks, for the study of weight sharing."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from seqloom.studies._training import ASK, RECALL_TOKENS, SYMBOLS, clipped, recall

LENGTH, HIDDEN, ROWS, CLIP = 16, 32, 64, 1.0
PLACE = 3  # the token that is asked for where one place matters, counted from 0

Batch = tuple[Tensor, Tensor]  # ids (rows, length), the symbol that is asked for (rows,)


class Steps(nn.Module):
    """Reads tokens one by one, with one cell or with `cells`; beyond the last cell, that one goes on."""

    def __init__(self, cells: int) -> None:
        super().__init__()
        self.cells = nn.ModuleList(nn.GRUCell(RECALL_TOKENS, HIDDEN) for _ in range(cells))
        self.head = nn.Linear(HIDDEN, SYMBOLS)

    def forward(self, ids: Tensor) -> Tensor:
        """(B, T) -> (B, SYMBOLS), after the last token"""
        h, last = torch.zeros(len(ids), HIDDEN), len(self.cells) - 1
        for t, x in enumerate(one_hot(ids, RECALL_TOKENS).float().unbind(1)):
            h = self.cells[min(t, last)](x, h)
        found: Tensor = self.head(h)
        return found


def steps(kind: str, length: int, seed: int) -> Steps:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Steps(1 if kind == "shared" else length)


def drawn(task: str, rows: int, draw: torch.Generator, distances: Tensor | None = None, length: int = LENGTH) -> Batch:
    """`anywhere`: noise with one symbol, at one of the distances from the end. `place`: symbols only."""
    if task == "place":
        ids = torch.randint(SYMBOLS, (rows, length), generator=draw)
        symbols = ids[:, PLACE].clone()
        ids[:, -1] = ASK
        return ids, symbols
    choice = torch.arange(1, length) if distances is None else distances
    return recall(rows, length, choice[torch.randint(len(choice), (rows,), generator=draw)], draw)


def train(model: Steps, batch: Callable[[], Batch], rate: float, updates: int) -> None:
    weights = list(model.parameters())
    optimizer = torch.optim.Adam(weights, lr=rate)
    for _ in range(updates):
        ids, symbols = batch()
        optimizer.zero_grad()
        cross_entropy(model(ids), symbols).backward()
        clipped(weights, CLIP)
        optimizer.step()


@torch.inference_mode()
def accuracy(model: Steps, batch: Batch) -> float:
    return float((model(batch[0]).argmax(-1) == batch[1]).double().mean())
