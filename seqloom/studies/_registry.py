"""Find studies: the name of the file is the name you type."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from seqloom.core.errors import unknown
from seqloom.runs.registry import names

if TYPE_CHECKING:
    from seqloom.studies._study import Study


def study_names() -> list[str]:
    """By the number of the claim, without importing them; a study without a number stands at the end."""
    return sorted(names("studies"), key=lambda name: (_number(name), name))


def find_study(name: str) -> Study:
    if name not in names("studies"):
        raise unknown("study", name, names("studies"))
    found: Study = import_module(f"seqloom.studies.{name}").STUDY
    return found


def _number(name: str) -> int:
    file = Path(__file__).parent / f"{name}.py"
    found = re.search(r"^    number=(\d+),", file.read_text(encoding="utf-8"), re.MULTILINE)
    return int(found[1]) if found else 10**6
