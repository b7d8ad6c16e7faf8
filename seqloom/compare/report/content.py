"""The structure of the report: the recommendation first, then the evidence."""

from __future__ import annotations

from typing import Any

from seqloom.compare.report import charts, details, facts, ladder, recipes, tuning
from seqloom.compare.report.facts import Entry, Result
from seqloom.compare.report.showing import showing
from seqloom.compare.report.words import speaker
from seqloom.core.rows import Json
from seqloom.pages import formats
from seqloom.pages.blocks import Answer, Block, Cell, Code, Column, Document, Points, Row, Section, Table, Text
from seqloom.pages.words import Speaker


def document(result: Result, language: str) -> Document:
    say = speaker(language)
    protocol = result.get("protocol") or {}
    data = str(facts.dig(protocol, "data", "train", "name") or "").removesuffix(" (train)")
    sections: dict[str, list[Any]] = {
        "answer": [answer(result, say), use(result, say), charts.forest(result, say)],
        "results": results(result, say),
        "reasons": reasons(result, say),
        **({"ladder": ladder.section(result, say)} if ladder.measured(result) else {}),
        "showing": showing(result, say),
        "learning": [charts.learning(result, say)],
        "quality and cost": [charts.quality_and_cost(result, say)],
        "cost": [charts.cost(result, say)],
        "recipes": recipes.section(result, say),
        "search": tuning.section(result, say),
        "aspects": details.aspects(result, say),
        "samples": details.samples(result, say),
        "protocol": details.protocol(result, say),
        "commands": details.commands(result, say),
    }
    return Document(
        language,
        say("title", data=data) if data else say("title without data"),
        formats.day(protocol.get("started")),
        headline(result, say),
        [
            Section(key.replace(" ", "-"), say.by(facts.latency_unit(result), key), found)
            for key, blocks in sections.items()
            if (found := [block for block in blocks if block is not None])
        ],
    )


def headline(result: Result, say: Speaker) -> list[tuple[str, str]]:
    """The comparison in one line: task, size, budget, seeds and trials."""
    protocol = result.get("protocol") or {}
    pairs = [
        (say("task"), say.pick(facts.task_title(result))),
        (say("parameters"), formats.count(facts.dig(protocol, "size", "target"))),
        (say("budget"), details.budget(protocol, say)),
        (say("seeds"), str(len(facts.listed(protocol, "seeds")) or "")),
        (say("tuning"), formats.count(protocol.get("trials"))),
    ]
    return [(name, value) for name, value in pairs if value not in ("", formats.NONE)]


def answer(result: Result, say: Speaker) -> Answer:
    found = result.get("recommendation") or {}
    choice = found.get("choice")
    number = next((n for n, entry in facts.entries(result) if entry.get("name") == choice), None)
    limits = [
        say.by(facts.latency_unit(result), f"constraint.{name}", value=formats.plain(value))
        for name, value in (found.get("constraints") or {}).items()
        if value not in (None, False) and name in ("max_params", "max_latency_ms", "streaming")
    ]
    preferred = [say("preferred", what=say.term("prefer", found["prefer"]))] if found.get("prefer") else []
    sentence = say.of(found.get("headline"))[:1] or say.of(found.get("reasons"))[:1]
    label = "recommended" if found.get("certain", True) else "recommended for now"
    return Answer(
        say(label) if choice else say("answer"),
        str(choice) if choice else say("no recommendation"),
        "".join(sentence),
        " · ".join(preferred + limits),
        number,
    )


def reasons(result: Result, say: Speaker) -> list[Block | None]:
    """Why, and what would change the recommendation."""
    found = result.get("recommendation") or {}
    return [
        Points(say(title), items)
        for title, name in (("why", "reasons"), ("would change", "would_change"))
        if (items := say.of(found.get(name)))
    ]


def use(result: Result, say: Speaker) -> Code | None:
    """The command that uses the recommended model."""
    found = facts.use(result)
    return Code([(say(found[0], name=found[1]), found[2])]) if found else None


def results(result: Result, say: Speaker) -> list[Block | None]:
    protocol = result.get("protocol") or {}
    blocks: list[Block | None] = []
    if not facts.scored(result):
        blocks.append(Text(say("nothing finished"), "lead"))
    blocks.append(main_table(result, say))
    if any(facts.size(entry)[1] for _, entry in facts.scored(result)):
        blocks.append(Text(say("stored remark"), "muted"))
    if protocol.get("tokens") == "time steps":
        blocks.append(Text(say("time steps"), "muted"))
    if busy := details.busy(result, say):
        blocks.append(Text(busy))
    if protocol.get("scored"):
        blocks.append(Text(say("how scored", how=say.pick(facts.how_scored(result))), "muted"))
    if protocol.get("level") and protocol.get("margin"):  # older versions judged otherwise
        share, margin = formats.percent(1 - protocol["level"]), formats.plain(protocol["margin"])
        blocks.append(Text(say("how judged", share=share, margin=margin), "muted"))
    return [block for block in blocks if block]


def main_table(result: Result, say: Speaker) -> Table:
    protocol = result.get("protocol") or {}
    direction = say("higher" if facts.higher_is_better(result) else "lower")
    context, share = facts.common_context(result), protocol.get("confidence")
    at = say.by(facts.latency_unit(result), "at context", context=formats.count(context)) if context else ""
    columns = [
        Column(say("model"), say("rank"), number=False),
        Column(say("score"), say("interval", share=formats.percent(share)) if share else ""),
        Column(say("difference"), say("all together", share=formats.percent(1 - (protocol.get("level") or 0.0)))),
        *(
            Column(say.pick(facts.score_title(result, name)), say("higher" if facts.shown(result)[name] else "lower"))
            for name in facts.beside(result)
        ),
        Column(say("size"), say("size small")),
        Column(say("on disk")),
        Column(say("FLOPs per token"), say("forward")),
        Column(say("training speed"), say("tokens per second")),
        Column(say("peak memory")),
        Column(say("latency"), at),
    ]
    places = facts.decimals(result)
    rows = [_row(result, say, position, *item, places) for position, item in enumerate(facts.ranked(result))]
    rows += [_baseline(result, row, say, places) for row in facts.baselines(result)]
    for row in facts.failed_baselines(result):
        name = Cell(str(row["name"]), say("baseline"), "failed")
        rows.append(Row([name, Cell(str(row["error"]), span=len(columns) - 1)], "failed"))
    return Table(f"{charts.score_title(result, say)}{say('semicolon')}{direction}", columns, rows)


def score_cell(entry: Entry, places: int, say: Speaker) -> Cell:
    score = entry.get("score") or {}
    done, planned = len(facts.runs(entry)), len(facts.listed(entry, "runs"))
    if score.get("low") is None or score.get("high") is None:
        small = say("one seed") if score.get("seeds") == 1 and not entry.get("fixed") else ""
    else:
        small = f"{formats.fixed(score['low'], places)}–{formats.fixed(score['high'], places)}"
    if done < planned:
        small = say("comma").join(filter(None, [small, say("some seeds", done=done, all=planned)]))
    return Cell(formats.fixed(score.get("mean"), places), small)


def _row(result: Result, say: Speaker, position: int, number: int, entry: Entry, places: int) -> Row:
    verdict = facts.verdict(entry)
    given = formats.plain(entry.get("given") or {}) or (say("fitted") if entry.get("fixed") else "")
    name = Cell(str(entry.get("name")), given, verdict, number, facts.rank(position, entry))
    if facts.mean(entry) is None:
        span = 8 + len(facts.beside(result))
        return Row([name, Cell(str(entry.get("error") or say("no reason")), span=span)], "failed")
    against = entry.get("against_best") or {}
    gap = Cell(formats.fixed(against.get("difference"), places, sign=True), _reach(against, places))
    chosen = facts.dig(result, "recommendation", "choice") == entry.get("name")
    beside = facts.beside(result)
    return Row(
        [
            name,
            score_cell(entry, places, say),
            gap,
            *(
                Cell(formats.fixed(facts.dig(entry, "scores", key, "mean"), decimals))
                for key, decimals in beside.items()
            ),
            _size(entry, say),
            _stored(entry, say),
            Cell(formats.scaled(entry.get("flops_per_token"))),
            Cell(formats.count(facts.dig(entry, "cost", "tokens_per_second"))),
            Cell(formats.scaled(facts.dig(entry, "cost", "peak_bytes"), "B")),
            Cell(facts.latency(entry, facts.common_context(result))),
        ],
        "chosen" if chosen else "",
    )


def _size(entry: Entry, say: Speaker) -> Cell:
    size, stored = facts.size(entry)
    trained = entry.get("trained_parameters")
    if not stored and trained is not None and size and trained < size:
        return Cell(formats.count(size), say("trained share", count=formats.count(trained)))
    return Cell(formats.count(size), say("stored") if stored else formats.count(entry.get("backbone_parameters")))


def _stored(entry: Entry, say: Speaker) -> Cell:
    """Bytes on disk, and beside them those of the weights that the entry needs but does not hold."""
    beside = entry.get("borrowed_bytes")
    return Cell(
        formats.scaled(entry.get("bytes"), "B"), say("borrowed", bytes=formats.scaled(beside, "B")) if beside else ""
    )


def _reach(against: Json, places: int) -> str:
    """The interval of the distance to the best of the others."""
    low, high = against.get("low"), against.get("high")
    if low is None or high is None:
        return ""
    return f"{formats.fixed(low, places, sign=True)} … {formats.fixed(high, places, sign=True)}"


def _baseline(result: Result, row: Json, say: Speaker, places: int) -> Row:
    cells = [
        Cell(say.pick(facts.baseline_title(result, row.get("name"))), say("baseline")),
        Cell(formats.fixed(row.get("score"), places)),
        Cell(""),
        *(Cell(formats.fixed(facts.dig(row, "scores", k), n)) for k, n in facts.beside(result).items()),
    ]
    return Row([*cells, *[Cell("")] * 6], "muted")
