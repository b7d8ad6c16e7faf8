"""A recurrent memory as a time line over the text: what its gates do, what it writes and keeps, what it would say.

Works through taps alone. Of each gate: the mean over its units at every position, the share of units that are open
(above 0.9) or closed (below 0.1), and the units that tell positions apart best (largest variance). Of what a step
writes to the memory and how much of it stays: gates that a cell declares to do so (`flow`), the strength of a write
where the memory is a matrix, and the change of the weights where it is a model, with its loss before and after.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from seqloom.core.errors import UserError
from seqloom.core.instance import Instance
from seqloom.core.network import Network, SequenceModel, Summary
from seqloom.core.rows import Json, Row
from seqloom.explain.passes import Reading, labels, layer_name, read
from seqloom.explain.view import View

OPEN, CLOSED = 0.9, 0.1
UNITS = 5  # most selective ones that are shown
STATES = ("state", "carry")
SERIES = {"write": "write", "change": "weight change", "error": "loss before", "error_after": "loss after"}
RATES = {"rate": "learning rate"}


@dataclass
class Line:
    """One layer in one direction: its taps over the positions of all calls, each (T, size)."""

    name: str
    owner: nn.Module
    positions: list[int] = field(default_factory=list)
    taps: dict[str, list[Tensor]] = field(default_factory=dict)

    def values(self, tap: str) -> np.ndarray:
        return torch.cat(self.taps[tap]).numpy()


def memory(model: SequenceModel, instance: Instance, *, units: int = UNITS) -> View:
    reading = read(model, instance, _is_memory)
    lines = _lines(reading)
    if not lines:
        raise UserError("this model has no recurrent memory; look at its attention, gradients or influence instead")
    tensors: dict[str, np.ndarray] = {}
    facts: Json = {"layers": {}, "open": OPEN, "closed": CLOSED}
    rows: list[Row] = []
    for line in lines:
        curves = _curves(line)
        tensors |= {f"{line.name}, {name}": values for name, values in curves.items()}
        chosen = _selective(line, units)
        tensors |= {f"{line.name}, {tap} units": values for tap, (_, values) in chosen.items()}
        facts["layers"][line.name] = {
            "positions": line.positions,
            "curves": list(curves),
            "units": {tap: numbers for tap, (numbers, _) in chosen.items()},
        }
        names = [labels(instance, at, at + 1)[0] for at in line.positions]
        rows += [
            {"layer": line.name, "position": at, "token": name, **{curve: float(v[n]) for curve, v in curves.items()}}
            for n, (at, name) in enumerate(zip(line.positions, names, strict=True))
        ]
    nearest = _nearest(model, instance, reading)
    if nearest:
        facts["nearest"] = "the class that the output layer would choose if it saw the output of this layer"
        for row in rows:
            row["nearest"] = nearest.get(row["layer"], {}).get(row["position"])
    return View("memory", tensors, rows, facts)


def _is_memory(path: str) -> bool:
    tap = path.rpartition(".")[2]
    return tap.endswith("_gate") or tap in (*STATES, *SERIES, *RATES, "output") or tap.isdigit()


def _lines(reading: Reading) -> list[Line]:
    found: dict[nn.Module, Line] = {}
    for path, calls in reading.passed.items():
        tap = path.rpartition(".")[2]
        if tap == "output" or tap.isdigit():
            continue  # of layers, for `_nearest`
        owner = calls[0].owner
        line = found.setdefault(owner, Line(layer_name(path, owner), owner))
        line.taps[tap] = [passed.over_time()[0].float().cpu() for passed in calls]
        places = [reading.calls[passed.call] for passed in calls]
        line.positions = [at for call in places for at in range(call.first, call.first + call.length)]
    return _merged(list(found.values()))


def _merged(lines: list[Line]) -> list[Line]:
    """Parts of one layer, such as a learning rate and the loss it is for, are one line."""
    found: dict[str, Line] = {}
    for line in lines:
        same = found.setdefault(line.name, line)
        if same is not line:
            same.taps |= line.taps
    return list(found.values())


def _curves(line: Line) -> dict[str, np.ndarray]:
    """Numbers over the positions, (T,)."""
    curves: dict[str, np.ndarray] = {}
    for tap in line.taps:
        values = line.values(tap)
        if tap.endswith("_gate"):
            name = tap.replace("_", " ")
            curves[name] = values.mean(1)
            curves[f"{name}, open"], curves[f"{name}, closed"] = (values > OPEN).mean(1), (values < CLOSED).mean(1)
        elif tap in SERIES or tap in RATES:
            curves[(SERIES | RATES)[tap]] = values.mean(1)
        else:
            steps = np.diff(values, axis=0, prepend=np.zeros_like(values[:1]))
            if getattr(line.owner, "backwards", False):
                steps = np.diff(values, axis=0, append=np.zeros_like(values[:1]))
            curves[f"{tap}, norm"], curves[f"{tap}, change"] = (np.linalg.norm(x, axis=1) for x in (values, steps))
    flow = {meaning: line.values(tap).mean(1) for tap, meaning in getattr(line.owner, "flow", {}).items()}
    gated = any(tap.endswith("_gate") for tap in getattr(line.owner, "flow", {}))
    if "writes" in flow and gated:
        curves["write"] = flow["writes"]
    if gated:  # a cell with one gate keeps what it does not write
        curves["keep"] = flow["keeps"] if "keeps" in flow else 1 - flow["writes"]
        curves.setdefault("write", 1 - curves["keep"])
    return curves


def _selective(line: Line, count: int) -> dict[str, tuple[list[int], np.ndarray]]:
    """Of gates and states, the units whose values vary most over the positions: numbers and values (units, T)."""
    found = {}
    for tap in line.taps:
        if tap in STATES or tap.endswith("_gate"):
            values = line.values(tap)
            units = np.argsort(-values.var(axis=0), kind="stable")[:count]
            found[tap.replace("_", " ")] = ([int(unit) for unit in units], values[:, units].T)
    return found


@torch.no_grad()
def _nearest(model: SequenceModel, instance: Instance, reading: Reading) -> dict[str, dict[int, str]]:
    """For each layer and position, the class that the output layer prefers there; empty where the output layer does
    not answer at every position, or answers something else."""
    if not isinstance(model, Network) or isinstance(model.head, Summary) or instance.unit == "value":
        return {}
    layers = {id(tap) for tap in model.backbone.layer_taps()}
    paths = {path for path, module in model.named_modules() if id(module) in layers}
    found: dict[str, dict[int, str]] = {}
    last: dict[int, int] = {}
    for path in [path for path in reading.passed if path in paths]:
        named = found.setdefault(_output_layer(path), {})
        for passed in reading.passed[path]:
            hidden = passed.over_time()[0]
            scores = model.head(model.backbone.finish(hidden[None].to(model.device)))[0]
            if scores.dim() != 2 or scores.size(1) != reading.outputs.size(1):
                return {}
            best, first = scores.argmax(-1).tolist(), reading.calls[passed.call].first
            last = last | {first + n: kind for n, kind in enumerate(best)}
            named |= {first + n: instance.name(kind) for n, kind in enumerate(best)}
    chosen = reading.outputs.argmax(-1).tolist()
    placed = [(output.at, kind) for output, kind in zip(instance.outputs, chosen, strict=True) if output.at is not None]
    return found if placed and all(last.get(at) == kind for at, kind in placed) else {}


def _output_layer(path: str) -> str:
    """The layer whose output passes a tap: `backbone.outputs.0` is that of layer 1."""
    return layer_name(f"{path}.output") if path.rpartition(".")[2].isdigit() else layer_name(path)
