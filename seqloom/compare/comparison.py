"""A finished comparison, and how its recommendation is used."""

from __future__ import annotations

import shlex
from functools import cached_property
from html import escape
from pathlib import Path

from seqloom.compare.report import table
from seqloom.core.rows import Json
from seqloom.runs.run import Run, load
from seqloom.runs.winner import winner

_WIDTH = 100  # characters of a comparison printed in Python


class Comparison:
    """A finished comparison: `result` holds all results, `report` is the path of the HTML report."""

    def __init__(self, folder: Path, result: Json) -> None:
        self.folder, self.result, self.report = folder, result, folder / "report.html"

    def __repr__(self) -> str:
        lines = [
            *table.lines(self.result, _WIDTH),
            *table.notes(self.result, _WIDTH),
            "",
            *table.recommendation(self.result, _WIDTH),
        ]
        return "\n".join([*lines, "", f"Report: {self.report}"])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"

    @property
    def best(self) -> str | None:
        """Name of the recommended model; None if there is no recommendation."""
        choice: str | None = self.result["recommendation"]["choice"]
        return choice

    @cached_property
    def run(self) -> Run:
        """The run to use, loaded: of the recommended model or, without a recommendation, of the one that the report
        names first."""
        return load(winner(self.folder).run)


def use_command(verb: str, out: Path, data: str) -> str:
    """The command that uses the recommended model on new data of the same kind."""
    new = "NEW" if data.startswith("sample:") else f"NEW{Path(data.partition(',')[0]).suffix}"
    given = ["--prompt", "TEXT"] if verb == "generate" else ["--data", new]
    return shlex.join(["seqloom", verb, str(out), *given])
