"""Built-in texts that need no download: they come with every Python interpreter."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

PASSED_OVER = {"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3", "turtledemo", "__pycache__"}


def python_docs() -> Iterator[str]:
    from pydoc_data.topics import topics

    for title in sorted(topics):
        yield f"{title}\n{topics[title].strip()}\n\n"


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


SAMPLES: dict[str, tuple[str, Callable[[], Iterator[str]]]] = {
    "python-docs": ("the interpreter's own help topics, about 0.5 MB of English", python_docs),
    "python-source": ("the standard library's source, about 11 MB of Python", python_source),
}
