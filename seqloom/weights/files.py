"""A foreign folder: regular files inside it, of bounded size, and JSON without surprises."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any, NoReturn

from seqloom.core.errors import UserError
from seqloom.core.rows import Json

MOST_JSON = 4_000_000  # bytes of a configuration; one of a real model has some thousand
_PICKLES = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


class Folder:
    """`name`: what the user typed, for messages."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self._root = _root(path)

    def refused(self, problem: str) -> UserError:
        return UserError(f"{self.name}: {problem}")

    def find(self, name: str) -> Path | None:
        """A regular file of this folder; None if there is none. A link may not lead out of the folder."""
        path = self.path / name
        if os.path.basename(name) != name or not os.path.lexists(path):
            return None
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(self._root):
            raise self.refused(f"{name} is a link to a file outside the folder; copy the file into it")
        if not os.path.exists(real) or not stat.S_ISREG(os.stat(real).st_mode):
            raise self.refused(f"{name} is not a regular file")
        return real

    def names(self) -> list[str]:
        return sorted(os.listdir(self.path))

    def read(self, name: str, most: int = MOST_JSON) -> bytes | None:
        path = self.find(name)
        if path is None:
            return None
        if (size := path.stat().st_size) > most:
            raise self.refused(f"{name} has {size:,} bytes; at most {most:,} are read")
        return path.read_bytes()

    def json(self, name: str, most: int = MOST_JSON) -> Json | None:
        """A JSON object; None if there is no such file."""
        data = self.read(name, most)
        return None if data is None else parse_object(data, f"{self.name}: {name}")


def parse_object(data: bytes, what: str) -> Json:
    """A JSON object without duplicate keys; `what`: for messages."""

    def once(pairs: list[tuple[str, Any]]) -> Json:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a key occurs twice")
        return found

    def constant(name: str) -> NoReturn:
        raise ValueError(f"{name} is no number in JSON")

    try:
        value = json.loads(data, object_pairs_hook=once, parse_constant=constant)
    except RecursionError:
        raise UserError(f"{what}: nested too deeply") from None
    except ValueError as error:
        raise UserError(f"{what}: not valid JSON: {' '.join(str(error).split())[:160]}") from None
    if not isinstance(value, dict):
        raise UserError(f"{what}: not a JSON object")
    return value


def sniff(head: bytes) -> str | None:
    """What a file that is no safetensors file is, by its first bytes; None if they say nothing."""
    if head.startswith(_PICKLES):
        return "a Python pickle, which can run code when it is opened"
    if head.startswith(b"PK\x03\x04"):
        return "a zip archive, such as torch.save writes, with a pickle inside that can run code when it is opened"
    if head.startswith(b"GGUF"):
        return "a GGUF file; give its own path, ending in .gguf"
    if head.startswith(b"version https://git-lfs"):
        return "a pointer of git-lfs; fetch the file itself with git lfs pull"
    if head.startswith(b"\x89HDF"):
        return "an HDF5 file"
    return None


def _root(path: Path) -> Path:
    """What links may lead to: the folder; in the cache of the hub, whose files are links, all of the model."""
    real = Path(os.path.realpath(path))
    return real.parent.parent if real.parent.name == "snapshots" else real


def stamp(path: Path) -> list[tuple[str, int, int]]:
    """Name, size and time of change of the files that are read: when they change, they are converted anew."""
    files = [path] if path.is_file() else sorted(path.iterdir())
    wanted = (".json", ".safetensors", ".gguf", ".txt", ".jinja")
    found = [(file.name, os.stat(file)) for file in files if file.name.endswith(wanted) and file.exists()]
    return [(name, facts.st_size, facts.st_mtime_ns) for name, facts in found]
