"""Llama and its relatives in our `gpt`: Mistral (a window), Qwen2 (biases of q, k, v), Qwen3 (QK-norm)."""

from __future__ import annotations

import math
import re

import torch

from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.weights.layouts.layout import Layout, Named, Unfit, needs, number, prefix, whole
from seqloom.weights.tensors import Taker

_QKV_BIASES, _QK_NORMS = {"qwen2"}, {"qwen3"}


def section(c: Json) -> Json:
    width, heads, depth = (whole(c, key) for key in ("hidden_size", "num_attention_heads", "num_hidden_layers"))
    needs(c, hidden_act="silu", attention_bias=False, mlp_bias=False, partial_rotary_factor=1.0)
    kind, size = c["model_type"], whole(c, "head_dim", max(1, width // heads))
    kv_heads = whole(c, "num_key_value_heads", heads)
    if heads % kv_heads or size % 2:
        raise UserError(f"config.json: {heads} heads of size {size} with {kv_heads} key/value heads do not go together")
    return {
        "name": "gpt",
        "preset": "llama",
        "width": width,
        "depth": depth,
        "heads": heads,
        "kv_heads": kv_heads if kv_heads < heads else 0,
        "head_size": size if size * heads != width else 0,
        "feed": whole(c, "intermediate_size"),
        "context": whole(c, "max_position_embeddings", 2048),
        "window": _window(c),
        "eps": number(c, "rms_norm_eps", 1e-6),
        "qk_norm": kind in _QK_NORMS,
        "qkv_bias": kind in _QKV_BIASES or None,
        "output_bias": False,
        "tie": bool(c.get("tie_word_embeddings", False)),
        "dropout": number(c, "attention_dropout", 0.0),
        **_rotary(c),
    }


def tensors(s: Json, c: Json, take: Taker) -> Named:
    width, depth, heads = s["width"], s["depth"], s["heads"]
    size = s["head_size"] or width // heads
    rows = {"q": heads * size, "k": (s["kv_heads"] or heads) * size, "v": (s["kv_heads"] or heads) * size}
    body = prefix(take, "norm.weight", "model.")
    vocabulary = whole(c, "vocab_size")
    yield "embed.weight", take(f"{body}embed_tokens.weight", vocabulary, width)
    yield "backbone.norm.weight", take(f"{body}norm.weight", width)
    if not s["tie"]:
        yield "head.weight", take("lm_head.weight", vocabulary, width)
    for n in range(depth):
        theirs, ours = f"{body}layers.{n}.", f"backbone.blocks.{n}."
        yield f"{ours}norm_1.weight", take(f"{theirs}input_layernorm.weight", width)
        yield f"{ours}norm_2.weight", take(f"{theirs}post_attention_layernorm.weight", width)
        qkv = [take(f"{theirs}self_attn.{p}_proj.weight", count, width) for p, count in rows.items()]
        yield f"{ours}attention.qkv.weight", torch.cat(qkv)
        if s["qkv_bias"]:
            biases = [take(f"{theirs}self_attn.{p}_proj.bias", count) for p, count in rows.items()]
            yield f"{ours}attention.qkv.bias", torch.cat(biases)
        if s["qk_norm"]:
            yield f"{ours}attention.norms.0.weight", take(f"{theirs}self_attn.q_norm.weight", size)
            yield f"{ours}attention.norms.1.weight", take(f"{theirs}self_attn.k_norm.weight", size)
        yield f"{ours}attention.out.weight", take(f"{theirs}self_attn.o_proj.weight", width, rows["q"])
        gate, up = (take(f"{theirs}mlp.{p}_proj.weight", s["feed"], width) for p in ("gate", "up"))
        yield f"{ours}feed.up.weight", torch.cat((gate, up))
        yield f"{ours}feed.out.weight", take(f"{theirs}mlp.down_proj.weight", width, s["feed"])


def _window(c: Json) -> int:
    """Of all layers; some models have it in a part of them."""
    if c["model_type"].startswith("qwen") and not c.get("use_sliding_window"):
        return 0
    kinds = set(c.get("layer_types") or ())
    if len(kinds) > 1 or (c["model_type"].startswith("qwen") and kinds != {"sliding_attention"}):
        raise Unfit("a sliding window in some of the layers")
    return whole(c, "sliding_window") if c.get("sliding_window") and kinds != {"full_attention"} else 0


def _rotary(c: Json) -> Json:
    """Of both spellings: rope_theta and rope_scaling, or rope_parameters, which holds both."""
    own = c.get("rope_parameters") or {}
    scaling = c.get("rope_scaling") or own
    if not isinstance(own, dict) or not isinstance(scaling, dict):
        raise UserError("config.json: rope_scaling: must be an object")
    base = number(own if "rope_theta" in own else c, "rope_theta", 10_000.0)
    kind = str(scaling.get("rope_type", scaling.get("type", "default")))
    needs(scaling, partial_rotary_factor=1.0, truncate=True)
    if kind in ("default", "dynamic"):  # dynamic: unscaled within the context, and no longer texts are read here
        return {"rotary_base": base}
    if kind not in ("linear", "llama3", "yarn"):
        raise Unfit(f"rope_scaling of type {kind[:40]}")
    factor = max(1.0, number(scaling, "factor", 1.0))
    before = whole(scaling, "original_max_position_embeddings", whole(c, "max_position_embeddings", 2048))
    found = {"rotary_base": base, "rotary_scaling": kind, "rotary_factor": factor, "rotary_context": before}
    if kind == "llama3":
        low, high = number(scaling, "low_freq_factor", 1.0), number(scaling, "high_freq_factor", 4.0)
        found |= {"rotary_low": low, "rotary_high": high}
    if kind == "yarn":
        low, high = number(scaling, "beta_slow", 1.0) or 1.0, number(scaling, "beta_fast", 32.0) or 32.0
        found |= {"rotary_low": low, "rotary_high": high, "rotary_gain": _gain(scaling, factor)}
    return found


def _gain(scaling: Json, factor: float) -> float:
    """Of cosines and sines, with YaRN (Peng et al. 2023, section 3.4)."""
    if scaling.get("attention_factor") is not None:
        return number(scaling, "attention_factor", 1.0)
    own, every = number(scaling, "mscale", 0.0), number(scaling, "mscale_all_dim", 0.0)
    if own and every:
        return (0.1 * own * math.log(factor) + 1) / (0.1 * every * math.log(factor) + 1)
    return 0.1 * math.log(factor) + 1


LAYOUT = Layout("language_model", section, tensors, re.compile(r"lm_head\.weight|.*rotary_emb\.inv_freq"))
