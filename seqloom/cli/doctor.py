"""`seqloom doctor`: find problems in data before training."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from seqloom.cli._options import Encoding, JsonOutput, data_settings
from seqloom.cli._show import print_findings, show
from seqloom.core.rows import Json


def command(
    data: Annotated[str, typer.Option(help="File, folder or sample:NAME to check.")],
    task: Annotated[str, typer.Option(help="Task the data is for (see `seqloom list tasks`).")] = "language_model",
    column: Annotated[str | None, typer.Option(help="JSONL, CSV: text column.")] = None,
    source: Annotated[str | None, typer.Option(help="Pairs: source column, or its number without a header.")] = None,
    target: Annotated[str | None, typer.Option(help="Pairs: target column, or its number without a header.")] = None,
    label: Annotated[str | None, typer.Option(help="Labelled: label column.")] = None,
    second: Annotated[str | None, typer.Option(help="Labelled: column of the second text.")] = None,
    separator: Annotated[str | None, typer.Option(help="Labelled: separator between several labels.")] = None,
    word: Annotated[int | None, typer.Option(help="CoNLL: word column; -1: the last.")] = None,
    tag: Annotated[int | None, typer.Option(help="CoNLL: tag column; -1: the last.")] = None,
    valid: Annotated[str | None, typer.Option(help="Validation data, to look for overlap with --data.")] = None,
    encoding: Encoding = None,
    override: Annotated[list[str] | None, typer.Option("-o", help="Any data setting, e.g. -o data.time=date.")] = None,
    as_json: JsonOutput = False,
) -> None:
    """Check data for problems before training. The exit code is 2 if something must be fixed."""
    from seqloom.runs.doctor import doctor

    columns: Json = {
        "column": column, "source": source, "target": target, "label": label, "second": second,
        "separator": separator, "word": word, "tag": tag, "encoding": encoding,
    }  # fmt: skip
    given = {name: value for name, value in columns.items() if value is not None} | data_settings(
        "the doctor", override or ()
    )
    findings = [asdict(finding) for finding in doctor(data, task=task, valid=valid, **given)]
    show({"findings": findings}, as_json, print_findings)
    if any(finding["level"] == "error" for finding in findings):
        raise typer.Exit(2)
