"""The law every model keeps: reading in pieces, handing the state on, is reading at once; and what follows from it.

The models are found by listing the folder, their settings in `Config.variants`: a new file is covered as it is.
Models the language-model task accepts are tested through it; the others as backbones, by what `encode` promises.
What follows a source of its own is the subject of test_contract_pairs.py.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from toys import (
    VOCABULARY,
    Case,
    accepted,
    alive,
    at,
    close,
    each,
    every_case,
    kept,
    language_model,
    network,
    title,
    tokens,
)

from seqloom.core.backbone import Backbone
from seqloom.core.batch import Batch, pad
from seqloom.core.errors import UserError
from seqloom.core.network import Network
from seqloom.core.state import (
    State,
    describe_state,
    detach_state,
    flatten_state,
    map_state,
    select_rows,
    unflatten_state,
)
from seqloom.core.taps import Tap, record, replace
from seqloom.runs.registry import find_config, names
from seqloom.train.loop import Objective

Mode = Callable[[], Any]


EVERY = every_case()
CAUSAL = [case for case in EVERY if accepted(network, *case)]
REFUSED = [case for case in EVERY if case not in CAUSAL]

each_model = pytest.mark.parametrize("case", CAUSAL, ids=title)
each_refused = pytest.mark.parametrize("case", REFUSED, ids=title)
each_mode = each(mode=[torch.enable_grad, torch.no_grad, torch.inference_mode])

same_network = kept(network)

ROWS, LENGTH = 3, 12
WHOLE = tokens(ROWS, LENGTH)
LENGTHS = (5, 2, 7)  # of ragged prompts


def backbone(case: Case) -> Backbone:
    return alive(find_config("models", case[0]).model_validate({"width": 16, **case[1]}).build())


def vectors(model: Backbone, seed: int = 0) -> Tensor:
    shape = ROWS, LENGTH, model.inputs or 16
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def read(model: nn.Module, pieces: Any, state: State = None) -> tuple[Tensor, State]:
    outputs = []
    for piece in pieces:
        output, state = model(piece, state)
        outputs.append(output)
    return torch.cat(outputs, dim=1), state


def cuts(seed: int, length: int = LENGTH) -> list[int]:
    """Sizes of random pieces."""
    chance = random.Random(seed)
    sizes: list[int] = []
    while sum(sizes) < length:
        sizes.append(chance.randint(1, min(5, length - sum(sizes))))
    return sizes


def gradients(model: nn.Module, loss: Tensor) -> list[Tensor]:
    """Of every weight; a model that counts has none."""
    weights = list(model.parameters())
    return list(torch.autograd.grad(loss, weights)) if weights else []


def surprise(logits: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")


def test_every_model_in_the_folder_takes_part() -> None:
    assert {name for name, _ in EVERY} == set(names("models"))


@each_refused
def test_the_task_refuses_a_model_that_sees_the_future_and_says_what_it_needs(case: Case) -> None:
    with pytest.raises(
        UserError, match=f"language_model needs a model that is causal; this one is {backbone(case).kind}"
    ):
        network(*case)


@each_model
@each_mode
def test_reading_a_context_first_equals_reading_the_whole(case: Case, mode: Mode) -> None:
    model = same_network(*case)
    with mode():
        rest, _ = model(WHOLE[:, 5:], model.begin(WHOLE[:, :5]))
        close(rest, model(WHOLE)[0][:, 5:])


@each_model
@each_mode
def test_one_step_at_a_time_equals_all_at_once(case: Case, mode: Mode) -> None:
    model = same_network(*case)
    with mode():
        close(read(model, WHOLE.split(1, dim=1))[0], model(WHOLE)[0])


@each_model
@each_mode
@each(seed=range(3))
def test_random_pieces_equal_the_whole_and_end_in_the_same_state(case: Case, mode: Mode, seed: int) -> None:
    model, after = same_network(*case), tokens(ROWS, 3, seed=5)
    with mode():
        whole, end = model(WHOLE)
        parts, state = read(model, WHOLE.split(cuts(seed), dim=1))
        close(parts, whole)
        close(model(after, state)[0], model(after, end)[0])


@pytest.mark.long
@each_model
@each_mode
def test_a_state_can_be_continued_in_many_ways(case: Case, mode: Mode) -> None:
    """A state is a value: whoever continues it leaves it as it was, in whatever order and however long."""
    model = same_network(*case)
    ways = [tokens(ROWS, length, seed=length) for length in (1, 4, 70, 2)]
    with mode():
        _, fork = read(model, WHOLE.split(cuts(1), dim=1))
        ends = [read(model, way.split(3, dim=1), fork) for way in ways]
        last = tokens(ROWS, 2, seed=8)
        for way, (output, end) in zip(ways, ends, strict=True):  # nor did the continuations disturb each other
            wanted = model(torch.cat((WHOLE, way, last), dim=1))[0][:, LENGTH:]
            close(output, wanted[:, :-2])
            close(model(last, end)[0], wanted[:, -2:])


@pytest.mark.long
@each_model
@each_mode
@each(order=[[0, 1, 2], [2, 2, 0, 1, 2], [1]])
def test_chosen_rows_of_a_state_continue_as_those_rows(case: Case, mode: Mode, order: list[int]) -> None:
    model, after, rows = same_network(*case), tokens(len(order), 4, seed=3), torch.tensor(order)
    with mode():
        _, state = read(model, WHOLE.split(4, dim=1))
        before = model(WHOLE[:, :2], state)[0]
        chosen = select_rows(state, rows)
        wanted = model(torch.cat((WHOLE[rows], after), dim=1))[0][:, LENGTH:]
        close(read(model, after.split(1, dim=1), chosen)[0], wanted)
        close(model(after, chosen)[0], wanted)
        close(model(WHOLE[:, :2], state)[0], before)


@each_model
@each_mode
def test_a_detached_or_stored_state_continues_like_the_state_itself(case: Case, mode: Mode) -> None:
    model, after = same_network(*case), tokens(ROWS, 4, seed=3)
    with mode():
        _, state = read(model, WHOLE.split(4, dim=1))
        wanted = model(torch.cat((WHOLE, after), dim=1))[0][:, LENGTH:]
        stored = {name: t.clone() for name, t in flatten_state(state).items()}
        for same in (detach_state(state), state, unflatten_state(describe_state(state), stored), detach_state(state)):
            close(read(model, after.split(1, dim=1), same)[0], wanted)


@each_model
def test_continuing_without_gradients_leaves_a_state_with_gradients_usable(case: Case) -> None:
    model, after = same_network(*case), tokens(ROWS, 4, seed=3)
    mask = torch.arange(LENGTH) < torch.tensor([4, 6, 8])[:, None]
    _, state = model(WHOLE, None, mask)
    _, state = model(WHOLE[:, :1], state)
    with torch.no_grad():
        model(tokens(ROWS, 2, seed=6), state)
    loss = surprise(model(after, state)[0], after)
    assert all(g.isfinite().all() for g in gradients(model, loss))


@each_model
@each_mode
def test_ragged_prompts_continue_like_each_row_alone(case: Case, mode: Mode) -> None:
    model, after = same_network(*case), tokens(ROWS, 9, seed=4)
    prompts = [WHOLE[row, :length] for row, length in enumerate(LENGTHS)]
    context, mask = pad(prompts, value=VOCABULARY - 1)
    with mode():
        alone = [model(torch.cat((p, after[row]))[None])[0][0, len(p) :] for row, p in enumerate(prompts)]
        for size in (1, 3):
            for state in (model.begin(context, mask), model(context, None, mask)[1]):
                together, _ = read(model, after.split(size, dim=1), state)
                for row in range(ROWS):
                    with at(size=size, row=row):
                        close(together[row], alone[row])


@each_model
@each_mode
def test_ragged_pieces_after_ragged_pieces_equal_each_row_alone(case: Case, mode: Mode) -> None:
    """Rows of every batch differ in length, one of them is absent altogether, and later it is back."""
    model = same_network(*case)
    lengths = [(5, 2, 7), (0, 6, 1), (3, 3, 3), (1, 0, 4)]
    pieces = [[tokens(n, seed=10 * i + j) for j, n in enumerate(row)] for i, row in enumerate(lengths)]
    with mode():
        state: State = None
        outputs: list[list[Tensor]] = [[] for _ in range(ROWS)]
        for piece in pieces:
            inputs, mask = pad(piece)
            output, state = model(inputs, state, mask)
            for row in range(ROWS):
                outputs[row].append(output[row, : len(piece[row])])
        for row in range(ROWS):
            alone, _ = model(torch.cat([piece[row] for piece in pieces])[None])
            close(torch.cat(outputs[row]), alone[0])


@pytest.mark.long
@each_model
@each_mode
def test_a_ragged_state_can_be_continued_in_many_ways(case: Case, mode: Mode) -> None:
    model = same_network(*case)
    prompts = [WHOLE[row, :length] for row, length in enumerate(LENGTHS)]
    rows = torch.tensor([2, 0, 0, 1])
    with mode():
        fork = model.begin(*pad(prompts))
        for seed in range(3):
            after = tokens(ROWS, 3, seed=20 + seed)
            together, _ = read(model, after.split(1, dim=1), fork)
            picked, _ = read(model, after[rows].split(2, dim=1), select_rows(fork, rows))
            close(picked, together[rows])
            for row, prompt in enumerate(prompts):
                close(together[row], model(torch.cat((prompt, after[row]))[None])[0][0, len(prompt) :])


@each_model
@each(seed=range(2))
def test_gradients_through_the_state_equal_gradients_through_the_whole(case: Case, seed: int) -> None:
    model, task, targets = same_network(*case), language_model(), tokens(ROWS, LENGTH, seed=1)
    whole = task.loss(model, Batch(WHOLE, None, targets))
    state, total = None, torch.zeros(())
    for inputs, wanted in zip(WHOLE.split(cuts(seed), 1), targets.split(cuts(seed), 1), strict=True):
        step = task.loss(model, Batch(inputs, None, wanted), state)
        state, total = step.state, total + step.loss
    close(total.to(whole.loss.dtype), whole.loss)
    for ours, theirs in zip(gradients(model, total), gradients(model, whole.loss), strict=True):
        close(ours, theirs)


@each_model
def test_gradients_of_ragged_rows_equal_those_of_each_row_alone(case: Case) -> None:
    model, after = same_network(*case), tokens(ROWS, 6, seed=4)
    prompts = [WHOLE[row, :length] for row, length in enumerate(LENGTHS)]
    together, _ = read(model, after.split(2, dim=1), model.begin(*pad(prompts)))
    alone = [model(torch.cat((p, after[row]))[None])[0][0, len(p) :] for row, p in enumerate(prompts)]
    wanted = surprise(torch.stack(alone), after)
    for ours, theirs in zip(gradients(model, surprise(together, after)), gradients(model, wanted), strict=True):
        close(ours, theirs)


@each_model
def test_changing_the_future_changes_nothing_before_it(case: Case) -> None:
    model = same_network(*case)
    before, _ = model(WHOLE)
    for cut in (1, 6, LENGTH - 1):
        changed = WHOLE.clone()
        changed[:, cut:] = (changed[:, cut:] + 1) % VOCABULARY
        close(model(changed)[0][:, :cut], before[:, :cut])


@each_model
def test_padding_changes_nothing_and_a_batch_equals_its_rows(case: Case) -> None:
    model = same_network(*case)
    prompts = [WHOLE[row, :length] for row, length in enumerate(LENGTHS)]
    for value in (0, VOCABULARY - 1):
        inputs, mask = pad(prompts, value=value)
        for outputs in (model(inputs, None, mask)[0], model.encode(inputs, mask)):
            for row, prompt in enumerate(prompts):
                close(outputs[row, : len(prompt)], model.encode(prompt[None])[0])


@each_model
def test_padding_may_reach_past_the_end_of_what_a_model_can_read(case: Case) -> None:
    model = same_network(*case)
    most = model.limit or 20
    rows = [tokens(most, seed=1), tokens(9, seed=2)]
    with torch.no_grad():
        state = model.begin(*pad([rows[0][:-2], rows[1][:3]]))
        inputs, mask = pad([rows[0][-2:], rows[1][3:]])
        outputs, _ = model(inputs, state, mask)
        close(outputs[0, :2], model(rows[0][None])[0][0, -2:])
        close(outputs[1], model(rows[1][None])[0][0, 3:])


@each_model
def test_an_empty_piece_changes_nothing(case: Case) -> None:
    model, nothing = same_network(*case), tokens(ROWS, 0)
    with torch.no_grad():
        outputs, state = read(model, [nothing, WHOLE[:, :5], nothing, WHOLE[:, 5:]])
        close(outputs, model(WHOLE)[0])
        assert model(nothing, state)[0].shape == (ROWS, 0, VOCABULARY)


@each_model
def test_half_precision_works_and_stays_near(case: Case) -> None:
    model, targets = network(*case).float(), tokens(ROWS, LENGTH, seed=1)
    exact = surprise(model(WHOLE)[0], targets)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = surprise(read(model, WHOLE.split([5, 1, 6], dim=1))[0], targets)
    assert all(g.isfinite().all() for g in gradients(model, loss))
    torch.testing.assert_close(loss.float(), exact, rtol=0.02, atol=0)


@each_model
def test_a_mask_that_hides_nothing_changes_nothing(case: Case) -> None:
    model, full = same_network(*case), torch.ones(ROWS, LENGTH, dtype=torch.bool)
    masked, state = model(WHOLE, None, full)
    bare, end = model(WHOLE)
    close(masked, bare)
    close(model(WHOLE[:, :2], state, full[:, :2])[0], model(WHOLE[:, :2], end)[0])
    for ours, theirs in zip(
        gradients(model, surprise(masked, WHOLE)), gradients(model, surprise(bare, WHOLE)), strict=True
    ):
        close(ours, theirs)


@each_model
def test_a_row_of_nothing_but_padding_gives_finite_outputs_and_gradients(case: Case) -> None:
    model = same_network(*case)
    mask = torch.arange(LENGTH) < torch.tensor([LENGTH, 0, 4])[:, None]
    outputs, state = model(WHOLE, None, mask)
    more, _ = model(WHOLE[:, :2], state)
    assert outputs.isfinite().all() and more.isfinite().all()
    close(more[1], model(WHOLE[1:2, :2])[0][0])
    assert all(g.isfinite().all() for g in gradients(model, outputs.sum() + more.sum()))


@each_model
@each(count=[2, 4])
def test_accumulated_gradients_equal_those_of_one_big_batch(case: Case, count: int) -> None:
    model, task = same_network(*case), language_model()
    objective, inputs, targets = Objective(model, task), tokens(8, 6), tokens(8, 6, seed=1)
    big = objective(Batch(inputs, None, targets), None)
    steps = [objective(Batch(i, None, t), None) for i, t in zip(inputs.chunk(count), targets.chunk(count), strict=True)]
    assert sum(step.count for step in steps) == big.count == targets.numel()
    wanted = gradients(model, big.loss / big.count)
    pieces = [gradients(model, step.loss / big.count) for step in steps]
    for n, theirs in enumerate(wanted):
        close(sum(piece[n] for piece in pieces), theirs)
    close(sum(step.loss.detach() for step in steps), big.loss.detach())


def taps(model: nn.Module) -> list[str]:
    return [path for path, module in model.named_modules() if isinstance(module, Tap)]


@pytest.mark.parametrize("case", [case for case in CAUSAL if taps(network(*case))], ids=title)
def test_watching_changes_no_output_and_no_gradient(case: Case) -> None:
    model, after = network(*case), tokens(ROWS, 3, seed=3)
    outputs, state = model(WHOLE)
    more, _ = model(after, state)
    with record(model) as trace:
        watched, seen = model(WHOLE)
        watched_more, _ = model(after, seen)
    assert all(trace.values()), "every tap was passed"
    assert torch.equal(watched, outputs) and torch.equal(watched_more, more), "not even by rounding"
    wanted = gradients(model, surprise(outputs, WHOLE) + surprise(more, after))
    for ours, theirs in zip(
        gradients(model, surprise(watched, WHOLE) + surprise(watched_more, after)), wanted, strict=True
    ):
        close(ours, theirs)


@pytest.mark.parametrize("case", [case for case in CAUSAL if taps(network(*case))], ids=title)
def test_what_is_recorded_covers_every_row_and_every_step(case: Case) -> None:
    """One tensor for the whole sequence, (B, ..., T, size), or one for each step, (B, size)."""
    model = network(*case)
    with record(model) as trace:
        model(WHOLE)
    assert sorted(trace) == sorted(taps(model))
    for path, tensors in trace.items():
        assert all(t.size(0) == ROWS and t.isfinite().all() for t in tensors), path
        whole = [t for t in tensors if t.dim() > 2]
        assert [t.size(-2) for t in whole] == [LENGTH] if whole else [t.dim() for t in tensors] == [2] * LENGTH, path
    model(WHOLE)
    assert not any(module.watched for module in model.modules() if isinstance(module, Tap)), "watching has ended"


@pytest.mark.parametrize("case", [case for case in CAUSAL if taps(network(*case))], ids=title)
def test_what_passes_a_tap_can_be_replaced(case: Case) -> None:
    """By itself, which changes nothing; what enters the backbone and leaves a layer also by something else."""
    model, after = network(*case), tokens(ROWS, 3, seed=3)
    outputs, state = model(WHOLE)
    more, _ = model(after, state)
    with replace(model, dict.fromkeys(taps(model), lambda x: x)):
        same, kept = model(WHOLE)
        close(same, outputs)
        close(model(after, kept)[0], more)
    layers = [path for path, module in model.named_modules() if module in model.backbone.layer_taps()]
    for path in ["embedded", *layers]:
        with replace(model, {path: lambda x: x + 1 + torch.arange(x.size(-1))}):
            assert not torch.allclose(model(WHOLE)[0], outputs), path


@pytest.mark.parametrize("case", CAUSAL, ids=title)
def test_the_last_layer_is_followed_by_finish_and_head(case: Case) -> None:
    model = network(*case)
    layers = model.backbone.layer_taps() if isinstance(model, Network) else []
    assert not isinstance(model, Network) or len(layers) == len(model.backbone.stages())
    if layers:
        with record(model) as trace:
            outputs, _ = model(WHOLE)
        last = next(trace[path] for path, module in model.named_modules() if module is layers[-1])
        close(model.head(model.backbone.finish(torch.cat(last, 1))), outputs)


ATTENTIVE = [case for case in CAUSAL if any(path.endswith("attention.weights") for path in taps(network(*case)))]


@pytest.mark.parametrize("case", ATTENTIVE, ids=title)
def test_attention_weights_sum_to_one_and_see_no_future(case: Case) -> None:
    """With a window, nothing before it either: what no token sees any more may be gone."""
    model, after = network(*case), tokens(ROWS, 3, seed=3)
    window = case[1].get("window", LENGTH + 3)
    with record(model, "*.attention.weights") as trace:
        _, state = model(WHOLE)
        model(after, state)
    for first, second in trace.values():
        assert first.shape[0] == second.shape[0] == ROWS and first.shape[1] == second.shape[1]
        assert (first.shape[2:], second.shape[2:]) == ((LENGTH, LENGTH), (3, min(LENGTH, window - 1) + 3))
        for weights in (first, second):
            close(weights.sum(-1), torch.ones_like(weights[..., 0]))
            past = weights.size(-1) - weights.size(-2)
            seen = torch.ones_like(weights, dtype=torch.bool).tril(past).triu(past - window + 1)
            assert weights[~seen].eq(0).all() and weights[seen].gt(0).all()


def test_every_gate_of_a_cell_can_be_watched_and_lies_between_0_and_1() -> None:
    gated = [case for case in CAUSAL if any(path.endswith("_gate") for path in taps(network(*case)))]
    assert gated
    for case in gated:
        model = network(*case)
        with record(model, "*_gate") as trace:
            model(WHOLE)
        assert all(((t > 0) & (t < 1)).all() for tensors in trace.values() for t in tensors)


@each_refused
def test_a_model_that_sees_the_whole_ignores_padding_and_equals_its_rows(case: Case) -> None:
    model = backbone(case)
    x = vectors(model)
    mask = torch.arange(LENGTH) < torch.tensor([LENGTH, 5, 1])[:, None]
    outputs = model.encode(torch.where(mask[..., None], x, vectors(model, seed=7)), mask)
    for row, length in enumerate([LENGTH, 5, 1]):
        close(outputs[row, :length], model.encode(x[row : row + 1, :length])[0])


@each_refused
def test_a_model_that_sees_the_whole_survives_a_row_of_nothing_but_padding(case: Case) -> None:
    model = backbone(case)
    x = vectors(model).requires_grad_()
    mask = torch.arange(LENGTH) < torch.tensor([LENGTH, 0, 4])[:, None]
    outputs = model.encode(x, mask)
    assert outputs.isfinite().all()
    found = torch.autograd.grad(outputs.sum(), [x, *model.parameters()], allow_unused=True)  # a decoder is not asked
    assert found[0] is not None and all(g.isfinite().all() for g in found if g is not None)


@each_refused
def test_a_model_that_sees_the_whole_can_be_watched(case: Case) -> None:
    model = backbone(case)
    x = vectors(model)
    mask = torch.arange(LENGTH) < torch.tensor([LENGTH, 0, 4])[:, None]
    for hidden in (None, mask):
        with record(model) as trace:
            watched = model.encode(x, hidden)
        assert torch.equal(watched, model.encode(x, hidden))
        passed = any if model.kind == "encoder-decoder" else all  # a decoder is not asked
        assert passed(trace.values())


def test_a_state_of_any_shape_can_be_mapped_stored_and_restored() -> None:
    state: State = (torch.ones(2, 3), None, (torch.zeros(2), (torch.arange(2),)))
    again = unflatten_state(describe_state(state), flatten_state(state))
    assert describe_state(again) == describe_state(state) == ["tensor", None, ["tensor", ["tensor"]]]
    doubled: Any = map_state(lambda t: t * 2, again)
    assert doubled[0].eq(2).all() and doubled[1] is None and doubled[2][1][0].tolist() == [0, 2]
