"""The gradient microscope: how a gradient travels back through a model, and how its recurrent matrices let it.

dL/dh_t against the lag     norm of the loss's gradient at the vectors of every layer, L the loss of the last output or
                            the mean over all; at recurrent cells the whole gradient, through later steps as well
dh_T/dh_t                   spectral norm of the product of Jacobians of a recurrent memory
eigenvalues                 of the blocks of a recurrent matrix: outside the unit circle they grow, inside they fade
norms in training           of the whole gradient before and after clipping, as the run recorded them

A slope is that of the logarithm against the lag, so a gradient is multiplied by exp(slope) per step. A gradient that
grows until it is no number any more is shown up to there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from seqloom.core.errors import UserError
from seqloom.core.instance import Instance
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json, Row
from seqloom.core.taps import Edit, Tap, find_taps, replace
from seqloom.explain.passes import EMBEDDED, layer_name
from seqloom.explain.view import View
from seqloom.layers.linear import weight_of
from seqloom.runs.durable import Damaged, verify
from seqloom.runs.run import Run

LAGS = 128  # largest of the product of Jacobians
CELLS = 24e6  # numbers of all its matrices; of large ones, not every lag is shown
EXACT = 128  # units up to which the spectral norm is that of a decomposition; beyond, by power iteration
COPIES = 32  # of the input that are differentiated at once
MOST = 150_000  # units times positions; beyond that the product of Jacobians takes long and is left out
LEAST = 1e-30  # smaller norms are rounding

Loss = Literal["last", "mean"]


def gradients(runs: Sequence[Run], row: Row, target: str | None = None, *, loss: Loss = "last") -> list[View]:
    """One view per run, of the same input; with what the runs recorded in training."""
    views = []
    for run in runs:
        if not run.model.descends:
            raise UserError(f"{run.folder.path}: this model is not trained by gradient descent: it has no gradients")
        task: Any = run.task
        seen = microscope(run.model, task.instance(run.model, row, run.tokenizer, target), loss=loss)
        tensors, facts = _history(run)
        facts = {"run": str(run.folder.path), "model": run.config.model["name"]} | seen.facts | facts
        views.append(View(seen.name, seen.tensors | tensors, seen.rows, facts))
    return views


def microscope(model: SequenceModel, instance: Instance, *, loss: Loss = "last") -> View:
    """`loss`: that of the last output, or the mean over all of them."""
    end = instance.outputs[-1].at
    end = len(instance.inputs) - 1 if end is None else end
    norms = _by_position(model, instance, loss)
    tensors: dict[str, np.ndarray] = {}
    rows: list[Row] = []
    facts: Json = {"loss": loss, "end": end, "slopes": {}, "first_lags": {}, "jacobians": {}, "radii": {}}
    for layer, (first, values) in norms.items():
        by_lag = values[: max(0, end + 1 - first)][::-1]
        lag = end + 1 - first - len(by_lag)
        by_lag = by_lag[: _finite(by_lag)]
        tensors[layer], facts["slopes"][layer], facts["first_lags"][layer] = by_lag, slope(by_lag), lag
        rows += [{"layer": layer, "lag": lag + n, "norm": float(norm)} for n, norm in enumerate(by_lag)]
    products, left_out = jacobians(model, instance)
    for layer, (lags, values) in products.items():
        tensors |= {f"{layer}, Jacobian": values, f"{layer}, Jacobian lags": lags}
        facts["jacobians"][layer] = slope(values, lags)
    if left_out:
        facts["left_out"] = f"the product of Jacobians of {', '.join(left_out)}: the text is too long for its size"
    for layer, (blocks, values) in eigenvalues(model).items():
        tensors[f"{layer}, eigenvalues"] = values
        facts["radii"][layer] = dict(zip(blocks, _radii(values), strict=True))
    return View("gradients", tensors, rows, facts)


def slope(norms: np.ndarray, lags: np.ndarray | None = None) -> float | None:
    """Of the logarithm against the lag, by least squares; None: fewer than three lags with a gradient."""
    lags = np.arange(len(norms)) if lags is None else lags
    some = norms > LEAST
    return float(np.polyfit(lags[some], np.log(norms[some]), 1)[0]) if some.sum() > 2 else None


class _Keeper:
    """Edits that pass on the same, and keep it with the position at which the call began."""

    def __init__(self) -> None:
        self.first, self.after = 0, 0
        self.kept: dict[str, list[tuple[int, Tensor]]] = {}

    def edits(self, paths: Iterable[str]) -> dict[str, Edit]:
        return {path: partial(self._keep, path) for path in dict.fromkeys((EMBEDDED, *paths))}

    def _keep(self, path: str, x: Tensor) -> Tensor:
        if path == EMBEDDED:
            self.first, self.after = self.after, self.after + x.size(1)
        x = x if x.requires_grad else x.detach().requires_grad_()
        self.kept.setdefault(path, []).append((self.first, x))
        return x


def _by_position(model: SequenceModel, instance: Instance, loss: Loss) -> dict[str, tuple[int, np.ndarray]]:
    """By layer, the position at which it begins to read and norms (T,) of the gradient from there on."""
    keeper = _Keeper()
    with torch.enable_grad(), replace(model, keeper.edits(_paths(model))):
        scores = instance.scores(model)[0]  # (O,)
        value = -(scores[-1] if loss == "last" else scores.mean())
    found = iter(torch.autograd.grad(value, [x for kept in keeper.kept.values() for _, x in kept], allow_unused=True))
    norms: dict[str, tuple[int, np.ndarray]] = {}
    for path, kept in keeper.kept.items():
        owner = model.get_submodule(path.rpartition(".")[0])
        calls: dict[int, list[Tensor]] = {}
        for first, x in kept:
            gradient = next(found)
            gradient = torch.zeros_like(x) if gradient is None else gradient
            calls.setdefault(first, []).append(gradient[:, None] if gradient.dim() == 2 else gradient)
        joined = [torch.cat(parts, dim=1)[0] for parts in calls.values()]
        joined = [part.flip(0) for part in joined] if getattr(owner, "backwards", False) else joined
        norms[_title(path, owner)] = kept[0][0], torch.cat(joined).double().norm(dim=-1).cpu().numpy()
    return norms


def _paths(model: SequenceModel) -> list[str]:
    """Taps of recurrent memories, and of the outputs of layers that have none."""
    taps = find_taps(model)
    if EMBEDDED not in taps:
        raise UserError("this model is not trained by gradient descent: it has no gradients")
    names, cells = {id(tap): path for path, tap in taps.items()}, _cells(model)
    layers: list[Tap] = model.backbone.layer_taps()  # type: ignore[union-attr, operator]
    found = [source for source, _ in cells.values()]
    outputs = [names[id(tap)] for tap in layers if id(tap) in names]
    return found + [path for path in outputs if not (cells and path.rpartition(".")[2].isdigit())]


Curve = tuple[np.ndarray, np.ndarray]  # lags, values


def jacobians(model: SequenceModel, instance: Instance) -> tuple[dict[str, Curve], list[str]]:
    """Spectral norm of dh_T/dh_t by lag T - t, for each recurrent memory that reads in the order of the text; T is its
    last step. Units are differentiated one by one, on copies of the input. And the memories left out."""
    found: dict[str, Curve] = {}
    left_out: list[str] = []
    for cell, (source, end) in _cells(model).items():
        size, title = int(cell.hidden), _title(source, cell)
        if getattr(cell, "backwards", False):
            continue
        if size * len(instance.inputs) > MOST:
            left_out.append(title)
            continue
        parts = torch.arange(size).split(COPIES)
        rows = [_rows_of(model, instance, source, end, units, max(16, int(CELLS / size**2))) for units in parts]
        norms = np.array(
            [_spectral_norm(torch.cat(blocks)) for blocks in zip(*(part for _, part in rows), strict=True)]
        )
        whole = _finite(norms)
        found[title] = rows[0][0][:whole], norms[:whole]
    return found, left_out


def _finite(values: np.ndarray) -> int:
    """How many of the first values are numbers."""
    bad = np.flatnonzero(~np.isfinite(values))
    return int(bad[0]) if len(bad) else len(values)


def _spectral_norm(matrix: Tensor) -> float:
    matrix = matrix.double()
    if not matrix.isfinite().all():
        return float("inf")
    if len(matrix) <= EXACT:
        return float(torch.linalg.matrix_norm(matrix, 2))
    x = torch.ones(len(matrix), dtype=torch.double, device=matrix.device)
    for _ in range(60):
        x = torch.nn.functional.normalize(matrix.mT @ (matrix @ x), dim=0, eps=0.0)
    return float((matrix @ x).norm())


def eigenvalues(model: nn.Module) -> dict[str, tuple[list[str], np.ndarray]]:
    """For each recurrent cell the names of its blocks and their eigenvalues, (blocks, H, 2): real, imaginary."""
    found = {}
    for path, module in model.named_modules():
        if hasattr(module, "weight_h") and hasattr(module, "of_hidden"):
            weight = weight_of(module.of_hidden).detach()
            found[layer_name(f"{path}.state", module)] = (_blocks(module), _spectrum(weight, int(module.hidden)))
    return found


def _rows_of(
    model: SequenceModel, instance: Instance, source: str, end: str, units: Tensor, count: int
) -> tuple[np.ndarray, Tensor]:
    """At most `count` lags, and for each the gradient of some units of the last state with respect to the state so many
    steps before: (lags, units, H)."""
    keeper = _Keeper()
    with torch.enable_grad(), replace(model, keeper.edits([source, end])):
        instance.read(model, len(units))
    before, last = [x for _, x in keeper.kept[source]], keeper.kept[end][-1][1]
    last = last if last.dim() == 2 else last[:, -1]
    chosen = last[torch.arange(len(units)), units.to(last.device)].sum()
    found = torch.autograd.grad(chosen, before, allow_unused=True)
    filled = [torch.zeros_like(x) if g is None else g for x, g in zip(before, found, strict=True)]
    steps = torch.cat([g[:, None] if g.dim() == 2 else g for g in filled], dim=1).transpose(0, 1).flip(0)  # by lag
    most = min(len(steps), LAGS + 1)
    lags = np.unique(np.linspace(0, most - 1, min(most, count)).round().astype(int))
    return lags, steps[torch.from_numpy(lags)]


def _cells(model: nn.Module) -> dict[Any, tuple[str, str]]:
    """Recurrent memories: the tap of the memory at a step, and that of what becomes of it."""
    return {
        module: (f"{path}.{module.carries[0]}", f"{path}.{module.carries[1]}")
        for path, module in model.named_modules()
        if hasattr(module, "carries")
    }


def _title(path: str, owner: nn.Module) -> str:
    if path == EMBEDDED:
        return "embedding"
    memory = hasattr(owner, "carries") and path.rpartition(".")[2] != "output"
    name = layer_name(path, owner)
    return f"{name}, memory" if memory else f"{name}, output"


def _blocks(cell: Any) -> list[str]:
    return list(cell.blocks) or [f"block {n + 1}" for n in range(cell.gates)]


def _spectrum(weight: Tensor, hidden: int) -> np.ndarray:
    """Of each block of `hidden` rows; one with fewer columns is block-diagonal, its square parts stacked by rows."""
    blocks = [block.double().unflatten(0, (-1, block.size(1))) for block in weight.detach().cpu().split(hidden)]
    values = [torch.linalg.eigvals(block).flatten() for block in blocks]
    return torch.view_as_real(torch.stack(values)).numpy()


def _radii(values: np.ndarray) -> list[float]:
    return [float(radius) for radius in np.linalg.norm(values, axis=-1).max(-1)]


def _history(run: Run) -> tuple[dict[str, np.ndarray], Json]:
    """Norms of the gradient in training, and the spectral radius of recurrent matrices in the checkpoints kept."""
    tensors: dict[str, np.ndarray] = {}
    facts: Json = {}
    logged = [(e["step"], e["train"]["norm"]) for e in run.history if "norm" in e.get("train", {})]
    if logged:
        steps, norms = (np.array(column, float) for column in zip(*logged, strict=True))
        tensors |= {"training, step": steps, "training, norm": norms}
        clip = run.config.train.clip if run.config.train.clip_by == "norm" else 0.0
        if clip:
            tensors["training, clipped norm"] = np.minimum(norms, clip)
            facts |= {"clip": clip, "clipped": float((norms > clip).mean())}
    kept = run.folder.checkpoints()[::-1]
    whole = [(step, path) for step, path in kept if _is_whole(path)]
    if damaged := len(kept) - len(whole):
        facts["damaged"] = f"{damaged} damaged checkpoint{'s' if damaged > 1 else ''} left out"
    radii = [(step, _checkpoint(run, path / "model.safetensors")) for step, path in whole]
    for layer in radii[0][1] if radii else []:
        own = [(step, found[layer]) for step, found in radii if layer in found]
        tensors[f"{layer}, radius, step"] = np.array([step for step, _ in own], float)
        tensors[f"{layer}, radius"] = np.array([values for _, values in own])  # (checkpoints, blocks)
    return tensors, facts


def _is_whole(checkpoint: Path) -> bool:
    try:
        verify(checkpoint)
    except Damaged:
        return False
    return True


def _checkpoint(run: Run, path: Any) -> dict[str, list[float]]:
    """Spectral radius of every block of every recurrent matrix; checkpoints of adapters alone have none."""
    cells = {f"{name}.weight_h": module for name, module in run.model.named_modules() if hasattr(module, "weight_h")}
    weights = load_file(path) if cells and path.exists() else {}
    return {
        layer_name(name, cell): _radii(_spectrum(weights[name], int(cell.hidden)))
        for name, cell in cells.items()
        if name in weights
    }
