"""`compare --ladder budget`: rungs that are runs of their own, and a section of the report about scale."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from compare_example import example
from support import text

import seqloom
from seqloom.compare.comparing import compare
from seqloom.compare.comparison import Comparison
from seqloom.compare.field import Field
from seqloom.compare.plan import Plan
from seqloom.compare.report import html, markdown
from seqloom.core.errors import UserError
from seqloom.core.progress import Silent
from seqloom.lab.rules import Budget
from seqloom.lab.rungs import cost
from seqloom.pages.words import LANGUAGES
from seqloom.runs.fit import conduct
from seqloom.runs.folder import RunFolder
from seqloom.train.engine import Engine

SMALL = ["task.length=16", "task.stretch=64", "train.batch=4", "task.validation=300", "train.warmup=50"]
ASKED: dict[str, Any] = {
    "models": "rnn,gpt:heads=2", "params": "12k", "budget": "tokens=8k", "trials": 0, "seeds": 2, "ladder": "budget",
    "overrides": SMALL, "quiet": True,
}  # fmt: skip


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "book.txt"
    path.write_text(text(6000))
    return path


@pytest.fixture(scope="module")
def done(book: Path, tmp_path_factory: pytest.TempPathFactory, jobs_here: None, short_probes: None) -> Comparison:
    return seqloom.compare(data=str(book), out=tmp_path_factory.mktemp("out") / "compare", **ASKED)


def plan(book: Path, **more: Any) -> Plan:
    usual: dict[str, Any] = {
        "task": "language_model", "data": {"train": str(book)}, "models": ("rnn", "gpt:heads=2"), "params": 12_000,
        "count": "all", "budget": Budget.parse("tokens=8k"), "trials": 0, "trial_share": 1.0, "seeds": 1, "seed": 0,
        "overrides": tuple(SMALL), "threads": 1, "ladder": "budget",
    }  # fmt: skip
    return Plan(**usual | more)


def test_every_entry_has_a_point_for_each_rung_and_the_last_is_its_score(done: Comparison) -> None:
    for entry in (entry for entry in done.result["entries"] if not entry.get("fixed")):
        points = entry["ladder"]["points"]
        assert [point["at"] for point in points] == [1000, 2000, 4000, 8000]
        assert points[-1]["score"]["mean"] == pytest.approx(entry["score"]["mean"], rel=1e-12)
        for point in points:
            assert [run["seed"] for run in point["runs"]] == [1, 2]
            assert all(point["at"] <= run["tokens"] < point["at"] + 64 for run in point["runs"])
            assert all((done.folder / run["folder"] / "summary.json").exists() for run in point["runs"])
        assert [point["at"] for point in entry["ladder"]["predicted"]] == [16_000, 32_000, 80_000]
    assert [(pair["first"], pair["second"]) for pair in done.result["ladder"]["pairs"]]


@pytest.mark.parametrize("model", ["rnn", "gpt-heads-2"])
def test_a_rung_is_what_its_own_budget_gives(done: Comparison, tmp_path: Path, model: str) -> None:
    rung = RunFolder(done.folder / "runs" / model / "quarter-seed-1")
    config, branched = rung.config(), rung.summary()
    assert config.train.tokens == 2000 and config.train.schedule == "stable" and config.train.keep_at == ()
    alone = conduct(config, RunFolder(tmp_path / "alone"), Engine(config.train), Silent(), compared=True)
    assert branched is not None and branched["scores"] == alone.summary["scores"]
    assert branched["steps"] == alone.summary["steps"]


def test_warm_up_is_the_same_for_every_rung_and_short_for_the_smallest(done: Comparison) -> None:
    for name in ("eighth-seed-1", "half-seed-1", "seed-1"):
        assert RunFolder(done.folder / "runs" / "rnn" / name).config().train.warmup == 3  # a fifth of 15.6 steps


def test_running_it_again_trains_nothing(book: Path, done: Comparison) -> None:
    before = {path: path.stat().st_mtime_ns for path in (done.folder / "runs").rglob("*")}
    again = compare(data=str(book), out=done.folder, **ASKED)
    assert {path: path.stat().st_mtime_ns for path in (done.folder / "runs").rglob("*")} == before
    assert again.result["entries"][0]["ladder"] == done.result["entries"][0]["ladder"]
    assert again.result["ladder"] == done.result["ladder"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_report_shows_what_changes_with_scale(done: Comparison, language: str) -> None:
    page = markdown(done.result, language)
    assert {"en": "## What changes with scale", "zh": "## 规模带来的变化"}[language] in page
    assert {"en": "With 10 times the budget (80 k tokens)", "zh": "预算增至 10 倍（80 k 词元）"}[language] in page
    assert f"{language}-ladder-0" in html(done.result)


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ({"verdict": "crosses", "ahead": "second", "at": 9e6, "low": 5e6, "high": 2e7},
         "b is expected to pass a near 9 M tokens (between 5 M tokens and 20 M tokens)."),
        ({"verdict": "passed", "ahead": "first", "at": 2e5, "low": 1e5, "high": 4e5},
         "a passed b near 200 k tokens (between 100 k tokens and 400 k tokens) and is expected to stay ahead up to"),
        ({"verdict": "stays", "ahead": "first"}, "a is expected to be ahead of b from the present budget up to"),
        ({"verdict": "unclear", "ahead": None}, "Whether a or b would be ahead at 30 M tokens cannot be told."),
    ],
)  # fmt: skip
def test_a_sentence_says_who_passes_whom(pair: dict[str, Any], said: str) -> None:
    result = copy.deepcopy(example())
    score = {"mean": 1.5, "low": 1.4, "high": 1.6, "seeds": 3}
    result["entries"][0]["ladder"] = {
        "over": "tokens", "points": [{"at": 3e6, "score": score, "runs": []}], "fit": None, "problem": "worse",
        "predicted": [], "curve": [],
    }  # fmt: skip
    result["ladder"] = {"over": "tokens", "times": [2, 4, 10], "full": 3e6, "confidence": 0.95,
                        "pairs": [{"first": "a", "second": "b"} | pair]}  # fmt: skip
    page = markdown(result, "en")
    assert said in page and "No curve is fitted to lstm: its score does not improve" in page
    assert markdown(result, "zh")


@pytest.mark.parametrize("time", ["seconds=20", "minutes=2"])
def test_a_time_is_turned_into_tokens_once(book: Path, tmp_path: Path, time: str) -> None:
    timed = plan(book, budget=Budget.parse(time))
    first = Field(timed, RunFolder(tmp_path / "a"), Silent())
    assert first.plan.budget.kind == "tokens" and first.plan.budget.amount == first.allotted > 640
    again = Field(timed, RunFolder(tmp_path / "b"), Silent(), allotted=first.allotted)
    assert again.plan.budget == first.plan.budget


def test_what_cannot_be_branched_is_refused(book: Path, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    with pytest.raises(UserError, match=r"--ladder needs train\.schedule=stable"):
        Field(plan(book, models=("rnn:train.schedule=cosine",)), folder, Silent())
    with pytest.raises(UserError, match="the smallest run is 2 steps of rnn; use at least tokens="):
        Field(plan(book, budget=Budget.parse("tokens=1k")), folder, Silent())
    with pytest.raises(UserError, match="--ladder width: choose one of budget"):
        compare(data=str(book), out=tmp_path / "x", **ASKED | {"ladder": "width"})


def test_a_ladder_costs_a_fifth_more_training() -> None:
    assert 1 + cost("budget", 0.2) == pytest.approx(1.175)
