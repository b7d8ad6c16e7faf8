"""GGUF (llama.cpp): GPT-2, Llama and their relatives with a byte-level tokenizer, in one file of 32-bit numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqloom.core.errors import RunError
from seqloom.core.rows import Json
from seqloom.export.hf import CAUSAL, Form, find_form
from seqloom.export.source import Source
from seqloom.export.target import Written, check_difference, needing, refused
from seqloom.export.tokens import check_tokenizer
from seqloom.tokenizers.tokenizer import Tokenizer
from seqloom.weights.gguf import quietly, read_gguf

FILE = "model.gguf"
_NORMAL, _CONTROL, _UNUSED = 1, 3, 5  # kinds of tokens


def write(source: Source, folder: Path, int8: bool) -> Written:
    with needing("gguf"):
        import gguf  # noqa: F401
        import transformers  # noqa: F401
    form = find_form(source, "gguf")
    own = source.tokenizer
    _check(source, form)
    assert own is not None
    path = folder / FILE
    _write(path, form, own)
    difference = _compare(source, form, path, own)
    kind = form.config["model_type"]
    usage = f"```sh\nllama-cli -m {FILE} -p 'the cat'\n```"
    return Written(
        {"layout": kind, "difference": difference, "compared": "logits"},
        usage,
        {"library_name": "gguf", "pipeline_tag": "text-generation"},
    )


def _check(source: Source, form: Form) -> None:
    config, own = form.config, source.tokenizer
    if form.head is not CAUSAL:
        raise refused("gguf", f"{source.task.name} has no output layer there", "use --to hf or --to onnx")
    if form.bias is not None:
        way = "train with -o model.output_bias=false, or use --to ctranslate2 or --to onnx"
        raise refused("gguf", "the output layer has a bias, which llama.cpp's models lack", way)
    if source.section["window"]:
        raise refused("gguf", "its models of this layout have no attention window (model.window)", "use --to hf")
    if config.get("activation_function", "gelu_new") != "gelu_new":
        raise refused(
            "gguf", f"its GPT-2 has the activation gelu, not model.bend={source.section['bend']}", "use --to hf"
        )
    if config.get("rope_parameters", {}).get("rope_type", "default") != "default":
        raise refused("gguf", "scaled rotary positions (model.rotary_scaling) are not written", "use --to hf")
    if own is None or not _is_byte_level(own):
        kind = "none" if own is None else own.kind
        raise refused(
            "gguf",
            f"a tokenizer of kind {kind} has no place in a GGUF file",
            "train with -o tokenizer.kind=bpe or bytes, or use --to hf",
        )


def _is_byte_level(own: Tokenizer) -> bool:
    """Split as GPT-2 splits, without changing the text first."""
    data = own.json if hasattr(own, "json") else json.loads(own.files()["tokenizer.json"])
    before, after = data.get("pre_tokenizer") or {}, data.get("decoder") or {}
    plain = before.get("type") == after.get("type") == "ByteLevel" and not before.get("add_prefix_space")
    whole = before.get("use_regex", True) or not data["model"].get("merges")
    return data["model"].get("type") == "BPE" and plain and whole and not data.get("normalizer")


def _write(path: Path, form: Form, own: Tokenizer) -> None:
    import gguf

    kind = form.config["model_type"]
    out = gguf.GGUFWriter(path, "llama" if kind == "llama" else kind)
    out.add_name("seqloom")
    _add_sizes(out, form.config)
    _add_tokens(out, own, form.config["vocab_size"])
    arch = {name: number for number, name in gguf.MODEL_ARCH_NAMES.items()}[kind]
    names = gguf.get_tensor_name_map(arch, _depth(form.config))
    for name, tensor in form.tensors.items():
        theirs = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if theirs is None:
            raise RunError(f"no name for {name}; nothing was written")
        out.add_tensor(theirs, _arranged(name, tensor, form.config).contiguous().numpy().astype(np.float32))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def _depth(config: Json) -> int:
    found: int = config["n_layer"] if "n_layer" in config else config["num_hidden_layers"]
    return found


def _add_sizes(out: Any, c: Json) -> None:
    out.add_block_count(_depth(c))
    out.add_vocab_size(c["vocab_size"])
    if c["model_type"] == "gpt2":
        out.add_context_length(c["n_positions"])
        out.add_embedding_length(c["n_embd"])
        out.add_feed_forward_length(c["n_inner"])
        out.add_head_count(c["n_head"])
        out.add_layer_norm_eps(c["layer_norm_epsilon"])
        return
    out.add_context_length(c["max_position_embeddings"])
    out.add_embedding_length(c["hidden_size"])
    out.add_feed_forward_length(c["intermediate_size"])
    out.add_head_count(c["num_attention_heads"])
    out.add_head_count_kv(c["num_key_value_heads"])
    out.add_key_length(c["head_dim"])
    out.add_value_length(c["head_dim"])
    out.add_rope_dimension_count(c["head_dim"])
    out.add_rope_freq_base(c["rope_parameters"]["rope_theta"])
    out.add_layer_norm_rms_eps(c["rms_norm_eps"])


def _add_tokens(out: Any, own: Tokenizer, rows: int) -> None:
    data = json.loads(own.files()["tokenizer.json"])
    names = {id: token for token, id in data["model"]["vocab"].items()}
    names |= {token["id"]: token["content"] for token in data.get("added_tokens", ())}
    kinds = [_UNUSED if id not in names else _CONTROL if id in own.specials else _NORMAL for id in range(rows)]
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("gpt-2")
    out.add_token_list([names.get(id, f"<unused_{id}>") for id in range(rows)])
    out.add_token_types(kinds)
    if merges := data["model"].get("merges", ()):
        out.add_token_merges([pair if isinstance(pair, str) else " ".join(pair) for pair in merges])
    else:  # transformers then looks for merges in the scores, and finds none
        out.add_token_scores([0.0] * rows)
    out.add_bos_token_id(own.bos)
    out.add_eos_token_id(own.eos)
    out.add_pad_token_id(own.pad)
    if own.unk is not None:
        out.add_unk_token_id(own.unk)
    out.add_add_bos_token(bool(own.opening))


def _arranged(name: str, tensor: Tensor, c: Json) -> Tensor:
    """Llama's queries and keys turn in neighbouring pairs there, in halves here; GPT-2's maps are stored transposed."""
    if c["model_type"] == "gpt2":
        return tensor.t() if tensor.dim() == 2 and ".h." in name else tensor
    if c["model_type"] == "llama" and ("q_proj" in name or "k_proj" in name):
        heads = c["num_attention_heads" if "q_proj" in name else "num_key_value_heads"]
        return tensor.view(heads, 2, -1, *tensor.shape[1:]).transpose(1, 2).reshape(tensor.shape)
    return tensor


def _compare(source: Source, form: Form, path: Path, own: Tokenizer) -> float:
    """Read by our own reader, whose tensors must be ours, and by transformers, whose logits are compared."""
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    found = read_gguf(path, path.name)
    for name, tensor in form.tensors.items():
        if not torch.equal(found.tensors.load(name), tensor):
            raise RunError(f"{name} is another after reading it again; nothing was written")
    how: Json = {"gguf_file": path.name, "trust_remote_code": False}
    with quietly():
        check_tokenizer(AutoTokenizer.from_pretrained(path.parent, **how), own, source.texts)
        if form.config["model_type"] == "qwen3":  # of which transformers does not read the size of a head
            how["config"] = AutoConfig.for_model(**found.config)
        model = AutoModelForCausalLM.from_pretrained(path.parent, dtype=torch.float32, **how).eval()
    inputs = source.samples.batch.inputs
    with torch.no_grad():
        apart = source.model(inputs)[0] - model(input_ids=inputs).logits
    return check_difference(float(apart.abs().max()), "its logits")
