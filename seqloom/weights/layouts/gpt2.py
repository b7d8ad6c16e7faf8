"""GPT-2 in our `gpt`. Its linear maps are stored transposed."""

from __future__ import annotations

import re

from seqloom.core.rows import Json
from seqloom.weights.layouts.layout import GELU, Layout, Named, activation, needs, number, prefix, whole
from seqloom.weights.tensors import Taker

_LINEAR = {"attn.c_attn": "attention.qkv", "attn.c_proj": "attention.out", "mlp.c_fc": "feed.up"}
_LINEAR |= {"mlp.c_proj": "feed.out"}


def section(c: Json) -> Json:
    needs(c, scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False, add_cross_attention=False)
    width = whole(c, "n_embd", 768)
    return {
        "name": "gpt",
        "preset": "gpt2",
        "width": width,
        "depth": whole(c, "n_layer", 12),
        "heads": whole(c, "n_head", 12),
        "feed": whole(c, "n_inner", 4 * width),
        "context": whole(c, "n_positions", 1024),
        "bend": activation(c, "activation_function", GELU, "gelu_new"),
        "eps": number(c, "layer_norm_epsilon", 1e-5),
        "output_bias": False,
        "tie": bool(c.get("tie_word_embeddings", True)),
        "dropout": number(c, "resid_pdrop", 0.1),
    }


def tensors(s: Json, c: Json, take: Taker) -> Named:
    width, vocabulary = s["width"], whole(c, "vocab_size", 50257)
    body = prefix(take, "wte.weight", "transformer.")
    yield "embed.weight", take(f"{body}wte.weight", vocabulary, width)
    if not s["tie"]:
        yield "head.weight", take("lm_head.weight", vocabulary, width)
    yield "backbone.positions.table.weight", take(f"{body}wpe.weight", s["context"], width)
    shapes = {"attention.qkv": (3 * width, width), "attention.out": (width, width)}
    shapes |= {"feed.up": (s["feed"], width), "feed.out": (width, s["feed"])}
    for n in range(s["depth"]):
        for theirs, ours in _LINEAR.items():
            rows, columns = shapes[ours]
            yield f"backbone.blocks.{n}.{ours}.weight", take(f"{body}h.{n}.{theirs}.weight", columns, rows).t()
            yield f"backbone.blocks.{n}.{ours}.bias", take(f"{body}h.{n}.{theirs}.bias", rows)
        for theirs, ours in {"ln_1": "norm_1", "ln_2": "norm_2"}.items():
            for part in ("weight", "bias"):
                yield f"backbone.blocks.{n}.{ours}.{part}", take(f"{body}h.{n}.{theirs}.{part}", width)
    for part in ("weight", "bias"):
        yield f"backbone.norm.{part}", take(f"{body}ln_f.{part}", width)


LAYOUT = Layout("language_model", section, tensors, re.compile(r"lm_head\.weight|.*\.attn\.(masked_)?bias"))
