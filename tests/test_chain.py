"""Chains of dependent operations, and the size of models, in studies of cost."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from seqloom.studies._chain import Chain, longest
from seqloom.studies._models import parameters
from seqloom.studies._training import matched, network


def test_a_chain_counts_what_has_to_wait() -> None:
    x = torch.ones(4, device="meta")
    with Chain() as chain:
        y = x
        for _ in range(5):
            y = y * 2
        torch.stack([y.view(2, 2)[0], (x + 1)[:2]])  # the shorter branch and the views add nothing
    assert chain.length == 6


def test_writing_in_place_is_an_operation() -> None:
    x = torch.ones(4, device="meta")
    with Chain() as chain:
        x.add_(1).mul_(2)
        torch.add(x, 1, out=torch.empty(4, device="meta"))
    assert chain.length == 3


def test_the_backward_pass_belongs_to_the_chain() -> None:
    w = torch.ones(4, device="meta", requires_grad=True)

    def loss() -> Tensor:
        return w.sin().exp().sum()

    with Chain() as chain:
        loss()
    assert chain.length == 3 and longest(loss) > 5


@pytest.mark.parametrize("name", ["lstm", "gpt", "mingru"])
def test_matched_networks_have_the_size(name: str) -> None:
    options = matched(name, 30_000, 50)
    assert abs(parameters(network(name, 50, 0, **options)) / 30_000 - 1) < 0.02
