"""Scores and alignments by themselves: numbers worked out by hand, and gradients of what cannot be differentiated."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor
from toys import alive, close

from seqloom.core.taps import record
from seqloom.layers import alignments
from seqloom.layers.alignments import ALIGNMENTS, LocalPredictive, draw, reinforce, softmax, sparsemax
from seqloom.layers.general_attention import GeneralAttention
from seqloom.layers.scores import SCORES, Score

each_score = pytest.mark.parametrize("score", SCORES)


def vectors(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def numbers(*values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def mask_of(lengths: list[int], size: int) -> Tensor:
    return torch.arange(size) < torch.tensor(lengths)[:, None]


# every score by hand: one query (1, 2), keys (3, -1) and (0, 2)


def scored(score: Score, **weights: list) -> list[float]:
    score = score.double()
    for name, value in weights.items():
        score.get_parameter(name.replace("__", ".")).data = numbers(*value)
    return score(numbers([[1.0, 2.0]]), numbers([[3.0, -1.0], [0.0, 2.0]])).flatten().tolist()


BY_HAND: dict[str, tuple[dict[str, list], list[float]]] = {
    # W1 q = (1 - 2, 2) = (-1, 2); W2 k + b = (4, -1/2) and (1, 1); tanh of (3, 1.5) and (0, 3); w = (1, -2)
    "additive": (
        {
            "of_query__weight": [[1.0, -1.0], [0.0, 1.0]],
            "of_key__weight": [[1.0, 0.0], [0.0, 0.5]],
            "of_key__bias": [1.0, 0.0],
            "weigh__weight": [[1.0, -2.0]],
        },
        [0.99505475 - 2 * 0.90514825, 0.0 - 2 * 0.99505475],
    ),
    "dot": ({}, [3.0 - 2.0, 4.0]),
    "scaled_dot": ({}, [1 / 1.41421356, 4 / 1.41421356]),
    # W q with W = [[1, 0], [2, 1]] is (1, 4); stored is W transposed, for it meets the keys
    "general": ({"matrix__weight": [[1.0, 2.0], [0.0, 1.0]]}, [3.0 - 4.0, 8.0]),
    # the same W, and b = (-2, 1): W q + b = (-1, 5)
    "biased_general": ({"matrix__weight": [[1.0, 2.0], [0.0, 1.0], [-2.0, 1.0]]}, [-3.0 - 5.0, 10.0]),
    # tanh(-1 + 0.5) and tanh(8 + 0.5)
    "activated_general": ({"matrix__weight": [[1.0, 2.0], [0.0, 1.0]], "bias": [0.5]}, [-0.46211716, 0.99999992]),
    # |q| = 2.23606798, |k| = 3.16227766 and 2
    "similarity": ({}, [1 / 7.07106781, 4 / 4.47213595]),
}


@each_score
def test_a_score_equals_the_one_worked_out_by_hand(score: str) -> None:
    weights, wanted = BY_HAND[score]
    assert scored(SCORES[score](2, 2, 2), **weights) == pytest.approx(wanted, abs=1e-7)


@each_score
def test_keys_prepared_once_score_as_keys_that_are_not(score: str) -> None:
    module, q, keys = alive(SCORES[score](4, 4, 5)), vectors(2, 3, 4), vectors(2, 6, 4, seed=1)
    close(module.compare(q, module.prepare(keys)), module(q, keys))


def test_an_additive_score_of_many_dimensions_has_a_vector_w_for_each() -> None:
    many, one = alive(SCORES["additive"](4, 3, 5, 2)), alive(SCORES["additive"](4, 3, 5))
    q, keys = vectors(2, 3, 4), vectors(2, 6, 3, seed=1)
    for d in range(2):
        one.load_state_dict({**many.state_dict(), "weigh.weight": many.weigh.weight[d : d + 1]})
        close(many(q, keys)[..., d], one(q, keys))


def test_a_similarity_with_nothing_is_zero_and_has_gradients() -> None:
    q = torch.zeros(1, 1, 2).requires_grad_()
    scores = SCORES["similarity"](2, 2, 0)(q, torch.ones(1, 1, 2))
    (gradient,) = torch.autograd.grad(scores.sum(), [q])
    assert scores.item() == 0.0 and gradient.isfinite().all()


# every alignment by hand: scores ln 1, ln 2, ln 5 (softmax 1/8, 2/8, 5/8) and further features

LOGS = [math.log(n) for n in (1.0, 2.0, 5.0)]


def aligned(align: str, scores: list[float], start: int = 0, window: int = 1, training: bool = False) -> list[float]:
    module = ALIGNMENTS[align](2, 2, window).double().train(training)
    return module(numbers([scores]), None, vectors(1, 1, 2), start).flatten().tolist()


def test_soft_by_hand() -> None:
    assert aligned("soft", LOGS) == pytest.approx([1 / 8, 2 / 8, 5 / 8])


def test_sparsemax_by_hand() -> None:
    # sums of the largest: 1.2, 2.0, 1.9; 1 + k e_k: 2.2, 2.6, 0.7: two are in; tau = (2.0 - 1) / 2 = 0.5
    assert aligned("sparsemax", [0.8, -0.1, 1.2]) == pytest.approx([0.3, 0.0, 0.7])
    assert aligned("sparsemax", [0.0, 3.0, 1.9]) == pytest.approx([0.0, 1.0, 0.0])
    assert aligned("sparsemax", [7.0, 7.0, 7.0]) == pytest.approx([1 / 3, 1 / 3, 1 / 3])


def test_local_monotonic_by_hand() -> None:
    scores = [*LOGS, 9.0]
    assert aligned("local_monotonic", scores, start=0) == pytest.approx([1 / 3, 2 / 3, 0.0, 0.0])
    assert aligned("local_monotonic", scores, start=1) == pytest.approx([1 / 8, 2 / 8, 5 / 8, 0.0])
    assert aligned("local_monotonic", scores, start=4) == pytest.approx([0.0, 0.0, 0.0, 1.0])
    assert aligned("local_monotonic", scores, start=5) == [0.0, 0.0, 0.0, 0.0]


def test_local_predictive_by_hand() -> None:
    module = LocalPredictive(2, 1, window=2).double()
    module.hidden.weight.data, module.place.weight.data = numbers([0.0, 1.0]), numbers([2.0])
    query = numbers([[5.0, math.atanh(-math.log(3) / 2)]])  # so that sigmoid(2 tanh(...)) = 1/4
    weights = module(numbers([[*LOGS, 9.0, 9.0, 9.0]]), mask_of([4], 6), query)
    # p = 4/4 = 1 and D = 2: the window has 0, 1, 2, 3, sigma = 1: exp(-1/2), 1, exp(-1/2), exp(-2)
    soft = [1 / (8 + math.e**9), 2 / (8 + math.e**9), 5 / (8 + math.e**9), math.e**9 / (8 + math.e**9)]
    bell = [0.60653066, 1.0, 0.60653066, 0.13533528]
    assert weights.flatten().tolist() == pytest.approx([a * b for a, b in zip(soft, bell, strict=True)] + [0.0, 0.0])


@pytest.mark.parametrize("align", ["hard", "hard_reinforce"])
def test_hard_by_hand(align: str) -> None:
    assert aligned(align, LOGS) == [0.0, 0.0, 1.0]
    torch.manual_seed(0)
    drawn = torch.tensor([aligned(align, LOGS, training=True) for _ in range(400)])
    assert drawn.sum(1).eq(1).all() and drawn.eq(1).sum(1).eq(1).all()
    assert drawn.mean(0).tolist() == pytest.approx([1 / 8, 2 / 8, 5 / 8], abs=0.07)


# gradients of what cannot be differentiated


def chooser(score: str) -> GeneralAttention:
    return alive(GeneralAttention(4, 6, 8, score=score, align="hard_reinforce"), 0.7).train()


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3, 4, 5)])
def test_straight_through_has_the_gradient_of_the_softmax(shape: tuple[int, ...]) -> None:
    scores, upstream, mask = vectors(*shape).requires_grad_(), vectors(*shape, seed=1), mask_of([4, 2], 4)
    hard, soft = (ALIGNMENTS[name](2, 2, 1).train() for name in ("hard", "soft"))
    found = [torch.autograd.grad(m(scores, mask, vectors(2, 3, 2)), [scores], upstream)[0] for m in (hard, soft)]
    assert torch.equal(*found)


@pytest.mark.parametrize("baseline", [0.0, 1.7])
def test_reinforce_is_on_average_the_gradient_of_the_expected_loss(
    baseline: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, q, features = chooser("general"), vectors(1, 2, 4), vectors(1, 3, 6, seed=1)
    weights, wanted_value = list(model.parameters()), numbers(0.0)
    likely = softmax(model.heads[0].score(q, features))[0]  # (2, 3)
    mean = [torch.zeros_like(w) for w in weights]
    for choice in itertools.product(range(3), repeat=2):
        monkeypatch.setattr(alignments, "draw", lambda _, c=choice: torch.tensor(c).view(1, 2, 1))
        with record(model, "*.choice") as choices:
            contexts = model(q, model.read(features))
        losses = contexts.square().sum((1, 2)) + contexts[:, 0, 0] * contexts[:, 1, 1]
        extra = reinforce(choices, losses, baseline)
        assert extra.item() == 0.0
        chance = likely[0, choice[0]] * likely[1, choice[1]]
        wanted_value = wanted_value + chance * losses[0]
        found = torch.autograd.grad((losses + extra).sum(), weights, retain_graph=True)
        mean = [m + chance.detach() * g for m, g in zip(mean, found, strict=True)]
    for ours, theirs in zip(mean, torch.autograd.grad(wanted_value, weights), strict=True):
        close(ours, theirs)


def test_choices_among_nothing_are_certain() -> None:
    model = chooser("dot")
    with record(model, "*.choice") as choices:
        model(vectors(3, 5, 4), model.read(vectors(3, 7, 6, seed=1), mask_of([7, 4, 0], 7)))
    (logs,) = choices["heads.0.align.choice"]
    assert logs.shape == (3, 5) and logs[:2].lt(0).all() and logs[2].eq(0).all()


def test_what_is_drawn_never_has_weight_zero() -> None:
    weights = softmax(vectors(50, 20, 7), mask_of([3] * 50, 7)[:, None])
    assert draw(weights).max() < 3


def test_sparsemax_is_the_nearest_point_of_the_simplex() -> None:
    scores = vectors(20, 1, 5)
    weights = sparsemax(scores)
    assert weights.eq(0).any()
    others = softmax(3 * vectors(20, 1000, 5, seed=1))
    assert ((weights - scores).norm(dim=-1) <= (others - scores).norm(dim=-1) + 1e-12).all()
