"""No sentence about scale says more than its result supports: results with ladders of every kind are generated, and
every sentence is checked, its numbers against the figures of the result, and what it claims against the curves."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from compare_known import numerals
from compare_results import generated

from seqloom.compare.ladder.climbing import _described, _pair
from seqloom.compare.report import facts, html, markdown
from seqloom.compare.report.ladder import section
from seqloom.compare.report.ladder_words import LADDER
from seqloom.compare.report.words import WORDS
from seqloom.lab.ladder import CONFIDENCE, SURE, TIMES, Curve, Rung
from seqloom.pages.formats import fixed, percent, scaled, short
from seqloom.pages.words import Speaker

Values = dict[str, Any]
NUMBERS = range(42)
UNITS = {"budget": ("tokens", "flops"), "data": ("tokens", "examples", "points"), "size": ("parameters", "backbone")}
STYLES = ("apart", "crosses", "passed", "close", "worse", "few", "perfect")
SHARES = (1 / 8, 1 / 4, 1 / 2, 1.0)


def law(style: str, place: int, rng: np.random.Generator) -> tuple[float, float, float]:
    """Offset, scale and exponent: one curve passes the other at 2 times the full amount, or did so at a third of it."""
    if style in ("crosses", "passed"):
        slow, quick = ((1.0, 0.7, 0.55), (1.0, 0.5, 0.1)) if style == "crosses" else ((0.6, 0.5, 0.8), (0.9, 0.45, 0.1))
        return slow if place else quick
    return float(rng.uniform(0.8, 1.2)), float(rng.uniform(0.4, 0.8)) + (place if style == "apart" else 0), 0.4


def points(style: str, place: int, full: float, higher: bool, rng: np.random.Generator) -> list[Values]:
    offset, scale, alpha = law(style, place, rng)
    seeds, noise = int(rng.integers(1, 4)), 0.001 if style in ("crosses", "passed") else 0.004
    found = []
    for share in SHARES[2:] if style == "few" and place == 0 else SHARES:
        loss = (offset + scale * share**-alpha) * (1 + noise * rng.standard_normal(seeds))
        if style == "worse" and place == 0:
            loss = loss[::-1] * (1 + share)
        scores = 1 - loss / 12 if higher else loss
        if style == "perfect" and place == 0:
            scores = np.full(seeds, 1.0 if higher else 0.0)
        runs = [{"seed": n, "score": float(score)} for n, score in enumerate(scores, 1)]
        score = {"mean": float(scores.mean()), "low": None, "high": None, "seeds": seeds}
        found.append({"at": round(share * full), "score": score, "runs": runs})
    return found


@cache
def laddered(number: int) -> Values:
    rng, kind = np.random.default_rng(number), list(UNITS)[number % 3]
    style, result = STYLES[number // 3 % len(STYLES)], generated(4 * number + number % 2)[0]
    higher, full = result["protocol"]["higher_is_better"], float(rng.choice([8000, 3_000_000]))
    curves: dict[str, Curve] = {}
    for place, entry in enumerate(e for e in result["entries"] if e["state"] == "done"):
        if place > 1 or (entry.get("fixed") and kind != "data"):
            entry["ladder"] = None
            continue
        every = points(style, place, full, higher, rng)
        rungs = [Rung(point["at"], [run["score"] for run in point["runs"]]) for point in every]
        curve = curves[entry["name"]] = Curve(rungs, 1.0 if higher else None, number)
        entry["ladder"] = {"points": every} | _described(curve) | {"memorising": kind == "budget" and number % 2 == 1}
    result["ladder"] = {
        "kind": kind, "over": str(rng.choice(UNITS[kind])), "times": list(TIMES), "confidence": CONFIDENCE,
        "sure": SURE, "full": full, "seeds": 2,
        "pairs": [{"first": a, "second": b} | _pair(curves[a], curves[b]) for a, b in combinations(curves, 2)],
    }  # fmt: skip
    return result


class Recorder(Speaker):
    """Remembers what it was asked to say."""

    def __init__(self, language: str) -> None:
        super().__init__(language, WORDS)
        self.said: list[tuple[str, Values, str]] = []

    def __call__(self, key: str, **values: Any) -> str:
        text = super().__call__(key, **values)
        self.said.append((key, values, text))
        return text


def sentences(result: Values, language: str) -> list[tuple[str, Values, str]]:
    say = Recorder(language)
    section(result, say)
    return [each for each in say.said if each[0].startswith("ladder ")]


class Known:
    def __init__(self, result: Values) -> None:
        self.result, self.ladder = result, result["ladder"]
        self.entries = {entry["name"]: entry for entry in result["entries"] if entry.get("ladder")}
        self.full, self.kind = self.ladder["full"], self.ladder["kind"]
        self.end = self.full * TIMES[-1]

    def amount(self, value: float) -> str:
        unit = self.ladder["over"]
        if unit == "flops":
            return scaled(value, "FLOPs")
        return f"{scaled(value)} {'backbone parameters' if unit == 'backbone' else unit}"

    def pair(self, v: Values) -> tuple[Values, float, float]:
        """The pair of a sentence, and how sure it is that who is said to be ahead is so now and at the end."""
        names = {v.get("ahead"), v.get("behind")} if "ahead" in v else {v["first"], v["second"]}
        (found,) = [pair for pair in self.ladder["pairs"] if {pair["first"], pair["second"]} == names]
        now, later = found["now"], found["later"]
        if v.get("ahead") == found["second"]:
            now, later = 1 - now, 1 - later
        return found, now, later

    def number(self, value: float) -> str:
        return fixed(value, facts.decimals(self.result))


Claim = Callable[[Known, Values], bool]


def _crosses(k: Known, v: Values) -> bool:
    found, now, later = k.pair(v)
    placed = k.full <= found["low"] <= found["at"] <= found["high"] <= k.end * 1.001
    return placed and now <= 1 - SURE and later >= SURE and _where(k, found, v)


def _passed(k: Known, v: Values) -> bool:
    found, now, later = k.pair(v)
    placed = k.full / 8.001 <= found["low"] <= found["at"] <= found["high"] <= k.full * 1.001
    return placed and now >= SURE and later >= SURE and _where(k, found, v) and v["end"] == k.amount(k.end)


def _where(k: Known, found: Values, v: Values) -> bool:
    return all(v[key] == k.amount(found[key]) for key in ("at", "low", "high"))


def _stays(k: Known, v: Values) -> bool:
    _, now, later = k.pair(v)
    return now >= SURE and later >= SURE and v["end"] == k.amount(k.end)


def _unclear(k: Known, v: Values) -> bool:
    without = any(k.entries[v[name]]["ladder"].get("problem") for name in ("first", "second"))
    _, now, later = ({}, 0.5, 0.5) if without else k.pair(v)
    unsure = max(now, 1 - now) < SURE or max(later, 1 - later) < SURE
    return unsure and v["end"] == k.amount(k.end)


def _reached(untrained: bool) -> Claim:
    def claim(k: Known, v: Values) -> bool:
        entry = k.entries[v["name"]]
        last = entry["ladder"]["predicted"][-1]
        quoted = all(v[key] == k.number(last[key]) for key in ("middle", "low", "high"))
        far = v["end"] == k.amount(last["at"]) and v["times"] == short(last["at"] / k.full)
        inside = last["low"] <= last["middle"] <= last["high"]
        return quoted and far and inside and bool(entry.get("fixed")) == untrained

    return claim


def _problem(what: str) -> Claim:
    def claim(k: Known, v: Values) -> bool:
        found = k.entries[v["name"]]["ladder"]
        means = [point["score"]["mean"] for point in found["points"]]
        up = k.result["protocol"]["higher_is_better"]
        true = {
            "few": len(means) < 3,
            "worse": means[-1] < max(means) if up else means[-1] > min(means),
            "perfect": max(means) >= 1 if up else min(means) <= 0,
        }
        return found["problem"] == what and true[what] and not found["predicted"]

    return claim


def _part(k: Known, v: Values) -> bool:
    runs = k.entries[v["name"]]["runs"]
    epochs = np.mean([run["tokens"] for run in runs]) / k.result["protocol"]["epoch_tokens"]
    return bool(k.kind == "data" and epochs < 1 and v["epochs"] == percent(epochs))


CLAIMS: dict[str, Claim] = {
    "ladder crosses": _crosses,
    "ladder passed": _passed,
    **{f"ladder stays.{kind}": _stays for kind in UNITS},
    "ladder unclear": _unclear,
    **{f"ladder reached.{kind}": _reached(False) for kind in UNITS},
    "ladder reached without training": lambda k, v: k.kind == "data" and _reached(True)(k, v),
    "ladder problem few": _problem("few"),
    **{f"ladder problem worse.{kind}": _problem("worse") for kind in UNITS},
    "ladder problem perfect": _problem("perfect"),
    "ladder part": _part,
}
PARTS = {key for key in LADDER if key.split(".")[0] in {
    "ladder chart", "ladder remark", "ladder full", "ladder axis", "ladder amount", "ladder kind", "ladder measured",
    "ladder predicted", "ladder memorising",
}}  # fmt: skip


@pytest.mark.parametrize("number", NUMBERS)
def test_every_sentence_about_scale_is_supported_by_its_result(number: int) -> None:
    result = laddered(number)
    known = Known(result)
    english, chinese = sentences(result, "en"), sentences(result, "zh")
    assert [key for key, *_ in english] == [key for key, *_ in chinese]
    for (key, values, text), (_, _, other) in zip(english, chinese, strict=True):
        if key in CLAIMS:
            assert CLAIMS[key](known, values), f"{key}: {text}"
            assert sorted(numerals(text)) == sorted(numerals(other)), (text, other)
        suffix = key.partition(".")[2].split(".")[0]
        assert suffix in (known.kind, "") or key.startswith("ladder amount."), f"{key} about {known.kind}"
        assert not re.search(r"\b(None|nan|inf)\b", text + other)
    for language in ("en", "zh"):
        page = markdown(result, language)
        assert all(text in page.replace("\\", "") for key, _, text in sentences(result, language) if key in CLAIMS)
    assert html(result)


def test_every_sentence_about_scale_has_a_condition_and_occurs() -> None:
    assert set(LADDER) == set(CLAIMS) | PARTS and not set(CLAIMS) & PARTS
    occurred = {key for number in NUMBERS for key, *_ in sentences(laddered(number), "en")}
    assert sorted(set(CLAIMS) - occurred) == []
    assert sorted(key for key in PARTS - occurred if not key.startswith("ladder axis.")) == []  # terms, not said
