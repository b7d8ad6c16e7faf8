"""A text with gaps and the tokens that fill them, for `explain`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from seqloom.core.errors import UserError
from seqloom.core.instance import Instance, Output, marked, repeat, token_of
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Row


def instance(
    model: SequenceModel, row: Row, tokenizer: Any, target: str | None, *, gap: str, mask: int, most: int
) -> Instance:
    """`target`: the token of every gap; default: what the model predicts. `mask`: the id of a gap."""
    if gap not in row["source"]:
        raise UserError(f"{row['source'][:40]!r}: no gap; write {gap} in place of the token to explain")
    first, *others = [tokenizer.encode(piece).tolist() for piece in row["source"].split(gap)]
    ids = [tokenizer.bos, *first]
    for piece in others:
        ids += [mask, *piece]
    if len(ids) > most:
        raise UserError(f"--text has {len(ids):,} tokens, more than the {most:,} that the model reads; shorten it")
    inputs = torch.tensor([ids], device=model.device)
    gaps = [at for at, id in enumerate(ids) if id == mask]
    ordinary = [id for id in range(tokenizer.size) if id not in tokenizer.specials]

    def read(model: SequenceModel, copies: int) -> Tensor:
        hidden = model.represent(repeat(inputs, copies))[:, gaps]
        return model.answer(hidden).float()[..., : tokenizer.size].log_softmax(-1)

    def kinds(text: str) -> int:
        return token_of(tokenizer, text)

    with torch.no_grad():
        likely = [ordinary[n] for n in read(model, 1)[0][:, ordinary].argmax(-1).tolist()]
    chosen = likely if target is None else [kinds(target)] * len(gaps)
    outputs = tuple(Output(tokenizer.name(id), id, target is not None, at) for at, id in zip(gaps, chosen, strict=True))
    names = tuple(gap if id == mask else tokenizer.name(id) for id in ids)
    marks, special = marked(ids, tokenizer, mask), tokenizer.specials | {mask}
    return Instance("masked_lm", names, outputs, read, tokenizer.name, kinds=kinds, marks=marks, special=special)
