"""The stored plan of a comparison, how a new one may differ from it, and what is kept when it does.

Entries, seeds and the budget may change, and a ladder over data or size may be added. Runs are kept by entry name and
by budget: those of the first budget are in `runs`, those of any other in a folder of their own, so that going back
finds them again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from seqloom.compare.plan import Plan
from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.lab.entries import Entry, Sized, parse_entries
from seqloom.lab.jobs import Jobs
from seqloom.lab.rules import Budget
from seqloom.lab.rungs import branched
from seqloom.runs.durable import Damaged
from seqloom.runs.folder import RunFolder
from seqloom.runs.kept import Facts, check_own, read_json
from seqloom.runs.schema import mistake

_WAY_OUT = "delete it and run the same command again, which keeps the finished runs"


class _Budget(Facts):
    runs: str
    allotted: float | None = None


class _Part(Facts):
    hash: str


class _Known(Facts):
    """comparison.json"""

    plan: Json | None = None
    score: str | None = None
    data: dict[str, _Part] = {}
    size: int | None = None
    budgets: dict[str, _Budget] = {}
    models: list[str] = []


_GROWING = {"models", "seeds", "budget", "pretraining", "per_label"}  # may change when a comparison is continued


def known(folder: RunFolder) -> Json:
    """The stored plan, data hashes, common size, entries and budgets; empty for a new folder."""
    path = folder.path / "comparison.json"
    check_own(folder.path, path.name)
    found = read_json(path, _Known, _WAY_OUT)
    if found is None:
        return {}
    return found if "size" in found else found | {"size": _size(folder.path)}


def _size(folder: Path) -> int | None:
    """The common size of a comparison whose record does not say it, from its result; None: it has none yet."""
    try:
        size = (read_json(folder / "result.json", Facts, "") or {})["protocol"]["size"]["target"]
    except (Damaged, KeyError, TypeError):
        return None
    return size if isinstance(size, int) else None


def agreed(plan: Plan, before: Json, out: Path) -> tuple[Plan, list[str]]:
    """The plan to continue with, and what it changes, in words. Threads affect the numbers, so the stored value is
    kept; options that would change finished runs are refused."""
    stored: Json | None = before.get("plan")
    if stored is None:
        return plan, []
    plan = plan.model_copy(update={"threads": stored.get("threads", plan.threads)})
    now = plain(plan)
    try:
        stored = plain(Plan.model_validate(stored))  # an older version did not have all of its fields
    except ValidationError as error:
        raise Damaged(f"{out / 'comparison.json'}: plan.{mistake(error)}", _WAY_OUT) from None
    changed = {k: f"{k}={now[k]!r} (was {stored.get(k)!r})" for k in now if now[k] != stored.get(k)}
    adds = not any(map(branched, (plan.ladder, stored["ladder"])))  # a ladder of other runs than the final ones
    growing = _GROWING | {"ladder"} if adds else _GROWING
    if blocked := [text for key, text in changed.items() if key not in growing]:
        raise UserError(f"{out} holds another comparison ({'; '.join(blocked)}); choose another --out")
    changes = _entry_changes(plan, before, out)
    if "seeds" in changed:
        changes.append(f"{plan.seeds} seeds (were {stored['seeds']})")
    if "budget" in changed:
        changes.append(f"budget {plan.budget} (was {Budget.model_validate(stored['budget'])})")
    if "pretraining" in changed:
        changes.append(f"pre-training on {plan.pretraining.text}" if plan.pretraining else "no pre-training")
    if "per_label" in changed:
        few = ", ".join(map(str, plan.per_label))
        changes.append(f"{few} rows per label" if few else "no runs on few rows")
    if "ladder" in changed:
        changes.append(f"a ladder over {plan.ladder}" if plan.ladder else "no ladder")
    return plan, changes


def _entry_changes(plan: Plan, before: Json, out: Path) -> list[str]:
    """Entries added and dropped. A name stands for the same model and options for good: its runs are kept under it."""
    now, last = parse_entries(plan.models), _parsed(before["plan"]["models"])
    ever = _parsed(entries_ever(plan, before))
    for entry in now:
        if other := next((e for e in ever if e.folder.casefold() == entry.folder.casefold() and e != entry), None):
            was = ":".join([other.model, *(o.removeprefix("model.") for o in other.options)])
            raise UserError(
                f"--models: {other.name!r} is {was} in {out}, and its runs are kept; give the new entry another name"
            )
    added = [entry.name for entry in now if entry not in last]
    dropped = [entry.name for entry in last if entry not in now]
    changes = [f"adds {', '.join(added)}"] if added else []
    return changes + ([f"leaves out {', '.join(dropped)} (kept on disk)"] if dropped else [])


def _parsed(texts: Sequence[str]) -> list[Entry]:
    """Without entries whose weights are gone."""
    found = []
    for text in texts:
        with suppress(UserError):
            found.append(Entry.parse(text))
    return found


def entries_ever(plan: Plan, before: Json) -> list[str]:
    """Every entry that the comparison has had, as written in --models."""
    last = before.get("plan", {}).get("models", ())
    return list(dict.fromkeys([*before.get("models", ()), *last, *plan.models]))


def budgets(plan: Plan, before: Json) -> dict[str, Json]:
    """By budget: the folder of its runs, and the seconds of each run where the budget is minutes for all of them."""
    known: dict[str, Json] = dict(before.get("budgets", {}))
    if not known and "plan" in before:
        first = str(Budget.model_validate(before["plan"]["budget"]))
        known[first] = {"runs": "runs", "allotted": before.get("allotted")}
    key = str(plan.budget)
    new = {"runs": f"runs-{key.replace('=', '-')}" if known else "runs", "allotted": None}
    return {**known, key: known.get(key, new)}


def told(out: Path, changes: Sequence[str], jobs: Jobs, entries: Sequence[Sized]) -> str:
    """One line: what a continued comparison changes, keeps and has yet to train."""
    trials, finals = [f"trial-{n:02d}" for n in range(1, jobs.rules.trials + 1)], [f"seed-{n}" for n in jobs.seeds]
    names = {s.entry.name: [*(trials if s.trained else []), *finals] for s in entries}
    kept = {
        s.entry.name: sum((jobs.folder(s, name) / "result.json").exists() for name in names[s.entry.name])
        for s in entries
    }
    left = {name: len(names[name]) - done for name, done in kept.items() if done < len(names[name])}
    train = ", ".join(f"{count} of {name}" for name, count in left.items()) or "none"
    return f"{out}: {'; '.join(changes)}; finished runs kept: {sum(kept.values())}, runs to train: {train}"


def check_score(now: str, before: str | None, out: Path) -> None:
    """The score by which entries are ranked depends on whether they have one tokenizer."""
    if before is not None and before != now:
        raise UserError(
            f"{out} ranks by {before}; with these models it would be {now}, because their tokenizers differ or no "
            "longer do, and all runs would be scored anew; choose another --out"
        )


def check_data(now: Mapping[str, Any], before: Mapping[str, Any] | None, out: Path) -> None:
    changed = [part for part in now if before and before.get(part, {}).get("hash") != now[part]["hash"]]
    if changed:
        raise UserError(
            f"{now[changed[0]]['name']}: the {changed[0]} data has changed since the comparison in {out} started; "
            "restore it, or choose another --out"
        )


def plain(plan: Plan) -> Json:
    return json.loads(plan.model_dump_json())
