"""The tagging task: what is read and asked, over every model; what is scored; from a file to predictions."""

from __future__ import annotations

import json
import random
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import digest, foreign, in_chinese
from toys import Case, accepted, alive, close, every_case, title

from seqloom import cli
from seqloom.core.batch import IGNORE, Batch
from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.core.task import Order
from seqloom.data.shapes.tagged.conll import Sentence
from seqloom.data.shapes.tagged.vocabulary import TagVocabulary, training_text
from seqloom.runs.fit import fit
from seqloom.runs.registry import find_config
from seqloom.runs.run import Run, load
from seqloom.tasks.tagging.features import SpelledEmbedding, distinct
from seqloom.tasks.tagging.task import Config, Tagging
from seqloom.tokenizers import train_tokenizer

pytestmark = pytest.mark.long

TAGS = ["O", "B-A", "I-A", "B-B", "I-B"]
WORDS = ["ada", "bob", "in", "rome", "sees", "x", "incredible", "Ada"]


def sentences(count: int, longest: int = 9, seed: int = 0) -> list[Sentence]:
    """Sentences of random words with random names in BIO."""
    chance, made = random.Random(seed), []
    for line in range(count):
        words = chance.choices(WORDS, k=chance.randint(1, longest))
        tags: list[str] = []
        for _ in words:
            inside = [f"I-{tags[-1][2:]}"] if tags and tags[-1] != "O" else []
            tags.append(chance.choice(["O", "B-A", "B-B", *inside]))
        made.append(Sentence(line, words, tags))
    return made


ROWS = sentences(60)


def tagging(kind: str = "words", lower: bool = False, **options: Any) -> Tagging:
    """`kind` and `lower`: of the tokenizer."""
    config = Config.model_validate(options)
    texts = [training_text(kind, row.words, lower) for row in ROWS]
    tokenizer = train_tokenizer(kind, texts, split="space", size=270)
    letters = train_tokenizer("characters", ["".join(WORDS)]) if config.characters != "none" else None
    return config.build(TagVocabulary(tokenizer, TAGS, letters, entities=True, lower=lower))


def rows_of(task: Tagging, rows: list[Sentence] = ROWS) -> Any:
    return task.tokens.rows(rows, _Origin(rows))


class _Origin:
    remark = fault = ""

    def __init__(self, rows: list[Sentence]) -> None:
        self._rows = rows

    def rows(self) -> Any:
        return iter(self._rows)


def tagger(name: str, options: dict[str, Any], task: Tagging | None = None) -> SequenceModel:
    config = find_config("models", name).model_validate({"width": 16, **options})
    return alive(config.assemble(task or tagging()))


def collate(task: Tagging, rows: Any, chosen: Any) -> Batch:
    return task.collate(rows, rows.pieces(task.config.longest), np.asarray(chosen, int))


MODELS = [case for case in every_case() if accepted(tagger, *case)]
LSTM: Case = ("lstm", {"bidirectional": True})
KINDS: list[dict[str, Any]] = [
    {}, {"crf": True}, {"characters": "convolution", "crf": True}, {"characters": "lstm", "lower": True},
    {"kind": "bpe", "crf": True}, {"kind": "characters"},
]  # fmt: skip

each_model = pytest.mark.parametrize("case", MODELS, ids=title)
each_kind = pytest.mark.parametrize("options", KINDS, ids=str)


def test_every_kind_of_model_takes_part() -> None:
    assert {tagger(*case).kind for case in MODELS} == {"causal", "bidirectional", "encoder-decoder"}
    with pytest.raises(UserError, match="model ngram: counts the tokens of running text, which tagging"):
        tagger("ngram", {})


@each_model
def test_padded_equals_alone_for_every_model(case: Case) -> None:
    task = tagging(crf=True)
    model, rows = tagger(*case, task), rows_of(task, ROWS[:7])
    together = task.loss(model, collate(task, rows, range(7)))
    alone = [task.loss(model, collate(task, rows, [n])) for n in range(7)]
    close(together.loss, torch.stack([step.loss for step in alone]).sum())
    assert together.count == sum(step.count for step in alone) == rows.words
    tags = task.tag(model, rows, 7)[0]
    for n, row in enumerate(ROWS[:7]):
        one = rows_of(task, [row])
        assert tags[rows.word_bounds[n] : rows.word_bounds[n + 1]].tolist() == task.tag(model, one, 1)[0].tolist()


@each_kind
def test_padded_equals_alone_for_every_way_to_read(options: dict[str, Any]) -> None:
    task = tagging(**options)
    model, rows = tagger(*LSTM, task), rows_of(task)
    together = task.loss(model, collate(task, rows, range(20)))
    alone = [task.loss(model, collate(task, rows, [n])).loss for n in range(20)]
    close(together.loss, torch.stack(alone).sum())
    gradients = torch.autograd.grad(together.loss, list(model.parameters()))
    assert all(gradient.isfinite().all() for gradient in gradients)


@each_kind
def test_a_piece_of_nothing_takes_part_with_every_weight(options: dict[str, Any]) -> None:
    task = tagging(**options)
    model, rows = tagger(*LSTM, task).train(), rows_of(task)
    step = task.loss(model, collate(task, rows, []))
    assert step.count == 0 and step.loss == 0
    step.loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@each_kind
@pytest.mark.parametrize(("world", "accumulate"), [(1, 4), (2, 2), (4, 1)])
def test_any_number_of_processes_and_pieces_reads_the_same(
    options: dict[str, Any], world: int, accumulate: int
) -> None:
    task = tagging(batch_tokens=40, **options)
    model, rows = tagger(*LSTM, task), rows_of(task, ROWS[:20])

    def losses(**order: Any) -> list[tuple[float, int]]:
        steps = islice(task.batches(rows, Order(batch=4, **order), False), 12)
        pieces = [[task.loss(model, batch) for batch in step] for step in steps]
        return [(sum(p.loss.item() for p in step), sum(p.count for p in step)) for step in pieces]

    whole = losses()
    shares = [losses(world=world, accumulate=accumulate, rank=rank) for rank in range(world)]
    for n, (loss, count) in enumerate(whole):
        assert sum(share[n][1] for share in shares) == count
        assert sum(share[n][0] for share in shares) == pytest.approx(loss, rel=1e-9)
    later = [batch.origin for (batch,) in islice(task.batches(rows, Order(batch=4, start=5), False), 7)]
    assert later == [batch.origin for (batch,) in islice(task.batches(rows, Order(batch=4), False), 5, 12)]


def test_a_batch_asks_for_the_tag_of_each_word_between_two_marks() -> None:
    task = tagging()
    rows = rows_of(task, [Sentence(1, ["ada", "in", "zzz"], ["B-A", "O", "I-B"]), Sentence(2, ["x"], ["O"])])
    batch, own = collate(task, rows, [0, 1]), task.tokens
    assert batch.inputs.tolist() == [
        [own.bos, *own.tokens("ada"), *own.tokens("in"), own.unk, own.eos], [own.bos, *own.tokens("x"), own.eos, 0, 0]
    ]  # fmt: skip
    assert batch.targets.tolist() == [[IGNORE, 1, 0, 4, IGNORE], [IGNORE, 0, IGNORE, IGNORE, IGNORE]]
    assert batch.mask is not None and batch.mask.sum(1).tolist() == [5, 3]
    assert task.embed(4).weight.shape == (own.size + 1, 4)  # type: ignore[union-attr]


def test_letters_stand_beside_their_words() -> None:
    task = tagging(characters="convolution")
    rows, own = rows_of(task, [Sentence(1, ["in", "ada"], ["O", "O"]), Sentence(2, ["x"], ["O"])]), task.tokens
    batch = collate(task, rows, [0, 1])
    assert batch.inputs.shape == (2, 4, 4) and not batch.inputs[:, 0, 1:].any()
    assert batch.inputs[0, 1, 1:].tolist() == [*own.spell("in"), 0]
    assert batch.inputs[0, 2, 1:].tolist() == list(own.spell("ada")) and not batch.inputs[1, 2:, 1:].any()


@pytest.mark.parametrize("reading", ["convolution", "lstm"])
def test_letters_are_read_the_same_however_much_padding_and_company(reading: Any) -> None:
    table = alive(SpelledEmbedding(9, 30, 8, reading, features=7))
    words = [[n % 9, *range(1, n + 1)] for n in (0, 1, 2, 3, 5, 9, 14, 3)]
    wide = torch.tensor([[word + [0] * (20 - len(word)) for word in words]])
    together = table(wide)
    assert together.shape == (1, 8, 8) and torch.equal(together[0, 3], together[0, 7])
    for n, word in enumerate(words):
        close(table(torch.tensor([[word + [0] * (len(word) == 1)]]))[0, 0], together[0, n])


def test_rows_that_differ_are_found_also_when_their_numbers_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = torch.randint(0, 4, (200, 5), generator=torch.Generator().manual_seed(0))
    for factor in (None, 0):  # with 0 every row has the same number
        if factor is not None:
            monkeypatch.setattr("seqloom.tasks.tagging.features._FACTOR", factor)
        found, places = distinct(rows)
        assert torch.equal(found[places], rows) and len(found) == len(torch.unique(rows, dim=0))


def test_in_training_some_words_are_unknown_and_nothing_else_is_changed() -> None:
    for options in ({}, {"characters": "lstm"}):
        task = tagging(word_dropout=0.4, **options)
        batch = collate(task, rows_of(task), range(60))
        torch.manual_seed(0)
        read = task._with_unknown(batch.inputs)
        ids, before = (x[..., 0] if x.dim() == 3 else x for x in (read, batch.inputs))
        words = before > task.tokens.unk
        assert torch.equal(ids[~words], before[~words]) and 0.3 < (ids != before)[words].double().mean() < 0.5
        assert (
            (ids[ids != before] == task.tokens.unk).all() and torch.equal(read[..., 1:], batch.inputs[..., 1:])
        ) or (read.dim() == 2)
        model = tagger(*LSTM, task)
        close(task.loss(model, batch).loss, tagging(**options).loss(model, batch).loss)
        assert task.loss(model.train(), batch).loss != task.loss(model, batch).loss


def test_the_loss_is_that_of_the_library_and_smoothed_in_training_alone() -> None:
    task = tagging(smoothing=0.2)
    model, batch = tagger(*LSTM, task), collate(task, rows_of(task), range(9))
    logits = model.encode(batch.inputs, batch.mask).flatten(0, 1)
    for training, smoothing in ((False, 0.0), (True, 0.2)):
        wanted = torch.nn.functional.cross_entropy(
            logits, batch.targets.flatten(), ignore_index=IGNORE, reduction="sum", label_smoothing=smoothing
        )
        close(task.loss(model.train(training), batch).loss, wanted)


@each_kind
def test_evaluation_scores_names_words_and_loss(options: dict[str, Any]) -> None:
    from seqeval.metrics import f1_score

    task = tagging(validation=10, **options)
    model, rows = tagger(*LSTM, task).train(), rows_of(task)
    scores = task.evaluate(model, rows, naive=task.naive(rows))
    assert model.training, "it goes on training"
    found = rows.named(task.tag(model, rows, 60)[0])
    wanted = [row.tags for row in ROWS]
    assert scores["f1"] == pytest.approx(f1_score(wanted, found))
    right = [a == b for ours, theirs in zip(found, wanted, strict=True) for a, b in zip(ours, theirs, strict=True)]
    assert scores["accuracy"] == pytest.approx(np.mean(right)) and scores["words"] == rows.words
    assert np.mean(scores["pieces"]) == pytest.approx(scores["f1"]) and len(scores["pieces"]) == 60
    losses = [task.loss(model.eval(), collate(task, rows, [n])).loss.item() for n in range(60)]
    assert scores["loss"] == pytest.approx(sum(losses) / rows.words)
    assert set(scores["types"]) == {"A", "B"} and scores["baselines"]["frequent tag"]["f1"] >= 0
    assert "60 sentences" in scores["protocol"] and ("CRF" in scores["protocol"]) == task.config.crf
    quick = task.evaluate(model, rows, quick=True)
    assert "the first 10 of 60 sentences" in quick["protocol"] and "pieces" not in quick and task.metric in quick
    brief = task.evaluate(model, rows, naive=task.naive(rows), brief=True)
    assert "baselines" not in brief and "types" not in brief and brief["pieces"] == scores["pieces"]
    rows.origin.fault = "3 broken tags"
    assert task.check_rows(model, {"valid": rows}) == "the valid split has 3 broken tags"


def test_plain_tags_are_scored_word_by_word() -> None:
    rows = [row._replace(tags=["N" if len(word) > 3 else "V" for word in row.words]) for row in ROWS]
    tokenizer = train_tokenizer("words", [" ".join(row.words) for row in rows], split="space")
    task = Config().build(TagVocabulary(tokenizer, ["N", "V"]))
    model, own = tagger(*LSTM, task), rows_of(task, rows)
    scores = task.evaluate(model, own, naive=task.naive(own))
    assert task.metric == "accuracy" and scores["baselines"]["frequent tag"]["accuracy"] == 1.0 and "f1" not in scores
    assert np.mean(scores["pieces"]) == pytest.approx(scores["accuracy"])
    assert "entities" not in next(task.predict(model, [{"line": 1, "words": ["x"]}]))


def test_the_baseline_is_the_most_frequent_tag_of_each_word() -> None:
    task = tagging()
    rows = [Sentence(1, ["ada", "in", "ada", "x"], ["B-A", "O", "B-B", "O"]), Sentence(2, ["ada"], ["B-A"])]
    naive = task.naive(rows_of(task, rows))
    assert naive == {"other": "B-A", "words": {"in": "O", "x": "O"}} or naive["other"] in ("O", "B-A")
    assert json.loads(json.dumps(naive)) == naive
    model = tagger(*LSTM, task)
    given = rows_of(task, [Sentence(1, ["ada", "new", "in"], ["B-A", "O", "O"])])
    scores = task.evaluate(model, given, naive={"other": "O", "words": {"ada": "B-A"}})
    assert scores["baselines"]["frequent tag"]["f1"] == 1.0


@pytest.mark.parametrize("crf", [False, True])
def test_tags_unknown_to_training_count_as_wrong_and_are_told(crf: bool) -> None:
    task = tagging(crf=crf)
    model = tagger(*LSTM, task)
    rows = rows_of(task, [Sentence(1, ["ada", "in"], ["B-NEW", "O"]), Sentence(2, ["x"], ["O"])])
    remark = task.check_rows(model, {"train": rows_of(task), "valid": rows})
    assert remark == "the valid split has 1 words with tags unknown to training (B-NEW)"
    scores = task.evaluate(model, rows)
    assert scores["types"]["NEW"] == {"f1": 0.0, "precision": 0.0, "recall": 0.0, "count": 1}
    assert "1 words with tags unknown to training count as wrong" in scores["protocol"]
    one = task.loss(model, collate(task, rows, [1]))
    whole = task.loss(model, collate(task, rows, [0, 1]))
    assert whole.count == (1 if crf else 2) and np.isfinite(scores["loss"])
    if crf:
        close(whole.loss, one.loss)


@each_kind
def test_long_sentences_are_cut_to_what_a_model_reads(options: dict[str, Any]) -> None:
    task = tagging(**options)
    model, rows = tagger("bert", {"context": 6, "depth": 1}, task), rows_of(task)
    remark = task.check_rows(model, {"train": rows})
    assert remark is not None and "sentences of more than 6 tokens are split" in remark
    for (batch,) in islice(task.batches(rows, Order(batch=4), False), 30):
        assert batch.inputs.size(1) <= 6 and task.loss(model, batch).loss < 1000, "no path that is forbidden"
    scores = task.evaluate(model, rows)
    assert scores["words"] == rows.words and "sentences of more than 6 tokens split between words" in scores["protocol"]
    with pytest.raises(UserError, match="has no room for a word"):
        task.evaluate(tagger("bert", {"context": 2, "depth": 1}, task), rows)


def test_predictions_tell_words_tags_and_names() -> None:
    task = tagging(crf=True)
    model = tagger(*LSTM, task)
    given = [
        {"line": 3, "words": ["ada", "in"], "tags": ["B-A", "O"]},
        {"line": 4, "source": "Ada sees 北京 in rome."},
        {"line": 5, "words": ["x"], "text": "x", "places": [(0, 1)]},
    ]
    answers = list(task.predict(model, given))
    assert [answer["line"] for answer in answers] == [3, 4, 5] and answers[0]["wanted"] == ["B-A", "O"]
    assert answers[1]["words"] == ["Ada", "sees", "北", "京", "in", "rome", "."]
    for answer, row in zip(answers, given, strict=True):
        assert len(answer["tags"]) == len(answer["words"]) and set(answer["tags"]) <= set(TAGS)
        for name in answer["entities"]:
            if "start" in name:
                assert str(row.get("source", row.get("text")))[name["start"] : name["end"]] == name["text"]
            else:
                assert " ".join(answer["words"][name["first"] : name["last"] + 1]) == name["text"]
    assert list(task.predict(model, [])) == [] and next(task.predict(model, [{"line": 1, "source": " "}]))["tags"] == []
    many = list(task.predict(model, ({"line": n, "words": row.words} for n, row in enumerate(ROWS * 10))))
    assert [answer["words"] for answer in many] == [row.words for row in ROWS * 10]
    with pytest.raises(UserError, match="beams: a tagging run has no such option"):
        list(task.predict(model, [], beams=3))


def test_where_every_word_was_a_character_a_text_is_cut_so() -> None:
    tokenizer = train_tokenizer("characters", ["北京2008年"])
    task = Config().build(TagVocabulary(tokenizer, ["O", "B-LOC", "I-LOC"], entities=True, single=True))
    model = tagger(*LSTM, task)
    for row in ({"line": 1, "source": "北京 2008"}, {"line": 1, "text": "北京 2008", "words": ["北", "京", "2008"]}):
        (answer,) = task.predict(model, [row])
        assert answer["words"] == list("北京2008")
    sentence = Sentence(0, list("北京很大") * 20, ["B-LOC", "I-LOC", "O", "O"] * 20)
    (row,) = task.showcase(model, rows_of(task, [sentence]))["rows"]
    assert row["space"] == "" and row["cut"] and len(row["words"]) == 40


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"crf": True, "smoothing": 0.1}, "a CRF does not support label smoothing"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Config.model_validate(options)


@each_kind
def test_what_a_comparison_needs_is_there(options: dict[str, Any]) -> None:
    task = tagging(**options)
    model, rows = tagger(*LSTM, task), rows_of(task)
    batch = task.example(2, 8)
    task.loss(model, batch).loss.backward()
    assert batch.inputs.shape[:2] == (2, 8) and task.typical_length(rows) > 2
    assert not foreign(in_chinese(task, task.evaluate(model, rows)["protocol"]))
    shown = task.showcase(model, rows)
    assert shown["kind"] == "tags" and shown["of"] == len(ROWS) and len(shown["rows"]) == 5
    assert all(len(row["words"]) == len(row["gold"]) == len(row["predicted"]) for row in shown["rows"])
    assert all(set(row["gold"]) != {"O"} for row in shown["rows"]), "sentences without any name say little"
    assert shown["rows"][0]["words"] == next(row.words for row in ROWS if set(row.tags) != {"O"})
    assert task.config.tokens_per_step(4) == 1024 and Config(batch_tokens=0).tokens_per_step(4) == 1024
    assert task.main_score.title[0] == "Entity F1" and task.main_score.higher_is_better


def data_file(path: Path, count: int = 120, scheme: str = "I") -> Path:
    text = "\n".join("".join(f"{w} {t.replace('B-', 'I-')}\n" for w, t in zip(r.words, r.tags, strict=True))
                     for r in sentences(count, seed=3))  # fmt: skip
    path.write_text(text)
    return path


QUICK = ["model.width=16", "train.threads=1", "train.steps=4", "train.evaluate_every=2", "task.batch_tokens=128"]


def small_fit(data: Path | str, out: Path, *extra: str, model: str = "gru", **flags: Any) -> Run:
    return fit(None, task="tagging", data=str(data), model=model, out=out, overrides=[*QUICK, *extra], quiet=True,
               **flags)  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        [
            "tokenizer.kind=words",
            "tokenizer.lower=true",
            "tokenizer.min_count=2",
            "tokenizer.vocabulary=6",
            "task.word_dropout=0.2",
        ],
        ["task.characters=convolution", "task.features=6", "task.crf=true", "task.dropout=0.3"],
        ["task.characters=lstm", "task.smoothing=0.1", "task.validation=3"],
        ["tokenizer.kind=bpe", "tokenizer.vocabulary=270", "task.crf=true", "task.longest=6"],
        ["tokenizer.kind=characters", "task.batch_tokens=0", "train.batch=8", "train.accumulate=2"],
    ],
    ids=" ".join,
)
def test_every_option_trains_and_a_loaded_run_predicts_the_same(tmp_path: Path, options: list[str]) -> None:
    data = data_file(tmp_path / "a.txt")
    run = small_fit(data, tmp_path / "run", *options)
    scores = run.summary["scores"]["valid"]
    assert scores["loss"] > 0 and "frequent tag" in scores["baselines"]
    again = load(tmp_path / "run")
    assert again.evaluate(str(data)) == run.evaluate(str(data))
    assert list(again.predict(str(data))) == list(run.predict(str(data)))
    (answer,) = again.predict(texts=["ada sees rome"])
    assert answer["words"] == ["ada", "sees", "rome"]


@pytest.mark.parametrize(
    ("tokenizer", "letters"), [("words", "none"), ("words", "lstm"), ("characters", "none"), ("bpe", "none")]
)
def test_a_tagger_begins_with_the_encoder_of_another_run(tmp_path: Path, tokenizer: str, letters: str) -> None:
    (tmp_path / "book.txt").write_text("\n".join(" ".join(row.words) for row in ROWS))
    first = ["model.width=16", "model.bidirectional=true", "train.steps=2", "train.threads=1", "train.batch=4"]
    first += [f"tokenizer.kind={tokenizer}", "task.length=12", "tokenizer.vocabulary=280"]
    before = fit(None, task="masked_lm", data=str(tmp_path / "book.txt"), model="lstm", out=tmp_path / "first",
                 overrides=first, quiet=True)  # fmt: skip
    flags = {"overrides": [*QUICK[1:], "train.rate=1e-9", "train.matrix_rate=1e-9", f"task.characters={letters}"]}
    run = fit(None, task="tagging", data=str(data_file(tmp_path / "a.txt")), start=str(tmp_path / "first"),
              out=tmp_path / "second", quiet=True, **flags)  # fmt: skip
    known, own = before.model.state_dict(), run.model.state_dict()
    taken = [name for name in known if name.startswith("backbone.") or name == "embed.weight"]
    assert len(taken) > 4 and all(torch.allclose(known[name], own[name], atol=1e-6) for name in taken)
    assert run.tokenizer.tokenizer.hash == before.tokenizer.hash


@pytest.mark.parametrize("options", KINDS[:3] + KINDS[4:5], ids=str)
def test_what_can_be_learnt_is_learnt(tmp_path: Path, options: dict[str, Any]) -> None:
    """Two words are a name, one after another; all else is none."""
    chance, lines = random.Random(0), []
    for _ in range(150):
        words = chance.choices(["in", "x", "ada lee", "sees"], k=chance.randint(1, 5))
        lines += [line for text in words for line in (["ada B-A", "lee I-A"] if "ada" in text else [f"{text} O"])]
        lines.append("")
    (tmp_path / "a.txt").write_text("\n".join(lines))
    extra = [f"{'tokenizer' if name == 'kind' else 'task'}.{name}={value}" for name, value in options.items()] + [
        "train.steps=100",
        "train.rate=0.01",
    ]
    extra = [option.replace("True", "true") for option in extra]
    run = small_fit(tmp_path / "a.txt", tmp_path / "run", *extra, "tokenizer.vocabulary=300", model="gru")
    assert run.summary["scores"]["valid"]["f1"] > 0.98


def test_an_interrupted_run_issued_again_ends_as_the_uninterrupted_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, options = data_file(tmp_path / "a.txt"), ["train.steps=12", "train.save_every=3", "model.dropout=0.2"]
    options += ["task.word_dropout=0.3", "task.crf=true", "task.characters=convolution", "train.log_every=1"]
    small_fit(data, tmp_path / "whole", *options)
    loss, calls = Tagging.loss, iter(range(8))

    def failing(self: Tagging, *arguments: Any) -> Any:
        if next(calls, None) is None:
            raise MemoryError
        return loss(self, *arguments)

    monkeypatch.setattr(Tagging, "loss", failing)
    with pytest.raises(MemoryError):
        small_fit(data, tmp_path / "broken", *options)
    monkeypatch.setattr(Tagging, "loss", loss)
    small_fit(data, tmp_path / "broken", *options)
    assert digest(tmp_path / "broken") == digest(tmp_path / "whole")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a O\nb O\n\nc O\n" * 30, r"every word of the training set has the tag 'O': nothing to learn"),
        ("a O\nb\n" * 30, r"a.txt:2: 1 column, but line 1 has 2"),
        ("a O\n\n", r"too few sentences \(1\) for a train split"),
    ],
)
def test_what_cannot_be_learnt_from_is_refused_in_one_line(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "a.txt").write_text(content)
    with pytest.raises(UserError, match=message) as refusal:
        small_fit(tmp_path / "a.txt", tmp_path / "run", "data.valid_fraction=0.3")
    assert "\n" not in str(refusal.value)


def test_a_vocabulary_that_knows_too_little_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(
        "".join(f"w{n} {'B-X' if n % 3 else 'O'}\n" + "\n" * (n % 5 == 0) for n in range(300))
    )
    with pytest.raises(UserError, match=r"more than half of the training set's words are unknown; raise tokenizer"):
        small_fit(tmp_path / "a.txt", tmp_path / "run", "tokenizer.vocabulary=5")


def command(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    monkeypatch.setattr("sys.argv", ["seqloom", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    told = capsys.readouterr()
    assert end.value.code == 0, told.err
    return told.out


def test_the_command_line_fits_scores_and_predicts_the_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    run = str(tmp_path / "run")
    options = ["model.bidirectional=true", "model.width=48", "task.characters=convolution", "train.steps=20"]
    options += ["train.threads=1", "task.crf=true", "task.validation=100"]
    flags = [word for option in options for word in ("-o", option)]
    told = ["--task", "tagging", "--data", "sample:places", "--model", "lstm", "--out", run]
    shown = command(capsys, monkeypatch, "fit", *told, *flags)
    assert "entity F1 by seqeval" in shown and "frequent tag baseline" in shown and "MONEY" in shown
    scores = json.loads(command(capsys, monkeypatch, "eval", run, "--data", "sample:places-new", "--json"))
    assert scores["baselines"]["frequent tag"]["f1"] < 0.1 and set(scores["types"]) >= {"LOC", "LANG"}
    told = command(capsys, monkeypatch, "predict", run, "--text", "She speaks Dutch at home and Finnish at work .")
    answer = json.loads(told)
    assert answer["words"][2] == "Dutch" and len(answer["tags"]) == 10
    (tmp_path / "lines.txt").write_text("Few people in Norway still write Latin .\n\n我们在挪威的办公室。\n")
    out = tmp_path / "out.jsonl"
    command(capsys, monkeypatch, "predict", run, "--data", str(tmp_path / "lines.txt"), "--out", str(out))
    answers = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [answer["line"] for answer in answers] == [1, 3] and answers[1]["words"][:3] == ["我", "们", "在"]
    found = json.loads(command(capsys, monkeypatch, "doctor", "--task", "tagging", "--data", "sample:places", "--json"))
    assert any("BIO" in finding["message"] for finding in found["findings"])
