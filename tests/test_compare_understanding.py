"""`compare` where rows are seen whole: costs of an answer, and what pre-training brings with few labels."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from compare_example import example
from test_compare_report import Page

import seqloom
from seqloom.compare.comparison import Comparison
from seqloom.compare.report import html, markdown
from seqloom.compare.report.content import document
from seqloom.core.errors import UserError
from seqloom.lab.measure import _showcase
from seqloom.runs.run import load

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("short_probes", "jobs_here")]

SMALL = ["tokenizer.kind=words", "task.batch_tokens=100", "task.longest=12", "train.warmup=5"]
ASKED: dict[str, Any] = {
    "task": "classification",
    "models": "gru=gru:bidirectional=false,bert:heads=2:depth=1",
    "params": "12k",
    "budget": "tokens=2k",
    "trials": 0,
    "seeds": 2,
    "jobs": 2,
    "pretrain_budget": "tokens=8k",
    "examples": "20,60",
    "overrides": SMALL,
    "quiet": True,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows whose label is said by one word of them, and raw text of the same words."""
    place, rng = tmp_path_factory.mktemp("data"), random.Random(0)
    kinds = {"good": ["sun", "sea", "joy"], "bad": ["mud", "fog", "woe"]}
    rows = [(kind, f"{rng.choice('abcde')} {rng.choice(words)} {rng.choice('vwxyz')} {n}")
            for n in range(400) for kind, words in [rng.choice(list(kinds.items()))]]  # fmt: skip
    (place / "rows.tsv").write_text("label\ttext\n" + "".join(f"{kind}\t{text}\n" for kind, text in rows))
    (place / "raw.txt").write_text("\n".join(text for _, text in rows) * 3)
    return place


@pytest.fixture(scope="module")
def done(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    out = tmp_path_factory.mktemp("out") / "compare"
    return seqloom.compare(data=str(folder / "rows.tsv"), pretrain=str(folder / "raw.txt"), out=out, **ASKED)


def test_everyone_is_scored_with_the_baselines_beside_and_an_answer_is_timed(done: Comparison) -> None:
    assert {entry["state"] for entry in done.result["entries"]} == {"done"}
    assert {row["name"] for row in done.result["baselines"]} == {"majority"}, "tfidf itself is among the entries"
    assert [entry["name"] for entry in done.result["entries"] if entry.get("fixed")] == ["tfidf"]
    assert done.result["recommendation"]["choice"] == done.result["best"] == "tfidf", "the others trained too briefly"
    assert load(done.folder / "runs" / "tfidf" / "seed-1").summary["scores"]["test"]["accuracy"] > 0.9
    for entry in done.result["entries"]:
        assert entry["cost"]["latency"][0]["context"] == 8 and entry["cost"]["state"] == []
        assert (entry["aspects"]["throughput"] or entry.get("fixed")) and entry["sample"] is None
        assert entry["showcase"]["kind"] == "confusion" and sorted(entry["showcase"]["labels"]) == ["bad", "good"]


def test_what_is_shown_was_counted_when_the_rows_were_scored(done: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    run = load(done.folder / "runs" / "gru" / "seed-1")
    test = run.material.shape.prepare(run.material.parts["test"], run.tokenizer)
    monkeypatch.setattr(run.model, "encode", None)  # reading a row would fail
    shown = _showcase(run, test)
    assert shown is not None and shown == next(e["showcase"] for e in done.result["entries"] if e["name"] == "gru")
    assert sum(map(sum, shown["counts"])) == shown["rows"] == len(test) and all(e["text"] for e in shown["errors"])


def test_each_is_pre_trained_as_its_kind_allows_and_taught_with_the_same_few_rows(done: Comparison) -> None:
    found = {entry["name"]: entry["aspects"]["transfer"] for entry in done.result["entries"]}
    assert found.pop("tfidf") is None, "nothing to pre-train"
    assert [transfer["teacher"] for transfer in found.values()] == ["language_model", "masked_lm"]
    for transfer in found.values():
        assert [point["examples"] for point in transfer["points"]] == [20, 60] and transfer["tokens"] >= 8_000
        for point in transfer["points"]:
            gain = point["pretrained"]["mean"] - point["scratch"]["mean"]
            assert point["gain"]["mean"] == pytest.approx(gain) and point["gain"]["low"] is not None
    runs = done.folder / "runs" / "gru"
    without, begun = (load(runs / name) for name in ("20-seed-1", "20-seed-1-pretrained"))
    assert without.config.data == begun.config.data and begun.config.data["examples"] == 20
    assert begun.config.train.start == str(runs / "pretrained") and without.config.train.start is None
    assert without.tokenizer.hash == begun.tokenizer.hash
    other = load(runs / "20-seed-2")
    hashes = [run.folder.record()["data"]["train"]["hash"] for run in (without, begun, other)]
    assert hashes[0] == hashes[1] != hashes[2], "every seed draws rows of its own"


def test_the_report_draws_it_in_both_languages(done: Comparison) -> None:
    page = Page(html(done.result))
    assert "en-transfer-0" in page.scripts[0] and "With and without pre-training" in page.text
    assert "with 20 examples" in page.text and "有无预训练的对照" in page.text and "masked_lm" not in page.text
    assert "| gru | 20 |" in markdown(done.result, "en").replace("  ", " ")
    other = example()
    assert "measures it" not in Page(html(other)).text, "this task has nothing to pre-train"
    other["protocol"]["pretrains"] = True
    assert "--pretrain FILE measures it" in Page(html(other)).text


def test_what_was_not_taught_to_the_end_says_why(done: Comparison) -> None:
    result = example()
    result["entries"][0]["aspects"]["transfer"] = {"teacher": "masked_lm", "error": "out of luck", "points": []}
    assert "out of luck" in str(document(result, "en").sections)


def test_pre_training_may_be_added_later_and_what_is_done_is_kept(folder: Path, tmp_path: Path) -> None:
    asked = ASKED | {"models": "gru", "seeds": 1, "examples": "20", "out": tmp_path / "c"}
    plain = {option: value for option, value in asked.items() if option not in ("examples", "pretrain_budget")}
    first = seqloom.compare(data=str(folder / "rows.tsv"), **plain)
    assert first.result["entries"][0]["aspects"]["transfer"] is None
    again = seqloom.compare(data=str(folder / "rows.tsv"), pretrain=str(folder / "raw.txt"), **asked)
    assert again.result["entries"][0]["aspects"]["transfer"]["points"][0]["gain"]["low"] is None
    assert first.result["entries"][0]["runs"] == again.result["entries"][0]["runs"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"examples": "9000"}, r"--examples 9000: the training set has only 3\d\d rows"),
        ({"examples": "few"}, "--examples few: not a positive number"),
        ({"pretrain_budget": "hours=2"}, "--pretrain-budget hours=2: write tokens=2M"),
        ({"pretrain": "nowhere.txt"}, "nowhere.txt"),
        ({"pretrain": None}, "--pretrain-budget: belongs to --pretrain TEXT, which is not given"),
        ({"pretrain": None, "pretrain_budget": None, "examples": "9"}, "--examples: belongs to --pretrain TEXT"),
        (
            {"task": "language_model", "overrides": [], "models": "gru", "params": None, "budget": "tokens=100k"},
            "--pretrain: language_model has no encoder to pre-train",
        ),
        (
            {
                "data": "sample:waves",
                "overrides": ["task.input=measurements"],
                "models": "gru",
                "budget": "tokens=100k",
            },
            "--pretrain: this task reads measurements",
        ),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be_measured_is_refused(folder: Path, tmp_path: Path, change: dict[str, Any], message: str) -> None:
    asked = {"data": str(folder / "rows.tsv"), "pretrain": str(folder / "raw.txt"), **ASKED} | change
    with pytest.raises(UserError, match=message):
        seqloom.compare(out=tmp_path / "c", **asked)
