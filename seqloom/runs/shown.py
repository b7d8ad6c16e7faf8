"""A run as people see it in Python: what was trained on what, and its scores beside those of the baselines."""

from __future__ import annotations

from html import escape

from seqloom.core.rows import Json
from seqloom.core.task import AnyTask
from seqloom.data.memory import title
from seqloom.runs.settings import RunConfig

Table = list[list[str]]


def as_text(path: str, config: RunConfig, summary: Json, task: AnyTask) -> str:
    lines = [_headline(path, config, summary)]
    if table := _table(summary, task):
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for row in table:
            cells = [
                cell.ljust(w) if n < 2 else cell.rjust(w) for n, (cell, w) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def as_html(path: str, config: RunConfig, summary: Json, task: AnyTask) -> str:
    found = f"<p>{escape(_headline(path, config, summary))}</p>"
    if table := _table(summary, task):
        head, *rows = ("".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row)
                       for tag, row in zip(["th"] + ["td"] * len(table), table, strict=False))  # fmt: skip
        found += (
            f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(f'<tr>{row}</tr>' for row in rows)}</tbody></table>"
        )
    return found


def _headline(path: str, config: RunConfig, summary: Json) -> str:
    what = f"{path}: {config.model['name']} for {config.task['name']} on {title(config.data['train'])}"
    if not summary:
        return f"{what}; not finished"
    steps = f", {summary['steps']:,} steps" if summary.get("steps") else ""
    return f"{what}; {size(summary)}{steps}, {summary['seconds']:.0f} s"


def size(summary: Json) -> str:
    """`12,345 parameters`, and how many were trained if not all; of a model that counts, `12,345 stored values`."""
    every, trained = summary["parameters"], summary.get("trained_parameters", 0)
    if not every and summary.get("stored"):
        return f"{summary['stored']:,} stored values"
    return f"{every:,} parameters" + (f" ({trained:,} trained)" if 0 < trained < every else "")


def _table(summary: Json, task: AnyTask) -> Table:
    """The task's scores on each part, and those of its baselines."""
    parts: Json = summary.get("scores", {})
    names = [score.name for score in task.scores if any(score.name in found for found in parts.values())]
    rows = []
    for part, found in parts.items():
        beside = {f"{name} baseline": scores for name, scores in found.get("baselines", {}).items()}
        for who, scores in ({"this model": found} | beside).items():
            rows.append([part, who, *(_cell(scores.get(name)) for name in names)])
    return [["part", "", *(name.replace("_", " ") for name in names)], *rows] if rows else []


def _cell(value: object) -> str:
    return "-" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)
