"""Recipe or architecture: which of the two affects the score more?"""

from __future__ import annotations

from statistics import median

from seqloom.compare.report import facts
from seqloom.compare.report.facts import Result
from seqloom.pages import formats
from seqloom.pages.blocks import Block, Cell, Column, Row, Table, Text
from seqloom.pages.words import Speaker


def section(result: Result, say: Speaker) -> list[Block | None]:
    """The table of entries by recipes, and which of the two affects the score more."""
    names, table = _recipes(result)
    if len(names) < 2:
        return []
    numbers = {str(entry.get("name")): number for number, entry in facts.entries(result)}
    places = formats.places(score for row in table.values() for score in row.values())
    best = max if facts.higher_is_better(result) else min
    rows = []
    for entry, scores in table.items():
        top = best(scores.values())
        cells = [
            Cell(formats.fixed(scores.get(name), places), mark="top" if scores.get(name) == top else "")
            for name in names
        ]
        gap = Cell(formats.fixed(_spread(scores), places))
        rows.append(Row([Cell(entry, entry=numbers.get(entry)), *cells, gap]))
    columns = [Column(say("model"), number=False), *map(Column, names), Column(say("spread"))]
    blocks: list[Block | None] = [Table(say("recipe caption"), columns, rows)]
    found = spreads(result)
    if found:
        within, between = found
        more = "both count" if between <= 1.25 * within <= 1.25**2 * between else (
            "recipe counts more" if within > between else "architecture counts more"
        )  # fmt: skip
        sentence = say("spreads", within=formats.fixed(within, places), between=formats.fixed(between, places))
        blocks.insert(0, Text(f"{sentence}{'' if say.language == 'zh' else ' '}{say(more)}", "lead"))
    return blocks


def _recipes(result: Result) -> tuple[list[str], dict[str, dict[str, float]]]:
    """The recipes, and the best validation score of each entry with each recipe."""
    table: dict[str, dict[str, float]] = {}
    for row in facts.listed(result, "recipe_table"):
        if row.get("score") is not None:
            table.setdefault(str(row["entry"]), {})[str(row["recipe"])] = row["score"]
    return sorted({recipe for row in table.values() for recipe in row}), table


def _spread(scores: dict[str, float]) -> float | None:
    return max(scores.values()) - min(scores.values()) if len(scores) > 1 else None


def spreads(result: Result) -> tuple[float, float] | None:
    """Range over recipes within an architecture (median), and range over architectures at their best recipe."""
    _, table = _recipes(result)
    within = [found for row in table.values() if (found := _spread(row)) is not None]
    if not within or len(table) < 2:
        return None
    best = [max(row.values()) if facts.higher_is_better(result) else min(row.values()) for row in table.values()]
    return median(within), max(best) - min(best)
