"""The window model: its laws, and its linear form against a window built by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from seqloom.core.backbone import Backbone
from seqloom.core.taps import record
from seqloom.models.window import Config

SETTINGS: list[dict[str, Any]] = [
    {"span": 4},
    {"span": 1, "depth": 1},
    {"span": 4, "depth": 3, "dropout": 0.2},
    {"span": 30},
    {"span": 4, "form": "linear"},
]


def model(**settings: Any) -> Backbone:
    """Small, with every weight alive (some start at zero) and in evaluation mode."""
    torch.manual_seed(0)
    built = Config.model_validate({"width": 6, "hidden": 10, **settings}).build()
    for weight in built.parameters():
        nn.init.normal_(weight, std=0.5)
    return built.eval()


def vectors(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Words:
    vocabulary, encodes, ties = 65, False, True

    def check_kind(self, kind: str) -> None:
        assert kind == "causal"

    def embed(self, width: int) -> nn.Module:
        return nn.Embedding(self.vocabulary, width)

    def head(self, width: int) -> nn.Module:
        return nn.Linear(width, self.vocabulary)


@pytest.mark.parametrize("sizes", [[1] * 12, [5, 1, 6], [2, 10]], ids=str)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_in_pieces_equals_at_once(settings: dict[str, Any], sizes: list[int]) -> None:
    built, x = model(**settings), vectors(3, 12, 6)
    whole, end = built(x)
    state, parts = None, []
    for piece in x.split(sizes, dim=1):
        part, state = built(piece, state)
        parts.append(part)
    torch.testing.assert_close(torch.cat(parts, dim=1), whole)
    torch.testing.assert_close(state, end)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_padding_changes_nothing(settings: dict[str, Any]) -> None:
    built, x = model(**settings), vectors(3, 8, 6)
    mask = torch.arange(8)[None] < torch.tensor([8, 2, 0])[:, None]
    before: Any = built.begin(vectors(3, 3, 6, seed=2))
    outputs, state = built(x, before, mask)
    assert outputs.isfinite().all()
    for row, length in enumerate([8, 2, 0]):
        alone, after = built(x[row : row + 1, :length], before[row : row + 1])
        torch.testing.assert_close(outputs[row, :length], alone[0])
        torch.testing.assert_close(state[row], after[0])
    torch.testing.assert_close(state[2], before[2])


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_the_future_changes_nothing_before_it(settings: dict[str, Any]) -> None:
    built, x = model(**settings), vectors(2, 10, 6)
    changed = x.clone()
    changed[:, 6:] += 1
    torch.testing.assert_close(built(changed)[0][:, :6], built(x)[0][:, :6])


@pytest.mark.parametrize("settings", [{"span": 4}, {"span": 4, "form": "linear"}], ids=str)
def test_looks_at_exactly_its_span(settings: dict[str, Any]) -> None:
    built, x = model(**settings), vectors(1, 10, 6).requires_grad_()
    built(x)[0][0, 8].sum().backward()
    assert x.grad is not None
    assert x.grad[0].abs().sum(-1).ne(0).nonzero().flatten().tolist() == [5, 6, 7, 8]


def test_the_linear_form_is_one_product_with_the_window() -> None:
    built, x = model(span=3, form="linear"), vectors(2, 5, 6)
    weight, bias = built.parameters()
    padded = torch.cat([torch.zeros(2, 2, 6), x], dim=1)
    wanted = torch.stack([padded[:, t : t + 3].flatten(1) @ weight.T + bias for t in range(5)], dim=1)
    torch.testing.assert_close(built(x)[0], wanted)


def test_gradients_reach_the_past_through_the_state() -> None:
    built, x = model(span=4), vectors(2, 3, 6).requires_grad_()
    _, state = built(x, None, torch.tensor([[True] * 3, [True, False, False]]))
    built(vectors(2, 1, 6, seed=2), state)[0].square().sum().backward()
    assert x.grad is not None
    assert x.grad.abs().sum(-1).ne(0).tolist() == [[True] * 3, [True, False, False]]


def test_every_hidden_layer_can_be_watched() -> None:
    built, x = model(span=4, depth=3), vectors(2, 5, 6)
    unwatched, _ = built(x)
    with record(built, "*.values") as trace:
        watched, _ = built(x)
    assert torch.equal(watched, unwatched)
    assert [t.shape for tensors in trace.values() for t in tensors] == [(2, 5, 10)] * 3


def test_the_defaults_have_about_800_thousand_parameters() -> None:
    network = Config.model_validate({}).assemble(Words())  # type: ignore[arg-type]
    assert 0.75e6 < sum(p.numel() for p in network.parameters()) < 0.85e6


def test_learns_to_copy_the_token_three_back() -> None:
    torch.manual_seed(0)
    network = Config.model_validate({"width": 16, "hidden": 64, "span": 4}).assemble(Words())  # type: ignore[arg-type]
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2)
    for _ in range(150):
        tokens = torch.randint(65, (16, 24))
        loss = nn.functional.cross_entropy(network(tokens)[0][:, 3:].flatten(0, 1), tokens[:, :-3].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.5
