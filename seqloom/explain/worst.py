"""The worst errors of a run on a file, with their influence maps, and how well its confidence is calibrated.

Where prediction and truth are two classes of the same output, the map answers why the one and not the other.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch

from seqloom.core.errors import UserError
from seqloom.core.instance import Instance
from seqloom.core.rows import Json, Row
from seqloom.explain.explanation import Explanation, find_instance, look
from seqloom.explain.showing import Shown
from seqloom.explain.view import View
from seqloom.runs.run import Run

MOST = 2_000  # rows of the file that are looked at
BINS = 10


class Judged(NamedTuple):
    """A row with its loss: the mean over what is known."""

    loss: float
    line: int
    row: Row
    truth: Instance
    confidence: np.ndarray  # of each output: the largest probability
    right: np.ndarray  # and whether it is that of the truth


@dataclass(frozen=True)
class Worst(Shown):
    """`errors`: the rows with the highest loss, worst first, explained; `views`: calibration over all rows."""

    run: Run
    errors: list[Explanation]
    losses: list[float]
    truths: list[str]
    guesses: list[str]
    views: dict[str, View]
    about: Json

    @property
    def tensors(self) -> dict[str, np.ndarray]:
        own = {f"{n}.{name}": values for n, one in enumerate(self.errors, 1) for name, values in one.tensors.items()}
        return own | {f"calibration.{name}": values for name, values in self.views["calibration"].tensors.items()}

    def explanations(self) -> list[Explanation]:
        return self.errors

    def facts(self) -> Json:
        errors = [entry | one.facts() for entry, one in zip(self._listed(), self.errors, strict=True)]
        return self.about | {"calibration": self.views["calibration"].facts, "worst": errors}

    def extras(self) -> Json:
        view = self.views["calibration"]
        return {"worst": self._listed(), "about": self.about, "calibration": {"rows": view.rows, "facts": view.facts}}

    def told(self) -> Iterator[str]:
        facts = self.views["calibration"].facts
        yield from self.about["notes"]
        yield f"{self.about['rows']:,} rows of {self.about['data']}: mean loss {self.about['loss']:.3f} nats"
        yield (
            f"calibration: expected error {facts['error']:.3f}, accuracy {facts['accuracy']:.1%}, "
            f"mean confidence {facts['confidence']:.1%}"
        )
        for entry, one in zip(self._listed(), self.errors, strict=True):
            answers = (
                f"true {_short(entry['truth'])}, predicted {_short(entry['predicted'])}: " if entry["truth"] else ""
            )
            yield f"  line {entry['line']}: loss {entry['loss']:.2f}, {answers}{_text(one)}"

    def _listed(self) -> list[Json]:
        listed = zip(self.losses, self.truths, self.guesses, self.errors, strict=True)
        return [{"loss": a, "truth": b, "predicted": c, "line": one.row["line"]} for a, b, c, one in listed]

    def __repr__(self) -> str:
        return f"Worst({self.run.folder.path.name}: {len(self.errors)} of {self.about['rows']:,} rows)"


def worst(run: Run, data: str, count: int = 10) -> Worst:
    """The `count` rows of a file on which the true answer has the highest loss."""
    kept: list[tuple[float, int, Judged]] = []
    total, looked, left_out = 0.0, 0, list[str]()
    sure: list[np.ndarray] = []
    right: list[np.ndarray] = []
    rows = iter(run.answered(data))
    for n, row in enumerate(islice(rows, MOST)):
        try:
            judged = _judge(run, row)
        except UserError as error:  # such as a true answer that the model does not know, or a text too long for it
            left_out.append(str(error))
            continue
        looked, total = looked + 1, total + judged.loss
        sure.append(judged.confidence)
        right.append(judged.right)
        heapq.heappush(kept, (judged.loss, -n, judged))
        if len(kept) > count:
            heapq.heappop(kept)
    if not looked:
        reason = left_out[0] if left_out else "there are no rows"
        raise UserError(f"{data}: no row whose loss can be computed; the first: {reason}")
    found = [judged for *_, judged in sorted(kept, key=lambda entry: entry[:2], reverse=True)]
    about = {
        "run": str(run.folder.path), "data": data, "rows": looked, "loss": total / looked, "left_out": len(left_out),
        "notes": _notes(next(rows, None) is not None, left_out),
    }  # fmt: skip
    views = {"calibration": calibration(np.concatenate(sure), np.concatenate(right))}
    truths = [_named(one.truth) if one.row["truth"] is not None else "" for one in found]
    explained = [_explained(run, one) for one in found]
    errors, guesses = [one for one, _ in explained], [guess for _, guess in explained]
    return Worst(run, errors, [one.loss for one in found], truths, guesses, views, about)


def _notes(more: bool, left_out: list[str]) -> list[str]:
    found = [f"only the first {MOST:,} rows of the file were read"] if more else []
    return found + ([f"{len(left_out):,} rows left out; the first: {left_out[0]}"] if left_out else [])


def calibration(confidence: np.ndarray, right: np.ndarray) -> View:
    """Reliability in bins of equal width, and the expected calibration error (Guo et al. 2017)."""
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    rows: list[Row] = []
    for n in range(BINS):
        inside = bins == n
        if inside.any():
            mean, share = float(confidence[inside].mean()), float(right[inside].mean())
            rows.append({"from": n / BINS, "to": (n + 1) / BINS, "confidence": mean, "accuracy": share})
            rows[-1]["count"] = int(inside.sum())
    tensors = {name: np.array([row[name] for row in rows]) for name in ("confidence", "accuracy", "count")}
    error = float(np.abs(tensors["confidence"] - tensors["accuracy"]) @ tensors["count"] / len(confidence))
    facts = {"error": error, "accuracy": float(right.mean()), "confidence": float(confidence.mean())}
    return View("calibration", tensors, rows, facts | {"predictions": len(confidence), "bins": BINS})


def _judge(run: Run, row: Row) -> Judged:
    truth = with_truth(run, row)
    if truth.unit == "value":
        raise UserError(f"{truth.task} predicts numbers, which have no probability")
    with torch.no_grad():
        found = truth.read(run.model, 1)[0].float().cpu()  # (O, C)
    known = torch.tensor([output.given for output in truth.outputs])
    if not known.any():
        raise UserError("the row has no true answer")
    losses = -found.gather(1, truth.chosen[:, None])[:, 0]
    confidence, best = (part[known].numpy() for part in found.exp().max(-1))
    right = best == truth.chosen[known].numpy()
    return Judged(float(losses[known].mean()), int(row.get("line", 0)), row, truth, confidence, right)


def with_truth(run: Run, row: Row) -> Instance:
    """The row with the true answer as what is explained."""
    truth = row["truth"]
    if truth is None or isinstance(truth, str):
        return find_instance(run, row, truth)
    found = find_instance(run, row)
    if isinstance(truth, set):  # each label is an output with the classes no and yes
        chosen = [int(output.label in truth) for output in found.outputs]
        names = [output.label for output in found.outputs]
    else:
        if found.kinds is None or len(truth) != len(found.outputs):
            raise UserError("the answers do not fit the outputs")
        chosen = [found.kinds(name) for name in truth]
        names = [
            f"{output.label.rpartition(': ')[0]}: {name}" for output, name in zip(found.outputs, truth, strict=True)
        ]
    parts = zip(found.outputs, chosen, names, strict=True)
    return replace(found, outputs=tuple(replace(o, chosen=c, label=name, given=True) for o, c, name in parts))


def _named(instance: Instance) -> str:
    """Tokens of a text as one, other outputs as a list."""
    tokens = bool(instance.parts)
    return ("" if tokens else ", ").join(output.label for output in instance.outputs)


def _explained(run: Run, one: Judged) -> tuple[Explanation, str]:
    """The prediction against the truth where both are classes of the same outputs, else the truth; and what was
    predicted."""
    row = {key: value for key, value in one.row.items() if key != "truth"}
    instance, against, said = one.truth, None, ""
    if one.row["truth"] is not None:
        guess = find_instance(run, row)
        said = _named(guess)
        if guess.inputs == one.truth.inputs and len(guess.outputs) == len(one.truth.outputs):
            instance = guess
            against = None if torch.equal(guess.chosen, one.truth.chosen) else one.truth.chosen
    views, missing = {"predictions": look("predictions", run, instance)}, {}
    try:
        views["influence"] = look("influence", run, instance, **({} if against is None else {"against": against}))
    except UserError as error:
        missing["influence"] = str(error)
    return Explanation(run, row, instance, views, missing), said


def _text(one: Explanation) -> str:
    said = next((value for key, value in one.row.items() if key in ("source", "question", "text") and value), "")
    return _short(str(said), 60) if said else f"row {one.row['line']}"


def _short(text: str, most: int = 40) -> str:
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= most else text[: most - 1] + "…"
