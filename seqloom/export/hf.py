"""Hugging Face folders: config.json, model.safetensors and a tokenizer, which plain transformers loads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from seqloom.core.errors import RunError
from seqloom.core.rows import Json
from seqloom.export import pairs_hf
from seqloom.export.pairs_layout import PLACES
from seqloom.export.source import Source
from seqloom.export.target import Written, check_difference, needing, refused
from seqloom.export.tokens import check_tokenizer, tokenizer_files
from seqloom.export.wrapped_hf import write_wrapped
from seqloom.weights.layouts import LAYOUTS
from seqloom.weights.layouts.inverse import to_theirs
from seqloom.weights.layouts.layout import Unfit
from seqloom.weights.layouts.writing import bert_config, gpt_config

INSTEAD = "--to onnx holds every architecture that learns by gradient descent"


class Head(NamedTuple):
    """The output layer of a task in transformers."""

    auto: str  # AutoModelFor...
    suffix: str  # of the class
    ours: str  # name of the linear layer
    theirs: str


class Form(NamedTuple):
    """A model in a public layout: its configuration, without and with what depends on the task, and its tensors."""

    config: Json
    tensors: dict[str, Tensor]
    head: Head
    bias: Tensor | None = None  # of the output layer over a vocabulary, which transformers' classes lack


CAUSAL = Head("AutoModelForCausalLM", "ForCausalLM", "head", "lm_head")
TOKENS = Head("AutoModelForTokenClassification", "ForTokenClassification", "head", "classifier")
HEADS = {
    "masked_lm": TOKENS,
    "tagging": TOKENS._replace(ours="head.out"),
    "question_answering": Head("AutoModelForQuestionAnswering", "ForQuestionAnswering", "head", "qa_outputs"),
}
_CLASSES = {"gpt2": "GPT2", "llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3", "bert": "Bert"}
_CLASSES |= {"xlm-roberta-xl": "XLMRobertaXL"}
_SCORE = ("llama", "mistral", "qwen2", "qwen3")  # where the output layer per token is called `score`
_TYPES = {"language_model": "text-generation", "question_answering": "question-answering"}


def write(source: Source, folder: Path, int8: bool) -> Written:
    if source.architecture == "transformer":
        return pairs_hf.write(source, folder)
    if source.architecture == "pretrained":
        return _write_wrapped(source, folder)
    form = find_form(source, "hf")
    if form.bias is not None:
        raise refused(
            "hf",
            f"the output layer has a bias, which {form.config['architectures'][0]} lacks",
            "train with -o model.output_bias=false, or use --to onnx or, for a language model, --to ctranslate2",
        )
    write_folder(source, form, folder)
    return _compared(source, form, folder)


def _write_wrapped(source: Source, folder: Path) -> Written:
    config = write_wrapped(source, folder)
    if source.task.name == "translation":
        return pairs_hf.finish(source, config, source.model.limit or PLACES, folder)
    write_tokenizer(source, folder)
    return _compared(source, Form(config, {}, CAUSAL), folder)


def _compared(source: Source, form: Form, folder: Path) -> Written:
    difference, name = compare(source, form, folder), form.config["architectures"][0]
    return Written(
        {"class": name, "layout": form.config["model_type"], "difference": difference, "compared": "logits"},
        _usage(form, name),
        {"library_name": "transformers", "pipeline_tag": _TYPES.get(source.task.name, "token-classification")},
    )


BODY = Head("AutoModel", "Model", "", "")


def find_body(source: Source, target: str) -> Form:
    """The same without the output layer, whatever the task."""
    try:
        return _form(source, BODY)
    except Unfit as reason:
        raise refused(target, str(reason), INSTEAD) from None


def find_form(source: Source, target: str) -> Form:
    """Raises if no public layout holds the run exactly. The output bias of a language model is given beside."""
    if source.architecture == "pretrained":
        raise refused(target, "a wrapped model has the layout of a class of transformers", "use --to hf")
    try:
        if source.architecture == "transformer":
            raise Unfit("it holds no encoder with a decoder")
        if source.architecture not in ("gpt", "bert"):
            raise Unfit(f"{source.architecture} has no layout in transformers (gpt, bert and transformer have)")
        return _form(source, _head(source))
    except Unfit as reason:
        raise refused(target, str(reason), INSTEAD) from None


def _form(source: Source, head: Head) -> Form:
    section, tensors = source.section, source.tensors
    rows, feed = _rows(source), tensors["backbone.blocks.0.feed.out.weight"].size(1)
    if source.architecture == "gpt":
        config = gpt_config(section, rows, feed)
    else:
        config = bert_config(section, rows, feed, _pad(source))
    config |= _identity(source, config, head)
    own = ("embed.weight", "embed.parts.weight", "backbone.", "head.")
    if strange := [name for name in tensors if not name.startswith(own)]:
        raise Unfit(f"{strange[0]} has no place in it")
    layout = LAYOUTS[config["model_type"]]
    made = to_theirs(layout, layout.section(config), config, tensors)
    bias = None
    if head is CAUSAL:
        found = tensors.get("head.bias")
        bias = found if found is not None and bool(found.any()) else None
    elif head is not BODY:
        _put_head(made, config, head, tensors)
    if "embed.parts.weight" in tensors:
        _put_parts(made, tensors["embed.parts.weight"])
    return Form(config, made, head, bias)


def _head(source: Source) -> Head:
    task, options = source.task.name, source.run.config.task
    if task == "language_model":
        return CAUSAL
    if options.get("crf"):
        raise Unfit("a CRF's transitions have no place in a token classifier; train with -o task.crf=false for hf")
    if options.get("characters", "none") != "none":
        raise Unfit("words are read by their characters too (task.characters)")
    if task == "question_answering" and (options.get("match") or source.architecture != "bert"):
        raise Unfit("exact matches of words are marked (task.match), or the model is not bert")
    if task == "classification":
        pooling = options.get("pooling", "mean")
        raise Unfit(
            f"a classifier's output layer here reads the pooled vector itself (task.pooling={pooling}); those of "
            "transformers have another layer and tanh between, or no bias"
        )
    if task not in HEADS:
        raise Unfit(f"{task} has no output layer in transformers")
    return HEADS[task]


def _rows(source: Source) -> int:
    return source.tensors["embed.weight"].size(0)


def _pad(source: Source) -> int:
    return 0 if source.tokenizer is None else source.tokenizer.pad


def _identity(source: Source, config: Json, head: Head) -> Json:
    """The class, and the ids of special tokens."""
    kind, own = config["model_type"], source.tokenizer
    suffix = "LMHeadModel" if (kind, head) == ("gpt2", CAUSAL) else head.suffix
    found: Json = {"architectures": [_CLASSES[kind] + suffix], "dtype": "float32"}
    if own is not None:
        found |= {"bos_token_id": own.bos, "eos_token_id": own.eos, "pad_token_id": own.pad}
    if head.suffix == TOKENS.suffix:
        found |= _labels(source)
    if head is not CAUSAL:
        found["tie_word_embeddings"] = False
    if source.task.name == "question_answering" and kind == "xlm-roberta-xl":
        found["type_vocab_size"] = 2
    return found


def _labels(source: Source) -> Json:
    """Tags; of a masked language model, the tokens themselves."""
    tags = getattr(source.task, "tags", None)
    if tags is None:
        own = source.tokenizer
        assert own is not None
        tags = [own.name(id) for id in range(own.size)] + ["<mask>"]
    names = [f"{tag} ({n})" if tags.count(tag) > 1 else tag for n, tag in enumerate(tags)] if len(tags) < 500 else tags
    return {"id2label": {str(n): tag for n, tag in enumerate(names)}, "label2id": {t: n for n, t in enumerate(names)}}


def _put_head(made: dict[str, Tensor], config: Json, head: Head, tensors: dict[str, Tensor]) -> None:
    made.pop("lm_head.weight", None)
    name = "score" if config["model_type"] in _SCORE else head.theirs
    weight = tensors.get(f"{head.ours}.weight", tensors["embed.weight"])  # tied: one matrix
    made[f"{name}.weight"] = weight.float().contiguous()
    bias = tensors.get(f"{head.ours}.bias")
    made[f"{name}.bias"] = torch.zeros(len(weight)) if bias is None else bias.float()


def _put_parts(made: dict[str, Tensor], parts: Tensor) -> None:
    name = next((name for name in made if name.endswith("token_type_embeddings.weight")), None)
    if name is None:
        raise Unfit("two texts are told apart by an embedding of their own, which only BERT has")
    made[name] = parts[: len(made[name])].float().contiguous()


def write_folder(source: Source, form: Form, folder: Path) -> None:
    with needing("hf"):
        from safetensors.torch import save_file
        from transformers import AutoConfig
    AutoConfig.for_model(**form.config).save_pretrained(folder)
    save_file({n: t.contiguous() for n, t in form.tensors.items()}, folder / "model.safetensors", {"format": "pt"})
    write_tokenizer(source, folder)


def write_tokenizer(source: Source, folder: Path) -> None:
    if source.tokenizer is not None:
        files = tokenizer_files(source.tokenizer, source.model.limit, _mask(source))
        for name, content in files.items():
            (folder / name).write_bytes(content)


def _mask(source: Source) -> int | None:
    """The id of the mask token that the task has added."""
    found: int | None = getattr(source.task, "mask", None)
    return found


def compare(source: Source, form: Form, folder: Path) -> float:
    """The largest difference of the logits, after loading it with transformers; its tokenizer must be equal."""
    theirs = load(form, folder)
    if source.tokenizer is not None:
        from transformers import AutoTokenizer

        own = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        check_tokenizer(own, source.tokenizer, source.texts)
    inputs, mask = source.samples.batch.inputs, source.samples.batch.mask
    if inputs.dim() != 2:
        raise RunError(f"inputs of {inputs.dim()} dimensions cannot be compared")
    with torch.no_grad():
        ours = source.model.encode(inputs, mask) if form.head is not CAUSAL else source.model(inputs)[0]
        found = _logits(theirs, form, source, inputs, mask)
    real = torch.ones_like(inputs, dtype=torch.bool) if mask is None else mask
    return check_difference(float((ours - found)[real].abs().max()), "its logits")


def _logits(theirs: Any, form: Form, source: Source, inputs: Tensor, mask: Tensor | None) -> Tensor:
    how: Json = {} if mask is None else {"attention_mask": mask.long()}
    embed: Any = getattr(source.model, "embed", None)
    if form.config.get("type_vocab_size") == 2 and hasattr(embed, "separators"):
        seen = embed.separators(inputs)
        how["token_type_ids"] = (seen.cumsum(1) - seen > 0).long()
    found = theirs(input_ids=inputs, **how)
    if "start_logits" in found:
        return torch.stack((found.start_logits, found.end_logits), -1)
    logits: Tensor = found.logits
    return logits


def load(form: Form, folder: Path) -> Any:
    with needing("hf"):
        import transformers
    auto = getattr(transformers, form.head.auto)
    model, said = auto.from_pretrained(folder, output_loading_info=True, trust_remote_code=False)
    wrong = {kind: names for kind, names in said.items() if names and kind != "error_msgs"}
    tied = {"lm_head.weight"} if form.config.get("tie_word_embeddings") else set[str]()
    if any(set(names) - tied for names in wrong.values()):
        raise RunError(f"transformers does not find its weights: {json.dumps(wrong, default=sorted)[:200]}")
    return model.eval()


def _usage(form: Form, name: str) -> str:
    lines = ["from transformers import AutoTokenizer, " + form.head.auto, ""]
    lines += [
        f'model = {form.head.auto}.from_pretrained("FOLDER")',
        'tokenizer = AutoTokenizer.from_pretrained("FOLDER")',
    ]
    if form.head is CAUSAL:
        lines += ['inputs = tokenizer("the cat", return_tensors="pt")']
        lines += ["print(tokenizer.decode(model.generate(**inputs, max_new_tokens=20)[0]))"]
    else:
        lines += ['print(model(**tokenizer("the cat", return_tensors="pt")))']
    code = "\n".join(lines)
    return f"The class is `{name}`; the folder needs no code of its own.\n\n```python\n{code}\n```"
