"""Character and byte tokenizers. They use look-up tables, so encoding a file costs little more than reading it."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from seqloom.core.errors import UserError
from seqloom.tokenizers.tokenizer import SPECIALS, UNK, Decoder, Tokenizer, byte_spans, describe, invalid_text

CODE_POINTS = 0x110000


class Characters(Tokenizer):
    """One id per character, in code point order; characters not seen in training are <unk>."""

    kind = "characters"

    @classmethod
    def train(cls, texts: Iterable[str], *, size: int = 0, min_count: int = 1, split: str = "") -> Characters:
        """Keep every character that occurs at least `min_count` times; `size` and `split` are not used."""
        from tokenizers import Regex, decoders, models, pre_tokenizers
        from tokenizers import Tokenizer as HuggingFaceTokenizer

        counts = np.zeros(CODE_POINTS, np.int64)
        for text in texts:
            found = np.bincount(code_points(text))
            counts[: len(found)] += found
        if not counts.any():
            raise UserError("no text to build a character vocabulary from; check the training data")
        characters = [chr(code) for code in np.flatnonzero(counts >= min_count)]
        if not characters:
            raise UserError(
                f"tokenizer.min_count={min_count} leaves no character; the most frequent occurs {counts.max():,} times"
            )
        vocabulary = {token: id for id, token in enumerate([*SPECIALS, *characters])}
        tokenizer = HuggingFaceTokenizer(models.WordLevel(vocabulary, unk_token=UNK))
        tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
        tokenizer.decoder = decoders.Fuse()
        return cls(describe(tokenizer))

    @property
    def byte_counts(self) -> np.ndarray:
        return np.array([len(chr(code).encode()) if code < CODE_POINTS else 0 for code in self._codes.tolist()])

    def encode(self, text: str) -> np.ndarray:
        return self._ids.take(code_points(text), mode="clip")  # all code points are in range: clip skips the check

    def spans(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        places = np.arange(len(text))
        return self.encode(text), np.stack((places, places + 1), axis=1)

    def decode(self, ids: Sequence[int] | np.ndarray) -> str:
        codes = self._codes[np.asarray(ids, np.int64)]
        return codes[codes < CODE_POINTS].astype("<u4").tobytes().decode("utf-32-le")

    def decoder(self) -> Decoder:
        return _TableDecoder({id: token for token, id in self.vocabulary.items() if token not in SPECIALS})

    @cached_property
    def _ids(self) -> np.ndarray:
        table = np.full(CODE_POINTS, self.unk, np.int64)
        for token, id in self.vocabulary.items():
            if token not in SPECIALS:
                table[ord(token)] = id
        return table

    @cached_property
    def _codes(self) -> np.ndarray:
        table = np.full(self.size, CODE_POINTS, np.int64)  # special tokens are not characters
        for token, id in self.vocabulary.items():
            if token not in SPECIALS:
                table[id] = ord(token)
        return table


class ByteLevel(Tokenizer):
    """Tokens are UTF-8 byte sequences: one character may need several."""

    def decoder(self) -> Decoder:
        return ByteDecoder(self._pieces)

    @cached_property
    def byte_counts(self) -> np.ndarray:
        return np.array([len(piece) for piece in self._pieces])

    def name(self, id: int) -> str:
        return byte_name(self._pieces[id]) or self._names[id]

    @cached_property
    def _pieces(self) -> list[bytes]:
        return byte_pieces(self.vocabulary, self.size)


class Bytes(ByteLevel):
    """One id per UTF-8 byte: 256 plus the special tokens, for text in any language; nothing is ever <unk>."""

    kind = "bytes"

    @classmethod
    def train(cls, texts: Iterable[str] = (), *, size: int = 0, min_count: int = 1, split: str = "") -> Bytes:
        """Needs no training: the texts are not read."""
        from tokenizers import Tokenizer as HuggingFaceTokenizer
        from tokenizers import decoders, models, pre_tokenizers

        names = sorted(byte_names(), key=byte_names().__getitem__)
        vocabulary = {token: id for id, token in enumerate([*SPECIALS, *names])}
        tokenizer = HuggingFaceTokenizer(models.BPE(vocabulary, []))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        tokenizer.decoder = decoders.ByteLevel()
        return cls(describe(tokenizer))

    def encode(self, text: str) -> np.ndarray:
        return np.frombuffer(utf8(text), np.uint8) + np.int64(len(SPECIALS))

    def spans(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        ids = self.encode(text)
        return ids, byte_spans(text, np.ones_like(ids))


class _TableDecoder(Decoder):
    def __init__(self, table: dict[int, str]) -> None:
        self._table = table

    def push(self, id: int) -> str:
        return self._table.get(id, "")


class ByteDecoder(Decoder):
    """Decodes byte-level ids: a character of several bytes is held back until it is complete."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, id: int) -> str:
        return self._utf8.decode(self._pieces[id])

    def flush(self) -> str:
        return self._utf8.decode(b"", final=True)


def code_points(text: str) -> np.ndarray:
    try:
        return np.frombuffer(text.encode("utf-32-le"), np.uint32)
    except UnicodeEncodeError:
        raise invalid_text(text) from None


def utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise invalid_text(text) from None


def byte_names() -> dict[str, int]:
    """How byte-level vocabularies write a byte (Radford et al. 2019): itself if printable, else shifted up from 256."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}


def byte_name(piece: bytes) -> str:
    """Bytes as text; incomplete characters are escaped, as in \\xe4."""
    return piece.decode(errors="backslashreplace")


def byte_pieces(vocabulary: dict[str, int], size: int) -> list[bytes]:
    """The bytes of each id; empty for special tokens."""
    names = byte_names()
    pieces = [b""] * size
    for token, id in vocabulary.items():
        if token not in SPECIALS:
            pieces[id] = bytes([names[character] for character in token])
    return pieces
