"""A bag of embeddings and hashed n-grams: it sees neighbours, and nothing further."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from toys import alive, close

from seqloom.core.errors import UserError
from seqloom.data.shapes.labelled.vocabulary import LabelledTokenizer
from seqloom.models.bag import Config
from seqloom.runs.fit import fit
from seqloom.runs.run import load
from seqloom.tasks.classification.task import Classification
from seqloom.tasks.classification.task import Config as TaskConfig
from seqloom.tokenizers import train_tokenizer


def task(kind: str = "characters") -> Classification:
    return TaskConfig().build(LabelledTokenizer(train_tokenizer(kind, ["a b c d e f"]), ["x", "y"]))


def model_of(**options: Any) -> Any:
    return alive(Config.model_validate({"width": 8, **options}).assemble(task()))


def test_only_the_order_of_neighbours_matters() -> None:
    first, second = torch.tensor([[4, 5, 6, 4, 6, 5, 4]]), torch.tensor([[4, 6, 5, 4, 5, 6, 4]])  # the same pairs
    other = torch.tensor([[4, 4, 4, 5, 5, 6, 6]])
    pairs, single = model_of(order=2), model_of(order=1)
    close(pairs.encode(first), pairs.encode(second))
    assert not torch.allclose(pairs.encode(first), pairs.encode(other))
    close(single.encode(first), single.encode(other))
    triples = model_of(order=3)
    assert not torch.allclose(triples.encode(first), triples.encode(second))


def test_all_ngrams_may_share_one_vector_and_an_empty_row_is_no_trouble() -> None:
    model = model_of(order=3, buckets=1)
    mask = torch.tensor([[True] * 7, [False] * 7])
    assert model.encode(torch.tensor([[4, 5, 6, 4, 6, 5, 4]] * 2), mask).isfinite().all()


@pytest.mark.parametrize(("kind", "order"), [("words", 2), ("characters", 3)])
def test_longer_ngrams_of_characters_than_of_words(kind: str, order: int) -> None:
    assert Config().assemble(task(kind)).embed.order == order


def test_it_learns_what_words_alone_do_not_tell(tmp_path: Path) -> None:
    """The label is which of two words stands first; a saved run says the same."""
    chance, data = random.Random(0), tmp_path / "rows.tsv"
    rows = [chance.choice([("yes", "red blue"), ("no", "blue red")]) for _ in range(300)]
    texts = [f"{label}\t{chance.choice('vwxyz')} {pair} {chance.choice('abcde')}\n" for label, pair in rows]
    data.write_text("label\ttext\n" + "".join(texts))
    options = ["train.steps=60", "train.threads=1", "tokenizer.min_count=1", "task.batch_tokens=256"]
    run = fit(None, task="classification", data=str(data), model="bag", out=tmp_path / "run", overrides=options,
              quiet=True)  # fmt: skip
    assert run.summary["scores"]["valid"]["accuracy"] > 0.95
    asked = ["v red blue a", "z blue red c", "new words"]
    assert list(load(tmp_path / "run").predict(texts=asked)) == list(run.predict(texts=asked))


def test_measurements_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="model bag: reads tokens, which classification has not with this data"):
        fit(None, task="classification", data="sample:waves", model="bag", out=tmp_path / "run", quiet=True,
            overrides=["task.input=measurements"])  # fmt: skip
