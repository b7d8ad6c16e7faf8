"""`compare --ladder data` and `--ladder size`: what each rung is trained on, what it costs, and what is refused."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import text

import seqloom
from seqloom.compare.comparing import compare
from seqloom.compare.comparison import Comparison
from seqloom.compare.defaults import allot
from seqloom.compare.field import Field
from seqloom.compare.ladder import LADDERS, kinds
from seqloom.compare.plan import Plan
from seqloom.compare.report import html, markdown
from seqloom.core.errors import UserError
from seqloom.core.progress import Silent
from seqloom.data import split
from seqloom.lab import pool, worker
from seqloom.lab.jobs import Jobs
from seqloom.lab.rules import Budget
from seqloom.lab.rungs import climbed, cost
from seqloom.runs.folder import RunFolder

pytestmark = pytest.mark.usefixtures("own_cache", "short_probes", "jobs_here", "short_stretches")

SMALL = ["task.length=16", "task.stretch=64", "train.batch=4", "task.validation=300", "train.warmup=5"]
ASKED: dict[str, Any] = {
    "models": "rnn,gpt:heads=2:depth=1", "params": "24k", "budget": "tokens=6k", "trials": 0, "seeds": 2,
    "overrides": SMALL, "quiet": True,
}  # fmt: skip
NAMES = ("eighth", "quarter", "half")


@pytest.fixture(scope="module")
def short_stretches() -> Iterator[None]:
    """So that a short text has many to draw from."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(split, "_SHORTEST", 128)
        yield


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "book.txt"
    path.write_text(text(6000))
    return path


@pytest.fixture(scope="module")
def data(book: Path, short_stretches: None, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    return seqloom.compare(data=str(book), out=tmp_path_factory.mktemp("out") / "data", ladder="data", **ASKED)


@pytest.fixture(scope="module")
def size(book: Path, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    asked = ASKED | {"models": "rnn", "seeds": 3, "budget": "tokens=2k"}
    return seqloom.compare(data=str(book), out=tmp_path_factory.mktemp("out") / "size", ladder="size", **asked)


def ladders(found: Comparison) -> dict[str, Any]:
    return {entry["name"]: entry["ladder"] for entry in found.result["entries"]}


def record(found: Comparison, run: dict[str, Any]) -> dict[str, Any]:
    return RunFolder(found.folder / run["folder"]).record()


def test_models_that_need_no_training_climb_the_ladder_of_data_too(data: Comparison) -> None:
    assert set(ladders(data)) == {"rnn", "gpt heads=2 depth=1", "ngram"}
    full = data.result["protocol"]["data"]["train"]["tokens"]
    assert data.result["ladder"]["kind"] == "data" and data.result["ladder"]["over"] == "tokens"
    for name, ladder in ladders(data).items():
        assert [point["at"] for point in ladder["points"]] == [round(full / part) for part in (8, 4, 2, 1)]
        seeds = [[run["seed"] for run in point["runs"]] for point in ladder["points"]]
        assert seeds == [[1, 2]] * 3 + [[1] if name == "ngram" else [1, 2]]
    counted = [[run["tokens"] for run in point["runs"]] for point in ladders(data)["ngram"]["points"]]
    assert all(abs(tokens - full * 2**n / 8) <= 3 for n, runs in enumerate(counted) for tokens in runs)


def test_less_data_is_read_as_often_and_is_the_same_for_every_entry(data: Comparison) -> None:
    once = data.result["protocol"]["epoch_tokens"]
    for place in range(3):
        runs = [ladder["points"][place]["runs"] for ladder in ladders(data).values()]
        for seed in range(2):
            records = [record(data, each[seed]) for each in runs]
            assert len({known["data"]["train"]["hash"] for known in records}) == 1
            assert len({known["tokenizer"]["hash"] for known in records}) == 1
        assert len({record(data, run)["data"]["train"]["hash"] for run in runs[0]}) == 2, "each seed has its own draw"
    for point in ladders(data)["rnn"]["points"][:3]:
        for run in point["runs"]:
            assert record(data, run)["config"]["train"]["epochs"] == pytest.approx(6000 / once)
            assert run["tokens"] / point["at"] == pytest.approx(6000 / once, rel=0.1)
    final = record(data, ladders(data)["rnn"]["points"][3]["runs"][0])
    for place in range(3):
        less = record(data, ladders(data)["rnn"]["points"][place]["runs"][0])
        assert [less["data"][part] for part in ("valid", "test")] == [final["data"][p] for p in ("valid", "test")]


def test_smaller_models_train_on_as_many_tokens_with_the_same_settings(size: Comparison) -> None:
    assert size.result["ladder"]["kind"] == "size" and size.result["ladder"]["over"] == "parameters"
    found = ladders(size)
    assert found.pop("ngram") is None, "a table of counts has no size to choose"
    for ladder in found.values():
        assert [point["at"] for point in ladder["points"]] == [3000, 6000, 12_000, 24_000]
        assert [run["seed"] for run in ladder["points"][-1]["runs"]] == [1, 2, 3]
        final = record(size, ladder["points"][-1]["runs"][0])["config"]
        for point in ladder["points"]:
            for run in point["runs"]:
                assert abs(run["parameters"] / point["at"] - 1) <= 0.02 and run["tokens"] == 2048
        for point in ladder["points"][:-1]:
            assert [run["seed"] for run in point["runs"]] == [1, 2]
            assert record(size, point["runs"][0])["config"]["train"] == final["train"]


def test_a_ladder_may_be_added_and_changed_without_training_anything_twice(
    data: Comparison, book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But the ladder of budgets needs other final runs."""
    trained: list[str] = []

    def run(slot: object, job: worker.Job) -> worker.Result:
        trained.append(Path(job["folder"]).name)
        return worker.work(job)

    monkeypatch.setattr(pool._Slot, "run", run)
    before = json.loads((data.folder / "plan.json").read_bytes())
    plain = compare(data=str(book), out=data.folder, **ASKED)
    assert not trained and "ladder" not in plain.result and plain.result["best"] == data.result["best"]
    assert json.loads((data.folder / "plan.json").read_bytes()) == before, "verdicts are judged as planned"
    again = compare(data=str(book), out=data.folder, ladder="size", **ASKED | {"models": "rnn"})
    assert {name.rpartition("-seed")[0] for name in trained if "-seed" in name} == {f"{name}-size" for name in NAMES}
    assert again.result["ladder"]["kind"] == "size"
    with pytest.raises(UserError, match=r"holds another comparison \(ladder='budget' \(was 'size'\)\)"):
        compare(data=str(book), out=data.folder, ladder="budget", **ASKED)


def test_a_rung_that_fails_is_left_out(book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(slot: object, job: worker.Job) -> worker.Result:
        if "quarter" in job["folder"]:
            return {"state": "failed", "error": "no room", "wall": 0.0}
        return worker.work(job)

    monkeypatch.setattr(pool._Slot, "run", run)
    asked = ASKED | {"models": "rnn", "seeds": 1, "budget": "tokens=1k"}
    found = compare(data=str(book), out=tmp_path / "out", ladder="size", **asked)
    points = ladders(found)["rnn"]["points"]
    assert [point["at"] for point in points] == [3000, 12_000, 24_000]
    assert found.result["entries"][0]["state"] == "done"


@pytest.mark.parametrize("kind", ["data", "size"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_report_says_what_the_ladder_is_over(request: pytest.FixtureRequest, kind: str, language: str) -> None:
    found: Comparison = request.getfixturevalue(kind)
    page, full = markdown(found.result, language), found.result["ladder"]["full"]
    said = {
        ("data", "en"): ("| Model | Tokens in the training set |", "Test score by amount of training data"),
        ("data", "zh"): ("| 模型 | 训练集词元数 |", "测试分数随训练数据量的变化"),
        ("size", "en"): ("| Model | Parameters |", "Test score by model size"),
        ("size", "zh"): ("| 模型 | 参数量 |", "测试分数随模型规模的变化"),
    }
    assert all(text in page for text in said[kind, language]) and full
    assert f"{language}-ladder-0" in html(found.result)


def plan(book: Path, **more: Any) -> Plan:
    usual: dict[str, Any] = {
        "task": "language_model", "data": {"train": str(book)}, "models": ("rnn",), "params": 24_000, "count": "all",
        "budget": Budget.parse("tokens=10k"), "trials": 4, "trial_share": 0.5, "seeds": 3, "seed": 0,
        "overrides": tuple(SMALL), "threads": 1, "ladder": "data",
    }  # fmt: skip
    return Plan(**usual | more)


def ladder(book: Path, folder: Path, **more: Any) -> Any:
    asked = plan(book, **more)
    field = Field(asked, RunFolder(folder), Silent())
    assert asked.ladder
    return LADDERS[asked.ladder](Jobs(field.plan, folder, field.score, field.data, 1), field)


def test_what_a_ladder_costs_is_said_before_training(book: Path, tmp_path: Path) -> None:
    (line,) = ladder(book, tmp_path / "a").told()
    assert line == (
        "ladder: also 1/8, 1/4 and 1/2 of the training data with the first 2 seeds, about 1.35 times the training "
        "without it"
    )
    smaller, shorter = (ladder(book, tmp_path / kind, ladder=kind).told()[0] for kind in ("size", "budget"))
    assert "of the size with the first 2 seeds, about 1.46 times" in smaller
    assert "of the budget, about 1.10 times" in shorter
    few = ladder(book, tmp_path / "d", seeds=1).told()[0]
    assert "of the training data, about 1.29 times" in few
    assert cost("data", 0.2) == pytest.approx(0.875) and [climbed("data", n) for n in (1, 2, 10)] == [1, 2, 2]
    assert climbed("budget", 10) == 10 and 1 + cost("budget", 0.2) == pytest.approx(1.175)


def test_minutes_are_divided_among_the_rungs_too(book: Path, tmp_path: Path) -> None:
    seconds = {}
    for kind in (None, "data"):
        timed = plan(book, budget=Budget.parse("minutes=30"), ladder=kind)
        field = Field(timed, RunFolder(tmp_path / str(kind)), Silent(), allotted=60.0)
        seconds[kind] = allot(timed, field.entries, field.baselines, 1).seconds
    assert 1.2 < seconds[None] / seconds["data"] < 1.6


def test_a_budget_of_less_than_an_epoch_has_no_ladder_of_data(
    book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = r"rnn reads 0.\d+ of the training set once, so less data would only mean a smaller budget; use at least "
    with pytest.raises(UserError, match=rf"--ladder data: with --budget tokens=3000, {few}tokens=\d+, or --ladder bu"):
        ladder(book, tmp_path / "a", budget=Budget.parse("tokens=3k"))
    with pytest.raises(UserError, match=rf"--budget flops=4e\+08, {few}flops="):
        ladder(book, tmp_path / "b", budget=Budget.parse("flops=4e8"), trials=0)
    timed = ladder(book, tmp_path / "c", budget=Budget.parse("seconds=20"), trials=0)
    (rnn,) = timed.field.entries
    for read in (1200, 1_000_000):  # bytes: measured, so it is said and not refused
        monkeypatch.setattr(kinds, "within", lambda *given, read=read: (read, rnn))
        said = timed.note()
        assert bool(re.search(rf"ladder: with --budget seconds=20, {few}seconds=\d+", said)) == (read == 1200)


def test_what_cannot_have_rungs_is_refused(book: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--ladder data draws its own shares of the training set; leave data\.exa"):
        ladder(book, tmp_path / "a", overrides=(*SMALL, "data.examples=0.5"))
    with pytest.raises(UserError, match=r"the smallest run is \d steps of rnn; use at least tokens="):
        ladder(book, tmp_path / "b", overrides=(*SMALL, "train.batch=32"), trials=0)
    message = r"--ladder size: rnn cannot have 50 parameters, an eighth of 400, with this vocabulary; raise --params"
    with pytest.raises(UserError, match=message):
        ladder(book, tmp_path / "c", ladder="size", params=400)


def test_rows_and_series_have_ladders_of_data(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    words = ["good day", "bad day", "fine sea", "poor fog"]
    rows.write_text("text,label\n" + "".join(f"{words[n % 4]} {n % 13},{n % 2}\n" for n in range(240)))
    asked = {"budget": "tokens=4k", "trials": 0, "seeds": 1, "params": "9k", "quiet": True, "ladder": "data"}
    short = ["tokenizer.kind=words", "task.batch_tokens=40", "task.longest=8", "train.warmup=2"]
    found = seqloom.compare(data=str(rows), models="gru", out=tmp_path / "a", overrides=short, **asked)
    assert found.result["ladder"]["over"] == "examples"
    full = found.result["ladder"]["full"]
    assert 170 < full < 215 and set(ladders(found)) == {"gru", "tfidf"}
    assert all(len(ladder["points"]) == 4 for ladder in ladders(found).values())
    assert f"| tfidf | {round(full / 8)} examples |" in markdown(found.result, "en")
    assert f"| tfidf | {round(full / 8)} 个样本 |" in markdown(found.result, "zh")

    series = tmp_path / "series.csv"
    values = [math.sin(n / 3) + 0.1 * math.sin(n * n) for n in range(500)]
    series.write_text("t,value\n" + "".join(f"{n},{value:.4f}\n" for n, value in enumerate(values)))
    small = ["data.time=t", "task.context=6", "task.horizon=2", "train.batch=4", "train.warmup=2"]
    asked |= {"budget": "tokens=16k", "seeds": 2}
    found = seqloom.compare(
        data=str(series), task="forecasting", models="rnn", out=tmp_path / "b", overrides=small, **asked
    )
    assert found.result["ladder"]["over"] == "points" and {"rnn", "naive"} <= set(ladders(found))
    for name, points in ((name, ladder["points"]) for name, ladder in ladders(found).items()):
        assert len(points) == 4 and [len(point["runs"]) for point in points[:3]] == [2 if name == "rnn" else 1] * 3
        trained = record(found, points[0]["runs"][0])["config"]["train"]["epochs"]
        assert trained == pytest.approx(16_000 / found.result["protocol"]["epoch_tokens"]) or name != "rnn"

    with pytest.raises(UserError, match="an eighth of the training set is too little to train on; give more data"):
        long = [*small, "task.horizon=60"]
        seqloom.compare(data=str(series), task="forecasting", models="rnn", out=tmp_path / "c", overrides=long, **asked)
