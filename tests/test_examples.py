"""The examples run as they are, and show what they promise."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parent.parent / "examples"
NOTEBOOK = EXAMPLES / "first_hour.ipynb"

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes find this code, and leave their files in a folder of the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES.parent))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))


def shares(text: str) -> list[int]:
    return [int(share) for share in re.findall(r": (\d+)%", text)]


def output(name: str) -> str:
    command = [sys.executable, str(EXAMPLES / f"{name}.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


def test_the_language_model_beats_characters_by_their_frequency() -> None:
    own, unigram = re.search(r"([\d.]+) bits per byte, against ([\d.]+)", output("language_model")).groups()  # type: ignore[union-attr]
    assert float(own) < float(unigram) / 2


@pytest.mark.parametrize("name", ["classification", "tagging"])
def test_reading_in_order_beats_the_baseline(name: str) -> None:
    baseline, model = shares(output(name))[:2]
    assert model > baseline + 10


def test_the_translator_beats_the_nearest_example() -> None:
    nearest, model = map(int, re.findall(r": (\d+) of \d+ new sentences", output("translation")))
    assert model > nearest + 20


def test_answers_are_better_than_whole_sentences() -> None:
    model, *baselines = map(float, re.findall(r"F1 ([\d.]+)", output("question_answering")))
    assert model > max(baselines) + 0.3


def test_the_forecast_beats_the_naive_one() -> None:
    naive, linear = map(float, re.findall(r"five cycles (-?[\d.]+)", output("forecasting")))
    assert linear > naive


def test_the_comparison_recommends_a_model() -> None:
    assert "Recommended" in output("comparison")


def test_every_script_is_tried() -> None:
    tried = Path(__file__).read_text(encoding="utf-8")
    assert not [path.name for path in EXAMPLES.glob("*.py") if f'"{path.stem}"' not in tried]


def test_the_notebook_runs_and_is_stored_without_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not [cell for cell in notebook.cells if cell.get("outputs") or cell.get("execution_count")]
    NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    shown = [out["data"] for cell in notebook.cells for out in cell.get("outputs", ()) if "data" in out]
    assert sum("text/html" in data for data in shown) >= 5  # data frames, runs and the comparison
