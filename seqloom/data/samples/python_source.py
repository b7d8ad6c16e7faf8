"""The standard library's source."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from pathlib import Path

from seqloom.data.samples.sample import Sample

PASSED_OVER = {"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3", "turtledemo", "__pycache__"}


def python_source() -> Iterator[str]:
    library = Path(sysconfig.get_path("stdlib"))
    paths = (path.relative_to(library) for path in library.rglob("*.py"))
    for path in sorted((p for p in paths if PASSED_OVER.isdisjoint(p.parts)), key=Path.as_posix):
        try:
            text = (library / path).read_text(encoding="utf-8")
        except (UnicodeDecodeError, OSError):
            continue
        if text and "\0" not in text:
            yield text if text.endswith("\n") else text + "\n"


SAMPLES = {"python-source": Sample("text", "the standard library's source, about 11 MB of Python", python_source)}
