"""The plan that is fixed before the first run, the looks that it allows, and the margin of equivalence."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from support import text

from seqloom import cli
from seqloom.compare.looks import agree, analysis, taken
from seqloom.compare.plan import Plan
from seqloom.core.errors import UserError
from seqloom.lab.rules import Budget, Margin
from seqloom.lab.spending import level_at

DATA = {"train": {"hash": "sha256:1", "name": "book.txt"}, "test": {"hash": "sha256:2", "name": "book.txt"}}


def plan(seeds: int = 3, models: tuple[str, ...] = ("lstm", "gpt"), **more: Any) -> Plan:
    usual: dict[str, Any] = {
        "task": "language_model", "data": {"train": "book.txt"}, "models": models, "params": 1000, "count": "all",
        "budget": Budget.parse("tokens=4k"), "trials": 0, "trial_share": 1.0, "seeds": seeds, "seed": 0,
        "overrides": (), "threads": 1,
    }  # fmt: skip
    return Plan(**(usual | more))


def look(out: Path, asked: Plan, data: Any = DATA, shown: bool = True) -> Any:
    found = agree(out, asked, data, analysis(asked, "loss", False))
    if shown:
        taken(out, asked)
    return found


def recorded(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "plan.json").read_bytes())
    return found


def test_the_plan_says_how_it_will_be_judged_and_comes_with_its_hash(tmp_path: Path) -> None:
    found = look(tmp_path, plan())
    assert (found.number, found.level) == (1, level_at(1))
    kept = recorded(tmp_path)
    assert kept["fixed"]["judged"]["equivalence margin"] == "1%" and kept["fixed"]["judged"]["error rate"] == 0.05
    assert kept["fixed"]["data"] == {"train": "sha256:1", "test": "sha256:2"}
    assert found.plan == {"sha256": kept["sha256"], "look": 1, "amendments": 0} and len(kept["looks"]) == 1


def test_a_comparison_that_was_stopped_has_shown_nothing(tmp_path: Path) -> None:
    assert look(tmp_path, plan(3), shown=False).number == 1
    assert look(tmp_path, plan(5)).number == 1
    assert look(tmp_path, plan(3)).number == 2


def test_more_seeds_are_another_look_with_a_smaller_level_and_the_same_command_is_the_same_look(tmp_path: Path) -> None:
    assert [look(tmp_path, plan(seeds)).number for seeds in (3, 3, 5, 5, 10, 3)] == [1, 1, 2, 2, 3, 1]
    again = look(tmp_path, plan(5))
    assert again.level == level_at(2) < level_at(1)
    assert len(recorded(tmp_path)["looks"]) == 3 and again.plan["amendments"] == 0


def test_other_entries_are_another_look(tmp_path: Path) -> None:
    assert look(tmp_path, plan()).number == 1
    assert look(tmp_path, plan(models=("lstm", "gpt", "rnn"))).number == 2


def test_one_seed_decides_nothing_and_is_no_look(tmp_path: Path) -> None:
    once = look(tmp_path, plan(1))
    assert once.number == 1 and not recorded(tmp_path)["looks"]
    assert look(tmp_path, plan(3)).number == 1
    look(tmp_path, plan(1))
    assert len(recorded(tmp_path)["looks"]) == 1


@pytest.mark.parametrize(
    ("change", "data"),
    [
        ({"margin": Margin.parse("5%")}, DATA),
        ({"budget": Budget.parse("tokens=8k")}, DATA),
        ({}, {"train": DATA["test"]}),
    ],
    ids=["margin", "budget", "data"],
)
def test_a_plan_that_is_changed_after_a_look_is_recorded_as_such(tmp_path: Path, change: Any, data: Any) -> None:
    before = look(tmp_path, plan())
    after = look(tmp_path, plan(**change), data)
    assert after.plan["amendments"] == 1 and after.plan["sha256"] == before.plan["sha256"]
    assert after.number == 2 and after.level < before.level, "other runs, or other rules, are another look"
    (amendment,) = recorded(tmp_path)["amendments"]
    assert amendment["after_looks"] == 1 and amendment["fixed"] != recorded(tmp_path)["fixed"]
    assert look(tmp_path, plan(**change), data) == after, "recorded once"


def test_the_hash_depends_on_the_plan_alone(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).mkdir()
    first = look(tmp_path / "a", plan()).plan["sha256"]
    assert first == look(tmp_path / "b", plan(5, models=("rnn",))).plan["sha256"]  # what a look may change
    assert first != look(tmp_path / "c", plan(margin=Margin.parse("2%"))).plan["sha256"]
    assert len(first) == 64


def test_a_damaged_plan_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("{")
    assert look(tmp_path, plan()).number == 1 and len(recorded(tmp_path)["looks"]) == 1


@pytest.mark.parametrize(
    ("given", "shown", "of_two"),
    [("1%", "1%", 0.02), (" 0.5 % ", "0.5%", 0.01), ("0.01", "0.01", 0.01), ("0", "0", 0.0), ("0%", "0%", 0.0)],
)
def test_a_margin_is_a_share_of_the_best_score_or_in_its_units(given: str, shown: str, of_two: float) -> None:
    margin = Margin.parse(given)
    assert margin.text == shown and margin.of(2.0) == margin.of(-2.0) == pytest.approx(of_two)
    assert Margin.parse(margin.text) == margin


@pytest.mark.parametrize("given", ["", "%", "-1%", "-0.1", "nan", "inf", "inf%", "one", "1%%", "1e999"])
def test_a_margin_that_is_none_is_refused_in_one_line(given: str) -> None:
    with pytest.raises(UserError, match=r"write 1% \(of the best score\), or 0\.01 in units of the score"):
        Margin.parse(given)


@pytest.mark.long
@pytest.mark.usefixtures("short_probes", "jobs_here")
def test_the_margin_given_on_the_command_line_decides_what_is_equivalent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "book.txt").write_text(text(3000))
    small = ["task.length=16", "task.stretch=32", "train.batch=4", "task.validation=300"]
    words = ["compare", "--data", str(tmp_path / "book.txt"), "--models", "rnn", "--params", "5k", "--trials", "0"]
    words += ["--budget", "tokens=1k", "--seeds", "2", "--out", str(tmp_path / "c"), "--jobs", "1"]
    words += [word for option in small for word in ("-o", option)]

    def run(margin: str) -> int:
        monkeypatch.setattr(sys, "argv", ["seqloom", *words, "--margin", margin])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return int(end.value.code or 0)

    assert run("lots") == 2 and "--margin lots: write 1%" in capsys.readouterr().err
    assert run("1000%") == 0
    result = json.loads((tmp_path / "c" / "result.json").read_bytes())
    assert result["protocol"]["margin"] == "1000%"
    assert sorted(entry["against_best"]["verdict"] for entry in result["entries"]) == ["best", "equivalent"]
    assert "1000%" in result["recommendation"]["headline"]["en"][0]
