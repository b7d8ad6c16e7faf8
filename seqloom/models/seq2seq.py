"""Recurrent encoder-decoder; the decoder sees the source as one vector, at the start or every step, or by attention.

first       one vector, as the decoder's initial state (Sutskever et al. 2014)
every_step  the same vector, also as an input at every step (Cho et al. 2014)
attention   a new weighted average of all source vectors for every output (Bahdanau et al. 2015; Luong et al. 2015)

The attention query is the decoder state before a step, and the context is an input of that step (query = before:
Bahdanau), or the state after it (query = after: Luong). The latter computes all steps in parallel, unless the last
output is fed back in (feeding).

state = (the cells' memories, the vector fed back, steps done, what is kept of the source)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from seqloom.core.backbone import Backbone, matrix_flops
from seqloom.core.choice import Choice, Demand
from seqloom.core.model import ModelConfig
from seqloom.core.rows import Json
from seqloom.core.state import State
from seqloom.core.taps import Tap
from seqloom.layers.dropout import Dropout
from seqloom.layers.general_attention import ALIGNED, GeneralAttention, check_choices
from seqloom.layers.linear import Linear
from seqloom.layers.recurrent import Cell, Recurrent, at_last_step, check_tie, tied_pairs
from seqloom.layers.scores import SCORES
from seqloom.models.gru import GRUCell
from seqloom.models.lstm import LSTMCell
from seqloom.models.rnn import RNNCell

CELLS: dict[str, Callable[[int, int], Cell]] = {"rnn": RNNCell, "lstm": LSTMCell, "gru": GRUCell}


class Config(ModelConfig):
    width: int = Field(256, ge=2, description="size of every hidden vector")
    inputs: int = Field(0, ge=0, description="size of the input embeddings; 0: the width")
    cell: Literal["rnn", "lstm", "gru"] = Field("gru", description="recurrent cell")
    depth: int = Field(1, ge=1, le=128, description="layers of the encoder and of the decoder")
    bidirectional: bool = Field(True, description="half of the encoder's units read backwards")
    context: Literal["first", "every_step", "attention"] = Field(
        "attention", description="how the decoder sees the source: one vector at the start or every step, or attention"
    )
    summary: Literal["final", "mean"] = Field("final", description="the single source vector: final states or mean")
    query: Literal["after", "before"] = Field("after", description="attend after (Luong) or before (Bahdanau) a step")
    feeding: bool = Field(False, description="query=after: feed the last output into the next step (input feeding)")
    score: str = Field("general", description=f"attention score: {', '.join(SCORES)}")
    align: str = Field("soft", description=f"attention alignment: {', '.join(ALIGNED)}")
    heads: int = Field(1, ge=1, description="attention heads")
    hops: int = Field(1, ge=1, le=128, description="attention hops")
    multi: bool = Field(False, description="separate attention weights per dimension (score=additive)")
    window: int = Field(5, ge=1, description="local alignment: source positions to each side")

    variants: ClassVar[tuple[Json, ...]] = (
        {},
        {"context": "first", "cell": "lstm", "depth": 2},
        {"context": "every_step", "summary": "mean", "cell": "rnn", "bidirectional": False},
        {"query": "before", "score": "additive", "cell": "lstm"},
        {"feeding": True, "depth": 2, "inputs": 5, "heads": 2, "score": "scaled_dot"},
        {"align": "local_monotonic", "hops": 2},
        {"align": "local_predictive", "feeding": True},
    )
    knobs: ClassVar[tuple[str, ...]] = ("width", "inputs")

    @classmethod
    def suit(cls, demand: Demand) -> list[Choice]:
        return tied_pairs(demand) if demand.pairs else []

    @model_validator(mode="after")
    def _check(self) -> Config:
        heads = self.heads if self.context == "attention" else 1
        check_choices(self.width, self.score, self.align, heads, self.multi)
        if self.feeding and (self.context != "attention" or self.query == "before"):
            raise ValueError("feeding=true requires context=attention and query=after")
        if self.bidirectional and self.width % 2:
            raise ValueError(f"width={self.width} must be even: each direction gets half of it")
        check_tie(self.tie, self.inputs, self.width)
        return self

    def build(self) -> Backbone:
        return Seq2Seq(self)


class Seq2Seq(Backbone):
    kind = "encoder-decoder"

    def __init__(self, c: Config) -> None:
        super().__init__()
        cell, inputs = CELLS[c.cell], c.inputs or c.width
        self.width, self.inputs, self.context, self.summary = c.width, inputs, c.context, c.summary
        scale = inputs**0.5 if c.tie else 1.0  # tied embeddings start small, for the output layer
        self.scale, self.bidirectional = scale, c.bidirectional
        self.before = c.query == "before" and c.context == "attention"
        self.stepwise = self.before or c.feeding
        self.encoder = Recurrent(cell, inputs, c.width, scale, c.depth, c.dropout, c.bidirectional)
        fed = c.width if c.context == "every_step" or self.stepwise else 0
        self.decoder = Recurrent(cell, inputs + fed, c.width, 1.0, c.depth, c.dropout, bidirectional=False)
        self.bridge = Linear(c.width, sum(_memories(self.decoder)) * c.width)
        self.attention: GeneralAttention | None = None
        if c.context == "attention":
            self.attention = GeneralAttention(
                c.width, c.width, c.width, score=c.score, align=c.align, heads=c.heads, hops=c.hops, multi=c.multi,
                window=c.window,
            )  # fmt: skip
        self.join = Linear(2 * c.width, c.width) if c.context != "first" else None
        self.dropout = Dropout(c.dropout)

    def encode(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.encoder.encode(x, mask)

    def final(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self._summarise(self.encode(x, mask), mask)

    def only_encode(self) -> None:
        self.attention = self.join = None
        self.bridge = self.decoder = nn.Identity()  # type: ignore[assignment]

    def begin(self, context: Tensor, mask: Tensor | None = None) -> State:
        hidden = self.encode(context, mask)
        summary = self._summarise(hidden, mask)
        memories = self._initial_memories(summary)
        steps = torch.zeros(context.size(0), dtype=torch.long, device=context.device)
        if self.attention is not None:
            return memories, torch.zeros_like(summary), steps, self.attention.read(hidden, mask)
        return memories, None, steps, summary if self.context == "every_step" else None

    def forward(self, x: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        past: Any = state or self._empty_state(x)
        x = x if self.scale == 1 else x * self.scale
        return (self._step_by_step if self.stepwise else self._at_once)(x, past, mask)

    def _at_once(self, x: Tensor, past: Any, mask: Tensor | None) -> tuple[Tensor, State]:
        memories, fed, steps, source = past
        if self.context == "every_step":
            same = torch.zeros_like(x[:, :1, :1]).expand(-1, 1, self.width) if source is None else source[:, None]
            same = same.expand(-1, x.size(1), -1)
            x = torch.cat((x, same), dim=-1)
        hidden, memories = self.decoder(x, memories, mask)
        if self.context == "every_step":
            hidden = self._combine(hidden, same)
        elif self.attention is not None:
            hidden = self._combine(hidden, self._attend(hidden, source, steps))
        return hidden, (memories, fed, _count(steps, x, mask), source)

    def _step_by_step(self, x: Tensor, past: Any, mask: Tensor | None) -> tuple[Tensor, State]:
        memories, fed, steps, source = past
        outputs = []
        for t in range(x.size(1)):
            real = None if mask is None else mask[:, t : t + 1]
            context = self._attend(memories[-1][0][:, None], source, steps) if self.before else fed[:, None]
            hidden, memories = self.decoder(torch.cat((x[:, t : t + 1], context), dim=-1), memories, real)
            if not self.before:
                context = self._attend(hidden, source, steps)
            output = self._combine(hidden, context)
            fed = output[:, 0] if real is None else torch.where(real, output[:, 0], fed)
            steps = _count(steps, x[:, :1], real)
            outputs.append(output)
        joined = torch.cat(outputs, dim=1) if outputs else x.new_zeros(x.size(0), 0, self.width)
        return joined, (memories, fed, steps, source)

    def _attend(self, query: Tensor, source: Any, steps: Tensor) -> Tensor:
        """Zeros if there is no source."""
        if source is None or self.attention is None:
            return torch.zeros_like(query)
        return self.attention(query, source, steps)

    def _combine(self, hidden: Tensor, context: Tensor) -> Tensor:
        assert self.join is not None
        return self.dropout(self.join(torch.cat((hidden, context), dim=-1)).tanh())

    def _summarise(self, hidden: Tensor, mask: Tensor | None) -> Tensor:
        """One vector (B, width) for the source, ignoring padding."""
        if self.summary == "mean":
            if mask is None:
                return hidden.mean(1)
            return (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
        last = hidden[:, -1] if mask is None else at_last_step(hidden, hidden[:, 0], mask)
        if not self.bidirectional:
            return last
        half = self.width // 2
        return torch.cat((last[:, :half], hidden[:, 0, half:]), dim=-1)  # the backward direction ends at the first step

    def _initial_memories(self, summary: Tensor) -> State:
        """Autocast may run the product in low precision; the memories keep the dtype of the parameters."""
        values = self.bridge(summary).tanh().to(self.bridge.bias.dtype)
        parts = iter(values.chunk(sum(_memories(self.decoder)), dim=-1))
        return tuple(tuple(next(parts) for _ in range(count)) for count in _memories(self.decoder))

    def _empty_state(self, x: Tensor) -> State:
        """The initial state of a decoder without a source."""
        cells: Any = [layer[0] for layer in self.decoder.layers]  # type: ignore[index]
        steps = torch.zeros(x.size(0), dtype=torch.long, device=x.device)
        fed = x.new_zeros(x.size(0), self.width) if self.attention is not None else None
        return tuple(cell.start(x) for cell in cells), fed, steps, None

    def stages(self) -> list[nn.Module]:
        return self.encoder.stages()

    def layer_taps(self) -> list[Tap]:
        return self._written().layer_taps()

    def encoder_taps(self) -> list[Tap]:
        return self.encoder.layer_taps() if self._written() is self.decoder else []

    def memory_taps(self) -> list[list[Tap]]:
        return self._written().memory_taps()

    def _written(self) -> Recurrent:
        """The decoder; the encoder if there is nothing else."""
        return self.decoder if isinstance(self.decoder, Recurrent) else self.encoder

    def flops(self, length: int) -> float:
        """Per target token, for a source of the same length; the initial state is computed once."""
        parts = [part for part in (self.encoder, self.decoder, self.join) if part is not None]
        attention = 0.0 if self.attention is None else self.attention.flops(length)
        return sum(map(matrix_flops, parts)) + attention + matrix_flops(self.bridge) / length


def _memories(decoder: Recurrent) -> list[int]:
    return [layer[0].memories for layer in decoder.layers]  # type: ignore[index]


def _count(steps: Tensor, x: Tensor, mask: Tensor | None) -> Tensor:
    return steps + (x.size(1) if mask is None else mask.sum(1))
