"""The tokenizer of a foreign folder: tokenizer.json, or the files from which one is made, and its special tokens."""

from __future__ import annotations

from typing import Any

from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.tokenizers.pretrained import Pretrained, Specials, open_json
from seqloom.weights.files import Folder, parse_object

_MOST = 64_000_000  # bytes of a tokenizer.json; the largest in use have some 35 million
_ROLES = ("bos", "eos", "unk", "pad", "cls", "sep", "mask")
_ENDS = ("</s>", "<|endoftext|>", "[SEP]", "<eos>", "<|im_end|>")  # if nothing says which token ends a text


def read_tokenizer(folder: Folder, config: Json, task: str, rows: int) -> Pretrained:
    """`config`: config.json; `task`: that the model was trained for; `rows`: of its embedding."""
    said = folder.json("tokenizer_config.json", 32_000_000) or {}
    refuse_code(folder, "tokenizer_config.json", said)
    names = _names(folder.json("special_tokens_map.json") or {}) | _names(said)
    try:
        data = _data(folder, said, names)
        return make_tokenizer(data, names, config, task, rows, _template(folder, said))
    except UserError as error:
        message = str(error)
        raise UserError(message if message.startswith(folder.name) else f"{folder.name}: {message}") from None


def make_tokenizer(
    data: bytes, names: dict[str, str], config: Json, task: str, rows: int, template: str = ""
) -> Pretrained:
    """`names`: of the special tokens, by role; those that are not named are found by their ids in config.json."""
    if "__" in template:
        raise UserError("its chat template reaches into Python (__); remove the template, or choose another model")
    opened = open_json(data)
    ids = {role: opened.token_to_id(name) for role, name in names.items()}
    for role in ("bos", "eos", "pad", "unk"):
        if ids.get(role) is None:
            ids[role] = _id(config.get(f"{role}_token_id"))
    specials = _specials(ids, config, task)
    if specials.eos is None:
        specials = specials._replace(eos=next((i for i in map(opened.token_to_id, _ENDS) if i is not None), None))
    if specials.eos is None:
        raise UserError("nothing says which token ends a text (eos_token in tokenizer_config.json)")
    bos = specials.eos if specials.bos is None else specials.bos
    pad = specials.eos if specials.pad is None else specials.pad
    unk = None if specials.unk in (specials.eos, bos, pad) else specials.unk
    found = Pretrained(data, Specials(pad, bos, specials.eos, unk, specials.mask), rows, template)
    if found.size > rows:
        raise UserError(f"the tokenizer has ids up to {found.size - 1:,}, but the model knows only {rows:,} tokens")
    return found


def refuse_code(folder: Folder, file: str, said: Json) -> None:
    """Files that ask for code of their own are refused, although that code would not be run."""
    if "auto_map" in said:
        raise folder.refused(f"{file} has auto_map: the model needs code of its own, which is not run here")


def _specials(ids: dict[str, int | None], config: Json, task: str) -> Any:
    """An encoder's texts stand between its cls and sep tokens; a target begins with the decoder's own token."""

    def first(*roles: str) -> int | None:
        return next((ids[role] for role in roles if ids.get(role) is not None), None)

    encoder = task == "masked_lm"
    bos = first("cls", "bos") if encoder else first("bos", "cls")
    eos = first("sep", "eos") if encoder else first("eos", "sep")
    start = _id(config.get("decoder_start_token_id"))
    return Specials(first("pad"), start if task == "translation" and start is not None else bos, eos,  # type: ignore[arg-type]
                    first("unk"), first("mask"))  # fmt: skip


def _id(value: Any) -> int | None:
    """An id in config.json; of several, the first."""
    value = value[0] if isinstance(value, list) and value else value
    return value if type(value) is int and 0 <= value < 2**31 else None


def _names(said: Json) -> dict[str, str]:
    found: dict[str, str] = {}
    for role in _ROLES:
        token = said.get(f"{role}_token")
        token = token.get("content") if isinstance(token, dict) else token
        if isinstance(token, str):
            found[role] = token
    return found


def _template(folder: Folder, said: Json) -> str:
    """The chat template as text; it is kept, not rendered."""
    own = folder.read("chat_template.jinja", 1_000_000)
    if own is not None:
        return own.decode("utf-8", "replace")
    found = said.get("chat_template")
    if isinstance(found, list):
        named = {str(one.get("name")): one.get("template") for one in found if isinstance(one, dict)}
        found = named.get("default")
    return found if isinstance(found, str) else ""


def _data(folder: Folder, said: Json, names: dict[str, str]) -> bytes:
    data = folder.read("tokenizer.json", _MOST)
    if data is not None:
        return data
    if (vocabulary := folder.read("vocab.txt", _MOST)) is not None:
        return _word_pieces(folder, vocabulary, said, names)
    both = folder.read("vocab.json", _MOST), folder.read("merges.txt", _MOST)
    if both[0] is not None and both[1] is not None:
        return _byte_pairs(folder, both[0], both[1], names)
    if any(name.endswith(".model") for name in folder.names()):
        raise folder.refused(
            "its tokenizer is a sentencepiece file only; save the fast one, tokenizer.json, with transformers "
            "(AutoTokenizer.from_pretrained(...).save_pretrained(...))"
        )
    raise folder.refused("no tokenizer.json, and no vocab.txt or vocab.json and merges.txt to make one from")


def _word_pieces(folder: Folder, data: bytes, said: Json, names: dict[str, str]) -> bytes:
    """BERT's tokenizer from its list of pieces."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    pieces = data.decode("utf-8", "replace").splitlines()
    unknown = names.setdefault("unk", "[UNK]")
    for role, name in {"cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "mask": "[MASK]"}.items():
        names.setdefault(role, name)
    if unknown not in pieces:
        raise folder.refused(f"vocab.txt does not contain {unknown}")
    model = models.WordPiece({piece: id for id, piece in enumerate(pieces)}, unk_token=unknown)
    made = Tokenizer(model)
    made.normalizer = normalizers.BertNormalizer(
        lowercase=said.get("do_lower_case", True) is not False,
        handle_chinese_chars=said.get("tokenize_chinese_chars", True) is not False,
    )
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    made.add_special_tokens([name for role, name in names.items() if name in pieces])
    return made.to_str().encode()


def _byte_pairs(folder: Folder, vocabulary: bytes, merges: bytes, names: dict[str, str]) -> bytes:
    """GPT-2's tokenizer from its vocabulary and merges."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    pieces = parse_object(vocabulary, f"{folder.name}: vocab.json")
    lines = merges.decode("utf-8", "replace").splitlines()
    parted = [line.partition(" ") for line in lines if line and not line.startswith("#version")]
    pairs = [(first, second) for first, _, second in parted]
    if not all(type(id) is int for id in pieces.values()) or not all(second for _, second in pairs):
        raise folder.refused("vocab.json and merges.txt do not describe byte pairs")
    try:
        made = Tokenizer(models.BPE(pieces, pairs))
    except Exception as error:
        raise folder.refused(f"vocab.json and merges.txt do not go together: {str(error)[:120]}") from None
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    known = [name for name in dict.fromkeys(names.values()) if name in pieces]
    made.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in known])
    return made.to_str().encode()
