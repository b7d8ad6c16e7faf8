"""The language-model task: which tokens come when, where the gradient is cut, and what the cutting does to it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from toys import alive, close, each, language_model, network, stream, tokens

from seqloom.core.batch import Batch
from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.core.order import shuffled
from seqloom.core.state import State, detach_state
from seqloom.core.task import Order
from seqloom.train.loop import Objective

TEXT = np.arange(403)  # every token tells where it stands
STREAM = stream(TEXT, 403)
BATCH = 8

SETTINGS: list[dict[str, Any]] = [
    {"carry": False},
    {"carry": True},
    {"carry": True, "truncation": "random"},
    {"carry": True, "truncation": "full"},
]
each_order = pytest.mark.parametrize("options", SETTINGS, ids=str)


def steps(options: dict[str, Any], rows: Any = STREAM, length: int = 6, **order: Any) -> Iterator[list[Batch]]:
    chosen = dict(options)
    carry = chosen.pop("carry")
    return language_model(403, length=length, **chosen).batches(rows, Order(**{"batch": BATCH, **order}), carry)


def same(ours: list[Batch], theirs: list[Batch]) -> bool:
    return len(ours) == len(theirs) and all(
        torch.equal(a.inputs, b.inputs) and torch.equal(a.targets, b.targets) and a.continues == b.continues
        for a, b in zip(ours, theirs, strict=True)
    )


def first_epoch(options: dict[str, Any], **order: Any) -> list[Batch]:
    """The batches before the streams begin anew."""
    found: list[Batch] = []
    for (batch,) in steps({**options, "carry": True}, **order):
        if found and not batch.continues:
            return found
        found.append(batch)
    raise AssertionError("there is no end to batches")


@given(count=st.integers(1, 3000), key=st.integers(0, 2**62))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_a_shuffle_sends_every_index_to_a_place_of_its_own(count: int, key: int) -> None:
    assert sorted(shuffled(np.arange(count), count, key).tolist()) == list(range(count))


@each(count=[*range(1, 20), 255, 256, 257, 4096, 4097, 100_003])
def test_a_shuffle_asked_piece_by_piece_is_the_same_shuffle(count: int) -> None:
    whole = shuffled(np.arange(count), count, 5)
    assert np.array_equal(np.sort(whole), np.arange(count))
    for index in {0, count // 3, count - 1}:
        assert shuffled(np.array([index]), count, 5).tolist() == [whole[index]]


def test_shuffles_with_other_keys_are_other_shuffles_and_look_random() -> None:
    orders = [shuffled(np.arange(1000), 1000, key) for key in range(20)]
    assert len({order.tobytes() for order in orders}) == 20
    for order in orders:
        assert abs(np.corrcoef(order, np.arange(1000))[0, 1]) < 0.15
        assert (np.diff(order) == 1).sum() < 10


@each_order
@each(start=[1, 3, 7, 8, 9, 20, 33])
def test_starting_at_a_step_gives_the_batches_that_running_to_it_gives(options: dict[str, Any], start: int) -> None:
    whole = list(islice(steps(options), start + 10))
    later = list(islice(steps(options, start=start), 10))
    assert all(same(a, b) for a, b in zip(whole[start:], later, strict=True))


@each_order
def test_the_order_depends_on_the_seed_alone(options: dict[str, Any]) -> None:
    first, again, other = (list(islice(steps(options, seed=seed), 12)) for seed in (1, 1, 2))
    assert all(same(a, b) for a, b in zip(first, again, strict=True))
    alike = all(same(a, b) for a, b in zip(first, other, strict=True))
    assert not alike


@each_order
@pytest.mark.parametrize(("world", "accumulate"), [(2, 1), (1, 2), (2, 2), (8, 1), (1, 8), (4, 2)])
def test_processes_and_pieces_divide_the_same_global_batch(
    options: dict[str, Any], world: int, accumulate: int
) -> None:
    whole = islice(steps(options), 15)
    shared = [steps(options, world=world, rank=rank, accumulate=accumulate) for rank in range(world)]
    for (batch,) in whole:
        pieces = [piece for process in shared for piece in next(process)]
        assert len(pieces) == world * accumulate
        assert torch.equal(torch.cat([piece.inputs for piece in pieces]), batch.inputs)
        assert torch.equal(torch.cat([piece.targets for piece in pieces]), batch.targets)
        assert {piece.continues for piece in pieces} == {batch.continues}


def test_a_batch_that_cannot_be_divided_is_refused() -> None:
    with pytest.raises(UserError, match=r"train\.batch=8 must be a multiple .* 3 x 1"):
        Order(8, world=3)


@each_order
def test_targets_are_the_tokens_that_follow(options: dict[str, Any]) -> None:
    for (batch,) in islice(steps(options), 30):
        assert batch.mask is None and torch.equal(batch.targets, batch.inputs + 1)
        assert torch.equal(batch.inputs, batch.inputs[:, :1] + torch.arange(batch.inputs.size(1)))


@each(length=[6, 10, 50])
def test_every_window_comes_once_in_an_epoch(length: int) -> None:
    windows = 402 // length
    batch = next(n for n in range(1, windows + 1) if windows % n == 0 and n > 1)
    epochs = steps({"carry": False}, length=length, batch=batch)
    orders = []
    for _ in range(4):
        starts = torch.cat([pieces[0].inputs[:, 0] for pieces in islice(epochs, windows // batch)])
        assert sorted(starts.tolist()) == [int(starts.min()) + n * length for n in range(windows)]
        orders.append(tuple((starts - starts.min()).tolist()))
    assert len(set(orders)) == 4, "each epoch has an order of its own"


def test_no_window_comes_twice_in_an_epoch_that_does_not_divide_evenly() -> None:
    epoch = torch.cat([pieces[0].inputs[:, 0] for pieces in islice(steps({"carry": False}, length=7), 57 // BATCH)])
    assert len(set(epoch.tolist())) == 56


def test_a_text_with_fewer_windows_than_the_batch_is_still_read() -> None:
    (batch,) = next(steps({"carry": False}, rows=stream(TEXT[:20], 403), length=9))
    assert batch.inputs.shape == (BATCH, 9)
    (batch,) = next(steps({"carry": False}, rows=stream(TEXT[:4], 403), length=9))
    assert batch.inputs.shape == (BATCH, 3)


@pytest.mark.parametrize("truncation", ["regular", "random", "full"])
@each(length=[1, 2, 6, 16, 1000])
def test_batches_continue_each_other_exactly_and_no_token_comes_twice(truncation: str, length: int) -> None:
    epoch = first_epoch({"truncation": truncation}, length=length)
    assert [batch.continues for batch in epoch] == [False] + [True] * (len(epoch) - 1)
    rows = torch.cat([batch.inputs for batch in epoch], dim=1)
    span = 50 - 50 % length if truncation == "regular" and length < 50 else 50
    assert torch.equal(rows, rows[:, :1] + torch.arange(span))
    assert rows.unique().numel() == BATCH * span


def test_regular_cuts_are_one_length_apart() -> None:
    assert [batch.inputs.size(1) for batch in first_epoch({})] == [6] * 8


def test_a_row_reads_a_stretch_and_then_another_one() -> None:
    turns = 402 // 18 // BATCH  # stretches that each row reads in an epoch, of three steps each
    epoch = [pieces[0] for pieces in islice(steps({"carry": True, "stretch": 20}), 3 * turns)]
    assert [batch.continues for batch in epoch] == [False, True, True] * turns
    starts = torch.cat([batch.inputs[:, 0] for batch in epoch[::3]])
    assert starts.unique().numel() == starts.numel() and ((starts - starts.min()) % 18 == 0).all()


def test_random_cuts_have_the_length_on_average() -> None:
    rows = stream(np.arange(80_001) % 403, 403)
    sizes = [b.inputs.size(1) for b in first_epoch({"truncation": "random", "stretch": 0}, rows=rows, length=16)]
    assert sum(sizes) == 10_000 and all(size % 4 == 0 for size in sizes[:-1])
    assert np.mean(sizes) == pytest.approx(16, rel=0.1)
    assert np.std(sizes) == pytest.approx(4 * np.sqrt(0.75) / 0.25, rel=0.15)  # geometric, in chunks of 4


def test_without_cuts_an_epoch_is_one_step() -> None:
    (batch,) = first_epoch({"truncation": "full"})
    assert batch.inputs.shape == (BATCH, 50)


@pytest.mark.parametrize(("length", "carry", "said"), [(8, True, "train.batch=8"), (1, False, "at least 2")])
def test_a_text_that_is_too_short_is_refused(length: int, carry: bool, said: str) -> None:
    with pytest.raises(UserError, match=said):
        next(steps({"carry": carry}, rows=stream(TEXT[:length], 403)))


@pytest.mark.parametrize("wrong", [{"reweight": True}, {"context": 4, "stride": 5}, {"length": 0}], ids=str)
def test_options_that_contradict_each_other_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong)) if len(wrong) == 1 else "stride=5 larger than context=4"):
        language_model(**wrong)


SMALL = stream(tokens(25, seed=6, vocabulary=3).numpy(), 3)  # two streams of 12 tokens
PASSES = 400


def small_rnn() -> SequenceModel:
    return alive(network("rnn", {"width": 4}, vocabulary=3), std=0.7)


def gradient(model: nn.Module, loss: Tensor) -> Tensor:
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))])


def passes(count: int, **options: Any) -> Tensor:
    """For each of many passes over the text, what its steps do together, as the trainer weighs them: (count, P)."""
    task, model = language_model(3, length=4, **options), small_rnn()
    objective, state = Objective(model, task), None
    sums: list[Tensor] = []
    for (batch,) in task.batches(SMALL, Order(2), carry=True):
        if not batch.continues:
            if len(sums) == count:
                return torch.stack(sums)
            sums.append(torch.zeros(sum(p.numel() for p in model.parameters()), dtype=torch.float64))
        step = objective(batch, state if batch.continues else None)
        sums[-1] += gradient(model, step.loss) / (step.count if options.get("reweight") else 1)
        state = detach_state(step.state)
    raise AssertionError("there is no end to batches")


def deviations(found: Tensor, truth: Tensor) -> Tensor:
    """How far the mean is from the truth, in standard errors."""
    error = found.std(0) / len(found) ** 0.5
    return ((found.mean(0) - truth) / error)[error > 1e-12]


@pytest.mark.long
def test_reweighted_random_cuts_give_the_full_gradient_on_average() -> None:
    full = passes(1, truncation="full")[0]
    found = passes(PASSES, truncation="random", reweight=True) * (2 * 4)  # per row and expected token
    far = deviations(found, full)
    assert far.abs().max() < 4 and far.square().mean() < 2
    assert (found.mean(0) - full).norm() < 0.15 * full.norm()


@pytest.mark.long
def test_random_cuts_without_reweighting_do_not() -> None:
    full = passes(1, truncation="full")[0]
    assert deviations(passes(PASSES, truncation="random"), full).abs().max() > 10


def test_reweighting_changes_the_gradient_and_not_the_loss_that_is_reported() -> None:
    model, ids = small_rnn(), tokens(2, 12, vocabulary=3)
    batch = Batch(ids, None, tokens(2, 12, seed=1, vocabulary=3))
    plain = language_model(3, length=4, truncation="random").loss(model, batch)
    weighed = language_model(3, length=4, truncation="random", reweight=True).loss(model, batch)
    close(weighed.loss.detach(), plain.loss.detach())
    assert weighed.count == plain.count == 24
    assert not torch.allclose(gradient(model, weighed.loss), gradient(model, plain.loss), rtol=0.1)


def test_reweighting_leaves_a_model_that_reads_separate_windows_alone() -> None:
    model, batch = network("gpt", {"depth": 1}), Batch(tokens(2, 12), None, tokens(2, 12, seed=1))
    plain = language_model(length=4).loss(model, batch)
    weighed = language_model(length=4, truncation="random", reweight=True).loss(model, batch)
    close(gradient(model, weighed.loss), gradient(model, plain.loss))


def test_the_loss_continues_from_a_state_and_hands_it_on() -> None:
    model, task, ids = network("lstm", {}), language_model(), tokens(3, 13)
    whole = task.loss(model, Batch(ids[:, :-1], None, ids[:, 1:]))
    state: State = None
    total = 0.0
    for begin, end in ((0, 5), (5, 6), (6, 12)):
        step = task.loss(model, Batch(ids[:, begin:end], None, ids[:, begin + 1 : end + 1]), state)
        state, total = step.state, total + step.loss.item()
    assert total == pytest.approx(whole.loss.item(), rel=1e-9) and whole.count == 36
