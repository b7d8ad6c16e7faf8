"""A question with its passage, and the first and last token of the answer, for `explain`."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from seqloom.core.instance import Instance, Output, marked, repeat
from seqloom.core.network import SequenceModel


def instance(
    model: SequenceModel,
    inputs: Tensor,
    allowed: Tensor,
    span: tuple[int, int],
    tokenizer: Any,
    *,
    given: bool,
    cut: bool,
) -> Instance:
    """`inputs` (1, T): one window; `allowed` (T,): where an answer may be; `span`: its first and last position."""
    inputs, barred = inputs.to(model.device), ~allowed.to(model.device)
    names = tuple(tokenizer.name(id) for id in inputs[0].tolist())

    def read(model: SequenceModel, copies: int) -> Tensor:
        scores = model.encode(repeat(inputs, copies)).float().transpose(1, 2)  # (copies, 2, T)
        return scores.masked_fill(barred, -math.inf).log_softmax(-1)

    outputs = tuple(
        Output(f"{title}: {names[at]}", at, given, at) for title, at in zip(("first", "last"), span, strict=True)
    )
    marks = marked(inputs[0].tolist(), tokenizer)
    notes = ("the passage is longer than the model reads: only the window with the answer is shown",) if cut else ()
    name, special = names.__getitem__, tokenizer.specials
    return Instance("question_answering", names, outputs, read, name, notes=notes, marks=marks, special=special)
