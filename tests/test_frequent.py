"""The most frequent tag of each token: exactly the baseline that tagging prints, as a model."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from seqloom.core.batch import Batch
from seqloom.core.errors import UserError
from seqloom.models.frequent import FrequentTag
from seqloom.runs.fit import fit
from seqloom.runs.run import Run, load


def write(path: Path, count: int, seed: int) -> Path:
    """Words whose tag varies, some in a tie, and in the validation part some that training never saw."""
    chance, lines = random.Random(seed), []
    for _ in range(count):
        for _ in range(chance.randint(1, 7)):
            number = chance.randrange(30 + seed)
            lines.append(f"w{number} {chance.choice(['O', 'O', 'B-A', 'B-B' if number % 2 else 'B-A'])}")
        lines.append("")
    path.write_text("\n".join(lines))
    return path


def learned(folder: Path, *options: str) -> Run:
    train, valid = write(folder / "train.conll", 60, 0), write(folder / "valid.conll", 40, 5)
    return fit(None, task="tagging", data=str(train), valid=str(valid), model="frequent", out=folder / "run",
               overrides=["train.threads=1", *options], quiet=True)  # fmt: skip


@pytest.mark.parametrize("options", [[], ["task.characters=convolution"], ["task.longest=5"], ["task.crf=true"]])
def test_it_is_the_printed_baseline(tmp_path: Path, options: list[str]) -> None:
    run = learned(tmp_path, *options)
    scores = run.summary["scores"]["valid"]
    baseline = scores["baselines"]["frequent tag"]
    assert {name: scores[name] for name in baseline} == pytest.approx(baseline)
    assert 0 < scores["f1"] < 1 and 0 < scores["loss"] < 1.5


def test_a_saved_run_says_what_the_fitted_one_said(tmp_path: Path) -> None:
    run, texts = learned(tmp_path), ["w1 w2 w3 w4 nowhere", "w5"]
    answers = list(load(tmp_path / "run").predict(texts=texts))
    assert answers == list(run.predict(texts=texts)) and answers[0]["tags"][-1] == "O"


def test_probabilities_sum_to_one_and_rare_words_lean_towards_all_tags() -> None:
    model = FrequentTag(4, 3)

    class Task:
        tags, tokens = ("a", "b", "c"), SimpleNamespace(size=4)

        def examples(self, rows: object) -> Iterator[Batch]:
            yield Batch(torch.tensor([[0, 1, 1, 2, 2, 2]]), None, torch.tensor([[-100, 0, 1, 2, 2, 0]]))

    assert model.learn(Task(), None) == 5
    chances = model.encode(torch.tensor([[0, 1, 2, 3]])).exp()[0]
    torch.testing.assert_close(chances.sum(-1), torch.ones(4))
    torch.testing.assert_close(chances[0], torch.tensor([3, 2, 3]) / 8)  # never tagged: all tags
    assert chances[1].argmax() == 0 and chances[2].argmax() == 2 and torch.equal(chances[0], chances[3])


def test_other_tasks_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="model frequent: counts the tags of words, which masked_lm has not"):
        fit(None, task="masked_lm", data="sample:python-docs", model="frequent", out=tmp_path / "run", quiet=True)
