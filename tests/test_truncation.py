"""Truncation of BPTT, as the study measures it: pieces as in training give what the definition gives, and random cuts
that are re-weighted have the full gradient as their mean."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from seqloom.core.network import Network
from seqloom.studies._training import network
from seqloom.studies._truncation import KEEP, SCHEMES, descend, every_pattern, factors, full_gradient, gradients

STEPS, LENGTH = 16, 8


def example(name: str, steps: int = STEPS) -> tuple[Network, Tensor, Tensor]:
    ids = torch.randint(5, (2, steps + 1), generator=torch.Generator().manual_seed(0))
    return network(name, 5, seed=0, width=6).double(), ids[:, :-1], ids[:, 1:]


@pytest.mark.parametrize("name", ["rnn", "lstm"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_gradients_by_pieces_are_those_of_the_definition(name: str, scheme: str) -> None:
    model, inputs, targets = example(name)
    given = factors(scheme, STEPS, LENGTH, torch.Generator().manual_seed(1)).double()
    wanted = gradients(model, inputs, targets, given[None])[0]
    held = descend(model, inputs, targets, given)
    found = torch.cat([p.grad.flatten() for p in model.backbone.parameters() if p.grad is not None])
    assert torch.allclose(found, wanted, atol=1e-12)
    assert len(held) == 1 + int((given == 0).sum())


@pytest.mark.parametrize("name", ["rnn", "lstm", "gru"])
def test_the_mean_over_all_cuts_is_the_full_gradient_if_re_weighted(name: str) -> None:
    model, inputs, targets = example(name, 6)
    full = full_gradient(model, inputs, targets)
    patterns, chances = every_pattern(6)
    assert float(chances.sum()) == pytest.approx(1.0)
    assert torch.allclose(chances @ gradients(model, inputs, targets, patterns / KEEP), full, atol=1e-12)
    assert not torch.allclose(chances @ gradients(model, inputs, targets, patterns), full, atol=1e-3)


def test_regular_cuts_come_at_fixed_places_and_random_ones_after_chunks() -> None:
    draw = torch.Generator().manual_seed(0)
    assert factors("regular", STEPS, LENGTH, draw).eq(0).nonzero().flatten().tolist() == [7]
    cuts = factors("random", 400, LENGTH, draw).eq(0).nonzero().flatten() + 1
    assert (cuts % (LENGTH // 4) == 0).all() and 30 < len(cuts) < 70
