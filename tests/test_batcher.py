"""Continuous batching: whatever joins and leaves beside it, a row is continued as if it were alone.

The models are found by listing the folder, as in test_contract.py.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from toys import VOCABULARY, Case, accepted, close, every_case, kept, network, title, tokens

from seqloom.core.network import SequenceModel
from seqloom.decode.batcher import Batcher
from seqloom.decode.pick import Choice
from seqloom.decode.rows import Failed, Prompted, Request, Token
from seqloom.decode.stream import stream

CAUSAL = [case for case in every_case() if accepted(network, *case)]
each_model = pytest.mark.parametrize("case", CAUSAL, ids=title)
same_network = kept(network)
SAMPLED = Choice(temperature=0.8)


def prompt(length: int, seed: int = 0) -> list[int]:
    return tokens(length, seed=seed).tolist()


def alone(model: SequenceModel, request: Request) -> list[list[int]]:
    """What `stream` writes, for each continuation, up to where it is to end."""
    how: dict[str, Any] = {"max_new": request.max_new, "choose": request.choose, "seed": request.seed}
    steps = stream(model, [list(request.prompt)] * request.count, **how)
    found = [list(row) for row in zip(*(step.tolist() for step in steps), strict=True)]
    return [ended(row, request.ends) for row in found]


def ended(row: list[int], ends: frozenset[int]) -> list[int]:
    last = next((n for n, token in enumerate(row) if token in ends), len(row))
    return row[: last + 1]


def events(batcher: Batcher) -> Iterator[Any]:
    while batcher.busy:
        yield from batcher.step()


def written(found: Any, keys: Any) -> dict[Any, list[list[int]]]:
    rows: dict[Any, dict[int, list[int]]] = {key: {} for key in keys}
    for event in found:
        if isinstance(event, Token):
            rows[event.key].setdefault(event.index, []).append(event.id)
    return {key: [own[n] for n in sorted(own)] for key, own in rows.items()}


def some_requests(count: int, limit: int | None) -> list[Request]:
    """Of all kinds: short and long prompts, greedy and sampled, several continuations, own ends."""
    chance = random.Random(3)
    found = []
    for n in range(count):
        length = chance.choice([1, 2, 3, 7, 12, (limit or 30) - 1, (limit or 30) + 4])
        choose = chance.choice([Choice(temperature=0), SAMPLED, Choice(temperature=1.2, top_k=4, top_p=0.9)])
        ends = frozenset(chance.sample(range(VOCABULARY), chance.choice([0, 0, 1])))
        how: dict[str, Any] = {"seed": n, "count": chance.choice([1, 1, 1, 3]), "ends": ends}
        found.append(Request(prompt=prompt(length, n), max_new=chance.choice([1, 4, 9, 20]), choose=choose, **how))
    return found


@each_model
def test_rows_that_join_and_leave_at_random_are_continued_as_if_alone(case: Case) -> None:
    model, chance = same_network(*case), random.Random(1)
    requests = dict(enumerate(some_requests(14, model.limit)))
    batcher, waiting, found = Batcher(model, rows=5, piece=8), list(requests), []
    while waiting or batcher.busy:
        for _ in range(chance.choice([0, 0, 1, 3])):
            if waiting:
                batcher.add(waiting[0], requests[waiting.pop(0)])
        found += batcher.step()
    for key, rows in written(found, requests).items():
        assert rows == alone(model, requests[key]), (key, requests[key])
    assert not any(isinstance(event, Failed) for event in found)
    assert not batcher.slots and batcher.state is None and not batcher.active
