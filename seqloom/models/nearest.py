"""Nearest neighbour: the target of the training pair whose source is the most similar.

Similarity is the cosine of TF-IDF vectors of character n-grams: translation by memory, nothing is composed. The
characters are those of the source's tokens, so that inflected forms are similar, however the text is split.

    p(w) = trust * [w is next in the target found] + (1 - trust) * p_cache(w)
    p_cache(w) = (M * frequency(w) + c(w)) / (M + tokens read),    c: counts in the source and in the output so far

The cache (Kuhn & De Mori 1990) gives every other token a probability; a source token counts if both sides share a
vocabulary.

state = (number of the pair found (B,), output tokens read (B,), counts of the tokens read (B, V))
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.core.backbone import Backbone, Kind
from seqloom.core.batch import IGNORE, Batch
from seqloom.core.errors import UserError
from seqloom.core.model import ModelConfig
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json
from seqloom.core.state import State
from seqloom.core.task import AnyTask
from seqloom.layers.identity import Identity
from seqloom.layers.neighbours import Neighbours
from seqloom.layers.ngrams import Growing, TfIdf

LONGEST = 24  # characters of a token that count
PRIOR = 20.0  # M: tokens that the frequencies of the training targets count as


class Config(ModelConfig):
    order: int = Field(3, ge=1, le=6, description="characters per n-gram by which sources are compared")
    pairs: int = Field(
        200_000, ge=1, le=10**8, description="most training pairs that are remembered, from the first on"
    )
    trust: float = Field(0.9, ge=0.5, lt=1, description="probability of the next token of the target that was found")
    width: int = Field(128, ge=1, description="unused: there are no hidden vectors")
    dropout: float = Field(0.0, ge=0, lt=1, description="unused: training is storing")
    tie: bool = Field(False, description="unused: there are no embeddings")

    variants: ClassVar[tuple[Json, ...]] = ({}, {"order": 1})

    def build(self) -> Backbone:
        return Identity(self.width, NearestPair.kind)

    def assemble(self, task: AnyTask) -> NearestPair:
        task.check_kind(NearestPair.kind)
        if not isinstance(task, PairedTask):
            raise UserError(f"model nearest: remembers pairs of texts, which {task.name} has not; use another model")
        return NearestPair(Spelling(task.spellings()), task.vocabulary, self.order, self.pairs, self.trust)


@runtime_checkable
class PairedTask(Protocol):
    """What this model requires of a task: a source to read before the target, and every training pair once."""

    vocabulary: int  # of targets; source ids are the same, or follow those

    def spellings(self) -> Sequence[str]:
        """The text of each source id, with the space before it; empty: a special token."""

    def examples(self, rows: Any) -> Iterator[Batch]: ...


class Spelling(nn.Module):
    """From token ids to the ids of their characters in lower case, with a space at both ends."""

    letters: Tensor

    def __init__(self, spellings: Sequence[str]) -> None:
        super().__init__()
        lower = [text.lower()[:LONGEST] for text in spellings]
        alphabet = {letter: n for n, letter in enumerate(sorted({" ", *"".join(lower)}), 1)}
        self.size, self.space = len(alphabet) + 1, alphabet[" "]
        rows, longest = [[alphabet[letter] for letter in text] for text in lower], max(1, *map(len, lower))
        padded = [row + [0] * (longest - len(row)) for row in rows]
        self.register_buffer("letters", torch.tensor(padded, dtype=torch.int32), persistent=False)

    def forward(self, ids: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """(B, S) tokens -> (B, C) characters and their mask."""
        letters = self.letters[ids].to(torch.int64)
        letters = (letters if mask is None else letters * mask[..., None]).flatten(1)
        letters = F.pad(letters, (1, 1), value=self.space)
        order = (letters == 0).byte().argsort(dim=1, stable=True)  # what is no character goes to the end
        letters = letters.gather(1, order)
        letters = letters[:, : int((letters != 0).sum(1).amax())] if len(letters) else letters
        return letters, letters != 0


class NearestPair(Growing, SequenceModel):
    """Target n has the tokens from `bounds[n]` to `bounds[n + 1]`, the last of which is the end token."""

    kind: Kind = "encoder-decoder"
    limit: int | None = None
    descends = False
    grows = True
    bounds: Tensor
    targets: Tensor
    frequencies: Tensor

    def __init__(self, spelling: Spelling, vocabulary: int, order: int, pairs: int, trust: float) -> None:
        super().__init__()
        self.spelling, self.sources = spelling, Neighbours(TfIdf(spelling.size, order, order))
        self.vocabulary, self.pairs, self.trust = vocabulary, pairs, trust
        zipf = 1 / torch.arange(1.0, vocabulary + 1)  # before training: small ids are the frequent ones
        self.register_buffer("frequencies", zipf / zipf.sum())
        self.register_buffer("bounds", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("targets", torch.zeros(0, dtype=torch.int32))

    def begin(self, context: Tensor, mask: Tensor | None = None) -> State:
        pair = self.sources(*self.spelling(context, mask)) if len(self.sources) else context.new_zeros(len(context))
        shared = context < self.vocabulary
        real = (shared if mask is None else shared & mask).to(self.frequencies.dtype)
        counts = self.frequencies.new_zeros(len(context), self.vocabulary)
        return pair, torch.zeros_like(pair), counts.scatter_add_(1, context.clamp(max=self.vocabulary - 1), real)

    def forward(self, inputs: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        """Log-probabilities of the next token, (B, T) -> (B, T, V)."""
        before: Any = self.begin(inputs[:, :0], None if mask is None else mask[:, :0]) if state is None else state
        pair, read, counts = before
        real = torch.ones_like(inputs, dtype=torch.bool) if mask is None else mask
        seen = self.frequencies.new_zeros(*inputs.shape, self.vocabulary)
        seen.scatter_(2, inputs[..., None], real[..., None].to(seen.dtype))
        seen = seen.cumsum_(1).add_(counts[:, None])  # (B, T, V); whole numbers, so in pieces as in whole
        end = seen[:, -1].clone() if inputs.size(1) else counts
        steps = read[:, None] + real.cumsum(1)  # (B, T)
        total = counts.sum(1, keepdim=True) + real.cumsum(1)
        chances = seen.add_(PRIOR * self.frequencies).div_(PRIOR + total[..., None])
        if len(self.sources):
            following = self._next(pair, steps)[..., None]
            chances.mul_(1 - self.trust).scatter_add_(2, following, torch.full_like(chances[..., :1], self.trust))
        return chances.log_(), (pair, read + real.sum(1), end)

    def encode(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        return self(inputs, None, mask)[0]

    def learn(self, task: object, rows: object) -> int:
        assert isinstance(task, PairedTask)
        sources: list[tuple[Tensor, Tensor]] = []
        targets: list[Tensor] = []
        for batch in task.examples(rows):
            assert batch.context is not None
            room = self.pairs - len(targets)
            real = batch.context_mask
            sources.append(self.spelling(batch.context[:room], None if real is None else real[:room]))
            targets.extend(row[row != IGNORE] for row in batch.targets[:room])
            if len(targets) >= self.pairs:
                break
        self.sources.learn(sources)
        lengths = torch.tensor([0, *map(len, targets)])
        self.set("bounds", lengths.cumsum(0))
        self.set("targets", torch.cat(targets))
        counts = torch.bincount(self.targets, minlength=self.vocabulary) + 1.0
        self.set("frequencies", counts / counts.sum())
        return len(self.targets)

    def _next(self, pair: Tensor, steps: Tensor) -> Tensor:
        """The token that follows in the target found, after `steps` tokens were read; at its end, the end token."""
        last = self.bounds[1:][pair] - 1
        place = torch.minimum(self.bounds[pair][:, None] + (steps - 1).clamp(min=0), last[:, None])
        return self.targets[place].to(torch.int64)
