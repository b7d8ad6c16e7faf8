"""Runs one job of a comparison, in any process: a JSON-like job in, a JSON-like result out.

A finished job leaves `result.json` in its folder; the same job is then read from there instead of run again.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import threading
import time
import traceback
from pathlib import Path

from seqloom.core.errors import UserError, out_of_memory
from seqloom.core.rows import Json
from seqloom.lab.job import Job, Result
from seqloom.runs import durable
from seqloom.runs.folder import RunFolder
from seqloom.runs.kept import Facts, read_json, write_json
from seqloom.runs.settings import RunConfig

_NOT_IDENTITY = {"folder", "tokenizer", "runs", "command", "title", "size", "turn"}


class _State(Facts):
    state: str


class _Kept(Facts):
    job: Json
    result: _State


def work(job: Job) -> Result:
    """Run a job; a failure is a result too."""
    from seqloom.train.loop import Diverged, GivenUp, Interrupted

    started, permanent = time.perf_counter(), True
    try:
        result = JOBS[job["kind"]](job)
    except Interrupted as stop:
        return {"state": "interrupted", "error": str(stop), "wall": time.perf_counter() - started}
    except GivenUp as end:
        result = {"state": "pruned", "error": str(end), "curve": _curve(job)}
    except Exception as error:
        message = " ".join(str(error).split()) or type(error).__name__
        permanent = isinstance(error, Diverged)  # other errors, such as a full disk, may be gone next time
        if out_of_memory(error):
            message = "out of memory; lower --params or --jobs, or give -o train.accumulate"
        elif not isinstance(error, UserError | OSError):
            message = f"internal error, {type(error).__name__}: {message}{_detailed(job)}"
        result = {"state": "failed", "error": message}
    result["wall"] = time.perf_counter() - started
    if permanent:
        keep(job, result)
    return result


def _detailed(job: Job) -> str:
    """Where the traceback of the present error is, after writing it there."""
    place = Path(job["folder"]) / "error.txt"
    try:
        durable.make_folder(place.parent)
        durable.write_file(place, traceback.format_exc().encode("utf-8", "backslashreplace"))
    except (OSError, UserError):
        return ""
    return f" (details in {place}; please attach them to a report)"


def remote(job: Job) -> Result:
    """Run a job in a process of a cluster."""
    sleep_while_waiting()
    return work(job)


def known(job: Job) -> Result | None:
    """The stored result of the same job, if it has finished before and both this and its run are as they were left."""
    folder = RunFolder(Path(job["folder"]))
    try:
        kept = read_json(folder.path / "result.json", _Kept, "")
        if kept is None or kept["job"] != _identity(job):
            return None
        result: Result = kept["result"]
        if job["kind"] == "fit" and result["state"] == "done":
            folder.model_files()
    except UserError:
        return None
    return result


def keep(job: Job, result: Result) -> None:
    folder = Path(job["folder"])
    durable.make_folder(folder)
    write_json(folder / "result.json", {"job": _identity(job), "result": result})


def _identity(job: Job) -> Job:
    """What identifies a job: everything except its location and how it is displayed."""
    found: Job = json.loads(json.dumps({key: value for key, value in job.items() if key not in _NOT_IDENTITY}))
    return found


def _fit(job: Job) -> Result:
    import torch

    from seqloom.core.progress import Silent
    from seqloom.lab.peak import peak_memory
    from seqloom.lab.search import hopeful
    from seqloom.runs.branch import begin as begin_branch
    from seqloom.runs.fit import conduct
    from seqloom.runs.material import Material
    from seqloom.train.engine import Engine
    from seqloom.train.loop import Diverged

    config, folder = RunConfig.model_validate(job["config"]), RunFolder(Path(job["folder"]))
    vocabulary = Material(config).load_vocabulary(Path(job["tokenizer"]))
    _delete_outdated(job, vocabulary.hash)
    torch.set_num_threads(config.train.threads)
    if (branch := job.get("branch")) and not (folder.path / "run.json").exists():
        assert config.train.tokens is not None
        begin_branch(folder, RunFolder(folder.path.parent / branch["trunk"]), branch["place"], config.train.tokens)
    reference = [(at, score) for at, score in job.get("reference") or ()]

    def judge(share: float, scores: Json) -> bool:
        return hopeful(share, scores[job["metric"]], reference, job["lower"])

    ready = folder.is_whole()
    with peak_memory() as peak:
        run = conduct(
            config, folder, Engine(config.train), Silent(), job["command"],
            vocabulary=vocabulary,
            scored=job["scored"],
            compared=True,
            judge=judge if reference else None,
        )  # fmt: skip
    scores = {part: score[job["metric"]] for part, score in run.summary["scores"].items()}
    if infinite := [part for part, score in scores.items() if not math.isfinite(score)]:
        raise Diverged(f"diverged: {job['metric']} on the {infinite[0]} set is not finite")
    return {"state": "done", "summary": run.summary, "curve": _curve(job), "peak_bytes": None if ready else peak.bytes}


def _delete_outdated(job: Job, vocabulary: str) -> None:
    """Delete the run of another version of this job (other settings, data, tokens, or weights that it starts from):
    the folders belong to the comparison. `vocabulary`: its hash."""
    folder = RunFolder(Path(job["folder"]))
    try:
        record = folder.record()
        known = {part: record["data"][part]["hash"] for part in job["data"]}
        same = record["config"] == job["config"] and known == job["data"]
        start = record.get("base", {}).get("sha256")
        same = same and record["tokenizer"]["hash"] == vocabulary and start == job.get("start")
    except (UserError, KeyError, TypeError):
        same = False
    if not same:
        shutil.rmtree(folder.path, ignore_errors=True)


def _curve(job: Job) -> list[dict[str, float]]:
    """Validation scores during training; none if it minimises something else, such as a contrastive loss."""
    recorded = RunFolder(Path(job["folder"])).metrics()
    entries = [entry for entry in recorded if job["metric"] in entry.get("valid", ())]
    budgets = {k: v for k in ("tokens", "seconds") if (v := job["config"]["train"][k])}
    return [
        {"tokens": e["tokens"], "seconds": e["seconds"], "valid": e["valid"][job["metric"]]}
        | {"share": max((e[k] / budget for k, budget in budgets.items()), default=1.0)}
        for e in entries
    ]


def _probe(job: Job) -> Result:
    from seqloom.lab.measure import probe

    return {"state": "done", **probe(job)}


def _measure(job: Job) -> Result:
    from seqloom.lab.measure import measure

    return {"state": "done", **measure(job)}


def _feature(job: Job) -> Result:
    """Work of a part of the product that stands above the lab: the function `work` of the module it names."""
    from seqloom.runs.registry import feature

    return {"state": "done", **feature(job["module"]).work(job)}


JOBS = {"fit": _fit, "probe": _probe, "measure": _measure, "feature": _feature}


def begin(parent: int) -> None:
    """Initialise a worker process: import torch before the first job is timed, and exit when the parent exits.

    It leaves the terminal's process group, so that Ctrl-C reaches only the parent, which signals its workers once."""
    os.setpgid(0, 0)
    sleep_while_waiting()
    threading.Thread(target=_exit_with, args=(parent,), daemon=True).start()
    import seqloom.runs.fit  # noqa: F401


def sleep_while_waiting() -> None:
    """Threads that wait for each other sleep instead of spinning. On a busy machine a thread may wait for one that is
    not running; spinning then takes CPU time from everything else, and counts as training. To be called before torch
    is imported, because OpenMP reads this when it is loaded."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def _exit_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)
