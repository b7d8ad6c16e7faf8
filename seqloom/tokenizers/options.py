"""The `tokenizer` section: what a token is. Nothing heavy is imported here."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from seqloom.core.config import Strict

Kind = Literal["characters", "bytes", "words", "bpe"]


class NoTokenizer(Strict):
    """Measurements are numbers already: there is nothing to choose."""


class TokenizerOptions(Strict):
    kind: Kind = Field("characters", description="what a token is")
    vocabulary: int = Field(8192, ge=2, description="largest vocabulary of words and bpe")
    min_count: int = Field(1, ge=1, description="rarer characters and words become <unk>")
    split: Literal["punctuation", "space"] = Field("punctuation", description="where words end")
