"""A comparison of retrievers: one index per encoder, honest verdicts, and one line for every mistake."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from retrieve_toys import ToyEncoder, write_folder

from seqloom import cli
from seqloom.core.errors import UserError
from seqloom.retrieve import encoder as encoders
from seqloom.retrieve import evaluation
from seqloom.retrieve.comparing import compare_retrievers
from seqloom.retrieve.index import Index
from seqloom.retrieve.retrievers import folder_name, parse_retrievers
from seqloom.retrieve.standings import FEWEST, expanded, verdicts

TOYS = "bm25,dense:runs/toy,hybrid:runs/toy"


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "DRAWS", 200)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were encoded; any name but `missing` is that of the toy encoder."""
    texts: list[str] = []

    class Counting(ToyEncoder):
        def encode(self, some: Any, progress: Any = None) -> np.ndarray:
            texts.extend(some)
            return super().encode(some)

    def load(name: str) -> ToyEncoder:
        if name == "missing":
            raise UserError("missing: no such run")
        return Counting()

    monkeypatch.setattr(encoders, "load_encoder", load)
    return texts


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """Texts, and queries that are the first words of every text."""
    write_folder(tmp_path / "texts", 24)
    texts = {path.name: path.read_text() for path in sorted((tmp_path / "texts").iterdir())}
    rows = [{"_id": f"q{n}", "text": " ".join(text.split()[:4])} for n, text in enumerate(texts.values())]
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "judged.tsv").write_text("".join(f"q{n}\t{name}\t1\n" for n, name in enumerate(texts)))
    return tmp_path


def compared(desk: Path, models: str | None = TOYS, **more: Any) -> Any:
    given = {"queries": desk / "queries.jsonl", "judgements": desk / "judged.tsv", "out": desk / "out"} | more
    return compare_retrievers(desk / "texts", models=models, **given)


def test_every_retriever_has_scores_a_verdict_and_costs(desk: Path, loaded: list[str]) -> None:
    found = compared(desk)
    entries = {entry["name"]: entry for entry in found.result["entries"]}
    assert set(entries) == set(TOYS.split(","))
    for entry in entries.values():
        assert set(entry["scores"]) == {"ndcg@10", "recall@10", "recall@100", "mrr@10"}
        assert entry["ms_per_query"] > 0 and entry["bytes"] > 0
        assert entry["against_best"]["verdict"] in ("best", "worse", "equivalent", "unclear")
    means = [entry["scores"]["ndcg@10"]["mean"] for entry in found.result["entries"]]
    assert means == sorted(means, reverse=True) and found.best == found.result["entries"][0]["name"]
    with Index.open(found.index) as index:
        assert index.search("river", 1)
    assert len((desk / "out" / "scores.jsonl").read_text().splitlines()) == 24
    assert found.best in repr(found)


def test_scores_are_those_of_an_evaluated_index(desk: Path, loaded: list[str]) -> None:
    found = compared(desk)
    queries = evaluation.read_queries(desk / "queries.jsonl")
    judged = evaluation.read_judgements(desk / "judged.tsv")
    with Index.open(desk / "out" / "indexes" / folder_name("runs/toy")) as index:
        scores = evaluation.evaluate(index, queries, judged)
    for entry in found.result["entries"]:
        assert entry["scores"]["ndcg@10"]["mean"] == pytest.approx(scores.mean(entry["by"], "ndcg@10").mean)


def test_documents_are_encoded_once_for_dense_and_hybrid_and_not_again(desk: Path, loaded: list[str]) -> None:
    compared(desk)
    with Index.open(desk / "out" / "indexes" / folder_name("runs/toy")) as index:
        chunks = index.counts()["chunks"]
    asked = {json.loads(line)["text"] for line in (desk / "queries.jsonl").read_text().splitlines()}
    assert len([text for text in loaded if text not in asked]) == chunks
    loaded.clear()
    compared(desk)
    assert not [text for text in loaded if text not in asked]


def test_the_report_is_in_both_languages(desk: Path, loaded: list[str]) -> None:
    found = compared(desk, command="seqloom compare <strange>")
    html = found.report.read_text(encoding="utf-8")
    assert "Which retriever for texts?" in html and "texts 该用哪种检索？" in html and "<strange>" not in html
    assert "dense:runs/toy" in (desk / "out" / "report.md").read_text(encoding="utf-8")
    assert "推荐" in (desk / "out" / "report.zh-CN.md").read_text(encoding="utf-8")


def test_bm25_always_takes_part() -> None:
    assert [one.name for one in parse_retrievers("dense:hf:models/bert")] == ["bm25", "dense:hf:models/bert"]
    assert [one.encoder for one in parse_retrievers("hybrid:weights:minilm,bm25")] == ["weights:minilm", None]


def test_the_usual_encoder_is_compared_if_it_is_installed(own_cache: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [one.name for one in parse_retrievers(None)] == ["bm25"]
    monkeypatch.setattr("seqloom.retrieve.retrievers.is_installed", lambda *_: True)
    assert [one.name for one in parse_retrievers(None)] == ["bm25", "dense:weights:minilm", "hybrid:weights:minilm"]


def test_every_encoder_has_a_folder_of_its_own() -> None:
    names = [None, "weights:minilm", "hf:a/bert", "hf:b/bert", "bm25", "weights-minilm", "."]
    folders = [folder_name(name) for name in names]
    assert folders[:2] == ["bm25", "weights-minilm"] and len(set(folders)) == len(names)
    assert not any("/" in folder or folder.startswith(".") for folder in folders)


def scored(queries: int, **shifts: float) -> dict[str, np.ndarray]:
    noise = np.random.default_rng(0).normal(0, 0.1, queries)
    found = {name: 0.5 + shift + noise for name, shift in shifts.items()}
    return {name: values + np.random.default_rng(n).normal(0, 0.05, queries) for n, (name, values) in
            enumerate(found.items(), 1)}  # fmt: skip


def test_verdicts_are_about_the_same_queries() -> None:
    found = verdicts(scored(200, best=0.1, worse=0.0), 0.005)
    assert found["best"].verdict == "best" and found["worse"].verdict == "worse"
    assert found["worse"].difference == pytest.approx(0.1, abs=0.02) and (found["worse"].low or 0) > 0
    assert found["best"].difference == pytest.approx(-0.1, abs=0.02)


def test_a_small_difference_is_equivalent_or_unclear() -> None:
    close = scored(400, one=0.001, other=0.0)
    assert sorted(v.verdict for v in verdicts(close, 0.1).values()) == ["best", "equivalent"]
    assert sorted(v.verdict for v in verdicts(close, 0.0).values()) == ["best", "unclear"]


def test_few_queries_decide_nothing(desk: Path, loaded: list[str]) -> None:
    found = verdicts(scored(FEWEST - 1, best=0.5, other=0.0), 0.0)
    assert found["other"].verdict == "unclear" and found["other"].low is None
    (desk / "judged.tsv").write_text("q0\t000.txt\t1\n")
    result = compared(desk).result
    assert result["recommendation"]["certain"] is False
    assert "too few to tell" in result["recommendation"]["headline"]["en"][0]


def test_more_retrievers_need_wider_intervals_and_so_do_fewer_queries() -> None:
    two, four = (verdicts(scored(100, **dict.fromkeys("abcd"[:n], 0.0) | {"a": 0.05}), 0.0)["b"] for n in (2, 4))
    assert (two.low or 0) > (four.low or 0)
    assert expanded(0.05, 20) < expanded(0.05, 1000) < 0.05


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ("tfidf", "--models tfidf: not a retriever; use bm25, dense:ENCODER or hybrid:ENCODER"),
        ("bm25,", "--models with an empty name: not a retriever"),
        ("dense", "--models dense: needs an encoder; write for example dense:weights:minilm"),
        ("weights:minilm", "say how to search with it: dense:weights:minilm or hybrid:weights:minilm"),
        ("bm25,bm25", "--models: bm25 is given more than once"),
        ("dense:toy, dense:toy", "--models: dense:toy is given more than once"),
        ("dense:missing", "missing: no such run"),
    ],
)
def test_a_wrong_retriever_is_one_line_and_nothing_is_indexed(
    desk: Path, loaded: list[str], models: str, message: str
) -> None:
    with pytest.raises(UserError) as error:
        compared(desk, models)
    assert message in str(error.value) and "\n" not in str(error.value)
    assert not (desk / "out").exists()


def test_wrong_files_are_one_line(desk: Path, loaded: list[str]) -> None:
    (desk / "empty").write_text("")
    (desk / "others.tsv").write_text("q1\tnowhere.txt\t1\n")
    (desk / "unasked.tsv").write_text("z\t000.txt\t1\n")
    compared(desk, "bm25", out=desk / "made")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"queries": desk / "empty"}, "no queries in it"),
        ({"judgements": desk / "empty"}, "no judgements in it"),
        ({"judgements": desk / "unasked.tsv"}, "no query has a relevant document"),
        ({"judgements": desk / "others.tsv"}, "none of the judged documents is in the index"),
        ({"out": desk / "texts" / "out"}, "inside the documents"),
        ({"margin": "much"}, "--margin much"),
    ]
    for given, message in wrong:
        with pytest.raises(UserError) as error:
            compared(desk, **given)
        assert message in str(error.value) and "\n" not in str(error.value)
    for data, message in ((desk / "made" / "indexes" / "bm25", "an index; give"), (desk / "no", "no such folder")):
        with pytest.raises(UserError, match=message):
            compare_retrievers(data, queries={}, judgements={}, out=desk / "out")


def run(monkeypatch: pytest.MonkeyPatch, *words: str | Path) -> int:
    monkeypatch.setattr(sys, "argv", ["seqloom", "compare", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return int(end.value.code or 0)


def test_the_command_line_compares_retrievers(
    desk: Path, loaded: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    files = ["--queries", desk / "queries.jsonl", "--judgements", desk / "judged.tsv", "--out", desk / "out"]
    given = ["--task", "retrieval", "--data", desk / "texts", "--models", TOYS, *files]
    assert run(monkeypatch, *given) == 0
    shown = capsys.readouterr().out
    assert "24 judged queries" in shown and "Recommended" in shown and "hybrid:runs/toy" in shown
    assert run(monkeypatch, *given, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["report"].endswith("report.html") and len(found["entries"]) == 3
    assert "--task retrieval" in found["command"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--task", "retrieval"], "needs --queries and --judgements"),
        (["--queries", "q.jsonl"], "needs --queries and --judgements"),
        (["--task", "tagging", "--queries", "q.jsonl"], "go with --task retrieval, not with tagging"),
        (["--task", "retrieval", "--seeds", "3"], "--seeds: does not go with --task retrieval"),
        (["--task", "retrieval", "-o", "train.steps=3"], "-o: does not go with --task retrieval"),
        (["--queries", "q", "--judgements", "j", "--data", "b"], "takes one folder of documents"),
    ],
)
def test_options_that_do_not_go_together_are_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, given: list[str], message: str
) -> None:
    assert run(monkeypatch, "--data", "a", *given) == 2
    said = capsys.readouterr().err.strip()
    assert message in said and "\n" not in said
