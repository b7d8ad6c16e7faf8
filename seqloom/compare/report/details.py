"""The later sections of the report: the seven aspects, samples, the protocol and the commands."""

from __future__ import annotations

from collections.abc import Callable

from seqloom.compare.report import charts, facts, fading, few, transfer, tuning
from seqloom.compare.report.facts import Entry, Result
from seqloom.core.rows import Json
from seqloom.pages import formats
from seqloom.pages.blocks import Block, Cell, Code, Column, Row, Samples, Table, Text
from seqloom.pages.words import Speaker


def aspects(result: Result, say: Speaker) -> list[Block | None]:
    """The seven aspects as a table with a row each, and charts for some of them."""
    shown = facts.scored(result)
    if not shown:
        return []
    rows = {
        "structure": _structure, "length": _length, "dependency": _dependency, "size": _size,
        "training": _training, "interpretability": _interpretability,
    }  # fmt: skip
    cells = [_aspect(say, key, cell, shown, facts.latency_unit(result)) for key, cell in rows.items()]
    cells = [row for row in cells if any(cell.text != formats.NONE for cell in row.cells[1:])]
    columns = [Column(say("aspect"), number=False), *(Column(str(entry["name"]), number=False) for _, entry in shown)]
    reaches = any(facts.reach(entry) for _, entry in shown)
    return [
        Table(say("aspects caption"), columns, [*cells, *_transfer(result, say, shown)], even=True),
        Text(say("reach remark"), "muted") if reaches else None,
        charts.aspects(result, say),
        fading.forgetting(result, say),
        few.chart(result, say),
        transfer.chart(result, say),
        fading.horizon(result, say),
    ]


def samples(result: Result, say: Speaker) -> list[Block | None]:
    shown = [(n, entry) for n, entry in facts.ranked(result) if facts.dig(entry, "sample", "text") is not None]
    if not shown:
        return []
    first = shown[0][1]["sample"]
    reference = first.get("wanted")  # all models got the same input: show it once
    given = [
        Text(f"{say(key)}{say('colon')}{text}")
        for key, text in (("sample input", first.get("prompt")), ("sample reference", reference))
        if reference
    ]
    items = [
        (number, str(entry["name"]), "" if reference else str(entry["sample"].get("prompt") or ""), text)
        for number, entry in shown
        if (text := str(entry["sample"]["text"])) or reference
    ]
    return (
        [Text(say.by(facts.latency_unit(result), "samples remark"), "muted"), *given, Samples(items)] if items else []
    )


def protocol(result: Result, say: Speaker) -> list[Block | None]:
    """Everything needed to judge or reproduce the numbers."""
    rows = [Row([Cell(name), Cell(value)]) for name, value in _rules(result, say) if value not in ("", formats.NONE)]
    columns = [Column(say("item"), number=False), Column(say("value"), number=False)]
    return [
        _data_table(result, say),
        Table(say("rules caption"), columns, rows) if rows else None,
        _models_table(result, say),
    ]


def commands(result: Result, say: Speaker) -> list[Block | None]:
    whole = facts.dig(result, "protocol", "command")
    items = [(say("whole command"), str(whole))] if whole else []
    items += [
        (say("first run of", name=entry.get("name")), str(entry["command"]))
        for _, entry in facts.ranked(result)
        if entry.get("command")
    ]
    return [Code(items)] if items else []


def budget(protocol: Json, say: Speaker) -> str:
    kind, amount = facts.dig(protocol, "budget", "kind"), facts.dig(protocol, "budget", "amount")
    if amount is None:
        return ""
    if kind == "flops":
        return formats.scaled(amount, "FLOPs")
    return say.by(str(protocol.get("clock")), f"budget.{kind}", amount=formats.count(amount))


def busy(result: Result, say: Speaker) -> str:
    """Which figures suffer from other work on the machine, and which did not settle; empty if there was none."""
    sentences = []
    if ratio := facts.dig(result, "timing", "busy"):
        several = (facts.dig(result, "protocol", "threads") or 1) > 1
        scores = say.by(str(facts.dig(result, "protocol", "budget", "kind")), "busy scores")
        cause = say("busy.threads" if several else "busy", ratio=formats.fixed(ratio, 1))
        sentences += [cause, say("busy figures"), scores]
    if facts.unstable(result):
        sentences.append(say("unstable"))
    return say.sentences(*sentences)


def _aspect(
    say: Speaker, key: str, cell: Callable[[Entry, Speaker], Cell], shown: list[tuple[int, Entry]], per: str
) -> Row:
    name = Cell(say(f"aspect {key}"), say.by(per, f"aspect {key} small"))
    return Row([name, *(cell(entry, say) for _, entry in shown)])


def _transfer(result: Result, say: Speaker, shown: list[tuple[int, Entry]]) -> list[Row]:
    """A row, where it was measured or could have been."""
    name = Cell(say("aspect transfer"), say("aspect transfer small"))
    if transfer.measured(result):
        return [Row([name, *(transfer.cell(entry, say) for _, entry in shown)])]
    could = facts.dig(result, "protocol", "pretrains")
    return [Row([name, Cell(say("transfer"), span=len(shown))], "muted")] if could else []


def _structure(entry: Entry, say: Speaker) -> Cell:
    found = facts.state_bytes(entry)
    if not found:
        return Cell(formats.NONE)
    first, last = formats.scaled(found[0], "B"), formats.scaled(found[1], "B")
    return Cell(say("state grows", first=first, last=last) if found[2] else say("state constant", bytes=last))


def _length(entry: Entry, say: Speaker) -> Cell:
    at, beyond = facts.by_position(entry)
    if not at:
        return _by_length(entry, say)
    text = say("loss at", loss=formats.short(at["loss"]), length=formats.count(entry["aspects"]["trained_length"]))
    return Cell(text, _beyond(beyond, say) if beyond else "")


def _beyond(point: Json, say: Speaker) -> str:
    first, last = formats.count(point["from"]), formats.count(point["to"])
    return say("loss beyond", loss=formats.short(point["loss"]), first=first, last=last)


def _by_length(entry: Entry, say: Speaker) -> Cell:
    texts = [
        say(
            "right at",
            share=formats.percent(p["accuracy"]),
            first=formats.count(p["from"]),
            last=formats.count(p["to"]),
        )
        for p in facts.by_length(entry)
    ]
    return Cell(texts[0] if texts else formats.NONE, texts[1] if len(texts) > 1 else "")


def _dependency(entry: Entry, say: Speaker) -> Cell:
    found = facts.reach(entry)
    if not found:
        return Cell(formats.NONE)
    if steps := facts.unlearned(entry):
        return Cell(say("not learned", steps=formats.count(steps)))
    distance, longest = found
    if not distance:
        return Cell(say("reaches nothing"))
    text = say("reaches the end" if longest else "reaches", distance=formats.count(distance))
    spread = facts.recalled_at(entry, distance)
    return Cell(
        text, say("recalled by", low=formats.percent(spread[0]), high=formats.percent(spread[1])) if spread else ""
    )


def _size(entry: Entry, say: Speaker) -> Cell:
    size, stored = facts.size(entry)
    if size is None:
        return Cell(formats.NONE)
    text = say("count of stored" if stored else "count of parameters", count=formats.count(size))
    work = entry.get("flops_per_token")
    return Cell(text, say("work", work=formats.scaled(work)) if work else "")


def _training(entry: Entry, say: Speaker) -> Cell:
    points = sorted(facts.listed(entry, "aspects", "throughput"), key=lambda point: point["length"])
    points = [point for point in points if point.get("tokens_per_second") is not None]
    texts = [
        say(
            "speed at",
            speed=_about(point) + formats.scaled(point["tokens_per_second"]),
            length=formats.count(point["length"]),
        )
        for point in (points[:1] + points[-1:] if len(points) > 1 else points)
    ]
    return Cell(texts[0] if texts else formats.NONE, texts[1] if len(texts) > 1 else "")


def _about(point: Json) -> str:
    return "≈ " if point.get("stable") is False else ""


def _interpretability(entry: Entry, say: Speaker) -> Cell:
    taps = facts.dig(entry, "aspects", "taps") or {}
    if taps.get("count") is None:
        return Cell(formats.NONE)
    names = [str(name) for name in facts.listed(taps, "names")]
    return Cell(say("taps", count=formats.count(taps["count"])), ", ".join(names[:2]) + ("…" if names[2:] else ""))


def _data_table(result: Result, say: Speaker) -> Table | None:
    parts = {name: part for name, part in (facts.dig(result, "protocol", "data") or {}).items() if part}
    if not parts:
        return None
    columns = [Column(say("part"), number=False), Column(say("file"), number=False), Column(say("bytes")),
               Column(say("tokens")), Column(say("hash"), number=False)]  # fmt: skip
    rows = [
        Row([Cell(say.term("part", name)), Cell(str(part.get("name") or formats.NONE)),
             Cell(formats.count(part.get("bytes"))), Cell(formats.count(part.get("tokens"))),
             Cell(str(part.get("hash") or formats.NONE))])
        for name, part in parts.items()
    ]  # fmt: skip
    return Table(say("data caption"), columns, rows)


def _rules(result: Result, say: Speaker) -> list[tuple[str, str]]:
    p = result.get("protocol") or {}
    direction = say("higher" if facts.higher_is_better(result) else "lower")
    metric = [say.pick(facts.score_words(result)), say.pick(facts.unit(result)), direction]
    trials = p.get("trials")
    share = formats.percent(p.get("trial_share"))
    time, plan = result.get("timing") or {}, p.get("plan") or {}
    return [
        (say("task"), say.pick(facts.task_title(result))),
        (say("metric"), say("comma").join(filter(None, metric))),
        (say("scored"), say.pick(facts.how_scored(result))),
        (say("size"), _common_size(result, say)),
        (say("tokenizers"), say("tokenizers value", count=p["tokenizers"]) if p.get("tokenizers", 1) > 1 else ""),
        (say("budget"), budget(p, say)),
        (say("tuning"), say("trial share", trials=trials, share=share) if trials else say("none")),
        *tuning.space(result, say),
        (say("seeds"), formats.plain(facts.listed(p, "seeds"))),
        (say("shared"), formats.plain(p.get("shared") or {})),
        (say("judged"), say("judged by", share=formats.percent(p.get("confidence")), margin=p.get("margin"),
                            all=formats.percent(1 - p["level"])) if p.get("level") and p.get("margin") else ""),
        (say("plan"), say("plan value", hash=str(plan.get("sha256"))[:12], look=plan.get("look"),
                          changes=plan.get("amendments")) if plan else ""),
        (say("where"), say("where value", on=say.term("on", formats.plain(p.get("on"))),
                           **{k: formats.plain(p.get(k)) for k in ("device", "jobs", "threads")})),
        (say("started"), formats.day(p.get("started"))),
        (say("time taken"), say("time value", wall=formats.duration(time["wall"]),
                                training=formats.duration(time.get("training")), jobs=formats.count(time.get("jobs")))
         if time.get("wall") else ""),
        (say("overhead"), _outside(time, say)),
        (say("versions"), ", ".join(f"{name} {version}" for name, version in (p.get("versions") or {}).items())),
    ]  # fmt: skip


def _common_size(result: Result, say: Speaker) -> str:
    size, own = facts.dig(result, "protocol", "size") or {}, facts.own_size(result)
    if not size.get("target"):
        return ""
    common = say(f"size {size.get('count', 'all')}", count=formats.count(size["target"]))
    return common + (say("size own", names=say("comma").join(own)) if own else "")


def _outside(time: Json, say: Speaker) -> str:
    """The time of the workers outside of training runs, by what it was spent on."""
    if time.get("overhead") is None:
        return ""
    parts = [
        say(f"outside.{name}", time=formats.duration(seconds))
        for name, seconds in (time.get("outside") or {}).items()
        if seconds >= 0.5
    ]
    share = say("overhead value", share=formats.percent(time["overhead"]))
    return say("semicolon").join([share, say("comma").join(parts)]) if parts else share


def _models_table(result: Result, say: Speaker) -> Table | None:
    rows = [
        Row([Cell(str(entry.get("name")), entry=number),
             *(Cell(formats.plain(entry.get(key) or {}) or formats.NONE) for key in ("given", "config", "tuned"))])
        for number, entry in facts.ranked(result)
    ]  # fmt: skip
    columns = [Column(say(key), number=False) for key in ("model", "given", "config", "tuned")]
    return Table(say("models caption"), columns, rows) if rows else None
