"""What a killed command must leave: at every moment, nothing torn and nothing lost; at the end, the same as without."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from killing import forked, walk

from seqloom.retrieve.index import Index
from seqloom.runs import durable
from seqloom.runs.folder import RunFolder

# Measured times and memory, the moment of a run, and what follows from them (a seal is a digest with times).
TIMED = {"seconds", "wall_seconds", "wall", "peak_bytes", "started", "timing", "latency", "throughput", "reasons",
         "tokens_per_second", "ms_per_query", "seal", "would_change"}  # fmt: skip
_PAGES = {".html", ".md"}  # made of the results beside them, with dates and measured times
_TEMPORARY = re.compile(r"\.seqloom-(tmp|old)|\.tmp$")
_STORE = "store"  # of an index: files of a library, compared by what they hold


def content(folder: Path) -> dict[str, str]:
    """The content of each file, or a digest of it, without times."""
    found = {}
    for path in walk(folder):
        name = path.relative_to(folder)
        if path.name == ".lock" or path.name == durable.MANIFEST or _STORE in name.parts or _litter(name):
            continue
        if path.name == "catalogue.sqlite":
            found[str(name)] = forked(lambda place=path.parent: _indexed(folder, place))
        elif not path.name.endswith(("-wal", "-shm", "-journal")):
            found[str(name)] = _timeless(path)
    return found


def difference(one: str, other: str) -> str:
    """Where two contents differ, if they are JSON."""
    try:
        found = sorted(set(_differing(json.loads(one), json.loads(other), "")))
    except ValueError:
        return "content"
    return ", ".join(found[:5])


def _differing(one: Any, other: Any, at: str) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() | other.keys():
            yield from _differing(one.get(key), other.get(key), f"{at}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for n, pair in enumerate(zip(one, other, strict=True)):
            yield from _differing(*pair, f"{at}[{n}]")
    elif one != other:
        yield f"{at}: {one!r}, {other!r}"[:200]


def _timeless(path: Path) -> str:
    if path.suffix == ".json":
        return json.dumps(_without_times(json.loads(path.read_bytes())), sort_keys=True)
    if path.name == "metrics.jsonl":
        return json.dumps([_without_times(json.loads(line)) for line in path.read_bytes().splitlines()])
    if path.suffix in _PAGES:
        return "whole" if path.suffix == ".md" or path.read_bytes().rstrip().endswith(b"</html>") else "torn"
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        timed = TIMED | (
            {"state"} if not isinstance(value.get("state"), str) else set()
        )  # bytes at each length reached
        timed |= {"bytes"} if "ms_per_query" in value else set()  # of an index on disk, which depends on its history
        return {key: _without_times(item) for key, item in value.items() if key not in timed}
    return [_without_times(item) for item in value] if isinstance(value, list) else value


def _indexed(desk: Path, place: Path) -> str:
    from retrieve_toys import content as everything

    os.chdir(desk)  # where its encoder is; this is a process of its own
    with Index.open(place) as found:
        return repr(everything(found))


def _litter(name: Path) -> bool:
    return any(_TEMPORARY.search(part) for part in name.parts)


def litter(folder: Path) -> list[str]:
    """Temporary files that are still there; those of the cache are removed by its own rule, by age."""
    names = (path.relative_to(folder) for path in walk(folder))
    return [str(name) for name in names if _litter(name) and name.parts[0] != "cache" and _STORE not in name.parts]


def faults(folder: Path, before: Path, wanted: dict[str, str]) -> list[str]:
    """What a reader would stumble over right now. A file that is not part of a run, an index or a comparison has its
    old content, that of the folder `before`, or its new one, the content in `wanted`."""
    found = []
    for manifest in folder.rglob(durable.MANIFEST):
        if not _litter(manifest.relative_to(folder)):
            try:
                durable.verify(manifest.parent)
            except durable.Damaged as damage:
                found.append(str(damage))
    for path in walk(folder):
        name = path.relative_to(folder)
        if _litter(name) or _STORE in name.parts:
            continue
        if path.suffix == ".json":
            try:
                json.loads(path.read_bytes())
            except ValueError as error:
                found.append(f"{name}: {error}")
        elif len(name.parts) == 1 or path.suffix in _PAGES:
            old = before / name
            if _timeless(path) != wanted.get(str(name)) and not (
                old.exists() and old.read_bytes() == path.read_bytes()
            ):
                found.append(f"{name}: neither the old file nor the new one")
        if path.name == "summary.json" and not durable.locate(path.parent / "model").is_dir():
            found.append(f"{name}: it says finished, but there is no model")
    return found


def lasting(folder: Path) -> set[str]:
    """What was acknowledged: results that are finished, and the newest checkpoint of each run."""
    found = set()
    for path in walk(folder):
        if path.name in ("summary.json", "result.json", "curve.json", "run.json"):
            found.add(str(path.relative_to(folder)))
    for record in folder.rglob("run.json"):
        for step, _ in RunFolder(record.parent).checkpoints()[:1]:
            found |= {f"{record.parent.relative_to(folder)} step {n}" for n in range(step + 1)}
    return found
