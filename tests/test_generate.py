"""Generation: how a token is picked, how a model goes on past its limit, and what beam search finds."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from toys import Case, each, language_models, network, search, tokens

from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.decode.beam import Hypothesis
from seqloom.decode.pick import Choice
from seqloom.decode.stream import stream

pytestmark = pytest.mark.long

LOGITS = torch.tensor([2.0, 1.0, 0.0, -1.0, 0.5])
DRAWS = 20_000

LIMITED: list[Case] = [
    ("gpt", {"context": 8, "depth": 2}),
    ("gpt", {"context": 8, "depth": 2, "preset": "gpt2"}),
    ("gpt", {"context": 7, "depth": 1, "positions": "sinusoidal"}),
    ("gpt", {"context": 1, "depth": 1, "preset": "gpt2"}),
]
WINDOWED: list[Case] = [("gpt", {"window": 4, "depth": 2}), ("gpt", {"window": 3, "depth": 1, "kv_heads": 2})]
EVERY: list[Case] = [(name, {}) for name in language_models()] + LIMITED + WINDOWED
each_model = pytest.mark.parametrize("case", EVERY, ids=str)
each_limited = pytest.mark.parametrize("case", LIMITED, ids=str)


def drawn(choice: Choice) -> Tensor:
    """How often each token is picked."""
    picked = choice(LOGITS.expand(DRAWS, -1), torch.Generator().manual_seed(0))
    return torch.bincount(picked, minlength=len(LOGITS)) / DRAWS


def write(model: SequenceModel, prompts: list[list[int]], max_new: int, **how: Any) -> list[list[int]]:
    seed = how.pop("seed", None)
    picked = list(stream(model, prompts, max_new=max_new, choose=Choice(**how) if how else None, seed=seed))
    return torch.stack(picked, dim=1).tolist()


def write_slowly(model: SequenceModel, prompt: list[int], max_new: int) -> list[int]:
    """Greedy, reading everything anew for each token, by the stated rule."""
    read, written = prompt[-(model.limit or len(prompt)) :], []
    for _ in range(max_new):
        if model.limit and len(read) > model.limit:
            read = read[-max(1, model.limit // 2) :]
        with torch.no_grad():
            written.append(int(model(torch.tensor([read]))[0][0, -1].argmax()))
        read = [*read, written[-1]]
    return written


def prompts_of(*lengths: int, vocabulary: int = 11) -> list[list[int]]:
    return [tokens(n, seed=n, vocabulary=vocabulary).tolist() for n in lengths]


def test_temperature_0_and_top_k_1_take_the_most_likely_token() -> None:
    assert drawn(Choice(temperature=0)).tolist() == drawn(Choice(top_k=1)).tolist() == [1, 0, 0, 0, 0]


@each(temperature=[0.5, 1.0, 3.0])
def test_tokens_are_drawn_with_the_chances_the_temperature_gives(temperature: float) -> None:
    wanted = (LOGITS / temperature).softmax(0)
    torch.testing.assert_close(drawn(Choice(temperature=temperature)), wanted, rtol=0, atol=0.015)


@each(temperature=[1e-3, 1e-40])
def test_a_temperature_near_0_is_nearly_greedy(temperature: float) -> None:
    assert drawn(Choice(temperature=temperature)).tolist() == [1, 0, 0, 0, 0]


def test_a_high_temperature_is_nearly_uniform() -> None:
    torch.testing.assert_close(drawn(Choice(temperature=1e6)), torch.full((5,), 0.2), rtol=0, atol=0.015)


@each(k=[2, 3, 5, 50])
def test_top_k_draws_from_the_k_most_likely_in_proportion(k: int) -> None:
    least = LOGITS.sort(descending=True).values[min(k, 5) - 1]
    kept = LOGITS.masked_fill(LOGITS.lt(least), -math.inf)
    torch.testing.assert_close(drawn(Choice(top_k=k)), kept.softmax(0), rtol=0, atol=0.015)


@pytest.mark.parametrize(("share", "kept"), [(1e-6, [0]), (0.5, [0]), (0.6, [0, 1]), (0.8, [0, 1, 4]), (1.0, range(5))])
def test_top_p_draws_from_the_fewest_tokens_that_hold_the_share(share: float, kept: Any) -> None:
    chances = LOGITS.softmax(0)
    wanted = torch.zeros(5).index_copy(0, torch.tensor(list(kept)), chances[list(kept)])
    torch.testing.assert_close(drawn(Choice(top_p=share)), wanted / wanted.sum(), rtol=0, atol=0.015)


def test_top_k_top_p_and_temperature_work_together() -> None:
    chances = (LOGITS / 2).softmax(0)[[0, 1, 4]]  # top-k of 3; of these, the first two hold 75 percent
    wanted = torch.zeros(5)
    wanted[:2] = chances[:2] / chances[:2].sum()
    torch.testing.assert_close(drawn(Choice(temperature=2, top_k=3, top_p=0.7)), wanted, rtol=0, atol=0.015)


WRONG: list[dict[str, Any]] = [
    *({"temperature": value} for value in (-1, math.nan, math.inf)),
    *({"top_p": value} for value in (0, 1.5, math.nan)),
    {"top_k": -1},
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_choice_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(UserError, match=name):
        Choice(**wrong)


@each_model
def test_the_same_seed_writes_the_same_text_and_another_seed_another(case: Case) -> None:
    model, prompts = network(*case), prompts_of(3, 3)
    texts = [write(model, prompts, 30, temperature=1.0, seed=seed) for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


@each_model
def test_samples_of_one_prompt_differ_and_greedy_ones_do_not(case: Case) -> None:
    model, prompts = network(*case), prompts_of(4) * 5
    assert len({tuple(row) for row in write(model, prompts, 20, temperature=1.0, seed=0)}) == 5
    assert len({tuple(row) for row in write(model, prompts, 20)}) == 1


@each_model
def test_greedy_writing_equals_reading_everything_anew_for_each_token(case: Case) -> None:
    model = network(*case)
    for prompt in prompts_of(1, 8, 21):
        assert write(model, [prompt], 16) == [write_slowly(model, prompt, 16)]


@each_model
def test_prompts_of_different_lengths_are_continued_as_if_each_were_alone(case: Case) -> None:
    model, prompts = network(*case), prompts_of(5, 1, 9, 2, 30)
    assert write(model, prompts, 16) == [write_slowly(model, prompt, 16) for prompt in prompts]


@each_limited
def test_a_model_is_never_asked_to_read_more_than_its_limit(case: Case) -> None:
    model: Any = network(*case)
    longest, read = [0], [0]

    def watch(module: nn.Module, inputs: Any, output: Any) -> None:
        before = inputs[1][0] if len(inputs) > 1 and inputs[1] is not None else torch.zeros(1, dtype=torch.long)
        longest[0], read[0] = max(longest[0], int(before.max()) + inputs[0].size(1)), read[0] + 1

    model.backbone.register_forward_hook(watch)
    write(model, prompts_of(2, 20), 40)
    search(model, prompts_of(2, 20), beams=2, max_new=40)
    assert 0 < longest[0] <= model.limit and read[0] >= 80


def test_no_new_tokens_are_no_tokens() -> None:
    model = network("lstm", {})
    assert list(stream(model, [[1]], max_new=0)) == []
    assert search(model, [[1], [2]], beams=3, max_new=0) == [[Hypothesis([], 0.0)]] * 2


@each_model
@each(end=[None, 3])
def test_beam_search_with_one_beam_is_greedy(case: Case, end: int | None) -> None:
    model, prompts = network(*case), prompts_of(5, 1, 9, 30)
    found = search(model, prompts, beams=1, max_new=20, end=end)
    greedy = [row[: row.index(end)] if end in row else row for row in write(model, prompts, 20)]
    assert [[h.tokens for h in hypotheses] for hypotheses in found] == [[row] for row in greedy]


@each_model
@pytest.mark.parametrize(("end", "early"), [(None, True), (0, True), (0, False)])
def test_beam_search_over_many_prompts_equals_one_prompt_at_a_time(case: Case, end: int | None, early: bool) -> None:
    model, prompts = network(*case), prompts_of(5, 1, 9, 2, 30)
    options: dict[str, Any] = {"beams": 3, "max_new": 14, "end": end, "early": early}
    together = search(model, prompts, **options)
    for found, prompt in zip(together, prompts, strict=True):
        (alone,) = search(model, [prompt], **options)
        assert [h.tokens for h in found] == [h.tokens for h in alone]
        assert [h.score for h in found] == pytest.approx([h.score for h in alone], abs=1e-4)


@each_model
def test_rows_that_are_decided_leave_the_batch_and_the_others_do_not_notice(case: Case) -> None:
    model, prompts, most = network(*case), prompts_of(5, 1, 9, 2, 30), [3, 0, 14, 1, 7]
    batches: list[int] = []
    watching = model.register_forward_pre_hook(lambda module, inputs: batches.append(len(inputs[0])))
    together = search(model, prompts, beams=2, max_new=most, no_repeat=3)
    watching.remove()
    assert batches == [4, *[6] * 2, *[4] * 4, *[2] * 7]  # at first, all beams of a row are alike
    for found, prompt, count in zip(together, prompts, most, strict=True):
        (alone,) = search(model, [prompt], beams=2, max_new=count, no_repeat=3)
        assert [h.tokens for h in found] == [h.tokens for h in alone]
        assert all(len(h.tokens) == count for h in found)


@pytest.mark.parametrize("name", ["ngram", "rnn", "gpt"])
@each(length_penalty=[0.0, 0.6, 1.0])
@each(end=[None, 2])
def test_beam_search_with_beams_enough_finds_the_best_of_all_sequences(
    name: str, length_penalty: float, end: int | None
) -> None:
    model, prompt, length, size = network(name, {}, vocabulary=4), [1, 3, 0], 4, 4
    (found,) = search(model, [prompt], beams=size**length, max_new=length, end=end, length_penalty=length_penalty)
    wanted = sorted(every_ending(model, prompt, size, length, end, length_penalty), key=lambda h: -h.score)
    assert len(found) == len(wanted)
    assert [h.tokens for h in found[:5]] == [h.tokens for h in wanted[:5]]
    assert [h.score for h in found] == pytest.approx([h.score for h in wanted], abs=1e-4)


@each(end=[None, 2])
@pytest.mark.parametrize(("least", "no_repeat"), [(2, 0), (4, 0), (0, 1), (0, 2), (1, 3), (3, 2)])
def test_beam_search_with_beams_enough_finds_the_best_of_all_that_is_allowed(
    least: int, no_repeat: int, end: int | None
) -> None:
    model, prompt, length, size = network("rnn", {}, vocabulary=4), [1, 3, 0], 4, 4
    rules = {"min_new": least, "no_repeat": no_repeat}
    (found,) = search(model, [prompt], beams=size**length, max_new=length, end=end, **rules)
    every = every_ending(model, prompt, size, length, end, 1.0)
    wanted = [h for h in every if len(h.tokens) >= least and not (no_repeat and repeats(h.tokens, no_repeat))]
    wanted.sort(key=lambda h: -h.score)
    assert 0 < len(wanted) < len(every) or end is None
    assert [h.tokens for h in found] == [h.tokens for h in wanted]
    assert [h.score for h in found] == pytest.approx([h.score for h in wanted], abs=1e-4)


def repeats(text: list[int], size: int) -> bool:
    grams = [tuple(text[n : n + size]) for n in range(len(text) - size + 1)]
    return len(set(grams)) < len(grams)


def every_ending(
    model: SequenceModel, prompt: list[int], size: int, length: int, end: int | None, length_penalty: float
) -> list[Hypothesis]:
    """All sequences that end with `end`, or reach the length without it."""
    endings = []
    for count in range(1, length + 1):
        for written in itertools.product(range(size), repeat=count):
            complete = written[-1] == end
            if end in written[:-1] or not (complete or count == length):
                continue
            with torch.no_grad():
                chances = model(torch.tensor([[*prompt, *written]]))[0][0].log_softmax(-1)
            score = sum(float(chances[len(prompt) - 1 + n, token]) for n, token in enumerate(written))
            endings.append(Hypothesis(list(written[:-1] if complete else written), score / count**length_penalty))
    return endings


def test_hypotheses_come_best_first_end_before_the_end_token_and_are_all_different() -> None:
    model = network("gru", {}, vocabulary=5)
    for found in search(model, [[1], [2, 3]], beams=6, max_new=10, end=0):
        assert len(found) == 6
        assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
        assert len({tuple(h.tokens) for h in found}) == 6
        assert all(0 not in h.tokens for h in found)
