"""The page of a diagnosis: HTML and Markdown, in English and Chinese."""

from __future__ import annotations

from typing import Any

from seqloom.core.rows import Json
from seqloom.diagnose.diagnosis import agreements, percent, sentence
from seqloom.diagnose.published import SOURCES
from seqloom.diagnose.words import WORDS
from seqloom.pages import blocks, formats, html, markdown
from seqloom.pages.words import LANGUAGES, Speaker

_TONES = {"solved": "right", "trained": "right", "guess": "wrong"}
_SHADES = {"solved": 1.0, "trained": 0.35, "guess": 0.6}
_MATCHED = 0.9  # of the common number of parameters: matched, if not exactly
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


def document(result: Json, language: str) -> blocks.Document:
    say = Speaker(language, WORDS)
    models, rules = result["models"], result["rules"]
    title = say("title") if len(models) > 1 else say("title.one", name=models[0]["name"])
    told = [sentence(model, result, say) for model in models]
    charts = [_chart(result, problem, say) for problem in result["problems"] if problem["name"] in _CHARTS]
    trained = any(problem["beyond"] for problem in result["problems"])
    sections: dict[str, list[blocks.Block]] = {
        "answer": [blocks.Points(say("each"), told), blocks.Text(say("short.kind", seeds=rules["seeds"]), "muted")],
        "results": [_table(result, say, beyond=True), *([_table(result, say, beyond=False)] if trained else [])],
        "lengths": [*charts],
        "published": _published(result, say),
        "method": [blocks.Text(text) for text in _method(result, say)],
        "commands": [blocks.Code([(say("reproduce"), result["command"])])] if result["command"] else [],
    }
    head = {"models": len(models), "parameters": rules["parameters"], "seeds": rules["seeds"], "steps": rules["steps"]}
    return blocks.Document(
        language,
        title,
        formats.day(result["started"]),
        [(say(name), formats.count(value)) for name, value in head.items()],
        [blocks.Section(key, say(key), inside) for key, inside in sections.items() if inside],
    )


def _table(result: Json, say: Speaker, beyond: bool) -> blocks.Table:
    """Models by problems; `beyond`: at the scored sizes, otherwise at the trained lengths, where these differ."""
    problems = [problem for problem in result["problems"] if beyond or problem["beyond"]]
    read = max(problems, key=lambda problem: problem["counts"] == "pairs")  # many pairs, if it is among them
    columns = [blocks.Column(say("model"), number=False)]
    columns += [blocks.Column(say("memory"), say("memory of", tokens=read["longest"]))] if beyond else []
    columns += [blocks.Column(say.pick(p["title"]), _sizes(p, say) if beyond else "") for p in problems]
    rows = []
    for number, model in enumerate(result["models"]):
        cells = [_cell(model["problems"][problem["name"]], say, beyond) for problem in problems]
        kept = model["problems"][read["name"]].get("memory")
        cells = [*([blocks.Cell(formats.NONE if kept is None else formats.count(kept))] if beyond else []), *cells]
        rows.append(blocks.Row([blocks.Cell(model["name"], entry=number), *cells]))
    if beyond:
        guesses = [blocks.Cell("")] + [blocks.Cell(percent(_guess(result, problem["name"]))) for problem in problems]
        rows.append(blocks.Row([blocks.Cell(say("guessing")), *guesses], "muted"))
    return blocks.Table(say("caption" if beyond else "caption trained"), columns, rows)


def _cell(found: Json, say: Speaker, beyond: bool) -> blocks.Cell:
    if "best" not in found:
        return blocks.Cell(formats.NONE, found["error"])
    if not beyond:
        trained = found["trained"]
        return blocks.Cell(percent(trained["best"]), say("median", share=_number(trained["median"])))
    small = [say("median", share=_number(found["median"]))]
    small += [f"{other['source']} {_number(other['accuracy'])}" for other in found["published"]]
    kind = found["verdict"]
    text = say("semicolon").join(part.replace(" ", "\u00a0") for part in small)  # lines break between parts only
    return blocks.Cell(percent(found["best"]), text, shade=_SHADES.get(kind, 0.0), tone=_TONES.get(kind, ""))


def _number(share: float) -> str:
    """In percent, without the sign."""
    return formats.fixed(100 * share, 1)


def _sizes(problem: Json, say: Speaker) -> str:
    low, high = problem["scored"]
    if problem["beyond"]:
        return say("beyond", low=low, high=high, trained=problem["trained"])
    return say(f"size.{problem['counts']}", high=high)


def _guess(result: Json, problem: str) -> float | None:
    found = [m["problems"][problem]["guess"] for m in result["models"] if "guess" in m["problems"][problem]]
    return sum(found) / len(found) if found else None


def _chart(result: Json, problem: Json, say: Speaker) -> blocks.Chart:
    title, across, remark = _CHARTS[problem["name"]]
    names = [str(model["name"]) for model in result["models"]]
    curves: list[dict[int, float]] = [
        {point["to"]: point["accuracy"] for point in model["problems"][problem["name"]].get("ranges", [])}
        for model in result["models"]
    ]
    series = [
        blocks.Series(names[n], list(map(float, curve)), [100 * share for share in curve.values()], n)
        for n, curve in enumerate(curves)
    ]
    ends = sorted({end for curve in curves for end in curve})
    rows = [
        blocks.Row([blocks.Cell(names[n], entry=n), *(blocks.Cell(percent(curve.get(end))) for end in ends)])
        for n, curve in enumerate(curves)
    ]
    columns = [blocks.Column(say("model"), number=False), *(blocks.Column(str(end)) for end in ends)]
    table, legend = blocks.Table(say(title), columns, rows), list(enumerate(names))
    rules = [blocks.Rule(say("trained up to"), x=float(problem["trained"]))] if problem["beyond"] else []
    up = blocks.Axis(say("accuracy"), unit=" %", range=(0.0, 102.0))
    panel = blocks.Panel("", blocks.Axis(say(across)), up, series, rules)
    return blocks.Chart(problem["name"], say(title), [panel], legend, [table], say(remark))


def _published(result: Json, say: Speaker) -> list[blocks.Block]:
    agree, differ = agreements(result, say, agree=True), agreements(result, say, agree=False)
    if not agree and not differ:
        return [blocks.Text(say("none published"))]
    used = sorted({other["source"] for other in _others(result)})
    found: list[blocks.Block] = [blocks.Text(say("rule of agreement"))]
    found += [blocks.Points(say(key), told) for key, told in (("agreements", agree), ("disagreements", differ)) if told]
    found += [
        blocks.Text(
            say("source", mark=key, name=say.pick(SOURCES[key].name), protocol=say.pick(SOURCES[key].protocol)), "muted"
        )
        for key in used
    ]
    return found


def _others(result: Json) -> list[Json]:
    found: list[Any] = [
        m["problems"][p["name"]].get("published", []) for m in result["models"] for p in result["problems"]
    ]
    return [other for others in found for other in others]


def _method(result: Json, say: Speaker) -> list[str]:
    rules = result["rules"]
    shown = {name: formats.count(rules[name]) for name in ("parameters", "steps", "batch", "seeds", "depth", "tested")}
    rates = say("list").join(formats.short(rate) for rate in rules["rates"])
    reasons: dict[str, list[str]] = {}
    for name, reason in result["left_out"].items():
        reasons.setdefault(reason, []).append(name)
    left = say("semicolon").join(f"{say('list').join(names)} ({reason})" for reason, names in reasons.items())
    smaller = say("list").join(_smaller(result, say))
    return [
        *(say(f"how.{problem['name']}") for problem in result["problems"]),
        say("how.fair", enough=rules["enough"], **shown),
        *([say("how.smaller", widest=formats.count(rules["widest"]), names=smaller)] if smaller else []),
        say("how.rates", rates=rates, **shown),
        say("how.tested", tested=shown["tested"]),
        *([say("how.left out", names=left)] if left else []),
        say("how.time", time=formats.duration(result["seconds"]), system=result["versions"]["system"]),
    ]


def _smaller(result: Json, say: Speaker) -> list[str]:
    """Models that are less than the common size on some problem, each with its smallest and largest size."""
    told = []
    for model in result["models"]:
        sizes = [found["parameters"] for found in model["problems"].values() if "parameters" in found]
        if sizes and min(sizes) < _MATCHED * result["rules"]["parameters"]:
            low, high = formats.count(min(sizes)), formats.count(max(sizes))
            told.append(say("how.size", name=model["name"], low=low, high=high))
    return told
