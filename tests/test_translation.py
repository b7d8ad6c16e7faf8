"""The translation task: which pairs come when, what is read and asked, what is left out, what is refused."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from support import foreign, in_chinese
from toys import Case, close, pair_rows, translation, translator, words

from seqloom.core.batch import IGNORE, Batch
from seqloom.core.errors import UserError
from seqloom.core.order import plan_epoch
from seqloom.core.task import Order
from seqloom.decode.decoding import Decoding
from seqloom.runs.registry import find_config
from seqloom.tasks.translation.task import Translation

WORDS = words(120, 20)
GPT: Case = ("gpt", {"depth": 1, "context": 64})


def model_of(task: Translation, name: str, **options: Any) -> Any:
    return find_config("models", name).model_validate({"width": 16, **options}).assemble(task)


def epoch(task: Translation, rows: Any, seed: int = 0, number: int = 0) -> list[np.ndarray]:
    """The batches of an epoch, as the numbers of pairs."""
    return plan_epoch(task._short(rows), rows.lengths.max(1), seed, number, 8, task.config.batch_tokens)


def first(task: Translation, rows: Any, count: int, **order: Any) -> list[list[Batch]]:
    return list(islice(task.batches(rows, Order(**{"batch": 8, **order}), False), count))


def sentences(pieces: list[Batch]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The pairs in batches, without padding: (source, target) ids; pieces of nothing have none."""
    found = []
    for batch in pieces:
        assert batch.context is not None
        real = torch.ones_like(batch.context, dtype=torch.bool) if batch.context_mask is None else batch.context_mask
        for source, there, target in zip(batch.context, real, batch.targets, strict=True):
            asked = target[target != IGNORE]
            if len(asked):
                found.append((tuple(source[there].tolist()), tuple(asked.tolist())))
    return found


@pytest.mark.parametrize("budget", [1, 15, 60, 400])
def test_no_batch_is_above_the_budget_unless_one_pair_alone_is(budget: int) -> None:
    task = translation(batch_tokens=budget)
    rows = pair_rows(task, WORDS)
    for batch in epoch(task, rows):
        assert len(batch) == 1 or len(batch) * rows.lengths[batch].max() <= budget


@pytest.mark.parametrize("options", [{"batch_tokens": 60}, {"batch_tokens": 0}], ids=str)
def test_every_pair_comes_once_in_an_epoch_and_epochs_differ(options: dict[str, Any]) -> None:
    task = translation(**options)
    rows = pair_rows(task, WORDS)
    plans = [epoch(task, rows, seed, number) for seed, number in ((0, 0), (0, 1), (1, 0))]
    for plan in plans:
        assert sorted(np.concatenate(plan)) == list(range(len(WORDS)))
    orders = [np.concatenate(plan).tolist() for plan in plans]
    assert orders[0] != orders[1] != orders[2] != orders[0]
    assert np.array_equal(np.concatenate(epoch(task, rows)), orders[0])


def test_without_a_budget_a_batch_has_so_many_rows() -> None:
    task = translation(batch_tokens=0)
    assert sorted(len(batch) for batch in epoch(task, pair_rows(task, WORDS[:50]))) == [2, *[8] * 6]


def test_little_of_a_batch_is_padding() -> None:
    task = translation(batch_tokens=200)
    rows = pair_rows(task, words(2000, 20))
    spread = [np.ptp(rows.lengths[batch].max(1)) for batch in epoch(task, rows)]
    assert np.mean(spread) < 1


@pytest.mark.parametrize(("world", "accumulate"), [(1, 4), (2, 1), (2, 2), (4, 2)])
def test_the_global_batches_are_the_same_for_any_number_of_processes_and_pieces(world: int, accumulate: int) -> None:
    task = translation(batch_tokens=60)
    rows = pair_rows(task, WORDS)
    wanted = first(task, rows, 70)
    shares = [first(task, rows, 70, world=world, accumulate=accumulate, rank=rank) for rank in range(world)]
    for step, whole in enumerate(wanted):
        pieces = [batch for share in shares for batch in share[step]]
        assert len(pieces) == world * accumulate
        assert sentences(pieces) == sentences(whole)


@pytest.mark.parametrize("start", [1, 7, 40, 100])
def test_starting_later_goes_on_exactly_as_if_it_had_begun_before(start: int) -> None:
    task = translation(batch_tokens=60)
    rows = pair_rows(task, WORDS)
    whole, rest = first(task, rows, start + 30), first(task, rows, 30, start=start)
    for (ours,), (theirs,) in zip(rest, whole[start:], strict=True):
        assert torch.equal(ours.inputs, theirs.inputs) and torch.equal(ours.targets, theirs.targets)
        assert torch.equal(ours.context, theirs.context) and ours.origin == theirs.origin  # type: ignore[arg-type]


def test_a_process_without_pairs_takes_part_with_nothing_asked() -> None:
    task = translation(batch_tokens=60)
    batch = task.collate(pair_rows(task, WORDS), np.array([], int))
    step = task.loss(translator(*GPT), batch)
    assert step.count == 0 and step.loss == 0 and step.loss.requires_grad


@pytest.mark.parametrize("joint", [False, True])
def test_a_batch_asks_for_the_target_and_its_end(joint: bool) -> None:
    task = translation(joint=joint)
    source, target = task.tokenizers.source, task.tokenizers.target
    assert (source.hash == target.hash) == joint and task.tokenizers.shift == (0 if joint else target.size)
    batch = task.collate(pair_rows(task, [("abc", "FA"), ("a", "BCD")]), np.arange(2))
    assert batch.inputs.tolist()[1] == [target.bos, *target.encode("BCD")]
    assert batch.targets.tolist() == [[*target.encode("FA"), target.eos, IGNORE], [*target.encode("BCD"), target.eos]]
    assert batch.context is not None and batch.context_mask is not None
    assert batch.context[0].tolist() == [n + task.tokenizers.shift for n in [*source.encode("abc"), source.eos]]
    assert batch.context_mask.sum(1).tolist() == [4, 2]
    assert task.embed(3).weight.shape == (task.tokenizers.size, 3) and task.head(3).out_features == target.size


def test_a_reversed_source_still_ends_with_its_end() -> None:
    forth, back = (translation(reverse=reverse) for reverse in (False, True))
    for word in ("abc", "a"):
        read = [
            task.collate(pair_rows(task, [(word, "A")]), np.arange(1)).context[0].tolist() for task in (forth, back)
        ]
        assert read[1] == [*read[0][-2::-1], read[0][-1]]
    model = translator("seq2seq", {})
    same = [translation(joint=True, reverse=reverse) for reverse in (False, True)]
    found = [task.translate(model, [text])[0] for task, text in zip(same, ("abcd", "dcba"), strict=True)]
    assert found[0] == found[1]


def test_pairs_that_are_too_long_are_not_trained_on_but_scored() -> None:
    task = translation(longest=10, batch_tokens=60, joint=True)
    rows = pair_rows(task, WORDS)
    short = np.flatnonzero(rows.lengths.max(1) <= 10)
    assert 0 < len(short) < len(WORDS)
    assert sorted(np.concatenate(epoch(task, rows))) == short.tolist()
    said = f"{len(WORDS) - len(short)} of 120 pairs have more than 10 tokens on a side and are left out of training"
    assert said in (task.check_rows(translator("gru", {}), {"train": rows}) or "")
    assert translation().check_rows(translator("gru", {}), {"train": rows}) is None
    scores = task.evaluate(translator("gru", {}), rows, quick=True)
    assert scores["tokens"] == rows.tokens


def test_the_loss_of_evaluation_is_the_plain_one_of_every_token() -> None:
    task, model = translation(smoothing=0.3, joint=True), translator("seq2seq", {}).train()
    rows = pair_rows(task, WORDS[:9])
    scores = task.evaluate(model, rows, quick=True)
    assert model.training, "it goes on training"
    losses = [task.loss(model.eval(), task.collate(rows, np.array([n]))).loss for n in range(9)]
    assert scores["loss"] == pytest.approx(sum(loss.item() for loss in losses) / rows.tokens)
    assert scores["tokens"] == rows.tokens and "nats per target token, 9 pairs" in scores["protocol"]


def test_in_training_the_loss_is_smoothed() -> None:
    task, model = translation(smoothing=0.3, joint=True), translator("seq2seq", {})
    batch = task.collate(pair_rows(task, WORDS[:9]), np.arange(9))
    logits, _ = model(batch.inputs, model.begin(batch.context, batch.context_mask))
    for training, smoothing in ((True, 0.3), (False, 0.0)):
        wanted = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), batch.targets.flatten(), reduction="sum", label_smoothing=smoothing
        )
        close(task.loss(model.train(training), batch).loss, wanted)


@pytest.mark.parametrize("name", ["seq2seq", "transformer", "gru"])
def test_scheduled_sampling_reads_what_the_model_would_have_written(name: str) -> None:
    task, model = translation(sampling=0.5, joint=True), translator(name, {}).train()
    batch = task.collate(pair_rows(task, words(60, 12)), np.arange(60))
    torch.manual_seed(0)
    state = model.begin(batch.context, batch.context_mask)
    read = task._guessed(model, batch, state)
    guesses = model(batch.inputs, state)[0].argmax(-1)[:, :-1]
    assert torch.equal(read[:, 0], batch.inputs[:, 0]), "the beginning is never guessed"
    own, true = read[:, 1:] == guesses, read[:, 1:] == batch.inputs[:, 1:]
    assert (own | true).all()
    differ = guesses != batch.inputs[:, 1:]
    assert 0.4 < float(own[differ].double().mean()) < 0.6
    step = task.loss(model, batch)
    step.loss.backward()
    assert step.loss.isfinite()
    plain = translation(joint=True, sampling=0.5).loss(model.eval(), batch).loss
    close(plain, translation(joint=True).loss(model, batch).loss)


@pytest.mark.parametrize("name", ["transformer", "gpt", "seq2seq", "gru"])
@pytest.mark.parametrize("joint", [True, False])
def test_a_tie_shares_the_rows_of_target_tokens(name: str, joint: bool) -> None:
    task = translation(joint=joint)
    tied = model_of(task, name, tie=True)
    assert tied.head.weight is tied.embed.weight and len(tied.embed.weight) == task.vocabulary
    ids = torch.arange(task.tokenizers.size)
    assert torch.equal(tied.embed(ids)[: task.vocabulary], tied.head.weight)
    plain = model_of(task, name, tie=False)
    assert tied.flops(7) == plain.flops(7), "look-ups are free"
    tied.embed(ids).sum().backward()
    read = [p for name, p in tied.named_parameters() if name.startswith("embed.")]
    assert sum(map(len, read)) == len(ids) and all(p.grad is not None for p in read)


def test_a_tie_needs_vectors_of_the_models_width() -> None:
    with pytest.raises(ValueError, match=r"inputs=5: with tie=true, embeddings have the width of the output layer"):
        model_of(translation(joint=True), "seq2seq", tie=True, inputs=5)


def test_pairs_longer_than_the_context_are_refused_with_the_way_out() -> None:
    task = translation(joint=True)
    rows = pair_rows(task, [("abcdefgh", "ABCDEF"), ("a", "B")])  # 9 and 7 tokens with their ends
    gpt, both = model_of(task, "gpt", context=12), model_of(task, "transformer", positions="learned", context=8)
    for model, message in (
        (gpt, "a pair of 16 tokens, longer than the model's context 12; set model.context=16, or lower task.longest"),
        (both, "a pair of 9 tokens, longer than the model's context 8; set model.context=9, or lower task.longest"),
    ):
        with pytest.raises(UserError, match=f"the train split has {message}"):
            task.check_rows(model, {"train": rows})
    task.check_rows(model_of(task, "gpt", context=16), {"train": rows})
    task.check_rows(gpt, {"train": pair_rows(task, [("a", "B")]), "valid": rows})  # it can read more than it should
    with pytest.raises(UserError, match=r"the valid split has a pair of 9 tokens.*or leave long pairs out"):
        task.check_rows(both, {"train": pair_rows(task, [("a", "B")]), "valid": rows})
    with pytest.raises(UserError, match=r"task.longest=2: every pair is longer; raise it"):
        translation(longest=2).check_rows(gpt, {"train": pair_rows(task, WORDS[:1])})


@pytest.mark.parametrize(
    "case", [("transformer", {"positions": "learned"}), ("gpt", {"positions": "learned"})], ids=str
)
def test_an_output_ends_where_the_models_positions_end(case: Case) -> None:
    task, model = translation(joint=True), translator(case[0], {**case[1], "context": 12})
    texts = ["abcdefgh", "a", "abc", ""]
    found = task.translate(model, texts, Decoding(beams=2, min_new=100))
    read = [len(text) + 1 if model.kind == "causal" else 0 for text in texts]
    wanted = [min(12 - n, 2 * (len(text) + 1) + 10) for n, text in zip(read, texts, strict=True)]
    assert [len(hypotheses[0].tokens) for hypotheses in found] == wanted


def test_outputs_come_in_the_order_of_the_sources() -> None:
    task, model = translation(joint=True, max_new=5), translator("seq2seq", {})
    texts = [source for source, _ in words(30, 12, seed=4)]
    together = task.translate(model, texts, Decoding(beams=4))
    backwards = task.translate(model, texts[::-1], Decoding(beams=4))
    assert [[h.tokens for h in found] for found in together] == [[h.tokens for h in found] for found in backwards[::-1]]
    assert all(task.text(found[0]) == task.tokenizers.target.decode(found[0].tokens) for found in together)
    assert task.translate(model, []) == []


def test_a_report_shows_evenly_spaced_pairs_with_the_output() -> None:
    task, model = translation(joint=True, max_new=5), translator("seq2seq", {})
    pairs = words(10, 300, seed=4)
    found = task.showcase(model, pair_rows(task, pairs))
    assert found["kind"] == "pairs" and found["of"] == 10
    assert [row["source"][:100] for row in found["rows"]] == [pairs[n][0][:100] for n in (0, 2, 4, 6, 8)]
    assert all(len(row[key]) <= 200 for row in found["rows"] for key in ("source", "reference", "output"))
    for metric in ("translation", "summary", "transcription"):
        other = translation(joint=True, max_new=5, metric=metric, beams=2)
        protocol = other.evaluate(model, pair_rows(other, words(3, 5)))["protocol"]
        assert not foreign(in_chinese(other, protocol)), in_chinese(other, protocol)
    outputs, _ = task.writer.write(model, [pairs[n][0] for n in (0, 2, 4, 6, 8)])
    assert [row["output"] for row in found["rows"]] == outputs and not any(row["exact"] for row in found["rows"])
