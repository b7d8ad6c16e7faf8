"""`seqloom list runs`: every run and comparison with its own metric."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import small_fit, text

from seqloom.cli._table import table_lines
from seqloom.runs.fit import fit
from seqloom.runs.folder import RunFolder
from seqloom.runs.past import listed

NAMES = "".join(f"Ada{n} B-PER\nsees O\nRome B-LOC\n\n" for n in range(40))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model, a tagger, and a comparison of two seeds and a trial."""
    place = tmp_path_factory.mktemp("runs")
    (place / "book.txt").write_text(text(3000))
    (place / "names.conll").write_text(NAMES)
    small_fit(place / "book.txt", place / "book", "lstm", ["train.steps=2"])
    fit(task="tagging", data=str(place / "names.conll"), model="frequent", out=place / "names", quiet=True)
    for name in ("lstm/seed-1", "lstm/seed-10", "lstm/seed-2", "lstm/trial-01", "ngram/seed-1"):
        model = ["lstm", "train.steps=2", "data.test_fraction=0.1"] if "lstm" in name else ["ngram"]
        small_fit(place / "book.txt", place / "compared" / "runs" / name, model[0], model[1:])
    (place / "compared" / "comparison.json").write_text("{}")
    return place


def by_run(place: Path) -> dict[str, dict[str, Any]]:
    return {str(Path(row["run"]).relative_to(place)): row for row in listed(place)}


def test_each_run_is_listed_with_its_own_metric(folder: Path) -> None:
    rows = by_run(folder)
    assert rows["book"]["metric"] == "loss" and rows["names"]["metric"] == "f1"
    assert rows["names"]["valid"] == RunFolder(folder / "names").summary()["scores"]["valid"]["f1"]  # type: ignore[index]


def test_the_final_runs_of_a_comparison_are_listed_below_it_and_its_trials_are_not(folder: Path) -> None:
    assert [name for name in by_run(folder) if name.startswith("compared")] == [
        "compared",
        *(f"compared/runs/{name}" for name in ("lstm/seed-1", "lstm/seed-2", "lstm/seed-10", "ngram/seed-1")),
    ]
    assert by_run(folder)["compared/runs/lstm/seed-1"]["test"] > 0
    assert by_run(folder)["compared"]["state"] == "unfinished comparison"


def test_a_finished_comparison_is_listed_with_the_model_it_recommends(folder: Path) -> None:
    runs = [{"state": "done", "valid": 2.0, "folder": "runs/lstm/seed-2"}]
    result = {"entries": [{"name": "lstm", "runs": runs}], "recommendation": {"choice": "lstm", "use": "lstm"}}
    (folder / "compared" / "result.json").write_text(json.dumps(result))
    row = by_run(folder)["compared"]
    assert (row["model"], row["state"], row["metric"]) == ("lstm", "comparison", "loss") and row["test"] > 0
    assert listed(folder / "compared")[0] == row


def test_a_run_that_recorded_no_metric_has_it_looked_up(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "old").symlink_to(folder / "names")
    record = RunFolder(folder / "names").record()
    RunFolder(folder / "names").write_record({key: value for key, value in record.items() if key != "metric"})
    (row,) = listed(tmp_path)
    RunFolder(folder / "names").write_record(record)
    assert row["metric"] == "f1" and row["valid"] is not None


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"config": {"task": 3}}'])
def test_a_damaged_run_does_not_stop_the_list(folder: Path, content: str) -> None:
    (folder / "broken").mkdir(exist_ok=True)
    (folder / "broken" / "run.json").write_text(content)
    rows = by_run(folder)
    assert rows["broken"]["state"] == "damaged" and rows["book"]["state"] == "finished"


def test_runs_are_listed_without_torch(folder: Path) -> None:
    (folder / "broken").mkdir(exist_ok=True)
    script = (
        f"import sys; from seqloom.runs.listing import runs; runs({str(folder)!r}); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 0


@pytest.mark.parametrize("width", [80, 100])
def test_the_list_fits_the_screen_and_breaks_no_number(width: int) -> None:
    row = {"task": "question_answering", "model": "linear_attention", "state": "unfinished", "metric": "accuracy"}
    row |= {"valid": 0.5, "test": 12.25}  # type: ignore[dict-item]
    lines = table_lines([{"run": "runs/compare-reviews/runs/linear_attention/seed-10"} | row], width)
    assert max(map(len, lines)) <= width and "12.2500" in lines[1] and "unfinished" in lines[1]
