"""A sentence and the tag of each of its words, for `explain`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from seqloom.core.batch import IGNORE, Batch
from seqloom.core.errors import UserError, unknown
from seqloom.core.instance import Instance, Output, marked, repeat
from seqloom.core.network import SequenceModel


def instance(
    model: SequenceModel,
    batch: Batch,
    words: Sequence[str],
    vocabulary: Any,
    target: str | None,
    *,
    tags: Sequence[str],
) -> Instance:
    """`target`: the tag to explain for every word; default: the most likely one. Scores are those of each word by
    itself, also with a CRF: transitions between tags do not depend on the input."""
    inputs = batch.inputs.to(model.device)
    places = (batch.targets[0] != IGNORE).nonzero()[:, 0].tolist()
    if not places:
        raise UserError("--text: no words; there is nothing to explain")

    def read(model: SequenceModel, copies: int) -> Tensor:
        scores = model.encode(repeat(inputs, copies)).float()
        return scores[:, places].log_softmax(-1)

    def kinds(text: str) -> int:
        if text not in tags:
            raise unknown("tag", text, tags)
        return list(tags).index(text)

    with torch.no_grad():
        likely = read(model, 1)[0].argmax(-1).tolist()
    chosen = likely if target is None else [kinds(target)] * len(places)
    outputs = tuple(
        Output(f"{word}: {tags[id]}", id, target is not None, at)
        for word, id, at in zip(words, chosen, places, strict=True)
    )
    ids = inputs[0, :, 0] if inputs.dim() == 3 else inputs[0]  # of words with their characters
    names = [vocabulary.tokenizer.name(id) for id in ids.tolist()]
    marks, special = marked(ids.tolist(), vocabulary.tokenizer), vocabulary.tokenizer.specials
    name = tags.__getitem__
    return Instance("tagging", tuple(names), outputs, read, name, kinds=kinds, marks=marks, special=special)
