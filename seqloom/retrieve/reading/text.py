"""Plain text and source code: the text is the file itself, and a place is a line.

The file is decoded as everywhere in seqloom. A byte order mark is dropped and every line ending becomes \\n: lines
stay the same, so a place is found again whatever wrote the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from seqloom.retrieve.document import Document
from seqloom.retrieve.reading.limits import whole_text

PROSE = {".txt", ".text", ".log", ".rst", ".adoc", ".org", ".tex", ".srt", ".vtt"}
CODE = {
    ".py", ".pyi", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".java", ".kt", ".kts", ".scala", ".groovy",
    ".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".cs", ".go", ".rs", ".swift", ".m", ".mm", ".rb", ".php",
    ".pl", ".pm", ".lua", ".r", ".jl", ".dart", ".ex", ".exs", ".erl", ".hs", ".ml", ".mli", ".fs", ".clj", ".el",
    ".lisp", ".scm", ".vim", ".sh", ".bash", ".zsh", ".fish", ".ps1", ".bat", ".cmd", ".sql", ".graphql", ".proto",
    ".toml", ".yaml", ".yml", ".json", ".ini", ".cfg", ".conf", ".properties", ".xml", ".xsd", ".css", ".scss",
    ".less", ".vue", ".svelte", ".cmake", ".mk", ".gradle", ".tf", ".diff", ".patch", ".asm", ".s", ".f90", ".cu",
}  # fmt: skip
NAMES = {  # files of text without a suffix
    "readme", "license", "licence", "copying", "notice", "authors", "contributors", "changelog", "changes", "news",
    "install", "todo", "makefile", "dockerfile", "jenkinsfile", "gemfile", "rakefile", "vagrantfile", "procfile",
}  # fmt: skip


def line_marks(text: str) -> tuple[tuple[int, int], ...]:
    """The offset at which each line begins, and its number."""
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    return tuple(zip(starts, count(1), strict=False))


def read(path: Path, name: str) -> Iterator[Document]:
    text = whole_text(path)
    yield Document(name, text, path.name, "line", line_marks(text))
