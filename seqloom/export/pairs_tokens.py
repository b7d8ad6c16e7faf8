"""The tokenizers of an exported encoder-decoder: the folder's own reads sources, and ends them; a second one, if there
are two vocabularies, gives targets back."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

from seqloom.core.errors import RunError
from seqloom.export.source import Source
from seqloom.export.tokens import check_tokenizer, tokenizer_files

TARGET = "target_tokenizer.json"
_CONFIG, _DATA = "tokenizer_config.json", "tokenizer.json"


def write_tokenizers(source: Source, places: int, folder: Path) -> None:
    pair: Any = source.run.tokenizer
    files = {name: json.loads(content) for name, content in tokenizer_files(pair.source, places).items()}
    files[_CONFIG]["model_input_names"] = ["input_ids", "attention_mask"]
    end = files[_CONFIG]["eos_token"]
    files[_DATA]["post_processor"] = _ending(end, pair.source.eos)
    if not pair.joint:
        files[TARGET] = json.loads(tokenizer_files(pair.target, None)[_DATA])
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _ending(token: str, id: int) -> Any:
    """A text, and the token that ends it."""
    text, end = ({"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": token, "type_id": 0}})
    second = {"Sequence": {"id": "B", "type_id": 0}}
    known = {token: {"id": token, "ids": [id], "tokens": [token]}}
    return {
        "type": "TemplateProcessing", "single": [text, end], "pair": [text, second, end], "special_tokens": known
    }  # fmt: skip


def check_tokenizers(source: Source, folder: Path) -> None:
    """Raise unless they are equal to ours in both directions, and sources end as ours do."""
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    pair: Any = source.run.tokenizer
    texts = source.texts + _texts(source)
    read: Any = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    check_tokenizer(read, pair.source, texts)
    task: Any = source.task
    for text, ids in zip(texts, task.writer.encode(texts), strict=True):
        if (found := read(text, split_special_tokens=True, verbose=False)["input_ids"]) != ids.tolist():
            said = f"the exported tokenizer reads the source {text[:40]!r} as {found[:12]}"
            raise RunError(f"{said}; nothing was written")
    if not pair.joint:
        names, target = names_of(folder / TARGET), pair.target
        roles = {"bos_token": names[target.bos], "eos_token": names[target.eos], "pad_token": names[target.pad]}
        write: Any = PreTrainedTokenizerFast(tokenizer_file=str(folder / TARGET), **roles)
        check_tokenizer(write, pair.target, texts)


def names_of(path: Path) -> list[str]:
    """Every token of an exported tokenizer, by its id."""
    from tokenizers import Tokenizer as HuggingFaceTokenizer

    found = HuggingFaceTokenizer.from_file(str(path)).get_vocab(with_added_tokens=True)
    return sorted(found, key=found.__getitem__)


def _texts(source: Source) -> list[str]:
    """Of both sides of the validation part, if it is still there."""
    if source.rows is None:
        return []
    return [text for pair in islice(source.rows.texts(), 8) for text in pair]
