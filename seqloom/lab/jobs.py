"""The jobs of a comparison, which any process can run: trials, final runs, recall probes and measurements."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seqloom.core.config import merge, parse_overrides
from seqloom.core.rows import Json
from seqloom.core.score import Score
from seqloom.lab import rungs, search, started
from seqloom.lab.entries import Sized, changed
from seqloom.lab.job import Job
from seqloom.lab.rules import Rules
from seqloom.runs import durable
from seqloom.runs.configure import configure
from seqloom.runs.settings import RunConfig

PROBE_STEPS, PROBE_SEEDS = 240, 3  # takes seconds per architecture
# Priorities of waiting jobs, lowest first. What is short comes last: it fills the time of workers that have finished
# while others still train.
TRIALS, FINALS, MEASURES, PROBES = range(4)
_SMALL = 0.1  # size of a short job in full runs, for estimating the remaining time


class Jobs:
    def __init__(
        self, rules: Rules, out: Path, score: Score, data: Mapping[str, Any], entries: int, runs: str = "runs"
    ) -> None:
        """`score`: by which runs are judged; `entries`: number of entries that take turns; `runs`: folder of the runs,
        inside `out`."""
        self.rules, self.out, self.score, self.entries, self.runs = rules, out, score, entries, runs
        self.hashes = {part: facts["hash"] for part, facts in data.items()}
        self.seeds = [rules.seed + n for n in range(1, rules.seeds + 1)]  # rules.seed itself is for the search

    def amount(self, entries: int) -> float:
        """Trials and final runs in full runs."""
        return entries * (self.rules.trials * self.rules.trial_share + self.rules.seeds)

    def work(self, entries: int) -> float:
        """The same with probes and measurements."""
        return self.amount(entries) + (entries + 1) * _SMALL

    def trial(self, sized: Sized, settings: search.Settings, number: int, reference: search.Curve) -> Job:
        """A trial of the search: scored on the validation set only, pruned when behind `reference`."""
        tried = override(sized, search.as_overrides(settings, sized.config.train))
        config = self.configured(tried, self.rules.seed, self.rules.trial_share)
        job = self.fit(config, sized, f"trial-{number:02d}", ["valid"], self.hashes)
        title = f"trial {number} of {self.rules.trials}"
        return job | {"title": title, "size": self.rules.trial_share, "reference": reference, "turn": [TRIALS, number]}

    def final(self, sized: Sized, seed: int, cost: float = 0.0) -> Job:
        """A final run, scored on the test set too. Of the runs with the same seed the longest come first (`cost`: its
        time relative to that of other entries), so that the last worker to finish is not left alone for long."""
        config = self.configured(sized, seed, 1.0)
        if rungs.branched(self.rules.ladder) and sized.trained:
            config = rungs.trunk(config)
        job = self.fit(config, sized, f"seed-{seed}", ["valid", "test"], self.hashes)
        if sized.counts:
            return job | {"title": "fitting", "size": 0.0, "turn": [TRIALS]}
        round_ = self.seeds.index(seed)
        turn = [FINALS, round_, -cost]
        return job | {"title": f"seed {seed}", "size": 1.0, "turn": turn}

    def branch(self, sized: Sized, seed: int, place: int) -> Job:
        """A run with a smaller budget, branched off a final run."""
        name, share = rungs.RUNGS[place]
        config = rungs.branch(self.configured(sized, seed, 1.0), share)
        job = self.rung(sized, seed, name, config, self.hashes) | {"branch": {"trunk": f"seed-{seed}", "place": place}}
        return job | {"title": f"seed {seed}, {name} of the budget", "size": share * config.train.decay}

    def rung(self, sized: Sized, seed: int, name: str, config: RunConfig, data: Mapping[str, str]) -> Job:
        """A smaller final run; it follows the final runs of its seed."""
        job = self.fit(config, sized, f"{name}-seed-{seed}", ["valid", "test"], data)
        return job | {"turn": [FINALS, self.seeds.index(seed), self.entries]}

    def probes(self, sized: Sized, cost: float = 0.0) -> list[Job]:
        """A small version of the architecture in its own shape: its defaults, and what the user set. What the
        comparison solved for its size, such as the width of a feed-forward network, would be out of proportion. Of
        weights that were trained elsewhere, a small version would say nothing."""
        if sized.started:
            return []
        given = merge(parse_overrides([*self.rules.overrides, *sized.entry.options])).get("model", {})
        return [
            {
                "kind": "probe",
                "entry": sized.entry.name,
                "title": f"recall probe {number + 1} of {PROBE_SEEDS}",
                "size": _SMALL / PROBE_SEEDS,
                "turn": [PROBES, -cost],
                "folder": str(self.folder(sized, f"probe-{number + 1}")),
                "model": given | {"name": sized.entry.model},
                "seed": self.rules.seed + number,
                "steps": PROBE_STEPS,
                "threads": self.rules.threads,
            }
            for number in range(PROBE_SEEDS)
        ]

    def measure(self, sized: Sequence[Sized], seconds: float) -> Job:
        """Cost and aspects of all entries, in alternating turns in one process; about `seconds` per measurement. The
        naive baselines are those on the tokens of the first entry from scratch."""
        first = next((s for s in sized if not s.started), sized[0])
        folders = {s.entry.name: self.folder(s, f"seed-{self.seeds[0]}") for s in sized}
        return {
            "kind": "measure",
            "entry": "all",
            "title": "cost and aspects",
            "size": _SMALL,
            "turn": [MEASURES],
            "folder": str(self.out / f"measure{self.runs.removeprefix('runs')}"),  # of these runs, not of others
            "runs": {name: str(folder) for name, folder in folders.items()},
            "first": first.entry.name,
            "entries": [
                {"name": s.entry.name, "model": s.config.model, **started.digest(s.config), **s.reading.identity}
                for s in sized
            ],
            "data": self.hashes,
            "seconds": seconds,
            "threads": self.rules.threads,
        }

    def tokenizer(self, sized: Sized) -> Path:
        return durable.locate(self.out / sized.reading.folder)

    def folder(self, sized: Sized, name: str) -> Path:
        return self.out / self.runs / sized.entry.folder / name

    def configured(self, sized: Sized, seed: int, share: float) -> RunConfig:
        """Complete settings of one run, with this share of the budget."""
        budget = sized.budget(self.rules.budget, share) if sized.trained else {}
        train = changed(sized.config.train, seed=seed, **self.common(sized), **budget)
        return sized.config.model_copy(update={"train": train})

    def common(self, sized: Sized) -> Json:
        """The `train` options of every run, whatever its data. Seconds are CPU time, which other programs on the
        machine do not lengthen, unless the user wants elapsed time."""
        clock = sized.config.train.clock if "train.clock" in sized.pinned else "cpu"
        return {"threads": self.rules.threads, "clock": clock, "keep": 1}

    def fit(self, config: RunConfig, sized: Sized, name: str, scored: list[str], data: Mapping[str, str]) -> Job:
        """`data`: hashes of the splits; a split that is not listed is not checked."""
        folder = self.folder(sized, name)
        return {
            "kind": "fit",
            "entry": sized.entry.name,
            "folder": str(folder),
            "config": json.loads(config.model_dump_json()),
            "tokenizer": str(self.tokenizer(sized)),
            "data": dict(data),
            "scored": scored,
            "metric": self.score.name,
            "lower": not self.score.higher_is_better,
            "command": fit_command(config, Path(f"{folder}-again")),
            **started.digest(config),
            **sized.reading.identity,
        }


def override(sized: Sized, changes: Mapping[str, Any]) -> Sized:
    """The same entry with other `train` and `model` options; model options that it does not have are dropped."""
    sections: dict[str, Json] = {"train": {}, "model": {}}
    for path, value in changes.items():
        section, _, option = path.partition(".")
        sections[section][option] = value
    own = type(sized.model).model_fields
    model = changed(sized.model, **{k: v for k, v in sections["model"].items() if k in own})
    config = sized.config.model_copy(update={"train": changed(sized.config.train, **sections["train"])})
    return sized.with_config(config).with_model(model)


def fit_command(config: RunConfig, folder: Path) -> str:
    """The `seqloom fit` command that reproduces this run."""
    plain = {"task.name": config.task["name"], "model.name": config.model["name"], "data.train": config.data["train"]}
    defaults = json.loads(configure(None, plain).model_dump_json())
    chosen = json.loads(config.model_dump_json())
    parts = ["seqloom", "fit", "--task", config.task["name"], "--data", config.data["train"]]
    parts += ["--model", config.model["name"], "--out", str(folder), "--no-choose"]
    for section, options in chosen.items():
        for option, value in options.items():
            if value is not None and value != defaults[section].get(option):
                parts += ["-o", f"{section}.{option}={json.dumps(value) if isinstance(value, bool) else value}"]
    return shlex.join(parts)
