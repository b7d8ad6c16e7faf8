"""CTranslate2: language models in the layouts of GPT-2 and Llama and their relatives, BERT without its output layer,
encoder-decoders (pairs_ctranslate.py); converted from a Hugging Face folder, with weights of 32 or 8 bits."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from seqloom.core.rows import Json
from seqloom.export import pairs_ctranslate
from seqloom.export.hf import CAUSAL, Form, find_body, find_form, write_folder
from seqloom.export.source import Source
from seqloom.export.target import PERPLEXITY_BAR, Written, check_difference, needing, refused

_WINDOW = 128  # tokens read at once, at most
_KEPT = ("tokenizer.json", "tokenizer_config.json")


def write(source: Source, folder: Path, int8: bool) -> Written:
    with needing("ctranslate2"):
        import ctranslate2  # noqa: F401
        import transformers  # noqa: F401
    if source.architecture == "transformer":
        return pairs_ctranslate.write(source, folder, int8)
    if source.architecture == "bert":
        return _write_encoder(source, folder, int8)
    form = find_form(source, "ctranslate2")
    if form.head is not CAUSAL:
        raise refused("ctranslate2", f"it has no output layer for {source.task.name}", "use --to hf or --to onnx")
    _check(form)
    _convert(source, form, folder, int8)
    return _compared_language_model(source, form, folder, int8)


def _check(form: Form) -> None:
    """Refuse what CTranslate2 converts and then computes otherwise."""
    c = form.config
    kind, instead = c["model_type"], "use --to hf or --to onnx"
    if c.get("sliding_window"):
        raise refused("ctranslate2", "it reads no more than one window at once (model.window)", instead)
    if "head_dim" in c and kind != "qwen3" and c["head_dim"] * c["num_attention_heads"] != c["hidden_size"]:
        raise refused(
            "ctranslate2", "it knows heads of another size (model.head_size) only with model.qk_norm", instead
        )
    rotary = c.get("rope_parameters", {}).get("rope_type", "default")
    if rotary not in ("default", "linear"):
        raise refused("ctranslate2", f"it does not scale rotary positions by {rotary} (model.rotary_scaling)", instead)


def _convert(source: Source, form: Form, folder: Path, int8: bool) -> None:
    from ctranslate2.converters import TransformersConverter

    class Converter(TransformersConverter):
        def _load(self) -> Any:
            spec = super()._load()
            if form.bias is not None:  # which CTranslate2 has, and transformers lacks
                spec.decoder.projection.bias = form.bias.float().numpy()
            return spec

    with tempfile.TemporaryDirectory(prefix="seqloom-export-") as temporary:
        write_folder(source, form, Path(temporary))
        _name_unknown(Path(temporary) / "tokenizer_config.json")
        kept = [name for name in _KEPT if (Path(temporary) / name).exists()]
        converter = Converter(temporary, copy_files=kept)
        converter.convert(str(folder), quantization="int8" if int8 else "float32", force=True)


def _name_unknown(path: Path) -> None:
    """CTranslate2 wants a token for what is unknown, although none is where every text can be encoded."""
    if path.exists():
        config = json.loads(path.read_text(encoding="utf-8"))
        config.setdefault("unk_token", config.get("eos_token"))
        path.write_text(json.dumps(config, ensure_ascii=False), encoding="utf-8")


def _compared_language_model(source: Source, form: Form, folder: Path, int8: bool) -> Written:
    import ctranslate2

    graph = ctranslate2.Generator(str(folder), compute_type="int8" if int8 else "float32")
    difference, losses, count = 0.0, np.zeros(2), 0
    for ids in _windows(source):
        with torch.no_grad():
            ours = source.model(ids[None])[0][0]
        found = torch.from_numpy(np.array(graph.forward_batch([ids.tolist()])))[0].float()
        difference = max(difference, float((ours - found).abs().max()))
        losses += [float(F.cross_entropy(x[:-1], ids[1:], reduction="sum")) for x in (ours, found)]
        count += len(ids) - 1
    ours_, theirs = np.exp(losses / max(1, count)).tolist()
    change = theirs / ours_ - 1
    facts: Json = {"layout": form.config["model_type"], "difference": difference, "compared": "logits"}
    facts["perplexity"] = {"run": ours_, "export": theirs, "change": change, "tokens": count}
    if not int8:
        check_difference(abs(change), "the perplexities", PERPLEXITY_BAR)
        check_difference(difference, "its logits")
    return Written(facts, _usage(), {"library_name": "ctranslate2", "pipeline_tag": "text-generation"})


def _windows(source: Source) -> list[Tensor]:
    ids, length = source.stream[0], min(_WINDOW, source.model.limit or _WINDOW)
    return [part for part in ids.split(length) if len(part) > 1] or [ids]


def _write_encoder(source: Source, folder: Path, int8: bool) -> Written:
    import ctranslate2

    form = find_body(source, "ctranslate2")
    if form.config["model_type"] != "bert":
        raise refused(
            "ctranslate2",
            "its BERT is post-norm",
            "train with -o model.preset=published, or use --to hf or --to onnx",
        )
    _convert(source, form, folder, int8)
    graph = ctranslate2.Encoder(str(folder), compute_type="int8" if int8 else "float32")
    inputs, mask = source.samples.batch.inputs, source.samples.batch.mask
    mask = torch.ones_like(inputs, dtype=torch.bool) if mask is None else mask
    difference = 0.0
    with torch.no_grad():
        ours = source.model.represent(inputs, mask)
    embed: Any = getattr(source.model, "embed", None)
    for n, (ids, real) in enumerate(zip(inputs, mask, strict=True)):
        row = ids[real]
        kinds = _types(embed, row)
        found = graph.forward_batch([row.tolist()], token_type_ids=None if kinds is None else [kinds])
        vectors = torch.from_numpy(np.array(found.last_hidden_state))[0].float()
        difference = max(difference, float((ours[n][real] - vectors).abs().max()))
    if not int8:
        check_difference(difference, "its hidden vectors")
    facts: Json = {"layout": "bert", "difference": difference, "compared": "hidden vectors"}
    return Written(facts, _encoder_usage(), {"library_name": "ctranslate2", "pipeline_tag": "feature-extraction"})


def _types(embed: Any, ids: Tensor) -> list[int] | None:
    if not hasattr(embed, "separators"):
        return None
    seen = embed.separators(ids[None])
    found: list[int] = (seen.cumsum(1) - seen > 0).long()[0].tolist()
    return found


def _usage() -> str:
    return """```python
import ctranslate2
from tokenizers import Tokenizer

tokenizer = Tokenizer.from_file("FOLDER/tokenizer.json")
generator = ctranslate2.Generator("FOLDER")
tokens = tokenizer.encode("the cat", add_special_tokens=False).tokens
found = generator.generate_batch([tokens], max_length=20, sampling_topk=10)
print(tokenizer.decode(found[0].sequences_ids[0]))
```"""


def _encoder_usage() -> str:
    return """The encoder alone: CTranslate2 has no output layer for this task.

```python
import ctranslate2
from tokenizers import Tokenizer

tokenizer = Tokenizer.from_file("FOLDER/tokenizer.json")
encoder = ctranslate2.Encoder("FOLDER")
ids = tokenizer.encode("the cat", add_special_tokens=False).ids
print(encoder.forward_batch([ids]).last_hidden_state)
```"""
