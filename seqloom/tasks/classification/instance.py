"""A row and its labels, for `explain`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from seqloom.core.errors import UserError, unknown
from seqloom.core.instance import Instance, Output, marked, repeat
from seqloom.core.network import SequenceModel


def instance(
    model: SequenceModel,
    sequence: np.ndarray,
    tokenizer: Any,
    target: str | None,
    *,
    labels: Sequence[str],
    multi: bool,
    whole: int = 0,
) -> Instance:
    """`target`: the label to explain; default: the predicted one, or all of several. Where a row may have several
    labels, each is an output with the classes no and yes. `whole`: how long the input was before it was cut."""
    inputs = torch.as_tensor(sequence, device=model.device)[None]
    if not inputs.size(1):
        raise UserError("--text: empty; there is nothing to explain")
    real = torch.ones(inputs.shape[:2], dtype=torch.bool, device=model.device)

    def read(model: SequenceModel, copies: int) -> Tensor:
        logits = model.encode(repeat(inputs, copies), repeat(real, copies)).float()
        if multi:
            return torch.stack((F.logsigmoid(-logits), F.logsigmoid(logits)), dim=-1)
        return logits.log_softmax(-1)[:, None]

    def kinds(text: str) -> int:
        if text not in labels:
            raise unknown("label", text, labels)
        return list(labels).index(text)

    marks, special = frozenset[int](), frozenset[int]()
    if sequence.ndim == 1:
        marks, special = marked(sequence.tolist(), tokenizer), tokenizer.specials
    shown, most = names(sequence, tokenizer), len(sequence)
    cut = f"the input has {whole:,} positions, more than the {most:,} that the model reads: the rest was cut off"
    notes = (cut,) if whole > most else ()
    with torch.no_grad():
        found = read(model, 1)[0]
    if multi:
        wanted = range(len(labels)) if target is None else [kinds(target)]
        outputs = tuple(Output(labels[n], 1, target is not None) for n in wanted)
        pick = list(wanted)
        some = lambda model, copies: read(model, copies)[:, pick]  # noqa: E731
        yes = ("no", "yes").__getitem__
        return Instance("classification", shown, outputs, some, yes, notes=notes, marks=marks, special=special)
    chosen = int(found[0].argmax()) if target is None else kinds(target)
    outputs = (Output(labels[chosen], chosen, target is not None),)
    name = labels.__getitem__
    return Instance(
        "classification", shown, outputs, read, name, kinds=kinds, notes=notes, marks=marks, special=special
    )


def names(sequence: np.ndarray, tokenizer: Any) -> tuple[str, ...]:
    """Tokens, or the numbers of the steps of a measurement."""
    if sequence.ndim > 1:
        return tuple(str(n) for n in range(1, len(sequence) + 1))
    return tuple(tokenizer.name(int(id)) for id in sequence)
