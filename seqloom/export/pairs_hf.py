"""Encoder-decoders as Hugging Face folders: Pegasus (pre-norm), Marian (post-norm), Blenderbot (learned positions)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from seqloom.core.errors import RunError
from seqloom.core.rows import Json
from seqloom.export.pairs_check import Examples, compare_outputs, examples, most_new, our_logits, our_outputs
from seqloom.export.pairs_layout import Parts, find_parts
from seqloom.export.pairs_tokens import TARGET, check_tokenizers, write_tokenizers
from seqloom.export.source import Source
from seqloom.export.target import Written, check_difference, needing, refused

_CLASSES = {  # by pre-norm and positions: the class, and its model_type
    (True, "sinusoidal"): ("PegasusForConditionalGeneration", "pegasus"),
    (True, "learned"): ("BlenderbotForConditionalGeneration", "blenderbot"),
    (False, "sinusoidal"): ("MarianMTModel", "marian"),
}
_NEVER = -1e9  # bias of a token that is none: vocabularies of two sizes are filled up to one
_NEW = 256  # tokens written where nothing else is asked for


def write(source: Source, folder: Path) -> Written:
    with needing("hf"):
        import transformers  # noqa: F401
    parts = find_parts(source, "hf")
    kind = source.section["pre_norm"], source.section["positions"]
    if kind not in _CLASSES:
        raise refused(
            "hf",
            "no class of transformers is post-norm with learned positions and no norm of the embeddings",
            "use --to ctranslate2 or --to onnx",
        )
    name, layout = _CLASSES[kind]
    config, tensors = (_marian if layout == "marian" else _filled)(parts)
    config |= {"model_type": layout, "architectures": [name]}
    _write_model(config, parts.tensors | tensors, folder)
    return finish(source, config, parts.places, folder)


def finish(source: Source, config: Json, places: int, folder: Path) -> Written:
    """Add what else it takes to use the model in a folder; compare. `places`: tokens it reads or writes, at most."""
    from transformers import GenerationConfig

    name, target = config["architectures"][0], source.run.tokenizer.target
    ids = {"bos_token_id": target.bos, "eos_token_id": target.eos, "pad_token_id": target.pad}
    longest = min(source.run.config.task.get("max_new") or _NEW, max(1, places - 1))
    GenerationConfig(max_new_tokens=longest, decoder_start_token_id=target.bos, **ids).save_pretrained(folder)
    write_tokenizers(source, places, folder)
    check_tokenizers(source, folder)
    facts = {"class": name, "layout": config["model_type"], **_compare(source, folder, places)}
    tags = {"library_name": "transformers", "pipeline_tag": "translation"}
    return Written(facts, _usage(source, name, places), tags)


def _marian(parts: Parts) -> tuple[Json, dict[str, Tensor]]:
    """Two vocabularies of any size, tied or not."""
    config = parts.config | {"vocab_size": len(parts.read), "decoder_vocab_size": len(parts.write)}
    config |= {"share_encoder_decoder_embeddings": parts.shared, "tie_word_embeddings": parts.out is parts.write}
    made = {"final_logits_bias": parts.bias[None]}
    if parts.shared:
        return config, made | {"model.shared.weight": parts.read}
    made |= {"model.encoder.embed_tokens.weight": parts.read, "model.decoder.embed_tokens.weight": parts.write}
    return config, made if parts.out is parts.write else made | {"lm_head.weight": parts.out}


def _filled(parts: Parts) -> tuple[Json, dict[str, Tensor]]:
    """One number of tokens for both sides; tables are tied all together or not at all."""
    size = max(len(parts.read), len(parts.write))
    config = parts.config | {"vocab_size": size, "tie_word_embeddings": parts.shared}
    made = {"final_logits_bias": F.pad(parts.bias, (0, size - len(parts.bias)), value=_NEVER)[None]}
    if parts.shared:
        return config, made | {"model.shared.weight": parts.read}
    tables = {"model.shared": parts.read, "model.encoder.embed_tokens": parts.read}
    tables |= {"model.decoder.embed_tokens": parts.write, "lm_head": parts.out}
    return config, made | {f"{name}.weight": F.pad(t, (0, 0, 0, size - len(t))) for name, t in tables.items()}


def _write_model(config: Json, tensors: dict[str, Tensor], folder: Path) -> None:
    from safetensors.torch import save_file
    from transformers import AutoConfig

    config = config | ({"encoder_no_repeat_ngram_size": 0} if config["model_type"] == "blenderbot" else {})
    AutoConfig.for_model(**config).save_pretrained(folder)
    own = {name: tensor.contiguous().clone() for name, tensor in tensors.items()}
    save_file(own, folder / "model.safetensors", {"format": "pt"})


def _compare(source: Source, folder: Path, places: int) -> Json:
    theirs, given = _load(folder), examples(source)
    context, mask = given.context
    real = given.labels[1]
    with torch.no_grad():
        found = theirs(input_ids=context, attention_mask=mask.long(), decoder_input_ids=given.inputs).logits
    ours = our_logits(source, given)
    difference = check_difference(float((ours - found[..., : ours.size(-1)])[real].abs().max()), "its logits")
    outputs = _outputs(theirs, given, places)
    greedy = compare_outputs(source, given, our_outputs(source, given, places), outputs, strict=True)
    return {"difference": difference, "compared": "logits", "greedy": greedy}


def _load(folder: Path) -> Any:
    from transformers import AutoModelForSeq2SeqLM

    model: Any
    model, said = AutoModelForSeq2SeqLM.from_pretrained(folder, output_loading_info=True, trust_remote_code=False)
    wrong = {kind: names for kind, names in said.items() if names and kind != "error_msgs"}
    if wrong:
        raise RunError(f"transformers does not find its weights: {json.dumps(wrong, default=sorted)[:200]}")
    return model.eval()


def _outputs(theirs: Any, given: Examples, places: int) -> list[list[int]]:
    context, mask = given.context
    made = theirs.generate(
        input_ids=context, attention_mask=mask.long(), max_new_tokens=most_new(places), do_sample=False, num_beams=1
    )
    rows = [row[1:] for row in made.tolist()]
    return [row[: row.index(given.end)] if given.end in row else row for row in rows]


def _usage(source: Source, name: str, places: int) -> str:
    joint = source.run.tokenizer.joint
    lines = ["from transformers import AutoModelForSeq2SeqLM, AutoTokenizer"]
    lines += [] if joint else ["from tokenizers import Tokenizer"]
    lines += ["", 'model = AutoModelForSeq2SeqLM.from_pretrained("FOLDER")']
    lines += ['tokenizer = AutoTokenizer.from_pretrained("FOLDER")']
    lines += [] if joint else [f'target = Tokenizer.from_file("FOLDER/{TARGET}")']
    lines += ['outputs = model.generate(**tokenizer("the cat", return_tensors="pt"), max_new_tokens=20)']
    lines += [
        "print(tokenizer.decode(outputs[0], skip_special_tokens=True))"
        if joint
        else "print(target.decode(outputs[0].tolist()))"
    ]
    code = "\n".join(lines)
    return (
        f"The class is `{name}`; the folder needs no code of its own. It reads and writes at most {places:,} tokens. "
        f"{tokenizer_note(joint)}\n\n```python\n{code}\n```"
    )


def tokenizer_note(joint: bool) -> str:
    if joint:
        return "One tokenizer serves both sides; it ends every text, as the model was trained."
    return (
        f"The folder's tokenizer reads sources, and ends them as the model was trained; outputs have a vocabulary of "
        f"their own, in `{TARGET}`: the folder's tokenizer cannot give them back."
    )
