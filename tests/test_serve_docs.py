"""docs/serving.md in both languages: its limits are those of the code, and so are its options."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from seqloom.cli.serve import command
from seqloom.serve.limits import Limits

DOCS = Path(__file__).parent.parent / "docs"
PAGES = pytest.mark.parametrize("page", [DOCS / "serving.md", DOCS / "zh" / "serving.md"], ids=["en", "zh"])


@PAGES
def test_the_table_of_limits_is_that_of_the_code(page: Path) -> None:
    table = page.read_text(encoding="utf-8").split("<!-- limits -->")[1].split("<!-- /limits -->")[0]
    found = re.findall(r"^\| `(\w+)` \| ([\d,]+) \| \S", table, re.MULTILINE)
    assert {name: float(value.replace(",", "")) for name, value in found} == Limits().facts()


@PAGES
def test_every_option_is_told(page: Path) -> None:
    said = page.read_text(encoding="utf-8")
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        info = parameter.annotation.__metadata__[0]
        names = [name for name in (info.default, *(info.param_decls or ())) if isinstance(name, str)]
        for name in names or [f"--{parameter.name.replace('_', '-')}"]:
            assert f"`{name}`" in said or parameter.name == "runs", name
