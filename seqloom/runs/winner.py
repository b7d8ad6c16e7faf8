"""The run that a comparison recommends, found in the files of the comparison alone. Nothing here imports torch."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.runs.kept import Facts, read_json
from seqloom.runs.source import is_foreign, run_folder


class _Run(Facts):
    state: str
    folder: str = ""
    valid: float | None = None


class _Entry(Facts):
    name: str = ""
    runs: list[_Run] = []


class _Result(Facts):
    """result.json of a comparison"""

    entries: list[_Entry]
    recommendation: Json | None = None
    best: str | None = None
    baselines: list[Json] = []
    protocol: Json = {}


class Winner(NamedTuple):
    entry: str  # name of the model in the comparison
    run: Path  # its run folder
    why: str


def run_of(folder: Path, *, aloud: bool = True) -> Path:
    """The folder itself if it holds a run; if it holds a comparison, the run to use, told on standard error; of weights
    that another tool wrote, the run folder that they were converted to."""
    if is_foreign(folder):
        return run_folder(folder)
    if (folder / "study.json").exists():
        raise UserError(f"{folder} is a study of several data sets; name the folder of one of them inside it")
    if not is_comparison(folder):
        return folder
    found = winner(folder)
    if aloud:
        print(f"{folder}: using {found.run.relative_to(folder)}, {found.why}", file=sys.stderr, flush=True)
    return found.run


def is_comparison(folder: Path) -> bool:
    return (folder / "comparison.json").exists() and not (folder / "run.json").exists()


def winner(folder: Path) -> Winner:
    """The recommended model's best final run on the validation set; without a recommendation, that of the model the
    report names first."""
    result = _read(folder)
    advice = result.get("recommendation") or {}
    name = chosen(result)
    if name is None:
        why = "no model meets its constraints" if result.get("best") else "no model finished"
        raise UserError(f"{folder}: {why}; {folder}/report.md gives the reasons; name one of the runs in {folder}/runs")
    run = folder / _best_run(result, name, folder)
    others = [other for other in advice.get("among") or () if other != name]
    if not advice.get("choice"):
        return Winner(name, run, f"the model with the best score ({name}); none is recommended: see report.md")
    unsure = f"; there is not enough evidence to tell it from {' and '.join(others)}" if others else ""
    return Winner(name, run, f"the recommended model ({name}){unsure}")


def chosen(result: Json) -> str | None:
    """The name of the model to use; None if no model finished, or none meets the constraints."""
    advice = result.get("recommendation") or {}
    before = advice.get("choice") or result.get("best")  # what an older version recorded
    name: str | None = advice.get("use", before)
    return name


def _best_run(result: Json, name: str, folder: Path) -> str:
    """Relative to the comparison's folder."""
    entry: Json = next((each for each in result["entries"] if each["name"] == name), {})
    runs = [run for run in entry.get("runs", []) if run.get("state") == "done"]
    if runs:
        best = max if result.get("protocol", {}).get("higher_is_better") else min
        return str(best(runs, key=lambda run: run["valid"])["folder"])
    fitted: Json = next((each for each in result.get("baselines", []) if each.get("model") == name), {})
    if "folder" in fitted:
        return str(fitted["folder"])
    places = sorted((folder / "runs" / re.sub(r"[^\w.-]+", "-", name)).glob("seed-*"))
    if not places:
        raise UserError(f"{folder}: the run of {name} is missing; run the comparison's command again")
    return str(places[0].relative_to(folder))


def _read(folder: Path) -> Json:
    found = read_json(folder / "result.json", _Result, "run the comparison's command again, which rewrites it")
    if found is None:
        raise UserError(
            f"{folder}: the comparison is unfinished; run its command again to finish it, or name one of its runs"
        )
    return found
