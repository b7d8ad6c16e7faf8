"""What the result of a comparison holds, read without the code that makes its sentences."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
from scipy import stats

from seqloom.compare import judging
from seqloom.compare.advice import recommend
from seqloom.compare.report import facts
from seqloom.lab.power import Needed, seeds_needed
from seqloom.lab.rules import Margin
from seqloom.lab.spending import level_at
from seqloom.pages.formats import chance, count, duration, fixed, percent, scaled, short

Values = dict[str, Any]


class Known:
    """What a result holds, read without the code that makes sentences."""

    def __init__(self, result: Values, wishes: Values) -> None:
        self.result, self.protocol, self.advice = result, result["protocol"], result["recommendation"]
        self.prefer, self.limits = wishes["prefer"], {k: v for k, v in wishes.items() if k != "prefer"}
        self.sign = -1.0 if self.protocol["higher_is_better"] else 1.0
        self.entries = {entry["name"]: entry for entry in result["entries"]}
        self.finished = [n for n, e in self.entries.items() if e["state"] == "done" and math.isfinite(self.mean(n))]
        self.models = [name for name in self.finished if self.admits(name, self.limits)]
        self.standing = {name: self.entries[name]["against_best"] for name in self.models}
        if self.models != self.finished:
            samples = {name: judging.recorded(self.entries[name]) for name in self.models}
            margin, up = Margin.parse(self.protocol["margin"]), self.protocol["higher_is_better"]
            found = judging.verdicts(samples, up, self.protocol["level"], margin, facts.bounds(result))
            self.standing = {name: asdict(each) for name, each in found.items()}
        self.best = next((name for name in self.models if self.verdict(name) == "best"), "")
        self.others = [name for name in self.models if name != self.best]
        self.by = facts.yardstick(result)
        rows = [row for row in result["baselines"] if row["name"] not in self.finished]
        self.rows = {row["name"]: value for row in rows if (value := facts.measured(row, self.by)) is not None}
        if self.by is not None:  # by the texts they write, models without training are baselines
            self.rows |= {name: self.shared(name)["mean"] for name in self.models if self.fixed(name)}
        self.up = self.protocol["higher_is_better"] if self.by is None else True
        self.baseline = (max if self.up else min)(self.rows, key=self.rows.__getitem__, default=None)

    def mean(self, name: str) -> float:
        return float(self.entries[name]["score"]["mean"])

    def fixed(self, name: str) -> bool:
        return bool(self.entries[name].get("fixed"))

    def seeds(self, name: str) -> int:
        return len(self.entries[name]["runs"])

    def verdict(self, name: str) -> str:
        return str(self.standing[name]["verdict"])

    def having(self, verdict: str) -> set[str]:
        return {name for name in self.others if self.verdict(name) == verdict}

    def tested(self, name: str) -> bool:
        return None not in (self.standing[name]["low"], self.standing[name]["high"])

    def table(self, name: str, kind: str) -> dict[int, float]:
        key = {"latency": ("latency", "seconds"), "memory": ("state", "bytes")}[kind]
        return {point["context"]: point[key[1]] for point in (self.entries[name].get("cost") or {}).get(key[0], [])}

    def admits(self, name: str, limits: Values) -> bool:
        latency, state = self.table(name, "latency"), self.table(name, "memory")
        slow = "max_latency_ms" in limits and (
            not latency or latency[max(latency)] * 1000 > limits["max_latency_ms"] * (1 + 1e-12)
        )
        grows = limits.get("streaming") and (not state or len(set(state.values())) > 1)
        return not slow and not grows and self.size(name) <= limits.get("max_params", math.inf)

    def size(self, name: str) -> int:
        return int(self.entries[name]["parameters"] or self.entries[name].get("stored") or 0)

    def context(self, kind: str, pick: Callable[..., int] = max) -> int:
        tables = [set(table) for name in self.models if (table := self.table(name, kind))]
        shared = set.intersection(*tables) if tables else set()
        return pick(shared) if shared else 0

    def price(self, name: str, kind: str, pick: Callable[..., int] = max) -> float | None:
        if kind == "training":
            speed = (self.entries[name].get("cost") or {}).get("tokens_per_second")
            return 1 / speed if speed else None
        return self.table(name, kind).get(self.context(kind, pick))

    def peak(self, name: str) -> float | None:
        return (self.entries[name].get("cost") or {}).get("peak_bytes")  # type: ignore[no-any-return]

    def worthwhile(self) -> list[str]:
        better = [name for name in self.models if self.beats(name) or name == self.baseline]
        free = [self.sign * self.mean(name) for name in better if self.fixed(name)]
        bar = min(free, default=math.inf)
        open_ = {name for name in better if self.tested(name) and self.verdict(name) != "worse"}
        return [name for name in better if self.sign * self.mean(name) <= bar or name in open_]

    def shared(self, name: str) -> Values:
        entry = self.entries[name]
        return dict(entry["score"] if self.by is None else entry["scores"][self.by])

    def beats(self, name: str) -> bool:
        if self.baseline is None:
            return True
        mine, other = self.shared(name)["mean"], self.rows[self.baseline]
        return bool(mine > other if self.up else mine < other)

    def unbeaten(self) -> bool:
        """No candidate beats the best baseline, unless that is the winner itself."""
        return self.best != self.baseline and not any(self.beats(name) for name in self.models)

    def rival(self, name: str) -> str | None:
        """The best baseline other than the model itself."""
        rows = {other: value for other, value in self.rows.items() if other != name}
        return (max if self.up else min)(rows, key=rows.__getitem__, default=None)

    def lead(self, name: str, baseline: str) -> tuple[float, float, float] | None:
        """The paired difference in the score of texts, with its interval, worked out with numpy and scipy alone."""
        rows = {row["name"]: row for row in self.result["baselines"]}
        entry, other = self.entries[name], self.entries.get(baseline) or rows[baseline]
        tables = [self._table(entry), self._table(other)]
        if self.by is None or None in tables or (len(tables[0]) < 2 and not self.fixed(name)):  # type: ignore[arg-type]
            return None
        one, two = (np.array(table) for table in tables)
        paired, seeds = one.mean(0) - two.mean(0), one.mean(1)
        variance = 0.0 if self.fixed(name) else float(np.var(seeds, ddof=1)) / len(seeds)
        parts = [(variance, len(seeds) - 1), (float(np.var(paired, ddof=1)) / len(paired), len(paired) - 1)]
        reach = math.sqrt(sum(stats.t.ppf(0.975, df) ** 2 * v for v, df in parts if v))
        gap = (1 if self.up else -1) * float(paired.mean())
        return gap, gap - reach, gap + reach

    def _table(self, holder: Values) -> list[list[float]] | None:
        """Pieces of the score of texts by seed, moved so that their mean is the score."""
        runs = holder.get("runs") or [holder]
        found = [((run.get("score_pieces") or {}).get(self.by), (run.get("scores") or {}).get(self.by)) for run in runs]
        if any(not pieces for pieces, _ in found):
            return None
        return [[piece + score - sum(pieces) / len(pieces) for piece in pieces] for pieces, score in found]

    def choice(self, prefer: str) -> str | None:
        return recommend.recommend(self.result, prefer, **self.limits)["choice"]  # type: ignore[no-any-return]

    # figures as they are printed

    def number(self, value: float, by: str | None = None) -> str:
        return fixed(value, facts.decimals(self.result) if by is None else facts.shown_places(self.result)[by])

    def score_is(self, name: str, text: str, by: str | None = None) -> bool:
        """Mean, interval and seeds of this model, and no seeds for one that has none."""
        score = self.entries[name]["score"] if by is None else self.entries[name]["scores"][by]
        said = self.number(score["mean"], by) in text
        if score["low"] is not None:
            said &= f"({percent(0.95)} CI {self.number(score['low'], by)} to {self.number(score['high'], by)}" in text
        if self.fixed(name):
            return said and "seed" not in text
        seeds = "(one seed)" if self.seeds(name) == 1 else f", {self.seeds(name)} seeds)"
        return said and text.endswith(seeds)

    def behind(self, name: str) -> str:
        found = self.standing[name]
        value = self.number(found["difference"])
        if not self.tested(name):
            return f"{value} behind"
        low, high = self.number(found["low"]), self.number(found["high"])
        return f"{value} behind ({percent(1 - self.protocol['level'])} CI {low} to {high}, {chance(found['p'])})"

    def all_behind(self, names: list[str]) -> str:
        return "; ".join(f"{name} is {self.behind(name)}" for name in names)

    def cost_is(self, name: str, kind: str, text: str, pick: Callable[..., int] = max) -> bool:
        price = self.price(name, kind, pick)
        if price is None:
            return False
        shown = {"latency": short(price * 1000, 3), "memory": scaled(price, "B"), "training": count(1 / price)}[kind]
        return text.startswith(shown)

    def needed(self, name: str) -> Needed:
        one, other = (judging.recorded(self.entries[each]) for each in (name, self.best))
        tested = sum(judging.recorded(self.entries[each]).testable for each in self.models)
        return seeds_needed(one, other, tested, level_at(self.protocol["plan"]["look"] + 1))

    def more_seeds(self, name: str) -> tuple[int, int]:
        done = max(self.seeds(each) for each in (name, self.best) if not self.fixed(each))
        return max(self.needed(name).seeds or 0, done + 1), done

    def more_time(self, name: str) -> str:
        wanted, done = self.more_seeds(name)
        each = [self.entries[n]["runs"][0]["seconds"] for n in (name, self.best) if not self.fixed(n)]
        return "" if None in each else f"; about {duration((wanted - done) * sum(each))} more training"

    def numbers(self) -> set[str]:
        """Every figure of the result as it may be printed."""
        level, margin = self.protocol["level"], self.protocol["margin"]
        found = {percent(0.95), percent(1 - level), margin, "5 %", "2", "5", "p < 0.0001"}
        found |= {text for value in self.limits.values() if value for text in (count(value), short(value, 3))}
        for name in self.finished:
            found |= set(self._numbers_of(name))
        for row in self.result["baselines"]:
            found |= {self.number(row["score"])} if row["score"] is not None else set()
            found |= {self.number(value, by) for by, value in row.get("scores", {}).items()}
        for name in self.models:
            found |= {self.number(self.standing[name][key] or 0.0) for key in ("difference", "low", "high")}
            found |= {chance(self.standing[name]["p"])}
            if self.tested(name) and self.tested(self.best) and self.verdict(name) == "unclear":
                found |= (
                    {self.more_time(name), *map(count, self.more_seeds(name))} if self.needed(name).seeds else set()
                )
        return {number for text in found for number in numerals(text)}

    def _numbers_of(self, name: str) -> Iterator[str]:
        entry = self.entries[name]
        for by, score in {None: entry["score"], **entry["scores"]}.items():
            yield from (self.number(score[key] or 0.0, by) for key in ("mean", "low", "high"))
        yield from (str(self.seeds(name)), count(self.size(name)), str(self.size(name)))
        if (rival := self.rival(name)) and self.by and (lead := self.lead(name, rival)):
            yield from (self.number(value, self.by) for value in lead)
        for context, seconds in self.table(name, "latency").items():
            limit = math.ceil(seconds * 1e3 * 10**4) / 10**4
            yield from (count(context), short(seconds * 1e3, 3), f"{limit:g}", recommend._rounded_up(seconds * 1e3))
        for context, size in self.table(name, "memory").items():
            yield from (count(context), scaled(size, "B"))
        cost, tokens = entry.get("cost") or {}, entry["runs"][0]["tokens"]
        yield from (count(cost.get("tokens_per_second")), scaled(cost.get("peak_bytes"), "B"), count(tokens))
        yield short(tokens / self.protocol["epoch_tokens"], 2)


def numerals(text: str) -> list[str]:
    return re.findall(r"−?\d+(?:,\d{3})*(?:\.\d+)?(?:e−?\d+)?", text)


def names_in(text: str) -> set[str]:
    return set(re.split(r", | and ", text))
