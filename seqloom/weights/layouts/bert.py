"""BERT and its relatives in our `bert`: RoBERTa (positions begin later), DistilBERT (no token types).

Our model has no token types: that of a first text is added to the positions, and what the second text has instead
becomes `embed.parts`, which tasks that read two texts have. The output layer of masked language modelling is left out.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import torch
from torch import Tensor

from seqloom.core.rows import Json
from seqloom.weights.layouts.layout import GELU, Layout, Named, activation, needs, number, prefix, whole
from seqloom.weights.tensors import Taker

_LATER = {"roberta", "xlm-roberta", "xlm-roberta-xl", "camembert"}  # positions are counted from the one after padding


class _Block(NamedTuple):
    """What the parts of a block are called."""

    q: str
    k: str
    v: str
    out: str
    norm_1: str
    up: str
    down: str
    norm_2: str


_SELF = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense")
_FEED = ("intermediate.dense", "output.dense")
_BLOCK = _Block(*_SELF, "attention.output.LayerNorm", *_FEED, "output.LayerNorm")
_LARGE_BLOCK = _Block(*_SELF, "attention.self_attn_layer_norm", *_FEED, "LayerNorm")
_DISTIL_BLOCK = _Block(
    "attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin", "sa_layer_norm",
    "ffn.lin1", "ffn.lin2", "output_layer_norm",
)  # fmt: skip


def section(c: Json) -> Json:
    needs(c, position_embedding_type="absolute", is_decoder=False, add_cross_attention=False)
    return {
        "name": "bert",
        "preset": "published",
        "width": whole(c, "hidden_size", 768),
        "depth": whole(c, "num_hidden_layers", 12),
        "heads": whole(c, "num_attention_heads", 12),
        "feed": whole(c, "intermediate_size", 3072),
        "context": whole(c, "max_position_embeddings", 512) - _first(c),
        "bend": activation(c, "hidden_act", GELU, "gelu"),
        "eps": number(c, "layer_norm_eps", 1e-12),
        "tie": True,
        "dropout": number(c, "hidden_dropout_prob", 0.1),
    }


def tensors(s: Json, c: Json, take: Taker) -> Named:
    width, vocabulary, types = s["width"], whole(c, "vocab_size", 30522), whole(c, "type_vocab_size", 2)
    body = prefix(take, "embeddings.LayerNorm.weight", "bert.", "roberta.", "model.")
    at = f"{body}embeddings."
    kinds = _exact(take(f"{at}token_type_embeddings.weight", types, width))
    places = _exact(take(f"{at}position_embeddings.weight", s["context"] + _first(c), width))
    yield "embed.weight", take(f"{at}word_embeddings.weight", vocabulary, width)
    yield "embed.parts.weight", torch.stack((torch.zeros_like(kinds[0]), kinds[min(1, types - 1)] - kinds[0]))
    yield "backbone.positions.table.weight", places[_first(c) :] + kinds[0]
    yield from _norm("backbone.norm", f"{at}LayerNorm", width, take)
    yield from _blocks(_BLOCK, f"{body}encoder.layer", s, take)


def distil_section(c: Json) -> Json:
    return {
        "name": "bert",
        "preset": "published",
        "width": whole(c, "dim", 768),
        "depth": whole(c, "n_layers", 6),
        "heads": whole(c, "n_heads", 12),
        "feed": whole(c, "hidden_dim", 3072),
        "context": whole(c, "max_position_embeddings", 512),
        "bend": activation(c, "activation", GELU, "gelu"),
        "eps": 1e-12,
        "tie": True,
        "dropout": number(c, "dropout", 0.1),
    }


def distil_tensors(s: Json, c: Json, take: Taker) -> Named:
    width, vocabulary = s["width"], whole(c, "vocab_size", 30522)
    body = prefix(take, "embeddings.LayerNorm.weight", "distilbert.")
    at = f"{body}embeddings."
    places = take(f"{at}position_embeddings.weight", s["context"], width)
    yield "embed.weight", take(f"{at}word_embeddings.weight", vocabulary, width)
    yield "embed.parts.weight", torch.zeros_like(places[:2])
    yield "backbone.positions.table.weight", places
    yield from _norm("backbone.norm", f"{at}LayerNorm", width, take)
    yield from _blocks(_DISTIL_BLOCK, f"{body}transformer.layer", s, take)


def _blocks(names: _Block, body: str, s: Json, take: Taker) -> Named:
    width, feed = s["width"], s["feed"]
    for n in range(s["depth"]):
        theirs, ours = _Block(*(f"{body}.{n}.{name}" for name in names)), f"backbone.blocks.{n}."
        yield from _linear(f"{ours}attention.q", [theirs.q], width, width, take)
        yield from _linear(f"{ours}attention.kv", [theirs.k, theirs.v], width, width, take)
        yield from _linear(f"{ours}attention.out", [theirs.out], width, width, take)
        yield from _norm(f"{ours}norm_1", theirs.norm_1, width, take)
        yield from _linear(f"{ours}feed.up", [theirs.up], feed, width, take)
        yield from _linear(f"{ours}feed.out", [theirs.down], width, feed, take)
        yield from _norm(f"{ours}norm_2", theirs.norm_2, width, take)


def _linear(ours: str, theirs: list[str], rows: int, columns: int, take: Taker) -> Named:
    yield f"{ours}.weight", _joined([take(f"{name}.weight", rows, columns) for name in theirs])
    yield f"{ours}.bias", _joined([take(f"{name}.bias", rows) for name in theirs])


def _norm(ours: str, theirs: str, width: int, take: Taker) -> Named:
    for part in ("weight", "bias"):
        yield f"{ours}.{part}", take(f"{theirs}.{part}", width)


def _exact(t: Tensor) -> Tensor:
    """Numbers of 16 bits are added in 32."""
    return t.float() if t.is_floating_point() else t


def _joined(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _first(c: Json) -> int:
    return int(number(c, "pad_token_id", 1)) + 1 if c["model_type"] in _LATER else 0  # 1 in all of them


def large_section(c: Json) -> Json:
    return section(c) | {"preset": "pre_norm", "context": whole(c, "max_position_embeddings", 514) - _first(c)}


def large_tensors(s: Json, c: Json, take: Taker) -> Named:
    """Pre-norm, without a norm of the embeddings."""
    width, types = s["width"], whole(c, "type_vocab_size", 1)
    body = prefix(take, "embeddings.word_embeddings.weight", "roberta.")
    at = f"{body}embeddings."
    kinds = _exact(take(f"{at}token_type_embeddings.weight", types, width))
    places = _exact(take(f"{at}position_embeddings.weight", s["context"] + _first(c), width))
    yield "embed.weight", take(f"{at}word_embeddings.weight", whole(c, "vocab_size", 250880), width)
    yield "embed.parts.weight", torch.stack((torch.zeros_like(kinds[0]), kinds[min(1, types - 1)] - kinds[0]))
    yield "backbone.positions.table.weight", places[_first(c) :] + kinds[0]
    yield from _norm("backbone.last_norm", f"{body}encoder.LayerNorm", width, take)
    yield from _blocks(_LARGE_BLOCK, f"{body}encoder.layer", s, take)


_HEADS = r"(.*\.)?(pooler|cls|lm_head|classifier|pre_classifier|qa_outputs|vocab_\w+)\..*|.*position_ids"
_FOLDED = re.compile(r".*token_type_embeddings\.weight")
LAYOUT = Layout("masked_lm", section, tensors, re.compile(_HEADS), headed=False, folded=_FOLDED)
DISTIL = Layout("masked_lm", distil_section, distil_tensors, re.compile(_HEADS), headed=False)
LARGE = LAYOUT._replace(section=large_section, tensors=large_tensors)
