"""A finished comparison of retrievers."""

from __future__ import annotations

import shlex
import textwrap
from html import escape
from pathlib import Path

from seqloom.core.rows import Json
from seqloom.pages import formats
from seqloom.pages.words import Speaker
from seqloom.retrieve.comparison_words import WORDS

METRICS = ("ndcg@10", "recall@10", "recall@100", "mrr@10")
_WIDTH = 100  # characters of a comparison printed in Python


class RetrieverComparison:
    """`result` holds all results, `report` is the path of the HTML report."""

    def __init__(self, folder: Path, result: Json) -> None:
        self.folder, self.result, self.report = folder, result, folder / "report.html"

    @property
    def best(self) -> str:
        """Name of the recommended retriever."""
        return str(self.result["recommendation"]["choice"])

    @property
    def index(self) -> Path:
        """The index that the recommended retriever searches."""
        return self.folder / str(self.result["entries"][0]["index"])

    def __repr__(self) -> str:
        return "\n".join([*_lines(self.result), "", *advice(self.result, _WIDTH), "", f"Report: {self.report}"])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


def _lines(result: Json) -> list[str]:
    rows = rows_of(result)
    texts = [list(rows[0]), *([f"{v:.3f}" if isinstance(v, float) else str(v) for v in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in texts]


def rows_of(result: Json) -> list[Json]:
    """The table for a terminal, the best first."""
    say = Speaker("en", WORDS)
    rows = []
    for entry in result["entries"]:
        score, against = entry["scores"]["ndcg@10"], entry["against_best"]
        best, reach = against["verdict"] == "best", max(score["high"] - score["mean"], score["mean"] - score["low"])
        rows.append(
            {"retriever": entry["name"], "ndcg@10": f"{formats.fixed(score['mean'], 3)} ±{formats.fixed(reach, 3)}"}
            | {"to best": "" if best else formats.fixed(against["difference"], 3, sign=True)}
            | {"verdict": say.term("verdict", against["verdict"])}
            | {"ms/query": formats.short(entry["ms_per_query"], 3), "index": formats.scaled(entry["bytes"], "B")}
            | {name: entry["scores"][name]["mean"] for name in METRICS[1:]}
        )
    return rows


def advice(result: Json, width: int) -> list[str]:
    """The recommendation as lines of plain text."""
    found, say = result["recommendation"], Speaker("en", WORDS)
    label = say("recommended" if found["certain"] else "recommended for now")
    lines = [f"{label}: {found['choice']}"]
    for text in [*say.of(found["headline"]), *say.of(found["reasons"])]:
        lines += textwrap.wrap(text, width, initial_indent="  - ", subsequent_indent="    ")
    return lines


def use(result: Json, folder: Path) -> tuple[str, str]:
    """How to search as the recommended retriever does: which words to say of it, and the command. `ask` searches an
    index with an encoder by both."""
    best = result["entries"][0]
    place = str(folder / str(best["index"]))
    if best["by"] == "dense":
        return "use in Python", f'seqloom.retrieve.index.Index.open({place!r}).search("QUESTION", by="dense")'
    return "use", shlex.join(["seqloom", "ask", place, "QUESTION"])
