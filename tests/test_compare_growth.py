"""A comparison grows: entries, seeds and the budget change, and nothing that is done is lost or trained again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import text

from seqloom.compare import record
from seqloom.compare.comparing import compare
from seqloom.compare.comparison import Comparison
from seqloom.compare.plan import Plan
from seqloom.core.errors import UserError
from seqloom.lab import pool, worker
from seqloom.runs.past import listed
from seqloom.runs.winner import winner

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("short_probes")]

SMALL = ["task.length=16", "task.stretch=64", "train.batch=4", "task.validation=300", "train.warmup=5"]
ASKED: dict[str, Any] = {
    "models": "rnn", "params": "8k", "budget": "tokens=1k", "trials": 2, "trial_share": 1.0, "seeds": 2,
    "overrides": SMALL,
}  # fmt: skip

Ask = Callable[..., tuple[Comparison, list[str]]]


@pytest.fixture(scope="module")
def trained() -> Iterator[list[str]]:
    """The runs of models that descend, as they are trained: `rnn seed 1`."""
    seen: list[str] = []

    def run(slot: object, job: worker.Job) -> worker.Result:
        if job["kind"] == "fit" and job["size"]:
            seen.append(f"{job['entry']} {job['title']}")
        return worker.work(job)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool._Slot, "run", run)
        yield seen


@pytest.fixture
def ask(trained: list[str], tmp_path: Path) -> Ask:
    """Issue the comparison with other arguments: what it found, and which runs it trained."""
    book = tmp_path / "book.txt"
    book.write_text(text(4000))

    def asked(**more: Any) -> tuple[Comparison, list[str]]:
        trained.clear()
        found = compare(data=str(book), out=tmp_path / "out", **(ASKED | more))
        return found, list(trained)

    return asked


def scores(found: Comparison) -> dict[str, list[float]]:
    return {e["name"]: [run["score"] for run in e["runs"]] for e in found.result["entries"] if not closed(e)}


def measured(found: Comparison) -> Any:
    return found.result["entries"][0]["aspects"]["positions"]


def closed(entry: dict[str, Any]) -> bool:
    """A baseline among the entries: fitted in closed form."""
    return entry["name"] == "ngram"


def runs_of(name: str, *titles: str) -> list[str]:
    return [f"{name} {title}" for title in titles]


WHOLE = ("trial 1 of 2", "trial 2 of 2", "seed 1", "seed 2")


def test_entries_and_seeds_are_added_and_dropped_without_training_anything_twice(
    ask: Ask, capsys: pytest.CaptureFixture
) -> None:
    first, done = ask()
    assert done == runs_of("rnn", *WHOLE)
    capsys.readouterr()

    both, done = ask(models="rnn,gru")
    assert done == runs_of("gru", *WHOLE)
    assert scores(both)["rnn"] == scores(first)["rnn"]
    line = "adds gru; finished runs kept: 4, runs to train: 4 of gru\n"
    assert line in capsys.readouterr().err

    less, done = ask(models="gru")
    assert not done and scores(less) == {"gru": scores(both)["gru"]}
    assert "leaves out rnn (kept on disk); finished runs kept: 4, runs to train: none\n" in capsys.readouterr().err

    again, done = ask(models="gru,rnn")
    assert not done and scores(again) == scores(both)

    more, done = ask(models="gru,rnn", seeds=3)
    assert sorted(done) == ["gru seed 3", "rnn seed 3"]
    assert scores(more)["rnn"][:2] == scores(first)["rnn"]
    assert "3 seeds (were 2); finished runs kept: 8, runs to train: 1 of gru, 1 of rnn\n" in capsys.readouterr().err


def test_another_budget_trains_anew_and_going_back_finds_the_old_runs(ask: Ask, capsys: pytest.CaptureFixture) -> None:
    first, _ = ask()
    capsys.readouterr()
    larger, done = ask(budget="tokens=1500")
    assert done == runs_of("rnn", *WHOLE)
    assert "budget tokens=1500 (was tokens=1000); finished runs kept: 0, runs to train" in capsys.readouterr().err
    assert winner(larger.folder).run.is_relative_to(larger.folder / "runs-tokens-1500")
    assert {run["tokens"] for run in larger.result["entries"][0]["runs"]} == {1536}

    assert measured(larger) != measured(first)  # of the runs with this budget, not of the earlier ones

    back, done = ask()
    assert not done and scores(back) == scores(first) and measured(back) == measured(first)
    assert winner(back.folder).run.is_relative_to(back.folder / "runs")
    _, done = ask(budget="tokens=1500", seeds=3)
    assert done == ["rnn seed 3"]
    rows = [row["run"] for row in listed(back.folder)]
    assert any("runs/rnn/seed-1" in run for run in rows) and any("runs-tokens-1500/rnn" in run for run in rows)


def test_a_larger_entry_does_not_change_the_size_that_the_comparison_began_with(ask: Ask) -> None:
    own = {"params": None, "trials": 0, "seeds": 1}
    first, _ = ask(**own)
    both, done = ask(models="rnn,gru:depth=3", **own)
    assert done == ["gru depth=3 seed 1"]
    assert both.result["protocol"]["size"] == first.result["protocol"]["size"]
    older = json.loads((first.folder / "comparison.json").read_bytes())
    for later in ("size", "budgets", "models", "seal"):  # as recorded by an earlier version
        del older[later]
    (first.folder / "comparison.json").write_text(json.dumps(older))
    again, done = ask(models="gru:depth=3", **own)
    assert not done and again.result["protocol"]["size"] == first.result["protocol"]["size"]


def plan(**more: Any) -> Plan:
    usual: dict[str, Any] = {
        "task": "language_model", "data": {"train": "book.txt"}, "models": ("rnn", "a=lstm"), "params": None,
        "count": "all", "budget": {"kind": "minutes", "amount": 20}, "trials": 0, "trial_share": 1.0, "seeds": 2,
        "seed": 0, "overrides": (), "threads": 1,
    }  # fmt: skip
    return Plan.model_validate(usual | more)


def test_minutes_are_allotted_once_for_each_budget() -> None:
    first = plan()
    known = record.budgets(first, {})
    assert known == {"minutes=20": {"runs": "runs", "allotted": None}}
    known["minutes=20"]["allotted"] = 7.5
    before = {"plan": record.plain(first), "budgets": known}
    later = record.budgets(plan(budget={"kind": "minutes", "amount": 40}), before)
    assert later == known | {"minutes=40": {"runs": "runs-minutes-40", "allotted": None}}
    earlier_version = {"plan": record.plain(first), "allotted": 7.5}
    assert record.budgets(first, earlier_version) == known


def test_a_name_keeps_its_model_and_options_even_after_it_was_dropped(tmp_path: Path) -> None:
    before = {"plan": record.plain(plan(models=("rnn",))), "models": ["rnn", "a=lstm"]}
    again, changes = record.agreed(plan(models=("rnn", "a=lstm")), before, tmp_path)
    assert again.models == ("rnn", "a=lstm") and changes == ["adds a"]
    for other in ("a=gru", "a=lstm:depth=3", "A=lstm"):
        with pytest.raises(UserError, match=r"'a' is lstm in .*; give the new entry another name"):
            record.agreed(plan(models=("rnn", other)), before, tmp_path)


def test_what_would_change_finished_runs_is_refused(tmp_path: Path) -> None:
    before = {"plan": record.plain(plan())}
    for change in ({"trials": 3}, {"seed": 5}, {"overrides": ("train.batch=2",)}, {"params": 9000}):
        with pytest.raises(UserError, match=r"holds another comparison .*; choose another --out"):
            record.agreed(plan(**change), before, tmp_path)
