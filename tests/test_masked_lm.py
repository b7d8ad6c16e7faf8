"""Masked language modelling: what is hidden, what is read instead, and that it can be learned and used."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import foreign, in_chinese
from toys import Case, accepted, alive, close, every_case, stream, title

from seqloom.core.batch import IGNORE
from seqloom.core.errors import UserError
from seqloom.core.task import Order
from seqloom.runs.fit import fit
from seqloom.runs.registry import find_config
from seqloom.runs.run import load
from seqloom.tasks.masked_lm.masking import Joints, hide
from seqloom.tasks.masked_lm.task import Config, MaskedLM
from seqloom.tokenizers import Tokenizer, train_tokenizer

pytestmark = pytest.mark.long

ENGLISH, CHINESE = "the cat sat on the mat, again and again.\n" * 20, "我们今天学习机器翻译，明天休息。" * 20


def tokenizer(kind: str = "characters", text: str = ENGLISH) -> Tokenizer:
    return train_tokenizer(kind, [text], size=300)


def task(kind: str = "characters", text: str = ENGLISH, **options: Any) -> MaskedLM:
    return Config.model_validate({"length": 16, **options}).build(tokenizer(kind, text))


def model_of(name: str, options: dict[str, Any]) -> Any:
    config = find_config("models", name).model_validate({"width": 16, **options})
    return alive(config.reading(16).assemble(task()))


CASES = [case for case in every_case() if accepted(model_of, *case)]


def test_of_the_hidden_eight_in_ten_are_masks_one_another_and_one_itself() -> None:
    ids = np.random.default_rng(0).integers(4, 50, (200, 200))
    ids[:, 0] = 1
    seen, asked = hide(ids, 0.15, 50, np.random.default_rng(1))
    hidden = asked != IGNORE
    assert hidden.mean() == pytest.approx(0.15, abs=0.01) and not hidden[:, 0].any()
    assert (asked[hidden] == ids[hidden]).all() and (seen[~hidden] == ids[~hidden]).all()
    assert (seen[hidden] == 50).mean() == pytest.approx(0.8, abs=0.02)
    assert (seen[hidden] == ids[hidden]).mean() == pytest.approx(0.1 + 0.1 / 46, abs=0.02)
    assert seen.max() == 50 and seen.min() >= 1


@pytest.mark.parametrize("kind", ["characters", "bpe", "bytes"])
def test_whole_words_are_hidden_together(kind: str) -> None:
    own = tokenizer(kind)
    joints = Joints.of(own.size, lambda id: own.decode([id]))
    ids = own.encode("the cat, again\nand on")
    groups = joints.groups(ids[None], np.random.default_rng(0))[0]
    words: dict[int, str] = {}
    for id, group in zip(ids, groups, strict=True):
        words[group] = words.get(group, "") + own.decode([int(id)])
    assert [word.strip() for word in words.values() if word.strip()] == ["the", "cat", ",", "again", "and", "on"]
    seen, asked = hide(np.tile(ids, (500, 1)), 0.3, own.size, np.random.default_rng(2), joints)
    for group in set(groups.tolist()):
        inside = (asked != IGNORE)[:, groups == group]
        assert (inside.all(1) | ~inside.any(1)).all()


@pytest.mark.parametrize("kind", ["characters", "bpe"])
def test_chinese_is_hidden_in_runs_of_one_to_three_characters(kind: str) -> None:
    own = tokenizer(kind, CHINESE)
    joints = Joints.of(own.size, lambda id: own.decode([id]))
    ids = np.tile(own.encode(CHINESE)[:100], (50, 1))
    groups = joints.groups(ids, np.random.default_rng(0))
    sizes = np.concatenate([np.bincount(row) for row in groups])
    assert (np.diff(groups) >= 0).all() and groups.min() == 0
    if kind == "characters":
        assert set(sizes.tolist()) == {1, 2, 3}
    comma = own.encode("，")[0]
    for row, line in zip(groups, ids, strict=True):  # a mark of punctuation is a word of its own
        for place in np.flatnonzero(line == comma):
            assert (row == row[place]).sum() == 1


@pytest.mark.parametrize("case", CASES, ids=title)
def test_only_hidden_positions_pass_through_the_head_and_give_the_same_loss(case: Case) -> None:
    own, model = task(), model_of(*case)
    ids = stream(own.tokenizer.encode(ENGLISH), own.tokenizer.size)
    (batch,) = next(own.batches(ids, Order(4), False))
    step = own.loss(model, batch)
    everywhere = model.encode(batch.inputs, batch.mask)
    wanted = torch.nn.functional.cross_entropy(everywhere.flatten(0, 1), batch.targets.flatten(), reduction="sum")
    close(step.loss, wanted)
    assert step.count == int((batch.targets != IGNORE).sum()) and step.tokens == batch.inputs.numel()


def test_what_is_hidden_changes_with_the_epoch_and_resuming_is_knowing_the_step() -> None:
    own = task()
    ids = stream(own.tokenizer.encode(ENGLISH), own.tokenizer.size)
    steps = [step[0] for step in islice(own.batches(ids, Order(8), False), 30)]
    again = next(own.batches(ids, Order(8, start=17), False))[0]
    assert torch.equal(again.inputs, steps[17].inputs) and torch.equal(again.targets, steps[17].targets)
    halves = [next(own.batches(ids, Order(8, world=2, rank=rank), False))[0] for rank in (0, 1)]
    assert torch.equal(torch.cat([half.inputs for half in halves]), steps[0].inputs)
    assert len({tuple(step.targets.flatten().tolist()) for step in steps}) == 30


QUICK = ["train.steps=3", "train.threads=1", "model.width=16", "task.length=16", "train.batch=4"]


@pytest.mark.parametrize(
    "options",
    [
        ["tokenizer.kind=characters", "task.group=word"],
        ["tokenizer.kind=bpe", "tokenizer.vocabulary=300", "task.share=0.3", "task.scored=100"],
        [
            "tokenizer.kind=words",
            "task.group=word",
            "tokenizer.min_count=2",
            "tokenizer.split=space",
            "task.validation=50",
        ],
        ["tokenizer.kind=bytes", "model.tie=true"],
    ],
    ids=" ".join,
)
def test_every_option_works_and_no_score_is_called_perplexity(tmp_path: Path, options: list[str]) -> None:
    book = tmp_path / "book.txt"
    book.write_text(ENGLISH * 5)
    run = fit(None, task="masked_lm", data=str(book), model="bert", out=tmp_path / "run",
              overrides=[*QUICK, *options], quiet=True)  # fmt: skip
    scores = run.summary["scores"]["valid"]
    assert "perplexity" not in scores and {"masked_accuracy", "pseudo_perplexity"} <= scores.keys()
    assert "not a perplexity" in scores["protocol"] and scores["baselines"].keys() == {"unigram"}
    assert np.mean(scores["pieces"]) == pytest.approx(scores["loss"])
    again = load(tmp_path / "run")
    assert again.evaluate(str(book))["loss"] == again.evaluate(str(book))["loss"]
    (answer,) = again.predict(texts=["the <mask> sat on the <mask>"])
    assert len(answer["gaps"]) == 2 and all(len(gap) == 5 for gap in answer["gaps"])
    assert json.dumps(answer)
    with pytest.raises(UserError, match="nothing to fill; write <mask>"):
        list(again.predict(texts=["the cat"]))
    assert len(list(again.predict(str(_gaps(tmp_path / "gaps.txt"))))) == 2


def _gaps(path: Path) -> Path:
    path.write_text("the <mask>\n\nand <mask>\n")
    return path


def test_it_learns_from_both_sides(tmp_path: Path) -> None:
    book = tmp_path / "book.txt"
    book.write_text("abcdefgh" * 500)
    run = fit(None, task="masked_lm", data=str(book), model="gru", out=tmp_path / "run", quiet=True,
              overrides=[*QUICK, "train.steps=300", "tokenizer.kind=characters", "model.bidirectional=true",
                         "train.batch=16"])  # fmt: skip
    assert run.summary["scores"]["valid"]["masked_accuracy"] > 0.9
    (answer,) = run.predict(texts=["abc<mask>efgh"])
    assert answer["gaps"][0][0]["token"] == "d"


def test_a_part_of_which_nothing_is_hidden_cannot_be_scored() -> None:
    own = task()
    with pytest.raises(UserError, match="too short"):
        own.evaluate(model_of("gru", {}), stream(own.tokenizer.encode("t"), own.tokenizer.size))


def test_a_report_shows_what_is_put_in_the_place_of_some_tokens() -> None:
    own, model = task(), model_of("bert", {})
    rows = stream(own.tokenizer.encode(ENGLISH), own.tokenizer.size)
    found = own.showcase(model, rows)
    assert found is not None and found["kind"] == "gaps" and len(found["rows"]) == 5
    for row in found["rows"]:
        assert row["before"] + row["gold"] + row["after"] in ENGLISH.replace("\n", " ") and row["gold"].isalnum()
        sure = [one["probability"] for one in row["predicted"]]
        assert len(sure) == 3 and sure == sorted(sure, reverse=True)
    assert own.showcase(model, rows) == found
    assert not foreign(in_chinese(own, own.evaluate(model, rows)["protocol"]))
    assert own.showcase(model, stream(own.tokenizer.encode(".,. " * 5), own.tokenizer.size)) is None
