"""The body of a model of Hugging Face transformers, which reads vectors instead of token ids.

Its table of token embeddings is replaced by a module that hands over the vectors at hand, so everything that the model
does to embeddings (scaling, adding positions, normalising) stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn

from seqloom.core.backbone import Kind
from seqloom.core.errors import UserError

# Settings of a configuration that name code or kernels to load, or belong to the tool that saved it.
_DROPPED = {
    "auto_map", "attn_implementation", "_attn_implementation", "use_kernels", "quantization_config", "dtype",
    "torch_dtype", "_name_or_path", "_model_name_or_path", "transformers_version", "architectures", "model_type",
}  # fmt: skip


class Handed(nn.Module):
    """Stands for a table of embeddings: returns the vectors that were handed over, scaled as the table scales."""

    def __init__(self, scale: float | Tensor = 1.0) -> None:
        super().__init__()
        self.scale: Tensor
        self.register_buffer("scale", torch.as_tensor(scale), persistent=False)
        self.vectors: Tensor | None = None

    def forward(self, ids: Tensor) -> Tensor:
        assert self.vectors is not None
        return self.vectors * self.scale


def configuration(architecture: str, options: Mapping[str, Any], **changes: Any) -> Any:
    """The configuration of an architecture, by the name that transformers gives it (model_type)."""
    try:
        from transformers import AutoConfig
    except ImportError:
        raise UserError("model pretrained needs the transformers package: pip install 'seqloom[pretrained]'") from None
    own = {key: value for key, value in options.items() if key not in _DROPPED}
    try:
        found = AutoConfig.for_model(architecture, **own)
        for key, value in changes.items():
            setattr(found, key, value)
    except Exception as error:
        reason = " ".join(str(error).split())[:120]
        raise UserError(f"model.architecture={architecture}: transformers does not make it: {reason}") from None
    return found


def dropouts(config: Any) -> dict[str, float]:
    """The settings that are probabilities of dropout, or of leaving out a layer, and not zero."""
    names = ("dropout", "pdrop", "layerdrop")
    found = {key: value for key, value in config.to_dict().items() if any(name in key for name in names)}
    return {key: value for key, value in found.items() if type(value) in (int, float) and value > 0}


def kind_of(config: Any) -> Kind:
    from transformers.models.auto import modeling_auto as auto

    if config.is_encoder_decoder:
        return "encoder-decoder"
    name = config.model_type
    masked = name in auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES and not getattr(config, "is_decoder", False)
    return "causal" if name in auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and not masked else "bidirectional"


def make_body(config: Any) -> nn.Module:
    """A new model without its token embeddings."""
    from transformers import AutoModel

    config.vocab_size = 1 + max(0, getattr(config, "pad_token_id", None) or 0)  # the table is thrown away
    try:
        body: nn.Module = AutoModel.from_config(config)
    except Exception as error:
        reason = " ".join(str(error).split())[:120]
        raise UserError(f"model.architecture={config.model_type}: transformers does not make it: {reason}") from None
    if kind_of(config) == "causal" and "past_key_values" not in signature(body.forward).parameters:
        raise UserError(f"model.architecture={config.model_type}: it does not remember by keys and values")
    return without_table(body)


def without_table(body: Any) -> nn.Module:
    """The same model with its token embeddings, wherever they are used, replaced by `Handed`; and without layers for
    outputs that nothing here reads."""
    table = body.get_input_embeddings()
    for part in list(body.modules()):
        for name, child in list(part.named_children()):
            if child is table or (isinstance(child, nn.Embedding) and child.weight is table.weight):
                setattr(part, name, Handed(getattr(child, "embed_scale", 1.0)))
    if getattr(body, "pooler", None) is not None:
        body.pooler = None
    found: nn.Module = body
    return found


def hand(body: nn.Module, x: Tensor) -> None:
    for part in body.modules():
        if isinstance(part, Handed):
            part.vectors = x


def take_back(body: nn.Module) -> None:
    """So that nothing keeps the vectors alive."""
    for part in body.modules():
        if isinstance(part, Handed):
            part.vectors = None


def some_ids(x: Tensor, mask: Tensor | None, pad: int | None) -> Tensor:
    """Ids in place of vectors (B, T, ...): some models count positions by which ids are padding."""
    pad = 0 if pad is None else pad
    ids = torch.full(x.shape[:2], 0 if pad else 1, device=x.device)
    return ids if mask is None else ids.masked_fill(~mask, pad)


def limit_of(config: Any, body: nn.Module) -> int | None:
    """The most tokens that it reads; tables that count from the one after padding are shorter than they look."""
    most = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    if not isinstance(most, int) or most < 1:
        return None
    tables = [part for part in body.modules() if isinstance(part, nn.Embedding) and part.num_embeddings == most]
    lost = max((part.padding_idx + 1 for part in tables if part.padding_idx is not None), default=0)
    return most - lost


def parse_options(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ValueError("must be a JSON object, like the config.json of transformers")
    if "auto_map" in found:
        raise ValueError("auto_map names code of its own, which is not run here")
    return found
