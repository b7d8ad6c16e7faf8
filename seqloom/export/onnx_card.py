"""How the graphs of an ONNX export are used, for its card: names and shapes, and code that runs as it stands."""

from __future__ import annotations

from seqloom.core.rows import Json
from seqloom.export.source import Source

_STEPS = """```python
import numpy as np
from onnxruntime import InferenceSession
from tokenizers import Tokenizer

tokenizer = Tokenizer.from_file("FOLDER/tokenizer.json")
step, start = InferenceSession("FOLDER/step.onnx"), np.load("FOLDER/start.npz")
state = {name: start[name] for name in start.files}  # of one row; np.repeat(..., rows, axis=0) for more
given, made = [[one.name for one in some] for some in (step.get_inputs(), step.get_outputs())]

ids = tokenizer.encode("the cat", add_special_tokens=False).ids
for position in range(len(ids) + 20):
    inputs = {"inputs": np.array([[ids[position]]]), **state}
    logits, *parts = step.run(None, {name: inputs[name] for name in given})
    state |= {name.removeprefix("next."): part for name, part in zip(made[1:], parts)}
    if position == len(ids) - 1:
        ids.append(int(logits[0, -1].argmax()))
print(tokenizer.decode(ids))
```"""
_LOOP = """```python
import numpy as np
from onnxruntime import InferenceSession

step, start = InferenceSession("FOLDER/step.onnx"), np.load("FOLDER/start.npz")
state = {name: start[name] for name in start.files}  # of one row; np.repeat(..., rows, axis=0) for more
given, made = [[one.name for one in some] for some in (step.get_inputs(), step.get_outputs())]

for inputs in np.zeros((5, 1, 1, SIZE)):  # five positions: put yours here
    every = {"inputs": inputs.astype("TYPE"), **state}
    outputs, *parts = step.run(None, {name: every[name] for name in given})
    state |= {name.removeprefix("next."): part for name, part in zip(made[1:], parts)}
print(outputs.shape)
```"""
_SIDES = """```python
import numpy as np
from onnxruntime import InferenceSession

source, step = InferenceSession("FOLDER/source.onnx"), InferenceSession("FOLDER/step.onnx")
read = np.zeros((1, 7SIZES), "TYPE")  # a source of seven positions: put yours here
inputs = {"inputs": read, "mask": np.ones((1, 7), bool)}
parts = source.run(None, {one.name: inputs[one.name] for one in source.get_inputs()})
state = {one.name: part for one, part in zip(source.get_outputs(), parts)}
given, made = [[one.name for one in some] for some in (step.get_inputs(), step.get_outputs())]

token = np.FIRST  # what a target begins with
for _ in range(5):
    every = {"inputs": token, **state}
    outputs, *parts = step.run(None, {name: every[name] for name in given})
    state |= {name.removeprefix("next."): part for name, part in zip(made[1:], parts)}
    token = NEXT
print(outputs.shape)
```"""
_WHOLE = """```python
import numpy as np
from onnxruntime import InferenceSession

graph = InferenceSession("FOLDER/model.onnx")
every = {"inputs": np.zeros((2, 7SIZES), "TYPE"), "mask": np.ones((2, 7), bool)}  # put yours here
print(graph.run(None, {one.name: every[one.name] for one in graph.get_inputs()})[0].shape)
```"""
_CRF = """`crf.npz` has the scores of tags that follow each other (`moves`, from and to), that begin (`first`) or end
(`last`) a sentence: the graph gives the scores of each tag alone, and the best path is found by the Viterbi algorithm
over the first tokens of words."""


def usage(source: Source, facts: Json) -> str:
    graphs: Json = facts["graphs"]
    parts = [f"`{name}`\n\n{_table(graph)}" for name, graph in graphs.items()]
    parts.append(_code(source, graphs))
    if "crf" in facts:
        parts.append(_CRF)
    if labels := getattr(source.task, "labels", None) or getattr(source.task, "tags", None):
        parts.append(
            f"Outputs are in this order: {', '.join(map(str, labels[:50]))}{' ...' if len(labels) > 50 else ''}."
        )
    return "\n\n".join(parts)


def _table(graph: Json) -> str:
    rows = ["| | name | type | shape |", "|---|---|---|---|"]
    for side in ("inputs", "outputs"):
        for name, about in graph[side].items():
            rows.append(f"| {side[:-1]} | `{name}` | {about['type']} | {' x '.join(map(str, about['shape']))} |")
    return "\n".join(rows)


def _code(source: Source, graphs: Json) -> str:
    first: Json = next(iter(graphs.values()))["inputs"].get("inputs", {"shape": ["batch", 1], "type": "int64"})
    kind, sizes = first["type"], first["shape"][2:]
    shown = "".join(f", {size if isinstance(size, int) else 9}" for size in sizes)
    if "model.onnx" in graphs:
        return _WHOLE.replace("SIZES", shown).replace("TYPE", kind)
    if "source.onnx" in graphs:
        return _two_sided(source, graphs).replace("SIZES", shown).replace("TYPE", kind)
    if source.task.name == "language_model" and source.tokenizer is not None:
        return _STEPS
    return _LOOP.replace(", SIZE", shown).replace("TYPE", kind)


def _two_sided(source: Source, graphs: Json) -> str:
    given = graphs["step.onnx"]["inputs"]["inputs"]
    pair = getattr(source.task, "tokenizers", None)
    if pair is None:
        shape = ", ".join(map(str, [1, 1, *given["shape"][2:]]))
        return _SIDES.replace("FIRST", f'zeros(({shape}), "{given["type"]}")').replace(
            "NEXT", "token  # put yours here"
        )
    code = _SIDES.replace("FIRST", f"array([[{pair.target.bos}]])")
    return code.replace("NEXT", "outputs[:, -1:].argmax(-1)")
