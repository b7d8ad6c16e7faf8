"""Run folders of estimators: temporary ones, and their files inside a pickle."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seqloom.runs.run import Run

_NEEDLESS = ("checkpoints", ".lock")  # to use a finished run


@contextmanager
def folder(out: str | Path | None) -> Iterator[Path]:
    """The folder given, or a new one, which does not stay if training fails."""
    if out is not None:
        yield Path(out)
        return
    made = Path(tempfile.mkdtemp(prefix="seqloom-"))
    try:
        yield made / "run"
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise


def until_unused(run: Run) -> None:
    """The folder goes with the run, or when Python ends; its checkpoints go at once."""
    path = run.folder.path
    shutil.rmtree(path / "checkpoints", ignore_errors=True)
    weakref.finalize(run, _remove, path.parent, os.getpid())


def pack(path: Path) -> dict[str, bytes]:
    """The files of a finished run by their path in its folder."""
    files = (file for file in sorted(path.rglob("*")) if file.is_file())
    names = {file.relative_to(path): file for file in files}
    return {name.as_posix(): file.read_bytes() for name, file in names.items() if name.parts[0] not in _NEEDLESS}


def unpack(files: dict[str, bytes]) -> Run:
    from seqloom.runs.run import load

    with folder(None) as place:
        for name, content in files.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(content)
        run = load(place)
    until_unused(run)
    return run


def _remove(path: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked process that ends must not take its parent's folder along
        shutil.rmtree(path, ignore_errors=True)
