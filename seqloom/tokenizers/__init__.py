"""Tokenizers: text to token ids and back. Each is saved as a Hugging Face tokenizer.json that other tools can read."""

from __future__ import annotations

from collections.abc import Iterable

from seqloom.core.errors import UserError, unknown
from seqloom.tokenizers.tokenizer import FOREIGN, KINDS, Tokenizer, tokenizer_class

__all__ = ["KINDS", "Tokenizer", "train_tokenizer"]

SPLITS = ("punctuation", "space")


def train_tokenizer(
    kind: str, texts: Iterable[str], *, size: int = 8192, min_count: int = 1, split: str = "punctuation"
) -> Tokenizer:
    """Train a tokenizer on the texts, which are streamed once and not held in memory.

    `size`: maximum vocabulary of `words` and `bpe`; `min_count`: drops rarer characters, words, and bpe merges;
    `split`: whether `words` splits at punctuation as well, or only at white space.
    """
    if kind in FOREIGN:
        raise UserError(f"tokenizer.kind={kind}: such a tokenizer comes with its model; name that with --from")
    if kind not in KINDS:
        raise unknown("tokenizer", kind, KINDS)
    if split not in SPLITS:
        raise unknown("split", split, SPLITS)
    if min_count < 1:
        raise UserError(f"tokenizer.min_count={min_count}: must be at least 1, which keeps everything")
    return tokenizer_class(kind).train(texts, size=size, min_count=min_count, split=split)
