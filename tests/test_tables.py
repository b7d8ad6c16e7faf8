"""Tables fit the screen, with every word and number whole, and scores have one name everywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seqloom.cli._show import print_summary
from seqloom.cli._table import table_lines
from seqloom.lab.watch import describe as describe_job
from seqloom.runs import listing
from seqloom.runs.terminal import describe

GOLDEN = sorted((Path(__file__).parent / "golden" / "runs").glob("*/summary.json"))


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.parent.name)
def test_the_summary_of_a_fit_fits(
    path: Path, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    summary: dict[str, Any] = json.loads(path.read_bytes()) | {"run": "runs/a"}
    scores = {name: value for score in summary["scores"].values() for name, value in score.items()}
    names = [name for name, value in scores.items() if isinstance(value, float)]
    print_summary(summary, names)
    lines = capsys.readouterr().out.splitlines()
    table = lines[next(n for n, line in enumerate(lines) if line.startswith("part")) :]
    assert max(map(len, table)) <= width
    shown = [name for name in names if f" {name.replace('_', ' ')}" in table[0]]
    assert shown and all(f"{scores[name]:.4f}" in table[1] for name in shown)


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("what", ["models", "tasks", "samples", "gpt", "forecasting"])
def test_lists_fit_and_break_no_word(what: str, width: int) -> None:
    options = {"gpt": lambda: listing.models("gpt"), "forecasting": lambda: listing.tasks("forecasting")}
    rows = options.get(what, lambda: listing.LISTS[what](None))()
    lines = table_lines(rows, width)
    assert max(map(len, lines)) <= width
    words = {word for line in lines for word in line.split()}
    broken = {word for row in rows for value in row.values() for word in str(value).split()} - words
    assert not [word for word in broken if not any(sign in word for sign in "/,_-")]


def test_names_and_paths_go_on_in_the_next_line_only_where_they_must() -> None:
    row = {"run": "runs/compare-reviews/runs/lstm/seed-1", "valid": 0.5}
    assert table_lines([row], 60)[1] == "runs/compare-reviews/runs/lstm/seed-1  0.5000"
    assert table_lines([row], 30)[1:] == ["runs/compare-reviews/   0.5000", "runs/lstm/seed-1"]


def test_progress_names_the_score_it_validates_by() -> None:
    facts = {"step": 5, "loss": 2.0, "valid": 0.91, "metric": "macro_f1", "seconds": 1.0, "tokens_per_second": 10.0}
    assert "loss 2.0000  valid macro f1 0.9100" in describe(0.5, facts)
    job = {"title": "seed 1", "metric": "accuracy"}
    result = {"state": "done", "curve": [{"valid": 0.5}], "wall": 3.0}
    assert describe_job(job, result) == "seed 1: valid accuracy 0.5000, 3 s"
