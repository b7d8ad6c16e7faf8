"""Everything in the folder of runs, live: runs in training, finished ones, comparisons and studies over data sets.

What was read of a folder is kept as long as the size and time of its files are the same, so a list of a thousand runs
reads only what has changed. An id is looked up among what was found, so none can name a place outside.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from seqloom.core.rows import Json
from seqloom.runs.lock import in_use
from seqloom.serve.api import reading

DEEPEST = 3  # folders between the folder of runs and a run, but for those inside a comparison
_FILES = {  # the files whose change is a change of what is listed
    "run": ("run.json", "summary.json", "metrics.jsonl"),
    "comparison": ("comparison.json", "result.json"),
    "study": ("study.json",),
}
_READ = {"run": reading.run, "comparison": reading.comparison, "study": reading.study}

Print = tuple[tuple[int, int, int] | None, ...]  # inode, size and time of each file; None: there is none


@dataclass(frozen=True)
class Place:
    id: str
    kind: str  # run, comparison or study
    path: Path
    inside: str | None = None  # id of the comparison that it is a part of


@dataclass(frozen=True)
class _Known:
    seen: Print
    row: Json


class Past:
    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}
        self._places: dict[str, Place] = {}

    def runs(self) -> list[Json]:
        """A row for each, those of comparisons too, the latest first."""
        return self._rows(lambda place: place.kind == "run")

    def comparisons(self) -> list[Json]:
        """A row for each comparison and each study over data sets, with the ids of its runs."""
        rows = self._rows(lambda place: place.kind != "run")
        inside: dict[str, list[str]] = {}
        for place in self._places.values():
            if place.inside:
                inside.setdefault(place.inside, []).append(place.id)
        return [row | {"runs": inside.get(row["id"], [])} for row in rows]

    def place(self, name: str, *kinds: str) -> Place | None:
        """Where this id leads; None if nothing of these kinds has it."""
        with self._lock:
            found = self._places.get(name)
            if found is None or not os.path.exists(found.path / _FILES[found.kind][0]):
                self._scan()
                found = self._places.get(name)
        return found if found and found.kind in kinds else None

    def row(self, place: Place) -> Json:
        with self._lock:
            return self._row(place)

    def _rows(self, wanted: Callable[[Place], bool]) -> list[Json]:
        with self._lock:
            self._scan()
            rows = [self._row(place) for place in self._places.values() if wanted(place)]
        return sorted(rows, key=lambda row: (row["started"] or "", row["id"]), reverse=True)

    def _scan(self) -> None:
        self._places = {place.id: place for place in _walk(self.root, (), 0)}
        for gone in self._known.keys() - self._places.keys():
            del self._known[gone]

    def _row(self, place: Place) -> Json:
        """What is in the files, from memory if they are the same, and whether somebody writes to them now."""
        seen = tuple(_print(place.path / name) for name in _FILES[place.kind])
        known = self._known.get(place.id)
        if known is None or known.seen != seen:
            known = self._known[place.id] = _Known(seen, _READ[place.kind](place.path))
        row = {"id": place.id, **known.row, "inside": place.inside}
        if row["status"] == "unfinished" and in_use(place.path):
            row["status"] = "running"
        return row


def _walk(folder: Path, parts: tuple[str, ...], depth: int) -> Iterator[Place]:
    """Links are not followed: they may lead out of the folder."""
    names, folders = _entries(folder)
    if parts and "run.json" in names:
        yield Place(_id(parts), "run", folder)
    elif parts and "comparison.json" in names:
        yield Place(_id(parts), "comparison", folder)
        yield from _compared(folder, parts, [name for name in folders if name.startswith("runs")])
    else:
        if parts and "study.json" in names:
            yield Place(_id(parts), "study", folder)
        for name in sorted(folders) if depth < DEEPEST else ():
            yield from _walk(folder / name, (*parts, name), depth + 1)


def _compared(folder: Path, parts: tuple[str, ...], budgets: list[str]) -> Iterator[Place]:
    """The final runs of a comparison, without the trials of its search."""
    for budget in sorted(budgets):
        for model in sorted(_entries(folder / budget)[1]):
            found = [name for name in _entries(folder / budget / model)[1] if name.startswith("seed-")]
            for seed in sorted(found, key=lambda name: (len(name), name)):
                path = folder / budget / model / seed
                if "run.json" in _entries(path)[0]:
                    yield Place(_id((*parts, budget, model, seed)), "run", path, _id(parts))


def _entries(folder: Path) -> tuple[set[str], list[str]]:
    """Names of files, and of folders."""
    files, folders = set(), []
    try:
        with os.scandir(folder) as found:
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    folders += [entry.name] if not entry.name.startswith(".") else []
                elif entry.is_file(follow_symlinks=False):
                    files.add(entry.name)
    except OSError:  # gone in the meantime, or not readable
        pass
    return files, folders


def id_of(root: Path, place: Path) -> str:
    """Of a folder in the folder of runs."""
    return _id(place.relative_to(root).parts)


def _id(parts: tuple[str, ...]) -> str:
    """The names of the folders joined by ~, of signs that an address has as they are."""
    return "~".join(quote(os.fsencode(part), safe="").replace("~", "%7E").replace("%", "=") for part in parts)


def _print(path: Path) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
