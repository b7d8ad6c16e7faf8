"""A text and the next token after each of its tokens, for `explain`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from seqloom.core.errors import UserError
from seqloom.core.instance import Instance, Output, marked, repeat, token_of
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Row


def instance(model: SequenceModel, row: Row, tokenizer: Any, target: str | None = None) -> Instance:
    """Every next token of the text, and the one after it: `target`, or what the model predicts."""
    ids = [*tokenizer.opening, *tokenizer.encode(row["source"]).tolist()]
    if not ids:
        raise UserError("--text: empty; there is nothing to explain")
    most = model.reach or model.limit
    if most is not None and len(ids) > most:
        raise UserError(f"--text has {len(ids):,} tokens, more than the {most:,} that the model reads; shorten it")
    inputs = torch.tensor([ids], device=model.device)

    def read(model: SequenceModel, copies: int) -> Tensor:
        logits: Tensor = model(repeat(inputs, copies))[0]
        return logits.float().log_softmax(-1)

    with torch.no_grad():
        last = int(read(model, 1)[0, -1].argmax())
    if target is not None:
        last = token_of(tokenizer, target)
    outputs = [Output(tokenizer.name(id), id, True, at) for at, id in enumerate(ids[1:])]
    outputs.append(Output(tokenizer.name(last), last, target is not None, len(ids) - 1))
    names = tuple(tokenizer.name(id) for id in ids)

    def kinds(text: str) -> int:
        return token_of(tokenizer, text)

    marks, special = marked(ids, tokenizer), tokenizer.specials
    name = tokenizer.name
    return Instance("language_model", names, tuple(outputs), read, name, kinds=kinds, marks=marks, special=special)
