"""What linear probes read from the vector at every step of a row: characters read before, and facts about the place."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from seqloom.pages.words import Pair
from seqloom.studies._paragraphs import Rows
from seqloom.studies._reading import Probe, balanced, fit_of, threshold

LAGS = (1, 2, 4, 8, 16, 32)
FIRST = LAGS[-1]  # position of a row from which on it is probed
OPEN: dict[str, Pair] = {"quoted": ("inside a quotation", "在引号内"), "bracketed": ("inside brackets", "在括号内")}
Halves = tuple[Rows, Rows]  # to fit probes on, and to test them
Scores = dict[str, float]


def probed_scores(features: list[Tensor], rows: Halves, tokens: int) -> Scores:
    """Of probes on (N, T, F) features of the rows to fit on and of those to test on."""
    truth, wanted = (targets(half, tokens) for half in rows)
    known, asked = (each[:, FIRST:].flatten(0, 1) for each in features)
    probe = Probe(known, truth)
    found = probe.read(asked)
    named = [each[:, :-3].unflatten(1, (-1, tokens)).argmax(2) for each in (found, wanted)]
    scores = {
        f"lag {lag}": share for lag, share in zip(LAGS, (named[0] == named[1]).double().mean(0).tolist(), strict=True)
    }
    limits = [threshold(*pair) for pair in zip(probe.read(known)[:, -3:-1].T, truth[:, -3:-1].T > 0, strict=True)]
    for n, (name, limit) in enumerate(zip(OPEN, limits, strict=True), start=-3):
        scores[name] = balanced(found[:, n], wanted[:, n] > 0, limit)
    return scores | {"column": fit_of(found[:, -1], wanted[:, -1])}


def targets(rows: Rows, tokens: int) -> Tensor:
    """(n, K) at the probed positions: the character so many steps ago, for each lag; then the facts."""
    width = rows.ids.size(1)
    past = [one_hot(rows.ids[:, FIRST - lag : width - lag], tokens) for lag in LAGS]
    return torch.cat([*past, rows.facts[:, FIRST:]], dim=2).flatten(0, 1)
