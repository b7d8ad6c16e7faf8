"""The tokenizer of an exported model: tokenizer.json as other programs read it, equal to ours in both directions."""

from __future__ import annotations

import json
import re
from typing import Any

from seqloom.core.errors import RunError
from seqloom.tokenizers.tokenizer import SPECIALS, UNK, Tokenizer
from seqloom.tokenizers.words import NO_BLANK_AFTER, NO_BLANK_BEFORE, Words

MASK = "<mask>"
_GLUE = "\ue000"  # private use: joins what follows
_CONFIG, _DATA = "tokenizer_config.json", "tokenizer.json"


def tokenizer_of(vocabulary: Any) -> Tokenizer | None:
    """The one tokenizer of a vocabulary; None: it has two, or numbers are read."""
    found = vocabulary if isinstance(vocabulary, Tokenizer) else getattr(vocabulary, "tokenizer", None)
    return found if isinstance(found, Tokenizer) else None


def tokenizer_files(tokenizer: Tokenizer, limit: int | None, mask: int | None = None) -> dict[str, bytes]:
    """`limit`: longest input; `mask`: the id of a mask token that follows all others."""
    files = tokenizer.files()
    config = json.loads(files[_CONFIG])
    data = json.loads(files[_DATA])
    config = {name: value for name, value in config.items() if not name.startswith("seqloom_")}
    if limit is not None:
        config["model_max_length"] = limit
    if isinstance(tokenizer, Words):
        data = _with_decoder(data, tokenizer.split == "punctuation")
        del config["unk_token"]  # special tokens are left out of a text, and this one is shown
        if tokenizer.split == "space":
            data, config = _renamed(data, config)
    if mask is not None and "mask_token" not in config and len(tokenizer.vocabulary) == mask:
        known = {"content": MASK, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        data["added_tokens"] = [*data["added_tokens"], {"id": mask, **known, "special": True}]
        config["mask_token"] = MASK
    return {_DATA: _written(data), _CONFIG: _written(config)}


def check_tokenizer(theirs: Any, ours: Tokenizer, texts: list[str]) -> None:
    """Raise unless transformers' tokenizer gives the same ids for these texts, and the same texts for the ids."""
    for text in texts:
        ids = ours.encode(text).tolist()
        found = theirs(text, add_special_tokens=False, split_special_tokens=True, verbose=False)["input_ids"]
        if ids != found:
            raise RunError(
                f"the exported tokenizer reads {text[:40]!r} as {found[:12]}, ours as {ids[:12]}; nothing was written"
            )
        back, again = ours.decode(ids), theirs.decode(ids, skip_special_tokens=True)
        if back != again:
            raise RunError(f"the exported tokenizer gives {again[:40]!r} back, ours {back[:40]!r}; nothing was written")
    for role in ("bos", "eos", "pad"):
        if getattr(theirs, f"{role}_token_id") != getattr(ours, role):
            raise RunError(f"the exported tokenizer has another {role} token than ours; nothing was written")


def _with_decoder(data: Any, tight: bool) -> Any:
    """Words joined as we join them: blanks between, but not around line breaks and, if `tight`, punctuation marks."""
    from tokenizers import Regex, decoders
    from tokenizers import Tokenizer as HuggingFaceTokenizer

    before, after = (_class(NO_BLANK_BEFORE if tight else "\n"), _class(NO_BLANK_AFTER if tight else "\n"))
    made = HuggingFaceTokenizer.from_str(json.dumps(data))
    made.decoder = decoders.Sequence([
        decoders.WordPiece(prefix=_GLUE, cleanup=False),  # a blank before every word but the first
        decoders.Replace(Regex(rf"\A (?={before}\z)"), ""),
        decoders.Replace(Regex(rf"(?<=\A{after})\z|(?<=\A {after})\z"), _GLUE),
        decoders.Fuse(),
        decoders.Replace(f"{_GLUE} ", ""),
        decoders.Replace(_GLUE, ""),
    ])  # fmt: skip
    found = json.loads(made.to_str())
    for token in found["added_tokens"]:
        token["special"] = token["content"] != UNK  # it is shown: else text would read as if no word were missing
    return found


def _renamed(data: Any, config: Any) -> tuple[Any, Any]:
    """Special tokens with a blank in their names: a word of a text can then not be taken for one."""
    new = {name: f"{name[:-1]} >" for name in SPECIALS if name != UNK}
    vocabulary = {new.get(token, token): id for token, id in data["model"]["vocab"].items()}
    added = [token | {"content": new.get(token["content"], token["content"])} for token in data["added_tokens"]]
    data = data | {"model": data["model"] | {"vocab": vocabulary}, "added_tokens": added}
    return data, {key: new.get(value, value) if key.endswith("_token") else value for key, value in config.items()}


def _class(characters: Any) -> str:
    return "[" + "".join(re.escape(one) if one != "\n" else r"\n" for one in sorted(characters)) + "]"


def _written(value: Any) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"
