"""Tensors in safetensors files, checked before the library sees them: header, names, types, sizes.

A file is 8 bytes, the length of the header; the header, a JSON object with the type, shape and place of each tensor;
the numbers.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.weights.files import Folder, parse_object, sniff

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
_MOST_HEADER = 25_000_000  # bytes; a model of a thousand layers has some hundred thousand
_BITS = {"F64": 64, "F32": 32, "F16": 16, "BF16": 16, "I64": 64, "I32": 32, "I16": 16, "I8": 8, "U8": 8, "BOOL": 8}
_BITS |= {"U16": 16, "U32": 32, "U64": 64, "F8_E4M3": 8, "F8_E5M2": 8}
_FLOATS = {"F64", "F32", "F16", "BF16"}

Shape = tuple[int, ...]


class Tensors:
    """The tensors of a model by name: shapes at once, numbers on demand."""

    def __init__(self, name: str, shapes: Mapping[str, Shape], load: Callable[[str], Tensor]) -> None:
        self.name, self.shapes, self._load = name, dict(shapes), load

    def load(self, name: str) -> Tensor:
        found = self._load(name)
        if not bool(torch.isfinite(found).all()):
            raise UserError(f"{self.name}: {name} has values that are not finite (NaN or infinity)")
        return found


def open_tensors(folder: Folder) -> Tensors:
    """All safetensors files of a folder, every one of them checked."""
    files = _files(folder)
    homes: dict[str, Path] = {}
    shapes: dict[str, Shape] = {}
    quantised = {}
    for file in files:
        path = folder.find(file)
        if path is None:
            raise folder.refused(f"{file} is missing; {INDEX} names it")
        for name, (kind, shape) in read_header(path, f"{folder.name}: {file}").items():
            if name in homes:
                raise folder.refused(f"{name} is in two files")
            homes[name], shapes[name] = path, shape
            if kind not in _FLOATS:
                quantised[name] = kind

    def load(name: str) -> Tensor:
        if name in quantised:
            raise folder.refused(f"{name} is stored as {quantised[name]}, not as floating-point numbers")
        with safe_open(homes[name], framework="pt") as opened:
            return opened.get_tensor(name)

    return Tensors(folder.name, shapes, load)


def read_header(path: Path, what: str) -> dict[str, tuple[str, Shape]]:
    """Type and shape of each tensor in a file, after checking that each lies inside it and nothing lies between."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        first = file.read(8)
        if other := sniff(first + file.read(40)):
            raise UserError(f"{what}: not safetensors but {other}; export the model as safetensors")
        length = int.from_bytes(first, "little")
        if len(first) < 8 or length > size - 8:
            raise UserError(f"{what}: not safetensors, or cut off: {size:,} bytes, and a header of {length:,}")
        if length > _MOST_HEADER:
            raise UserError(f"{what}: a header of {length:,} bytes; at most {_MOST_HEADER:,} are read")
        file.seek(8)
        header = parse_object(file.read(length), f"{what}: header")
    header.pop("__metadata__", None)
    found = {name: _entry(name, entry, what) for name, entry in header.items()}
    end = 0
    for name, (_, _, place) in sorted(found.items(), key=lambda item: item[1][2]):
        if place[0] != end:
            raise UserError(f"{what}: {name} overlaps another tensor, or leaves a gap")
        end = place[1]
    if 8 + length + end != size:
        raise UserError(f"{what}: {size:,} bytes, but its tensors end at {8 + length + end:,}")
    return {name: (kind, shape) for name, (kind, shape, _) in found.items()}


def _entry(name: str, entry: Any, what: str) -> tuple[str, Shape, tuple[int, int]]:
    try:
        kind, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        numbers = [*shape, begin, end]
        whole = all(type(n) is int and 0 <= n < 2**48 for n in numbers)
        fits = whole and kind in _BITS and len(shape) <= 8 and end - begin == math.prod(shape) * _BITS[kind] // 8
    except (KeyError, TypeError, ValueError):
        fits = False
    if not fits:
        raise UserError(f"{what}: {name[:80]!r} has an invalid type, shape or place")
    return kind, tuple(shape), (begin, end)


def _files(folder: Folder) -> list[str]:
    index = folder.json(INDEX, 50_000_000)
    if index is not None:
        return _indexed(folder, index)
    if folder.find(SINGLE) is not None:
        return [SINGLE]
    others = [name for name in folder.names() if name.endswith(".safetensors")]
    if len(others) == 1:
        return others
    if others:
        raise folder.refused(f"several safetensors files and no {INDEX}, which says what is where")
    unsafe = [name for name in folder.names() if name.endswith((".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack"))]
    if unsafe:
        raise folder.refused(
            f"its weights are in {unsafe[0]}, which is not read, because such files can run code; export the model as "
            "safetensors (in transformers: model.save_pretrained)"
        )
    raise folder.refused(f"no weights; {SINGLE} is needed, or a file ending in .gguf")


def _indexed(folder: Folder, index: Json) -> list[str]:
    places = index.get("weight_map")
    if not isinstance(places, dict) or not places:
        raise folder.refused(f"{INDEX} has no weight_map")
    files = sorted({file for file in places.values() if isinstance(file, str)})
    for file in places.values():
        if not isinstance(file, str) or os.path.basename(file) != file or not file.endswith(".safetensors"):
            raise folder.refused(f"{INDEX} names {str(file)[:80]!r}, which is not a safetensors file of this folder")
    return files


class Taker:
    """Hands out tensors by name and checks their shapes; remembers which were asked for.

    `dry`: shapes only, on the meta device, so that a mistake is found before any number is read."""

    def __init__(self, tensors: Tensors, dry: bool) -> None:
        self.tensors, self.dry = tensors, dry
        self.taken: set[str] = set()

    def has(self, name: str) -> bool:
        return self._known(name) is not None

    def __call__(self, name: str, *shape: int) -> Tensor:
        known = self._known(name)
        if known is None:
            raise UserError(f"{self.tensors.name}: the tensor {name} is missing")
        if (found := self.tensors.shapes[known]) != shape:
            wanted = " x ".join(map(str, shape))
            raise UserError(
                f"{self.tensors.name}: {known} is {' x '.join(map(str, found)) or 'a number'}, but config.json asks "
                f"for {wanted}"
            )
        self.taken.add(known)
        return torch.empty(shape, device="meta") if self.dry else self.tensors.load(known)

    def left(self) -> Iterator[str]:
        return (name for name in self.tensors.shapes if name not in self.taken)

    def _known(self, name: str) -> str | None:
        """Under its name, or that of older files: LayerNorm.gamma for LayerNorm.weight."""
        return next((one for one in (name, *_older(name)) if one in self.tensors.shapes), None)


def _older(name: str) -> Iterable[str]:
    if name.endswith("LayerNorm.weight"):
        yield name.removesuffix("weight") + "gamma"
    if name.endswith("LayerNorm.bias"):
        yield name.removesuffix("bias") + "beta"
