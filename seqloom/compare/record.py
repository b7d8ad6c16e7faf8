"""The stored plan of a comparison, and whether a new one matches it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from seqloom.compare.plan import Plan
from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.runs import durable
from seqloom.runs.folder import RunFolder

_GROWING = {"seeds", "pretraining"}  # may change when a comparison is continued


def known(folder: RunFolder) -> Json:
    """The stored plan and data hashes; empty for a new folder."""
    if (folder.path / "run.json").exists():
        raise UserError(f"{folder.path} is the folder of a run, not of a comparison; choose another --out")
    try:
        found = json.loads((folder.path / "comparison.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def agreed(plan: Plan, before: Json | None, out: Path) -> Plan:
    """The plan to continue with: threads affect the numbers, so the stored value is kept; little else may change."""
    if before is None:
        return plan
    plan = plan.model_copy(update={"threads": before.get("threads", plan.threads)})
    now = plain(plan)
    optional = {k: field.default for k, field in Plan.model_fields.items() if not field.is_required()}
    before = to_jsonable_python(optional) | before  # an older version did not have all of them
    changed = {k: f"{k}={now[k]!r} (was {before.get(k)!r})" for k in now if now[k] != before.get(k)}
    if blocked := [text for key, text in changed.items() if key not in _GROWING]:
        raise UserError(f"{out} holds another comparison ({'; '.join(blocked)}); choose another --out")
    return plan


def check_data(now: Mapping[str, Any], before: Mapping[str, Any] | None, out: Path) -> None:
    changed = [part for part in now if before and before.get(part, {}).get("hash") != now[part]["hash"]]
    if changed:
        raise UserError(
            f"{now[changed[0]]['name']}: the {changed[0]} data has changed since the comparison in {out} started; "
            "restore it, or choose another --out"
        )


def plain(plan: Plan) -> Json:
    return json.loads(plan.model_dump_json())


def write(folder: Path, name: str, value: Mapping[str, Any]) -> None:
    text = json.dumps(value, indent=1, ensure_ascii=False)
    durable.write_file(folder / name, text.encode("utf-8", "backslashreplace") + b"\n")
