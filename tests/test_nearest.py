"""The nearest training pair: its target is written word for word, from a state like any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toys import close, pair_rows, translation, words

from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.layers import neighbours
from seqloom.models.nearest import Config, Spelling
from seqloom.runs.fit import fit
from seqloom.runs.run import load
from seqloom.tasks.translation.nearest import nearest

PAIRS = [("abcdef", "ABC"), ("ghabc", "FED"), ("abcdeg", "CAB"), ("h", "F"), ("abcdef", "AAA")]


def learned(joint: bool = False, **options: Any) -> tuple[Any, SequenceModel]:
    task = translation(joint=joint)
    model = Config.model_validate(options).assemble(task)
    assert model.learn(task, pair_rows(task, PAIRS)) == sum(len(target) + 1 for _, target in PAIRS)
    return task, model.eval()


@pytest.mark.parametrize("joint", [False, True])
def test_the_target_of_the_most_similar_source_is_written_to_its_end(joint: bool) -> None:
    task, model = learned(joint)
    asked = [source for source, _ in PAIRS[:4]] + ["abcde", "ghab", "gg"]
    found = [task.text(best[0]) for best in task.translate(model, asked)]
    assert found == ["ABC", "FED", "CAB", "F", "ABC", "FED", "ABC"]  # of equals, or of none, the first


def test_the_state_remembers_the_pair_and_the_place() -> None:
    task, model = learned()
    batch = task.collate(pair_rows(task, PAIRS), np.arange(3))
    state: Any = model.begin(batch.context, batch.context_mask)
    assert state[0].tolist() == [0, 1, 2] and state[1].tolist() == [0, 0, 0]
    logits, (pair, read, _) = model(batch.inputs, state)  # type: ignore[misc]
    assert pair.tolist() == [0, 1, 2] and read.tolist() == [4, 4, 4]
    assert torch.equal(logits.argmax(-1), batch.targets)
    close(logits.exp().sum(-1), torch.ones(3, 4))
    assert (logits.gather(2, batch.targets[..., None]).exp() > 0.9).all()
    more, _ = model(batch.inputs[:, :2], (pair, read, state[2]))
    assert (more.argmax(-1) == task.tokenizers.target.eos).all(), "after the end there is only the end"


def test_tokens_of_a_shared_vocabulary_are_likelier_where_the_source_has_them() -> None:
    task, model = learned(joint=True)
    own = task.tokenizers.source
    ids = torch.from_numpy(own.encode("aab"))[None]
    logits, _ = model(torch.tensor([[own.bos]]), model.begin(ids))
    a, b, c = (float(logits[0, 0, own.encode(letter)[0]]) for letter in "abc")
    assert a > b > c


def test_fewer_pairs_are_remembered_if_so_asked() -> None:
    task = translation()
    model: Any = Config(pairs=2).assemble(task)
    assert model.learn(task, pair_rows(task, PAIRS)) == 8 and len(model.sources) == 2
    assert [task.text(best[0]) for best in task.translate(model, ["gha", "abcdeg"])] == ["FED", "ABC"]


def test_the_most_similar_is_the_same_one_by_one_and_many_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    known, asked = ([source for source, _ in words(count, 9, seed=count)] for count in (60, 25))
    whole = nearest(asked, known)
    monkeypatch.setattr(neighbours, "AT_ONCE", 4)
    assert nearest(asked, known) == whole and len(set(whole)) > 5


def test_characters_are_those_of_the_text_however_it_is_split() -> None:
    spelling = Spelling(["", "the", " cat", "s", "The"])
    letters, mask = spelling(torch.tensor([[1, 2, 3, 0], [4, 2, 0, 0]]), torch.tensor([[1] * 4, [1, 0, 0, 0]]).bool())
    names = " acehst"
    found = ["".join(names[n - 1] for n in row[real]) for row, real in zip(letters, mask, strict=True)]
    assert found == [" the cats ", " the "]


@pytest.mark.parametrize("kind", ["words", "bpe", "characters", "bytes"])
def test_a_saved_run_writes_what_the_fitted_one_wrote(tmp_path: Path, kind: str) -> None:
    data = tmp_path / "pairs.tsv"
    animals, places = ["cat", "dog", "cow", "hen"], ["house", "garden", "river", "field", "road"]
    rows = [(f"the {a} is in the {b}", f"{a} {b}".upper()) for a in animals for b in places]
    data.write_text("source\ttarget\n" + "".join(f"{source}\t{target}\n" for source, target in rows))
    options = [f"tokenizer.kind={kind}", "tokenizer.vocabulary=270", "train.threads=1", "data.valid_fraction=0.2"]
    run = fit(None, task="translation", data=str(data), model="nearest", out=tmp_path / "run", overrides=options,
              quiet=True)  # fmt: skip
    scores = run.summary["scores"]["valid"]
    assert 0 < scores["loss"] < 8 and scores["chrf"] == pytest.approx(scores["baselines"]["nearest"]["chrf"])
    texts = [source for source, _ in rows]
    answers = list(load(tmp_path / "run").predict(texts=texts))
    assert answers == list(run.predict(texts=texts))
    wrong = [row for row, answer in zip(rows, answers, strict=True) if answer["prediction"] != row[1]]
    assert len(wrong) <= 4, "those held out"


def test_other_tasks_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="model nearest: remembers pairs of texts, which tagging has not"):
        fit(None, task="tagging", data="sample:places", model="nearest", out=tmp_path / "run", quiet=True)
