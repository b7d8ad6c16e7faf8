"""Graphs as onnxruntime runs them: loading, comparing, and what their inputs and outputs are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqloom.core.errors import RunError
from seqloom.core.rows import Json
from seqloom.export.onnx_step import Tensors, run_steps
from seqloom.export.target import check_difference

STEP, WHOLE, SOURCE, START = "step.onnx", "model.onnx", "source.onnx", "start.npz"


@torch.no_grad()
def compare_steps(ours: Tensor, graph: Any, inputs: Tensor, mask: Tensor | None, start: dict[str, np.ndarray]) -> float:
    found = torch.from_numpy(run_steps(graph, inputs, start))
    real = torch.ones(inputs.shape[:2], dtype=torch.bool) if mask is None else mask
    return check_difference(float((ours.detach() - found)[real].abs().max()), "the graph's outputs")


def session(path: Path) -> Any:
    import onnx
    from onnxruntime import InferenceSession, SessionOptions

    onnx.checker.check_model(str(path))
    options = SessionOptions()
    options.log_severity_level = 3  # errors
    try:
        return InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise RunError(f"onnxruntime does not read {path.name}: {' '.join(str(error).split())[:200]}") from None


def described(given: Tensors, made: Tensors) -> Json:
    return {
        side: {name: {"shape": shape, "type": kind} for name, shape, kind in zip(*tensors, strict=True)}
        for side, tensors in (("inputs", given), ("outputs", made))
    }
