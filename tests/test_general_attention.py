"""The general attention model: every score with every alignment, several heads, hops and dimensions."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import functional_call
from toys import alive, close, each

from seqloom.core.errors import UserError
from seqloom.core.state import select_rows
from seqloom.core.taps import record
from seqloom.layers.alignments import ALIGNMENTS
from seqloom.layers.general_attention import GeneralAttention, plain_self_attention
from seqloom.layers.scores import SCORES

ROWS, STEPS, LENGTH, QUERY, FEATURES, WIDTH = 3, 5, 7, 4, 6, 8
LENGTHS = [7, 4, 0]
ROWS_SUM_TO_ONE = ["soft", "sparsemax", "hard", "hard_reinforce"]
DIFFERENTIABLE = ["soft", "sparsemax", "local_monotonic", "local_predictive"]

each_score = pytest.mark.parametrize("score", SCORES)
each_alignment = each(align=list(ALIGNMENTS))
each_shape = pytest.mark.parametrize(
    "shape", [{}, {"heads": 2}, {"hops": 3}, {"multi": True}, {"heads": 4, "hops": 2, "multi": True}], ids=str
)


def vectors(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def numbers(*values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def mask_of(lengths: list[int], size: int = LENGTH) -> Tensor:
    return torch.arange(size) < torch.tensor(lengths)[:, None]


def attention(
    score: str = "additive", align: str = "soft", features: int = FEATURES, **options: Any
) -> GeneralAttention:
    return alive(GeneralAttention(QUERY, features, WIDTH, score=score, align=align, **{"window": 2, **options}), 0.7)


def ask(model: GeneralAttention, **options: Any) -> Tensor:
    """Contexts of the usual queries and source."""
    source = model.read(vectors(ROWS, LENGTH, FEATURES, seed=1), mask_of(LENGTHS))
    return model(vectors(ROWS, STEPS, QUERY), source, **options)


def weights_of(model: GeneralAttention) -> Tensor:
    with record(model, "alignment") as trace:
        ask(model)
    return trace["alignment"][0]


# every score with every alignment


@each_score
@each_alignment
@each(features=[FEATURES, QUERY])
def test_contexts_have_the_width_and_weights_the_shape_of_the_question(score: str, align: str, features: int) -> None:
    model = attention(score, align, features)
    with record(model, "alignment") as trace:
        contexts = model(vectors(ROWS, STEPS, QUERY), model.read(vectors(ROWS, LENGTH, features)))
    assert contexts.shape == (ROWS, STEPS, WIDTH)
    assert trace["alignment"][0].shape == (ROWS, 1, STEPS, LENGTH)


@each_score
@each_alignment
def test_padding_weighs_nothing_and_changes_nothing(score: str, align: str) -> None:
    model, q, features = attention(score, align), vectors(ROWS, STEPS, QUERY), vectors(ROWS, LENGTH, FEATURES, seed=1)
    mask = mask_of(LENGTHS)
    noise = torch.where(mask[..., None], features, 100 * vectors(ROWS, LENGTH, FEATURES, seed=2))
    with record(model, "alignment") as trace:
        contexts = model(q, model.read(noise, mask))
    assert trace["alignment"][0].masked_fill(mask[:, None, None], 0.0).eq(0).all()
    for row, length in enumerate(LENGTHS):
        alone = model(q[row : row + 1], model.read(features[row : row + 1, :length]))
        close(contexts[row : row + 1], alone)


@each_score
@each_alignment
def test_a_row_of_padding_gives_zeros_and_gradients_without_nan(score: str, align: str) -> None:
    model = attention(score, align).train()
    features = vectors(ROWS, LENGTH, FEATURES, seed=1).requires_grad_()
    contexts = model(vectors(ROWS, STEPS, QUERY), model.read(features, mask_of(LENGTHS)))
    assert contexts.isfinite().all() and contexts[2].eq(0).all()
    (gradient,) = torch.autograd.grad(contexts.square().sum(), [features])
    assert gradient.isfinite().all() and gradient[2].eq(0).all()


@each_alignment
@each(multi=[False, True])
def test_a_source_of_no_features_gives_zeros(align: str, multi: bool) -> None:
    model = attention("additive", align, multi=multi)
    assert model(vectors(ROWS, STEPS, QUERY), model.read(vectors(ROWS, 0, FEATURES))).eq(0).all()


@each_score
@each(align=ROWS_SUM_TO_ONE)
@each(training=[False, True])
def test_the_weights_of_a_query_sum_to_one(score: str, align: str, training: bool) -> None:
    weights = weights_of(attention(score, align).train(training))
    close(weights[:2].sum(-1), torch.ones(2, 1, STEPS).double())
    assert weights.ge(0).all()


class Whole(torch.nn.Module):
    """Reading and asking as one function."""

    def __init__(self, attention: GeneralAttention) -> None:
        super().__init__()
        self.attention = attention

    def forward(self, q: Tensor, features: Tensor, mask: Tensor) -> Tensor:
        return self.attention(q, self.attention.read(features, mask))


@each_score
@each(align=DIFFERENTIABLE)
def test_gradients_equal_finite_differences(score: str, align: str) -> None:
    whole = alive(Whole(GeneralAttention(2, 3, 2, score=score, align=align, window=1)), 0.7)
    names, weights = zip(*whole.named_parameters(), strict=True)

    def contexts(q: Tensor, features: Tensor, *weights: Tensor) -> Tensor:
        return functional_call(whole, dict(zip(names, weights, strict=True)), (q, features, mask_of([4, 2], 4)))

    given = [vectors(2, 3, 2), vectors(2, 4, 3, seed=1), *(w.detach() for w in weights)]
    assert torch.autograd.gradcheck(contexts, [x.requires_grad_() for x in given])


@each_score
@each_alignment
def test_one_query_at_a_time_equals_all_at_once(score: str, align: str) -> None:
    model, q = attention(score, align), vectors(ROWS, STEPS, QUERY)
    source = model.read(vectors(ROWS, LENGTH, FEATURES, seed=1), mask_of(LENGTHS))
    steps = [model(x, source, start=t) for t, x in enumerate(q.split(1, dim=1))]
    close(torch.cat(steps, dim=1), model(q, source))


@each_score
@each_alignment
def test_rows_selected_from_a_source_equal_these_rows_alone(score: str, align: str) -> None:
    model, q, features = attention(score, align), vectors(ROWS, STEPS, QUERY), vectors(ROWS, LENGTH, FEATURES, seed=1)
    rows, mask = torch.tensor([1, 1, 0]), mask_of(LENGTHS)
    selected: Any = select_rows(model.read(features, mask), rows)
    close(model(q, selected), model(q, model.read(features[rows], mask[rows])))


def test_rows_can_be_selected_from_a_source_without_mask() -> None:
    model, q, features = attention(heads=2), vectors(1, STEPS, QUERY), vectors(ROWS, LENGTH, FEATURES, seed=1)
    selected: Any = select_rows(model.read(features), torch.tensor([2]))
    close(model(q, selected), model(q, model.read(features[2:])))


# heads, hops, dimensions, watching


@each_shape
@each_alignment
def test_watched_equals_unwatched(shape: dict[str, Any], align: str) -> None:
    model = attention("additive", align, **shape)
    unwatched = ask(model)
    with record(model) as trace:
        watched = ask(model)
    assert torch.equal(watched, unwatched)
    assert len(trace["alignment"]) == shape.get("hops", 1)
    for weights in trace["alignment"]:
        assert weights.shape == (ROWS, shape.get("heads", 1), STEPS, LENGTH)


@each_shape
@each_alignment
def test_all_shapes_keep_the_law_of_one_query_at_a_time(shape: dict[str, Any], align: str) -> None:
    model, q = attention("additive", align, **shape), vectors(ROWS, STEPS, QUERY)
    source = model.read(vectors(ROWS, LENGTH, FEATURES, seed=1), mask_of(LENGTHS))
    close(torch.cat([model(q[:, t : t + 1], source, t) for t in range(STEPS)], dim=1), model(q, source))


@each_score
def test_many_heads_are_single_ones_side_by_side(score: str) -> None:
    model, q, features = attention(score, heads=2), vectors(ROWS, STEPS, QUERY), vectors(ROWS, LENGTH, FEATURES, seed=1)
    found = []
    for head in model.heads:
        single = alive(GeneralAttention(WIDTH // 2, FEATURES, WIDTH // 2, score=score))
        single.load_state_dict({f"heads.0.{k}": v for k, v in head.state_dict().items() if not k.startswith("ask")})
        found.append(single(q @ head.ask.weight.T, single.read(features)))
    close(model(q, model.read(features)), model.out(torch.cat(found, dim=-1)))


def test_scaled_dot_heads_with_copied_weights_are_those_of_torch() -> None:
    theirs = torch.nn.MultiheadAttention(WIDTH, 2, kdim=FEATURES, vdim=FEATURES, batch_first=True)
    model = alive(GeneralAttention(WIDTH, FEATURES, WIDTH, score="scaled_dot", heads=2), 0.7)
    stacked = {n: torch.cat([getattr(head, n).weight for head in model.heads]) for n in ("ask", "keys", "values")}
    weights = {"q_proj_weight": stacked["ask"], "k_proj_weight": stacked["keys"], "v_proj_weight": stacked["values"]}
    out = {"out_proj.weight": model.out.weight, "out_proj.bias": model.out.bias}
    theirs.double().load_state_dict({**weights, **out, "in_proj_bias": torch.zeros(3 * WIDTH)})
    q, features, mask = vectors(2, STEPS, WIDTH), vectors(2, LENGTH, FEATURES, seed=1), mask_of([7, 4])
    close(model(q, model.read(features, mask)), theirs(q, features, features, key_padding_mask=~mask)[0])


@each_score
def test_a_hop_asks_again_with_a_map_of_the_query_and_what_it_found(score: str) -> None:
    model, q = attention(score, hops=3), vectors(ROWS, STEPS, QUERY)
    source = model.read(vectors(ROWS, LENGTH, FEATURES, seed=1), mask_of(LENGTHS))
    once = attention(score)
    once.load_state_dict({k: v for k, v in model.state_dict().items() if not k.startswith("again")})
    for _ in range(2):
        q = torch.cat((q, once(q, source)), dim=-1) @ model.again.weight.T + model.again.bias
    close(ask(model), once(q, source))


@each_alignment
def test_each_dimension_has_weights_of_its_own(align: str) -> None:
    model, q, features = attention("additive", align, multi=True), vectors(1, 1, QUERY), vectors(1, LENGTH, FEATURES)
    contexts, head = model(q, model.read(features)), model.heads[0]
    scores = head.score(q, features)  # (1, 1, S, D)
    for d in range(WIDTH):
        weights = head.align(scores[..., d], None, q)
        close(contexts[..., d], (weights @ head.values(features)[..., d : d + 1])[..., 0])


def test_weights_of_many_dimensions_are_watched_as_their_mean() -> None:
    model = attention(multi=True)
    close(weights_of(model)[:2].sum(-1), torch.ones(2, 1, STEPS).double())


def test_the_number_of_the_first_query_may_differ_from_row_to_row() -> None:
    model, q, features = attention("dot", "local_monotonic"), vectors(2, 3, QUERY), vectors(2, LENGTH, FEATURES)
    contexts = model(q, model.read(features), start=torch.tensor([0, 4]))
    close(contexts[1:], model(q[1:], model.read(features[1:]), start=4))


def test_plain_self_attention_is_a_mixture_of_what_is_alike() -> None:
    x = numbers([[2.0, 0.0], [0.0, 1.0]])
    # scores / sqrt(2): [[4, 0], [0, 1]] / 1.41421356; exp(2.82842712) = 16.9188, exp(0.70710678) = 2.0281
    wanted = numbers([[2 * 16.918814 / 17.918814, 1 / 17.918814], [2 / 3.028115, 2.028115 / 3.028115]])
    torch.testing.assert_close(plain_self_attention(x), wanted, rtol=1e-6, atol=1e-6)
    longer = torch.cat((x, 9 * torch.ones(1, 1, 2).double()), dim=1)
    close(plain_self_attention(longer, mask_of([2], 3))[:, :2], plain_self_attention(x))
    assert plain_self_attention(x, mask_of([0], 2)).eq(0).all()


# what is refused


@pytest.mark.parametrize("score", ["dot", "scaled_dot", "similarity"])
def test_scores_that_compare_as_it_is_need_one_size(score: str) -> None:
    with pytest.raises(ValueError, match="equal size, not 3 and 4; use the score general"):
        SCORES[score](3, 4, 5)


@pytest.mark.parametrize("score", [name for name in SCORES if name != "additive"])
def test_only_the_additive_score_has_many_dimensions(score: str) -> None:
    with pytest.raises(ValueError, match="only the score additive"):
        attention(score, multi=True)


def test_wrong_settings_are_refused_with_the_way_out() -> None:
    with pytest.raises(UserError, match="unknown score 'aditive'; did you mean 'additive'"):
        attention("aditive")
    with pytest.raises(UserError, match="unknown alignment 'sort'; did you mean 'soft'"):
        attention(align="sort")
    with pytest.raises(ValueError, match="width=8 must be a multiple of heads=3"):
        attention(heads=3)
    with pytest.raises(ValueError, match="hops=0"):
        attention(hops=0)
    with pytest.raises(ValueError, match="window >= 1, not 0"):
        attention(align="local_monotonic", window=0)
