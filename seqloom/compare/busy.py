"""Was the machine busy with something else? CPU time and elapsed time of the same training run part only then."""

from __future__ import annotations

from collections.abc import Iterable

from seqloom.core.rows import Json

BUSY = 1.15  # elapsed time per CPU time above which the machine was busy


def slowdown(entries: Iterable[Json]) -> float | None:
    """Elapsed time per CPU time of the final run that was held up most; None if no run was held up."""
    runs = [run for entry in entries for run in entry["runs"] if run["state"] == "done"]
    ratios = [run["wall_seconds"] / run["seconds"] for run in runs if run.get("wall_seconds") and run["seconds"]]
    worst = max(ratios, default=0.0)
    return worst if worst > BUSY else None
