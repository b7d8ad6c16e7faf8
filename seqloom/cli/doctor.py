"""`seqloom doctor`: find problems in data before training."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from seqloom.cli._options import ColumnNames, Encoding, JsonOutput, data_settings
from seqloom.cli._show import print_findings, show
from seqloom.core.waiting import before_imports


def command(
    data: Annotated[str, typer.Option(help="File, folder or sample:NAME to check.")],
    task: Annotated[str, typer.Option(help="Task the data is for (see `seqloom list tasks`).")] = "language_model",
    columns: ColumnNames = None,
    valid: Annotated[str | None, typer.Option(help="Validation data, to look for overlap with --data.")] = None,
    encoding: Encoding = None,
    override: Annotated[list[str] | None, typer.Option("-o", help="Any data setting: -o data.separator='|'.")] = None,
    as_json: JsonOutput = False,
) -> None:
    """Check data for problems before training. The exit code is 2 if something must be fixed."""
    before_imports(f"examining {data}")
    from seqloom.data.shapes.columns import parse_columns
    from seqloom.runs.doctor import doctor

    options = {"encoding": encoding} | data_settings("the doctor", override or ())
    found = doctor(data, task=task, valid=valid, columns=parse_columns(columns or ()), **options)
    findings = [asdict(finding) for finding in found]
    show({"findings": findings}, as_json, print_findings)
    if any(finding["level"] == "error" for finding in findings):
        raise typer.Exit(2)
