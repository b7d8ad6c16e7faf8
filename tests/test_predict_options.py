"""The options of `predict` that a task has, and those that it refuses."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from test_cli import call

from seqloom.cli import predict
from seqloom.core.errors import UserError
from seqloom.core.task import as_typed
from seqloom.runs.run import load

pytestmark = pytest.mark.usefixtures("own_cache")

GOLDEN = Path(__file__).parent / "golden"
DATA = {
    "classification": "labelled.csv",
    "forecasting": "series.csv",
    "masked_lm": "text.txt",
    "measurements": "frames.csv",
    "question_answering": "questions.jsonl",
    "tagging": "tagged.conll",
    "translation": "pairs.tsv",
}
COMMON = {"run", "data", "text", "second", "passage", "out", "chart", "columns", "encoding", "override", "int8"}
OPTIONS = sorted(set(inspect.signature(predict.command).parameters) - COMMON - {"as_json"})
VALUES: dict[str, list[str]] = {"alignments": [], "temperature": ["1"], "top_p": ["0.5"]}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    return lambda *words: call(monkeypatch, capsys, *map(str, words))


def one_line(said: str) -> str:
    (line,) = [line for line in said.splitlines() if line.startswith("seqloom: ")]
    return line


def test_every_option_of_a_task_is_one_of_the_command_line() -> None:
    own = [load(GOLDEN / "runs" / name).task.predict_options for name in DATA]
    assert {option for options in own for option in options} == set(OPTIONS)


@pytest.mark.parametrize("name", DATA)
def test_an_option_that_the_task_does_not_have_is_refused_with_those_that_it_has(run: Any, name: str) -> None:
    path = GOLDEN / "runs" / name
    task = load(path).task
    for option in OPTIONS:
        words = [as_typed(option), *VALUES.get(option, ["2"])]
        if option in task.predict_options:
            continue
        code, out, err = run("predict", path, "--data", GOLDEN / "data" / DATA[name], *words)
        assert code == 2 and not out, err
        assert f"{as_typed(option)}: a {task.name} run has no such option" in one_line(err)
        assert all(as_typed(own) in one_line(err) for own in task.predict_options)


@pytest.mark.parametrize(
    "name, words, message",
    [
        ("forecasting", ["--text", "1 2"], "--text: this forecasting run reads numbers, not text; give --data FILE"),
        ("measurements", ["--text", "a"], "--text: this classification run reads numbers, not text"),
        ("classification", ["--text", "a", "--second", "b"], "--second: this classification run reads one text"),
        ("translation", ["--text", "a", "--passage", "b"], "--passage: this translation run reads one text"),
        ("question_answering", ["--text", "a"], "--passage: missing"),
        ("question_answering", ["--text", "a", "--passage", " "], "a question needs its passage"),
        ("tagging", ["--text", "a\udc80"], "is not valid Unicode text"),
        ("translation", ["--text", "a", "--beams", "101"], "beams=101: must be from 1 (greedy) to 100"),
        ("translation", ["--text", "a", "--n-best", "0"], "--n-best"),
        ("translation", ["--text", "a", "--max-new", "0"], "--max-new"),
        ("translation", ["--text", "a", "--max-new", "3", "--min-new", "4"], "min_new=4 is above the 3 tokens"),
        ("translation", ["--text", "a", "--min-new", "5000"], "min_new=5000 is above"),
        ("translation", ["--text", "a", "--length-penalty", "11"], "length_penalty=11.0: must be from 0 (none) to 10"),
        ("translation", ["--text", "a", "--length-penalty", "nan"], "--length-penalty nan: must be a finite number"),
        ("translation", ["--text", "a", "--temperature", "inf"], "--temperature inf: must be a finite number"),
        ("question_answering", ["--text", "a", "--passage", "b", "--n-best", "10" * 9], "--n-best"),
        ("forecasting", ["--data", "series.csv", "--back", "999999"], "at least one must remain before the forecast"),
        ("language_model", ["--text", "a"], "a language_model run does not predict; use seqloom generate"),
    ],
)
def test_a_wrong_value_is_one_line(
    run: Any, monkeypatch: pytest.MonkeyPatch, name: str, words: list[str], message: str
) -> None:
    monkeypatch.chdir(GOLDEN / "data")
    code, out, err = run("predict", GOLDEN / "runs" / name, *words)
    assert code == 2 and not out and message in one_line(err), err


def test_a_very_low_temperature_takes_the_most_likely_token(run: Any) -> None:
    words = ["predict", GOLDEN / "runs" / "translation", "--text", "a", "--max-new", "4", "--temperature"]
    cold, colder = (run(*words, value)[1] for value in ("1e-9", "1e-300"))
    assert cold and cold == colder


@pytest.mark.parametrize(
    "option, value, message",
    [
        ("--prompt", "a\ud800", "is not valid Unicode text"),
        ("--count", "0", "--count"),
        ("--count", "1001", "--count"),
        ("--beams", "0", "--beams"),
        ("--beams", "101", "beams=101: must be from 1 (greedy) to 100"),
        ("--max-new", "10" * 9, "--max-new"),
        ("--temperature", "nan", "--temperature nan: must be a finite number"),
        ("--top-p", "1.1", "top_p=1.1: must be above 0 and at most 1"),
        ("--top-k", "-1", "top_k=-1: must be 0 (all) or more"),
    ],
)
def test_a_text_is_not_generated_with(run: Any, option: str, value: str, message: str) -> None:
    code, out, err = run("generate", GOLDEN / "runs" / "language_model", option, value)
    assert code == 2 and not out and message in one_line(err), err


@pytest.mark.parametrize(
    "words", [["--top-p", "1e-300"], ["--temperature", "1e-300"], ["--top-k", "999999999"], ["--temperature", "1e9"]]
)
def test_an_extreme_choice_that_makes_sense_is_followed(run: Any, words: list[str]) -> None:
    code, out, err = run("generate", GOLDEN / "runs" / "language_model", "--max-new", "3", *words)
    assert code == 0 and out, err


@pytest.mark.parametrize("how, message", [({"count": 0}, "count=0"), ({"count": 101, "beams": 2}, "count=101")])
def test_so_many_texts_cannot_be_generated(how: dict[str, int], message: str) -> None:
    with pytest.raises(UserError, match=message):
        load(GOLDEN / "runs" / "language_model").generate("a", **how)


def test_a_text_in_python_is_one() -> None:
    run = load(GOLDEN / "runs" / "tagging")
    with pytest.raises(UserError, match=r"--text: not valid text: a lone surrogate \(U\+DC80\) at character 2"):
        next(run.predict(texts=["a\udc80"]))


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_out_of_range_is_refused(seed: int) -> None:
    with pytest.raises(UserError, match=r"seed=.*must be from 0"):
        load(GOLDEN / "runs" / "language_model").generate("a", seed=seed)


def test_measurements_are_predicted_with_and_without_their_labels(run: Any, tmp_path: Path) -> None:
    data = GOLDEN / "data" / "frames.csv"
    lines = [line.split(",") for line in data.read_text().splitlines()]
    at = lines[0].index("label")
    (tmp_path / "bare.csv").write_text("\n".join(",".join([*line[:at], *line[at + 1 :]]) for line in lines) + "\n")
    (tmp_path / "wide.csv").write_text("\n".join(",".join([*line, "1" if n else "z"]) for n, line in enumerate(lines)))
    command = ["predict", GOLDEN / "runs" / "measurements", "--data"]
    code, out, err = run(*command, data)
    assert code == 0 and out and out == run(*command, tmp_path / "bare.csv")[1], err
    code, out, err = run(*command, tmp_path / "wide.csv")
    assert code == 2 and not out and "features, but the run was trained on" in one_line(err)


@pytest.mark.parametrize("content", ["", "text,label\n", "\ufeff"])
def test_a_file_without_rows_is_refused(run: Any, tmp_path: Path, content: str) -> None:
    (tmp_path / "a.csv").write_text(content)
    out = tmp_path / "out.csv"
    code, _, err = run("predict", GOLDEN / "runs" / "classification", "--data", tmp_path / "a.csv", "--out", out)
    assert code == 2 and "a.csv: contains no rows to predict from" in one_line(err) and not out.exists()


def test_a_tagger_is_not_scored_on_prose(run: Any, tmp_path: Path) -> None:
    (tmp_path / "prose.txt").write_text("the cat sat\non the mat\n\nand the dog\n")
    code, out, err = run("eval", GOLDEN / "runs" / "tagging", "--data", tmp_path / "prose.txt")
    assert code == 2 and not out and "none of its tags ('sat', 'mat', 'dog', ...) was in training" in one_line(err)


def test_what_is_wrong_with_a_text_to_fill_is_told_with_its_line(run: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the <mask> cat\n\nno gap\n")
    code, _, err = run("predict", GOLDEN / "runs" / "masked_lm", "--data", tmp_path / "a.txt")
    assert code == 2 and "line 3: 'no gap': nothing to fill; write <mask>" in one_line(err)


def test_a_run_of_one_label_per_row_is_not_scored_on_rows_with_several(run: Any, tmp_path: Path) -> None:
    labels = [["a", "b"], ["a"], ["b"], []]
    rows = [{"text": f"a good day {n}", "labels": labels[n % 4]} for n in range(20)]
    (tmp_path / "many.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, err = run("eval", GOLDEN / "runs" / "classification", "--data", tmp_path / "many.jsonl")
    assert code == 2 and not out and "a row has 2 labels, but this run was trained on rows with one" in one_line(err)
