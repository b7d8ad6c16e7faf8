"""Pairs with a known alignment: the links are right, and so are error rates and influence measured by them."""

from __future__ import annotations

import pytest
import torch

from seqloom.studies._aligned import CHARACTERS, DATA, MONTHS, WORDS, another
from seqloom.studies._attending import attention, error_rate, influence
from seqloom.studies._pairs import Training, hits, trained
from seqloom.studies.alignment import MODELS


def draw(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("name", DATA)
def test_an_error_rate_is_zero_for_the_right_links_and_one_for_all_wrong(name: str) -> None:
    links = DATA[name].draw(20, draw()).links
    assert links is not None
    assert error_rate(links.int().argmax(-1), links) == pytest.approx(0.0)
    assert error_rate((~links).int().argmax(-1), links) == pytest.approx(1.0)


def test_digits_of_a_date_are_linked_to_the_same_digits_and_months_to_their_names() -> None:
    pairs = DATA["dates"].draw(200, draw())
    assert pairs.links is not None
    for source, target, links in zip(pairs.sources, pairs.targets, pairs.links, strict=True):
        text, out = ("".join(CHARACTERS[n] for n in ids) for ids in (source, target))
        linked = ["".join(text[s] for s in row.nonzero()[:, 0]) for row in links]
        assert linked[:4] == list(out[:4]) and linked[4] == linked[7] == ""
        assert linked[5] == linked[6] == MONTHS[int(out[5:7]) - 1]
        assert linked[9] == out[9] and (linked[8] == out[8] or out[8] == "0")


def test_only_adjectives_before_nouns_change_places() -> None:
    pairs = DATA["words"].draw(200, draw())
    assert pairs.links is not None
    from_noun = (pairs.sources < WORDS)[:, None].expand_as(pairs.links)[pairs.links].view_as(pairs.targets)
    assert torch.equal(from_noun, pairs.targets < WORDS)
    place, straight = pairs.links.int().argmax(-1), torch.arange(pairs.sources.size(1))
    assert torch.equal(place.sort(1).values, straight.expand_as(place)) and (place - straight).abs().max() == 1


def test_a_token_is_replaced_by_another_of_its_kind() -> None:
    data = DATA["dates"]
    tokens = torch.arange(len(data.names)).repeat(20)
    found = another(tokens, data.kind, draw())
    kinds = torch.tensor(data.kind)
    alone = torch.bincount(kinds)[kinds[tokens]] == 1
    assert torch.equal(kinds[found], kinds[tokens]) and torch.equal(found == tokens, alone)


@pytest.mark.parametrize("model", MODELS)
def test_weights_of_attention_sum_to_one_for_each_output(model: str) -> None:
    data, (_, kind, options) = DATA["words"], MODELS[model]
    network = trained(kind, len(data.names) + 1, data.outputs, data.draw, Training(1), 0, width=16, **small(options))
    pairs = data.draw(3, draw())
    weights = attention(network, pairs)
    assert weights.shape == (*pairs.targets.shape, pairs.sources.size(1))
    assert weights.sum(-1).allclose(torch.ones_like(weights[..., 0]), atol=1e-5)


def small(options: dict) -> dict:
    return {name: value for name, value in options.items() if name != "width"}


@pytest.mark.long
def test_a_model_that_solves_the_task_is_influenced_by_the_right_token() -> None:
    data = DATA["words"]
    network = trained("seq2seq", len(data.names) + 1, data.outputs, data.draw, Training(250), 1, width=48)
    pairs = data.draw(50, draw())
    assert pairs.links is not None and hits(network, pairs).mean() > 0.95
    drops, changes = influence(network, data, pairs, draw())
    assert error_rate(drops.argmax(-1), pairs.links) < 0.1
    assert changes[pairs.links].mean() > 0.8 > 0.4 > changes[~pairs.links].mean()
