"""`eval --int8` on every task: scored beside float32, or refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import pairs_file, small_translation
from test_cli import call

import seqloom

pytestmark = pytest.mark.usefixtures("own_cache")

GOLDEN = Path(__file__).parent / "golden"
SCORED = {  # run: its data
    "classification": "labelled.csv",
    "forecasting": "series.csv",
    "language_model": "text.txt",
    "masked_lm": "text.txt",
    "measurements": "frames.csv",
    "question_answering": "questions.jsonl",
    "solved": "series.csv",
    "tagging": "tagged.conll",
    "translation": "pairs.tsv",
}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.setenv("COLUMNS", "200")  # wide enough for a table without line breaks
    return lambda *words: call(monkeypatch, capsys, *map(str, words))


@pytest.mark.parametrize("name", SCORED)
def test_both_scores_and_their_difference_are_shown(run: Any, name: str) -> None:
    words = ["eval", GOLDEN / "runs" / name, "--data", GOLDEN / "data" / SCORED[name], "--int8"]
    code, out, err = run(*words)
    assert code == 0, err
    assert "this model, int8" in out and "this model, float32" in out
    assert out.splitlines()[-1].startswith("int8 changes the ")
    found = json.loads(run(*words, "--json")[1])
    for score, whole in found["float32"].items():
        if score in ("loss", "mse"):
            assert found[score] == pytest.approx(whole, rel=0.05)


def test_a_model_without_linear_layers_is_refused(run: Any) -> None:
    code, out, err = run("eval", GOLDEN / "runs" / "counting", "--data", GOLDEN / "data" / "text.txt", "--int8")
    assert code == 2 and not out and "this model has none but its head" in err


def test_attention_that_asks_for_the_sizes_of_its_layers_works(run: Any, tmp_path: Path) -> None:
    rows = [f"{word} film {n},{label}" for n in range(20) for word, label in (("fine", "good"), ("poor", "bad"))]
    (tmp_path / "a.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    settings = ["model.width=8", "train.steps=1", "train.batch=4", "train.threads=1"]
    seqloom.fit(task="classification", data=str(tmp_path / "a.csv"), model="general_attention", out=tmp_path / "run",
                overrides=settings, quiet=True)  # fmt: skip
    code, out, err = run("eval", tmp_path / "run", "--data", tmp_path / "a.csv", "--int8")
    assert code == 0 and "int8 changes the accuracy by" in out, err


def test_a_translator_writes_with_quantised_weights(run: Any, tmp_path: Path) -> None:
    small_translation(tmp_path, "seq2seq")
    code, out, err = run("predict", tmp_path / "run", "--data", pairs_file(tmp_path / "new.tsv", 4), "--int8")
    assert code == 0 and len(out.splitlines()) == 4, err
