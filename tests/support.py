"""What several tests need: small texts, small runs, and a digest of everything a run must reproduce."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from seqloom.compare.report import facts, report_files
from seqloom.core.config import validate
from seqloom.data.findings import Finding
from seqloom.data.shapes import find_shape
from seqloom.runs.fit import fit
from seqloom.runs.folder import RunFolder
from seqloom.runs.registry import find_config
from seqloom.runs.run import Run

SMALL = {
    "lstm": ["model.width=24", "model.dropout=0.2", "task.length=12"],
    "gru": ["model.width=24", "task.length=12"],
    "gpt": [
        "model.width=16",
        "model.depth=2",
        "model.heads=2",
        "model.dropout=0.2",
        "model.context=16",
        "task.length=16",
    ],
}


def text(characters: int, seed: int = 0) -> str:
    """Something a model can learn a little from."""
    rng = random.Random(seed)
    words = ["the", "cat", "sat", "on", "a", "mat", "and", "then", "ran", "off", "again", "\n"]
    made = ""
    while len(made) < characters:
        made += rng.choice(words) + " "
    return made[:characters]


def small_fit(data: Path, out: Path, model: str = "lstm", extra: Sequence[str] = (), **flags: Any) -> Run:
    settings = [*SMALL.get(model, ["model.width=16"]), "train.batch=4", "train.threads=1", "train.warmup=5", *extra]
    return fit(None, data=str(data), model=model, out=out, overrides=settings, quiet=True, **flags)


def digest(path: Path) -> str:
    """Equal for two runs only if weights, moments, carried states, generators and metrics are bit-identical."""
    folder = RunFolder(path)
    total = hashlib.sha256()
    newest = folder.checkpoints()[0][1]
    for file in [*sorted(newest.glob("*.safetensors")), folder.model_files() / "model.safetensors"]:
        for name, tensor in sorted(load_file(file).items()):
            total.update(f"{file.name} {name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            total.update(tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    for entry in folder.metrics():
        for elapsed in ("seconds", "wall_seconds"):
            entry.pop(elapsed)
        total.update(json.dumps(entry, sort_keys=True).encode())
    return total.hexdigest()


WORDS = {"the": "le", "cat": "chat", "dog": "chien", "sees": "voit", "a": "un", "<b>": "&b", "house": "maison"}


def pairs_file(path: Path, count: int = 60, seed: int = 0) -> Path:
    """A TSV of sentences and their translation word by word."""
    rng = random.Random(seed)
    chosen = [rng.choices(list(WORDS), k=rng.randint(2, 6)) for _ in range(count)]
    lines = [" ".join(words) + "\t" + " ".join(WORDS[word] for word in words) for words in chosen]
    path.write_text("\n".join(["source\ttarget", *lines]) + "\n")
    return path


def small_translation(folder: Path, model: str, *extra: str) -> Run:
    """A run of two steps: it translates badly, and whatever else it does can be tested."""
    settings = ["model.width=16", "tokenizer.kind=words", "tokenizer.split=space", "train.threads=1", "train.steps=2"]
    settings += ["train.batch=8", "task.batch_tokens=0", "task.scored=2", "task.max_new=8", *extra]
    data = pairs_file(folder / "pairs.tsv")
    return fit(
        None, task="translation", data=str(data), model=model, out=folder / "run", overrides=settings, quiet=True
    )


def write_report(result: Any, folder: Path) -> Path:
    """The files of a report; the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in report_files(result).items():
        (folder / name).write_bytes(content)
    return folder / "report.html"


def examine(task: str, spec: str, *, valid_data: str | None = None, **options: Any) -> list[Finding]:
    """What the doctor says of data, without the probe that changes the future."""
    usual, *others = [find_shape(name) for name in find_config("tasks", task).shapes]
    shape = next((other for other in others if other.holds(spec)), usual)
    settings = {"train": spec, "valid": valid_data, **options}
    return shape.examine(validate({"data": shape.options}, {"data": settings})["data"])


def in_chinese(task: Any, protocol: str) -> str:
    """The protocol of a score, as the Chinese report has it."""
    phrases = [list(pair) for pair in task.protocol_phrases]
    return facts.how_scored({"protocol": {"scored": protocol, "titles": {"protocol": phrases}}})[1]


def foreign(text: str) -> list[str]:
    """English words in a Chinese sentence, but for names of methods and tools."""
    names = r"sacrebleu|seqeval|jiwer|rouge-score|version|nrefs|case|mixed|smooth|space|none|last|standard"
    return re.findall(r"[a-z]{4,}", re.sub(names, "", text))
