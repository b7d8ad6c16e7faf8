"""A tokenizer that comes with pretrained weights: a tokenizer.json of any kind, with special tokens of its own.

Unlike our own tokenizers, its special tokens may have any ids, one token may have several roles (GPT-2 begins and ends
a text with the same one), and there may be no token for unknown text. Texts are encoded as the library does it, in one
piece.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.tokenizers.characters import byte_names, utf8
from seqloom.tokenizers.tokenizer import Decoder, Tokenizer

if TYPE_CHECKING:
    import tokenizers

_BATCH = 256  # texts encoded per call
_BROKEN = "\N{REPLACEMENT CHARACTER}"  # how the library shows part of a character


class Specials(NamedTuple):
    """The ids of the special tokens, by role."""

    pad: int
    bos: int  # before a text, or before a generated target
    eos: int  # after a text
    unk: int | None = None  # None: every text can be encoded
    mask: int | None = None  # None: the vocabulary has no mask token


class Pretrained(Tokenizer):
    kind = "pretrained"

    def __init__(self, data: bytes, specials: Specials, size: int = 0, template: str = "") -> None:
        """`data`: tokenizer.json; `size`: rows of the model's embedding, if there are more than tokens; `template`: of
        a chat, as it came, never rendered here."""
        self._data, self.hf = _cleaned(data)
        ordinary = max((id for id in self.vocabulary.values() if id not in self._marked_ids), default=0)
        self.size = max(size, 1 + ordinary, 1 + max(id for id in specials if id is not None))
        self.special_ids, self.template = specials, template
        self.pad, self.bos, self.eos, self.unk, self.mask = specials
        self.specials = frozenset(id for id in specials if id is not None) | self._marked_ids
        facts = json.dumps([*specials, self.size]).encode()
        self.hash = hashlib.sha256(self._data + facts).hexdigest()

    @classmethod
    def train(cls, texts: Iterable[str], *, size: int = 0, min_count: int = 1, split: str = "") -> Pretrained:
        raise NotImplementedError("it comes with its model")

    @classmethod
    def restore(cls, data: bytes, config: Json) -> Pretrained:
        template = config.get("chat_template") or ""
        return cls(data, Specials(**config["seqloom_ids"]), config["seqloom_size"], template)

    def encode(self, text: str) -> np.ndarray:
        utf8(text)  # raises if the text is not valid
        return np.array(self.hf.encode(text, add_special_tokens=False).ids, np.int64)

    def encode_marked(self, text: str) -> np.ndarray:
        """The same, but special tokens that are spelt out in the text count as such, as in a rendered chat template."""
        utf8(text)
        ids = np.array(self._marked.encode(text, add_special_tokens=False).ids, np.int64)
        if (ids >= self.size).any():  # some tokenizers define more special tokens than their model has embeddings
            raise UserError(f"the model has no embedding for the special token {self.name(int(ids.max()))}")
        return ids

    def encode_many(self, texts: Iterable[str]) -> Iterator[np.ndarray]:
        texts = iter(texts)
        while batch := list(islice(texts, _BATCH)):
            for text in batch:
                utf8(text)
            for found in self.hf.encode_batch_fast(batch, add_special_tokens=False):
                yield np.array(found.ids, np.int64)

    def spans(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """The span of a token that begins with a space covers only the word after it."""
        utf8(text)
        found = self.hf.encode(text, add_special_tokens=False)
        places = np.array(found.offsets, np.int64).reshape(-1, 2)
        for place in places:
            while place[0] < place[1] - 1 and text[place[0]].isspace():
                place[0] += 1
        return np.array(found.ids, np.int64), places

    def decoder(self) -> Decoder:
        return _PiecewiseDecoder(self.hf, self.specials)

    def name(self, id: int) -> str:
        return (self._names.get(id) if id in self.specials else self.decode([id])) or f"<{id}>"

    def files(self) -> dict[str, bytes]:
        names = {role: self._names.get(id) for role, id in self.special_ids._asdict().items() if id is not None}
        config: Json = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            **{f"{role}_token": name for role, name in names.items() if name is not None},
            "clean_up_tokenization_spaces": False,
            "seqloom_kind": self.kind,
            "seqloom_ids": self.special_ids._asdict(),
            "seqloom_size": self.size,
        }
        if self.template:
            config["chat_template"] = self.template
        return {
            "tokenizer.json": self._data,
            "tokenizer_config.json": json.dumps(config, indent=2, ensure_ascii=False).encode() + b"\n",
        }

    @cached_property
    def opening(self) -> tuple[int, ...]:  # type: ignore[override]
        """What the library puts before a text: <s> for Llama 2, nothing for GPT-2, [CLS] for BERT."""
        plain, whole = (self.hf.encode("a", add_special_tokens=own).ids for own in (False, True))
        found = next((n for n in range(len(whole)) if whole[n : n + len(plain)] == plain), 0)
        return tuple(whole[:found])

    @cached_property
    def vocabulary(self) -> dict[str, int]:  # type: ignore[override]
        return self.hf.get_vocab(with_added_tokens=True)

    @property
    def byte_counts(self) -> np.ndarray | None:
        """Of tokenizers on the level of bytes, which add and change nothing."""
        parts = json.loads(self._data)
        level, before = parts.get("decoder") or {}, parts.get("pre_tokenizer") or {}
        steps = before.get("pretokenizers", [before])
        prefixed = any(step.get("add_prefix_space") for step in steps)
        if level.get("type") != "ByteLevel" or parts.get("normalizer") or prefixed:
            return None
        names, found = byte_names(), np.zeros(self.size, np.int64)
        for token, id in self.vocabulary.items():
            if id not in self.specials and id < self.size:
                found[id] = len(token) if all(character in names for character in token) else len(token.encode())
        return found

    @cached_property
    def _marked(self) -> tokenizers.Tokenizer:
        return open_json(self._data)

    @cached_property
    def _marked_ids(self) -> frozenset[int]:
        added = self.hf.get_added_tokens_decoder()
        return frozenset(id for id, token in added.items() if token.special)


class _PiecewiseDecoder(Decoder):
    """A few tokens are decoded again with each new one, because what a token means may depend on the one before it."""

    def __init__(self, hf: tokenizers.Tokenizer, specials: frozenset[int]) -> None:
        self._hf, self._specials = hf, specials
        self._ids: list[int] = []
        self._from, self._given = 0, 0  # first id that is decoded again; ids whose text was given

    def push(self, id: int) -> str:
        if id in self._specials:
            return ""
        self._ids.append(id)
        before, now = self._texts()
        if now.endswith(_BROKEN) or len(now) <= len(before):
            return ""
        self._from, self._given = self._given, len(self._ids)
        return now[len(before) :]

    def flush(self) -> str:
        before, now = self._texts()
        self._from = self._given = len(self._ids)
        return now[len(before) :]

    def _texts(self) -> tuple[str, str]:
        return self._text(self._given), self._text(len(self._ids))

    def _text(self, end: int) -> str:
        return self._hf.decode(self._ids[self._from : end], skip_special_tokens=False)


def open_json(data: bytes) -> tokenizers.Tokenizer:
    """The library's object, or an error in one line: it panics on some invalid files."""
    from tokenizers import Tokenizer as HuggingFaceTokenizer

    try:
        return HuggingFaceTokenizer.from_buffer(data)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
            raise
        raise UserError(f"not a tokenizer that the tokenizers library reads: {shown(error)}") from None


def _cleaned(data: bytes) -> tuple[bytes, tokenizers.Tokenizer]:
    """Without truncation and padding, which the library would apply to every text; special tokens in it are text."""
    found = open_json(data)
    if found.truncation is not None or found.padding is not None:
        found.no_truncation()
        found.no_padding()
        data = found.to_str().encode()
    found.encode_special_tokens = True
    return data, found


def shown(error: Any) -> str:
    return " ".join(str(error).split())[:200]
