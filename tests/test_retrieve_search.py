"""Fusion of two rankings, and the scores of a ranking."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqloom.core.errors import UserError
from seqloom.retrieve.evaluation import evaluate, read_judgements, read_queries, scores_of
from seqloom.retrieve.index import Index, index
from seqloom.retrieve.search import fuse, inverse_frequencies
from seqloom.retrieve.stores.store import Hit
from seqloom.retrieve.terms import Sparse


def test_scores_of_both_rankings_are_scaled_to_their_best_and_last() -> None:
    fused = fuse([Hit(1, 8.0), Hit(2, 6.0), Hit(3, 4.0)], [Hit(3, 0.9), Hit(2, 0.7), Hit(4, 0.1)], depth=3)
    assert fused == [Hit(2, pytest.approx(0.625)), Hit(1, 0.5), Hit(3, 0.5), Hit(4, 0.0)]


def test_a_short_ranking_by_terms_is_scaled_to_zero() -> None:
    assert fuse([Hit(1, 2.0)], [Hit(2, 0.5)]) == [Hit(1, 0.5), Hit(2, 0.5)]
    assert fuse([], [Hit(2, 0.5)]) == [Hit(2, 0.5)] and fuse([], []) == []


def test_inverse_frequencies_leave_out_terms_that_nothing_has() -> None:
    found = inverse_frequencies(Sparse(np.array([3, 7]), np.array([2.0, 1.0])), {3: 1}, 4)
    assert found.ids.tolist() == [3]
    assert found.weights.tolist() == pytest.approx([2 * math.log(1 + 3.5 / 1.5)])


def test_scores_of_a_ranking_by_hand() -> None:
    found = scores_of(["a", "b", "c"], {"b": 2, "c": 1, "z": 1})
    gained, best = 2 / math.log2(3) + 1 / 2, 2 + 1 / math.log2(3) + 1 / 2
    assert found == pytest.approx({"ndcg@10": gained / best, "recall@10": 2 / 3, "recall@100": 2 / 3, "mrr@10": 0.5})
    assert scores_of([*"abcdefghijkl"], {"k": 1})["mrr@10"] == 0.0
    assert set(scores_of([], {"a": 1}).values()) == {0.0}
    assert scores_of(["a"], {"a": 1})["ndcg@10"] == 1.0


@pytest.fixture
def animals(tmp_path: Path) -> Any:
    folder = tmp_path / "texts"
    folder.mkdir()
    eaten = [("zebra", "grass"), ("heron", "frogs"), ("panda", "bamboo")]
    texts = [(name, f"The {name} eats {food} every day of the year.") for name, food in eaten]
    rows = [{"_id": f"d{n}", "title": name, "text": text} for n, (name, text) in enumerate(texts)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "tiger.txt").write_text("The tiger eats deer.")
    with index(folder, tmp_path / "index") as found:
        yield found


def test_judged_documents_are_named_by_row_id_or_path(animals: Index, tmp_path: Path) -> None:
    with gzip.open(tmp_path / "queries.jsonl.gz", "wt") as out:
        rows = [("1", "who eats bamboo?"), ("2", "tiger"), ("3", "?")]
        out.write("\n\n".join(json.dumps({"_id": id, "text": text}) for id, text in rows))
    (tmp_path / "judged.tsv").write_text("query-id\tcorpus-id\tscore\n1\td2\t1\n2\ttiger.txt\t2\n2\td0\t0\n3\td0\t0\n")
    queries, judged = read_queries(tmp_path / "queries.jsonl.gz"), read_judgements(tmp_path / "judged.tsv")
    found = evaluate(animals, queries, judged)
    assert found.queries == ["1", "2"] and (found.absent, found.unjudged) == (0, 1)
    assert found.mean("bm25", "ndcg@10") == (1.0, 1.0, 1.0)
    assert found.as_json()["queries"] == 2


def test_differences_are_paired(animals: Index) -> None:
    found = evaluate(animals, {"1": "bamboo", "2": "deer"}, {"1": {"d2": 1}, "2": {"d0": 1}})
    found.scores["none"] = {"ndcg@10": found.scores["bm25"]["ndcg@10"] - 0.25}
    assert found.difference("bm25", "none", "ndcg@10") == (0.25, 0.25, 0.25)


@pytest.mark.parametrize(
    ("queries", "judged", "message"),
    [
        ("", "1\ta\t1\n", "q: no queries in it"),
        ('{"text": "x"}', "1\ta\t1\n", "q:1: not a query; needs JSON with _id and text"),
        ('{"_id": 1, "text": "x"}', "1\ta\n", "j:1: not a judgement; needs query-id, corpus-id and a whole number"),
        ('{"_id": 1, "text": "x"}', "2\ta\t1\n", "no query has a relevant document"),
        (
            '{"_id": 1, "text": "x"}',
            "1\tnowhere\t1\n",
            "is in the index, such as 'nowhere'",
        ),
        ('{"_id": 1, "text": "x"}', "1\tnowhere\t1\n2\taway\t1\n", "is in the index, such as 'nowhere'"),
    ],
)
def test_bad_judgements_are_one_line(animals: Index, tmp_path: Path, queries: str, judged: str, message: str) -> None:
    (tmp_path / "q").write_text(queries)
    (tmp_path / "j").write_text(judged)
    with pytest.raises(UserError) as error:
        evaluate(animals, read_queries(tmp_path / "q"), read_judgements(tmp_path / "j"))
    assert message in str(error.value) and "\n" not in str(error.value)
