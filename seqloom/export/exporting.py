"""`export`: write a run in the format of another program, load it there, compare, and only then put it in its place."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

from seqloom.core.errors import RunError, UserError, unknown
from seqloom.core.rows import Json
from seqloom.export.card import card
from seqloom.export.source import Source
from seqloom.export.target import Target, Written, quiet
from seqloom.runs import durable
from seqloom.runs.kept import check_own, write_json
from seqloom.runs.source import run_folder

TARGETS = {  # name: module here whose `write` makes it
    "hf": "hf",
    "onnx": "onnx_graphs",
    "ctranslate2": "ctranslate",
    "gguf": "gguf_file",
}
FACTS, CARD = "export.json", "README.md"


def export(run: str | Path, *, to: str, out: str | Path, int8: bool = False) -> Json:
    """Write a finished run to a new folder `out` (or that of an earlier export, which is replaced) for `to`: hf, onnx,
    ctranslate2 or gguf. Returns what was written and how far its outputs differ from ours.

    The written model is loaded by the program it is for and compared; one that does not agree is not kept. `int8`:
    weights of 8 bits, for ctranslate2.
    """
    target, place = _target(to, int8), Path(out)
    check_own(place, FACTS)
    source = Source(run_folder(str(run)))
    with tempfile.TemporaryDirectory(prefix="seqloom-export-") as temporary, quiet():
        folder = Path(temporary)
        try:
            written = target(source, folder, int8)
        except RunError as error:
            raise RunError(f"--to {to}: {error}") from error
        facts = _facts(source, to, int8, written)
        (folder / CARD).write_text(card(source, facts, written), encoding="utf-8")
        write_json(folder / FACTS, facts)
        files = {path.name: partial(_copy, path) for path in sorted(folder.iterdir())}
        check_own(place, FACTS)
        durable.remove_dead(place.parent)
        durable.publish(place, dict[str, Callable[[BinaryIO], None]](files))
    return {"out": str(place)} | facts


def _target(to: str, int8: bool) -> Target:
    if to not in TARGETS:
        raise unknown("target", to, TARGETS)
    if int8 and to != "ctranslate2":
        raise UserError(f"--int8: weights of 8 bits exist for --to ctranslate2 only, not for {to}; leave it out")
    found: Target = import_module(f"seqloom.export.{TARGETS[to]}").write
    return found


def _facts(source: Source, to: str, int8: bool, written: Written) -> Json:
    own, summary = source.run.config, source.run.summary
    return {
        "target": to,
        "int8": int8,
        "task": source.task.name,
        "architecture": source.architecture,
        "parameters": summary.get("parameters"),
        "inputs": written.facts.get("inputs", source.samples.origin),
        **written.facts,
        "weights": durable.digests(source.run.folder.model_files()).get("model.safetensors"),
        "seed": own.train.seed,
    }


def _copy(path: Path, out: BinaryIO) -> None:
    with open(path, "rb") as file:
        shutil.copyfileobj(file, out, durable.CHUNK)
