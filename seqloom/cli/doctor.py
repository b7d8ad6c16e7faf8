"""`seqloom doctor`: what is wrong with data, before any training."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Annotated, Any

import typer

from seqloom.cli._options import Json
from seqloom.cli._show import print_findings, show
from seqloom.core.config import parse_overrides
from seqloom.core.errors import UserError


def command(
    data: Annotated[str, typer.Option(help="File, folder or sample:NAME to look at.")],
    task: Annotated[str, typer.Option(help="What it is for.")] = "language_model",
    column: Annotated[str | None, typer.Option(help="Column with the text, in JSONL and CSV files.")] = None,
    source: Annotated[
        str | None, typer.Option(help="Pairs: column with the source, or its number without a header.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Pairs: column with the target, or its number without a header.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Labelled: column with the label.")] = None,
    second: Annotated[str | None, typer.Option(help="Labelled: column with a second text.")] = None,
    separator: Annotated[str | None, typer.Option(help="Labelled: what separates several labels.")] = None,
    word: Annotated[int | None, typer.Option(help="CoNLL: column of the words; -1 is the last.")] = None,
    tag: Annotated[int | None, typer.Option(help="CoNLL: column of the tags; -1 is the last.")] = None,
    valid: Annotated[str | None, typer.Option(help="Validation data, to see what is in both.")] = None,
    override: Annotated[
        list[str] | None, typer.Option("-o", help="Any setting of the data, e.g. -o data.time=date.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Look for mistakes in a file before any training. Exit code 2 when something must be mended."""
    from seqloom.runs.doctor import doctor

    columns: dict[str, Any] = {
        "column": column, "source": source, "target": target, "label": label, "second": second,
        "separator": separator, "word": word, "tag": tag,
    }  # fmt: skip
    given = {name: value for name, value in columns.items() if value is not None} | _data_settings(override or ())
    findings = [asdict(finding) for finding in doctor(data, task=task, valid=valid, **given)]
    show({"findings": findings}, as_json, print_findings)
    if any(finding["level"] == "error" for finding in findings):
        raise typer.Exit(2)


def _data_settings(overrides: Iterable[str]) -> dict[str, Any]:
    """`data.time=date` as an option; there are none of other sections."""
    settings = parse_overrides(overrides)
    if strange := [path for path in settings if not path.startswith("data.")]:
        raise UserError(f"-o {strange[0]}: the doctor looks at data; its settings begin with data.")
    return {path.removeprefix("data."): value for path, value in settings.items()}
