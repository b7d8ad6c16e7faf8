"""Predictions: how likely each output was, its rank and loss, and what the model held more or less likely."""

from __future__ import annotations

import numpy as np
import torch

from seqloom.core.instance import Instance
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json, Row
from seqloom.explain.view import View


def predictions(model: SequenceModel, instance: Instance, *, alternatives: int = 5) -> View:
    """Any model, also one that only counts. Numbers that are predicted have a value, and no probability."""
    with torch.no_grad():
        found = instance.read(model, 1)[0].float().cpu()  # (O, C)
    if instance.unit == "value":
        return _values(instance, found[:, 0].numpy())
    chosen = found.gather(1, instance.chosen[:, None])  # (O, 1)
    loss, rank = -chosen[:, 0], 1 + (found > chosen).sum(1)
    likely = found.topk(min(alternatives, found.size(1)))
    rows = [
        {
            "output": n,
            "label": output.label,
            "at": output.at,
            "probability": float(chosen[n].exp()),
            "rank": int(rank[n]),
            "loss": float(loss[n]),
            **_alternatives(instance, likely.indices[n].tolist(), likely.values[n].exp().tolist()),
        }
        for n, output in enumerate(instance.outputs)
    ]
    facts: Json = {
        "classes": found.size(1),
        "loss": float(loss.mean()),
        "first": float((rank == 1).float().mean()),  # share of outputs that are the model's first choice
        "notes": list(instance.notes),
    }
    tensors = {
        "probability": chosen[:, 0].exp().numpy(),
        "rank": rank.numpy(),
        "loss": loss.numpy(),
        "alternatives": likely.indices.numpy(),
        "likely": likely.values.exp().numpy(),
    }
    return View("predictions", tensors, rows, facts)


def _alternatives(instance: Instance, classes: list[int], shares: list[float]) -> Row:
    """The likeliest classes as flat columns: choice_1, probability_1, ..."""
    row: Row = {}
    for n, (kind, share) in enumerate(zip(classes, shares, strict=True), 1):
        row[f"choice_{n}"], row[f"probability_{n}"] = instance.name(kind), share
    return row


def _values(instance: Instance, values: np.ndarray) -> View:
    rows: list[Row] = [
        {"output": n, "label": output.label, "value": float(value)}
        for n, (output, value) in enumerate(zip(instance.outputs, values, strict=True))
    ]
    return View("predictions", {"value": values}, rows, {"unit": "value", "notes": list(instance.notes)})
