"""An explanation as lines for a terminal: each output with its probability and the inputs that influenced it most."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from seqloom.explain.figure import label, width_of
from seqloom.explain.side import Side
from seqloom.explain.view import View

MOST = 40  # outputs
STRONGEST = 3  # inputs of each
FAINT = 0.02  # influences below this share of the strongest are not told


def told(found: Side) -> Iterator[str]:
    yield f"{found.name}: {found.about()['model']}, {found.instance.task}"
    yield from found.instance.notes
    if "alignment" in found.views:
        yield f"output: {found.views['alignment'].facts['target']}"
    yield from _outputs(found)
    for name in _TOLD:
        if name in found.views:
            yield from _TOLD[name](found.views[name])
    for reason in dict.fromkeys(found.missing.values()):
        yield f"no {', '.join(name for name, own in found.missing.items() if own == reason)}: {reason}"


def _outputs(found: Side) -> Iterator[str]:
    """One line each, the last ones if there are many."""
    if "predictions" not in found.views:
        return
    rows = found.views["predictions"].rows
    first = max(0, len(rows) - MOST)
    if first:
        yield f"  ... {first:,} outputs before these; --out FILE.html shows all"
    names = [label(output.label) for output in found.outputs]
    wide = max(map(width_of, names[first:]))
    for n, row in enumerate(rows[first:], first):
        numbers = f"{row['value']:9.3f}" if "value" in row else f"{row['probability']:7.1%}  rank {row['rank']:<5,}"
        yield f"  {' ' * (wide - width_of(names[n]))}{names[n]}  {numbers}  {_influences(found, n)}".rstrip()
    losses = [row["loss"] for row, output in zip(rows, found.outputs, strict=True) if output.given and "loss" in row]
    if len(losses) > 1:
        yield f"mean loss {np.mean(losses):.3f} nats per output, perplexity {np.exp(np.mean(losses)):,.1f}"


def _influences(found: Side, output: int) -> str:
    if "influence" not in found.views:
        return ""
    view = found.views["influence"]
    explained = view.facts.get("explained", [])
    if "occlusion" in view.tensors:
        values = view.tensors["occlusion"][output]
    elif output in explained:
        values = view.tensors["gradients"][explained.index(output)]
    else:
        return ""
    order = np.argsort(-np.abs(values))[:STRONGEST]
    least = FAINT * float(np.abs(values).max())
    shown = [f"{label(found.inputs[at])} {values[at]:+.2f}" for at in order if abs(values[at]) > least]
    return "← " + ", ".join(shown) if shown else ""


def _alignment(view: View) -> Iterator[str]:
    for part in view.facts["maps"]:
        forward = "-" if part["forward"] is None else f"{part['forward']:.0%}"
        error = f", alignment error rate {part['error_rate']:.3f}" if "error_rate" in part else ""
        yield f"{part['name']}: {forward} of the steps do not move back{error}"


def _attention(view: View) -> Iterator[str]:
    found = [f"{name} {value:.2f}" for name, value in view.facts.get("correlation", {}).items() if value is not None]
    if found:
        yield f"attention: rank correlation with the influence map: {', '.join(found)}"


def _patching(view: View) -> Iterator[str]:
    """The places where the other text changes most."""
    facts, rows = view.facts, sorted(view.rows, key=lambda row: -abs(row["effect"]))[:STRONGEST]
    yield f"patching: output {facts['output'] + 1}, {label(facts['class_a'])} here and {label(facts['class_b'])} there"
    for row in rows:
        effect = f"{row['effect']:.0%} of the difference" if facts["share"] else f"{row['effect']:+.2f}"
        yield f"  {row['place']} at {label(row['input'])}: {effect}, predicts {label(row['predicts'])}"


def _gradients(view: View) -> Iterator[str]:
    for layer, slope in view.facts["slopes"].items():
        if slope is not None:
            yield f"gradient at {layer}: times {np.exp(slope):.3f} per token further back"
    yield from (view.facts[note] for note in ("left_out", "damaged") if note in view.facts)


def _walk(view: View) -> Iterator[str]:
    facts, rows = view.facts, sorted(view.rows, key=lambda row: -row["weight"])[:STRONGEST]
    place = f"{facts['layer']}, head {facts['head']}"
    yield f"{place}, query {label(facts['query'])}: score {facts['score']}, {facts['align']}"
    yield from (f"  {label(row['token'])}: score {row['score']:.3f}, weight {row['weight']:.3f}" for row in rows)


_TOLD = {"alignment": _alignment, "attention": _attention, "patching": _patching} | {
    "gradients": _gradients,
    "walk": _walk,
}


def told_difference(first: str, second: str, view: View | None) -> Iterator[str]:
    if view is None:
        yield f"{first} and {second} have no output in common to compare; within one task, --target can name one"
        return
    unit = "loss" if "loss" in view.tensors else "value"
    if view.facts["aligned"] == "stretch":
        yield "their tokens differ: compared over stretches of text that end at a boundary of both"
    yield f"{second} minus {first}: mean {unit} {view.facts[f'mean_{unit}']:+.3f}"
    values, names = view.tensors[unit], view.facts["outputs"]
    for title, order in (("lower", np.argsort(values)), ("higher", np.argsort(-values))):
        some = [n for n in order[:5].tolist() if (values[n] < 0) == (title == "lower") and values[n]]
        if some:
            yield f"  {unit} {title}: " + ", ".join(f"{label(names[n])} {values[n]:+.2f}" for n in some)
