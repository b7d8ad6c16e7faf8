"""Perplexity: every token counted once, by hand and by us; and what the naive baselines score."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from toys import VOCABULARY, each, language_model, network, stream, tokens

from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.tasks.language_model import perplexity as module
from seqloom.tasks.language_model.perplexity import baselines, perplexity

TEXT = tokens(101, seed=3)
STREAM = stream(TEXT.numpy())

PROTOCOLS: list[dict[str, int]] = [
    {},
    {"streams": 7},
    {"streams": 1000},
    {"context": 10},
    {"context": 10, "stride": 10},
    {"context": 7, "stride": 3},
    {"context": 5, "stride": 1},
    {"context": 1},
    {"context": 500},
    {"context": 500, "stride": 1},
]
each_protocol = pytest.mark.parametrize("how", PROTOCOLS, ids=str)


class Uniform(SequenceModel):
    """Knows nothing, and remembers how often each place of the text was asked for."""

    kind, limit = "causal", None

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def forward(self, inputs: Tensor, state: Any = None, mask: Tensor | None = None) -> tuple[Tensor, Any]:
        self.asked += inputs.numel() if mask is None else int(mask.sum())
        return torch.zeros(*inputs.shape, VOCABULARY), state

    encode = begin = None  # type: ignore[assignment]


class Counting(Uniform):
    """Sure that each token is followed by the next number: perfect on a text that counts."""

    def forward(self, inputs: Tensor, state: Any = None, mask: Tensor | None = None) -> tuple[Tensor, Any]:
        return nn.functional.one_hot((inputs + 1) % VOCABULARY, VOCABULARY) * 1e4, state


def surprise(model: SequenceModel, text: Tensor, counted: int) -> float:
    """Of the last `counted` tokens, having read the text from its beginning."""
    with torch.no_grad():
        logits = model(text[None, :-1])[0][0].float()
    return float(nn.functional.cross_entropy(logits, text[1:], reduction="none").double()[-counted:].sum())


@each_protocol
def test_a_model_that_knows_nothing_scores_the_size_of_the_vocabulary(how: dict[str, int]) -> None:
    scores = perplexity(Uniform(), STREAM, **how)
    assert scores["perplexity"] == pytest.approx(VOCABULARY, rel=1e-6)
    assert scores["loss"] == pytest.approx(math.log(VOCABULARY), rel=1e-6)
    assert scores["tokens"] == 100


@each_protocol
def test_a_model_that_knows_everything_scores_1(how: dict[str, int]) -> None:
    scores = perplexity(Counting(), stream(np.arange(101) % VOCABULARY), **how)
    assert (scores["perplexity"], scores["loss"], scores["bits_per_byte"]) == (1, 0, 0)
    assert scores["tokens"] == 100


@pytest.mark.parametrize("name", ["ngram", "lstm", "window"])
@each(at_once=[1, 13, 2048])
def test_a_carried_state_scores_as_if_the_stream_were_read_at_once(
    name: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_AT_ONCE", at_once)
    model = network(name, {})
    assert perplexity(model, STREAM)["loss"] * 100 == pytest.approx(surprise(model, TEXT, 100), rel=1e-6)


@each(streams=[2, 3, 7, 64, 99, 100])
@each(at_once=[20, 2048])
def test_parallel_streams_score_as_their_rows_read_one_by_one(
    streams: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_AT_ONCE", at_once)
    model, span = network("gru", {}), math.ceil(100 / streams)
    rows = [TEXT[begin : begin + span + 1] for begin in range(0, 100, span)]
    scores = perplexity(model, STREAM, streams=streams)
    assert scores["tokens"] == sum(len(row) - 1 for row in rows) == 100
    assert scores["loss"] * 100 == pytest.approx(sum(surprise(model, row, span) for row in rows), rel=1e-6)


@pytest.mark.parametrize("name", ["gpt", "rnn"])
@each(context=[1, 2, 7, 10, 99, 100, 101])
@each(stride=[1, 3, 10, 100])
def test_windows_count_every_token_once_with_the_context_they_promise(name: str, context: int, stride: int) -> None:
    model, stride = network(name, {"depth": 1}), min(stride, context)
    nats, counted = surprise(model, TEXT[: context + 1], context), min(context, 100)
    while counted < 100:  # each further window reads `context` tokens and counts those that are new
        begin = counted - (context - stride)
        window = TEXT[begin : begin + context + 1]
        new = min(stride, 100 - counted)
        nats, counted = nats + surprise(model, window, new), counted + new
    scores = perplexity(model, STREAM, context=context, stride=stride)
    assert scores["tokens"] == counted == 100
    assert scores["loss"] * 100 == pytest.approx(nats, rel=1e-6)


def test_a_stride_of_1_gives_every_token_the_whole_context() -> None:
    model = network("gru", {})
    wanted = sum(surprise(model, TEXT[max(0, end - 6) : end + 1], 1) for end in range(1, 101))
    assert perplexity(model, STREAM, context=6, stride=1)["loss"] * 100 == pytest.approx(wanted, rel=1e-6)


def test_windows_without_overlap_read_each_token_once() -> None:
    model = Uniform()
    perplexity(model, STREAM, context=10, stride=10)
    assert model.asked == 100


def test_the_score_does_not_depend_on_how_many_windows_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    model, losses = network("gpt", {"depth": 1}), []
    for at_once in (1, 30, 2048):
        monkeypatch.setattr(module, "_AT_ONCE", at_once)
        losses.append(perplexity(model, STREAM, context=8, stride=3)["loss"])
    assert losses == pytest.approx([losses[0]] * 3, rel=1e-6)


def test_bits_per_byte_are_the_bits_of_all_tokens_over_the_bytes_of_the_text() -> None:
    scores = perplexity(Uniform(), STREAM)
    assert STREAM.bytes == scores["bytes"] == 202
    assert scores["bits_per_byte"] == pytest.approx(100 * math.log2(VOCABULARY) / 202, rel=1e-6)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({}, "nats per token, state carried through the whole stream, 100 tokens"),
        ({"streams": 4}, "nats per token, state carried within each of 4 streams, 100 tokens"),
        ({"streams": 64}, "nats per token, state carried within each of 50 streams, 100 tokens"),
        ({"context": 10}, "nats per token, context 10, stride 5, 100 tokens"),
        ({"context": 10, "stride": 3}, "nats per token, context 10, stride 3, 100 tokens"),
    ],
    ids=str,
)
def test_the_score_carries_its_protocol(how: dict[str, int], said: str) -> None:
    assert perplexity(Uniform(), STREAM, **how)["protocol"] == said


@pytest.mark.parametrize("length", [0, 1])
def test_a_text_with_nothing_to_predict_is_refused(length: int) -> None:
    with pytest.raises(UserError, match="token, and needs 2 or more"):
        perplexity(Uniform(), stream(TEXT[:length].numpy()))


@pytest.mark.parametrize("training", [True, False])
def test_evaluation_is_without_dropout_and_leaves_the_mode_as_it_was(training: bool) -> None:
    model = network("lstm", {"dropout": 0.5}).train(training)
    assert perplexity(model, STREAM)["loss"] == perplexity(model, STREAM)["loss"]
    assert model.training == training


def test_an_evaluation_that_fails_leaves_the_mode_as_it_was() -> None:
    model = network("gpt", {"preset": "gpt2", "context": 4}).train()
    with pytest.raises(UserError, match="learned positions end at 4"):
        perplexity(model, STREAM, context=10)
    assert model.training


def test_a_loss_beyond_all_measure_is_an_infinite_perplexity() -> None:
    assert perplexity(Counting(), stream(np.zeros(5, int)))["perplexity"] == math.inf


def test_the_baselines_are_a_uniform_guess_and_the_frequencies_of_the_training_part() -> None:
    train, valid = [0, 0, 0, 1, 2], [2, 0, 0, 1, 3]
    task = language_model(4)
    naive = task.naive(stream(train, 4))
    found = baselines(stream(valid, 4), 4, naive)
    chances = {0: 4 / 9, 1: 2 / 9, 2: 2 / 9, 3: 1 / 9}  # counts plus one each
    nats = -sum(math.log(chances[token]) for token in valid[1:])
    assert found["unigram"]["loss"] == pytest.approx(nats / 4)
    assert found["unigram"]["perplexity"] == pytest.approx(math.exp(nats / 4))
    assert found["unigram"]["bits_per_byte"] == pytest.approx(nats / math.log(2) / 10)
    assert found["uniform"]["loss"] == pytest.approx(math.log(4))
    assert found["uniform"]["bits_per_byte"] == pytest.approx(4 * 2 / 10)
    assert "unigram" not in baselines(stream(valid, 4), 4, None)


def test_the_task_reads_a_model_with_a_limit_in_windows_and_another_with_its_state() -> None:
    task = language_model()
    assert "state carried through the whole" in task.evaluate(network("rnn", {}), STREAM)["protocol"]
    assert "context 8, stride 4" in task.evaluate(network("gpt", {"context": 8}), STREAM)["protocol"]
    short = language_model(context=6, stride=2)
    assert "context 6, stride 2" in short.evaluate(network("gpt", {"context": 8}), STREAM)["protocol"]
    assert "context 6, stride 2" in short.evaluate(network("rnn", {}), STREAM)["protocol"]


def test_of_a_large_part_only_so_many_tokens_are_scored_and_it_says_so() -> None:
    model, task = network("rnn", {}), language_model(scored=50)
    scores = task.evaluate(model, STREAM, naive=task.naive(STREAM))
    assert scores["tokens"] == 49 and f"49 tokens (out of {len(STREAM) - 1:,}, from the start)" in scores["protocol"]
    assert scores["loss"] == language_model().evaluate(model, STREAM.head(50))["loss"]
    assert scores["baselines"]["unigram"]["bits_per_byte"] > 0
    assert "from the start" not in language_model(scored=10**6).evaluate(model, STREAM)["protocol"]


def test_while_training_only_the_beginning_of_the_validation_part_is_read() -> None:
    task = language_model(validation=50)
    scores = task.evaluate(network("gpt", {"context": 8}), STREAM, quick=True)
    assert scores["tokens"] == 49 and "context 8, stride 8" in scores["protocol"]
    assert task.evaluate(network("rnn", {}), STREAM, quick=True)["tokens"] == 49
