"""A case: files to lay out, a command to type, and whether it has to fail. Small JSON, so that it can be kept."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

Wanted = Literal["fail", "pass", "either"]


@dataclass(frozen=True)
class File:
    """Something in the folder that a command is typed in; `kind` says what `content` is (see `_MAKERS`)."""

    path: str
    content: str = ""
    kind: str = "text"

    def bytes(self) -> bytes:
        return base64.b64decode(self.content) if self.kind == "base64" else self.content.encode()


@dataclass(frozen=True)
class Case:
    argv: tuple[str, ...]  # after `seqloom`
    files: tuple[File, ...] = ()
    wanted: Wanted = "either"
    made: str = ""  # how it was made
    stdin: str = ""
    writes: tuple[str, ...] = ("out",)  # what the command may write: the beginnings of paths

    @property
    def command(self) -> str:
        return self.argv[0] if self.argv else ""

    def but(self, wanted: Wanted | None = None, made: str = "", **changes: Any) -> Case:
        """The same with changes. A case that has to fail still has to; one that had to pass need not any longer,
        unless `wanted` says so."""
        if self.wanted == "fail" or wanted is None:
            wanted = self.wanted if self.wanted == "fail" else "either"
        return replace(self, wanted=wanted, made="; ".join(filter(None, [self.made, made])), **changes)

    def adding(self, *words: str, wanted: Wanted | None = None, made: str = "") -> Case:
        return self.but(wanted, made, argv=(*_without(self.argv, words), *words))

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    @staticmethod
    def from_json(text: str) -> Case:
        facts = json.loads(text)
        files = tuple(File(**file) for file in facts.pop("files"))
        return Case(files=files, **{k: tuple(v) if isinstance(v, list) else v for k, v in facts.items()})


def _without(argv: Sequence[str], words: Sequence[str]) -> list[str]:
    """A command line without the options that these words give anew: it takes each only once."""
    new = {_name_of(words, n) for n, word in enumerate(words) if word.startswith("-")}
    kept, skip = [], False
    for n, word in enumerate(argv):
        again = word.startswith("-") and _name_of(argv, n) in new
        if not (skip or again):
            kept.append(word)
        skip = again and "=" not in word and not "".join(argv[n + 1 : n + 2]).startswith("-")
    return kept


def _name_of(words: Sequence[str], n: int) -> str:
    """The name of an option, for -o that of the setting."""
    return "".join(words[n : n + 2]).partition("=")[0] if words[n] == "-o" else words[n].partition("=")[0]


@dataclass
class Outcome:
    """What happened when a case was run."""

    code: int = 0
    signal: int = 0
    out: str = ""
    err: str = ""
    seconds: float = 0.0  # of the processor
    hung: bool = False
    changed: list[str] = field(default_factory=list)  # files of the user
    left: list[str] = field(default_factory=list)  # new files


def text(path: str, content: str) -> File:
    return File(path, content)


def binary(path: str, content: bytes) -> File:
    """As text if it is, which is easier to read in a kept case."""
    try:
        return File(path, content.decode())
    except UnicodeDecodeError:
        return File(path, base64.b64encode(content).decode(), "base64")


def repeated(path: str, head: str, piece: str, times: int, tail: str = "") -> File:
    """A large file, kept small."""
    return File(path, json.dumps([head, piece, times, tail]), "repeated")


def run_folder(path: str, name: str) -> File:
    """A copy of a run that was trained once (see shelf.py)."""
    return File(path, name, "run")


def edit(path: str, how: str, *given: Any) -> File:
    """A change to a file that is there already, such as one of a run folder (see `_EDITS`)."""
    return File(path, json.dumps([how, *given]), "edit")


def lay(case: Case, folder: Path, shelf: Callable[[str], Path]) -> None:
    """Make the files of a case; `shelf`: where a run is by its name."""
    for file in case.files:
        place = folder / file.path
        if file.kind == "edit":
            place = next(iter(sorted(folder.glob(file.path))), place)  # names of some files are drawn
        place.parent.mkdir(parents=True, exist_ok=True)
        if file.kind == "run":
            shutil.copytree(shelf(file.content), place)
        else:
            _MAKERS[file.kind](place, file)


def _repeat(place: Path, file: File) -> None:
    head, piece, times, tail = json.loads(file.content)
    block = piece * max(1, min(times, (1 << 20) // max(1, len(piece))))
    whole, rest = divmod(times * len(piece), max(1, len(block)))
    with place.open("w", encoding="utf-8", newline="") as opened:
        opened.write(head)
        for _ in range(whole):
            opened.write(block)
        opened.write(block[:rest] + tail)


def _sparse(place: Path, file: File) -> None:
    with place.open("wb") as opened:
        opened.truncate(int(file.content))


def _socket(place: Path, _: File) -> None:
    before = os.getcwd()
    os.chdir(place.parent)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(place.name)
    os.chdir(before)


def _edit(place: Path, file: File) -> None:
    how, *given = json.loads(file.content)
    if place.is_file() or (place.is_dir() and how in ("delete", "become")):
        _EDITS[how](place, *given)


def _set(place: Path, path: Sequence[str], value: Any) -> None:
    """Set a value in a JSON file of objects."""
    whole = json.loads(place.read_text())
    at = whole
    for step in path[:-1]:
        at = at.get(step, {})
    if value == "DELETE":
        at.pop(path[-1], None)
    else:
        at[path[-1]] = value
    place.write_text(json.dumps(whole))


def _cut(place: Path, share: float) -> None:
    data = place.read_bytes()
    place.write_bytes(data[: int(len(data) * share)])


def _flip(place: Path, share: float, mask: int) -> None:
    data = bytearray(place.read_bytes())
    if data:
        data[min(int(len(data) * share), len(data) - 1)] ^= mask
    place.write_bytes(data)


def _splice(place: Path, share: float, piece: str) -> None:
    data = place.read_bytes()
    at = int(len(data) * share)
    place.write_bytes(data[:at] + piece.encode("utf-8", "surrogatepass") + data[at:])


def _delete(place: Path) -> None:
    shutil.rmtree(place) if place.is_dir() else place.unlink()


def _become(place: Path, kind: str, content: str = "") -> None:
    _delete(place)
    _MAKERS[kind](place, File(place.name, content, kind))


_MAKERS: dict[str, Callable[[Path, File], Any]] = {
    "text": lambda place, file: place.write_bytes(file.bytes()),
    "base64": lambda place, file: place.write_bytes(file.bytes()),
    "repeated": _repeat,
    "sparse": _sparse,
    "folder": lambda place, _: place.mkdir(exist_ok=True),
    "fifo": lambda place, _: os.mkfifo(place),
    "socket": _socket,
    "link": lambda place, file: place.symlink_to(file.content),
    "edit": _edit,
}
_EDITS: dict[str, Callable[..., Any]] = {
    "set": _set,
    "cut": _cut,
    "flip": _flip,
    "splice": _splice,
    "delete": _delete,
    "become": _become,
    "write": lambda place, content: place.write_text(content),
}
