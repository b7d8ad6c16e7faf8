"""The report of a comparison of retrievers: HTML and Markdown, in English and Chinese."""

from __future__ import annotations

from pathlib import Path

from seqloom.core.rows import Json
from seqloom.pages import formats, html, markdown
from seqloom.pages.blocks import (
    Answer,
    Axis,
    Block,
    Cell,
    Chart,
    Code,
    Column,
    Document,
    Panel,
    Points,
    Row,
    Section,
    Series,
    Table,
    Text,
)  # fmt: skip
from seqloom.pages.words import LANGUAGES, Speaker
from seqloom.retrieve.comparison import METRICS, use
from seqloom.retrieve.comparison_words import WORDS


def report_files(result: Json, folder: Path) -> dict[str, bytes]:
    """All files of the report, by name; `folder`: of the comparison, for the command that uses it."""
    documents = {language: document(result, folder, language) for language in LANGUAGES}
    version = str(result["protocol"]["versions"]["seqloom"])
    texts = {
        "report.html": html.render(list(documents.values()), entries=len(result["entries"]), version=version),
        "report.md": markdown.render(documents["en"]),
        "report.zh-CN.md": markdown.render(documents["zh"]),
    }
    return {name: text.encode("utf-8", "backslashreplace") for name, text in texts.items()}


def document(result: Json, folder: Path, language: str) -> Document:
    say = Speaker(language, WORDS)
    words, command = use(result, folder)
    reasons = say.of(result["recommendation"]["reasons"])
    sections: dict[str, list[Block]] = {
        "answer": [_answer(result, say), Code([(say(words), command)]), _chart(result, say)],
        "results": [_table(result, say)],
        "reasons": [Points(say("why"), reasons)] if reasons else [],
        "method": [Text(text) for text in _method(result, say)],
        "commands": [Code([(say("reproduce"), result["command"])])] if result["command"] else [],
    }
    head = {name: formats.count(result[name]) for name in ("documents", "chunks", "queries")}
    head["entries"] = str(len(result["entries"]))
    return Document(
        language,
        say("title", data=Path(result["data"]).name),
        formats.day(result["protocol"]["started"]),
        [(say(name), value) for name, value in head.items()],
        [Section(key, say(key), blocks) for key, blocks in sections.items() if blocks],
    )


def _answer(result: Json, say: Speaker) -> Answer:
    found = result["recommendation"]
    label = say("recommended" if found["certain"] else "recommended for now")
    return Answer(label, found["choice"], "".join(say.of(found["headline"])), "", 0)


def _chart(result: Json, say: Speaker) -> Chart:
    """Scores with their intervals, the best on top."""
    series, ticks = [], []
    for number, entry in enumerate(result["entries"]):
        score = entry["scores"][METRICS[0]]
        mean, low, high = score["mean"], score["low"], score["high"]
        series.append(Series(entry["name"], [mean], [-number], number, [low], [high], "points"))
        ticks.append((float(-number), str(entry["name"])))
    panel = Panel("", Axis("nDCG@10"), Axis("", ticks=ticks, named=True), series)
    return Chart("scores", say("chart"), [panel], [], remark=say("chart remark"))


def _table(result: Json, say: Speaker) -> Table:
    share = formats.percent(1 - result["protocol"]["level"])
    columns = [
        Column(say("retriever"), say("rank"), number=False),
        Column("nDCG@10", say("interval")),
        Column(say("difference"), say("all together", share=share)),
        *(Column(say(name)) for name in METRICS[1:]),
        Column(say("time"), say("median")),
        Column(say("size")),
    ]
    return Table(say("caption"), columns, [_row(number, entry, say) for number, entry in enumerate(result["entries"])])


def _row(number: int, entry: Json, say: Speaker) -> Row:
    score, against = entry["scores"][METRICS[0]], entry["against_best"]
    name = Cell(
        entry["name"], "" if entry["encoder"] else say("no encoder"), against["verdict"], number, str(number + 1)
    )
    reach = "" if against["low"] is None else " … ".join(_signed(against[side]) for side in ("low", "high"))
    return Row(
        [
            name,
            Cell(formats.fixed(score["mean"], 3), "–".join(formats.fixed(score[side], 3) for side in ("low", "high"))),
            Cell(_signed(against["difference"]), reach),
            *(Cell(formats.fixed(entry["scores"][metric]["mean"], 3)) for metric in METRICS[1:]),
            Cell(formats.span(entry["ms_per_query"] / 1000)),
            Cell(formats.scaled(entry["bytes"], "B")),
        ],
        "chosen" if number == 0 else "",
    )


def _signed(value: float | None) -> str:
    return formats.fixed(value, 3, sign=True)


def _method(result: Json, say: Speaker) -> list[str]:
    protocol = result["protocol"]
    left_out = result["absent"] or result["unjudged"]
    share, margin = formats.percent(1 - protocol["level"]), formats.short(protocol["margin"], 2)
    return [
        say("how.scored", queries=formats.count(result["queries"])),
        *([say("how.left out", absent=result["absent"], unjudged=result["unjudged"])] if left_out else []),
        say("how.judged", draws=formats.count(protocol["draws"]), share=share, margin=margin),
        say("how.tuned"),
        say("how.measured", timed=protocol["timed"]),
    ]
