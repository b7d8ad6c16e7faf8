"""Two runs on one input, side by side, with their difference.

With the same tokens, output by output. With different ones, their losses and influence maps are summed over the
shortest stretches of text at whose ends both have a boundary between tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from seqloom.core.rows import Json
from seqloom.explain.explanation import Explanation
from seqloom.explain.showing import Shown
from seqloom.explain.stretches import common
from seqloom.explain.telling import told_difference
from seqloom.explain.view import View


@dataclass(frozen=True)
class SideBySide(Shown):
    sides: list[Explanation]

    @cached_property
    def difference(self) -> View | None:
        """None: there is no output that both explain, so there is nothing to subtract."""
        return difference(*self.sides) if self._comparable else None

    @property
    def _comparable(self) -> bool:
        return len(self.sides) == 2 and all("predictions" in side.views for side in self.sides)

    @property
    def views(self) -> dict[str, View]:  # type: ignore[override]
        found = {f"{title} {name}": view for title, side in self._titled() for name, view in side.views.items()}
        return found | ({"difference": self.difference} if self.difference else {})

    def _titled(self) -> list[tuple[str, Explanation]]:
        """The sides by the names of their folders, with their numbers where two have the same name."""
        names = [side.name for side in self.sides]
        if len({*names}) < len(names):
            names = [f"{name} {n}" for n, name in enumerate(names, 1)]
        return list(zip(names, self.sides, strict=True))

    @property
    def tensors(self) -> dict[str, np.ndarray]:
        return {f"{name}.{key}": values for name, view in self.views.items() for key, values in view.tensors.items()}

    def explanations(self) -> list[Explanation]:
        return self.sides

    def facts(self) -> Json:
        own = self.difference
        told = {"facts": own.facts, "tensors": {k: v.tolist() for k, v in own.tensors.items()}} if own else None
        return {"runs": [side.facts() for side in self.sides], "difference": told}

    def extras(self) -> Json:
        return {"difference": self.difference} if self._comparable else {}

    def told(self) -> Iterator[str]:
        for side in self.sides:
            yield from (*side.told(), "")
        if self._comparable:
            (first, _), (second, _) = self._titled()
            yield from told_difference(first, second, self.difference)

    def __repr__(self) -> str:
        return f"SideBySide({' | '.join(map(repr, self.sides))})"


def difference(one: Explanation, other: Explanation) -> View | None:
    """The second minus the first."""
    same = one.inputs == other.inputs and [o.label for o in one.outputs] == [o.label for o in other.outputs]
    if same or (one.inputs == other.inputs and _only_last_differs(one, other)):
        return _by_output(one, other)
    if str(one.row.get("source", "")) and one.instance.task == other.instance.task == "language_model":
        return _by_stretch(one, other)
    return None


def _only_last_differs(one: Explanation, other: Explanation) -> bool:
    """What follows a text is each model's own prediction; the text is the same."""
    given = [[o.label for o in side.outputs if o.given] for side in (one, other)]
    return given[0] == given[1] and len(given[0]) > 0


def _by_output(one: Explanation, other: Explanation) -> View:
    count = sum(a.label == b.label for a, b in zip(one.outputs, other.outputs, strict=True))
    kept = np.array([a.label == b.label for a, b in zip(one.outputs, other.outputs, strict=True)])
    tensors, labels = {}, [o.label for o, keep in zip(one.outputs, kept, strict=True) if keep]
    first, second = (side.views["predictions"].tensors for side in (one, other))
    for name in sorted({"probability", "loss", "value"} & first.keys() & second.keys()):
        tensors[name] = (second[name] - first[name])[kept]
    tensors |= _influence(one, other, lambda values, _: values[kept])
    rows = [{"output": label} | _cells(tensors, n) for n, label in enumerate(labels)]
    facts = {"aligned": "output", "outputs": labels, "inputs": list(one.inputs), "compared": count}
    return View("difference", tensors, rows, facts | _totals(tensors))


def _by_stretch(one: Explanation, other: Explanation) -> View | None:
    text = str(one.row["source"])
    cuts = common(text, one.instance, other.instance)
    if not cuts[0].spans:
        return None  # one of them predicts nothing of so short a text
    sums = [side.views["predictions"].tensors["loss"] for side in (one, other)]
    losses = [found.of_outputs(loss) for found, loss in zip(cuts, sums, strict=True)]
    names = [text[start:end] for start, end in cuts[0].spans]
    tensors = {"loss": losses[1] - losses[0]}
    tensors |= _influence(one, other, lambda values, side: cuts[side].of_map(values))
    rows = [{"output": name} | _cells(tensors, n) for n, name in enumerate(names)]
    whole = len(text[cuts[0].spans[0][0] :].encode())
    facts: Json = {"aligned": "stretch", "outputs": names, "inputs": names, "compared": len(names)}
    facts |= {"bytes": whole, "bits_per_byte": [float(loss.sum()) / max(1, whole) / np.log(2) for loss in losses]}
    return View("difference", tensors, rows, facts | _totals(tensors))


def _influence(
    one: Explanation, other: Explanation, cut: Callable[[np.ndarray, int], np.ndarray]
) -> dict[str, np.ndarray]:
    both = [side.views["influence"].tensors for side in (one, other) if "influence" in side.views]
    if len(both) < 2 or not all("occlusion" in tensors for tensors in both):  # too long for it
        return {}
    maps = [cut(tensors["occlusion"], n) for n, tensors in enumerate(both)]
    return {"influence": maps[1] - maps[0]}


def _cells(tensors: dict[str, np.ndarray], n: int) -> Json:
    return {name: float(values[n]) for name, values in tensors.items() if values.ndim == 1}


def _totals(tensors: dict[str, np.ndarray]) -> Json:
    """What the second has more, on average."""
    return {f"mean_{name}": float(v.mean()) for name, v in tensors.items() if v.ndim == 1 and len(v)}
