"""Nothing moved: training gives what it gave when the golden curves were recorded, and old run folders still work.

On a processor like the one that recorded them (see golden.machine) the bits are equal; elsewhere losses and scores are
equal up to rounding.
"""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import golden
import pytest

import seqloom

RECORDED = json.loads(golden.CURVES.read_text())
SAME = RECORDED["machine"] == golden.machine()
CASES = [case for case in golden.cases() if case[0] in RECORDED["curves"]]

pytestmark = [pytest.mark.usefixtures("own_cache"), pytest.mark.long]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The recorded run folders and their data, to work in."""
    shutil.copytree(golden.DATA, tmp_path / "data")
    shutil.copytree(golden.RUNS, tmp_path / "runs")
    monkeypatch.chdir(tmp_path / "data")
    return tmp_path / "runs"


def near(now: Any, before: Any, tolerance: float) -> bool:
    """Equal, up to rounding where there are numbers."""
    if isinstance(before, dict):
        return now.keys() >= before.keys() and all(near(now[key], before[key], tolerance) for key in before)
    if isinstance(before, list):
        return len(now) == len(before) and all(near(a, b, tolerance) for a, b in zip(now, before, strict=True))
    if isinstance(before, float):
        return math.isclose(now, before, rel_tol=tolerance, abs_tol=tolerance)
    return bool(now == before)


@pytest.mark.parametrize("task", golden.TASKS)
def test_training_gives_what_it_gave(task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(golden.DATA)
    for name, _, model, options in [case for case in CASES if case[1] == task]:
        now, before = golden.outcome(golden.train(task, model, options, tmp_path / name)), RECORDED["curves"][name]
        assert near(now["losses"], before["losses"], 0.0 if SAME else 1e-4), name
        if SAME:
            assert near(now["scores"], before["scores"], 1e-9), name
            assert now["weights"] == before["weights"], name


@pytest.mark.parametrize("name", golden.KEPT)
def test_an_old_run_folder_loads_predicts_evaluates_and_goes_on(name: str, runs: Path) -> None:
    run, before = seqloom.load(runs / name), RECORDED["runs"][name]
    task, model, options, file = golden.kept(name)
    assert near(golden.predictions(run, file), before["predictions"], 1e-5 if SAME else 1e-3)
    assert near(golden.numbers(run.evaluate(file)), before["scores"], 1e-5 if SAME else 1e-3)
    same = golden.train(task, model, options, runs / name, file)
    assert same.summary == run.summary, "a finished run is not trained again"
    longer = golden.train(task, model, [*options, "train.steps=12"], runs / name, file)
    assert longer.summary["steps"] in (0, 12), "a run that descends goes on from its checkpoint"
