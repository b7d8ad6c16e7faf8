"""Decoding from a state: what is forbidden, what length counts, when a row is decided, and how drawing fits in."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from toys import network, search, tokens

from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.core.state import State
from seqloom.decode import beam
from seqloom.decode.beam import Hypothesis, beam_search
from seqloom.decode.decoding import Decoding, decode
from seqloom.decode.pick import Choice, forbid_repeats
from seqloom.decode.stream import draw, stream


class Table(SequenceModel):
    """What follows a token depends on nothing else. state = (B,) how many were read"""

    kind = "causal"
    limit = None

    def __init__(self, chances: list[list[float]]) -> None:
        super().__init__()
        self.register_buffer("logits", torch.tensor(chances, dtype=torch.double).log())

    def forward(self, inputs: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        return self.get_buffer("logits")[inputs], inputs.new_zeros(len(inputs)) if state is None else state

    def encode(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        return self(inputs)[0]

    def begin(self, context: Tensor, mask: Tensor | None = None) -> State:
        return self(context)[1]


def texts(found: list[list[Hypothesis]]) -> list[list[list[int]]]:
    return [[h.tokens for h in row] for row in found]


def grams(text: list[int], size: int) -> list[tuple[int, ...]]:
    return [tuple(text[n : n + size]) for n in range(len(text) - size + 1)]


ENDS_SOON = Table([[1.0, 0.0, 0.0], [0.6, 0.3, 0.1], [0.6, 0.3, 0.1]])  # 0 is the end
CIRCLE = Table([[0.1, 0.7, 0.1, 0.1], [0.1, 0.1, 0.7, 0.1], [0.7, 0.1, 0.1, 0.1], [0.25] * 4])  # 0 1 2 0 1 2 ...


def test_the_length_counts_the_tokens_and_the_end() -> None:
    (found,) = search(ENDS_SOON, [[1]], beams=2, max_new=2, end=0, length_penalty=1.0, early=False)
    assert found[0] == ([], pytest.approx(math.log(0.6)))
    (found,) = search(ENDS_SOON, [[1]], beams=2, max_new=9, end=0, length_penalty=1.0)
    assert found[1] == ([1], pytest.approx(math.log(0.3 * 0.6) / 2))
    (found,) = search(ENDS_SOON, [[1]], beams=1, max_new=3)
    assert found == [([0, 0, 0], pytest.approx(math.log(0.6) / 3))]  # without an end, what was written


def test_a_higher_length_penalty_prefers_longer_texts() -> None:
    model = Table([[1.0, 0.0, 0.0], [0.4, 0.6, 0.0], [0.4, 0.6, 0.0]])
    options: dict[str, Any] = {"beams": 4, "max_new": 6, "end": 0, "early": False}
    lengths = [len(search(model, [[1]], length_penalty=power, **options)[0][0].tokens) for power in (0.0, 1.0, 3.0)]
    assert lengths[0] == 0 and lengths[1] == lengths[2] == 5  # and the end is the sixth


def test_unlikely_ends_do_not_decide_a_row_while_a_likely_text_is_alive() -> None:
    """A model that is nearly certain of 2, 3 and then the end: the second best is an end at once, and then another."""
    rows = [1.0, 0.0, 0.0, 0.0], [0.02, 0.005, 0.97, 0.005], [0.02, 0.005, 0.005, 0.97], [0.97, 0.01, 0.01, 0.01]
    model = Table(list(rows))
    for beams in (1, 2, 3):
        assert texts(search(model, [[1]], beams=beams, max_new=8, end=0))[0][0] == [2, 3]


def test_an_early_search_stops_at_the_first_ends_and_a_patient_one_when_none_can_overtake() -> None:
    model = Table([[1.0, 0.0, 0.0], [0.5, 0.1, 0.4], [0.9, 0.0, 0.1]])  # 2 is unlikely, but ends well
    assert texts(search(model, [[1]], beams=1, max_new=8, end=0, early=True)) == [[[]]]
    assert texts(search(model, [[1]], beams=1, max_new=8, end=0, early=False)) == [[[2]]]
    assert texts(search(model, [[1]], beams=1, max_new=8, end=0, early=False, length_penalty=0.0)) == [[[]]]


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("least", [0, 1, 4, 6, 20])
def test_the_end_does_not_come_before_the_least_number_of_tokens(beams: int, least: int) -> None:
    found = search(ENDS_SOON, [[1], [2]], beams=beams, max_new=6, end=0, min_new=least)
    assert min(len(text) for row in texts(found) for text in row) == min(least, 6)
    assert all(0 not in text for row in texts(found) for text in row)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_forbidding_repeats_equals_looking_through_every_text(size: int) -> None:
    written = tokens(20, 12, vocabulary=4)
    for length in range(13):
        allowed = forbid_repeats(torch.zeros(20, 4), written[:, :length], size) == 0
        for row, text in enumerate(written[:, :length].tolist()):
            repeated = [grams([*text, token], size)[-1:] for token in range(4)]
            wanted = [not last or last[0] not in grams(text, size) for last in repeated]
            assert allowed[row].tolist() == wanted


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("how", [{"beams": 1}, {"beams": 3}, {"temperature": 0.5}], ids=str)
def test_no_so_many_tokens_in_a_row_are_written_twice_unless_that_is_allowed(how: dict[str, Any], size: int) -> None:
    last = torch.tensor([0, 1, 3])
    for row in texts(decode(CIRCLE, None, last, Decoding(no_repeat=size, **how), max_new=15, end=None, seed=0)):
        assert row and all(len(set(grams(text, size))) == len(grams(text, size)) for text in row)
    free = texts(decode(CIRCLE, None, last, Decoding(**how), max_new=15, end=None, seed=0))
    assert any(len(set(grams(text, size))) < len(grams(text, size)) for row in free for text in row)
    assert texts(decode(CIRCLE, None, last[:1], Decoding(), max_new=6, end=None)) == [[[1, 2, 0, 1, 2, 0]]]


def test_a_row_in_which_nothing_can_follow_ends_with_what_it_has() -> None:
    assert {tuple(sorted(text)) for text in texts(search(CIRCLE, [[0]], beams=3, max_new=9, no_repeat=1))[0]} == {
        (0, 1, 2, 3)
    }
    blocked = Table([[0.0, 0.0], [0.5, 0.5]])
    for how in (Decoding(), Decoding(beams=3), Decoding(temperature=1.0)):
        stuck, free = decode(blocked, None, torch.tensor([0, 1]), how, max_new=5, end=None, seed=0)
        assert stuck == [([], 0.0)]
        assert all((text[-1] == 0 and set(text[:-1]) <= {1}) or set(text) == {1} for text in texts([free])[0])


def test_a_model_that_says_nan_gives_nothing_and_does_not_fail() -> None:
    broken = Table([[math.nan, 1.0], [1.0, 1.0]])
    for how in (Decoding(), Decoding(beams=3), Decoding(temperature=1.0)):
        assert decode(broken, None, torch.tensor([0]), how, max_new=5, end=1, seed=0) == [[([], 0.0)]]


@pytest.mark.parametrize("end", [None, 0])
def test_there_may_be_more_beams_than_tokens(end: int | None) -> None:
    (only,) = search(Table([[1.0]]), [[0]], beams=4, max_new=3, end=end)
    assert only == [([0, 0, 0] if end is None else [], 0.0)]
    (found,) = search(Table([[0.5, 0.5], [0.25, 0.75]]), [[1]], beams=50, max_new=3, end=end)
    assert len(found) == (8 if end is None else 4)
    assert sum(math.exp(h.score * min(3, len(h.tokens) + (end == 0))) for h in found) == pytest.approx(1)


@pytest.mark.parametrize("how", [Decoding(), Decoding(beams=3), Decoding(temperature=1.0)], ids=str)
def test_each_row_has_its_own_most_tokens(how: Decoding) -> None:
    model, last = network("gru", {}), torch.tensor([1, 2, 3, 4])
    found = texts(decode(model, None, last, how, max_new=[4, 0, 9, 1], end=None, seed=0))
    assert [{len(text) for text in row} for row in found] == [{4}, {0}, {9}, {1}]
    assert decode(model, None, last[:0], how, max_new=[], end=None) == []


@pytest.mark.parametrize("name", ["lstm", "gpt", "ttt", "ngram"])
def test_a_state_decoded_twice_gives_the_same_and_is_left_as_it_was(name: str) -> None:
    model, ids = network(name, {}), tokens(3, 7)
    with torch.inference_mode():
        state = model.begin(ids[:, :-1])
        before = model(ids[:, -1:], state)[0]
    for how in (Decoding(), Decoding(beams=3, no_repeat=2, min_new=3), Decoding(temperature=1.0)):
        first, second = (decode(model, state, ids[:, -1], how, max_new=12, end=0, seed=1) for _ in range(2))
        assert first == second
    with torch.inference_mode():
        torch.testing.assert_close(model(ids[:, -1:], state)[0], before)


def test_greedy_decoding_copies_no_state_until_a_row_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    copies: list[int] = []
    select = beam.select_rows
    monkeypatch.setattr(beam, "select_rows", lambda state, rows: copies.append(len(rows)) or select(state, rows))
    beam_search(network("gpt", {}), None, torch.tensor([1, 2, 3]), beams=1, max_new=[9, 5, 9])
    assert copies == [2]


def test_drawing_is_by_the_chances_and_scores_are_those_of_what_was_drawn() -> None:
    last, how = torch.ones(5000, dtype=torch.long), Decoding(temperature=1.0)
    found = [h for (h,) in decode(ENDS_SOON, None, last, how, max_new=3, end=0, seed=3)]
    share = {length: sum(len(h.tokens) == length for h in found) / len(found) for length in range(4)}
    assert share == pytest.approx({0: 0.6, 1: 0.24, 2: 0.096, 3: 0.064}, abs=0.02)
    for h in found:
        chance = math.prod([0.3 if token == 1 else 0.1 for token in h.tokens]) * (0.6 if len(h.tokens) < 3 else 1)
        assert h.score == pytest.approx(math.log(chance) / min(3, len(h.tokens) + 1))


def test_the_same_seed_draws_the_same_and_a_narrow_choice_is_greedy() -> None:
    model, last = network("lstm", {}), torch.tensor([1, 2, 3])
    drawn = [decode(model, None, last, Decoding(temperature=1.0), max_new=20, end=0, seed=seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    greedy = decode(model, None, last, Decoding(), max_new=20, end=0)
    for narrow in ({"top_k": 1}, {"top_p": 1e-9}):
        assert texts(decode(model, None, last, Decoding(temperature=1.0, **narrow), max_new=20, end=0)) == texts(greedy)


@pytest.mark.parametrize("name", ["lstm", "gpt", "ngram"])
def test_drawing_from_a_state_equals_drawing_from_the_prompts_that_led_to_it(name: str) -> None:
    model, ids, choose = network(name, {}), tokens(3, 6), Choice(temperature=0.7)
    with torch.inference_mode():
        state = model.begin(ids[:, :-1])
    ours = draw(model, state, ids[:, -1], max_new=15, choose=choose, seed=4)
    theirs = stream(model, ids.tolist(), max_new=15, choose=choose, seed=4)
    assert torch.equal(torch.stack(list(ours)), torch.stack(list(theirs)))


WRONG: list[dict[str, Any]] = [
    *({"beams": value} for value in (0, -1)),
    *({"length_penalty": value} for value in (-0.5, math.nan, math.inf)),
    {"min_new": -1},
    {"no_repeat": -1},
    *({"temperature": value} for value in (-1, math.nan)),
    {"top_k": 5},
    {"top_p": 0.9},
    {"top_p": 1.5},
    {"beams": 2, "temperature": 1.0},
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_decoding_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=next(iter(wrong))):
        Decoding(**wrong)
