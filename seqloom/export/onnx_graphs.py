"""ONNX: a one-step graph for models that write or forecast step by step, a whole-sequence graph for those that read a
sequence at once, and both for an encoder with a decoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.core.state import flatten_state
from seqloom.export.onnx_card import usage
from seqloom.export.onnx_run import START, STEP, WHOLE, compare_steps, described, session
from seqloom.export.onnx_step import export_step, first_state, save_start
from seqloom.export.onnx_whole import write_two_sided, write_whole
from seqloom.export.source import Source
from seqloom.export.target import RUN_ITSELF, Written, needing, refused
from seqloom.export.tokens import tokenizer_files

_LONGEST = 64  # positions that are compared


def write(source: Source, folder: Path, int8: bool) -> Written:
    with needing("onnx"):
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    if source.architecture == "pretrained":
        raise refused("onnx", "a wrapped model of transformers keeps a state of its own", "use --to hf")
    try:
        facts = _write(source, folder)
    except (UserError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # the exporter raises whatever it meets
        said = " ".join(str(error).split())[:160]
        raise refused(
            "onnx",
            f"{source.architecture} with this task is no graph of tensors ({type(error).__name__}: {said})",
            RUN_ITSELF,
        ) from None
    _write_vocabulary(source, folder)
    return Written(facts, usage(source, facts), {"library_name": "onnx"})


def _write(source: Source, folder: Path) -> Json:
    if not source.model.descends and not any(True for _ in source.model.parameters()):
        reason = f"{source.architecture} counts or looks up, so there are no weights to make a graph of"
        raise refused("onnx", reason, RUN_ITSELF)
    if source.task.encodes:
        return write_whole(source, folder / WHOLE)
    if source.model.kind == "encoder-decoder":
        return write_two_sided(source, folder)
    return _write_step(source, folder)


def _write_step(source: Source, folder: Path) -> Json:
    return step_graph(source.model, *_reading(source), folder)


def step_graph(model: Any, inputs: Tensor, mask: Tensor | None, folder: Path) -> Json:
    """Written, loaded and compared on these inputs."""
    two = torch.cat((inputs[:1], inputs[-1:]))
    if two.size(1) < 3:
        two = two.repeat(1, 3, *[1] * (two.dim() - 2))
    state = first_state(model, two)
    save_start(state, folder / START)
    given, made = export_step(model, model, state, two, folder / STEP)
    start = {name: np.repeat(t[:1].numpy(), len(inputs), axis=0) for name, t in flatten_state(state).items()}
    difference = compare_steps(model(inputs)[0], session(folder / STEP), inputs, mask, start)
    return {"difference": difference, "compared": "outputs", "graphs": {STEP: described(given, made)}}


def _reading(source: Source) -> tuple[Tensor, Tensor | None]:
    """What a causal model reads of samples: text in a row, or the context, if there is one, and what follows."""
    if source.task.name == "language_model":
        length = min(_LONGEST, source.model.limit or _LONGEST, source.stream.size(1))
        rows = min(4, source.stream.size(1) // length)
        return source.stream[0, : rows * length].view(rows, length), None
    batch = source.samples.batch
    inputs, mask = batch.inputs, batch.mask
    if batch.context is not None:
        inputs, mask = batch.context, batch.context_mask  # what follows has other positions where rows differ
    return inputs[:, :_LONGEST], None if mask is None else mask[:, :_LONGEST]


def _write_vocabulary(source: Source, folder: Path) -> None:
    """Tokenizers and labels as the run has them; one tokenizer alone also as transformers reads it."""
    own = source.run.tokenizer
    files: dict[str, bytes] = own.files() if hasattr(own, "files") else {}
    if source.tokenizer is not None:
        files = files | tokenizer_files(source.tokenizer, source.model.limit)
    for name, content in files.items():
        (folder / name).write_bytes(content)
