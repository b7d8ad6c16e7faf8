"""One folder as a row of a list: what its small files say, and how far its training is."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.runs import schema
from seqloom.runs.folder import RunFolder
from seqloom.runs.regular import open_regular, read_regular
from seqloom.runs.winner import chosen

HIGHER = {  # scores of which more is better; a test compares them with those of the tasks
    *("accuracy", "bleu", "chrf", "coverage", "exact", "f1", "macro_f1", "masked_accuracy"),
    *("micro_f1", "precision", "recall", "rouge1", "rouge2", "rougeL"),
}
MOST = 64 << 20  # bytes of a result
_TAIL = 1 << 16  # bytes of a log in which its last entries are


def run(path: Path) -> Json:
    row = dict.fromkeys(("task", "model", "data", "seed", "score", "parameters", "seconds", "step", "progress", "loss"))
    row |= {"started": _when(path / "run.json"), "ended": _when(path / "summary.json")}
    try:
        folder = RunFolder(path)
        record, summary = folder.record(), folder.summary()
        return row | _facts(record, summary) | ({} if summary else _training(path, record))
    except Exception:  # whatever is wrong with one run, the others are listed
        return row | {"status": "damaged"}


def _facts(record: Json, summary: Json | None) -> Json:
    config = record["config"]
    return {
        "task": config["task"]["name"],
        "model": config["model"]["name"],
        "data": source(config["data"].get("train")),
        "seed": config["train"].get("seed"),
        "status": "finished" if summary else "unfinished",
        "score": _score(record.get("metric"), (summary or {}).get("scores", {})),
        "parameters": (summary or record).get("parameters"),
        "seconds": (summary or {}).get("seconds"),
        "step": (summary or {}).get("steps"),
        "progress": 1.0 if summary else None,
    }


def _training(path: Path, record: Json) -> Json:
    """How far it is, from the end of its log."""
    entries = _last_entries(path / "metrics.jsonl")
    last: Json = entries[-1] if entries else {}
    trained: Json = next((entry["train"] for entry in reversed(entries) if "train" in entry), {})
    judged: Json = next((entry["valid"] for entry in reversed(entries) if "valid" in entry), {})
    return {
        "step": last.get("step"),
        "seconds": last.get("seconds"),
        "progress": _share(record, last),
        "loss": trained.get("loss"),
        "score": _score(record.get("metric"), {"valid": judged}),
    }


def _share(record: Json, last: Json) -> float | None:
    """Of the budget; None where it is a number of epochs, because the log does not say how long one is."""
    budget = record["config"]["train"]
    for name, counted in (("steps", "step"), ("tokens", "tokens"), ("seconds", "seconds")):
        if budget.get(name):
            return min(1.0, last.get(counted, 0) / budget[name])
    return None


def comparison(path: Path) -> Json:
    row: Json = dict.fromkeys(("task", "data", "seeds", "budget", "best", "choice", "score", "report"))
    row |= {"kind": "comparison", "models": [], "started": _when(path / "comparison.json")}
    row |= {"ended": _when(path / "result.json"), "status": "unfinished"}
    try:
        plan = _object(path / "comparison.json").get("plan") or {}
        row |= {"task": plan.get("task"), "seeds": plan.get("seeds"), "models": list(plan.get("models", ()))}
        row |= {"data": source((plan.get("data") or {}).get("train")), "budget": _spent(plan.get("budget"))}
        if row["ended"]:
            row |= _outcome(_object(path / "result.json"))
    except Exception:
        return row | {"status": "damaged"}
    return row


def _outcome(result: Json) -> Json:
    name, protocol = chosen(result), result.get("protocol", {})
    rows = [*result["entries"], *result.get("baselines", ())]
    entry: Json = next((row for row in rows if name and name in (row.get("name"), row.get("model"))), {})
    value, metric = entry.get("score"), protocol.get("metric")
    value = value.get("mean") if isinstance(value, dict) else value
    better = "higher" if protocol.get("higher_is_better") else "lower"
    score = {"name": metric, "value": value, "better": better, "part": "test"} if metric and value is not None else None
    choice = (result.get("recommendation") or {}).get("choice")
    found = {"status": "finished", "report": True, "best": name, "choice": choice, "score": score}
    return found | {"models": [str(each["name"]) for each in result["entries"]]}


def study(path: Path) -> Json:
    """Of a comparison over several data sets."""
    row: Json = dict.fromkeys(("data", "seeds", "budget", "best", "choice", "score", "task"))
    row |= {"kind": "study", "models": [], "started": _when(path / "study.json"), "ended": None, "report": None}
    try:
        found = _object(path / "study.json")
        ended = "entries" in found
        row |= {"task": found.get("task"), "data": ", ".join(map(str, found.get("names", ())))}
        row |= {"status": "finished" if ended else "unfinished", "report": ended or None}
        row |= {"models": [str(each.get("name")) for each in found.get("entries", ())]}
    except Exception:
        return row | {"status": "damaged"}
    return row


def source(data: object) -> str | None:
    """The name of data without its folders, which are nobody's business."""
    if not isinstance(data, str):
        return None
    return ",".join(part if part.startswith("sample:") else os.path.basename(part) for part in data.split(","))


def kept(path: Path) -> Json:
    """A file of JSON, without its seal; UserError says what is wrong with it, without where it is."""
    try:
        return _object(path)
    except (OSError, ValueError) as error:
        raise UserError(f"{path.name} cannot be read; run the command that made it again") from error


def _object(path: Path) -> Json:
    found = schema.parse(read_regular(path, MOST))
    found.pop(schema.SEAL, None)
    return found


def _last_entries(path: Path) -> list[Json]:
    with suppress(OSError), open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - _TAIL))
        lines = file.read(_TAIL).split(b"\n")[1 if size > _TAIL else 0 : -1]
        return [entry for line in lines if isinstance(entry := _parsed(line, json.loads), dict)]
    return []


def _parsed(line: bytes, parse: Callable[[bytes], Any]) -> Any:
    try:
        return parse(line)
    except (ValueError, RecursionError):
        return None


def _score(metric: str | None, scores: Json) -> Json | None:
    """On the test set if there is one."""
    for part in ("test", "valid"):
        value = scores.get(part, {}).get(metric)
        if metric and isinstance(value, int | float):
            return {"name": metric, "value": value, "better": _better(metric), "part": part}
    return None


def _better(metric: str) -> str:
    return "higher" if metric in HIGHER else "lower"


def _spent(budget: Json | None) -> str | None:
    return f"{budget['kind']}={budget['amount']:.12g}" if budget else None


def _when(path: Path) -> str | None:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime).astimezone().isoformat(timespec="seconds")
    except OSError:
        return None
