"""Instances of small models, for the tests of what one sees inside them: every model in all of its variants."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from toys import VOCABULARY, Case, accepted, alive, every_case, network, tokens, translator

from seqloom.core.instance import Instance, Output, repeat
from seqloom.core.network import Network, SequenceModel
from seqloom.runs.registry import find_config

LENGTH, SOURCE = 7, 4


def encoder(name: str, options: dict[str, Any]) -> Network:
    """A small model that sees a whole text, with an output at every position."""
    backbone = find_config("models", name).model_validate({"width": 16, **options}).build()
    return alive(Network(nn.Embedding(VOCABULARY, backbone.inputs or 16), backbone, nn.Linear(16, VOCABULARY)))


def language(seed: int = 0, length: int = LENGTH, given: bool = False, beginning: int = 0) -> Instance:
    """A text and the next token after each of its tokens. `beginning`: how many tokens at the start are others."""
    ids = tokens(1, length + 1, seed=seed)
    ids[:, :beginning] = (ids[:, :beginning] + 1) % VOCABULARY

    def read(model: SequenceModel, copies: int) -> Tensor:
        logits: Tensor = model(repeat(ids[:, :-1], copies))[0]
        return logits.log_softmax(-1)

    return _instance("language_model", ids[0, :-1], ids[0, 1:], read, given=given)


def sight(seed: int = 0, length: int = LENGTH) -> Instance:
    """A text and a class for each of its tokens, which the model sees all at once."""
    ids = tokens(1, length, seed=seed)

    def read(model: SequenceModel, copies: int) -> Tensor:
        return model.encode(repeat(ids, copies)).log_softmax(-1)

    return _instance("tagging", ids[0], ids[0], read)


def pair(seed: int = 0, source: int = SOURCE) -> Instance:
    """A source and its target."""
    ids = tokens(1, source + LENGTH + 1, seed=seed)
    context, written = ids[:, :source], ids[:, source:]

    def read(model: SequenceModel, copies: int) -> Tensor:
        state = model.begin(repeat(context, copies))
        logits: Tensor = model(repeat(written[:, :-1], copies), state)[0]
        return logits.log_softmax(-1)

    parts = (("source", source), ("target", LENGTH))
    return _instance("translation", ids[0, :-1], written[0, 1:], read, first=source, parts=parts)


def _instance(
    task: str, inputs: Tensor, chosen: Tensor, read: Any, first: int = 0, parts: Any = (), given: bool = False
) -> Instance:
    outputs = tuple(Output(str(id), id, given, at) for at, id in enumerate(chosen.tolist(), first))
    return Instance(task, tuple(map(str, inputs.tolist())), outputs, read, str, parts=parts, kinds=int)


def looks(case: Case, build: Any) -> bool:
    """Whether a task accepts a model, and it is one to look into."""
    return accepted(build, *case) and isinstance(build(*case), Network)


_WRITTEN = [case for case in every_case() if looks(case, network)]
_PAIRS = [case for case in every_case() if looks(case, translator) and case not in _WRITTEN]
_SEEN = [
    case
    for case in every_case()
    if case[0] in ("bert", "gru", "lstm", "rnn", "pretrained") and case not in _WRITTEN and case not in _PAIRS
]
EVERY = [(build, look, case) for build, look, cases in (
    (network, language, _WRITTEN), (translator, pair, _PAIRS), (encoder, sight, _SEEN)
) for case in cases]  # fmt: skip
