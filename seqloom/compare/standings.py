"""From the results of several comparisons, one per data set, to the standing of every entry over all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from seqloom.compare.report.facts import dig, listed
from seqloom.core.rows import Json
from seqloom.lab import ranks

CONFIDENCE, LEVEL = 0.95, 0.05


def assemble(results: Mapping[str, Json], folders: Mapping[str, str], protocol: Mapping[str, Any]) -> Json:
    """`results` and `folders` by data set; everything that the report of the study says."""
    first = next(iter(results.values()))["protocol"]
    found = {data: _scores(result) for data, result in results.items()}
    names = list(dict.fromkeys(name for scores in found.values() for name in scores))
    absent = {name: reason for name in names if (reason := _absent(name, results, found))}
    ranked = [name for name in names if name not in absent]
    higher = [bool(dig(result, "protocol", "higher_is_better")) for result in results.values()]
    table = np.array([[found[data][name] for name in ranked] for data in results], dtype=float)
    standing = _standing(ranked, table.reshape(len(results), len(ranked)), higher)
    return {
        "protocol": {
            **protocol,
            **{key: first.get(key) for key in ("task", "metric", "higher_is_better", "titles")},
            "confidence": CONFIDENCE,
            "level": LEVEL,
        },
        "data": [
            {
                "name": data,
                "folder": folders[data],
                "metric": dig(result, "protocol", "metric"),
                "seeds": len(listed(result, "protocol", "seeds")),
                "size": dig(result, "protocol", "size", "target"),
                "choice": dig(result, "recommendation", "choice"),
            }
            for data, result in results.items()
        ],
        **standing,
        "left_out": [{"name": name, **reason} for name, reason in absent.items()],
    }


def _scores(result: Json) -> dict[str, float | None]:
    """Of every entry, and of every baseline that is a model; None: not finished, or without this score."""
    members = [*listed(result, "entries"), *(row for row in listed(result, "baselines") if row.get("model"))]
    found: dict[str, float | None] = {}
    for member in members:
        score = member.get("score")
        mean: Any = score.get("mean") if isinstance(score, dict) else score
        done = member.get("state", "done") == "done" and not member.get("error")
        usable = done and isinstance(mean, int | float) and math.isfinite(mean)
        found.setdefault(str(member["name"]), float(mean) if usable else None)
    return found


def _absent(name: str, results: Mapping[str, Json], found: Mapping[str, Mapping[str, float | None]]) -> Json | None:
    """Why an entry cannot be ranked: the first data set on which it has no score; None if there is none."""
    for data, result in results.items():
        if name not in found[data]:
            return {"data": data, "why": "missing", "error": None}
        if found[data][name] is None:
            members = [*listed(result, "entries"), *listed(result, "baselines")]
            error = next((row.get("error") for row in members if row.get("name") == name), None)
            return {"data": data, "why": "failed" if error else "unscored", "error": error}
    return None


def _standing(names: Sequence[str], scores: np.ndarray, higher: Sequence[bool]) -> Json:
    """Entries by mean rank, the best first, and the tests; `scores`: (data sets, entries)."""
    if not names:
        return {"entries": [], "tests": None}
    rows, columns = scores.shape
    placed = ranks.ranks(scores, higher)
    means = placed.mean(axis=0)
    lower, ratios = _comparable(scores, higher)
    order = sorted(range(columns), key=lambda n: (round(means[n], 9), lower[:, n].mean(), n))
    best = order[0]
    tests = _tests(names, placed, lower, order) if columns > 1 else None
    against = {pair["second"]: pair for pair in (tests or {}).get("pairs", []) if pair["first"] == names[best]}
    entries = [
        {
            "name": names[n],
            "scores": scores[:, n].tolist(),
            "ranks": placed[:, n].tolist(),
            "mean_rank": float(means[n]),
            "first_on": int((placed[:, n] == placed.min(axis=1)).sum()),
            "relative": asdict(ranks.mean_ratio(_log_ratio(scores, n, best), CONFIDENCE)) if ratios and n != best
            else None,
            "p": against[names[n]]["p"] if names[n] in against and (tests or {})["possible"] else None,
        }
        for n in order
    ]  # fmt: skip
    return {"entries": entries, "tests": tests, "ratios": ratios, "rows": rows}


def _comparable(scores: np.ndarray, higher: Sequence[bool]) -> tuple[np.ndarray, bool]:
    """The table with lower as better and, where all scores are positive, on a scale on which a difference is a ratio,
    so that data sets with large scores do not outweigh the others; and whether it is."""
    ratios = bool((scores > 0).all()) and len(set(higher)) == 1
    scale = np.log(scores) if ratios else scores
    return np.where(higher, -1.0, 1.0)[:, None] * scale, ratios


def _log_ratio(scores: np.ndarray, entry: int, best: int) -> np.ndarray:
    found: np.ndarray = np.log(scores[:, entry] / scores[:, best])
    return found


def _tests(names: Sequence[str], placed: np.ndarray, lower: np.ndarray, order: Sequence[int]) -> Json:
    """Friedman for three entries or more, then every pair; a pair differs only if the entries as a whole do."""
    rows, columns = placed.shape
    count = columns * (columns - 1) // 2
    smallest = ranks.smallest_p(rows, count)
    possible = smallest < LEVEL
    overall = ranks.friedman(placed) if columns > 2 else None
    by_rank = lower[:, order]
    differ = possible and (overall is None or overall < LEVEL)
    found: list[Json] = [
        {
            "first": names[order[pair.first]],
            "second": names[order[pair.second]],
            "better": None if pair.better is None else names[order[pair.better]],
            "p": pair.p,
            "different": differ and pair.p < LEVEL,
        }
        for pair in ranks.pairs(by_rank)
    ]
    places = {name: n for n, name in enumerate(names)}
    apart = {frozenset((places[pair["first"]], places[pair["second"]])) for pair in found if pair["different"]}
    return {
        "possible": possible,
        "smallest_p": smallest,
        "needed": ranks.rows_needed(count, LEVEL),
        "friedman": overall,
        "pairs": found,
        "groups": [[names[n] for n in group] for group in ranks.groups(order, apart)] if possible else [],
        "critical_difference": ranks.critical_difference(rows, columns, LEVEL),
    }
