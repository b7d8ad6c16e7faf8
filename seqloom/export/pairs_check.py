"""Sources with targets on which an exported encoder-decoder is compared with ours: logits, and greedy outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from seqloom.core.batch import IGNORE, pad
from seqloom.core.errors import RunError
from seqloom.core.rows import Json
from seqloom.decode.decoding import Decoding, decode
from seqloom.export.source import Source
from seqloom.export.target import BAR

_ROWS = 32  # compared, at most
_MOST = 32  # tokens written

Ids = list[int]


class Examples(NamedTuple):
    """As the tokenizers of the two sides number tokens; sources with their end, targets without."""

    sources: list[Ids]
    targets: list[Ids]
    begin: int
    end: int
    shift: int

    @property
    def context(self) -> tuple[Tensor, Tensor]:
        """As an exported model reads it, with its mask."""
        return pad([np.array(ids) for ids in self.sources])

    @property
    def inputs(self) -> Tensor:
        return pad([np.array([self.begin, *ids]) for ids in self.targets])[0]

    @property
    def labels(self) -> tuple[Tensor, Tensor]:
        return pad([np.array([*ids, self.end]) for ids in self.targets])


def examples(source: Source) -> Examples:
    pair, batch = source.run.tokenizer, source.samples.batch
    assert batch.context is not None and batch.targets is not None
    real = torch.ones_like(batch.context, dtype=torch.bool) if batch.context_mask is None else batch.context_mask
    sources = [(row[mask] - pair.shift).tolist() for row, mask in zip(batch.context, real, strict=True)]
    targets = [[id for id in row.tolist() if id not in (IGNORE, pair.target.eos)] for row in batch.targets]
    return Examples(sources[:_ROWS], targets[:_ROWS], pair.target.bos, pair.target.eos, pair.shift)


@torch.no_grad()
def our_logits(source: Source, given: Examples) -> Tensor:
    found: Tensor = source.model(given.inputs, _begin(source, given))[0]
    return found


def our_outputs(source: Source, given: Examples, places: int) -> list[Ids]:
    """What greedy search writes; `places`: the positions that the exported model has."""
    last = torch.full((len(given.sources),), given.begin)
    with torch.inference_mode():
        state = _begin(source, given)
        found = decode(source.model, state, last, Decoding(), max_new=most_new(places), end=given.end)
    return [hypotheses[0].tokens if hypotheses else [] for hypotheses in found]


def most_new(places: int) -> int:
    return min(_MOST, max(1, places - 1))


def _begin(source: Source, given: Examples) -> Any:
    context, mask = given.context
    return source.model.begin(context + given.shift, None if bool(mask.all()) else mask)


def compare_outputs(source: Source, given: Examples, ours: list[Ids], theirs: Sequence[Ids], strict: bool) -> Json:
    """How many outputs are equal; if `strict`, others may differ only where two tokens are equally likely."""
    equal = 0
    for n, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        equal += one == other
        if strict and one != other and not _tied(source, given, n, one, other):
            raise RunError(
                f"the export does not agree with the run: greedy search writes {other[:12]} instead of {one[:12]}; "
                "nothing was written"
            )
    return {"equal": equal, "sources": len(ours)}


def _tied(source: Source, given: Examples, n: int, one: Ids, other: Ids) -> bool:
    """Whether the first tokens that differ have the same logit, up to rounding."""
    left, right = [*one, given.end], [*other, given.end]
    at = next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), None)
    if at is None:
        return False
    row = given._replace(sources=[given.sources[n]], targets=[left[:at]])
    logits = our_logits(source, row)[0, at]
    return abs(float(logits[left[at]] - logits[right[at]])) <= BAR
