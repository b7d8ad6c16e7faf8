"""Tokenizers: text to ids and back. Each is saved as a Hugging Face tokenizer.json that other tools can read."""

from __future__ import annotations

from collections.abc import Iterable

from seqloom.core.errors import UserError, unknown
from seqloom.tokenizers.tokenizer import KINDS, Tokenizer, tokenizer_class

__all__ = ["KINDS", "Tokenizer", "train_tokenizer"]

SPLITS = ("punctuation", "space")


def train_tokenizer(
    kind: str, texts: Iterable[str], *, size: int = 8192, min_count: int = 1, split: str = "punctuation"
) -> Tokenizer:
    """A tokenizer fitted to the texts, which are read once and never held in memory.

    `size` bounds the vocabulary of `words` and `bpe`, `min_count` drops what is rarer (characters, words, and the
    pairs that bpe would merge), `split` says whether `words` also cuts at punctuation or only at white space.
    """
    if kind not in KINDS:
        raise unknown("tokenizer", kind, KINDS)
    if split not in SPLITS:
        raise unknown("way to split words", split, SPLITS)
    if min_count < 1:
        raise UserError(f"min_count={min_count}: at least 1, which keeps everything")
    return tokenizer_class(kind).train(texts, size=size, min_count=min_count, split=split)
