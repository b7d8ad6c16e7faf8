"""Parts of the studies of reading both ways: what a stack sees, what glued directions cannot compute, the verdicts."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest
import torch

from seqloom.studies import masked_or_causal, pretraining, two_directions
from seqloom.studies._models import backbone
from seqloom.studies._names import DEPTH, HEADS, LONGEST, WIDTH, Names, names, stack
from seqloom.studies._study import Measured
from seqloom.studies.two_directions import MODELS, THIRD, _matched, _network, examples, fours


@cache
def data() -> Names:
    return names()


def between(low: float, high: float) -> Measured:
    return Measured(("", ""), (low + high) / 2, low=low, high=high)


@pytest.mark.parametrize("causal", [False, True])
def test_only_a_causal_stack_does_not_see_ahead(causal: bool) -> None:
    model = stack(data(), 0, causal=causal)
    ids = torch.tensor([[1, 5, 6, 7, 8, 2]])
    changed = ids.clone()
    changed[0, 4] = 9
    same = torch.allclose(model.encode(ids)[:, :4], model.encode(changed)[:, :4], atol=1e-6)
    assert same == causal


def test_a_stack_that_sees_both_sides_is_bert() -> None:
    model = stack(data(), 0)
    bert = backbone("bert", 1, width=WIDTH, depth=DEPTH, heads=HEADS, context=LONGEST + 2, dropout=0.0)
    bert.load_state_dict(model.backbone.state_dict())
    x, mask = torch.randn(2, 5, WIDTH), torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    assert torch.equal(model.backbone.encode(x, mask), bert.encode(x, mask))


def test_the_same_seed_gives_the_same_weights_with_and_without_a_causal_mask() -> None:
    one, other = (stack(data(), 3, causal=causal).state_dict() for causal in (False, True))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_name_is_read_between_its_marks_and_written_back() -> None:
    row = data().rows[0]
    assert (row[0], row[-1]) == (1, 2) and len(data().text(row)) == len(row) - 2


@pytest.mark.parametrize(("name", "additive"), [("one", True), ("stacks", True), ("two", False), ("encoder", False)])
def test_scores_of_glued_directions_are_a_term_of_the_left_plus_one_of_the_right(name: str, additive: bool) -> None:
    model = _network(MODELS[name], _matched(MODELS[name]), 0).eval()
    ids, _ = examples(1, "xor", torch.Generator().manual_seed(0))
    logits = {}
    for left, right in product((0, 1), repeat=2):
        ids[0, 0], ids[0, -1] = left, right
        logits[left, right] = model.encode(ids)[:, THIRD : 2 * THIRD].detach()
    rest = logits[0, 0] + logits[1, 1] - logits[0, 1] - logits[1, 0]
    assert (float(rest.abs().max()) < 1e-5) == additive


def test_rows_to_test_on_have_every_combination_of_bits_in_the_same_noise() -> None:
    ids, answers = fours(5, "sum", torch.Generator().manual_seed(0))
    assert answers.view(5, 4).tolist() == [[0, 1, 1, 2]] * 5
    bits = ids < 2
    assert bits.sum(1).tolist() == [2] * 20 and (bits.view(5, 4, -1) == bits.view(5, 4, -1)[:, :1]).all()
    noise = ids.where(~bits, 0).view(5, 4, -1)
    assert (noise == noise[:, :1]).all()


def test_pre_training_holds_if_better_everywhere_and_cannot_be_told_if_nowhere() -> None:
    better, none, worse = between(0.01, 0.02), between(-0.01, 0.01), between(-0.02, -0.01)
    assert pretraining.verdict([[better], [better, better]]) == "holds"
    assert pretraining.verdict([[better], [better, none]]) == "conditions"
    assert pretraining.verdict([[none], [better, none]]) == "untold"
    assert pretraining.verdict([[none], [worse]]) == "fails"


def test_both_halves_of_the_claim_on_bert_and_gpt_decide() -> None:
    better, none, worse = between(0.01, 0.02), between(-0.01, 0.01), between(-0.02, -0.01)
    assert masked_or_causal.verdict([better, better], better) == "holds"
    assert masked_or_causal.verdict([better, none], better) == "conditions"
    assert masked_or_causal.verdict([none, none], better) == "untold"
    assert masked_or_causal.verdict([none, worse], better) == "fails"
    assert masked_or_causal.verdict([better, better], worse) == "fails"
    assert masked_or_causal.verdict([better, better], none) == "untold"
    assert masked_or_causal.verdict([none, worse], none) == "fails"
    assert masked_or_causal.verdict([better, worse], better) == "conditions"


def test_glued_directions_fuse_if_another_layer_on_them_does() -> None:
    high, low = between(0.97, 1.0), between(0.4, 0.6)
    numbers = {(name, task): high for name in MODELS for task in ("left", "sum", "xor")}
    numbers |= {(name, "xor"): low for name in ("one", "stacks", "head", "two")}
    best = dict.fromkeys(MODELS, 0.6)
    assert two_directions.verdict(numbers, best) == "holds"
    assert two_directions.verdict(numbers, best | {"two": 1.0}) == "conditions"
    assert two_directions.verdict(numbers, best | {"one": 0.76}) == "fails"
    assert two_directions.verdict(numbers | {("one", "xor"): between(0.74, 0.76)}, best | {"one": 0.75}) == "holds"
    assert two_directions.verdict(numbers | {("one", "sum"): low}, best) == "untold"
