"""Instance: one input of a model and the predictions made from it, which is all that the views of `explain` look at.

P input positions, in the order in which the embedding reads them; O outputs; C classes of each output (1: a number).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel

Read = Callable[[SequenceModel, int], Tensor]  # model and number of copies of the input -> (copies, O, C)


@dataclass(frozen=True)
class Output:
    """One prediction. `at`: the input position that it is made at; None: from the whole input."""

    label: str  # of its class, as shown
    chosen: int  # the class that is explained
    given: bool  # whether that class is the truth or a text of the user; else it is what the model predicts
    at: int | None = None


@dataclass(frozen=True)
class Instance:
    task: str
    inputs: tuple[str, ...]  # P tokens or times, as shown
    outputs: tuple[Output, ...]
    read: Read
    name: Callable[[int], str]  # of a class
    unit: Literal["log-probability", "logit", "value"] = "log-probability"
    parts: tuple[tuple[str, int], ...] = ()  # what the inputs are, such as source and target, with their lengths
    kinds: Callable[[str], int] | None = None  # the class of a name that a user gives; None: classes have no names
    notes: tuple[str, ...] = ()  # such as that the text was cut
    marks: frozenset[int] = frozenset()  # positions of special tokens, such as where a source ends: not its content
    special: frozenset[int] = frozenset()  # ids of special tokens, as the embedding reads them

    @property
    def chosen(self) -> Tensor:
        return torch.tensor([output.chosen for output in self.outputs])

    def scores(self, model: SequenceModel, copies: int = 1, against: Tensor | None = None) -> Tensor:
        """(copies, O): the score of each output's chosen class; minus that of another one, if given (contrast)."""
        found = self.read(model, copies)
        chosen = self.chosen.to(found.device).expand(copies, -1)[..., None]
        scores = found.gather(-1, chosen)[..., 0]
        if against is None:
            return scores
        return scores - found.gather(-1, against.to(found.device).expand(copies, -1)[..., None])[..., 0]


def marked(ids: Iterable[int], tokenizer: Any, *others: int) -> frozenset[int]:
    """Positions of special tokens; an unknown token stands for content."""
    special = (tokenizer.specials | set(others)) - {tokenizer.unk}
    return frozenset(at for at, id in enumerate(ids) if id in special)


def token_of(tokenizer: Any, text: str) -> int:
    """The token that a user names."""
    ids = tokenizer.encode(text).tolist()
    if not ids or tokenizer.unk in ids:
        raise UserError(f"{text!r}: the model's vocabulary has no such token; choose another")
    if len(ids) > 1:
        pieces = ", ".join(repr(tokenizer.name(id)) for id in ids[:4]) + (", ..." if len(ids) > 4 else "")
        raise UserError(f"{text!r}: {len(ids)} tokens of this model ({pieces}); give a single one")
    return int(ids[0])


def repeat(x: Tensor, copies: int) -> Tensor:
    """(1, ...) -> (copies, ...), without copying."""
    return x.expand(copies, *x.shape[1:])
