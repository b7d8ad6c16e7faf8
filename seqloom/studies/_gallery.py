"""Findings as pages: one per study and an index, as HTML (both languages in one) or Markdown (a file per language)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from seqloom.core.version import VERSION
from seqloom.pages import html, markdown
from seqloom.pages.blocks import Answer, Block, Cell, Code, Column, Document, Picture, Points, Row, Section, Table, Text
from seqloom.pages.formats import duration, short
from seqloom.pages.words import LANGUAGES, Speaker
from seqloom.studies._aspects import NAME, aspects, overview, title_of
from seqloom.studies._record import Record, limits
from seqloom.studies._registry import find_study
from seqloom.studies._study import DOCUMENTS, VERDICTS, Rows, Study
from seqloom.studies._words import WORDS
from seqloom.weights.packages import PREFIX


def html_page(record: Record) -> str:
    return html.render([page(record, language) for language in LANGUAGES], entries=0, version=VERSION)


def html_index(records: Sequence[Record], left_out: Mapping[str, str] = MappingProxyType({})) -> str:
    """`left_out`: the other studies, and why they were not measured."""
    pages = [index(records, language, "html", left_out) for language in LANGUAGES]
    return html.render(pages, entries=0, version=VERSION)


def markdown_files(records: Sequence[Record]) -> dict[str, str]:
    """Of the documentation, by path below docs/."""
    files = {}
    for language, folder in zip(LANGUAGES, ("studies", "zh/studies"), strict=True):
        files[f"{folder}/index.md"] = markdown.render(index(records, language, "md"))
        files[f"{folder}/{NAME}.md"] = markdown.render(aspects(records, language))
        for record in records:
            files[f"{folder}/{record.name}.md"] = markdown.render(page(record, language))
            files[f"{folder}/{record.name}.svg"] = record.drawn(language)
    return files


def page(record: Record, language: str) -> Document:
    study, finding = find_study(record.name), record.finding
    say = Speaker(language, WORDS)
    verdict: list[Block] = [
        Text(f"{say('claim')}{say('colon')}{say.pick(study.claim)}", "lead"),
        Text(f"{say('source')}{say('colon')}{sources(study, say)}", "muted"),
        Answer(say("verdict"), say.pick(VERDICTS[finding.verdict]), say.pick(finding.summary), ""),
    ]
    if record.quick:
        verdict.append(Text(say("quick")))
    caption = say.pick(finding.caption)
    sections = [
        Section("verdict", say("verdict"), verdict),
        Section("figure", say("figure"), [Picture(record.drawn(language), caption, f"{record.name}.svg")]),
        Section("beside", say("beside"), [_numbers(record, say), *(_table(rows, say) for rows in finding.tables)]),
        Section("how", say("how"), _how(study, record, say)),
    ]
    return Document(language, title_of(study, say), "", [], sections)


def index(
    records: Sequence[Record], language: str, suffix: str, left_out: Mapping[str, str] = MappingProxyType({})
) -> Document:
    """All claims in one table, then each with its figure; both lead to its page."""
    say = Speaker(language, WORDS)
    studies = {record.name: find_study(record.name) for record in records}
    columns = [Column(say(head), number=False) for head in ("claim", "verdict", "found")]
    rows = [
        Row([
            Cell(title_of(studies[record.name], say), link=f"{record.name}.{suffix}"),
            Cell(say.pick(VERDICTS[record.finding.verdict]), small=say("quick") if record.quick else ""),
            Cell(say.pick(record.finding.summary)),
        ])
        for record in records
    ]  # fmt: skip
    documents = [f"{name}{say('colon')}{say.pick(what)}" for name, what in DOCUMENTS.items()]
    sections = [
        Section("all", say("all"), [Text(say("gallery lead")), Table(say("all"), columns, rows, prose=True)]),
        *(_card(record, studies[record.name], say, suffix) for record in records),
        Section("documents", say("documents"), [Points("", documents)]),
    ]
    if left_out:
        reasons = [f"{name}{say('colon')}{reason}" for name, reason in left_out.items()]
        sections.insert(1, Section("left out", say("left out"), [Points("", reasons)]))
    if suffix == "md":  # quotes numbers of full results
        table = overview(records, say, f"{NAME}.md")
        sections.insert(1, Section("aspects", say("aspects"), [Text(say("aspects short")), table]))
    return Document(language, say("gallery"), "", [], sections)


def sources(study: Study, say: Speaker) -> str:
    found = []
    for name, section in study.sources:
        document = say("document", name=name) if name in DOCUMENTS else name
        found.append(document + (say("section", name=section) if section else ""))
    return say("semicolon").join(found)


def _card(record: Record, study: Study, say: Speaker, suffix: str) -> Section:
    lead = Text(f"{say('verdict')}{say('colon')}{say.pick(VERDICTS[record.finding.verdict])}", "lead")
    svg, alt = record.drawn(say.language), say.pick(record.finding.caption)
    picture = Picture(svg, alt, f"{record.name}.svg", f"{record.name}.{suffix}")
    return Section(record.name, title_of(study, say), [lead, Text(say.pick(record.finding.summary)), picture])


def _numbers(record: Record, say: Speaker) -> Table:
    heads = ("quantity", "measured", "interval", "seeds", "claim says")
    columns = [Column(say(head), number=head not in ("quantity", "claim says")) for head in heads]
    rows = []
    for one in record.finding.numbers:
        unit = f" {say.pick(one.unit)}" if say.pick(one.unit) else ""
        cells = (say.pick(one.name), short(one.value) + unit, limits(one), str(one.seeds), say.pick(one.claimed) or "–")
        rows.append(Row([Cell(text) for text in cells]))
    return Table(say("caption"), columns, rows)


def _table(found: Rows, say: Speaker) -> Table:
    def text(cell: object) -> str:
        if isinstance(cell, tuple | list):
            return str(cell[LANGUAGES.index(say.language)])
        return short(cell) if isinstance(cell, int | float) else str(cell)

    numeric = [any(isinstance(row[n], int | float) for row in found.rows) for n in range(len(found.columns))]
    columns = [Column(say.pick(head), number=number) for head, number in zip(found.columns, numeric, strict=True)]
    return Table(say.pick(found.caption), columns, [Row([Cell(text(cell)) for cell in row]) for row in found.rows])


def _how(study: Study, record: Record, say: Speaker) -> list[Block]:
    blocks: list[Block] = [Text(say.pick(record.finding.protocol)), Text(say("rule", rule=say.pick(study.rule)))]
    if study.remarks:
        blocks.append(Points(say("beware"), [say.pick(remark) for remark in study.remarks]))
    made = {"seconds": duration(record.seconds), "threads": record.threads}
    versions = {name: record.versions.get(name, "–") for name in ("system", "torch")}
    took = say("took", **made, **versions)
    first = [(say("weights"), f"seqloom weights {need.removeprefix(PREFIX)}") for need in study.needs]
    blocks.append(Code([*first, (f"{say('repeat')} ({took})", record.command)]))
    blocks += [Text(say("data", name=name, digest=digest), "muted") for name, digest in record.finding.data.items()]
    return blocks
