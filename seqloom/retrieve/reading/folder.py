"""The files of a folder that can be read, in a fixed order.

Hidden files and folders, links (which may lead out of the folder, or round in circles), what tools build or install,
and indexes are left out and counted, as are files of other kinds.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from seqloom.core.errors import UserError
from seqloom.data.files import COMPRESSED, check_file

INSTALLED = {"node_modules", "__pycache__", "__pypackages__", "site-packages", "bower_components", "venv", "virtualenv"}
BUILT = {"build", "dist", "out", "target", "vendor"}  # only beside a file that says how to build
BUILDS = {
    "pyproject.toml", "setup.py", "package.json", "cargo.toml", "pom.xml", "build.gradle", "build.gradle.kts",
    "makefile", "cmakelists.txt", "go.mod", "composer.json",
}  # fmt: skip
UNREADABLE = "folders that cannot be read"
AN_INDEX = {"index.json", "catalogue.sqlite"}  # the files of one


def files(folder: Path, known: set[str], names: set[str], skipped: Counter[str]) -> Iterator[tuple[Path, str]]:
    """(path, name relative to the folder with slashes); a single file is a folder of one. `known`: suffixes; `names`:
    files without one."""
    check_file(folder)
    if not folder.is_dir():
        yield folder, folder.name
        return
    waiting = [(folder, "")]
    while waiting:
        parent, prefix = waiting.pop()
        try:
            with os.scandir(parent) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            if parent == folder:
                raise UserError(f"{folder}: {error.strerror or error}") from None
            skipped[UNREADABLE] += 1
            continue
        if AN_INDEX.issubset(entry.name for entry in entries):
            skipped["indexes"] += 1
            continue
        built = BUILT if any(entry.name.lower() in BUILDS for entry in entries) else set()
        folders = []
        for entry in entries:
            if entry.name.startswith("."):
                skipped["hidden files and folders"] += 1
            elif entry.is_symlink():
                skipped["links"] += 1
            elif not _is_text(entry.name):
                skipped["names that are not UTF-8"] += 1
            elif entry.is_dir(follow_symlinks=False):
                if entry.name in INSTALLED or entry.name in built or entry.name.endswith(".egg-info"):
                    skipped[f"{entry.name}/"] += 1
                else:
                    folders.append((Path(entry.path), f"{prefix}{entry.name}/"))
            elif not entry.is_file(follow_symlinks=False):
                skipped["not regular files"] += 1
            elif kind_of(Path(entry.path), known, names) is None:
                skipped[Path(entry.name).suffix.lower() or "no suffix"] += 1
            else:
                yield Path(entry.path), prefix + entry.name
        waiting += reversed(folders)


def kind_of(path: Path, known: set[str], names: set[str]) -> str | None:
    """The suffix that says how a file is read, without that of compression; None: not known."""
    kind = path.suffix.lower()
    if kind in COMPRESSED:
        kind = Path(path.stem).suffix.lower()
        return kind if kind in known - {".pdf", ".docx"} else None
    if kind in known:
        return kind
    return (
        ".txt" if path.stem.lower() in names and (not kind or path.stem.lower() in ("dockerfile", "makefile")) else None
    )


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
