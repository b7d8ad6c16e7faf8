"""Any encoder, decoder or encoder-decoder of Hugging Face transformers, usually with its pretrained weights (--from).

state of a decoder = (tokens read per row, (keys, values) per layer); of an encoder-decoder also the source: (vectors,
which of them are real, (keys, values) per layer once they are known)

The architecture is that of the library; `config` is its config.json. What fits one of our own models (Llama, GPT-2,
BERT and relatives) becomes that model instead, which decodes faster and can be looked into. Rows that have read equally
many tokens are continued together, without padding, so the law of the state holds whatever a model does with positions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.core.backbone import Backbone
from seqloom.core.model import ModelConfig
from seqloom.core.rows import Json
from seqloom.core.slots import Slots
from seqloom.core.state import State, count_rows, select_rows
from seqloom.core.taps import Tap
from seqloom.layers.source_attention import visible_source
from seqloom.layers.wrapped import (
    configuration,
    dropouts,
    hand,
    kind_of,
    limit_of,
    make_body,
    parse_options,
    some_ids,
    take_back,
)

_TINY = {"n_layer": 2, "n_head": 4, "n_positions": 256}
_BERT = {"num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32, "max_position_embeddings": 64}
_BART = {"encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
_BART |= {"encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_position_embeddings": 128, "scale_embedding": True}


_NORMS = ("ln_f", "final_layer_norm", "final_layernorm", "norm", "layer_norm")


class Config(ModelConfig):
    architecture: str = Field("gpt2", description="name of the architecture in transformers (model_type)")
    config: str = Field(json.dumps(_TINY), description="its configuration as in config.json, a JSON object")
    output_bias: bool = Field(True, description="bias of the output layer over a vocabulary")
    output_scale: float = Field(1.0, gt=0, description="factor of the vectors that the output layer reads")
    dropout: float = Field(0.0, ge=0, lt=1, description="dropout probability wherever the architecture has dropout")

    variants: ClassVar[tuple[Json, ...]] = (
        {},
        {"architecture": "bert", "config": json.dumps(_BERT)},
        {"architecture": "bart", "config": json.dumps(_BART), "output_bias": False, "output_scale": 0.5},
    )

    @field_validator("config")
    @classmethod
    def _check_config(cls, text: str) -> str:
        parse_options(text)
        return text

    @property
    def bare_outputs(self) -> bool:
        return not self.output_bias

    def build(self) -> Backbone:
        made = configuration(self.architecture, parse_options(self.config), hidden_size=self.width)
        for key in dropouts(made):
            setattr(made, key, self.dropout)
        return Wrapped(made, self.width, self.output_scale)


class WrappedSlots(Slots):
    """Keys and values of rows that have read more or fewer tokens."""

    def leave(self, state: State, slots: Sequence[int]) -> State:
        past: Any = state
        return past[0].index_fill(0, torch.tensor(slots), 0), past[1]

    def concat(self, states: Sequence[State]) -> State:
        return _joined(list(states), torch.arange(sum(map(count_rows, states))))


class Wrapped(Backbone):
    slots = WrappedSlots()

    def __init__(self, config: Any, width: int, scale: float) -> None:
        super().__init__()
        self.width, self.kind, self.scale = width, kind_of(config), scale
        self.pad: int | None = getattr(config, "pad_token_id", None)
        self.body: Any = make_body(config)
        self.limit = self.reach = limit_of(config, self.body)
        self.vectors = Tap()
        self.outputs = nn.ModuleList(Tap() for _ in self.stages())
        taps: Any = self.outputs
        for layer, tap in zip(self.stages(), taps, strict=True):
            layer.register_forward_hook(partial(_passed, tap))

    def encode(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if self.kind == "causal":
            return self(x, None, mask)[0]
        return self.vectors(self._see(x, mask))

    def _see(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """All of a sequence, in both directions; a row that is all padding sees its padding."""
        visible = visible_source(mask)
        shown = None if visible is None else visible[:, 0, 0]
        encoder = self.body.get_encoder() if self.kind == "encoder-decoder" else self.body
        found: Tensor = self._run(encoder, x, shown, attention_mask=None if shown is None else shown.long())[0]
        return found

    def begin(self, context: Tensor, mask: Tensor | None = None) -> State:
        if self.kind != "encoder-decoder":
            return super().begin(context, mask)
        return None, (self._see(context, mask), mask, ())

    def forward(self, x: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        if self.kind == "bidirectional":
            return self.encode(x, mask), None
        if not x.size(1):
            return x.new_zeros(*x.shape[:2], self.width), state
        past, source = self._parts(state)
        read = torch.zeros(len(x), dtype=torch.long) if past is None else past[0]
        lengths = read.unique().tolist()
        if len(lengths) == 1:
            output, layers, source = self._continue(x, past, source, mask=mask, length=lengths[0])
        else:
            output, layers, source = self._by_length(x, past, source, mask, read)
        if self.scale != 1:
            output = output * self.scale
        read = read + (x.size(1) if mask is None else mask.sum(1).cpu())
        grown: State = (read, layers)
        return self.vectors(output), (grown, source) if self.kind == "encoder-decoder" else grown

    def _parts(self, state: Any) -> tuple[Any, Any]:
        """What was read or written so far, and the source."""
        if self.kind == "causal":
            return state, None
        return state or (None, None)

    def only_encode(self) -> None:
        if self.kind == "encoder-decoder":
            self.body.decoder = nn.Identity()

    def stages(self) -> list[nn.Module]:
        """The members of every list of layers that is not inside another."""
        lists = [(name, part) for name, part in self.body.named_modules() if isinstance(part, nn.ModuleList)]
        outer = [part for name, part in lists if not any(name.startswith(f"{other}.") for other, _ in lists)]
        return [layer for part in outer for layer in part]

    def layer_taps(self) -> list[Tap]:
        own = set(self.body.get_decoder().modules()) if self.kind == "encoder-decoder" else set(self.body.modules())
        taps: Any = self.outputs
        return [tap for layer, tap in zip(self.stages(), taps, strict=True) if layer in own]

    def encoder_taps(self) -> list[Tap]:
        decoder = set(self.layer_taps())
        taps: Any = self.outputs
        return [tap for tap in taps if tap not in decoder] if self.kind == "encoder-decoder" else []

    def finish(self, hidden: Tensor) -> Tensor:
        """By the usual names of the last norm; whether that is all, an architecture does not tell."""
        body = self.body.get_decoder() if self.kind == "encoder-decoder" else self.body
        norm = next((getattr(body, name) for name in _NORMS if hasattr(body, name)), None)
        found: Tensor = hidden if norm is None else norm(hidden)
        return found if self.scale == 1 else found * self.scale

    def _continue(
        self, x: Tensor, past: Any, source: Any, *, mask: Tensor | None, length: int
    ) -> tuple[Tensor, State, State]:
        """Rows that have all read `length` tokens; whatever is after the real tokens of a row cannot change them."""
        from transformers import DynamicCache, EncoderDecoderCache

        longest = x.size(1) if mask is None else int(mask.sum(1).max())  # padding may lie past the last position
        if not longest and past is not None:
            return x.new_zeros(*x.shape[:2], self.width), past[1], source
        if longest < x.size(1):
            output, layers, source = self._continue(x[:, : max(1, longest)], past, source, mask=None, length=length)
            return F.pad(output, (0, 0, 0, x.size(1) - output.size(1))), layers, source
        pairs = [] if past is None or not length else [(k[:, :, :length], v[:, :, :length]) for k, v in past[1]]
        cache: Any = DynamicCache(pairs or None)
        if self.kind == "causal":
            found = self._run(self.body, x, None, past_key_values=cache, use_cache=True)
            return found[0], _layers(cache), None
        vectors, real, known = source or (None, None, ())  # without a source there is no attention to it
        cache = EncoderDecoderCache(cache, DynamicCache(list(known) or None))
        visible = visible_source(real)
        shown = None if visible is None else visible[:, 0, 0].long()
        how = {"encoder_hidden_states": vectors, "encoder_attention_mask": shown}
        found = self._run(self.body.get_decoder(), x, None, past_key_values=cache, use_cache=True, **how)
        after = None if source is None else (vectors, real, _layers(cache.cross_attention_cache))
        return found[0], _layers(cache.self_attention_cache), after

    def _by_length(
        self, x: Tensor, past: Any, source: Any, mask: Tensor | None, read: Tensor
    ) -> tuple[Tensor, State, State]:
        """Rows in groups that have read equally many tokens, each continued by itself."""
        groups, parts = [(read == length).nonzero()[:, 0] for length in read.unique()], list[Any]()
        for rows in groups:
            chosen, length = rows.to(x.device), int(read[rows[0]])
            before, real = (select_rows(part, rows) for part in (past, source)), None if mask is None else mask[chosen]
            parts.append(self._continue(x[chosen], *before, mask=real, length=length))
        order = torch.cat(groups).argsort()
        output = torch.cat([part[0] for part in parts])[order.to(x.device)]
        return output, _joined([part[1] for part in parts], order), _joined([part[2] for part in parts], order)

    def _run(self, model: Any, x: Tensor, mask: Tensor | None, **how: Any) -> Any:
        hand(model, x)
        try:
            return model(input_ids=some_ids(x, mask, self.pad), return_dict=False, **how)
        finally:
            take_back(model)


def _passed(tap: Tap, layer: nn.Module, given: Any, output: Any) -> Any:
    """A layer's output, alone or first of several, passes its tap."""
    return (tap(output[0]), *output[1:]) if isinstance(output, tuple) else tap(output)


def _layers(cache: Any) -> State:
    return tuple((layer.keys, layer.values) for layer in cache.layers)


def _joined(states: list[Any], order: Tensor) -> Any:
    """States of several groups of rows as one; the slots of shorter rows are filled up."""
    first = states[0]
    if isinstance(first, tuple):
        return tuple(_joined(list(parts), order) for parts in zip(*states, strict=True))
    if first is None:
        return None
    if first.dim() == 4:
        slots = max(t.size(2) for t in states)
        states = [F.pad(t, (0, 0, 0, slots - t.size(2))) for t in states]
    return torch.cat(states)[order.to(first.device)]
