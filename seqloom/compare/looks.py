"""The analysis plan, fixed before the first run, and the looks at the results that it allows.

    DIR/plan.json    what is compared and how it will be judged, with the SHA-256 of that; the looks taken so far

A look is a result with another set of runs: more seeds, other entries. Each has its own part of the error rate
(`lab/spending.py`), so that adding seeds until something is significant does not make anything significant.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from seqloom.compare.plan import Plan
from seqloom.core.rows import Json
from seqloom.lab.rungs import branched
from seqloom.lab.spending import FIRST, LEVEL, level_at
from seqloom.runs.durable import Damaged
from seqloom.runs.kept import Facts, read_json, write_json

_FILE = "plan.json"
_GROWS = ("models", "seeds")  # what a look may change
CONFIDENCE = 0.95


class _Known(Facts):
    """plan.json"""

    fixed: Json
    sha256: str
    looks: list[Json]
    amendments: list[Json]


class Look(NamedTuple):
    number: int
    level: float
    plan: Json  # for the report: hash, number of looks, what was changed since


def analysis(plan: Plan, metric: str, higher_is_better: bool) -> Json:
    """How the comparison will be judged."""
    return {
        "score": metric,
        "higher is better": higher_is_better,
        "error rate": LEVEL,
        "spending": f"first look {FIRST:.0%} of the error rate, every later one half of what is left",
        "verdicts": "each model against the best of the others; Welch's t, all pairs at Sidak's level",
        "variance": "tuning, seeds, and blocks of the test data",
        "equivalence margin": plan.margin.text,
        "confidence of intervals": CONFIDENCE,
    }


def agree(out: Path, plan: Plan, data: Mapping[str, Any], judged: Json) -> Look:
    """Record the plan if this is the first run, and find out which look its result will be; call it before training."""
    settings = json.loads(plan.model_dump_json())
    if not branched(plan.ladder):
        settings["ladder"] = None  # it adds runs, and none of them is judged
    fixed = {"comparison": {k: v for k, v in settings.items() if k not in _GROWS}, "judged": judged}
    fixed["data"] = {part: facts["hash"] for part, facts in data.items()}
    known = _read(out) or {"fixed": fixed, "sha256": _digest(fixed), "looks": [], "amendments": []}
    if known["fixed"] != fixed and (known["amendments"] or [{}])[-1].get("fixed") != fixed:
        known["amendments"].append({"fixed": fixed, "after_looks": len(known["looks"])})
    write_json(out / _FILE, known)
    looks, this = known["looks"], _this(plan, known)
    number = looks.index(this) + 1 if this in looks else len(looks) + 1
    shown = {"sha256": known["sha256"], "look": number, "amendments": len(known["amendments"])}
    return Look(number, level_at(number), shown)


def taken(out: Path, plan: Plan) -> None:
    """Record the look: its result is about to be shown. A comparison that was stopped before has shown nothing, and one
    seed decides nothing."""
    known = _read(out)
    if known is not None and plan.seeds > 1 and (this := _this(plan, known)) not in known["looks"]:
        known["looks"].append(this)
        write_json(out / _FILE, known)


def _this(plan: Plan, known: Json) -> Json:
    """What tells one look from another."""
    settings = json.loads(plan.model_dump_json())
    return {name: settings[name] for name in _GROWS} | {"amendment": len(known["amendments"])}


def _digest(value: Json) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _read(out: Path) -> Json | None:
    try:
        return read_json(out / _FILE, _Known, "")
    except Damaged:  # written anew
        return None
