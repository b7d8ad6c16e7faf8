"""What the models do with rows of the test set: confusion matrices, forecasts, and examples with errors marked."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any

from seqloom.compare.report import charts, facts
from seqloom.compare.report.facts import Entry, Result
from seqloom.core.rows import Json
from seqloom.pages import formats
from seqloom.pages.blocks import (
    Axis,
    Block,
    Cell,
    Chart,
    Column,
    Examples,
    Fold,
    Line,
    Panel,
    Piece,
    Row,
    Rule,
    Series,
    Table,
    Text,
)  # fmt: skip
from seqloom.pages.words import Speaker

_MARKED = 16  # lines with more points are drawn without markers
_LABEL = 24  # characters of a label in the head of a matrix

Shown = list[tuple[int, Entry]]  # entries that have something to show, with their numbers


def showing(result: Result, say: Speaker) -> list[Block | None]:
    """Blocks for the section; empty where the task has nothing to show."""
    kinds: dict[Any, Callable[[Shown, Speaker], list[Block | None]]] = {
        "confusion": _confusions, "forecasts": _forecasts, "tags": _tags, "answers": _answers, "pairs": _pairs,
        "gaps": _gaps,
    }  # fmt: skip
    chosen = facts.dig(result, "recommendation", "choice")
    order = sorted(facts.scored(result), key=lambda item: item[1].get("name") != chosen)
    kind = next((found for _, entry in order if (found := facts.dig(entry, "showcase", "kind")) in kinds), None)
    shown = [item for item in order if facts.dig(item[1], "showcase", "kind") == kind]
    if kind is None:
        return []
    blocks = kinds[kind](shown, say)
    seeds = {run["seed"] for _, entry in shown for run in facts.runs(entry)[:1] if run.get("seed") is not None}
    which = say("first seed", seed=formats.plain(sorted(seeds))) if len(seeds) == 1 else say("first run")
    return [Text(_sentences(say, say(f"showing {kind}"), which), "muted"), *blocks] if blocks else []


def _confusions(shown: Shown, say: Speaker) -> list[Block | None]:
    """The first entry open, the others folded."""
    blocks: list[Block | None] = []
    for place, (number, entry) in enumerate(shown):
        found, name = entry["showcase"], str(entry["name"])
        inside = [table for table in (_matrix(found, name, say), _classes(found, name, say)) if table]
        inside += [table] if (table := _errors(found, number, name, say)) else []
        blocks += inside if place == 0 else [Fold(name, list(inside))] if inside else []
    remarks = [_rows_read(shown[0][1]["showcase"], say)]
    if merged := facts.dig(shown[0][1], "showcase", "merged"):
        remarks.append(say("merged labels", count=formats.count(merged)))
    if unknown := facts.dig(shown[0][1], "showcase", "unknown"):
        remarks.append(say("unknown labels", count=formats.count(unknown)))
    return [Text(_sentences(say, *remarks), "muted"), *blocks] if blocks else []


def _matrix(found: Json, name: str, say: Speaker) -> Table | None:
    """Counts, each shaded by its share of the row."""
    labels, counts = [str(label) for label in facts.listed(found, "labels")], facts.listed(found, "counts")
    named = labels + [say("other labels")] * (len(counts) > len(labels))
    if not labels or any(len(row) != len(named) for row in [counts, *counts]):
        return None
    rows = []
    for place, (label, row) in enumerate(zip(named, counts, strict=True)):
        total = sum(row)
        cells = [
            Cell(formats.count(count) if count else "", shade=count / max(1, total), tone=_tone(place, column))
            for column, count in enumerate(row)
        ]
        single = place < len(labels)  # confusions within the merged labels are not known
        recall = formats.percent(row[place] / total) if total and single else formats.NONE
        rows.append(Row([Cell(label), *cells, Cell(formats.count(total)), Cell(recall)]))
    columns = [Column(say("actual and predicted"), number=False)]
    columns += [Column(_short(label)) for label in named] + [Column(say("test rows")), Column(say("right share"))]
    return Table(say("confusion caption", name=name), columns, rows, matrix=True)


def _tone(row: int, column: int) -> str:
    return "right" if row == column else "wrong"


def _classes(found: Json, name: str, say: Speaker) -> Table | None:
    """Where a row may have several labels: how often each is wanted, predicted and right."""
    keys = ("wanted", "found", "right")
    rows = [
        Row([Cell(str(one.get("label") or formats.NONE)), *(Cell(formats.count(one.get(key))) for key in keys)])
        for one in facts.listed(found, "classes")
    ]
    columns = [Column(say("label"), number=False), *(Column(say(f"label {key}")) for key in keys)]
    return Table(say("classes caption", name=name), columns, rows) if rows else None


def _errors(found: Json, number: int, name: str, say: Speaker) -> Table | None:
    """The wrong predictions with the highest probability."""
    errors = facts.listed(found, "errors")
    texts = any(error.get("text") for error in errors)
    numbers = not texts and all(error.get("row") for error in errors)  # measurements have no text to show
    rows = []
    for error in errors:
        gold, predicted = (str(error.get(key) or formats.NONE) for key in ("gold", "predicted"))
        cells = [Cell(f"{gold} → {predicted}", formats.percent(error.get("probability")))]
        cells += [Cell(str(error.get("text") or ""))] if texts else []
        cells += [Cell(formats.count(error["row"]))] if numbers else []
        rows.append(Row(cells))
    columns = [Column(say("actual to predicted"), say("probability"), number=False)]
    columns += [Column(say("text"), number=False)] if texts else []
    columns += [Column(say("row number"))] if numbers else []
    caption = say("errors caption", name=name, shown=len(rows), wrong=formats.count(found.get("wrong")))
    return Table(caption, columns, rows) if rows else None


def _rows_read(found: Json, say: Speaker) -> str:
    rows, of = found.get("rows"), found.get("of")
    if rows is None or not of or rows + (found.get("unknown") or 0) >= of:
        return say("all rows read", rows=formats.count(of or rows))
    return say("rows read", rows=formats.count(rows), of=formats.count(of))


def _forecasts(shown: Shown, say: Speaker) -> list[Block | None]:
    """A panel per window: the history, the actual values, and the forecast of every model."""
    panels, tables = [], []
    first = facts.listed(shown[0][1], "showcase", "series")
    for place, window in enumerate(first):
        panel = _window(place, window, shown, say)
        if panel:
            panels.append(panel)
            tables.append(_forecast_table(panel))
    if not panels:
        return []
    legend = [(number, str(entry["name"])) for number, entry in shown]
    covered = facts.dig(shown[0][1], "showcase", "covered")
    band = any(line.draw == "band" for panel in panels for line in panel.series)
    remark = say("forecast band", share=formats.percent(covered), name=shown[0][1]["name"]) if band and covered else ""
    truth: list[tuple[int | None, str]] = [(None, say("actual values"))]
    return [Chart("forecasts", say("forecasts chart"), panels, legend, tables, remark, truth)]


def _window(place: int, window: Json, shown: Shown, say: Speaker) -> Panel | None:
    history, actual = facts.listed(window, "history"), facts.listed(window, "actual")
    truth = _line(say("actual values"), [*history, *actual], 1 - len(history))
    series = [replace(truth, draw="truth")]
    for number, entry in reversed(shown):  # the first entry is drawn on top
        windows = facts.listed(entry, "showcase", "series")
        found = windows[place] if place < len(windows) else {}
        line = _line(str(entry["name"]), facts.listed(found, "forecast"))
        if line.x:
            drawn = "line" if len(line.x) > _MARKED else "both"
            series.append(replace(line, entry=number, draw=drawn))
        if number == shown[0][0] and (band := _band(found)):
            series.insert(0, replace(band, name=str(entry["name"]), entry=number))
    if len(series) < 2:
        return None
    names = [str(window[key]) for key in ("name", "target") if window.get(key)]
    where = say("comma").join(dict.fromkeys(names))
    title = say("forecast window", where=where, time=window["from"]) if window.get("from") else where
    axis = Axis(say("steps from origin"), format=",d")
    rules = [Rule(say("forecast begins"), x=0.5)] if history else []
    return Panel(title, axis, Axis(str(window.get("target") or ""), format=".4~r"), series, rules)


def _line(name: str, values: list[Any], first: int = 1) -> Series:
    """Consecutive values from step `first` on, without missing ones."""
    points = [(first + n, value) for n, value in enumerate(values) if _real(value)]
    return Series(name, [float(x) for x, _ in points], [y for _, y in points])


def _band(found: Json) -> Series | None:
    """The outline of the prediction interval: forward along its upper edge, back along the lower one."""
    edges = zip(facts.listed(found, "low"), facts.listed(found, "high"), strict=False)
    points = [(float(n), low, high) for n, (low, high) in enumerate(edges, 1) if _real(low) and _real(high)]
    if len(points) < 2:
        return None
    x = [n for n, _, _ in points]
    return Series("", x + x[::-1], [high for _, _, high in points] + [low for _, low, _ in points][::-1], draw="band")


def _forecast_table(panel: Panel) -> Table:
    """The future steps only."""
    lines = []
    for line in panel.series:
        points = [(x, y) for x, y in zip(line.x, line.y, strict=True) if x > 0]
        if line.draw != "band":
            lines.append(replace(line, x=[x for x, _ in points], y=[y for _, y in points]))
    return charts.curve_table(replace(panel, series=lines[:1] + lines[:0:-1]))


def _tags(shown: Shown, say: Speaker) -> list[Block | None]:
    items = []
    for place, row in enumerate(facts.listed(shown[0][1], "showcase", "rows")):
        words, gold = _texts(row, "words"), _texts(row, "gold")
        space, end = str(row.get("space", " ")), "…" if row.get("cut") else ""
        if not words or len(gold) != len(words):
            continue
        lines = [Line(say("gold"), _tagged(words, gold, gold, space, end))]
        for number, entry, other in _others(shown, place, "words", words):
            predicted = _texts(other, "predicted")
            if len(predicted) == len(words):
                pieces = _tagged(words, gold, predicted, space, end)
                right = gold == predicted
                lines.append(Line(str(entry["name"]), pieces, number, "right" if right else "wrong"))
        items.append(lines)
    return [Examples(items)] if items else []


def _tagged(words: list[str], gold: list[str], tags: list[str], space: str, end: str) -> list[Piece]:
    """The words of an entity together, with its label; it is wrong, as a whole, unless it is the same in the gold tags.
    A missing one is marked too, with the tag O."""
    pieces: list[Piece] = []
    before: tuple[Any, str] = ("", "")  # entity and mark of the last word
    for word, wanted, found in zip(words, _entities(gold), _entities(tags), strict=True):
        mark = "wrong" if found != wanted else "right" if found else ""
        if (found, mark) == before:
            pieces[-1] = replace(pieces[-1], text=f"{pieces[-1].text}{word}{space}")
        else:
            pieces.append(Piece(f"{word}{space}", (found[2] if found else "O") if mark else "", mark))
        before = found, mark
    return [*pieces, Piece(end)] if end else pieces


def _entities(tags: list[str]) -> list[tuple[int, int, str] | None]:
    """Of each word, its entity in BIO tags: first word, last word, label; other tags than BIO stand for themselves."""
    begins: list[int] = []
    for n, tag in enumerate(tags):
        inside = n > 0 and tag[:2] == "I-" and tags[n - 1][:2] in ("B-", "I-") and tags[n - 1][2:] == tag[2:]
        begins.append(begins[-1] if inside else n)
    ends = {begin: n for n, begin in enumerate(begins)}
    labels = [tag[2:] if tag[:2] in ("B-", "I-") else tag for tag in tags]
    return [None if tag == "O" else (b, ends[b], label) for b, tag, label in zip(begins, tags, labels, strict=True)]


def _answers(shown: Shown, say: Speaker) -> list[Block | None]:
    items = []
    for place, row in enumerate(facts.listed(shown[0][1], "showcase", "rows")):
        before, answer, after = (*_texts(row, "passage"), "", "", "")[:3]
        gold = say("semicolon").join(_texts(row, "gold")) or say("no answer")
        passage = [Piece(before), *([Piece(answer, mark="key")] if answer else []), Piece(after)]
        lines = [
            Line(say("question"), [Piece(str(row.get("question") or ""))]), Line(say("passage"), passage),
            Line(say("gold"), [Piece(gold)]),
        ]  # fmt: skip
        for number, entry, other in _others(shown, place, "question", row.get("question")):
            text = str(other.get("predicted") or "") or say("no answer")
            partly = other.get("f1") and not other.get("exact")
            pieces = [Piece(text), *([Piece(f" (F1 {formats.short(other['f1'], 2)})")] if partly else [])]
            lines.append(Line(str(entry["name"]), pieces, number, "right" if other.get("exact") else "wrong"))
        items.append(lines)
    return [Examples(items)] if items else []


def _pairs(shown: Shown, say: Speaker) -> list[Block | None]:
    items = []
    for place, row in enumerate(facts.listed(shown[0][1], "showcase", "rows")):
        source, reference = str(row.get("source") or ""), str(row.get("reference") or "")
        lines = [Line(say("source"), [Piece(source)]), Line(say("reference"), [Piece(reference)])]
        for number, entry, other in _others(shown, place, "source", row.get("source")):
            output = str(other.get("output") or "")
            pieces = _differing(output, reference) if output else [Piece(say("empty output"))]
            lines.append(Line(str(entry["name"]), pieces, number, "right" if other.get("exact") else ""))
        items.append(lines)
    return [Examples(items)] if items else []


def _differing(output: str, reference: str) -> list[Piece]:
    """The output, with what is not in the reference at this place marked: by words, or characters without spaces."""
    space = " " if " " in output or " " in reference else ""
    ours, theirs = (text.split() if space else list(text) for text in (output, reference))
    pieces = []
    for kind, begin, end, _, _ in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if end > begin:
            pieces.append(Piece(space.join(ours[begin:end]) + space, mark="" if kind == "equal" else "wrong"))
    return pieces


def _gaps(shown: Shown, say: Speaker) -> list[Block | None]:
    items = []
    for place, row in enumerate(facts.listed(shown[0][1], "showcase", "rows")):
        before, gold, after = (str(row.get(key) or "") for key in ("before", "gold", "after"))
        lines = [Line(say("text"), [Piece(before), Piece(gold, mark="key"), Piece(after)])]
        for number, entry, other in _others(shown, place, "before", row.get("before")):
            guesses = [one for one in facts.listed(other, "predicted") if isinstance(one, dict)]
            named = [(one.get("token") or formats.NONE, formats.percent(one.get("probability"))) for one in guesses]
            right = bool(guesses) and guesses[0].get("token") == gold
            pieces = [Piece(say("comma").join(f"{token} ({share})" for token, share in named))]
            lines.append(Line(str(entry["name"]), pieces, number, "right" if right else "wrong"))
        items.append(lines)
    return [Examples(items)] if items else []


def _others(shown: Shown, place: int, key: str, value: Any) -> list[tuple[int, Entry, Json]]:
    """The same row of every entry; an entry that has another one there is left out."""
    found = []
    for number, entry in shown:
        rows = facts.listed(entry, "showcase", "rows")
        if place < len(rows) and isinstance(rows[place], dict) and rows[place].get(key) == value:
            found.append((number, entry, rows[place]))
    return found


def _texts(row: Json, key: str) -> list[str]:
    return [str(text) for text in facts.listed(row, key)]


def _short(label: str) -> str:
    return label if len(label) <= _LABEL else label[: _LABEL - 1] + "…"


def _sentences(say: Speaker, *texts: str) -> str:
    return (" " if say.language == "en" else "").join(filter(None, texts))


def _real(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
