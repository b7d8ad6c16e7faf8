"""What a user hands to a Python function: data as a path or in memory, settings as names, dicts and keywords."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from seqloom.core.config import as_overrides, merge, parse_overrides
from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.core.toml import read_toml
from seqloom.data.memory import Data, Layout, Stored, guess, is_path, store
from seqloom.data.shapes import find_shape
from seqloom.runs.guess import guess_task
from seqloom.runs.registry import find_config

Named = str | Mapping[str, object] | None  # a name, or a dict of options with "name" among them
Section = Mapping[str, object] | None
Parts = Mapping[str, Data]  # train, valid, test


@dataclass(frozen=True)
class Placed:
    """Data as files, the task if it is known, and the settings with which the files are read."""

    specs: dict[str, str]
    task: str | None
    overrides: list[str]

    @property
    def data_options(self) -> Json:
        return section(self.overrides, "data")


def settings(overrides: Iterable[str], options: Section = None, **sections: Named) -> tuple[dict[str, str], list[str]]:
    """The names among the sections, and everything else as overrides; `overrides` of the command line win."""
    names: dict[str, str] = {}
    found: dict[str, Json] = {}
    for section, given in {**sections, "options": options}.items():
        if not (given is None or isinstance(given, Mapping) or (isinstance(given, str) and section != "options")):
            raise UserError(f"{section}: give a dict of options, such as {{'steps': 200}}, not {type(given).__name__}")
    for section, given in sections.items():
        if isinstance(given, str):
            names[section] = given
        elif given is not None:
            found[section] = {option: value for option, value in given.items() if option != "name"}
            names |= {section: str(given["name"])} if "name" in given else {}
    return names, [*as_overrides(found, options or {}), *overrides]


def place(parts: Parts, task: str | None, overrides: Iterable[str], recipe: str | Path | None = None) -> Placed:
    """Data in memory as files; paths as they are. Without a task, the form of the data shows it."""
    known = {name: data for name, data in parts.items() if data is not None}
    if all(is_path(data) for data in known.values()):
        return Placed({name: str(data) for name, data in known.items()}, task, [])
    if task is None and recipe is not None:
        task = merge(read_toml(Path(recipe))).get("task", {}).get("name")
    if task is None:
        task = _guessed(known.get("train", next(iter(known.values()))))
    layout = find_shape(find_config("tasks", task).shape({})).layout(section(overrides, "data"))
    stored = {name: Stored(str(data)) if is_path(data) else store(data, layout) for name, data in known.items()}
    needed = {path: value for one in stored.values() for path, value in one.settings.items()}
    return Placed({name: one.spec for name, one in stored.items()}, task, as_overrides(needed))


def check_place(out: Path, specs: Iterable[str]) -> None:
    """Refuse a folder for a new run that is the root of the file system, or whose files would be read as data."""
    place = Path(os.path.realpath(out))
    if (place / "run.json").exists():
        return
    if place == place.parent:
        raise UserError(f"{out}: the root of the file system; name a folder for the run")
    for spec in specs:
        data = Path(os.path.realpath(spec))
        if data.is_dir() and data in (place, *place.parents):
            raise UserError(f"{out}: in the data folder {spec}, which would change with the run; choose another --out")


def section(overrides: Iterable[str], name: str) -> Json:
    """The options of one section among overrides."""
    given = parse_overrides(overrides)
    return {path.removeprefix(f"{name}."): value for path, value in given.items() if path.startswith(f"{name}.")}


def _guessed(data: Data) -> str:
    """The task that the form of the data shows, or the columns of a table."""
    if is_path(data):
        return guess_task(str(data))[0][0]
    if found := guess(data):
        return found
    tasks = guess_task(store(data, Layout()).spec)
    if not tasks:
        raise UserError("data: it does not show what is to be learned from it; say so with task=")
    return tasks[0][0]
