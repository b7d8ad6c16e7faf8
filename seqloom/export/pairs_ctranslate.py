"""Encoder-decoders for CTranslate2, written into its own specification, which holds every layout of ours."""

from __future__ import annotations

import math
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqloom.core.rows import Json
from seqloom.export.pairs_check import Examples, compare_outputs, examples, most_new, our_logits, our_outputs
from seqloom.export.pairs_hf import tokenizer_note
from seqloom.export.pairs_layout import Parts, find_parts
from seqloom.export.pairs_tokens import TARGET, check_tokenizers, names_of, write_tokenizers
from seqloom.export.source import Source
from seqloom.export.target import PERPLEXITY_BAR, Written, check_difference

_SOURCE = "tokenizer.json"


def write(source: Source, folder: Path, int8: bool) -> Written:
    parts = find_parts(source, "ctranslate2")
    write_tokenizers(source, parts.places, folder)
    check_tokenizers(source, folder)
    read = names_of(folder / _SOURCE)
    names = read, read if source.run.tokenizer.joint else names_of(folder / TARGET)
    _convert(source, parts, names, folder, int8)
    facts = _compare(source, parts.places, names, folder, int8)
    tags = {"library_name": "ctranslate2", "pipeline_tag": "translation"}
    return Written({"layout": "transformer"} | facts, _usage(source, parts.places), tags)


def _convert(source: Source, parts: Parts, names: tuple[list[str], list[str]], folder: Path, int8: bool) -> None:
    from ctranslate2.converters.converter import Converter

    class Made(Converter):
        def _load(self) -> Any:
            return _specification(source, parts, names)

    with tempfile.TemporaryDirectory(prefix="seqloom-export-") as temporary:  # it empties the folder it is given
        Made().convert(temporary, quantization="int8" if int8 else "float32", force=True)
        for path in Path(temporary).iterdir():
            shutil.move(path, folder / path.name)


def _specification(source: Source, parts: Parts, names: tuple[list[str], list[str]]) -> Any:
    from ctranslate2.specs import common_spec, transformer_spec

    c, target = parts.config, source.run.tokenizer.target
    kinds = common_spec.Activation
    spec = transformer_spec.TransformerSpec.from_config(
        (c["encoder_layers"], c["decoder_layers"]),
        c["encoder_attention_heads"],
        pre_norm=source.section["pre_norm"],
        activation=kinds.RELU if c["activation_function"] == "relu" else kinds.GELUTanh,
    )
    held = {name: tensor.contiguous().numpy() for name, tensor in parts.tensors.items()}
    scale = math.sqrt(c["d_model"]) if c["scale_embedding"] else 1.0
    spec.encoder.embeddings[0].weight = parts.read.contiguous().numpy()
    spec.decoder.embeddings.weight = parts.write.contiguous().numpy()
    spec.decoder.projection.weight = parts.out.contiguous().numpy()
    spec.decoder.projection.bias = parts.bias.numpy()
    for side, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        _put_stack(stack, held, f"model.{side}.", scale)
    spec.register_source_vocabulary(names[0])
    spec.register_target_vocabulary(names[1])
    spec.config.bos_token = spec.config.decoder_start_token = names[1][target.bos]
    spec.config.eos_token = names[1][target.eos]
    spec.config.unk_token = names[1][target.eos if target.unk is None else target.unk]  # one is asked for
    return spec


def _put_stack(stack: Any, held: dict[str, np.ndarray], prefix: str, scale: float) -> None:
    stack.scale_embeddings = scale
    stack.position_encodings.encodings = held[f"{prefix}embed_positions.weight"]
    if f"{prefix}layer_norm.weight" in held:
        _put_norm(stack.layer_norm, held, f"{prefix}layer_norm")
    for n, layer in enumerate(stack.layer):
        own = f"{prefix}layers.{n}."
        _put_attention(layer.self_attention, held, f"{own}self_attn", [("q", "k", "v")])
        if hasattr(layer, "attention"):
            _put_attention(layer.attention, held, f"{own}encoder_attn", [("q",), ("k", "v")])
        _put_linear(layer.ffn.linear_0, held, [f"{own}fc1"])
        _put_linear(layer.ffn.linear_1, held, [f"{own}fc2"])
        _put_norm(layer.ffn.layer_norm, held, f"{own}final_layer_norm")


def _put_attention(spec: Any, held: dict[str, np.ndarray], name: str, parts: list[tuple[str, ...]]) -> None:
    for linear, stacked in zip(spec.linear, [*parts, ("out",)], strict=True):
        _put_linear(linear, held, [f"{name}.{part}_proj" for part in stacked])
    _put_norm(spec.layer_norm, held, f"{name}_layer_norm")


def _put_linear(spec: Any, held: dict[str, np.ndarray], names: list[str]) -> None:
    spec.weight = np.concatenate([held[f"{name}.weight"] for name in names])
    spec.bias = np.concatenate([held[f"{name}.bias"] for name in names])


def _put_norm(spec: Any, held: dict[str, np.ndarray], name: str) -> None:
    spec.gamma, spec.beta = held[f"{name}.weight"], held[f"{name}.bias"]


def _compare(source: Source, places: int, names: tuple[list[str], list[str]], folder: Path, int8: bool) -> Json:
    import ctranslate2

    graph = ctranslate2.Translator(str(folder), compute_type="int8" if int8 else "float32")
    given = examples(source)
    read = [[names[0][id] for id in ids] for ids in given.sources]
    ours, theirs = _our_scores(source, given), _their_scores(graph, given, read, names[1])
    difference = max(float((a - b).abs().max()) for a, b in zip(ours, theirs, strict=True))
    mean = [-float(torch.cat(scores).double().mean()) for scores in (ours, theirs)]
    values = [math.exp(min(nats, 700)) for nats in mean]
    change = values[1] / values[0] - 1
    if not int8:
        check_difference(abs(change), "the perplexities", PERPLEXITY_BAR)
        check_difference(difference, "log-probabilities of target tokens")
    outputs = _outputs(graph, read, names[1], most_new(places))
    greedy = compare_outputs(source, given, our_outputs(source, given, places), outputs, strict=not int8)
    tokens = sum(map(len, ours))
    return {
        "difference": difference,
        "compared": "log-probabilities of target tokens",
        "perplexity": {"run": values[0], "export": values[1], "change": change, "tokens": tokens},
        "greedy": greedy,
    }


def _our_scores(source: Source, given: Examples) -> list[Tensor]:
    labels, real = given.labels
    found = our_logits(source, given).log_softmax(-1).gather(-1, labels[..., None])[..., 0]
    return [row[mask] for row, mask in zip(found, real, strict=True)]


def _their_scores(graph: Any, given: Examples, read: list[list[str]], names: list[str]) -> list[Tensor]:
    targets = [[names[id] for id in ids] for ids in given.targets]
    found = graph.score_batch(read, targets, max_input_length=0)
    return [torch.tensor(one.log_probs) for one in found]


def _outputs(graph: Any, read: list[list[str]], names: list[str], most: int) -> list[list[int]]:
    how = {"beam_size": 1, "max_decoding_length": most, "min_decoding_length": 0, "max_input_length": 0}
    ids = {name: id for id, name in enumerate(names)}
    return [[ids[token] for token in one.hypotheses[0]] for one in graph.translate_batch(read, **how)]


def _usage(source: Source, places: int) -> str:
    joint = source.run.tokenizer.joint
    lines = ["import ctranslate2", "from tokenizers import Tokenizer", ""]
    lines += [f'tokenizer = Tokenizer.from_file("FOLDER/{_SOURCE}")']
    lines += [f'target = {"tokenizer" if joint else f"""Tokenizer.from_file("FOLDER/{TARGET}")"""}']
    lines += ['translator = ctranslate2.Translator("FOLDER")']
    lines += ['found = translator.translate_batch([tokenizer.encode("the cat").tokens], beam_size=1)']
    lines += ["print(target.decode([target.token_to_id(token) for token in found[0].hypotheses[0]]))"]
    code = "\n".join(lines)
    return f"It reads and writes at most {places:,} tokens. {tokenizer_note(joint)}\n\n```python\n{code}\n```"
