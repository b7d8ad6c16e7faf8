"""From the results of the jobs to `result.json`, which holds every figure of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any

from seqloom.compare import judging
from seqloom.compare.advice.recommend import recommend
from seqloom.compare.busy import slowdown
from seqloom.compare.looks import CONFIDENCE, Look
from seqloom.core.config import merge, parse_overrides
from seqloom.core.rows import Json
from seqloom.core.score import Score
from seqloom.core.task import AnyTask
from seqloom.lab import started, statistics
from seqloom.lab.entries import Sized
from seqloom.lab.job import Job, Result
from seqloom.lab.recall import CHANCE, over_seeds
from seqloom.lab.rules import Margin
from seqloom.lab.tuning import tuning


@dataclass
class Found:
    """The results of all jobs, by entry name."""

    task: AnyTask
    score: Score  # by which entries are ranked
    seeds: list[int]
    place: str = "runs"  # folder of the runs, inside that of the comparison
    entries: list[Sized] = field(default_factory=list)
    search: dict[str, list[Json]] = field(default_factory=dict)
    jobs: dict[str, list[Job]] = field(default_factory=dict)  # of the final runs
    runs: dict[str, list[Result]] = field(default_factory=dict)
    closed: list[Sized] = field(default_factory=list)  # fitted by counting or in closed form
    fitted: dict[str, tuple[Job, Result]] = field(default_factory=dict)  # of these
    probes: dict[str, Json] = field(default_factory=dict)  # what each architecture recalled, over seeds
    measured: Json = field(default_factory=dict)
    naive: Json = field(default_factory=dict)  # scores of the baselines that need the training set
    transfer: Json = field(default_factory=dict)
    ladder: Json = field(default_factory=dict)
    few: Json = field(default_factory=dict)  # scores on few labelled rows

    @property
    def shown(self) -> list[str]:
        """Scores shown in addition to the metric."""
        return [score.name for score in self.task.scores if score.compared]

    def add(self, sized: Sized, trials: list[Json], jobs: list[Job], runs: list[Result], probes: list[Result]) -> None:
        name = sized.entry.name
        self.entries.append(sized)
        self.search[name], self.jobs[name], self.runs[name] = trials, jobs, runs
        done = [probe for probe in probes if probe["state"] == "done" and probe["recall"]]
        about = {"chance": CHANCE, "steps": done[0]["steps"], "seeds": len(done)} if done else {}
        self.probes[name] = over_seeds([probe["recall"] for probe in done]) | about if done else {}


def assemble(
    found: Found,
    protocol: Mapping[str, Any],
    look: Look,
    margin: Margin,
    wishes: Mapping[str, Any],
    timing: Mapping[str, Any],
) -> Json:
    entries = [_entry(found, sized) for sized in found.entries]
    entries += [_closed(found, sized) for sized in found.closed if _has_metric(found, sized)]
    done = [entry for entry in entries if entry["state"] == "done"]
    higher, bounds = found.score.higher_is_better, found.score.bounds
    samples = judging.samples(done, higher)
    for entry in done:
        entry["score"] = asdict(statistics.score_interval(samples[entry["name"]], CONFIDENCE, bounds))
        entry["tuning_variance"] = samples[entry["name"]].tuning
    verdicts = judging.verdicts(samples, higher, look.level, margin, bounds)
    for entry in done:
        entry["against_best"] = asdict(verdicts[entry["name"]])
    result = {
        "protocol": {
            **protocol,
            "scored": _ways(found),
            "confidence": CONFIDENCE,
            "level": look.level,
            "margin": margin.text,
            "plan": look.plan,
        },
        "entries": entries,
        "baselines": _baselines(found),
        "recipe_table": _recipes(found),
        "best": next((name for name, v in verdicts.items() if v.verdict == "best"), None),
        "timing": {**timing, "busy": slowdown(entries)},
    }
    if found.ladder:
        result["ladder"] = {key: value for key, value in found.ladder.items() if key != "entries"}
    result["recommendation"] = recommend(result, **wishes)
    return result


def _ways(found: Found) -> str:
    """How the test set was scored, and for whom where that differs."""
    ways: dict[str, list[str]] = {}  # scoring protocol: entries scored by it
    for name, runs in (found.runs | {name: [result] for name, (_, result) in found.fitted.items()}).items():
        for score in filter(None, map(_test, runs[:1])):
            ways.setdefault(score["protocol"], []).append(name)
    parts = {way: way.split("; ") for way in ways}
    common = [part for part in next(iter(parts.values()), []) if all(part in other for other in parts.values())]
    own = [(", ".join(names), [part for part in parts[way] if part not in common]) for way, names in ways.items()]
    return "; ".join([*common, *(f"{names}: {'; '.join(rest)}" for names, rest in own if rest)])


def _has_metric(found: Found, sized: Sized) -> bool:
    """Whether a model fitted in closed form can be ranked: one that only outputs text assigns no probabilities, so it
    has no loss. One that failed is listed with the others."""
    job, result = found.fitted[sized.entry.name]
    test = _test(result)
    return test is None or (test.get(found.score.name) is not None and _pieces(found, test) is not None)


def _entry(found: Found, sized: Sized) -> Json:
    name = sized.entry.name
    trials = found.search.get(name, [])
    entry = _member(found, sized, list(zip(found.seeds, found.jobs[name], found.runs[name], strict=True))) | {
        "flops_per_token": sized.flops_per_token,
        "tuned": _tuned(sized, trials) if trials else {},
        "search": [{k: v for k, v in trial.items() if k not in ("curve", "seconds")} for trial in trials],
        "tuning": _tuning(found, sized),
    }
    return entry | (_summary(found, sized, entry["runs"], found.runs[name]) if entry["state"] == "done" else {})


def _closed(found: Found, sized: Sized) -> Json:
    """A model fitted by counting or in closed form: one run, no search, no seeds."""
    name = sized.entry.name
    job, result = found.fitted[name]
    entry = _member(found, sized, [(found.seeds[0], job, result)]) | {"fixed": True, "search": []}
    return entry | (_summary(found, sized, entry["runs"], [result]) if entry["state"] == "done" else {})


def _member(found: Found, sized: Sized, runs: Sequence[tuple[int, Job, Result]]) -> Json:
    """What every entry has."""
    told = [_run(found, sized, seed, result) for seed, _, result in runs]
    failed = [run for run in told if run["state"] != "done"]
    return {
        "name": sized.entry.name,
        "model": sized.entry.model,
        "given": {k: v for s in merge(parse_overrides(sized.entry.options)).values() for k, v in s.items()},
        "state": "failed" if failed else "done",
        "error": f"seed {failed[0]['seed']}: {failed[0]['error']}" if failed else None,
        "config": {k: v for k, v in sized.config.model.items() if k != "name"},
        "start": sized.config.train.start,
        "pretrained": started.pretrained(sized.config),
        "epoch_tokens": sized.reading.epoch_tokens,
        "parameters": sized.parameters[0],
        "backbone_parameters": sized.parameters[1],
        "runs": told,
        "command": runs[0][1]["command"],
        **({"few": found.few.get(sized.entry.name)} if found.few else {}),
        **({"ladder": found.ladder["entries"].get(sized.entry.name)} if found.ladder else {}),
    }


def _summary(found: Found, sized: Sized, runs: Sequence[Json], results: Sequence[Result]) -> Json:
    """The fields of an entry whose runs have all finished."""
    name = sized.entry.name
    tests = [test for result in results if (test := _test(result))]
    peaks = [run["peak_bytes"] for run in runs if run["peak_bytes"]]
    measured = found.measured.get(name, {})
    probe, saved = found.probes.get(name, {}), results[0]["summary"]
    return {
        "stored": None if sized.parameters[0] else saved.get("stored"),
        "bytes": saved.get("bytes"),
        "borrowed_bytes": saved.get("borrowed_bytes", 0),
        "trained_parameters": saved.get("trained_parameters"),
        "scores": {score.name: _beside(runs, score, sized.counts) for score in found.task.scores if score.compared},
        "cost": {
            "tokens_per_second": None if sized.drawn else fmean(run["tokens_per_second"] for run in runs),
            "seconds": fmean(run["seconds"] for run in runs),
            "peak_bytes": max(peaks, default=None),
            "latency": measured.get("latency", []),
            "measured_on": measured.get("measured_on", name),
            "state": measured.get("state", []),
        },
        "aspects": {
            "positions": measured.get("positions"),
            "trained_length": measured.get("trained_length"),
            "forgetting": _forgetting(tests),
            "horizon": _horizon(tests),
            "recall": probe.get("recall"),
            "control": probe.get("control"),
            "chance": probe.get("chance"),
            "probe": {key: probe.get(key) for key in ("steps", "seeds")},
            "throughput": measured.get("throughput", []),
            "taps": measured.get("taps"),
            "transfer": found.transfer.get(name),
        },
        "sample": measured.get("sample"),
        "showcase": measured.get("showcase"),
    }


def _beside(runs: Sequence[Json], score: Score, fixed: bool) -> Json | None:
    """Mean over seeds, with an interval over seeds and, where its pieces are known, over the test data; None if a seed
    has no such score."""
    if sample := judging.beside(runs, score.name, fixed):
        return asdict(statistics.score_interval(sample, CONFIDENCE, score.bounds))
    known = [value for run in runs if (value := run["scores"][score.name]) is not None]
    return asdict(statistics.interval(known, CONFIDENCE, score.bounds)) if len(known) == len(runs) else None


def _forgetting(tests: Sequence[Json]) -> dict[str, list[Json]] | None:
    """Mean over seeds per bin; with several references per source, the bins may differ between seeds."""
    found = [test["forgetting"] for test in tests if test.get("forgetting")]
    if not found:
        return None
    bins: dict[str, dict[tuple[int, int], list[float]]] = {by: {} for by in found[0]}
    for by, known in bins.items():
        for point in (point for each in found for point in each[by]):
            known.setdefault((point["from"], point["to"]), []).append(point["accuracy"])
    return {
        by: [{"from": first, "to": last, "accuracy": fmean(hits)} for (first, last), hits in sorted(known.items())]
        for by, known in bins.items()
    }


def _horizon(tests: Sequence[Json]) -> dict[str, list[float | None]] | None:
    """Errors by forecast step, mean over seeds: on the test set, and before it."""
    found = [test["horizon"] for test in tests if test.get("horizon")]
    return {
        name: _mean_of([each[name] for each in found]) for name in ("rmse", "inside") if found and name in found[0]
    } or None


def _mean_of(lines: Sequence[Sequence[float | None]]) -> list[float | None]:
    return [None if None in values else fmean(values) for values in zip(*lines, strict=True)]


def _run(found: Found, sized: Sized, seed: int, result: Result) -> Json:
    run: Json = {"seed": seed, "state": result["state"], "error": result.get("error")}
    if result["state"] != "done":
        return run
    summary, test = result["summary"], _test(result) or {}
    metric = found.score.name
    return run | {
        "score": test[metric],
        "valid": summary["scores"]["valid"][metric],
        "scores": {shown: test.get(shown) for shown in found.shown},
        "pieces": _pieces(found, test),
        "score_pieces": test.get("score_pieces") or {},
        "tokens": None if sized.drawn else summary["tokens"],
        "steps": summary["steps"],
        "seconds": summary["seconds"],
        "wall_seconds": summary.get("wall_seconds"),
        "flops": None if not sized.trained else 3 * sized.flops_per_token * summary["tokens"],
        "tokens_per_second": None if sized.drawn else summary["tokens"] / max(1e-9, summary["seconds"]),
        "peak_bytes": result.get("peak_bytes"),
        "curve": result["curve"],
        "folder": _folder(found, sized, seed),
    }


def _folder(found: Found, sized: Sized, seed: int) -> str:
    """A final run, relative to the folder of the comparison."""
    return f"{found.place}/{sized.entry.folder}/seed-{seed}"


def _pieces(found: Found, test: Json) -> list[float] | None:
    """Scores of equal pieces of the test set."""
    if found.score.name == found.task.metric:
        return test.get("pieces")
    pieces: list[float] | None = (test.get("pieces_of") or {}).get(found.score.name)
    return pieces


def _test(result: Result) -> Json | None:
    return result.get("summary", {}).get("scores", {}).get("test")


def _tuning(found: Found, sized: Sized) -> Json:
    trials = found.search.get(sized.entry.name)
    return tuning(trials, sized.fixed, found.score.higher_is_better, CONFIDENCE) if trials else {}


def _tuned(sized: Sized, trials: Sequence[Json]) -> Json:
    train, searched = sized.config.train, trials[0]["settings"]
    chosen = {"train.optimizer": train.optimizer, "train.rate": train.rate}
    if train.optimizer == "muon":
        chosen["train.matrix_rate"] = train.matrix_rate
    chosen |= {"train.weight_decay": train.weight_decay, "model.dropout": sized.config.model.get("dropout", 0.0)}
    return chosen | ({"model.depth": sized.config.model["depth"]} if "depth" in searched else {})


def _baselines(found: Found) -> list[Json]:
    """Naive baselines, and the models fitted in closed form that have no metric to be ranked by."""
    fitted = {name: result for name, (_, result) in found.fitted.items()}
    everyone = [*fitted.values(), *(run for runs in found.runs.values() for run in runs)]
    naive = [score["baselines"] for run in everyone if (score := _test(run)) and score.get("baselines")][:1]
    rows = [_baseline(found, name, values) for given in (*naive, found.naive) for name, values in given.items()]
    lines: Json = next((h["baselines"] for run in everyone if (h := (_test(run) or {}).get("horizon"))), {})
    rows = [row | ({"horizon": lines[row["name"]]} if row["name"] in lines else {}) for row in rows]
    done = {sized.entry.name: sized for sized in found.closed if fitted[sized.entry.name]["state"] == "done"}
    same = {name for sized in done.values() for name, options in sized.model.replaces.items() if not options}
    rows = [row for row in rows if row["name"] not in {*done, *same}]  # a model says the same, and can be used
    for sized in found.closed:
        if not _has_metric(found, sized):
            name = sized.entry.name
            row = _baseline(found, name, _test(fitted[name]) or {})
            rows.append(row | {"model": name, "folder": _folder(found, sized, found.seeds[0])})
    return rows


def _baseline(found: Found, name: str, scores: Mapping[str, Any]) -> Json:
    """A baseline that only outputs text assigns no probabilities, so it has no loss."""
    return {
        "name": name,
        "score": scores.get(found.score.name),
        "scores": {shown: scores.get(shown) for shown in found.shown},
        "score_pieces": scores.get("score_pieces") or {},
    }


def _recipes(found: Found) -> list[Json]:
    """Best validation score of every architecture with every optimizer, at the budget of a trial."""
    best: dict[tuple[str, str], float] = {}
    better = max if found.score.higher_is_better else min
    for name, trials in found.search.items():
        for trial in trials:
            if trial["state"] == "done":
                key = name, trial["settings"]["optimizer"]
                best[key] = better(trial["score"], best.get(key, trial["score"]))
    return [{"entry": name, "recipe": recipe, "score": score} for (name, recipe), score in best.items()]
