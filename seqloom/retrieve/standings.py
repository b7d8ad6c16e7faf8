"""Which of several retrievers is best, and how sure that is: paired by query, for all pairs together.

Every retriever is compared with the best of the others (Hsu 1984), as models are (`lab/statistics.py`), but by paired
bootstrap intervals over queries: there are no seeds and no tuning, and queries do not come in the order of a text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from scipy import special

from seqloom.core.rows import Json
from seqloom.lab.statistics import Standing, Verdict, per_pair
from seqloom.pages import formats
from seqloom.pages.words import LANGUAGES, Speaker
from seqloom.retrieve.comparison_words import WORDS
from seqloom.retrieve.evaluation import Interval, bootstrap

LEVEL = 0.05  # for all pairs together
FEWEST = 20  # queries: with fewer, bootstrap intervals are too narrow to be trusted
_SAME = 0.05  # share by which two costs may differ and still count as the same

Certainty = Literal["alone", "few", "worse", "equivalent", "unclear"]


def verdicts(scores: Mapping[str, np.ndarray], margin: float) -> dict[str, Verdict]:
    """`scores`: of every query, higher is better; `margin`: a difference that does not matter. A positive difference
    means worse."""
    means = {name: float(values.mean()) for name, values in scores.items()}
    queries = len(next(iter(scores.values())))
    best, level = max(means, key=means.__getitem__), expanded(per_pair(LEVEL, len(scores)), queries)
    found = {}
    for name, values in scores.items():
        gaps = [bootstrap(other - values, level) for key, other in scores.items() if key != name]
        found[name] = _against(gaps, queries, margin, name == best)
    return found


def expanded(level: float, queries: int) -> float:
    """The level at which percentile intervals of so few queries err as often as they should (Hesterberg 2015): drawn
    again, a small sample varies less than what it was drawn from."""
    if queries < 2:
        return level
    reach = float(special.stdtrit(queries - 1, level / 2)) * math.sqrt(queries / (queries - 1))
    return 2 * float(special.ndtr(reach))


def _against(gaps: list[Interval], queries: int, margin: float, best: bool) -> Verdict:
    """The distance to the best of the others lies between the largest lower and the largest upper bound of all."""
    if not gaps:
        return Verdict(None, None, None, None, "best")
    difference = max(gap.mean for gap in gaps)
    if queries < FEWEST:
        return Verdict(difference, None, None, None, "best" if best else "unclear")
    low, high = max(gap.low for gap in gaps), max(gap.high for gap in gaps)
    standing: Standing = "best" if best else "equivalent" if high < margin else "worse" if low > 0 else "unclear"
    return Verdict(difference, low, high, None, standing)


def recommend(entries: list[Json], queries: int, margin: float) -> Json:
    """`entries`: as in the result, the best first."""
    best, others = entries[0], entries[1:]
    by = {v: [e for e in others if e["against_best"]["verdict"] == v] for v in ("worse", "equivalent", "unclear")}
    certainty: Certainty = (
        "alone" if not others else "few" if queries < FEWEST else "unclear" if by["unclear"]
        else "equivalent" if by["equivalent"] else "worse"
    )  # fmt: skip
    open_ones = by[certainty] if certainty in ("unclear", "equivalent") else others
    texts: dict[str, list[list[str]]] = {"headline": [], "reasons": []}
    for language in LANGUAGES:
        say = Speaker(language, WORDS)
        names = _listed([entry["name"] for entry in open_ones], say)
        lead = say("lead", name=best["name"], score=_score(best, say))
        shown = {"names": names, "margin": formats.short(margin, 2), "queries": queries, "fewest": FEWEST}
        texts["headline"].append([say(f"headline.{certainty}", lead=lead, **shown)])
        texts["reasons"].append(_reasons(best, by, queries, margin, say))
    said = {name: dict(zip(LANGUAGES, both, strict=True)) for name, both in texts.items()}
    return {"choice": best["name"], "certain": certainty not in ("few", "unclear"), **said}


def _reasons(best: Json, by: Mapping[str, list[Json]], queries: int, margin: float, say: Speaker) -> list[str]:
    found = []
    for verdict, entries in by.items():
        if entries and queries >= FEWEST:
            behind = [say("behind", name=e["name"], **_difference(e)) for e in entries]
            shown = {"others": say("semicolon").join(behind), "margin": formats.short(margin, 2)}
            found.append(say(f"reason.{verdict}", **shown))
    rivals = by["unclear"] + by["equivalent"]
    for entry in by["unclear"]:
        if needed := _needed(entry["against_best"], queries):
            shown = {"name": entry["name"], "best": best["name"], "count": formats.count(needed)}
            found.append(say("needed" if needed <= 100 * queries else "hopeless", queries=queries, **shown))
    cheap = min(rivals, key=lambda entry: float(entry["ms_per_query"]), default=None)
    if cheap and cheap["ms_per_query"] < (1 - _SAME) * best["ms_per_query"]:
        own, theirs = (formats.short(entry["ms_per_query"], 3) for entry in (best, cheap))
        kind = "cheaper" if cheap["encoder"] else "cheaper without encoder"
        found.append(say(kind, name=cheap["name"], theirs=theirs, best=best["name"], own=own))
    if encoders := sorted({entry["encoder"] for entry in (best, *(e for v in by.values() for e in v))} - {None}):
        found.append(say("seen", names=_listed(encoders, say)))
    return found


def _needed(against: Json, queries: int) -> int | None:
    """Queries at which an interval of a difference like this would just not reach 0."""
    difference, low = against["difference"], against["low"]
    if low is None or difference <= 0:
        return None
    return round(queries * ((difference - low) / difference) ** 2 + 0.5)


def _difference(entry: Json) -> dict[str, str]:
    against: Any = entry["against_best"]
    return {key: formats.fixed(against[key], 4, sign=key != "difference") for key in ("difference", "low", "high")}


def _score(entry: Json, say: Speaker) -> str:
    score = entry["scores"]["ndcg@10"]
    return say("score", **{key: formats.fixed(score[key], 3) for key in ("mean", "low", "high")})


def _listed(names: list[str], say: Speaker) -> str:
    *first, last = names or [""]
    return say("and", first=say("list").join(first), last=last) if first else last
