"""Cost and aspects of the entries of a comparison, from one of their runs each: all in one process, by turns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from seqloom.core.model import ModelConfig
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json
from seqloom.core.taps import Tap
from seqloom.core.task import AnyTask
from seqloom.lab.cost import measure_costs, throughput
from seqloom.lab.job import Job
from seqloom.lab.matching import match_size
from seqloom.lab.protocols import ByPosition, Shows
from seqloom.lab.recall import CHANCE, RecallTask, recall
from seqloom.runs.build import count_parameters
from seqloom.runs.registry import find_config, task_config
from seqloom.runs.run import Run, load

_SAMPLE = 300  # tokens of text that each entry writes
_PROMPT = 40  # characters of the test part that it goes on from
_READING = 4.0  # seconds at least for reading contexts: enough for the longest, unless a model is slow
_NAMES = 6  # taps shown as examples


def measure(job: Job) -> Json:
    """Of every entry, and the baselines that need the training part."""
    torch.set_num_threads(job["threads"])
    loaded = {name: load(Path(folder)) for name, folder in job["runs"].items()}
    first = next(iter(loaded.values()))
    models, task = {name: run.model for name, run in loaded.items()}, first.task
    material = first.material
    train, test = (material.shape.prepare(material.parts[part], first.tokenizer) for part in ("train", "test"))
    length = task_config(first.config).tokens_per_row
    costs = measure_costs(models, task, seconds=max(_READING, job["seconds"]))
    speeds = throughput(models, task, seconds=job["seconds"])
    entries = {
        name: {
            **costs[name],
            "positions": task.by_position(run.model, test, length) if isinstance(task, ByPosition) else None,
            "trained_length": length,
            "throughput": speeds[name],
            "taps": taps(run.model),
            "sample": _sample(run, test),
        }
        for name, run in loaded.items()
    }
    return {"entries": entries, "baselines": task.baselines(train, {"test": test}).get("test", {})}


def _sample(run: Run, test: Any) -> dict[str, str] | None:
    """What it makes of the test part: of the beginning of a text, or of the first row."""
    if run.task.verb != "generate":
        return run.task.sample(run.model, test) if isinstance(run.task, Shows) else None
    prompt = _prompt(run, test)
    try:
        return {"prompt": prompt, "text": run.generate(prompt, max_new=_SAMPLE, seed=0)}
    except (RuntimeError, ValueError):  # a model so bad that there is nothing to draw from
        return None


def probe(job: Job) -> Json:
    """What the architecture recalls over which distance, at a small size."""
    torch.set_num_threads(job["threads"])
    options = dict(job["model"])
    name = options.pop("name")
    config = find_config("models", name).model_validate(options)
    with torch.device("meta"):
        kind = config.build().kind
    if kind not in RecallTask.accepts:
        return {"recall": None, "chance": CHANCE}  # it reads no text of its own, only what it is given first
    return {"recall": recall(config, job["seed"], job["steps"], _resized), "chance": CHANCE}


def _resized(config: ModelConfig, task: AnyTask, target: int) -> ModelConfig:
    def count(model: ModelConfig) -> int:
        with torch.device("meta"):
            return count_parameters(model.assemble(task))

    return match_size(config, target, count, "the probe")


def taps(model: SequenceModel) -> Json:
    """How many tensors of the model can be watched by name, and the first of the names."""
    names = [name for name, module in model.named_modules() if isinstance(module, Tap)]
    return {"count": len(names), "names": names[:_NAMES]}


def _prompt(run: Run, test: Any) -> str:
    """The beginning of the test part, cut between two words where there are words."""
    text = run.tokenizer.decode(test[0 : 2 * _PROMPT].tolist())[:_PROMPT]
    found: str = text.rpartition(" ")[0] + " " if " " in text else text
    return found
