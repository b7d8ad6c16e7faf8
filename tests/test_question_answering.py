"""Question answering: windows, what is asked of them, the best span, exact match and F1, and runs from end to end."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
import torch
from support import foreign, in_chinese
from torch import Tensor
from toys import Case, accepted, alive, close, every_case, title

from seqloom.core.batch import IGNORE, Batch
from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.core.state import State
from seqloom.core.task import Order
from seqloom.data.shapes.questions.reading import Question
from seqloom.data.shapes.questions.rows import QuestionRows
from seqloom.runs.registry import find_config
from seqloom.tasks.question_answering.task import Config, QuestionAnswering
from seqloom.tokenizers import train_tokenizer

LETTERS = "abcdefgh"
SMALL: dict[str, Any] = {"window": 24, "stride": 6, "longest_question": 5, "longest_answer": 6}


def asking(**options: Any) -> QuestionAnswering:
    tokenizer = train_tokenizer("characters", [LETTERS + "[]?"])
    return Config.model_validate({**SMALL, **options}).build(tokenizer)


def questions(count: int, longest: int = 60, seed: int = 0, impossible: float = 0.0) -> list[Question]:
    """Random letters with an answer in brackets; a few tokens long, so that it is whole in some window."""
    chance, made = random.Random(seed), []
    for n in range(count):
        body = chance.choices(LETTERS, k=chance.randint(3, longest))
        asked = "".join(chance.choices(LETTERS, k=chance.randint(1, 8)))
        if chance.random() < impossible:
            made.append(Question(n, "".join(body), asked, (), (), True))
            continue
        begin = chance.randint(0, len(body))
        text = "[" + "".join(chance.choices(LETTERS, k=chance.randint(0, 4))) + "]"
        context = "".join(body[:begin]) + text + "".join(body[begin:])
        made.append(Question(n, context, asked, ((begin, text),), (text,)))
    return made


def rows_of(task: QuestionAnswering, *asked: Question) -> QuestionRows:
    return QuestionRows(asked, task.tokenizer)


def model_of(name: str, options: dict[str, Any], task: QuestionAnswering | None = None) -> SequenceModel:
    return find_config("models", name).model_validate({"width": 16, **options}).assemble(task or asking())


CASES: list[Case] = [case for case in every_case() if accepted(model_of, *case)]
GRU: Case = ("gru", {"bidirectional": True})


class Oracle(SequenceModel):
    """Sees the brackets, and nothing else; where there are none, it says so."""

    kind, limit = "bidirectional", None

    def __init__(self, task: QuestionAnswering) -> None:
        super().__init__()
        self.begin_id, self.end_id = task.tokenizer.encode("[]").tolist()

    def encode(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        scores = torch.stack((inputs == self.begin_id, inputs == self.end_id), dim=-1).float() * 9
        scores[:, 0] = 5.0
        return scores

    def forward(self, inputs: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        return self.encode(inputs, mask), None

    def begin(self, context: Tensor, mask: Tensor | None = None) -> State:
        return None


def test_every_kind_of_model_takes_part() -> None:
    names = {name for name, _ in CASES}
    assert names >= {"bert", "lstm", "gru", "rnn", "gpt", "transformer", "seq2seq", "mingru", "ttt"}
    assert "ngram" not in names


def test_a_window_reads_the_question_its_end_the_passage_and_its_end() -> None:
    task = asking()
    rows, own = rows_of(task, Question(1, "abc[de]", "gh?", ((3, "[de]"),), ("[de]",))), task.tokenizer
    windows = task.windows(rows.lengths)
    batch = task.collate(rows, windows, task.targets(rows, windows))
    assert batch.inputs.tolist() == [[own.bos, *own.encode("gh?"), own.eos, *own.encode("abc[de]"), own.eos]]
    assert batch.targets.tolist() == [[8, 11]] and batch.mask is None


def test_long_questions_are_cut_and_the_answer_is_still_found() -> None:
    task = asking()
    rows = rows_of(task, Question(1, "abc[de]", "gh" * 20, ((3, "[de]"),), ("[de]",)))
    windows = task.windows(rows.lengths)
    inputs = task.collate(rows, windows, task.targets(rows, windows)).inputs[0]
    assert (inputs == task.tokenizer.eos).nonzero()[0] == 1 + SMALL["longest_question"]
    assert task.evaluate(Oracle(task), rows)["exact"] == 1.0
    assert "1 questions are cut after task.longest_question" in (task.check_rows(Oracle(task), {"train": rows}) or "")


@pytest.mark.parametrize("kind", ["characters", "bytes", "words", "bpe"])
def test_windows_and_mapping_back_recover_every_answer(kind: str) -> None:
    """Real sentences; a token that an answer cuts is taken whole, and counted."""
    chance, made = random.Random(0), []
    words = ["the", "cat,", "天地玄黄", "😀", "é́té", "(1999)", "«über»", "won't", "न", "नमस्ते", "x"]
    for n in range(60):
        context = " ".join(chance.choices(words, k=chance.randint(5, 80)))
        begin = chance.randrange(len(context) - 3)
        text = context[begin : begin + chance.randint(1, 12)]
        if text.strip():
            made.append(Question(n, context, "what?", ((begin, text),), (text,)))
    tokenizer = train_tokenizer(kind, [row.context for row in made], size=500)
    sizes = {"window": 120, "stride": 60, "longest_question": 20}
    task = Config.model_validate(sizes).build(tokenizer)
    rows = QuestionRows(made, tokenizer)
    windows = task.windows(rows.lengths)
    targets, exact = task.targets(rows, windows), 0
    for n, question in enumerate(made):
        one, ((begin, text),) = rows[n], question.answers
        if not one.spans:  # nothing but white space, which is no word
            continue
        held = [(w, t) for w, t in zip(windows, targets, strict=True) if w[0] == n and t[0] != IGNORE]
        assert held
        for window, target in held:
            inputs = task.collate(rows, window[None], target[None]).inputs[0]
            first, last = (target - task._shift(len(one.asked)) + window[1]).tolist()
            assert inputs[target].tolist() == one.passage[[first, last]].tolist()
            found = int(one.places[first, 0]), int(one.places[last, 1])
            assert found[0] <= begin + (len(text) - len(text.lstrip())) and found[1] >= begin + len(text.rstrip())
        exact += found == (begin, begin + len(text))
    cut, total = rows.cut()
    assert exact == total - cut and (kind in ("words", "bpe") or cut == 0)


@pytest.mark.parametrize("no_answer", [False, True])
def test_whoever_knows_the_tokens_gets_the_characters_over_all_windows(no_answer: bool) -> None:
    task = asking(no_answer=no_answer)
    made = questions(80, impossible=0.3 if no_answer else 0.0)
    rows = rows_of(task, *made)
    assert len(task.windows(rows.lengths)) > len(rows) and made[0].context
    scores = task.evaluate(Oracle(task), rows)
    assert scores["exact"] == scores["f1"] == 1.0
    given = ({"line": q.line, "question": q.question, "context": q.context} for q in made)
    for question, found in zip(made, task.predict(Oracle(task), given), strict=True):
        assert found["line"] == question.line and found["question"] == question.question and "context" not in found
        if question.impossible:
            assert (found["answer"], found["start"], found["end"]) == ("", None, None) and found["score"] < 0
        else:
            ((begin, text),) = question.answers
            assert (found["answer"], found["start"], found["end"]) == (text, begin, begin + len(text))
            assert found["n_best"][0]["answer"] == text and len(found["n_best"]) == 3


def test_windows_without_the_answer_point_at_nothing_or_are_left_out() -> None:
    made = [*questions(40, seed=3), Question(40, "abc" * 20, "a", (), (), True), Question(41, "abc", "a", (), ("x",))]
    for no_answer in (False, True):
        task = asking(no_answer=no_answer)
        rows = rows_of(task, *made)
        windows = task.windows(rows.lengths)
        targets = task.targets(rows, windows)
        inside = np.array([any(b <= s and e < end for s, e in rows[n].spans) for n, b, end in windows.tolist()])
        assert (targets[inside] > 0).all()
        known = np.isin(windows[:, 0], [41], invert=True)
        assert (targets[~inside & known] == (0 if no_answer else IGNORE)).all() and (targets[~known] == IGNORE).all()
        said = task.check_rows(Oracle(task), {"train": rows}) or ""
        left = int((targets[:, 0] == IGNORE).sum())
        assert f"{left:,} of {len(windows):,} windows are left out of training" in said
        assert f"{1 if no_answer else 2} questions are left out of training" in said and "longer than a window" in said
        trained = np.concatenate([batch.targets for (batch,) in epoch(task, rows)])
        assert len(trained) == len(windows) - left


def epoch(task: QuestionAnswering, rows: QuestionRows, **order: Any) -> list[list[Batch]]:
    """The steps in which every trained window comes once."""
    windows = task.windows(rows.lengths)
    left, steps = int((task.targets(rows, windows)[:, 0] != IGNORE).sum()), []
    for pieces in task.batches(rows, Order(**{"batch": 8, **order}), False):
        left -= sum(int((batch.targets[:, 0] != IGNORE).sum()) for batch in pieces)
        steps.append(pieces)
        if left <= 0:
            return steps
    raise AssertionError


@pytest.mark.parametrize("budget", [0, 60, 400])
def test_no_batch_is_above_the_budget_and_the_same_seed_gives_the_same_batches(budget: int) -> None:
    task = asking(batch_tokens=budget)
    rows = rows_of(task, *questions(50))
    for (batch,), (again,) in zip(epoch(task, rows), epoch(task, rows), strict=True):
        assert torch.equal(batch.inputs, again.inputs) and torch.equal(batch.targets, again.targets)
        assert batch.inputs.numel() <= budget or len(batch.inputs) == 1 if budget else len(batch.inputs) <= 8
    other = next(task.batches(rows, Order(8, seed=1), False))
    assert other[0].origin != epoch(task, rows)[0][0].origin


@pytest.mark.parametrize(("world", "accumulate"), [(1, 4), (2, 2)])
def test_processes_and_pieces_share_the_same_batches(world: int, accumulate: int) -> None:
    task = asking(batch_tokens=100)
    rows = rows_of(task, *questions(30))
    shares = [task.batches(rows, Order(8, accumulate=accumulate, rank=r, world=world), False) for r in range(world)]
    whole = task.batches(rows, Order(8), False)
    for _ in range(12):
        (wanted,) = next(whole)
        pieces = [batch for share in shares for batch in next(share)]
        found = [target for batch in pieces for target in batch.targets.tolist() if target[0] != IGNORE]
        assert found == wanted.targets.tolist() and len(pieces) == world * accumulate


@pytest.mark.parametrize("case", [GRU, ("bert", {"depth": 1, "context": 32})], ids=title)
@pytest.mark.parametrize("no_answer", [False, True])
def test_a_process_without_windows_takes_part_with_nothing_asked(case: Case, no_answer: bool) -> None:
    task = asking(no_answer=no_answer)
    none = np.zeros((0, 3), np.int64)
    step = task.loss(model_of(*case), task.collate([], none, none[:, :2]))
    assert step.count == 0 and step.tokens == 0 and step.loss == 0 and step.loss.requires_grad
    step.loss.backward()


@pytest.mark.parametrize("case", CASES, ids=title)
def test_padded_equals_unpadded_and_many_equal_one_by_one(case: Case) -> None:
    task = asking(no_answer=True)
    model = alive(model_of(*case, task=task))
    rows = rows_of(task, *questions(6, longest=12))
    windows = task.windows(rows.lengths)
    targets = task.targets(rows, windows)
    batch = task.collate(rows, windows, targets)
    assert batch.mask is not None
    together, scores, _ = task._read(model, batch)
    for n in range(len(windows)):
        alone = task.collate(rows, windows[n : n + 1], targets[n : n + 1])
        assert alone.mask is None
        loss, single, _ = task._read(model, alone)
        close(loss[0], together[n])
        close(single[0], scores[n, : single.size(1)])
    step = task.loss(model, batch)
    close(step.loss, together.sum())
    assert step.count == len(windows) and step.tokens == int(batch.mask.sum())
    step.loss.backward()
    assert all(w.grad is None or w.grad.isfinite().all() for w in model.parameters())


@pytest.mark.parametrize("case", [GRU, ("gpt", {"context": 32, "depth": 1}), ("seq2seq", {})], ids=title)
def test_answers_do_not_depend_on_what_else_is_asked(case: Case) -> None:
    task, made = asking(), questions(12)
    model = alive(model_of(*case, task=task))
    rows = [{"line": q.line, "question": q.question, "context": q.context} for q in made]
    together = list(task.predict(model, iter(rows)))
    for row, found in zip(rows, together, strict=True):
        (alone,) = task.predict(model, [row])
        assert (alone["answer"], alone["start"], alone["end"]) == (found["answer"], found["start"], found["end"])
        assert alone["score"] == pytest.approx(found["score"])


def test_the_loss_is_the_mean_of_both_cross_entropies_over_the_passage_alone() -> None:
    task = asking()
    model, rows = alive(model_of(*GRU, task=task)), rows_of(task, *questions(1, longest=10))
    windows = task.windows(rows.lengths)
    targets = task.targets(rows, windows)
    batch = task.collate(rows, windows, targets)
    scores = model.encode(batch.inputs)[0]
    begin = 2 + min(len(rows[0].asked), 5)
    wanted = [-scores[begin:-1, side].log_softmax(0)[targets[0, side] - begin] for side in (0, 1)]
    close(task.loss(model, batch).loss, (wanted[0] + wanted[1]) / 2)
    with_null = asking(no_answer=True)
    places = torch.tensor([0, *range(begin, len(scores) - 1)])
    wanted = [-scores[places, s].log_softmax(0)[targets[0, s] - begin + 1] for s in (0, 1)]
    close(with_null.loss(model, batch).loss, (wanted[0] + wanted[1]) / 2)


def test_answers_are_no_longer_than_asked() -> None:
    made = questions(20)
    for longest in (1, 2, 6):
        task = asking(longest_answer=longest)
        model = alive(model_of(*GRU, task=task))
        rows = ({"line": 1, "question": q.question, "context": q.context} for q in made)
        assert all(1 <= len(one["answer"]) <= longest for found in task.predict(model, rows) for one in found["n_best"])


def test_scores_come_with_protocol_pieces_and_baselines() -> None:
    task = asking(scored=30)
    rows = rows_of(task, *questions(40))
    model = alive(model_of(*GRU, task=task)).train()
    scores = task.evaluate(model, rows)
    assert model.training and len(scores["pieces"]) == 30 == scores["questions"]
    assert np.mean(scores["pieces"]) == pytest.approx(scores["f1"]) and 0 <= scores["exact"] <= scores["f1"] <= 1
    for said in ("by SQuAD's rules", "30 of 40 questions, evenly spaced", "windows of 24 tokens, overlapping by 6"):
        assert said in scores["protocol"]
    assert set(scores["baselines"]) == {"best sentence", "first sentence"}
    quick = asking(validation=7).evaluate(model, rows, quick=True)
    assert quick["questions"] == 7 and not {"pieces", "baselines"} & quick.keys()
    assert "baselines" not in task.evaluate(model, rows, brief=True)
    chinese = [q._replace(question="谁？") if n % 2 else q for n, q in enumerate(questions(4))]
    assert "(2 questions)" in task.evaluate(model, rows_of(task, *chinese))["protocol"]
    assert "CMRC" in asking(rules="cmrc").evaluate(model, rows)["protocol"]
    none = questions(9, impossible=1.0)
    found = task.evaluate(model, rows_of(task, *none))
    assert found["exact"] == 0 and math.isnan(found["loss"]) and "9 of them without an answer" in found["protocol"]


def test_refusals_name_the_option_and_the_way_out() -> None:
    with pytest.raises(ValueError, match="window=20 must be at least 51: longest_question=40, stride=7"):
        Config(window=20, stride=7)
    task = asking()
    rows = rows_of(task, *questions(3))
    with pytest.raises(UserError, match=r"task.window=24 is longer than the model's context 20; set model.context=24"):
        task.check_rows(model_of("bert", {"context": 20}, task), {"train": rows})
    task.check_rows(model_of("bert", {"context": 24}, task), {"train": rows})
    with pytest.raises(UserError, match=r"no training question has its whole answer in one window"):
        task.check_rows(Oracle(task), {"train": rows_of(task, *questions(3, impossible=1.0))})
    with pytest.raises(UserError, match=r"a question needs its passage: give --passage TEXT, or --data"):
        list(task.predict(Oracle(task), [{"line": 1, "source": "a?"}]))
    with pytest.raises(UserError, match="beams: a question_answering run has no such option"):
        task.predict(Oracle(task), [], beams=3)
    with pytest.raises(UserError, match="n_best=-1: must be 0"):
        task.predict(Oracle(task), [], n_best=-1)


def test_what_a_comparison_asks_for() -> None:
    task = asking()
    rows, model = rows_of(task, *questions(5)), alive(model_of(*GRU)).float()
    batch = task.example(3, 20)
    assert batch.inputs.shape == (3, 20) and task.loss(model, batch).loss.isfinite()
    assert 5 < task.typical_length(rows) <= 24 and [s.name for s in task.scores if s.compared] == ["f1", "exact"]


def test_a_report_shows_questions_with_the_answer_in_its_passage_and_what_is_predicted() -> None:
    task = asking()
    rows = rows_of(task, *questions(12, longest=300))
    found = task.showcase(Oracle(task), rows)
    assert found["kind"] == "answers" and found["of"] == 12 and len(found["rows"]) == 5
    assert [row["question"] for row in found["rows"]] == [rows[n].question for n in (0, 2, 4, 7, 9)]
    for row in found["rows"]:
        assert row["passage"][1] == row["gold"][0] and len("".join(row["passage"])) <= 210
        assert row["exact"] == (row["predicted"] == row["gold"][0]) and 0 <= row["f1"] <= 1
    assert not foreign(in_chinese(task, task.evaluate(Oracle(task), rows)["protocol"]))
    none = task.showcase(Oracle(task), rows_of(task, *questions(2, impossible=1.0)))
    assert none["rows"][0]["gold"] == [] and none["rows"][0]["passage"][1:] == ["", ""]
