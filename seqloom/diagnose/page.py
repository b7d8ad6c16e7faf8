"""The page of a diagnosis: HTML and Markdown, in English and Chinese."""

from __future__ import annotations

from typing import Any

from seqloom.core.rows import Json
from seqloom.diagnose.diagnosis import agreements, percent, sentence
from seqloom.diagnose.published import SOURCES
from seqloom.diagnose.words import WORDS
from seqloom.pages import formats, html, markdown
from seqloom.pages.blocks import (
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
    Rule,
    Section,
    Series,
    Table,
    Text,
)  # fmt: skip
from seqloom.pages.words import LANGUAGES, Speaker

_TONES = {"solved": "right", "trained": "right", "guess": "wrong"}
_SHADES = {"solved": 1.0, "trained": 0.35, "guess": 0.6}
_CHARTS = {"parity": ("chart parity", "length", "chart remark")}
_CHARTS |= {"many_pairs": ("chart many_pairs", "number of pairs", "pairs remark")}


def report_files(result: Json) -> dict[str, bytes]:
    """All files of the page, by name."""
    documents = {language: document(result, language) for language in LANGUAGES}
    version = str(result["versions"]["seqloom"])
    texts = {
        "report.html": html.render(list(documents.values()), entries=len(result["models"]), version=version),
        "report.md": markdown.render(documents["en"]),
        "report.zh-CN.md": markdown.render(documents["zh"]),
    }
    return {name: text.encode("utf-8", "backslashreplace") for name, text in texts.items()}


def document(result: Json, language: str) -> Document:
    say = Speaker(language, WORDS)
    models, rules = result["models"], result["rules"]
    title = say("title") if len(models) > 1 else say("title.one", name=models[0]["name"])
    told = [sentence(model, result, say) for model in models]
    charts = [_chart(result, problem, say) for problem in result["problems"] if problem["name"] in _CHARTS]
    trained = any(problem["beyond"] for problem in result["problems"])
    sections: dict[str, list[Block]] = {
        "answer": [Points("", told), Text(say("short.kind", seeds=rules["seeds"]), "muted")],
        "results": [_table(result, say, beyond=True), *([_table(result, say, beyond=False)] if trained else [])],
        "lengths": [*charts],
        "published": _published(result, say),
        "method": [Text(text) for text in _method(result, say)],
        "commands": [Code([(say("reproduce"), result["command"])])] if result["command"] else [],
    }
    head = {"models": len(models), "parameters": rules["parameters"], "seeds": rules["seeds"], "steps": rules["steps"]}
    return Document(
        language,
        title,
        formats.day(result["started"]),
        [(say(name), formats.count(value)) for name, value in head.items()],
        [Section(key, say(key), blocks) for key, blocks in sections.items() if blocks],
    )


def _table(result: Json, say: Speaker, beyond: bool) -> Table:
    """Models by problems; `beyond`: at the scored sizes, otherwise at the trained lengths, where these differ."""
    problems = [problem for problem in result["problems"] if beyond or problem["beyond"]]
    columns = [Column(say("model"), number=False)]
    columns += [Column(say.pick(p["title"]), _sizes(p, say) if beyond else "") for p in problems]
    rows = [
        Row([Cell(model["name"], entry=number), *(_cell(model["problems"][p["name"]], say, beyond) for p in problems)])
        for number, model in enumerate(result["models"])
    ]
    guesses = [_guess(result, problem["name"]) for problem in problems]
    if beyond:
        rows.append(Row([Cell(say("guessing")), *(Cell(percent(guess)) for guess in guesses)], "muted"))
    return Table(say("caption" if beyond else "caption trained"), columns, rows)


def _cell(found: Json, say: Speaker, beyond: bool) -> Cell:
    if "best" not in found:
        return Cell(formats.NONE, found["error"])
    if not beyond:
        trained = found["trained"]
        return Cell(percent(trained["best"]), say("median", share=percent(trained["median"])))
    small = [say("median", share=percent(found["median"]))]
    small += [f"{other['source']} {percent(other['accuracy'])}" for other in found["published"]]
    kind = found["verdict"]
    text = say("semicolon").join(small)
    return Cell(percent(found["best"]), text, shade=_SHADES.get(kind, 0.0), tone=_TONES.get(kind, ""))


def _sizes(problem: Json, say: Speaker) -> str:
    low, high = problem["scored"]
    if problem["beyond"]:
        return say("beyond", low=low, high=high, trained=problem["trained"])
    return say(f"size.{problem['counts']}", high=high)


def _guess(result: Json, problem: str) -> float | None:
    found = [m["problems"][problem]["guess"] for m in result["models"] if "guess" in m["problems"][problem]]
    return sum(found) / len(found) if found else None


def _chart(result: Json, problem: Json, say: Speaker) -> Chart:
    title, across, remark = _CHARTS[problem["name"]]
    series, legend, rows = [], [], []
    for number, model in enumerate(result["models"]):
        curve = model["problems"][problem["name"]].get("ranges", [])
        x, y = [float(point["to"]) for point in curve], [100 * point["accuracy"] for point in curve]
        series.append(Series(model["name"], x, y, number))
        legend.append((number, model["name"]))
        rows.append((number, model["name"], {point["to"]: point["accuracy"] for point in curve}))
    ends = sorted({end for _, _, curve in rows for end in curve})
    table = Table(
        say(title),
        [Column(say("model"), number=False), *(Column(str(end)) for end in ends)],
        [Row([Cell(name, entry=n), *(Cell(percent(curve.get(end))) for end in ends)]) for n, name, curve in rows],
    )
    rules = [Rule(say("trained up to"), x=float(problem["trained"]))] if problem["beyond"] else []
    panel = Panel("", Axis(say(across)), Axis(say("accuracy"), unit=" %", range=(0.0, 102.0)), series, rules)
    return Chart(problem["name"], say(title), [panel], legend, [table], say(remark))


def _published(result: Json, say: Speaker) -> list[Block]:
    agree, differ = agreements(result, say, agree=True), agreements(result, say, agree=False)
    if not agree and not differ:
        return [Text(say("none published"))]
    used = sorted({other["source"] for other in _others(result)})
    blocks: list[Block] = [Text(say("rule of agreement"))]
    blocks += [Points(say(key), told) for key, told in (("agreements", agree), ("disagreements", differ)) if told]
    blocks += [
        Text(
            say("source", mark=key, name=say.pick(SOURCES[key].name), protocol=say.pick(SOURCES[key].protocol)), "muted"
        )
        for key in used
    ]
    return blocks


def _others(result: Json) -> list[Json]:
    found: list[Any] = [
        m["problems"][p["name"]].get("published", []) for m in result["models"] for p in result["problems"]
    ]
    return [other for others in found for other in others]


def _method(result: Json, say: Speaker) -> list[str]:
    rules = result["rules"]
    shown = {name: formats.count(rules[name]) for name in ("parameters", "steps", "batch", "seeds", "depth", "tested")}
    rates = say("list").join(formats.short(rate) for rate in rules["rates"])
    left = say("semicolon").join(f"{name} ({reason})" for name, reason in result["left_out"].items())
    return [
        *(say(f"how.{problem['name']}") for problem in result["problems"]),
        say("how.fair", enough=rules["enough"], **shown),
        say("how.rates", rates=rates, **shown),
        say("how.tested", tested=shown["tested"]),
        *([say("how.left out", names=left)] if left else []),
        say("how.time", time=formats.duration(result["seconds"]), system=result["versions"]["system"]),
    ]
