"""The options of the `tokenizer` section. Nothing heavy is imported here."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from seqloom.core.config import Strict

Kind = Literal["characters", "bytes", "words", "bpe", "pretrained"]  # pretrained: it comes with its model, by --from


class NoTokenizer(Strict):
    """For numeric data, which needs no tokenizer: there are no options."""


class TokenizerOptions(Strict):
    kind: Kind = Field("characters", description="unit of tokenization")
    vocabulary: int = Field(8192, ge=2, le=10**7, description="maximum vocabulary size of words and bpe")
    min_count: int = Field(1, ge=1, description="characters and words that occur less often become <unk>")
    split: Literal["punctuation", "space"] = Field(
        "punctuation", description="split words at punctuation as well, or only at white space"
    )
