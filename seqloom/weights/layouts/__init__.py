"""Public layouts that fit our own models, by the model_type of their config.json."""

from __future__ import annotations

from seqloom.weights.layouts import bert, gpt2, llama
from seqloom.weights.layouts.layout import Layout

LAYOUTS: dict[str, Layout] = {
    "llama": llama.LAYOUT,
    "mistral": llama.LAYOUT,
    "qwen2": llama.LAYOUT,
    "qwen3": llama.LAYOUT,
    "gpt2": gpt2.LAYOUT,
    "bert": bert.LAYOUT,
    "roberta": bert.LAYOUT,
    "xlm-roberta": bert.LAYOUT,
    "camembert": bert.LAYOUT,
    "xlm-roberta-xl": bert.LARGE,
    "distilbert": bert.DISTIL,
}
