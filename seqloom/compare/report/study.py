"""The report of a study over several data sets: which entry ranks best, and whether that could be luck."""

from __future__ import annotations

import unicodedata
from urllib.parse import quote

from seqloom.compare.report import facts
from seqloom.compare.report.facts import dig, listed
from seqloom.compare.report.study_words import speaker
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

Study = Json


def report_files(study: Study) -> dict[str, bytes]:
    """All files of the report, by name."""
    documents = {language: document(study, language) for language in LANGUAGES}
    version = str(dig(study, "protocol", "versions", "seqloom") or "")
    texts = {
        "report.html": html.render(list(documents.values()), entries=len(listed(study, "entries")), version=version),
        "report.md": markdown.render(documents["en"]),
        "report.zh-CN.md": markdown.render(documents["zh"]),
    }
    return {name: text.encode("utf-8", "backslashreplace") for name, text in texts.items()}


def document(study: Study, language: str) -> Document:
    say, sets = speaker(language), listed(study, "data")
    sections: dict[str, list[Block]] = {
        "answer": [answer(study, say), Points(say("figures"), conclusion(study, say)[1:])],
        "ranks": [rank_table(study, say), diagram(study, say)] if listed(study, "entries") else [],
        "scores": [score_table(study, say)],
        "pairs": [pair_table(study, say)] if dig(study, "tests", "possible") else [],
        "left out": [left_out(study, say)] if listed(study, "left_out") else [],
        "method": [Text(text) for text in method(study, say)],
        "commands": _commands(study, say),
    }
    seeds = sorted({row["seeds"] for row in sets if row.get("seeds")})
    headline = [
        (say("task"), say.pick(facts.task_title(study))),
        (say("metric"), say.pick(facts.score_title(study))),
        (say("data sets"), str(len(sets))),
        (say("entries"), str(len(listed(study, "entries")))),
        (say("seeds"), "–".join(str(seed) for seed in dict.fromkeys([seeds[0], seeds[-1]])) if seeds else ""),
    ]
    return Document(
        language,
        say("title", count=len(sets)),
        formats.day(dig(study, "protocol", "started")),
        [(name, value) for name, value in headline if value],
        [Section(key.replace(" ", "-"), say(key), blocks) for key, blocks in sections.items() if blocks],
    )


def conclusion(study: Study, say: Speaker) -> list[str]:
    """What the figures support, and nothing more."""
    entries, sets = listed(study, "entries"), len(listed(study, "data"))
    if not entries:
        return [say("none finished")]
    if len(entries) == 1:
        return [say("alone", name=entries[0]["name"], sets=sets)]
    common = {"rank": _rank(entries[0]["mean_rank"]), "entries": len(entries), "sets": sets}
    leaders = _leaders(study)
    if len(leaders) > 1:
        lead = say("share", names=_listing(leaders, say), **common)
    else:
        lead = say("leads", name=leaders[0], first=entries[0]["first_on"], **common)
    return [lead, *_verdicts(study, say), say("scope")]


def _verdicts(study: Study, say: Speaker) -> list[str]:
    tests, level = study["tests"], formats.short(dig(study, "protocol", "level"))
    if not tests["possible"]:
        smallest = formats.short(tests["smallest_p"], 2)
        found = {"pairs": len(tests["pairs"]), "smallest": smallest, "level": level, "needed": tests["needed"]}
        return [say("no test", sets=len(listed(study, "data")), **found)]
    overall, sentences = tests["friedman"], []
    if overall is not None:
        differ = overall < dig(study, "protocol", "level")
        sentences.append(say("differ" if differ else "no difference", p=formats.chance(overall)))
        if not differ:
            return sentences
    best = listed(study, "entries")[0]["name"]
    mine = [pair for pair in tests["pairs"] if pair["first"] == best]
    for pair in (pair for pair in mine if pair["different"]):
        worse = pair["second"] if pair["better"] == best else best
        sentences.append(say("better", better=pair["better"], worse=worse, p=formats.chance(pair["p"])))
    if same := [str(pair["second"]) for pair in mine if not pair["different"]]:
        sentences.append(say("not told apart", name=best, others=_listing(same, say)))
    return sentences


def answer(study: Study, say: Speaker) -> Answer:
    leaders, sentences = _leaders(study), conclusion(study, say)
    title = say("comma").join(leaders) if leaders else say("nothing")
    number = 0 if len(leaders) == 1 else None
    return Answer(say("best") if leaders else say("answer"), title, "".join(sentences[:1]), "", number)


def rank_table(study: Study, say: Speaker) -> Table:
    share = formats.percent(dig(study, "protocol", "confidence"))
    direction = say("higher" if facts.higher_is_better(study) else "lower")
    columns = [
        Column(say("model"), number=False),
        Column(say("mean rank"), say("lowest is best")),
        Column(say("first on"), say("of data sets")),
        Column(say("relative"), say("relative small", share=share, direction=direction)),
        Column(say("p"), say("holm")),
    ]
    rows = [
        Row([
            Cell(str(entry["name"]), entry=number),
            Cell(_rank(entry["mean_rank"])),
            Cell(str(entry["first_on"])),
            _relative(entry, number == 0),
            Cell("" if number == 0 else formats.chance(entry["p"]) or formats.NONE),
        ])
        for number, entry in enumerate(listed(study, "entries"))
    ]  # fmt: skip
    return Table(say("ranks caption", sets=len(listed(study, "data"))), columns, rows)


def diagram(study: Study, say: Speaker) -> Chart:
    """A critical-difference diagram with a row for each entry, so that names of any length fit a narrow screen."""
    entries, groups = listed(study, "entries"), listed(study, "tests", "groups")
    series = []
    for row, entry in enumerate(entries):
        name, single = str(entry["name"]), [float(rank) for rank in entry["ranks"]]
        series.append(Series(name, single, [-row - 0.28] * len(single), row, draw="faint"))
        series.append(Series(name, [entry["mean_rank"]], [-row], row, draw="points"))
    means = {str(entry["name"]): entry["mean_rank"] for entry in entries}
    ticks = [(float(-row), short_name(entry["name"])) for row, entry in enumerate(entries)]
    for place, group in enumerate(groups, len(entries)):
        ends = [means[group[0]], means[group[-1]]]
        series.append(Series(_listing(group, say), ends, [-place, -place], draw="bar"))
        ticks.append((float(-place), say("group")))
    marks = [(float(rank), str(rank)) for rank in range(1, len(entries) + 1)]
    axis = Axis(say("mean rank"), ticks=marks, format=".3~r", range=(0.8, len(entries) + 0.2))
    tested = dig(study, "tests", "possible")
    remark = "diagram remark" if groups else "diagram remark apart" if tested else "diagram remark untested"
    panel = Panel("", axis, Axis("", ticks=ticks, named=True), series)
    return Chart("diagram", say("diagram"), [panel], [], remark=say(remark))


def score_table(study: Study, say: Speaker) -> Table:
    """Data sets by entries, with ranks, and a link to the report of each."""
    entries, sets = listed(study, "entries"), listed(study, "data")
    mixed = len({row.get("metric") for row in sets}) > 1
    rows = []
    for place, row in enumerate(sets):
        decimals = formats.places(entry["scores"][place] for entry in entries)
        best = min((entry["ranks"][place] for entry in entries), default=0)
        choice = say("recommended", name=row["choice"]) if row.get("choice") else say("no recommendation")
        metric = say.pick(facts.score_title(study, str(row["metric"]))) + say("semicolon") if mixed else ""
        cells = [
            Cell(
                formats.fixed(entry["scores"][place], decimals), say("rank", rank=_rank(entry["ranks"][place])),
                "top" if entry["ranks"][place] == best else "",
            )
            for entry in entries
        ]  # fmt: skip
        name = Cell(str(row["name"]), metric + choice, link=f"{quote(str(row['folder']))}/report.html")
        rows.append(Row([name, *cells]))
    direction = say("higher" if facts.higher_is_better(study) else "lower")
    caption = say("scores caption", metric=say.pick(facts.score_words(study)), direction=direction)
    columns = [Column(say("data"), number=False), *(Column(str(entry["name"])) for entry in entries)]
    return Table(caption[:1].upper() + caption[1:], columns, rows)


def pair_table(study: Study, say: Speaker) -> Table:
    rows = [
        Row([
            Cell(f"{pair['first']} – {pair['second']}"),
            Cell(formats.chance(pair["p"])),
            Cell(say("is better", name=pair["better"]) if pair["different"] else say("no verdict")),
        ])
        for pair in listed(study, "tests", "pairs")
    ]  # fmt: skip
    columns = [Column(say("pair"), number=False), Column("p"), Column(say("verdict"), number=False)]
    return Table(say("pairs caption"), columns, rows)


def left_out(study: Study, say: Speaker) -> Table:
    rows = [
        Row([Cell(str(row["name"])), Cell(say(f"why.{row['why']}", data=row["data"], error=row.get("error")))])
        for row in listed(study, "left_out")
    ]
    columns = [Column(say("model"), number=False), Column(say("reason"), number=False)]
    return Table(say("left out caption"), columns, rows)


def method(study: Study, say: Speaker) -> list[str]:
    level, tests = formats.short(dig(study, "protocol", "level")), study.get("tests")
    if not tests:
        return [say("method ranks")]
    differences = say("ratios" if study.get("ratios") else "differences")
    found = [say("method ranks"), say("method tests", level=level, differences=differences)]
    if study.get("ratios"):
        found.append(say("method interval"))
    nemenyi = formats.fixed(tests["critical_difference"], 2)
    return [*found, say("method nemenyi", level=level, difference=nemenyi)]


def lines(study: Study) -> list[str]:
    """The study in a terminal: one line per entry, then the conclusion."""
    say = speaker("en")
    rows = [["", "mean rank", "first on", "relative to the best", "p"]]
    for number, entry in enumerate(listed(study, "entries")):
        cell = _relative(entry, number == 0)
        relative = f"{cell.text} ({cell.small})" if cell.small else cell.text
        rows.append([short_name(entry["name"]), _rank(entry["mean_rank"]), str(entry["first_on"]), relative,
                     formats.chance(entry["p"])])  # fmt: skip
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    drawn = ["  ".join(text + " " * (width - _width(text)) for text, width in zip(row, widths, strict=True)).rstrip()
             for row in rows]  # fmt: skip
    absent = [f"not ranked: {row['name']}: {say('why.' + row['why'], data=row['data'], error=row.get('error'))}"
              for row in listed(study, "left_out")]  # fmt: skip
    return [*(drawn if len(rows) > 1 else []), *absent, "", *(f"- {text}" for text in conclusion(study, say))]


def short_name(name: object, most: int = 24) -> str:
    text = str(name)
    return text if len(text) <= most else text[: most - 1] + "…"


def _commands(study: Study, say: Speaker) -> list[Block]:
    command = dig(study, "protocol", "command")
    return [Code([(say("whole command"), str(command))])] if command else []


def _leaders(study: Study) -> list[str]:
    """The entries with the best mean rank."""
    entries = listed(study, "entries")
    return [str(entry["name"]) for entry in entries if entry["mean_rank"] - entries[0]["mean_rank"] < 1e-9]


def _relative(entry: Json, best: bool) -> Cell:
    found = entry.get("relative")
    if best or not found:
        return Cell("" if best else formats.NONE)
    mean, low, high = (_percent(found[key]) for key in ("mean", "low", "high"))
    return Cell(mean, f"{low} … {high}" if found["low"] is not None else "")


def _percent(share: float | None) -> str:
    return formats.NONE if share is None else f"{formats.fixed(100 * share, 0 if share >= 10 else 1, sign=True)} %"


def _rank(rank: float) -> str:
    return formats.short(rank, 3)


def _listing(names: list[str], say: Speaker) -> str:
    last = " and " if say.language == "en" else "与"
    comma = ", " if say.language == "en" else "、"
    return last.join([comma.join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
