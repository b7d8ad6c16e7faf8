"""Bag of embeddings of tokens and of hashed n-grams (fastText, Joulin et al. 2017): word order only among neighbours.

    x_t = embedding(token_t) + sum over n of table[hash(n tokens up to t) mod buckets]

There is no layer between embedding and head: the head takes the mean of all positions, or what the task chooses.

state = none: it reads a sequence as a whole
"""

from __future__ import annotations

from typing import ClassVar, Protocol, runtime_checkable

from pydantic import Field
from torch import Tensor, nn

from seqloom.core.backbone import Backbone
from seqloom.core.errors import UserError
from seqloom.core.model import ModelConfig
from seqloom.core.network import Network
from seqloom.core.rows import Json
from seqloom.core.task import AnyTask
from seqloom.layers.identity import Identity
from seqloom.layers.ngrams import ngram_keys

_MIX = 0x5851F42D4C957F2D  # of the hash: spreads neighbouring keys
_ORDERS = {"characters": 3, "bytes": 3}  # longest n-gram by the kind of tokens, otherwise 2
_GAIN = 5.0  # of all vectors: they are seen rarely, and so learn five times as fast as the head
_STD = 0.01  # of the initial embeddings: a word seen three times cannot unlearn a large one


class Config(ModelConfig):
    width: int = Field(32, ge=1, description="size of the vectors of tokens and n-grams")
    order: int = Field(0, ge=0, le=8, description="longest n-gram, in tokens; 0: 2 of words and bpe, 3 of characters")
    buckets: int = Field(32_768, ge=1, le=10**8, description="vectors that all n-grams share, by hashing")
    dropout: float = Field(0.0, ge=0, lt=1, description="dropout on the vector of each position during training")
    tie: bool = Field(False, description="unused: n-grams are never output")

    knobs: ClassVar[tuple[str, ...]] = ("width", "buckets")
    variants: ClassVar[tuple[Json, ...]] = ({}, {"order": 1}, {"order": 3, "buckets": 50})

    def build(self) -> Backbone:
        return Identity(self.width, "bidirectional", self.dropout)

    def assemble(self, task: AnyTask) -> Network:
        backbone = self.build()
        task.check_kind(backbone.kind)
        tokens = task.embed(self.width)
        if not isinstance(tokens, nn.Embedding):
            raise UserError(f"model bag: reads tokens, which {task.name} has not with this data; use another model")
        for table in (part for part in tokens.modules() if isinstance(part, nn.Embedding)):
            nn.init.normal_(table.weight, std=_STD)
        order = self.order or _ORDERS.get(task.tokenizer.kind if isinstance(task, TokenizedTask) else "", 2)
        return Network(NgramEmbedding(tokens, self.width, order, self.buckets), backbone, task.head(self.width))


class Tokens(Protocol):
    """What is needed of a tokenizer."""

    @property
    def kind(self) -> str: ...


@runtime_checkable
class TokenizedTask(Protocol):
    """A task that says what a token is."""

    tokenizer: Tokens


class NgramEmbedding(nn.Module):
    """The embedding of a token plus those of the n-grams that end with it, (B, T) -> (B, T, width)."""

    def __init__(self, tokens: nn.Embedding, width: int, order: int, buckets: int) -> None:
        super().__init__()
        self.tokens, self.order, self.buckets = tokens, order, buckets
        if order > 1:
            self.table = nn.Embedding(buckets, width)
            nn.init.zeros_(self.table.weight)  # n-grams that training never saw say nothing

    def forward(self, inputs: Tensor) -> Tensor:
        x: Tensor = self.tokens(inputs)
        if self.order == 1:
            return _GAIN * x
        ids = inputs[..., 0] if inputs.dim() == 3 else inputs  # of words with their characters
        keys = ngram_keys(ids, None, self.tokens.num_embeddings, 2, self.order)  # (B, T, order - 1)
        rows = ((keys * _MIX) >> 20) % self.buckets
        found: Tensor = self.table(rows) * (keys != 0)[..., None]
        return _GAIN * (x + found.sum(2))
