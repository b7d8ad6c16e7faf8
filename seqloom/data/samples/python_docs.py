"""Python's built-in help topics."""

from __future__ import annotations

from collections.abc import Iterator

from seqloom.data.samples.sample import Sample


def python_docs() -> Iterator[str]:
    from pydoc_data.topics import topics

    for title in sorted(topics):
        yield f"{title}\n{topics[title].strip()}\n\n"


SAMPLES = {"python-docs": Sample("text", "Python's built-in help topics, about 0.5 MB of English", python_docs)}
