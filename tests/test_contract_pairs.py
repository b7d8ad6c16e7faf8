"""The law, after a source has been read: what follows can be read in pieces, handed on, chosen, searched.

Every model that the translation task accepts is found by asking, an encoder-decoder or a causal one that reads the
source as the beginning of one sequence; a new file is covered as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from test_contract import cuts, gradients, read, surprise, taps
from torch import Tensor, nn
from toys import (
    Case,
    accepted,
    at,
    close,
    each,
    every_case,
    kept,
    pair_rows,
    title,
    tokens,
    translation,
    translator,
    words,
)

from seqloom.core.batch import Batch, pad
from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.core.state import State, describe_state, detach_state, flatten_state, select_rows, unflatten_state
from seqloom.core.taps import record
from seqloom.decode.beam import Hypothesis
from seqloom.decode.decoding import Decoding
from seqloom.runs.registry import names
from seqloom.train.loop import Objective

pytestmark = pytest.mark.long

EVERY = every_case()
ACCEPTED = [case for case in EVERY if accepted(translator, *case)]
REFUSED = [case for case in EVERY if case not in ACCEPTED]
TWO_SIDED = [case for case in ACCEPTED if translator(*case).kind == "encoder-decoder"]

each_model = pytest.mark.parametrize("case", ACCEPTED, ids=title)
each_encoder_decoder = pytest.mark.parametrize("case", TWO_SIDED, ids=title)
each_mode = each(mode=[torch.enable_grad, torch.inference_mode])
Mode = Callable[[], Any]

TASK = translation(joint=True)
VOCABULARY = TASK.vocabulary
same_translator = kept(translator)

ROWS, LENGTH = 3, 9
LENGTHS = (5, 2, 7)  # of the sources
SOURCES = [tokens(n, seed=n, vocabulary=VOCABULARY) for n in LENGTHS]
TARGET = tokens(ROWS, LENGTH, seed=1, vocabulary=VOCABULARY)
TEXTS = ["abcdef", "g", "hcf", "ba"]


def target(length: int, seed: int, rows: int = ROWS) -> Tensor:
    return tokens(rows, length, seed=seed, vocabulary=VOCABULARY)


def begin(model: SequenceModel, padding: int = 0) -> State:
    """With sources of unequal length."""
    return model.begin(*pad(SOURCES, value=padding))


def alone(model: SequenceModel, row: int, rest: Tensor) -> Tensor:
    """What one row says to (T,) tokens when there is no other, and no padding."""
    return model(rest[None], model.begin(SOURCES[row][None]))[0][0]


def test_every_model_that_learns_by_descent_takes_part() -> None:
    assert {name for name, _ in EVERY} == set(names("models")) and TWO_SIDED
    assert {translator(*case).kind for case in ACCEPTED} == {"causal", "encoder-decoder"}


@pytest.mark.parametrize("case", REFUSED, ids=title)
def test_what_is_refused_is_refused_in_one_line(case: Case) -> None:
    with pytest.raises(UserError) as refusal:
        translator(*case)
    assert "translation" in str(refusal.value) and "\n" not in str(refusal.value)


@each_model
@each_mode
def test_one_token_at_a_time_equals_all_at_once(case: Case, mode: Mode) -> None:
    model = same_translator(*case)
    with mode():
        close(read(model, TARGET.split(1, dim=1), begin(model))[0], model(TARGET, begin(model))[0])


@each_model
@each_mode
@each(seed=range(3))
def test_random_pieces_equal_the_whole_and_end_in_the_same_state(case: Case, mode: Mode, seed: int) -> None:
    model, after = same_translator(*case), target(3, seed=5)
    with mode():
        whole, end = model(TARGET, begin(model))
        parts, state = read(model, TARGET.split(cuts(seed, LENGTH), dim=1), begin(model))
        close(parts, whole)
        close(model(after, state)[0], model(after, end)[0])


@each_model
@each_mode
@each(padding=[0, VOCABULARY - 1])
def test_a_padded_batch_equals_each_row_alone(case: Case, mode: Mode, padding: int) -> None:
    model = same_translator(*case)
    with mode():
        together, _ = model(TARGET, begin(model, padding))
        for row in range(ROWS):
            close(together[row], alone(model, row, TARGET[row]))


@each_model
def test_padding_on_both_sides_equals_each_row_alone(case: Case) -> None:
    """Rows of the target end at different places, and go on from there."""
    model, lengths = same_translator(*case), (3, 8, 0)
    first, rest = [target(n, seed=30 + n, rows=1)[0] for n in lengths], target(4, seed=6)
    inputs, mask = pad(first, value=VOCABULARY - 1)
    outputs, state = model(inputs, begin(model), mask)
    more, _ = read(model, rest.split(1, dim=1), state)
    for row, length in enumerate(lengths):
        wanted = alone(model, row, torch.cat((first[row], rest[row])))
        close(outputs[row, :length], wanted[:length])
        close(more[row], wanted[length:])


@each_model
def test_a_mask_that_hides_nothing_changes_nothing(case: Case) -> None:
    model, source = same_translator(*case), torch.stack([SOURCES[0]] * ROWS)
    full = torch.ones_like(source, dtype=torch.bool)
    close(model(TARGET, model.begin(source, full))[0], model(TARGET, model.begin(source))[0])


@each_model
def test_a_source_of_nothing_but_padding_gives_finite_outputs_and_gradients(case: Case) -> None:
    model = same_translator(*case)
    context, mask = pad(SOURCES)
    mask[1] = False
    outputs, state = model(TARGET, model.begin(context, mask))
    more, _ = model(target(2, seed=3), state)
    assert outputs.isfinite().all() and more.isfinite().all()
    assert all(g.isfinite().all() for g in gradients(model, outputs.sum() + more.sum()))
    for row in (0, 2):
        close(outputs[row], alone(model, row, TARGET[row]))


@each_model
def test_without_a_source_there_is_still_a_beginning(case: Case) -> None:
    model = same_translator(*case)
    outputs, _ = model(TARGET)
    assert outputs.isfinite().all()
    close(read(model, TARGET.split(2, dim=1))[0], outputs)


@each_model
def test_changing_a_later_token_changes_nothing_before_it(case: Case) -> None:
    model = same_translator(*case)
    before, _ = model(TARGET, begin(model))
    for cut in (1, 4, LENGTH - 1):
        changed = TARGET.clone()
        changed[:, cut:] = (changed[:, cut:] + 1) % VOCABULARY
        after, _ = model(changed, begin(model))
        close(after[:, :cut], before[:, :cut])
        assert not torch.allclose(after[:, cut:], before[:, cut:])


@each_encoder_decoder
@each(place=[0, -1])
def test_every_token_of_the_source_is_heard(case: Case, place: int) -> None:
    model = same_translator(*case)
    for row, source in enumerate(SOURCES):
        changed = source.clone()
        changed[place] = (changed[place] + 1) % VOCABULARY
        other = model(TARGET[row][None], model.begin(changed[None]))[0][0]
        assert not torch.allclose(other, alone(model, row, TARGET[row]))


@each_model
@each_mode
def test_a_state_can_be_continued_in_many_ways(case: Case, mode: Mode) -> None:
    model = same_translator(*case)
    ways = [target(length, seed=length) for length in (1, 4, 11, 2)]
    with mode():
        _, fork = read(model, TARGET.split(cuts(1, LENGTH), dim=1), begin(model))
        for start, known in ((fork, TARGET), (begin(model), TARGET[:, :0])):
            ends = [read(model, way.split(3, dim=1), start) for way in ways]
            last = target(2, seed=8)
            for way, (output, end) in zip(ways, ends, strict=True):
                wanted = model(torch.cat((known, way, last), dim=1), begin(model))[0][:, known.size(1) :]
                close(output, wanted[:, :-2])
                close(model(last, end)[0], wanted[:, -2:])


@each_model
@each_mode
def test_chosen_rows_of_a_state_continue_as_those_rows(case: Case, mode: Mode) -> None:
    """Also where a row is chosen several times, and each goes on differently."""
    model, after = same_translator(*case), target(4, seed=3, rows=5)
    orders = [[(0, 0), (1, 1), (2, 2)], [(2, 2), (2, 3), (0, 0), (1, 1), (2, 4)], [(1, 1)]]  # rows and ways to go on
    with mode():
        _, state = read(model, TARGET.split(4, dim=1), begin(model))
        pairs = {pair for order in orders for pair in order}
        later = {(row, n): alone(model, row, torch.cat((TARGET[row], after[n])))[LENGTH:] for row, n in pairs}
        first = {(row, n): alone(model, row, after[n]) for row, n in pairs}
        for order in orders:
            rows, inputs = torch.tensor([row for row, _ in order]), after[[n for _, n in order]]
            chosen = read(model, inputs.split(1, dim=1), select_rows(state, rows))[0]
            at_once = model(inputs, select_rows(begin(model), rows))[0]
            for place, pair in enumerate(order):
                with at(order=order, place=place):
                    close(chosen[place], later[pair])
                    close(at_once[place], first[pair])


@each_model
@each_mode
def test_a_detached_or_stored_state_continues_like_the_state_itself(case: Case, mode: Mode) -> None:
    model, after = same_translator(*case), target(4, seed=3)
    with mode():
        wanted = model(torch.cat((TARGET, after), dim=1), begin(model))[0][:, LENGTH:]
        _, state = read(model, TARGET.split(4, dim=1), begin(model))
        stored = {name: t.clone() for name, t in flatten_state(state).items()}
        for same in (detach_state(state), state, unflatten_state(describe_state(state), stored)):
            close(read(model, after.split(1, dim=1), same)[0], wanted)


@each_model
def test_gradients_of_a_padded_batch_in_pieces_equal_those_of_each_row_alone(case: Case) -> None:
    """Also those of the encoder, through the state."""
    model = same_translator(*case)
    together, _ = read(model, TARGET.split(2, dim=1), begin(model))
    single = torch.stack([alone(model, row, TARGET[row]) for row in range(ROWS)])
    wanted = gradients(model, surprise(single, TARGET))
    for ours, theirs in zip(gradients(model, surprise(together, TARGET)), wanted, strict=True):
        close(ours, theirs)


@each_model
def test_an_empty_piece_changes_nothing(case: Case) -> None:
    model, nothing = same_translator(*case), target(0, seed=0)
    outputs, _ = read(model, [nothing, TARGET[:, :5], nothing, TARGET[:, 5:]], begin(model))
    close(outputs, model(TARGET, begin(model))[0])


@each_model
def test_a_model_in_training_without_dropout_says_what_it_says_in_evaluation(case: Case) -> None:
    model = translator(*case)
    before, _ = model(TARGET, begin(model))
    model.train()
    close(model(TARGET, begin(model))[0], before)


@each_model
def test_half_precision_works_and_stays_near(case: Case) -> None:
    model = translator(*case).float()
    exact = surprise(model(TARGET, begin(model))[0], TARGET)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = surprise(read(model, TARGET.split([4, 1, 4], dim=1), begin(model))[0], TARGET)
    assert all(g.isfinite().all() for g in gradients(model, loss))
    torch.testing.assert_close(loss.float(), exact, rtol=0.03, atol=0)


@each_model
@each(count=[2, 4])
def test_accumulated_gradients_equal_those_of_one_big_batch(case: Case, count: int) -> None:
    model = translator(*case).train()  # with label smoothing
    rows, objective = pair_rows(TASK, words(8, 6)), Objective(model, TASK)
    big = objective(TASK.collate(rows, torch.arange(8).numpy()), None)
    steps = [objective(TASK.collate(rows, part.numpy()), None) for part in torch.arange(8).chunk(count)]
    assert sum(step.count for step in steps) == big.count == rows.tokens
    wanted = gradients(model, big.loss / big.count)
    pieces = [gradients(model, step.loss / big.count) for step in steps]
    for n, theirs in enumerate(wanted):
        close(sum(piece[n] for piece in pieces), theirs)
    close(sum(step.loss.detach() for step in steps), big.loss.detach())


@each_model
def test_padding_of_the_target_changes_no_loss(case: Case) -> None:
    model, rows = same_translator(*case), pair_rows(TASK, words(5, 6))
    batch = TASK.collate(rows, torch.arange(5).numpy())
    pads = {"inputs": TASK.tokenizers.target.pad, "targets": -100}
    wider = {name: nn.functional.pad(getattr(batch, name), (0, 4), value=value) for name, value in pads.items()}
    wide = Batch(**wider, mask=None, context=batch.context, context_mask=batch.context_mask)
    step, other = TASK.loss(model, batch), TASK.loss(model, wide)
    assert step.count == other.count == rows.tokens
    close(other.loss, step.loss)


@pytest.mark.parametrize("case", [case for case in ACCEPTED if taps(translator(*case))], ids=title)
def test_watching_changes_no_output_and_no_gradient(case: Case) -> None:
    model, after = translator(*case), target(3, seed=3)
    outputs, state = model(TARGET, begin(model))
    more, _ = model(after, state)
    with record(model) as trace:
        watched, seen = model(TARGET, begin(model))
        watched_more, _ = model(after, seen)
    assert all(trace.values()), "every tap was passed"
    assert torch.equal(watched, outputs) and torch.equal(watched_more, more), "not even by rounding"
    wanted = gradients(model, surprise(outputs, TARGET) + surprise(more, after))
    found = gradients(model, surprise(watched, TARGET) + surprise(watched_more, after))
    for ours, theirs in zip(found, wanted, strict=True):
        close(ours, theirs)


class Forgetful(SequenceModel):
    """It keeps nothing but the tokens, and reads the source and all that was written anew at every step."""

    def __init__(self, model: SequenceModel) -> None:
        super().__init__()
        self.model, self.kind, self.limit = model, model.kind, model.limit

    def begin(self, context: Tensor, mask: Tensor | None = None) -> State:
        return context, mask, context[:, :0]

    def encode(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.model.encode(inputs, mask)

    def forward(self, inputs: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        context, real, before = state  # type: ignore[misc]
        written = torch.cat((before, inputs), dim=1)  # type: ignore[list-item]
        logits, _ = self.model(written, self.model.begin(context, real))  # type: ignore[arg-type]
        return logits[:, -inputs.size(1) :], (context, real, written)


def same(ours: list[list[Hypothesis]], theirs: list[list[Hypothesis]]) -> None:
    assert [[h.tokens for h in found] for found in ours] == [[h.tokens for h in found] for found in theirs]
    scores = [[h.score for found in all_found for h in found] for all_found in (ours, theirs)]
    assert scores[0] == pytest.approx(scores[1], rel=1e-5)


@each_model
@each(beams=[1, 3])
def test_searching_from_a_state_equals_reading_everything_anew_at_each_step(case: Case, beams: int) -> None:
    model, task = same_translator(*case), translation(joint=True, max_new=8)
    how = Decoding(beams=beams)
    same(task.translate(model, TEXTS, how), task.translate(Forgetful(model), TEXTS, how))


@each_model
def test_a_batch_of_sources_is_searched_as_each_alone(case: Case) -> None:
    model, task = same_translator(*case), translation(joint=True, max_new=8)
    for how in (Decoding(beams=3), Decoding(beams=1), Decoding(beams=2, min_new=3, no_repeat=2)):
        same(task.translate(model, TEXTS, how), [task.translate(model, [text], how)[0] for text in TEXTS])


@each_model
@torch.no_grad()
def test_a_beam_of_one_is_greedy(case: Case) -> None:
    model, task = same_translator(*case), translation(joint=True, max_new=8)
    batch = task.collate(pair_rows(task, [(text, "A") for text in TEXTS]), torch.arange(len(TEXTS)).numpy())
    assert batch.context is not None
    state, last = model.begin(batch.context, batch.context_mask), batch.inputs[:, :1]
    written: list[list[int]] = [[] for _ in TEXTS]
    for _ in range(8):
        logits, state = model(last, state)
        last = logits.argmax(-1)
        for row, token in enumerate(last[:, 0].tolist()):
            written[row].append(token)
    end = task.tokenizers.target.eos
    wanted = [tokens[: tokens.index(end)] if end in tokens else tokens for tokens in written]
    assert [found[0].tokens for found in task.translate(model, TEXTS, Decoding(beams=1))] == wanted
