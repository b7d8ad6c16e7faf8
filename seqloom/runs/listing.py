"""What there is to choose from: models, tasks, samples, and the runs made so far."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from seqloom.runs.registry import names

Rows = list[dict[str, Any]]


def models(name: str | None = None) -> Rows:
    return _options("models", name) if name else _summaries("models")


def tasks(name: str | None = None) -> Rows:
    return _options("tasks", name) if name else _summaries("tasks")


def samples(name: str | None = None) -> Rows:
    from seqloom.data.samples import SAMPLES

    return [{"sample": f"sample:{key}", "kind": found.kind, "what": found.what} for key, found in SAMPLES.items()]


def runs(name: str | None = None) -> Rows:
    from seqloom.core.errors import UserError
    from seqloom.runs.folder import RunFolder

    rows = []
    for record in sorted(Path(name or "runs").glob("*/run.json")):
        folder = RunFolder(record.parent)
        try:
            config, summary = folder.config(), folder.summary()
        except UserError:
            rows.append({"run": str(folder.path), "task": None, "model": None, "state": "damaged", "valid": None})
            continue
        valid = (summary or {}).get("scores", {}).get("valid", {}).get("loss")
        state = "finished" if summary else "unfinished"
        rows.append(
            {
                "run": str(folder.path),
                "task": config.task["name"],
                "model": config.model["name"],
                "state": state,
                "valid": valid,
            }
        )
    return rows


LISTS: dict[str, Callable[[str | None], Rows]] = {"models": models, "tasks": tasks, "samples": samples, "runs": runs}


def _summaries(kind: str) -> Rows:
    """The first line of each file's docstring, without importing it (and torch)."""
    folder = Path(str(find_spec(f"seqloom.{kind}").origin)).parent  # type: ignore[union-attr]
    rows = []
    for name in names(kind):
        file = folder / name / "__init__.py" if (folder / name).is_dir() else folder / f"{name}.py"
        first = file.read_text(encoding="utf-8").split('"""')[1].strip().splitlines()[0]
        rows.append({kind.removesuffix("s"): name, "what": first})
    return rows


def _options(kind: str, name: str) -> Rows:
    from seqloom.core.config import options
    from seqloom.runs.registry import find_config

    return [{"option": f"{kind.removesuffix('s')}.{option}", "default": default, "meaning": meaning}
            for option, default, meaning in options(find_config(kind, name))]  # fmt: skip
