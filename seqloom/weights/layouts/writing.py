"""From the options of our models to the config.json of a public layout that holds them exactly, or the reason why none
does: the other direction of `Layout.section`."""

from __future__ import annotations

from typing import Any

import torch

from seqloom.core.rows import Json
from seqloom.weights.layouts.layout import GELU, Unfit

_THEIRS = {ours: theirs for theirs, ours in reversed(GELU.items())}  # activations
_SCALED = ("rotary_factor", "rotary_context", "rotary_low", "rotary_high", "rotary_gain")


def gpt_config(s: Json, rows: int, feed: int) -> Json:
    """`s`: model section; `rows`: of the embedding; `feed`: hidden size of the feed-forward network."""
    if not s["pre_norm"]:
        raise Unfit("post-norm blocks (model.pre_norm=false)")
    kind = s["positions"], s["norm"], s["gated"], s["bias"]
    if kind == ("learned", "layer", False, True):
        return _gpt2(s, rows, feed)
    if kind == ("rotary", "rms", True, False):
        return _llama(s, rows, feed)
    names = ("positions", "norm", "gated", "bias")
    mixed = ", ".join(f"model.{name}={value}".lower() for name, value in zip(names, kind, strict=True))
    raise Unfit(f"{mixed}: neither GPT-2 (learned, layer, false, true) nor Llama (rotary, rms, true, false)")


def _gpt2(s: Json, rows: int, feed: int) -> Json:
    if s["window"] or s["qk_norm"] or s["kv_heads"] or s["head_size"] or s["qkv_bias"] is False:
        raise Unfit("learned positions with model.window, qk_norm, kv_heads, head_size or qkv_bias: GPT-2 has none")
    return {
        "model_type": "gpt2",
        "vocab_size": rows,
        "n_embd": s["width"],
        "n_layer": s["depth"],
        "n_head": s["heads"],
        "n_inner": feed,
        "n_positions": s["context"],
        "activation_function": _THEIRS[s["bend"]],
        "layer_norm_epsilon": s["eps"] or 1e-5,
        "tie_word_embeddings": s["tie"],
        **dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), s["dropout"]),
    }


def _llama(s: Json, rows: int, feed: int) -> Json:
    size = s["head_size"] or s["width"] // s["heads"]
    found = {
        "model_type": _family(s),
        "vocab_size": rows,
        "hidden_size": s["width"],
        "num_hidden_layers": s["depth"],
        "num_attention_heads": s["heads"],
        "num_key_value_heads": s["kv_heads"] or s["heads"],
        "head_dim": size,
        "intermediate_size": feed,
        "max_position_embeddings": s["context"],
        "rms_norm_eps": s["eps"] or torch.finfo(torch.float32).eps,
        "tie_word_embeddings": s["tie"],
        "attention_dropout": s["dropout"],
        "rope_parameters": _rotary(s),
    }
    return found | _window(found["model_type"], s)


def _family(s: Json) -> str:
    biased = bool(s["qkv_bias"])
    if s["qk_norm"] and biased:
        raise Unfit("model.qk_norm together with model.qkv_bias")
    if s["window"] and not (s["qk_norm"] or biased):
        return "mistral"
    return "qwen3" if s["qk_norm"] else "qwen2" if biased else "llama"


def _window(kind: str, s: Json) -> Json:
    if kind == "mistral":
        return {"sliding_window": s["window"]}
    if not kind.startswith("qwen"):
        return {}
    if not s["window"]:
        return {"use_sliding_window": False}
    every = ["sliding_attention"] * s["depth"]
    return {"use_sliding_window": True, "sliding_window": s["window"], "max_window_layers": 0, "layer_types": every}


def _rotary(s: Json) -> Json:
    kind, found = s["rotary_scaling"], {"rope_theta": s["rotary_base"]}
    if kind == "none":
        return {"rope_type": "default", **found}
    factor, before, low, high, gain = (s[name] for name in _SCALED)
    found |= {"rope_type": kind, "factor": factor}
    if kind == "linear":
        return found
    found["original_max_position_embeddings"] = before
    if kind == "llama3":
        return found | {"low_freq_factor": low, "high_freq_factor": high}
    return found | {"beta_slow": low, "beta_fast": high, "attention_factor": gain}


def bert_config(s: Json, rows: int, feed: int, pad: int) -> Json:
    """BERT is post-norm; XLM-RoBERTa-XL is pre-norm without a norm of the embeddings, as our default is."""
    if s["positions"] != "learned":
        raise Unfit(f"model.positions={s['positions']}: BERT learns its positions")
    if not s["bias"]:
        raise Unfit("model.bias=false: BERT has biases")
    found: dict[str, Any] = {
        "model_type": "bert",
        "vocab_size": rows,
        "hidden_size": s["width"],
        "num_hidden_layers": s["depth"],
        "num_attention_heads": s["heads"],
        "intermediate_size": feed,
        "max_position_embeddings": s["context"],
        "hidden_act": _THEIRS[s["bend"]],
        "layer_norm_eps": s["eps"],
        "hidden_dropout_prob": s["dropout"],
        "attention_probs_dropout_prob": 0.0,
        "position_embedding_type": "absolute",  # the only kind of newer versions, and asked for by CTranslate2
        "type_vocab_size": 2,
        "pad_token_id": pad,
    }
    if s["pre_norm"]:
        return found | {
            "model_type": "xlm-roberta-xl",
            "max_position_embeddings": s["context"] + pad + 1,
            "type_vocab_size": 1,
        }
    return found
