"""Tokenizer: text to token ids and back; a Hugging Face tokenizer.json on disk, our own look-up tables in memory.

Text that happens to spell a special token is ordinary text, so a prompt cannot contain an end-of-text token.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from seqloom.core.errors import UserError, unknown
from seqloom.core.rows import Json

if TYPE_CHECKING:
    import tokenizers

PAD, BOS, EOS, UNK = SPECIALS = ("<pad>", "<bos>", "<eos>", "<unk>")  # ids 0 to 3 in every vocabulary

KINDS = {  # that can be trained; name: module and class, imported on demand
    "characters": "seqloom.tokenizers.characters:Characters",
    "bytes": "seqloom.tokenizers.characters:Bytes",
    "words": "seqloom.tokenizers.words:Words",
    "bpe": "seqloom.tokenizers.subwords:Subwords",
}
FOREIGN = {"pretrained": "seqloom.tokenizers.pretrained:Pretrained"}  # comes with its model


def tokenizer_class(kind: str) -> type[Tokenizer]:
    module, _, name = (KINDS | FOREIGN)[kind].partition(":")
    return getattr(import_module(module), name)


class Decoder(ABC):
    """Incremental decoder. Its outputs, concatenated, equal the text of decoding all ids at once."""

    @abstractmethod
    def push(self, id: int) -> str:
        """The text completed by one more id; empty while a character is incomplete."""

    def flush(self) -> str:
        """The text that was still held back."""
        return ""


class Tokenizer(ABC):
    kind: ClassVar[str]
    vocabulary: dict[str, int]
    size: int
    pad: int
    bos: int
    eos: int
    unk: int | None  # None: every text can be encoded
    specials: frozenset[int]  # ids that stand for no text; they are never hidden or replaced in training
    opening: tuple[int, ...] = ()  # special tokens before every prompt, if the model was trained with them
    hash: str

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.json: Json = json.loads(data)
        self.vocabulary = self.json["model"]["vocab"]
        self.size = max(self.vocabulary.values()) + 1
        self.pad, self.bos, self.eos, self.unk = ids = [self.vocabulary[token] for token in SPECIALS]
        self.specials = frozenset(ids)
        self.hash = hashlib.sha256(data).hexdigest()

    @classmethod
    @abstractmethod
    def train(cls, texts: Iterable[str], *, size: int, min_count: int, split: str) -> Tokenizer: ...

    @classmethod
    def restore(cls, data: bytes, config: Json) -> Tokenizer:
        """From the content of tokenizer.json and tokenizer_config.json."""
        return cls(data)

    @property
    def blank(self) -> int:
        """What a token becomes that is hidden in training: unknown."""
        return self.pad if self.unk is None else self.unk

    @property
    def byte_counts(self) -> np.ndarray | None:
        """Bytes of text that each id stands for, 0 for special tokens; None where the ids do not give the text back."""
        return None

    @abstractmethod
    def encode(self, text: str) -> np.ndarray:
        """Token ids, 1-D int64."""

    def encode_many(self, texts: Iterable[str]) -> Iterator[np.ndarray]:
        """The ids of each text, in order; holds no more than a few texts at a time."""
        return map(self.encode, texts)

    @abstractmethod
    def spans(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """The ids of `encode`, and the character span [begin, end) of each token, (n, 2) int64.

        A token that is part of a character gets the span of the whole character.
        """

    @abstractmethod
    def decoder(self) -> Decoder: ...

    def decode(self, ids: Sequence[int] | np.ndarray) -> str:
        """The text of the ids; special tokens are left out."""
        decoder = self.decoder()
        return "".join([decoder.push(int(id)) for id in ids]) + decoder.flush()

    def name(self, id: int) -> str:
        """One token in readable form, including special tokens."""
        return self.decode([id]) or self._names[id]

    @cached_property
    def _names(self) -> dict[int, str]:
        return {id: token for token, id in self.vocabulary.items()}

    @cached_property
    def hf(self) -> tokenizers.Tokenizer:
        """The same tokenizer as an object of the tokenizers library."""
        from tokenizers import Tokenizer as HuggingFaceTokenizer

        tokenizer = HuggingFaceTokenizer.from_buffer(self._data)
        tokenizer.encode_special_tokens = True  # in the library: treat special tokens in text as ordinary text
        return tokenizer

    def files(self) -> dict[str, bytes]:
        """The files to save, from which `load` or transformers' PreTrainedTokenizerFast restores it."""
        config = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": BOS,
            "eos_token": EOS,
            "unk_token": UNK,
            "pad_token": PAD,
            "clean_up_tokenization_spaces": False,
            "split_special_tokens": True,
            "seqloom_kind": self.kind,
        }
        return {"tokenizer.json": self._data, "tokenizer_config.json": json.dumps(config, indent=2).encode() + b"\n"}

    @classmethod
    def load(cls, folder: Path, prefix: str = "") -> Tokenizer:
        """Load what `files` saved; `prefix`: file name prefix, if a folder holds several tokenizers."""
        folder = Path(folder)
        path = folder / f"{prefix}tokenizer_config.json"
        try:
            config = json.loads(path.read_bytes())
            kind = config.get("seqloom_kind", "")
            if kind not in KINDS | FOREIGN:
                raise UserError(f"{path}: {unknown('tokenizer', kind, KINDS)}")
            path = folder / f"{prefix}tokenizer.json"
            return tokenizer_class(kind).restore(path.read_bytes(), config)
        except OSError as error:
            raise UserError(f"{path}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UserError(f"{path}: damaged, or not a tokenizer written by seqloom") from None


def byte_spans(text: str, lengths: np.ndarray) -> np.ndarray:
    """Character spans (n, 2) of consecutive pieces with these lengths in UTF-8 bytes."""
    ends = np.cumsum(lengths)
    if text.isascii():
        return np.stack((ends - lengths, ends), axis=1)
    sizes = [len(character.encode()) for character in text]
    owner = np.repeat(np.arange(len(text)), sizes)  # index of the character that each byte belongs to
    return np.stack((owner[ends - lengths], owner[ends - 1] + 1), axis=1)


def invalid_text(text: str) -> UserError:
    """The error for a string that cannot be encoded as UTF-8, such as a prompt with stray bytes from a terminal."""
    at = next(i for i, character in enumerate(text) if "\ud800" <= character <= "\udfff")
    return UserError(f"not valid text: a lone surrogate (U+{ord(text[at]):04X}) at character {at + 1}; use UTF-8")


def describe(tokenizer: tokenizers.Tokenizer) -> bytes:
    """The content of tokenizer.json, with the special tokens declared."""
    tokenizer.add_special_tokens(list(SPECIALS))
    return tokenizer.to_str(pretty=True).encode()
