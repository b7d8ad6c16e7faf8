"""Generated inputs through the command line: a small budget of them, and every one that once broke a promise."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fuzz.campaign import drawn, kept
from fuzz.case import Case, File, Outcome, text
from fuzz.more_commands import CASES
from fuzz.options import of_command, of_settings
from fuzz.oracle import violations
from fuzz.readers import READERS, seeds
from fuzz.server import Server

from seqloom.cli._main import COMMANDS
from seqloom.runs.registry import names

pytestmark = pytest.mark.long
SEED, EACH = 1_000_000, 10  # of the small budget: 15 commands


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as started:
        yield started


@pytest.mark.parametrize("path", kept(), ids=lambda path: path.stem)
def test_what_once_broke_a_promise_keeps_it_now(path, server):
    case = Case.from_json(path.read_text(encoding="utf-8"))
    outcome = server.run(case)
    assert not violations(case, outcome), f"{case.made}\n{outcome.err[-2000:]}"


@pytest.mark.parametrize("command", CASES)
def test_generated_inputs_end_in_a_result_or_in_one_clear_line(command, server):
    for case in drawn(command, SEED, EACH):
        outcome = server.run(case)
        assert not violations(case, outcome), f"{case.to_json()[:3000]}\n{outcome.err[-2000:]}"


def test_every_command_has_generated_inputs():
    assert set(CASES) == set(COMMANDS)


def test_options_are_found_from_signatures_and_schemas():
    found = {option.name: option for option in of_command("generate")}
    assert {"--prompt", "--max-new", "--top-p", "--json"} <= set(found)
    assert found["--count"].low == 1 and found["--count"].numeric and found["--chat"].flag
    for task in names("tasks"):
        settings = {option.name: option for option in of_settings(task, "gru")}
        assert settings["train.rate"].low == 0 and "adamw" in settings["train.optimizer"].choices
        assert {"task", "model", "data", "train", "lora"} <= {name.partition(".")[0] for name in settings}


def broken(outcome: Outcome, wanted: str = "either") -> list[str]:
    return [one.partition(":")[0] for one in violations(Case(("eval",), wanted=wanted), outcome)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "outcome, wanted, found",
    [
        (Outcome(2, err="seqloom: a.csv:3: no label; give one\n"), "fail", []),
        (Outcome(0), "pass", []),
        (Outcome(0), "fail", ["accepted, but has to fail"]),
        (Outcome(2, err="seqloom: a.csv:3: no label; give one\n"), "pass", ["refused, but is valid"]),
        (Outcome(1, err="seqloom: internal error (KeyError)\n"), "either", ["traceback"]),
        (Outcome(1, err="Traceback (most recent call last):\nKeyError\n"), "either", ["traceback", "not one line"]),
        (Outcome(-11, 11), "either", ["signal 11"]),
        (Outcome(-9, 9, hung=True), "either", ["hang"]),
        (Outcome(0, seconds=21), "either", ["hang"]),
        (Outcome(3, err="seqloom: something is wrong here\n"), "fail", ["exit code 3"]),
        (Outcome(2, err="seqloom: something is \x1b wrong\n"), "fail", ["unprintable characters"]),
        (Outcome(2, err=f"seqloom: {'x' * 1500}\n"), "fail", ["message of 1509 characters"]),
        (Outcome(0, err="DeprecationWarning: x\n"), "either", ["warning of a library"]),
        (Outcome(0, changed=["data.csv"]), "either", ["changed data.csv"]),
    ],
)
def test_the_oracle_tells_a_broken_promise(outcome, wanted, found):
    assert broken(outcome, wanted) == found


def test_the_server_reports_what_a_command_leaves_and_changes(server):
    outcome = server.run(Case(("list", "models"), (File("pipe", "", "fifo"), text("a", "b"))))
    assert outcome.code == 0 and "gru" in outcome.out and not outcome.changed and not outcome.left
    outcome = server.run(Case(("fit", "--data", "a.txt"), (File("a.txt", "/dev/zero", "link"),)))
    assert outcome.code == 2 and outcome.err.startswith("seqloom: a.txt")


def test_a_case_can_be_kept_as_text():
    case = Case(("fit", "\udcff"), (File("a", "//4=", "base64"), text("b", "c")), "fail", "made", "in", ("out", "x"))
    assert Case.from_json(case.to_json()) == case


def test_the_same_number_draws_the_same_cases():
    assert drawn("fit", 3, 4) == drawn("fit", 3, 4) != drawn("fit", 4, 4)


def test_an_option_given_anew_takes_the_place_of_the_old_one():
    case = Case(("fit", "--out", "a", "-o", "train.steps=2", "--quick", "--model", "gru"))
    assert case.adding("--out=b").argv == ("fit", "-o", "train.steps=2", "--quick", "--model", "gru", "--out=b")
    assert case.adding("-o", "train.steps=3").argv[-4:] == ("--model", "gru", "-o", "train.steps=3")
    assert case.adding("-o", "train.rate=3").argv[3:5] == ("-o", "train.steps=2")
    assert case.adding("--quick").argv[-3:] == ("--model", "gru", "--quick")


@pytest.mark.parametrize("name", READERS)
def test_the_coverage_guided_run_begins_with_valid_files(name, tmp_path):
    ending, read = READERS[name]
    for data in seeds(name)[:2]:
        (tmp_path / f"data.{ending}").write_bytes(data)
        read(tmp_path / f"data.{ending}")
