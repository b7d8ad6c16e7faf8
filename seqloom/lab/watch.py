"""Progress of a running comparison: a live table in a terminal, otherwise a line for every finished job."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from seqloom.core.rows import Json
from seqloom.core.waiting import clear
from seqloom.lab.job import Job, Result
from seqloom.runs.log import read_lines


class Watch:
    """Tracks progress; prints nothing itself."""

    def __init__(self) -> None:
        self.started, self.planned, self.done, self.kept = time.perf_counter(), 0, 0, 0  # in jobs; kept: reused
        self.amount, self.worked = 0.0, 0.0  # total and finished work, in full runs
        self.spent: dict[str, float] = {}  # seconds by kind of job
        self.occupied = 0.0  # seconds of workers that had a job, with starting them
        self.running: dict[str, tuple[Job, float]] = {}
        self.notes: dict[str, Json] = {}
        self.jobs = 1
        self.lock = threading.Lock()

    def plan(self, names: list[str], planned: int, amount: float, jobs: int) -> None:
        self.planned, self.amount, self.jobs = planned, amount, jobs
        self.notes = {name: {"stage": "waiting", "best": None} for name in names}

    def skip(self, runs: int) -> None:
        """Planned runs that turned out not to be needed."""
        self.planned, self.amount = self.planned - runs, self.amount - runs

    def begin(self, job: Job) -> None:
        with self.lock:
            self.running[job["folder"]] = (job, time.perf_counter())
            self.notes.setdefault(job["entry"], {"best": None})["stage"] = job["title"]

    def end(self, job: Job, result: Result, kept: bool) -> None:
        with self.lock:
            _, began = self.running.pop(job["folder"], (job, time.perf_counter()))
            note = self.notes.setdefault(job["entry"], {"best": None})
            note["stage"] = f"{job['title']}: {result['state']}"
            scores = [point["valid"] for point in result.get("curve") or ()]
            if scores:
                best = min if job.get("lower", True) else max
                note["best"] = best([*scores, *([note["best"]] if note["best"] is not None else [])])
            self.done += 1
            if kept:
                self.kept, self.amount = self.kept + 1, self.amount - job["size"]
            else:
                self.worked += job["size"]
                self.spent[job["kind"]] = self.spent.get(job["kind"], 0.0) + result["wall"]
                self.occupied += time.perf_counter() - began
        self.show_end(job, result, kept)

    def left(self) -> float | None:
        """Estimated seconds until everything is done."""
        if not self.worked:
            return None
        return sum(self.spent.values()) / self.worked * max(0.0, self.amount - self.worked) / self.jobs

    def timing(self, wall: float) -> Json:
        """Where the time of the workers went. `training`: all training runs, with validation and scoring; `overhead`:
        all the rest, relative to it; unknown if stored results were reused."""
        training, whole = self.spent.get("fit", 0.0), wall * self.jobs
        outside = {
            "probes": self.spent.get("probe", 0.0),
            "measuring": self.spent.get("measure", 0.0),
            "starting": self.occupied - sum(self.spent.values()),
            "idle": whole - self.occupied,
        }
        overhead = None if self.kept or not training else whole / training - 1
        return {"wall": wall, "training": training, "jobs": self.jobs, "overhead": overhead, "outside": outside}

    def say(self, text: str) -> None: ...
    def show_end(self, job: Job, result: Result, kept: bool) -> None: ...
    def close(self) -> None: ...


class Lines(Watch):
    """One line on standard error for every finished job."""

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def show_end(self, job: Job, result: Result, kept: bool) -> None:
        if not kept:
            done = f"{self.done} of {self.planned} done{_left(self.left())}"
            self.say(f"{job['entry']:12} {describe(job, result)}; {done}")


class Table(Watch):
    """A live table: stage, progress and best validation score of every entry."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.live import Live

        self.console = Console(stderr=True)
        self.live = Live(
            console=self.console, refresh_per_second=2, transient=True, get_renderable=self.render, auto_refresh=True
        )
        self.shown = False

    def plan(self, names: list[str], planned: int, amount: float, jobs: int) -> None:
        super().plan(names, planned, amount, jobs)
        clear()
        self.live.start()
        self.shown = True

    def say(self, text: str) -> None:
        clear()
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def show_end(self, job: Job, result: Result, kept: bool) -> None:
        if result["state"] == "failed":
            self.say(f"{job['entry']} {describe(job, result)}")

    def render(self) -> Any:
        from rich.table import Table as RichTable

        with self.lock:
            running = {job["entry"]: (job, started) for job, started in self.running.values()}
            done, notes = self.done, {name: dict(note) for name, note in self.notes.items()}
        clock = time.perf_counter() - self.started
        title = f"{done} of {self.planned} jobs done, {_clock(clock)} elapsed{_left(self.left())}"
        table = RichTable(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
        for column in ("model", "stage", "progress", "best validation"):
            table.add_column(column)
        for name, note in notes.items():
            progress = _progress(running[name][0]) if name in running else ""
            best = "" if note.get("best") is None else f"{note['best']:.4f}"
            table.add_row(name, note.get("stage", ""), progress, best)
        return table

    def close(self) -> None:
        if self.shown:
            self.live.stop()
            self.shown = False


def watcher(quiet: bool) -> Watch:
    if quiet:
        return Watch()
    return Table() if sys.stderr.isatty() and not os.environ.get("CI") else Lines()


def describe(job: Job, result: Result) -> str:
    """`trial 2 of 4: valid loss 1.5312, 34 s`"""
    if result["state"] in ("failed", "interrupted"):
        return f"{job['title']}: {result['state']}: {result['error']}"
    scores = [point["valid"] for point in result.get("curve") or ()]
    score = f" valid {job['metric'].replace('_', ' ')} {scores[-1]:.4f}," if scores else ""
    pruned = " pruned," if result["state"] == "pruned" else ""
    return f"{job['title']}:{pruned}{score} {result['wall']:.0f} s"


def _progress(job: Job) -> str:
    """Training progress from the last line of the metrics file (the job may run on another machine)."""
    path = Path(job["folder"]) / "metrics.jsonl"
    train = job.get("config", {}).get("train", {})
    try:
        last = read_lines(path)[-1]
    except (OSError, IndexError):
        return "starting" if job["kind"] == "fit" else "running"
    spent = [last[k] / train[k] for k in ("tokens", "seconds") if train.get(k)]
    if not spent:  # a budget in epochs
        return "running"
    share = min(1.0, max(spent))
    return f"{'█' * round(10 * share):░<10} {share:4.0%}"


def _left(seconds: float | None) -> str:
    return "" if seconds is None else f", about {_clock(seconds)} left"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
