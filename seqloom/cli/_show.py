"""Human-readable output of the commands: tables and sentences, or JSON with --json."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from seqloom.core.rows import Json

_WORD = 24  # longest word, in characters, that is never broken


def show(value: Any, as_json: bool, printer: Callable[[Any], None]) -> None:
    """Print one JSON object, or the readable form."""
    if as_json:
        print(json.dumps(value, ensure_ascii=False, default=str))
    else:
        printer(value)


def print_summary(summary: Json, names: Sequence[str]) -> None:
    """`names`: the scores of the task, in table order."""
    steps = f", {summary['steps']:,} steps" if summary.get("steps") else ""
    print(f"{summary['run']}: {summary['parameters']:,} parameters, {summary['tokens']:,} tokens{steps}, "
          f"{summary['seconds']:.0f} s")  # fmt: skip
    if summary["scores"]:
        print_scores(summary["scores"], names)


def print_scores(scores: dict[str, Json], names: Sequence[str]) -> None:
    rows = []
    names = [name for name in names if any(name in score for score in scores.values())]
    for part, score in scores.items():
        print(f"{part}: {score['protocol']}")
        main = {name: score.get(name) for name in names}
        rows += [{"part": part, "who": "this model", **main}]
        if whole := score.get("float32"):
            rows[-1]["who"] = "this model, int8"
            rows += [{"part": part, "who": "this model, float32", **whole}]
            print(f"int8 changes the perplexity by {score['perplexity'] / whole['perplexity'] - 1:+.2%}")
        rows += [
            {"part": part, "who": f"{name} baseline", **{k: values.get(k) for k in main}}
            for name, values in score.get("baselines", {}).items()
        ]
    print_table(rows)
    for part, score in scores.items():
        if types := score.get("types"):
            print()
            print_table([{"part": part, "type": label, **values} for label, values in types.items()])


def main_scores(score: Json, names: Sequence[str]) -> Json:
    """The scores that a table shows, in this order."""
    return {name: score[name] for name in names if name in score}


def print_comparison(result: Json, report: Path) -> None:
    from rich.console import Console

    from seqloom.compare.report.table import lines, recommendation, use

    width = min(120, Console().width)
    print("\n".join([*lines(result, width), "", *recommendation(result, width), *use(result), f"Report: {report}"]))


def print_texts(prompt: str, texts: list[str]) -> None:
    for number, text in enumerate(texts, 1):
        print(f"--- {number}\n{prompt}{text}")


def print_findings(found: Json) -> None:
    for finding in found["findings"]:
        advice = f" -> {finding['advice']}" if finding["advice"] else ""
        print(f"{finding['level']:>7}  {finding['message']}{advice}")


def print_table(rows: list[Json]) -> None:
    from rich.console import Console
    from rich.table import Table

    if not rows:
        print("nothing found")
        return
    table, console = Table(box=None, header_style="bold", pad_edge=False), Console()
    texts = [[_cell(value) for value in row.values()] for row in rows]
    numeric = [any(isinstance(row[name], int | float) for row in rows) for name in rows[0]]
    least = [_longest_word([*column, name] if number else column)
             for name, number, column in zip(rows[0], numeric, zip(*texts, strict=True), strict=True)]  # fmt: skip
    shown = len(least)
    while sum(least[:shown]) + 2 * shown - 1 > console.width and numeric[shown - 1]:
        shown -= 1  # narrow terminal: drop the last columns rather than truncate numbers
    for name, number, wide in list(zip(rows[0], numeric, least, strict=True))[:shown]:
        title = name.replace("_", " ")
        table.add_column(title, justify="right" if number else "left", overflow="fold", min_width=wide)
    for row in texts:
        table.add_row(*row[:shown])
    console.print(table, markup=False)


def _cell(value: Any) -> str:
    return "-" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)


def _longest_word(texts: Iterable[str]) -> int:
    return min(_WORD, max((len(word) for text in texts for word in text.split()), default=1))
