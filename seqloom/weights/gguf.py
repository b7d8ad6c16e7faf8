"""GGUF files (llama.cpp): the header is checked here, transformers and gguf then read and de-quantise the tensors.

A file is a magic number, a version, the counts of tensors and of facts; the facts (key, type, value); name, shape, type
and place of each tensor; the numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

from torch import Tensor

from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.weights.tensors import Tensors

_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes by type of a fact
_TEXT, _LIST = 8, 9
_MOST_FACTS, _MOST_TENSORS, _MOST_TEXT = 10_000, 100_000, 1 << 24


class Gguf(NamedTuple):
    config: Json  # as in config.json
    tensors: Tensors  # under the names of transformers
    tokenizer: bytes  # tokenizer.json
    template: str  # of a chat


def read_gguf(path: Path, name: str) -> Gguf:
    count = check_header(path, name)
    try:
        import gguf  # noqa: F401
        from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint
    except ImportError:
        raise UserError(
            f"{name}: GGUF needs the transformers and gguf packages: pip install 'seqloom[pretrained]'"
        ) from None
    try:
        with quietly():
            found = load_gguf_checkpoint(str(path))
            config: Json = found["config"] | _head_size(path, found["config"])
            layers = config.get("num_hidden_layers", config.get("n_layer"))
            if type(layers) is not int or not 0 < layers <= count:
                raise UserError(f"{name}: {layers} layers, but {count} tensors")
            tensors = _tensors(path, name, config)
            tokenizer = _tokenizer(path)
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"{name}: transformers cannot read this GGUF file: {' '.join(str(error).split())[:160]}"
        ) from None
    template = found.get("tokenizer_config", {}).get("chat_template")
    return Gguf(config, tensors, tokenizer, template if isinstance(template, str) else "")


def _head_size(path: Path, config: Json) -> Json:
    """That of Qwen3, which transformers does not read."""
    if config.get("model_type") != "qwen3":
        return {}
    from gguf import GGUFReader

    field = GGUFReader(path).get_field("qwen3.attention.key_length")
    return {} if field is None else {"head_dim": int(field.contents())}


def _tensors(path: Path, name: str, config: Json) -> Tensors:
    """De-quantised to float32, under the names that transformers gives them."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    with torch.device("meta"):
        empty = AutoModelForCausalLM.from_config(AutoConfig.for_model(**config))
    read: dict[str, Tensor] = load_gguf_checkpoint(str(path), return_tensors=True, model_to_load=empty)["tensors"]
    return Tensors(name, {one: tuple(tensor.shape) for one, tensor in read.items()}, read.__getitem__)


def _tokenizer(path: Path) -> bytes:
    from transformers import AutoTokenizer

    own: Any = AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name, trust_remote_code=False)
    text: str = own.backend_tokenizer.to_str()
    return text.encode()


@contextmanager
def quietly() -> Iterator[None]:
    """No progress bars and no warnings of transformers inside the block."""
    from transformers import modeling_gguf_pytorch_utils as reading
    from transformers.utils import logging

    before = logging.get_verbosity(), reading.tqdm
    logging.set_verbosity_error()
    reading.tqdm = lambda items, **how: items
    try:
        yield
    finally:
        logging.set_verbosity(before[0])
        reading.tqdm = before[1]


def check_header(path: Path, name: str) -> int:
    """The number of tensors; refuses a file whose header is not whole, or whose tensors do not lie inside it."""
    return _Header(path, name).check()


class _Header:
    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name, self.size = path, name, path.stat().st_size
        self.file: BinaryIO

    def check(self) -> int:
        with open(self.path, "rb") as self.file:
            if self.file.read(4) != b"GGUF":
                self.refuse("it does not begin with GGUF")
            version, tensors, facts = self.numbers("<IQQ")
            if version not in (2, 3) or tensors > _MOST_TENSORS or facts > _MOST_FACTS:
                self.refuse(f"version {version}, {tensors:,} tensors and {facts:,} facts")
            known: set[bytes] = set()
            for _ in range(facts):
                key = self.text()
                if key in known:
                    self.refuse(f"the fact {key[:60]!r} occurs twice")
                known.add(key)
                self.skip_value(*self.numbers("<I"))
            names = [self.tensor() for _ in range(tensors)]
            if len(set(names)) < len(names):
                self.refuse("a tensor occurs twice")
            return len(names)

    def tensor(self) -> bytes:
        name = self.text()
        (dimensions,) = self.numbers("<I")
        if dimensions > 8:
            self.refuse(f"a tensor of {dimensions} dimensions")
        *shape, _, place = self.numbers(f"<{dimensions}QIQ")
        if place >= max(1, self.size) or any(not 0 < n < 2**40 for n in shape):
            self.refuse(f"the tensor {name[:60]!r} has an invalid shape, or lies outside the file")
        return name

    def skip_value(self, kind: int) -> None:
        if kind == _TEXT:
            self.text()
        elif kind == _LIST:
            of, count = self.numbers("<IQ")
            if of == _TEXT and count <= self.size:
                for _ in range(count):
                    self.text()
            elif of in _SIZES:
                self.skip(count * _SIZES[of])
            else:
                self.refuse("a list of an unknown type, or longer than the file")
        elif kind in _SIZES:
            self.skip(_SIZES[kind])
        else:
            self.refuse(f"a fact of the unknown type {kind}")

    def text(self) -> bytes:
        (length,) = self.numbers("<Q")
        if length > _MOST_TEXT or length > self.size:
            self.refuse(f"a text of {length:,} bytes")
        return self.file.read(length)

    def skip(self, count: int) -> None:
        if self.file.tell() + count > self.size:
            self.refuse("a list that is longer than the file")
        self.file.seek(count, 1)

    def numbers(self, form: str) -> tuple[int, ...]:
        data = self.file.read(struct.calcsize(form))
        if len(data) < struct.calcsize(form):
            self.refuse("it is cut off")
        return struct.unpack(form, data)

    def refuse(self, problem: str) -> NoReturn:
        raise UserError(f"{self.name}: not a GGUF file that can be read: {problem}")
