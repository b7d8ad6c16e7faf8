"""What has no layout of ours: transformers loads it, after our checks of its files; our model `pretrained` wraps it.

The wrapped model is compared with the original on a few tokens before it is used: an architecture that does something
with its embeddings or outputs that the wrapper does not know is refused, not silently wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json
from seqloom.layers.wrapped import configuration, dropouts, kind_of, make_body
from seqloom.weights.files import Folder
from seqloom.weights.tensors import Tensors

_TASKS = {"causal": "language_model", "bidirectional": "masked_lm", "encoder-decoder": "translation"}
_LAYERS = {
    "num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers", "num_decoder_layers",
    "num_encoder_layers",
}  # fmt: skip
_MOST = 10_000_000  # of any number that decides how many parts are built
_TOKENS, _PIECE = 12, 5  # read to compare
_TOLERANCE = 1e-3  # of the largest output

Verify = Callable[[SequenceModel], None]


class Wrapping(NamedTuple):
    section: Json
    task: str
    headed: bool
    tensors: dict[str, Tensor]
    verify: Verify


def wrap(folder: Folder, config: Json, tensors: Tensors) -> Wrapping:
    made = _configuration(folder, config, len(tensors.shapes))
    kind = kind_of(made)
    for name in tensors.shapes:
        tensors.load(name)  # refuses what is not finite, or not a floating-point number
    full = _loaded(folder, made, kind)
    table, outputs = full.get_input_embeddings(), None if kind == "bidirectional" else full.get_output_embeddings()
    bias = _bias(full, outputs)
    tied = outputs is not None and outputs.weight.data_ptr() == table.weight.data_ptr()
    section = {
        "name": "pretrained",
        "architecture": config["model_type"],
        "config": json.dumps(config),
        "width": made.hidden_size,
        "output_bias": bias is not None,
        "output_scale": _output_scale(made),
        "tie": tied or kind == "bidirectional",
        "dropout": max(dropouts(made).values(), default=0.0),
    }
    found = {"embed.weight": table.weight.detach().clone()}
    if outputs is not None and not tied:
        found["head.weight"] = outputs.weight.detach().clone()
    if bias is not None:
        found["head.bias"] = bias
    reference, every = _reference(full, kind), full.base_model.state_dict()
    for name in _body_names(folder, made):
        if name not in every:
            raise folder.refused(f"{name} is not where it was expected")
        found[f"backbone.body.{name}"] = every[name].detach().clone()
    return Wrapping(section, _TASKS[kind], outputs is not None, found, lambda model: _compare(model, reference, folder))


def _body_names(folder: Folder, config: Any) -> list[str]:
    """The names of what the wrapped body holds."""
    try:
        with torch.device("meta"):
            return list(make_body(config).state_dict())
    except UserError as error:
        raise folder.refused(str(error)) from None


def _configuration(folder: Folder, config: Json, count: int) -> Any:
    for key, value in config.items():
        if type(value) is int and value > _MOST:
            raise folder.refused(f"config.json: {key}={value:,}: too large")
    layers = [config[key] for key in _LAYERS if type(config.get(key)) is int]
    if max(layers, default=0) > count:
        raise folder.refused(f"config.json asks for {max(layers):,} layers, but there are {count:,} tensors")
    if folder.find("adapter_config.json") is not None:
        raise folder.refused("an adapter, not a model; merge it into its model first")
    try:
        return configuration(str(config.get("model_type")), config)
    except UserError as error:
        raise folder.refused(str(error)) from None


def _loaded(folder: Folder, config: Any, kind: str) -> Any:
    import transformers

    classes = {"causal": transformers.AutoModelForCausalLM, "encoder-decoder": transformers.AutoModelForSeq2SeqLM}
    logging: Any = transformers.utils.logging
    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        model, info = classes.get(kind, transformers.AutoModel).from_pretrained(
            str(folder.path), config=config, dtype=torch.float32, use_safetensors=True, local_files_only=True,
            trust_remote_code=False, output_loading_info=True, low_cpu_mem_usage=True,
        )  # fmt: skip
    except Exception as error:
        raise folder.refused(f"transformers cannot load it: {' '.join(str(error).split())[:160]}") from None
    finally:
        logging.set_verbosity(before[0])
        if before[1]:
            logging.enable_progress_bar()
    missing = [name for name in info["missing_keys"] if "pooler" not in name]
    strange = list(info["unexpected_keys"]) if kind != "bidirectional" else []
    wrong = [*missing, *strange, *(entry[0] for entry in info["mismatched_keys"])]
    if wrong:
        raise folder.refused(
            f"{len(wrong)} tensors are missing, of another shape or not part of it, such as {wrong[0]}"
        )
    return model.eval()


def _bias(full: Any, outputs: Any) -> Tensor | None:
    """Of the output layer; some models keep it beside that layer."""
    own = getattr(outputs, "bias", None)
    own = getattr(full, "final_logits_bias", None) if own is None and outputs is not None else own
    return None if own is None or not bool(own.any()) else own.detach().clone().flatten()


def _output_scale(config: Any) -> float:
    """T5 with shared embeddings makes its outputs smaller before the output layer."""
    old = config.model_type in ("t5", "mt5", "longt5", "switch_transformers") and config.tie_word_embeddings
    return float(config.hidden_size**-0.5) if getattr(config, "scale_decoder_outputs", old) else 1.0


def _reference(full: Any, kind: str) -> tuple[Tensor, Tensor]:
    """Some tokens, and what the original model answers to them; for two texts, the second after the first."""
    size = full.get_input_embeddings().num_embeddings
    ids = torch.randint(min(4, size - 1), size, (2, _TOKENS), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        if kind == "encoder-decoder":
            return ids, full(input_ids=ids[:1], decoder_input_ids=ids[1:]).logits
        found = full(input_ids=ids)
        return ids, found.logits if kind == "causal" else found.last_hidden_state


@torch.inference_mode()
def _compare(model: SequenceModel, reference: tuple[Tensor, Tensor], folder: Folder) -> None:
    """Raise unless the model answers as the original did, at once and in pieces."""
    ids, wanted = reference
    try:
        found = _answers(model, ids)
    except Exception as error:
        reason = " ".join(str(error).split())[:120]
        raise folder.refused(f"this architecture cannot be wrapped: {reason}") from None
    for output in found:
        worst = float((output - wanted).abs().max())
        if not worst <= _TOLERANCE * max(1.0, float(wanted.abs().max())):
            raise folder.refused(f"this architecture cannot be wrapped: its outputs would differ by {worst:.3g}")


def _answers(model: SequenceModel, ids: Tensor) -> list[Tensor]:
    if model.kind == "bidirectional":
        return [model.represent(ids)]
    state, inputs = (model.begin(ids[:1]), ids[1:]) if model.kind == "encoder-decoder" else (None, ids)
    first, after = model(inputs[:, :_PIECE], state)
    pieces = torch.cat((first, model(inputs[:, _PIECE:], after)[0]), dim=1)
    return [model(inputs, state)[0], pieces]
