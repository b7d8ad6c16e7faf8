"""Human-readable output of the commands: tables and sentences, or JSON with --json."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from seqloom.cli._table import print_table
from seqloom.core.rows import Json
from seqloom.core.waiting import clear


def show(value: Any, as_json: bool, printer: Callable[[Any], None]) -> None:
    """Print one JSON object, or the readable form."""
    clear()
    if as_json:
        print(json.dumps(value, ensure_ascii=False, default=str))
    else:
        printer(value)


def print_summary(summary: Json, names: Sequence[str]) -> None:
    """`names`: the scores of the task, in table order."""
    from seqloom.runs.shown import size

    steps = f", {summary['steps']:,} steps" if summary.get("steps") else ""
    print(f"{summary['run']}: {size(summary)}, {summary['tokens']:,} tokens{steps}, {summary['seconds']:.0f} s")
    if summary["scores"]:
        print_scores(summary["scores"], names)


def print_scores(scores: dict[str, Json], names: Sequence[str]) -> None:
    """`names`: the scores that a table shows, in this order."""
    rows = []
    names = [name for name in names if any(name in score for score in scores.values())]
    for part, score in scores.items():
        _print_sentence(f"{part}: {score['protocol']}")
        main = {name: score.get(name) for name in names}
        rows += [{"part": part, "who": "this model", **main}]
        if whole := score.get("float32"):
            rows[-1]["who"] = "this model, int8"
            rows += [{"part": part, "who": "this model, float32", **{name: whole.get(name) for name in main}}]
        rows += [
            {"part": part, "who": f"{name} baseline", **{k: values.get(k) for k in main}}
            for name, values in score.get("baselines", {}).items()
        ]
    print_table(rows)
    for part, score in scores.items():
        if types := score.get("types"):
            print()
            print_table([{"part": part, "type": label, **values} for label, values in types.items()])


def print_difference(name: str, int8: Json, float32: Json) -> None:
    """What quantising the weights did to one score."""
    after, before = int8.get(name), float32.get(name)
    if after is not None and before is not None:
        share = f" ({after / before - 1:+.2%})" if before else ""
        print(f"int8 changes the {name.replace('_', ' ')} by {after - before:+.4f}{share}")


def _print_sentence(text: str) -> None:
    """In a terminal, wrapped between words."""
    if sys.stdout.isatty():
        from rich.console import Console

        text = "\n".join(textwrap.wrap(text, Console().width, subsequent_indent="  "))
    print(text)


def main_scores(score: Json, names: Sequence[str]) -> Json:
    """The scores that a table shows, in this order."""
    return {name: score[name] for name in names if name in score}


def print_comparison(result: Json, report: Path) -> None:
    from rich.console import Console

    from seqloom.compare.report.table import lines, notes, recommendation, use

    width = min(120, Console().width)
    found = [*lines(result, width), *notes(result, width), "", *recommendation(result, width), *use(result)]
    print("\n".join([*found, f"Report: {report}"]))


def print_texts(prompt: str, texts: list[str]) -> None:
    for number, text in enumerate(texts, 1):
        print(f"--- {number}\n{prompt}{text}")


def print_findings(found: Json) -> None:
    for finding in found["findings"]:
        advice = f" -> {finding['advice']}" if finding["advice"] else ""
        print(f"{finding['level']:>7}  {finding['message']}{advice}")
