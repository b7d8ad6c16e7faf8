"""A finished diagnosis: its figures, one sentence about each model, and how it prints itself."""

from __future__ import annotations

import textwrap
from html import escape
from pathlib import Path

from seqloom.core.rows import Json
from seqloom.diagnose.words import WORDS
from seqloom.pages import formats
from seqloom.pages.words import Speaker

FILE = "diagnosis.json"
VERDICTS = ("solved", "trained", "part", "guess", "failed")  # in the order of a sentence
_WIDTH = 100  # characters of a diagnosis printed in Python


class Diagnosis:
    """`result` holds all figures, `report` is the path of the page."""

    def __init__(self, folder: Path, result: Json) -> None:
        self.folder, self.result, self.report = folder, result, folder / "report.html"

    def __repr__(self) -> str:
        return "\n".join([*table(self.result), "", *sentences(self.result, _WIDTH), "", f"Report: {self.report}"])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


def rows_of(result: Json) -> list[Json]:
    """The table for a terminal: accuracy in percent, the best seed and the median."""
    return [
        {"model": model["name"]} | {name: _both(found) for name, found in model["problems"].items()}
        for model in result["models"]
    ]


def table(result: Json) -> list[str]:
    rows = rows_of(result)
    texts = [list(rows[0]), *([str(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in texts]


def sentences(result: Json, width: int) -> list[str]:
    """One sentence about each model, and the comparison with published figures, as lines of plain text."""
    say = Speaker("en", WORDS)
    told = [sentence(model, result, say) for model in result["models"]]
    told += agreements(result, say, agree=False)
    return [line for text in told for line in textwrap.wrap(text, width, subsequent_indent="  ")]


def sentence(model: Json, result: Json, say: Speaker) -> str:
    """What the figures of a model say, and no more than that."""
    parts = []
    for kind in VERDICTS:
        chosen = [p for p in result["problems"] if model["problems"][p["name"]]["verdict"] == kind]
        named = [_named(problem, model["problems"][problem["name"]], say) for problem in chosen]
        if named:
            parts.append(say(f"sentence.{kind}", problems=say("list").join(named)))
    return say("sentence", name=model["name"], parts=say("semicolon").join(parts))


def agreements(result: Json, say: Speaker, agree: bool) -> list[str]:
    """A sentence for each published figure that the measured one agrees with, or differs from."""
    told = []
    for problem in result["problems"]:
        for model in result["models"]:
            found = model["problems"][problem["name"]]
            for other in found.get("published", ()):
                if other["agrees"] == agree:
                    told.append(
                        say(
                            "agrees" if agree else "differs", problem=say.pick(problem["title"]), name=model["name"],
                            ours=percent(found["best"]), theirs=percent(other["accuracy"]), called=other["called"],
                            source=other["source"],
                        )
                    )  # fmt: skip
    return told


def percent(share: float | None) -> str:
    return formats.NONE if share is None else f"{formats.fixed(100 * share, 1)} %"


def _named(problem: Json, found: Json, say: Speaker) -> str:
    title = say.pick(problem["title"]).lower()
    if "best" not in found:
        return title
    shown = found["trained"]["best"] if found["verdict"] == "trained" else found["best"]
    return say("figure", title=title, share=percent(shown))


def _both(found: Json) -> str:
    if "best" not in found:
        return "failed"
    return f"{formats.fixed(100 * found['best'], 1)} / {formats.fixed(100 * found['median'], 1)}"
