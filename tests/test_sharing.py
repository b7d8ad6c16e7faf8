"""The networks and tasks of the study of weight sharing."""

from __future__ import annotations

import torch

from seqloom.studies._models import parameters
from seqloom.studies._sharing import LENGTH, PLACE, drawn, steps
from seqloom.studies._training import ASK, SYMBOLS


def test_a_shared_cell_has_one_size_and_own_cells_one_for_each_step() -> None:
    one = parameters(steps("shared", 1, 0).cells)
    assert [parameters(steps("shared", n, 0).cells) for n in (4, 16)] == [one, one]
    assert [parameters(steps("own", n, 0).cells) for n in (4, 16)] == [4 * one, 16 * one]


def test_own_cells_that_are_all_the_same_are_a_shared_cell() -> None:
    shared, own = steps("shared", LENGTH, 0), steps("own", LENGTH, 0)
    for cell in own.cells:
        cell.load_state_dict(shared.cells[0].state_dict())
    own.head.load_state_dict(shared.head.state_dict())
    ids = drawn("anywhere", 5, torch.Generator().manual_seed(0), length=2 * LENGTH)[0]
    assert torch.equal(shared(ids), own(ids))


def test_symbols_stand_at_the_given_distances_and_places() -> None:
    draw = torch.Generator().manual_seed(0)
    ids, symbols = drawn("anywhere", 100, draw, torch.tensor([2, 5]))
    where = LENGTH - 1 - (ids < SYMBOLS).nonzero()[:, 1]
    assert set(where.tolist()) == {2, 5} and len(where) == 100
    assert torch.equal(ids[ids < SYMBOLS], symbols) and bool((ids[:, -1] == ASK).all())
    ids, symbols = drawn("place", 100, draw)
    assert torch.equal(ids[:, PLACE], symbols)
