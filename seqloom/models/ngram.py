"""N-gram with interpolated modified Kneser-Ney smoothing (Chen & Goodman 1999, section 3), trained by counting.

state = the last order-1 tokens (B, order-1), -1 before the beginning

    p(w | h) = share(h, w) + backoff(h) * p(w | h without its oldest token),    share(h, w) = (c(h, w) - D(c)) / c(h)

The longest histories use occurrence counts, all shorter ones counts of distinct predecessors; the empty history backs
off to 1/V. The counts form a trie: the id of an n-gram is its index among the sorted keys
`id of its first n-1 tokens * V + last token`, so the continuations of a history are adjacent.
Sizes: B rows, T tokens, V vocabulary, M = B * T histories.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from seqloom.core.backbone import Kind
from seqloom.core.errors import UserError
from seqloom.core.memory import require
from seqloom.core.model import ModelConfig
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json
from seqloom.core.state import State, keep_last
from seqloom.core.task import AnyTask

END = torch.iinfo(torch.int64).max  # sentinel after the sorted keys: a search stays in bounds and never matches it
PIECE = 1 << 20  # training tokens read at once
CHUNK = 1 << 20  # predictions (histories x vocabulary) computed at once; bounds temporary memory

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Config(ModelConfig):
    order: int = Field(5, ge=1, description="n-gram order; 2 is a bigram, conditioned on one token")
    width: int = Field(128, ge=1, description="unused: an n-gram has no hidden vectors")
    dropout: float = Field(0.0, ge=0, lt=1, description="unused: training is counting")
    tie: bool = Field(False, description="unused: an n-gram has no embeddings")

    variants: ClassVar[tuple[Json, ...]] = ({}, {"order": 1}, {"order": 2})

    def assemble(self, task: AnyTask) -> NGram:
        task.check_kind(NGram.kind)
        if not isinstance(task, CountedTask):
            raise UserError(
                f"model ngram: counts the tokens of running text, which {task.name} does not have; use another model"
            )
        return NGram(task.vocabulary, self.order, task.binned)


class Binned(Protocol):
    """Maps numbers to tokens, and gives the shape of one prediction."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def tokens(self, values: Tensor) -> Tensor: ...


@runtime_checkable
class CountedTask(Protocol):
    """What an n-gram requires of a task: a vocabulary, and the training data as one stream of tokens."""

    vocabulary: int
    binned: Binned | None  # for tasks whose inputs are numbers

    def stream(self, rows: Any) -> Stream: ...


class Stream(Protocol):
    def __len__(self) -> int: ...
    def __getitem__(self, piece: slice) -> Ints: ...


class NGram(SequenceModel):
    kind: Kind = "causal"
    limit: int | None = None
    descends = False
    grows = True
    unigram: Tensor

    def __init__(self, vocabulary: int, order: int, binned: Binned | None = None) -> None:
        super().__init__()
        self.vocabulary, self.order, self.binned = vocabulary, order, binned
        self.register_buffer("unigram", torch.full((vocabulary,), 1 / vocabulary))
        for length in range(1, order):  # continuations of the histories of each length
            self.register_buffer(f"keys_{length}", torch.tensor([END]))
            self.register_buffer(f"shares_{length}", torch.zeros(1))
            # the last weight belongs to unseen histories, whose id is -1
            self.register_buffer(f"backoff_{length}", torch.ones(vocabulary + 1 if length == 1 else 1))

    def forward(self, inputs: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        """Log-probabilities of the next token, (B, T) -> (B, T, V)."""
        inputs = self._tokens(inputs)
        read = self._read(inputs, state)  # (B, order-1+T)
        histories = self._number(read, inputs.size(1))  # (order-1, M)
        predictions = torch.empty(inputs.numel(), self.vocabulary, device=self.unigram.device)
        rows = max(1, CHUNK // self.vocabulary)
        for part, numbers in zip(predictions.split(rows), histories.split(rows, dim=1), strict=True):
            self._predict(numbers, part)
        shape = self.binned.shape if self.binned is not None else ()
        return predictions.view(*inputs.shape, *shape, self.vocabulary), keep_last(read, self.order - 1, mask)

    def encode(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        return self(inputs, None, mask)[0]

    def follow(self, inputs: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        after = keep_last(self._read(self._tokens(inputs), state), self.order - 1, mask)
        predictions = torch.empty(inputs.size(0), self.vocabulary, device=self.unigram.device)
        self._predict(self._number(after, 1), predictions)
        shape = self.binned.shape if self.binned is not None else ()
        return predictions.view(inputs.size(0), *shape, self.vocabulary), after

    def begin(self, context: Tensor, mask: Tensor | None = None) -> Tensor:
        return keep_last(self._read(self._tokens(context), None), self.order - 1, mask)

    def learn(self, task: object, rows: object) -> int:
        assert isinstance(task, CountedTask)
        stream = task.stream(rows)
        _check_memory(len(stream), self.order, arrays=min(self.order, 2) * 4)
        self.observe(torch.from_numpy(stream[start : start + PIECE]) for start in range(0, len(stream), PIECE))
        return len(stream)

    def observe(self, pieces: Iterable[Tensor]) -> None:
        """Count the stream formed by the pieces; replaces earlier counts."""
        tokens = np.concatenate([np.zeros(0, np.int64), *(piece.to(torch.int64).numpy() for piece in pieces)])
        if tokens.size and not 0 <= tokens.min() <= tokens.max() < self.vocabulary:
            raise ValueError(f"tokens must lie between 0 and {self.vocabulary - 1}")
        keys, numbers, counts = np.arange(self.vocabulary), tokens, np.bincount(tokens, minlength=self.vocabulary)
        for length in range(1, self.order):
            _check_memory(tokens.size, self.order, arrays=4)
            longer, longer_numbers, longer_counts, first = _extend(numbers, tokens[length:], self.vocabulary)
            predecessors = np.bincount(numbers[1:][first], minlength=keys.size)
            predecessors[numbers[:1]] += 1  # the start of the stream counts as one distinct predecessor
            self._learn(length - 1, keys, predecessors)
            keys, numbers, counts = longer, longer_numbers, longer_counts
        self._learn(self.order - 1, keys, counts)

    def _learn(self, length: int, keys: Ints, counts: Ints) -> None:
        """Turn the counts of all (length+1)-grams into shares and backoff weights of histories of `length` tokens."""
        if length == 0:
            shares, backoff = _smooth(counts, np.zeros_like(keys), 1)
            self._set("unigram", shares + backoff / self.vocabulary)
            return
        known = self.vocabulary if length == 1 else getattr(self, f"keys_{length - 1}").numel() - 1
        shares, backoff = _smooth(counts, keys // self.vocabulary, known)
        self._set(f"keys_{length}", np.append(keys, END))
        self._set(f"shares_{length}", np.append(shares, 0.0))
        self._set(f"backoff_{length}", np.append(backoff, 1.0))

    def _set(self, name: str, values: NDArray[Any]) -> None:
        old = getattr(self, name)
        setattr(self, name, torch.from_numpy(values).to(old.device, old.dtype))

    def _tokens(self, inputs: Tensor) -> Tensor:
        return inputs if self.binned is None else self.binned.tokens(inputs[..., 0])

    def _read(self, inputs: Tensor, state: State) -> Tensor:
        """The remembered tokens followed by the new ones."""
        if state is None:
            state = inputs.new_full((inputs.size(0), self.order - 1), -1)
        assert isinstance(state, Tensor)
        return torch.cat([state, inputs], dim=1)

    def _number(self, read: Tensor, count: int) -> Tensor:
        """Ids of the histories of length 1, 2, ... that end at each of the last `count` tokens; -1: unseen."""
        numbers, found = read, []
        for length in range(1, self.order):
            if length > 1:
                keys = getattr(self, f"keys_{length - 1}")
                last = read[:, length - 1 :]
                wanted = torch.where(last < 0, -1, numbers[:, :-1] * self.vocabulary + last)
                place = torch.searchsorted(keys, wanted)
                numbers = torch.where(keys[place] == wanted, place, -1)
            found.append(numbers[:, numbers.size(1) - count :].flatten())
        return torch.stack(found) if found else read.new_empty(0, read.size(0) * count)

    def _predict(self, histories: Tensor, out: Tensor) -> None:
        """Write the log-probabilities after these histories (order-1, M) into `out` (M, V).

        float32 is enough: every probability is a sum of at most order + 1 positive terms.
        """
        row = torch.arange(out.size(0), device=out.device)
        weight = torch.ones(out.size(0), device=out.device)
        terms = []
        for length in range(self.order - 1, 0, -1):
            numbers = histories[length - 1]
            keys, shares = getattr(self, f"keys_{length}"), getattr(self, f"shares_{length}")
            bounds = torch.searchsorted(keys, torch.stack([numbers, numbers + 1]) * self.vocabulary)
            sizes = bounds[1] - bounds[0]
            owner = torch.repeat_interleave(sizes)
            skipped = bounds[0] - (sizes.cumsum(0) - sizes)
            place = torch.arange(owner.numel(), device=out.device) + skipped[owner]
            cell = keys[place] + ((row - numbers) * self.vocabulary)[owner]  # = row * V + token
            terms.append((cell, shares[place] * weight[owner]))
            weight = weight * getattr(self, f"backoff_{length}")[numbers]
        torch.outer(weight, self.unigram, out=out)
        for cell, term in reversed(terms):
            out.view(-1).index_add_(0, cell, term)
        out.log_()

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *args: Any) -> None:
        saved = {name: state_dict[prefix + name] for name, _ in self.named_buffers(recurse=False)}
        if saved["unigram"].shape == self.unigram.shape and not self._fits(saved):
            args[-1].append("the tables of the n-gram do not belong together")
            return
        for name, buffer in list(self.named_buffers(recurse=False)):
            if name != "unigram":  # their sizes depend on the data
                setattr(self, name, buffer.new_empty(saved[name].shape))
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _fits(self, saved: dict[str, Tensor]) -> bool:
        """Whether every history that a table can name is in the next one."""
        histories = self.vocabulary  # of each length
        for length in range(1, self.order):
            keys, shares, backoff = (saved[f"{name}_{length}"] for name in ("keys", "shares", "backoff"))
            sound = keys.dim() == 1 and shares.shape == keys.shape and backoff.shape == (histories + 1,)
            if not (sound and keys.min() >= 0 and keys[-1] == END and bool((keys.diff() > 0).all())):
                return False
            histories = len(keys) - 1
        return all(t.isfinite().all() for t in saved.values())


def _check_memory(tokens: int, order: int, arrays: int) -> None:
    """`arrays`: with one number per token, that are about to be made."""
    way_out = "lower model.order, choose a tokenizer with longer tokens (tokenizer.kind), or count a part of the text"
    require(8 * arrays * tokens, f"model ngram: counting {order}-grams of {tokens:,} tokens", way_out)


def _extend(numbers: Ints, tokens: Ints, vocabulary: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Extend n-grams by one token: sorted distinct keys, the id at each stream position, counts, a position of each."""
    wanted = numbers[:-1] * vocabulary + tokens
    order = np.argsort(wanted)
    ordered = wanted[order]
    fresh = np.append(True, ordered[1:] != ordered[:-1])[: ordered.size]
    starts = np.flatnonzero(fresh)
    longer = np.empty_like(wanted)
    longer[order] = np.cumsum(fresh) - 1
    return ordered[starts], longer, np.diff(starts, append=ordered.size), order[starts]


def _smooth(counts: Ints, parents: Ints, known: int) -> tuple[Floats, Floats]:
    """The share of each continuation, and the backoff weight of each of the `known` histories."""
    discounts = _discounts(counts)[np.minimum(counts, 3)]
    totals = np.bincount(parents, weights=counts, minlength=known)
    kept = np.bincount(parents, weights=discounts, minlength=known)
    backoff = np.divide(kept, totals, out=np.ones(known), where=totals > 0)
    return (counts - discounts) / np.maximum(totals, 1)[parents], backoff


def _discounts(counts: Ints) -> Floats:
    """Discounts for counts of 0, 1, 2 and 3 or more (equation 26); half the count where data are too sparse."""
    n = np.bincount(np.minimum(counts, 5), minlength=6).astype(float)
    discounts = np.array([0.0, 0.5, 1.0, 1.5])
    if n[1] and n[2]:
        y = n[1] / (n[1] + 2 * n[2])
        for c in (1, 2, 3):
            estimate = c - (c + 1) * y * n[c + 1] / n[c] if n[c] else 0.0
            if n[c + 1] and estimate > 0:
                discounts[c] = estimate
    return discounts
