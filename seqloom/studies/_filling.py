"""Asking pre-trained models for characters of a name: what each is given to read, what it then knows, and writing from
left to right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from seqloom.core.batch import pad
from seqloom.core.network import Network
from seqloom.pages.words import Pair
from seqloom.studies._names import BOS, EOS, SPECIALS, Names

Asked = Callable[[np.ndarray, int, int], np.ndarray]  # a name, the place asked for, the id that hides: what is read


def _before(ids: np.ndarray, t: int, mask: int) -> np.ndarray:
    return ids[:t]


def _alone(ids: np.ndarray, t: int, mask: int) -> np.ndarray:
    return np.append(ids[:t], mask)


def _ended(ids: np.ndarray, t: int, mask: int) -> np.ndarray:
    return np.append(ids[:t], (mask, EOS))


def _masks(ids: np.ndarray, t: int, mask: int) -> np.ndarray:
    """Also tells how many characters follow."""
    return np.concatenate((ids[:t], np.full(len(ids) - 1 - t, mask), [EOS]))


def _gap(ids: np.ndarray, t: int, mask: int) -> np.ndarray:
    return np.concatenate((ids[:t], [mask], ids[t + 1 :]))


def _whole(ids: np.ndarray, t: int, mask: int) -> np.ndarray:
    return ids


@dataclass(frozen=True)
class Way:
    """Of asking a model for the character at place t."""

    title: Pair
    model: str
    read: Asked
    shift: int = 0  # of the output that is looked at: 0: at the mask, 1: at the character before


WRITING = ("alone", "ended", "masks")  # with the masked model, without seeing a character ahead
WAYS = {
    "next": Way(("causal, what is before", "因果，只给前文"), "next", _before, 1),
    "alone": Way(("masked, nothing after the gap", "掩码，空缺之后无内容"), "masked", _alone),
    "ended": Way(("masked, the end after the gap", "掩码，空缺之后即结尾"), "masked", _ended),
    "masks": Way(("masked, masks up to the end", "掩码，直到结尾都是掩码"), "masked", _masks),
    "gap": Way(("masked, both sides given", "掩码，两侧都给出"), "masked", _gap),
    "ahead": Way(
        ("next character, mask left out, sees ahead", "预测下一字符，无因果掩码，可看后文"), "leak", _whole, 1
    ),
    "blind": Way(("the same, nothing ahead to see", "同上，没有后文可看"), "leak", _before, 1),
}


@torch.inference_mode()
def answers(model: Network, data: Names, way: Way, asked: list[tuple[np.ndarray, int]]) -> Tensor:
    """Log-probabilities of the character at each place asked for, among characters only: (asked, characters)."""
    found = torch.zeros(len(asked), len(data.characters))
    rows = [way.read(ids, t, data.mask) for ids, t in asked]
    order = np.argsort(list(map(len, rows)), kind="stable")
    for some in np.array_split(order, max(1, len(order) // 512)):
        inputs, mask = pad([rows[n] for n in some])
        places = torch.tensor([asked[n][1] - way.shift for n in some])
        hidden = model.represent(inputs, mask)[torch.arange(len(some)), places]
        found[some] = model.answer(hidden)[:, SPECIALS : data.mask].log_softmax(-1)
    return found


def loss(model: Network, data: Names, chosen: np.ndarray, way: Way) -> float:
    """Nats per character."""
    asked = [(data.rows[n], t) for n in chosen for t in range(1, len(data.rows[n]) - 1)]
    right = torch.tensor([int(ids[t]) - SPECIALS for ids, t in asked])
    return float(-answers(model, data, way, asked)[torch.arange(len(asked)), right].double().mean())


def counted_pairs(data: Names, learn: np.ndarray, test: np.ndarray) -> float:
    """Nats per character by counted pairs, a tenth of a count added to each."""
    counts = np.full((data.mask, data.mask), 0.1)
    for n in learn:
        np.add.at(counts, (data.rows[n][:-2], data.rows[n][1:-1]), 1)
    chances = counts[:, SPECIALS:] / counts[:, SPECIALS:].sum(axis=1, keepdims=True)
    found = np.concatenate([chances[data.rows[n][:-2], data.rows[n][1:-1] - SPECIALS] for n in test])
    return float(-np.log(found).mean())


def written(model: Network, data: Names, like: np.ndarray, way: Way) -> list[str]:
    """Names drawn from left to right, as long as these: a masked model was never asked where a name ends."""
    rows, draw = [], torch.Generator().manual_seed(0)
    for n in like:
        ids = np.full(len(data.rows[n]), BOS)
        for t in range(1, len(ids) - 1):
            chances = answers(model, data, way, [(ids, t)])[0].exp()
            ids[t] = SPECIALS + int(torch.multinomial(chances, 1, generator=draw))
        rows.append(data.text(ids[:-1]))
    return rows
