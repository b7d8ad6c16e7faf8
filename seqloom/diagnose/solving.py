"""One run: train a model of the given size on a problem, with one learning rate and seed, and score it."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from pathlib import Path
from statistics import fmean

import torch

from seqloom.core.network import SequenceModel
from seqloom.core.progress import Silent
from seqloom.core.rows import Json
from seqloom.core.state import flatten_state
from seqloom.diagnose.field import sized
from seqloom.diagnose.problems import PROBLEMS
from seqloom.diagnose.rules import Rules
from seqloom.diagnose.task import ProblemTask
from seqloom.lab.drawn import Drawn
from seqloom.lab.entries import Entry
from seqloom.lab.job import Job
from seqloom.runs.build import count_parameters
from seqloom.train.engine import Engine
from seqloom.train.loop import Trainer
from seqloom.train.settings import TrainConfig

_ROUND = 20  # steps, at least, whose losses judge a learning rate, and end training when all are low enough
_NEVER = 10**9


class _Recent:
    """Keeps the last losses, of rows that were never seen before; a run takes seconds, so there are no checkpoints."""

    identity = None

    def __init__(self, path: Path, most: int) -> None:
        self.path, self.losses = path, deque[float](maxlen=most)

    def log(self, entry: Json) -> None:
        if "train" in entry:
            self.losses.append(entry["train"]["loss"])

    def trim_metrics(self, step: int, validated: int | None = None) -> None: ...
    def save_checkpoint(
        self, step: int, files: Mapping[str, bytes], keep: int, best: int | None, kept: Collection[int]
    ) -> None: ...
    def prune(self, keep: int, best: int | None, kept: Collection[int]) -> None: ...


def work(job: Job) -> Json:
    rules = Rules(**job["rules"])
    problem, (name, model, options) = PROBLEMS[job["problem"]], job["model"]
    task = ProblemTask(problem, rules.tested)
    config = sized(Entry(name, model, tuple(options)), rules, problem)
    one_round = max(_ROUND, len(problem.sizes))  # so that every size is among the last steps
    batch = rules.batch * problem.batches
    settings = TrainConfig.model_validate(
        {"steps": rules.steps, "batch": batch, "optimizer": "adamw", "rate": job["rate"], "seed": job["seed"]}
        | {"enough": rules.enough, "enough_steps": one_round, "evaluate_every": _NEVER, "log_every": 1}
        | {"threads": job["threads"], "device": "cpu"}
    )
    torch.manual_seed(job["seed"])
    network = config.assemble(task)
    rows = Drawn(job["seed"], rules.steps, batch, max(problem.lengths))
    recent = _Recent(Path(job["folder"]), one_round)
    progress = Trainer(network, task, settings, Engine(settings), recent, Silent()).fit(rows, None)
    found = task.evaluate(network, rows)
    facts = {"parameters": count_parameters(network), "width": config.width, "steps": progress.step}
    facts["memory"] = _memory(network, max(problem.lengths))
    return facts | {"loss": fmean(recent.losses), "seconds": round(progress.wall, 2)} | found


@torch.inference_mode()
def _memory(network: SequenceModel, length: int) -> int:
    """How many numbers it keeps after reading a row of this length."""
    read = torch.zeros(1, min(length, network.reach or length), dtype=torch.long)
    return sum(part.numel() for part in flatten_state(network.begin(read)).values())
