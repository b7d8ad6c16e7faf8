"""No sentence of a recommendation says more than its result supports: every sentence about a hundred generated results
is checked, its numbers against the figures of the result, and what it claims against the condition of its kind."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from compare_known import Known, Values, names_in, numerals
from compare_results import HUNDRED, MANY, generated

from seqloom.compare.advice import contenders, evidence, recommend, sentences
from seqloom.compare.advice.sentences import SENTENCES
from seqloom.compare.report import facts, html, markdown
from seqloom.lab.power import Needed
from seqloom.lab.rules import Margin
from seqloom.pages.formats import count, percent, scaled, short

Said = dict[tuple[str, str], tuple[str, Values]]  # key and values, by the sentence in both languages
COSTS = ("latency", "memory", "training")
MARKS = {"latency": " ms", "memory": "of state", "training": "tokens/s"}


# what each kind of sentence claims

Claim = Callable[[Known, Values], bool]


def _best(k: Known, v: Values) -> bool:
    none_better = all(k.sign * k.mean(name) >= k.sign * k.mean(v["name"]) for name in k.models)
    return none_better and k.score_is(v["name"], v["score"])


def _all_candidates(k: Known) -> bool:
    return k.models == k.finished


def _group(verdict: str) -> Claim:
    def claim(k: Known, v: Values) -> bool:
        order = sorted(k.having(verdict), key=lambda name: k.sign * k.mean(name))
        found = [name for name in order if verdict != "unclear" or k.tested(name)]
        listed = [part.split(" is ")[0] for part in v["others"].split("; ")]
        margin = v.get("margin", k.protocol["margin"]) == k.protocol["margin"]
        named = "names" not in v or names_in(v["names"]) == set(found)
        return margin and named and set(listed) == set(found) and v["others"] == k.all_behind(listed)

    return claim


def _equivalent(k: Known, names: set[str]) -> bool:
    margin = Margin.parse(k.protocol["margin"]).of(k.mean(k.best))
    return all(k.standing[name]["high"] < margin for name in names)


def _worse(k: Known, names: set[str]) -> bool:
    return all(k.standing[name]["low"] > 0 for name in names)


def _cheapest(k: Known, v: Values) -> bool:
    group = {k.best} | k.having("unclear") | k.having("equivalent")
    named = re.findall(r"(\w+) \(([^()]*)\)", v["costs"]) or [(v.get("name"), v["costs"])]
    if names_in(v["names"]) != group:
        return False
    for name, text in named:
        for kind in (kind for kind in COSTS if MARKS[kind] in text):
            prices = [price for each in group if (price := k.price(each, kind)) is not None]
            alike = max(prices) <= 1.05 * min(prices) and kind != "memory"  # equal states: the peak of training decides
            if k.price(name, kind) != min(prices) or alike:
                return False
    return True


def _leads(k: Known, v: Values) -> bool:
    kind = next(kind for kind in COSTS if SENTENCES[f"lead.{kind}"][0] == v["lead"])
    prices = {n: price for n in k.worthwhile() if (price := k.price(n, kind)) is not None}
    leads = prices[v["name"]] == min(prices.values()) and k.cost_is(v["name"], kind, v["value"])
    return leads and ("second" not in v or k.cost_is(v["second"], kind, v["other"]))


def _near(k: Known, v: Values) -> bool:
    kind, names = _kind(v["what"]), names_in(v["names"])
    prices = [k.price(name, kind) or math.inf for name in names]
    order = min(k.sign * k.mean(name) for name in names)
    return v["name"] in names and max(prices) <= 1.05 * min(prices) and k.sign * k.mean(v["name"]) == order


def _near_by_peak(k: Known, v: Values) -> bool:
    names = names_in(v["names"])
    states = [k.price(name, "memory") or math.inf for name in names]
    peaks = [k.peak(name) or math.inf for name in names]
    mine = k.peak(v["name"])
    told = v["name"] in names and mine is not None and v["peak"] == scaled(mine, "B")
    return told and max(states) <= 1.05 * min(states) and mine <= 1.05 * min(peaks)


def _kind(what: str) -> str:
    return next(kind for kind in ("quality", *COSTS) if SENTENCES[f"what.{kind}"][0] == what)


def _gives_up(verdict: str) -> Claim:
    def claim(k: Known, v: Values) -> bool:
        name = k.advice["choice"]
        quoted = k.score_is(name, v["score"]) and v["behind"] == k.behind(name) and v["best"] == k.best
        return quoted and k.verdict(name) == verdict and k.sign * (k.mean(name) - k.mean(k.best)) >= 0

    return claim


def _against_baseline(relation: str) -> Claim:
    def claim(k: Known, v: Values) -> bool:
        name = k.advice["choice"]
        rival = k.rival(name) or ""
        value, lead = k.rows[rival], k.lead(name, rival)
        if v["baseline"] != rival or k.number(value, k.by) not in v["value"]:
            return False
        beats = k.beats(name) or name == k.baseline
        if relation == "no":
            return not beats
        low, high = k.shared(name)["low"], k.shared(name)["high"]
        inside = None if low is None else bool(low <= value <= high)
        return lead is None and beats and inside is {"surely": False, "perhaps": True, "once": None}[relation]

    return claim


def _paired(surely: bool) -> Claim:
    def claim(k: Known, v: Values) -> bool:
        name = k.advice["choice"]
        rival = k.rival(name) or ""
        found = k.lead(name, rival)
        if found is None or v["baseline"] != rival or k.number(k.rows[rival], k.by) not in v["value"]:
            return False
        gap, low, high = (k.number(value, k.by) for value in found)
        said = v["lead"] == f"better by {gap} ({percent(0.95)} CI {low} to {high}, on the same test segments)"
        return said and (k.beats(name) or name == k.baseline) and (found[1] > 0) == surely

    return claim


def _no_better(k: Known, v: Values) -> bool:
    who = f"no {'other ' if k.baseline in k.models else ''}model{'' if _all_candidates(k) else ' that fits'}"
    best = (max if k.up else min)(k.shared(name)["mean"] for name in k.models if name != k.baseline)
    quoted = k.shared(v["name"])["mean"] == best and k.score_is(v["name"], v["score"], k.by)
    return quoted and v["who"] == SENTENCES[who][0] and k.unbeaten() and v["baseline"] == k.baseline


def _usable(k: Known, v: Values) -> bool:
    (row,) = [row for row in k.result["baselines"] if row["name"] == v["baseline"]]
    value = k.rows[row["name"]]
    worse = all((k.shared(n)["mean"] <= value) if k.up else (k.shared(n)["mean"] >= value) for n in k.models)
    return bool(row["model"]) and worse and k.advice["choice"] == row["model"]


def _unbeaten(k: Known, v: Values) -> bool:
    by = next(name for name in k.protocol["shown"] if facts.score_words(k.result, name)[0] == v["score"])
    (row,) = [row for row in k.result["baselines"] if row["name"] == v["baseline"]]
    return all(k.entries[name]["scores"][by]["mean"] < row["scores"][by] for name in k.models)


def _costs(k: Known, v: Values) -> bool:
    name = k.advice["choice"]
    what = "parameters" if k.entries[name]["parameters"] else "stored values"
    return not k.size(name) or f"{count(k.size(name))} {what}" in v["costs"]


def _limit(limit: str) -> Claim:
    def claim(k: Known, v: Values) -> bool:
        latency, state = k.table(v["name"], "latency"), k.table(v["name"], "memory")
        broken = {
            "max_params": lambda: k.entries[v["name"]]["parameters"] > k.limits["max_params"],
            "max_params.stored": lambda: (
                k.size(v["name"]) > k.limits["max_params"]
                and k.fixed(v["name"])
                and not k.entries[v["name"]]["parameters"]
            ),
            "max_latency_ms": lambda: latency[max(latency)] * 1e3 > k.limits["max_latency_ms"],
            "streaming": lambda: state[max(state)] > state[min(state)] and k.limits["streaming"],
        }
        return v["name"] not in k.models and bool(broken[limit]())

    return claim


def _unknown_cost(k: Known, v: Values) -> bool:
    kind = "latency" if v["option"] == "--max-latency-ms" else "memory"
    return not k.table(v["name"], kind) and v["option"].strip("-").replace("-", "_") in k.limits


def _relax(k: Known, v: Values) -> bool:
    limits = dict(k.limits)
    for part in v["options"].split(" and "):
        option, _, value = part.removeprefix("no ").removeprefix("--").partition(" ")
        limits.pop(option.replace("-", "_"))
        limits |= {option.replace("-", "_"): float(value)} if value else {}
    return not k.models and k.admits(v["name"], limits) and k.score_is(v["name"], v["score"])


def _preferred(k: Known, v: Values) -> bool:
    kind = _kind(v["what"])
    if k.choice(kind) != v["name"]:
        return False
    if kind == "quality":
        quoted = k.score_is(v["name"], v["value"])
        return quoted and ("other" not in v or v["other"] == k.number(k.mean(v["choice"])))
    quoted = k.cost_is(v["name"], kind, v["value"])
    return quoted and ("other" not in v or k.cost_is(v["choice"], kind, v["other"]))


def _crossing(k: Known, v: Values) -> bool:
    kind = next(kind for kind in COSTS if SENTENCES[f"lead.{kind}"][0] == v["lead"])
    early, late = ({n: p for n in k.models if (p := k.price(n, kind, pick)) is not None} for pick in (min, max))
    first = early[v["first"]] == min(early.values()) and k.cost_is(v["first"], kind, v["value"], min)
    second = late[v["second"]] == min(late.values()) and k.cost_is(v["second"], kind, v["other"])
    same = k.cost_is(v["second"], kind, v["same"], min) and k.cost_is(v["first"], kind, v["later"])
    return first and second and same and v["first"] != v["second"]


def _grows(k: Known, v: Values) -> bool:
    mine, other = k.table(v["name"], "memory"), k.table(v["other"], "memory")
    return mine[max(mine)] > mine[min(mine)] and len(set(other.values())) == 1


def _trained_on(k: Known, v: Values) -> bool:
    tokens = [k.entries[name]["runs"][0]["tokens"] for name in k.models if not k.fixed(name)]
    ends = {count(min(tokens)), count(max(tokens))}
    epochs = {short(end / k.protocol["epoch_tokens"], 2) for end in (min(tokens), max(tokens))}
    quoted = set(v["tokens"].split(" to ")) == ends and set(v["epochs"].split(" to ")) == epochs
    return quoted and names_in(v["names"]) == {name for name in k.models if k.fixed(name)}


def _few(k: Known) -> set[str]:
    once = k.protocol["epoch_tokens"]
    return {name for name in k.models if not k.fixed(name) and k.entries[name]["runs"][0]["tokens"] < once}


def _one_seed(k: Known, v: Values) -> bool:
    untested = [name for name in k.having("unclear") if not k.tested(name)]
    return bool(untested) and all(f"{n} ({k.number(k.mean(n))})" in v["scores"] for n in (k.best, *untested))


def _single(k: Known) -> bool:
    return any(not k.fixed(name) and k.seeds(name) == 1 for name in k.models)


def _seeds(many: bool) -> Claim:
    def claim(k: Known, v: Values) -> bool:
        wanted, done = k.more_seeds(v["name"])
        said = v["count"] == count(wanted) and v["done"] == done and v["time"] == k.more_time(v["name"])
        return (
            said
            and k.verdict(v["name"]) == "unclear"
            and (wanted > 50) == many
            and k.needed(v["name"]).seeds is not None
        )

    return claim


def _in_vain(limit: str) -> Claim:
    return lambda k, v: k.verdict(v["name"]) == "unclear" and k.needed(v["name"]) == Needed(None, limit)  # type: ignore[arg-type]


CLAIMS: dict[str, Claim] = {
    "lead": lambda k, v: _best(k, v) and _all_candidates(k),
    "lead of those that fit": lambda k, v: _best(k, v) and not _all_candidates(k),
    "headline.worse": lambda k, v: len(k.others) > 1 and _worse(k, set(k.others)) and k.advice["certain"],
    "headline.worse one": lambda k, v: k.others == [v["names"]] and _worse(k, set(k.others)) and k.advice["certain"],
    "headline.equivalent": lambda k, v: names_in(v["names"]) == k.having("equivalent")
    and _equivalent(k, k.having("equivalent")) and not k.having("unclear") and v["margin"] == k.protocol["margin"],
    "headline.unclear": lambda k, v: names_in(v["names"]) == k.having("unclear") and not k.advice["certain"],
    "best": lambda k, v: _best(k, v) and _all_candidates(k),
    "best that fits": lambda k, v: _best(k, v) and not _all_candidates(k),
    "only one": lambda k, v: k.models == k.finished == [v["name"]],
    "only one that fits": lambda k, v: k.models == [v["name"]] != k.finished,
    "open": _group("unclear"),
    "equivalent": lambda k, v: _group("equivalent")(k, v) and _equivalent(k, k.having("equivalent")),
    "worse": lambda k, v: _group("worse")(k, v) and _worse(k, k.having("worse")),
    "trained on": _trained_on,
    "pretrained": lambda k, v: names_in(v["names"]) == {n for n in k.models if k.entries[n].get("pretrained")},
    "under one epoch": lambda k, v: names_in(v["names"]) == _few(k) and k.fixed(k.advice["choice"]),
    "cheapest": _cheapest,
    "cheapest alone": _cheapest,
    "one seed": lambda k, v: _one_seed(k, v) and _single(k),
    "one segment": lambda k, v: _one_seed(k, v) and not _single(k)
    and any(len(k.entries[name]["runs"][0]["pieces"]) == 1 for name in k.models if k.fixed(name)),
    "seeds": _seeds(many=False),
    "many seeds": _seeds(many=True),
    **{f"seeds in vain.{limit}": _in_vain(limit) for limit in ("pieces", "tuning", "difference", "fixed")},
    "leads": _leads,
    "leads before": _leads,
    "near": _near,
    "near by peak": _near_by_peak,
    "also best": lambda k, v: k.advice["choice"] == k.best and k.score_is(k.best, v["score"]),
    "gives up": _gives_up("worse"),
    "gives up little": _gives_up("equivalent"),
    "gives up unknown": _gives_up("unclear"),
    "unmeasured": lambda k, v: not any(k.price(name, _kind(v["what"])) for name in k.worthwhile()),
    "costs": _costs,
    "beats": _against_baseline("surely"),
    "beats.paired": _paired(surely=True),
    "beats perhaps.paired": _paired(surely=False),
    "beats once": _against_baseline("once"),
    "beats perhaps": _against_baseline("perhaps"),
    "beaten by baseline": _against_baseline("no"),
    "no better": _no_better,
    "fit baseline": lambda k, v: v["command"] == k.protocol["fit"][v["baseline"]] and v["baseline"] == k.baseline,
    "usable baseline": _usable,
    "unbeaten": _unbeaten,
    "unchecked": lambda k, v: v["name"] not in k.finished and bool(k.limits) and v["name"] == k.advice["choice"],
    "failed": lambda k, v: k.entries[v["name"]]["state"] == "failed" and v["error"] == k.entries[v["name"]]["error"],
    "no score": lambda k, v: k.entries[v["name"]]["state"] == "done" and v["name"] not in k.finished,
    "below baseline": lambda k, v: not k.beats(v["name"]) and v["baseline"] == k.baseline,
    "below fixed": lambda k, v: k.fixed(v["other"]) and k.sign * k.mean(v["other"]) < k.sign * k.mean(v["name"]),
    "max_params": _limit("max_params"),
    "max_params.stored": _limit("max_params.stored"),
    **{f"max_latency_ms{unit}": _limit("max_latency_ms") for unit in ("", ".row", ".source")},
    "streaming": _limit("streaming"),
    "unknown cost": _unknown_cost,
    "nothing finished": lambda k, v: not k.finished,
    "nothing fits": lambda k, v: bool(k.finished) and not k.models,
    "relax": _relax,
    "if preferred": _preferred,
    "if preferred against": _preferred,
    "in any case": lambda k, v: {k.choice(kind) for kind in ("quality", *COSTS)} == {v["name"]},
    "excluded": lambda k, v: v["name"] not in k.models
    and all(k.sign * k.mean(n) >= k.sign * k.mean(v["name"]) for n in k.finished) and k.score_is(v["name"], v["score"]),
    "crossing": _crossing,
    "crossing.row": _crossing,
    "crossing.source": _crossing,
    "grows": _grows,
    "more budget": lambda k, v: k.unbeaten(),
}  # fmt: skip

PARTS = {  # they claim nothing on their own; the sentences that hold them are checked with them
    "score", "score without seeds", "score of one seed", "with unit", "with title", "behind",
    "behind without interval", "name behind", "better by", "parameters", "stored", "latency", "memory", "training",
    "latency at", "latency at.row", "latency at.source", "memory at", "memory at.source", "reading at",
    "reading at.source", "training at", "peak", "named", "more training", "option", "no option", "and", "no model",
    "no model that fits", "no other model", "no other model that fits", "what.quality", "what.latency",
    "what.memory", "what.training", "what.state", "lead.latency", "lead.memory", "lead.training",
}  # fmt: skip


# a hundred results


@cache
def everything() -> list[tuple[int, Values, Values, Said]]:
    """The generated results with what was wished for, and the keys and values of all sentences about them."""
    plain, found = sentences.say, []
    with pytest.MonkeyPatch.context() as patch:
        for number in MANY:
            said: Said = {}

            def recorded(key: str, said: Said = said, **values: Any) -> tuple[str, str]:
                pair = plain(key, **values)
                said[pair] = key, values
                return pair

            for module in (sentences, recommend, evidence, contenders):
                patch.setattr(module, "say", recorded)
            found.append((number, *generated(number), said))
    return found


def shown(result: Values) -> list[tuple[str, str]]:
    advice = result["recommendation"]
    return [
        pair
        for part in ("headline", "reasons", "would_change")
        for pair in zip(advice[part]["en"], advice[part]["zh"], strict=True)
    ]


def in_english(values: Values) -> Values:
    return {name: value[0] if isinstance(value, tuple) else value for name, value in values.items()}


def claims(said: Said, pair: tuple[str, str]) -> Iterator[tuple[str, Values]]:
    """The sentence and the sentences within it."""
    key, values = said[pair]
    yield key, in_english(values)
    for value in values.values():
        if isinstance(value, tuple) and value in said and said[value][0] in CLAIMS:
            yield from claims(said, value)


def test_every_sentence_is_supported_by_its_result() -> None:
    for number, result, wishes, said in everything():
        known = Known(result, wishes)
        allowed = known.numbers()
        for pair in shown(result):
            for key, values in claims(said, pair):
                assert CLAIMS[key](known, values), f"result {number}, {key}: {pair[0]}"
            assert set(numerals(pair[0])) <= allowed, f"result {number}: {pair[0]}"
            assert sorted(numerals(pair[0])) == sorted(numerals(pair[1])), pair


@pytest.mark.parametrize("number", HUNDRED)
def test_the_reports_say_these_sentences_and_nothing_that_is_no_number(number: int) -> None:
    _, result, _, _ = everything()[number]
    page = html(result)
    for language in ("en", "zh"):
        text = markdown(result, language)
        plain = text.replace("\\", "")
        assert all(sentence in plain for sentence in result["recommendation"]["reasons"][language])
        assert result["recommendation"]["headline"][language][0] in plain
        assert not re.search(r"\b(None|nan|inf)\b", plain)
    assert not re.search(r">[^<]*\b(None|nan)\b[^<]*<", re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL))


def test_grammar_of_one_and_several() -> None:
    for _, result, _, _ in everything():
        for english, chinese in shown(result):
            assert not re.search(r"\b1 seeds|\b1 (?:were|models|tokens)\b|  |\.\.|, ,|\( ", english), english
            assert not re.search(r"[a-z] 个|  |。。|，，|（）", chinese), chinese
            assert english.endswith(".") or "seqloom fit" in english
            assert chinese.endswith("。") or "seqloom fit" in chinese


def test_every_kind_of_sentence_has_a_condition_and_occurs_so_that_none_is_unused() -> None:
    assert set(SENTENCES) == set(CLAIMS) | PARTS and not set(CLAIMS) & PARTS
    occurred = {key for _, result, _, said in everything() for pair in shown(result) for key, _ in claims(said, pair)}
    assert sorted(set(CLAIMS) - occurred - RARE) == []
    parts = {key for _, _, _, said in everything() for key, _ in said.values()}
    assert sorted(PARTS - parts - TERMS) == []


RARE = {"no score"}  # see test_compare_recommend.py
TERMS = {f"what.{name}" for name in ("quality", *COSTS, "state")} | {f"lead.{name}" for name in COSTS}
