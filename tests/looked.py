"""Instances of small models, for the tests of what one sees inside them: every model in all of its variants."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from toys import VOCABULARY, Case, accepted, alive, every_case, network, tokens, translator

from seqloom.core.instance import Instance, Output, repeat
from seqloom.core.network import Network, SequenceModel
from seqloom.runs.registry import find_config

LENGTH = 7
_SOURCE = 4


def encoder(name: str, options: dict[str, object]) -> Network:
    """A small model that sees a whole text, with an output at every position."""
    backbone = find_config("models", name).model_validate({"width": 16, **options}).build()
    embed, head = nn.Embedding(VOCABULARY, backbone.inputs or 16), nn.Linear(16, VOCABULARY)
    return alive(Network(embed, backbone, head))


def _reads(case: Case) -> bool:
    """Whether a model reads embeddings: others count, compare texts or repeat values."""
    return find_config("models", case[0]).descends and case[0] not in ("bag", "tfidf", "patch")


def language(seed: int = 0, length: int = LENGTH) -> Instance:
    """A text and the next token after each of its tokens."""
    ids = tokens(1, length + 1, seed=seed)

    def read(model: SequenceModel, copies: int) -> Tensor:
        logits: Tensor = model(repeat(ids[:, :-1], copies))[0]
        return logits.log_softmax(-1)

    return _instance("language_model", ids[0, :-1], ids[0, 1:], read, 0)


def sight(seed: int = 0, length: int = LENGTH) -> Instance:
    """A text and a class for each of its tokens, which the model sees all at once."""
    ids = tokens(1, length, seed=seed)

    def read(model: SequenceModel, copies: int) -> Tensor:
        return model.encode(repeat(ids, copies)).log_softmax(-1)

    return _instance("tagging", ids[0], ids[0], read, 0)


def pair(seed: int = 0, source: int = _SOURCE) -> Instance:
    """A source and its target."""
    ids = tokens(1, source + LENGTH + 1, seed=seed)
    context, written = ids[:, :source], ids[:, source:]

    def read(model: SequenceModel, copies: int) -> Tensor:
        state = model.begin(repeat(context, copies))
        logits: Tensor = model(repeat(written[:, :-1], copies), state)[0]
        return logits.log_softmax(-1)

    parts = (("source", source), ("target", LENGTH))
    return _instance("translation", ids[0, :-1], written[0, 1:], read, source, parts)


def _instance(task: str, inputs: Tensor, chosen: Tensor, read: object, first: int, parts: object = ()) -> Instance:
    outputs = tuple(Output(str(id), id, False, at) for at, id in enumerate(chosen.tolist(), first))
    return Instance(task, tuple(map(str, inputs.tolist())), outputs, read, str, parts=parts, kinds=int)  # type: ignore[arg-type]
