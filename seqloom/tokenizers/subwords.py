"""Byte-level BPE (Sennrich et al. 2016; over bytes as in Radford et al. 2019), with the tokenizers library.

Decoding restores any text exactly. Long texts are cut before white space, where the library's own pattern always
splits, so the ids are the same as for the whole text, and the pieces keep every core busy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from seqloom.core.errors import UserError
from seqloom.tokenizers.characters import ByteLevel, utf8
from seqloom.tokenizers.tokenizer import SPECIALS, byte_spans, describe

if TYPE_CHECKING:
    import tokenizers

_MOST = 2_000_000  # tokens; the library reserves memory for all of them
SAMPLE = 50_000_000  # characters to learn merges from; more would change them little
PIECE = 4096  # characters per piece: short pieces stay in the CPU cache
BATCH = 128  # pieces encoded per call; bounds the memory in use
BREAK = re.compile(r"\S(?=[ \n\t])|[^\W_](?=[，。！？；：、])")  # the library's pattern never matches across these


class Subwords(ByteLevel):
    kind = "bpe"

    @classmethod
    def train(cls, texts: Iterable[str], *, size: int = 8192, min_count: int = 1, split: str = "") -> Subwords:
        """Learn merges from at most 50 million characters, sampled evenly from the texts."""
        from tokenizers import Tokenizer as HuggingFaceTokenizer
        from tokenizers import decoders, models, pre_tokenizers, trainers

        smallest = 256 + len(SPECIALS)
        if size < smallest:
            raise UserError(f"tokenizer.vocabulary={size}: bpe needs at least {smallest}, for bytes and special tokens")
        sample = _evenly(texts, SAMPLE)
        if not sample:
            raise UserError("no text to learn subwords from; check the training data")
        tokenizer = HuggingFaceTokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=min(size, _MOST),
            min_frequency=max(2, min_count),  # a pair seen once is not a pattern
            special_tokens=list(SPECIALS),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        tokenizer.train_from_iterator((piece for text in sample for piece in cut(text)), trainer)
        return cls(describe(tokenizer))

    def encode(self, text: str) -> np.ndarray:
        utf8(text)  # raises if the text is not valid
        return np.concatenate([_ids(e) for e in self.hf.encode_batch_fast(list(cut(text)), add_special_tokens=False)])

    def spans(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """The span of a token that begins with a space covers only the word after it."""
        ids = self.encode(text)
        places = byte_spans(text, self.byte_counts[ids])
        white = np.array([character.isspace() for character in text], bool)
        if len(places):
            places[:, 0] += white[places[:, 0]] & ~white[places[:, 1] - 1]  # the library attaches one space to a word
        return ids, places

    def encode_many(self, texts: Iterable[str]) -> Iterator[np.ndarray]:
        """The ids of each text, in order; the library encodes one batch while the previous one is being yielded."""
        pieces = ((piece, last) for text in texts for piece, last in _mark_last(cut(text)))
        whole: list[np.ndarray] = []
        for ids, last in self._encode_pieces(pieces):
            whole.append(ids)
            if last:
                yield np.concatenate(whole)
                whole = []

    def _encode_pieces(self, pieces: Iterator[tuple[str, bool]]) -> Iterator[tuple[np.ndarray, bool]]:
        with ThreadPoolExecutor(1) as worker:
            waiting: tuple[Future, list[bool]] | None = None
            while batch := list(islice(pieces, BATCH)):
                texts = [piece for piece, _ in batch]
                coming = worker.submit(self.hf.encode_batch_fast, texts, add_special_tokens=False)
                if waiting:
                    yield from zip(map(_ids, waiting[0].result()), waiting[1], strict=True)
                waiting = coming, [last for _, last in batch]
            if waiting:
                yield from zip(map(_ids, waiting[0].result()), waiting[1], strict=True)


def cut(text: str, length: int = PIECE) -> Iterator[str]:
    """Pieces of about `length` characters whose ids, concatenated, are the ids of the whole text."""
    start = 0
    while found := BREAK.search(text, start + length):
        yield text[start : found.end()]
        start = found.end()
    yield text[start:]


def _ids(encoding: tokenizers.Encoding) -> np.ndarray:
    ids = encoding.ids
    return np.fromiter(ids, np.int64, len(ids))


def _mark_last(pieces: Iterator[str]) -> Iterator[tuple[str, bool]]:
    piece = next(pieces)
    for following in pieces:
        yield piece, False
        piece = following
    yield piece, True


def _evenly(texts: Iterable[str], limit: int) -> list[str]:
    """All texts, or every second, fourth, eighth ... one if they exceed the limit in characters."""
    kept: list[str] = []
    step, length = 1, 0
    for number, text in enumerate(text for text in texts if text):
        if number % step:
            continue
        kept.append(text)
        length += len(text)
        if length > limit and len(kept) > 1:
            kept, step = kept[::2], step * 2
            length = sum(map(len, kept))
    return [text[:limit] for text in kept]
