"""The runs and comparisons in a folder, each with its own metric. Runs that recorded their metric are listed without
torch."""

from __future__ import annotations

from pathlib import Path

from seqloom.core.rows import Json
from seqloom.runs.folder import RunFolder
from seqloom.runs.settings import RunConfig
from seqloom.runs.winner import is_comparison, winner


def listed(root: Path) -> list[Json]:
    """One row for each run, and for each comparison one that names its recommended model, then its final runs."""
    if is_comparison(root):
        return _comparison(root)
    rows = [row for study in sorted(root.glob("*/study.json")) for row in listed(study.parent)]
    for folder in sorted({path.parent for name in ("run", "comparison") for path in root.glob(f"*/{name}.json")}):
        rows += _comparison(folder) if is_comparison(folder) else [_run(folder)]
    return rows


def _comparison(folder: Path) -> list[Json]:
    """Without the trials of the search."""
    runs = [_run(path.parent) for path in sorted(folder.glob("runs*/*/seed-*/run.json"), key=_order)]
    first = _row(folder, state="unfinished comparison", task=next((run["task"] for run in runs if run["task"]), None))
    try:
        found = winner(folder)
    except Exception:  # unfinished or damaged: its runs are listed all the same
        return [first, *runs]
    best = next((run for run in runs if run["run"] == str(found.run)), first)
    return [best | {"run": str(folder), "state": "comparison"}, *runs]


def _order(record: Path) -> tuple[str, int]:
    """By model, then by the number of the seed."""
    number = record.parent.name.removeprefix("seed-")
    return record.parent.parent.name, int(number) if number.isdecimal() else 0


def _run(path: Path) -> Json:
    folder = RunFolder(path)
    try:
        record, config, summary = folder.record(), folder.config(), folder.summary()
        scores = (summary or {}).get("scores", {})
        metric = record.get("metric") or (_metric(folder, config) if summary else None)
        return _row(
            path,
            task=config.task["name"],
            model=config.model["name"],
            state="finished" if summary else "unfinished",
            metric=metric,
            valid=scores.get("valid", {}).get(metric),
            test=scores.get("test", {}).get(metric),
        )
    except Exception:  # whatever is wrong with one run, the others are listed
        return _row(path, state="damaged")


def _row(path: Path, **known: object) -> Json:
    empty = dict.fromkeys(("task", "model", "state", "metric", "valid", "test"))
    return {"run": str(path)} | empty | known


def _metric(folder: RunFolder, config: RunConfig) -> str:
    """Of a run that did not record it: it may depend on the data, so the task is built."""
    from seqloom.runs.material import Material

    material = Material(config)
    return material.task(material.load_vocabulary(folder.model_files())).metric
