"""`explain`: all views of a run on one input, as tensors, tables, a page and data.

A view that does not exist for a model is listed with the reason; one that was asked for by name is refused with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

import numpy as np

from seqloom.core.errors import UserError, unknown
from seqloom.core.instance import Instance, Output
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json, Row
from seqloom.explain.alignments import AlignedTask, Gold, explain_alignment
from seqloom.explain.showing import Shown
from seqloom.explain.telling import told
from seqloom.explain.view import View
from seqloom.explain.views.gradients import gradients
from seqloom.explain.walk import walk
from seqloom.runs.run import Run

USUAL = ("predictions", "influence", "attention", "memory", "lens")  # shown unless views are named
ASKED = ("patching", "gradients", "walk")  # only where asked for
UNKNOWN = frozenset({"<unk>", "[UNK]"})  # what tokenizers call a token that they do not know
VIEWS = (*USUAL, "alignment", *ASKED)
LONGEST = 5_000  # inputs of an explanation: maps of all pairs of them must fit into memory and a page
_CHARACTERS = 40 * LONGEST  # in a text, above which it is not even split into tokens


@runtime_checkable
class InstanceTask(Protocol):
    """A task that says what one of its inputs and its outputs are."""

    def instance(self, model: SequenceModel, row: Row, vocabulary: Any, target: str | None = None) -> Instance: ...


@dataclass(frozen=True)
class Explanation(Shown):
    """One run on one input: `views` by name, `frame(name)` as a table, `tensors`, and `save(path)`."""

    run: Run
    row: Row
    instance: Instance
    views: dict[str, View]
    missing: dict[str, str] = field(default_factory=dict)  # views that there are not, with the reason

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.instance.inputs

    @property
    def outputs(self) -> tuple[Output, ...]:
        return self.instance.outputs

    @property
    def name(self) -> str:
        return self.run.folder.path.name

    @property
    def tensors(self) -> dict[str, np.ndarray]:
        """All numbers, as `view.tensor`."""
        return {f"{view.name}.{name}": values for view in self.views.values() for name, values in view.tensors.items()}

    def about(self) -> Json:
        """What was explained, without the views."""
        shown = {key: value for key, value in self.row.items() if key != "line" and isinstance(value, str) and value}
        return {
            "run": str(self.run.folder.path),
            "model": str(self.run.config.model["name"]),
            "task": self.instance.task,
            "title": list(self.run.task.title),
            **({"text": shown} if shown else {"line": self.row.get("line", 1)}),
            "unit": self.instance.unit,
            "inputs": list(self.inputs),
            "outputs": [{"label": o.label, "at": o.at, "given": o.given} for o in self.outputs],
            "parts": [list(part) for part in self.instance.parts],
            "notes": list(self.instance.notes),
            "missing": self.missing,
        }

    def facts(self) -> Json:
        views = {
            name: {"facts": view.facts, "tensors": {key: values.tolist() for key, values in view.tensors.items()}}
            for name, view in self.views.items()
        }
        return self.about() | {"views": views}

    def explanations(self) -> list[Explanation]:
        return [self]

    def told(self) -> Iterator[str]:
        return told(self)

    def __repr__(self) -> str:
        made = f"{len(self.outputs)} outputs from {len(self.inputs)} inputs"
        return f"Explanation({self.name}: {self.instance.task}, {made}; views: {', '.join(self.views)})"


def explain_one(
    run: Run,
    row: Row,
    *,
    target: str | None = None,
    against: str | None = None,
    views: Sequence[str] | None = None,
    patch_with: Row | None = None,
    gold: Gold | None = None,
    layer: int | None = None,
    head: int | None = None,
) -> Explanation:
    """`layer` and `head`: those of a walk."""
    wanted = _wanted(run, views, patch_with is not None)
    for option, value in (("layer", layer), ("head", head)):
        if value is not None and "walk" not in wanted:
            raise UserError(f"--{option}: chooses what --walk shows; give --walk too, or leave it out")
    if target is not None and target == against:
        raise UserError(f"--against {against!r}: the same as --target; choose another")
    if gold is not None and "alignment" not in wanted:
        raise UserError(f"--gold: this {run.task.name} explanation has no alignment to compare it with; leave it out")
    instance = find_instance(run, row, target)
    asked: Json = {"alignment": gold, "patching": patch_with, "influence": against}  # what a view was given
    found: dict[str, View] = {}
    missing: dict[str, str] = {}
    for name in wanted:
        try:
            if name == "alignment":
                found[name] = _alignment(run, row, target, gold)
            elif name == "gradients":
                (found[name],) = gradients([run], row, target)
            elif name == "walk":
                found[name] = _walk(run, instance, layer or 1, head or 1)
            elif name == "patching":
                found[name] = _patching(run, instance, patch_with, target)
            else:
                found[name] = look(name, run, instance, **_options(name, found, against))
        except UserError as error:
            if asked.get(name) is not None:
                raise
            missing[name] = str(error).removeprefix(f"{name}: ")
    if views is not None and missing:
        raise _refusal(run, row, target, missing)
    return Explanation(run, row, instance, found, missing)


def find_instance(run: Run, row: Row, target: str | None = None) -> Instance:
    if not isinstance(run.task, InstanceTask):
        raise UserError(f"a {run.task.name} run cannot be explained")
    for text in (target, *row.values()):
        if isinstance(text, str) and len(text) > _CHARACTERS:
            raise _too_long(f"{len(text):,} characters")
    found = run.task.instance(run.model, row, run.tokenizer, target)
    if len(found.inputs) > LONGEST:
        raise _too_long(f"{len(found.inputs):,} tokens or steps")
    unread = sum(token in UNKNOWN for token in found.inputs)
    note = f"{unread} of {len(found.inputs)} tokens are not in the vocabulary: the model reads each as unknown"
    return replace(found, notes=(*found.notes, note)) if unread else found


def _too_long(size: str) -> UserError:
    return UserError(f"{size}: too long to explain, which takes at most {LONGEST:,} tokens; give a part of it")


def _wanted(run: Run, views: Sequence[str] | None, patched: bool) -> list[str]:
    for name in views or ():
        if name not in VIEWS:
            raise unknown("view", name, VIEWS)
    usual = [*USUAL, *(["alignment"] if isinstance(run.task, AlignedTask) else [])]
    chosen = [name for name in VIEWS if name in (usual if views is None else views)]
    return chosen if not patched or "patching" in chosen else [*chosen, "patching"]


def look(name: str, run: Run, *instances: Instance, **options: Any) -> View:
    """One view, found by the name of its file."""
    found: View = getattr(import_module(f"seqloom.explain.views.{name}"), name)(run.model, *instances, **options)
    return found


def _options(name: str, found: dict[str, View], against: str | None) -> Json:
    """What a view is given beside model and instance."""
    if name == "influence":
        return {"against": against} if against is not None else {}
    if name == "attention" and "influence" in found:
        return {"influence": found["influence"].tensors.get("occlusion")}
    return {}


def _alignment(run: Run, row: Row, target: str | None, gold: Gold | None) -> View:
    found = explain_alignment(run, str(row.get("source", "")), target, gold)
    maps = {part["name"]: np.array(part["weights"], np.float32) for part in found["maps"]}
    rows = [{key: part.get(key) for key in ("name", "forward", "error_rate")} for part in found["maps"]]
    return View("alignment", maps, rows, found)


def _walk(run: Run, instance: Instance, layer: int, head: int) -> View:
    """Layers and heads are counted from 1, as the page shows them."""
    try:
        return walk(run.model, instance, layer - 1, head - 1)
    except UserError as error:
        wrong = re.match(r"(layer|head)=(\d+): there are (\d+)", str(error))
        if wrong is None:
            raise
        raise UserError(f"--{wrong[1]} {int(wrong[2]) + 1}: there are {wrong[3]}, counted from 1") from None


def _patching(run: Run, instance: Instance, other: Row | None, target: str | None) -> View:
    if other is None:
        raise UserError("needs a second text to take states from; give --with TEXT")
    return look("patching", run, instance, find_instance(run, other, target))


def _refusal(run: Run, row: Row, target: str | None, missing: dict[str, str]) -> UserError:
    """One line with what there is instead."""
    name, reason = next(iter(missing.items()))
    if reason.startswith("--"):
        return UserError(reason)
    told = f"{name}: {reason}"
    if "can be shown" in reason or reason.endswith(" instead"):
        return UserError(told)
    return UserError(f"{told}; what can be shown: {', '.join(explain_one(run, row, target=target).views)}")
