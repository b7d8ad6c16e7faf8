"""A source and the tokens of its target, for `explain`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from seqloom.core.instance import Instance, Output, marked, repeat, token_of
from seqloom.core.network import SequenceModel


def instance(
    model: SequenceModel, source: Sequence[int], written: Sequence[int], tokenizers: Any, *, given: bool, cut: bool
) -> Instance:
    """`source`: ids as the model reads them; `written`: the target without its end."""
    own, target = tokenizers.source, tokenizers.target
    context = torch.tensor([list(source)], device=model.device)
    inputs = torch.tensor([[target.bos, *written]], device=model.device)

    def read(model: SequenceModel, copies: int) -> Tensor:
        state = model.begin(repeat(context, copies))
        logits: Tensor = model(repeat(inputs, copies), state)[0]
        return logits.float().log_softmax(-1)

    def kinds(text: str) -> int:
        return token_of(target, text)

    first = len(source)
    outputs = tuple(Output(target.name(id), id, given, first + n) for n, id in enumerate([*written, target.eos]))
    read_ids = [int(id) - tokenizers.shift for id in source]
    names = [own.name(id) for id in read_ids]
    names += [target.name(id) for id in (target.bos, *written)]
    notes = ("the source is too long for the model: its end was cut off",) if cut else ()
    parts = (("source", first), ("target", len(written) + 1))
    marks = marked(read_ids, own) | {first}
    special = target.specials | {id + tokenizers.shift for id in own.specials}
    return Instance(
        "translation", tuple(names), outputs, read, target.name, parts=parts, kinds=kinds, notes=notes, marks=marks,
        special=special,
    )  # fmt: skip
