"""The source code of the standard library."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from pathlib import Path

from seqloom.data.samples.sample import Sample

SKIPPED = {"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3", "turtledemo", "__pycache__"}


def python_source() -> Iterator[str]:
    library = Path(sysconfig.get_path("stdlib"))
    paths = (path.relative_to(library) for path in library.rglob("*.py"))
    for path in sorted((p for p in paths if SKIPPED.isdisjoint(p.parts)), key=Path.as_posix):
        try:
            text = (library / path).read_text(encoding="utf-8")
        except (UnicodeDecodeError, OSError):
            continue
        if text and "\0" not in text:
            yield text if text.endswith("\n") else text + "\n"


SAMPLES = {"python-source": Sample("text", "the source code of Python's standard library, about 11 MB", python_source)}
