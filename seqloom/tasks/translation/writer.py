"""Writer: from source texts to generated texts, with any model of the task; optionally with alignments."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import torch

from seqloom.core.errors import UserError
from seqloom.core.instance import Instance
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Row
from seqloom.decode.alignment import Alignment, check_attention, read_maps
from seqloom.decode.beam import Hypothesis
from seqloom.decode.decoding import Decoding
from seqloom.tasks.translation.instance import instance
from seqloom.tasks.translation.sources import Frame, asked_new, find, fit_source, room

_CHUNK = 1000  # rows predicted together: enough to sort by length, few enough for memory

Found = list[list[Hypothesis]]  # hypotheses per source, best first


@dataclass(frozen=True)
class Writer:
    tokenizers: Any  # `source`, `target`, and `shift`, the offset of source ids in the embedding
    how: Decoding
    max_new: int = 0  # 0: twice the source length plus 10
    reverse: bool = False  # read sources backwards

    def source(self, ids: np.ndarray) -> np.ndarray:
        """Source ids as rows of the embedding; reversed if `reverse`, except for the end token."""
        ids = ids + self.tokenizers.shift
        return np.concatenate((ids[-2::-1], ids[-1:])) if self.reverse else ids

    def encode(self, texts: Sequence[str]) -> Iterator[np.ndarray]:
        end = np.array([self.tokenizers.source.eos])
        return (np.concatenate((ids, end)) for ids in self.tokenizers.source.encode_many(texts))

    def text(self, hypothesis: Hypothesis) -> str:
        found: str = self.tokenizers.target.decode(hypothesis.tokens)
        return found

    def search(self, model: SequenceModel, texts: Sequence[str], how: Decoding | None = None) -> Found:
        """The hypotheses for each source text, best first."""
        return find(model, self._read(model, texts)[0], how or self.how, self._frame)

    def write(self, model: SequenceModel, texts: Sequence[str]) -> tuple[list[str], int]:
        """The best output for each source text, and how many sources were truncated."""
        sources, cut = self._read(model, texts)
        return [self.text(best(found)) for found in find(model, sources, self.how, self._frame)], sum(cut)

    def predict(
        self,
        model: SequenceModel,
        rows: Iterable[Row],
        *,
        n_best: int = 0,
        alignments: bool = False,
        max_new: int = 0,
        seed: int | None = None,
        **how: Any,
    ) -> Iterator[Row]:
        """Each row with its `prediction` and `score`, in order; a thousand rows are decoded at a time.

        `how`: fields of `Decoding`; the others keep the run's settings.
        """
        sampling = {"beams": 1} if how.get("temperature") else {}
        for name, number in (("n_best", n_best), ("max_new", max_new)):
            if number < 0:
                raise UserError(f"{name}={number}: must be 0 (the default) or more")
        writer = replace(self, how=replace(self.how, **(sampling | how)), max_new=max_new or self.max_new)
        if writer.max_new:
            _check_lengths(writer.how.min_new, writer.max_new)
        if n_best > (kept := writer.how.beams):
            raise UserError(f"n_best={n_best}: the search keeps {kept}; set beams={n_best} and temperature=0")
        if alignments:
            check_attention(model)
        return writer._predicted(model, iter(rows), n_best, alignments, seed)

    def align(self, model: SequenceModel, source: str, target: str | None = None) -> Alignment:
        """The alignment of a source and a target, by default the best output found."""
        (ids,), (cut,) = self._read(model, [source])
        if target is None:
            found = best(find(model, [ids], self.how, self._frame)[0])
            return replace(self._aligned(model, source, ids, found.tokens), score=found.score, cut=cut)
        return replace(self._aligned(model, source, ids, self._given(model, ids, target)), target=target, cut=cut)

    def instance(self, model: SequenceModel, source: str, target: str | None = None) -> Instance:
        (ids,), (cut,) = self._read(model, [source])
        own = target is None
        tokens = best(find(model, [ids], self.how, self._frame)[0]).tokens if own else self._given(model, ids, target)
        return instance(model, ids.tolist(), tokens, self.tokenizers, given=not own, cut=cut)

    def _given(self, model: SequenceModel, source: np.ndarray, target: str | None) -> list[int]:
        tokens: list[int] = self.tokenizers.target.encode(target or "").tolist()
        if len(tokens) >= room(model, len(source)):
            raise UserError(
                f"a target of {len(tokens)} tokens is too long for the model's context {model.limit}; shorten it"
            )
        return tokens

    def _predicted(
        self, model: SequenceModel, rows: Iterator[Row], n_best: int, alignments: bool, seed: int | None
    ) -> Iterator[Row]:
        done = 0
        while chunk := list(islice(rows, _CHUNK)):
            sources, cut = self._read(model, [row["source"] for row in chunk])
            for row, ids in zip(chunk, sources, strict=True):
                _check_lengths(self.how.min_new, asked_new(len(ids), self.max_new), f"line {row['line']}: ")
            found = find(model, sources, self.how, self._frame, None if seed is None else seed + done)
            for row, ids, short, hypotheses in zip(chunk, sources, cut, found, strict=True):
                first = best(hypotheses)
                answer = row | {"prediction": self.text(first), "score": first.score}
                if n_best:
                    answer["n_best"] = [{"text": self.text(h), "score": h.score} for h in hypotheses[:n_best]]
                if short:
                    answer["cut"] = True
                if alignments:
                    answer["alignment"] = self._aligned(model, row["source"], ids, first.tokens).summary()
                yield answer
            done += len(chunk)

    def _read(self, model: SequenceModel, texts: Sequence[str]) -> tuple[list[np.ndarray], list[bool]]:
        """Sources as the model reads them, and whether each was truncated."""
        whole = list(self.encode(texts))
        fitted = [fit_source(model, ids, self.max_new) for ids in whole]
        cut = [len(ids) < len(before) for ids, before in zip(fitted, whole, strict=True)]
        return [self.source(ids) for ids in fitted], cut

    def _aligned(self, model: SequenceModel, source: str, ids: np.ndarray, written: list[int]) -> Alignment:
        """`ids`: as the model reads them; the columns follow the order of the text."""
        own, target = self.tokenizers.source, self.tokenizers.target
        inputs = torch.tensor([target.bos, *written], device=model.device)
        maps = read_maps(model, torch.as_tensor(ids, device=model.device), inputs)
        if self.reverse:
            order = [*range(len(ids) - 2, -1, -1), len(ids) - 1]
            ids, maps = ids[order], [replace(found, weights=found.weights[:, :, order]) for found in maps]
        read, wrote = [own.name(int(id)) for id in ids - self.tokenizers.shift], [*map(target.name, written)]
        return Alignment(source, target.decode(written), read, [*wrote, target.name(target.eos)], maps)

    @property
    def _frame(self) -> Frame:
        target = self.tokenizers.target
        return Frame(target.bos, target.eos, self.max_new)


def _check_lengths(least: int, most: int, place: str = "") -> None:
    if least > most:
        raise UserError(f"{place}min_new={least} is above the {most} tokens that an output may have (max_new)")


def best(found: list[Hypothesis]) -> Hypothesis:
    """The first hypothesis, or an empty one if the search found none."""
    return found[0] if found else Hypothesis([], -math.inf)
