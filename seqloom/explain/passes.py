"""What passed the taps of a model while it read an instance, at the input positions that it belongs to.

A model may read an instance in several calls: a source, then a target. Every call passes the tap "embedded" first, and
what passes other taps before the next call belongs to its positions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from seqloom.core.errors import UserError
from seqloom.core.instance import Instance
from seqloom.core.network import SequenceModel
from seqloom.core.taps import Tap, find_taps, record
from seqloom.explain.places import COUNTED, EMBEDDED


@dataclass
class Call:
    first: int  # position of the first input
    length: int


@dataclass
class Passed:
    """What passed one tap during one call."""

    path: str
    owner: nn.Module  # the module that the tap is a part of
    call: int
    tensors: list[Tensor] = field(default_factory=list)

    def over_time(self) -> list[Tensor]:
        """All steps as one tensor (..., T, size), in the order of the text and without the batch; one for each hop."""
        parts = [t[:, None] if t.dim() == 2 else t for t in self.tensors]  # (B, size) is one step
        hops = min(getattr(self.owner, "hops", 1), len(parts))
        every = [parts[hop::hops] for hop in range(hops)]
        joined = [own[0][0] if len(own) == 1 else torch.cat(own, dim=-2)[0] for own in every]
        return [t.flip(-2) for t in joined] if getattr(self.owner, "backwards", False) else joined


@dataclass
class Reading:
    """One reading of an instance: its calls, what passed each tap in each of them, and the model's outputs."""

    calls: list[Call]
    passed: dict[str, list[Passed]]  # by the path of the tap, in the order of the model
    outputs: Tensor  # (O, C), as `Instance.read` has it


class _Log(list[Tensor]):
    """A trace that tells what it is given."""

    def __init__(self, tell: Callable[[Tensor], None]) -> None:
        super().__init__()
        self.tell = tell

    def append(self, x: Tensor) -> None:
        self.tell(x)


def read(model: SequenceModel, instance: Instance, wanted: Callable[[str], bool]) -> Reading:
    """Read an instance once, and keep what passes the taps that are wanted, by their paths."""
    calls: list[Call] = []
    passed: dict[str, list[Passed]] = {}

    def count(x: Tensor) -> None:
        first = calls[-1].first + calls[-1].length if calls else 0
        calls.append(Call(first, x.size(1)))

    def keeper(path: str, owner: nn.Module) -> Callable[[Tensor], None]:
        found = passed.setdefault(path, [])

        def keep(x: Tensor) -> None:
            if not found or found[-1].call != len(calls) - 1:
                found.append(Passed(path, owner, len(calls) - 1))
            found[-1].tensors.append(x.detach())

        return keep

    taps: dict[str, Tap] = {path: tap for path, tap in find_taps(model).items() if wanted(path)}
    own = find_taps(model, EMBEDDED)
    if not own:
        raise UserError(COUNTED)
    with record(model, EMBEDDED), torch.no_grad():
        before = {path: tap.trace for path, tap in taps.items()}
        try:
            own[EMBEDDED].trace = _Log(count)
            for path, tap in taps.items():
                tap.trace = _Log(keeper(path, model.get_submodule(path.rpartition(".")[0])))
            outputs = instance.read(model, 1)[0]
        finally:
            for path, tap in taps.items():
                tap.trace = before[path]
    return Reading(calls, {path: found for path, found in passed.items() if found}, outputs)


def layer_name(path: str, owner: nn.Module | None = None) -> str:
    """`backbone.decoder.0.source.alignment` is decoder layer 1, source; `backbone.attention.alignment` is attention; a
    cell that reads from the end is told apart."""
    parts, numbers = path.split("."), re.findall(r"\.(\d+)(?=\.)", path)
    side = next((f"{part} " for part in ("encoder", "decoder") if part in parts), "")
    if not numbers:
        return f"{side}{parts[-2]}"
    name = f"{side}layer {int(numbers[0]) + 1}"
    if parts[-2] == "source":
        return f"{name}, source"
    return f"{name}, backwards" if getattr(owner, "backwards", False) else name


def labels(instance: Instance, first: int, stop: int) -> list[str]:
    """Of input positions; later ones are fed back by the model."""
    known = list(instance.inputs[first:stop])
    return known + [f"+{n}" for n in range(1, stop - first - len(known) + 1)]


def side(instance: Instance, first: int) -> str:
    """The part of the input, such as source or target, that a position belongs to; empty: there is only one."""
    start = 0
    for name, length in instance.parts:
        start += length
        if first < start:
            return name
    return instance.parts[-1][0] if instance.parts else ""
