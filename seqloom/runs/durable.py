"""Durable writes: every file is written through this module, so that a kill, a power cut or a full disk at any
moment leaves either the old version or the new one intact.

A file:    temporary file beside it, fsync, rename, fsync of the directory.
A folder:  temporary folder beside it, each file written and fsynced, a manifest last (size and SHA-256 of each file,
           and a digest of itself), fsync of the temporary folder, rename, fsync of the parent.

When a folder is replaced, the old one is first renamed aside, where `locate` and `published` still find it.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import io
import json
import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from seqloom.core.errors import RunError
from seqloom.core.rows import Json
from seqloom.runs.regular import open_regular, read_regular

Content = bytes | memoryview | Callable[[BinaryIO], None]  # a callable may be called twice, to count its bytes

MANIFEST = "manifest.json"
CHUNK = 1 << 20
_MOST = 16 << 20  # bytes of a manifest
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_TEMPORARY = re.compile(r"\.seqloom-tmp-\d+-[0-9a-f]{8}")
_ASIDE = ".seqloom-old."
_OCCUPIED = {errno.ENOTEMPTY, errno.EEXIST}
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_WAYS_OUT = {
    errno.EROFS: "; choose a folder that can be written to",
    errno.EACCES: "; choose a folder that you may write to",
    errno.EPERM: "; choose a folder that you may write to",
    errno.ENAMETOOLONG: "; choose a shorter name",
    errno.ENOTDIR: "; a file exists where a folder is needed, delete it or choose another name",
    errno.EISDIR: "; a folder exists where a file is needed, delete it or choose another name",
}


class Damaged(RunError):
    """Not what was written: `fault` names the file and the reason, the message also the way out, if it is known."""

    def __init__(self, fault: str, way_out: str = "") -> None:
        super().__init__(f"{fault}; {way_out}" if way_out else fault)
        self.fault = fault


def fault(error: Exception) -> str:
    """What is wrong, without the way out, for where it is taken at once."""
    return error.fault if isinstance(error, Damaged) else str(error)


def write_file(path: Path, data: bytes) -> None:
    """Replace the file atomically: it holds all of `data`, or its old content."""
    with new_file(path, lambda: len(data)) as file:
        file.write(data)


@contextmanager
def new_file(path: Path, needed: Callable[[], int] | None = None) -> Iterator[BinaryIO]:
    """Write a file incrementally: it replaces the old one when the block succeeds; on an error the old one stays."""
    with writing(path, needed):
        _remove_abandoned(path.parent)
        temporary, fd = _held_file(path.parent)
        try:
            yield cast(BinaryIO, _Hashed(fd))
            os.fsync(fd)
            os.rename(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        finally:
            os.close(fd)
        sync_folder(path.parent)


def publish(folder: Path, files: Mapping[str, Content]) -> None:
    """Replace the folder atomically: it holds exactly `files` and their manifest, or its old content."""
    for name in files:
        if name == MANIFEST or name.startswith(".") or "/" in name or not name:
            raise ValueError(f"{name!r} cannot be published: use a plain file name")
    with writing(folder, lambda: sum(map(_count, files.values()))):
        make_folder(folder.parent)
        temporary = _temporary_name(folder.parent)
        try:
            os.mkdir(temporary)
            written = {name: _write_new(temporary / name, content) for name, content in files.items()}
            _write_new(temporary / MANIFEST, _render_manifest(written))
            sync_folder(temporary)
            _move_into_place(temporary, folder)
        except BaseException:
            _undo(temporary, folder)
            raise
        sync_folder(folder.parent)
        if os.path.isdir(_aside(folder)):
            remove(_aside(folder))


def verify(folder: Path) -> None:
    """Raise Damaged unless the folder contains exactly the files and bytes that were published."""
    listed = _read_manifest(folder)
    for name in sorted(_names(folder) - set(listed) - {MANIFEST}):
        raise Damaged(f"{shown(folder / name)}: unexpected file, not listed in the manifest")
    for name, written in listed.items():
        try:
            with open_regular(folder / name) as file:
                size = os.fstat(file.fileno()).st_size
                digest = hashlib.file_digest(file, "sha256").hexdigest() if size == written["bytes"] else ""
        except OSError as error:
            raise Damaged(f"{shown(folder / name)}: {reason(error)}") from None
        if size != written["bytes"]:
            raise Damaged(f"{shown(folder / name)}: {size} bytes, but the manifest says {written['bytes']}")
        if digest != written["sha256"]:
            raise Damaged(f"{shown(folder / name)}: its content changed after it was written (SHA-256 differs)")


def digests(folder: Path) -> dict[str, str]:
    """The SHA-256 of each published file, by name, from the manifest."""
    return {name: written["sha256"] for name, written in _read_manifest(folder).items()}


def locate(folder: Path) -> Path:
    """Where a published folder currently is: in place, or renamed aside while a new version is moved in."""
    return next((place for place in (folder, _aside(folder), folder) if os.path.isdir(place)), folder)


def published(parent: Path) -> dict[str, Path]:
    """All published folders in `parent`, by name; not verified."""
    names = {name.removeprefix(_ASIDE) for name in _names(parent) if not _TEMPORARY.fullmatch(name)}
    places = {name: locate(parent / name) for name in sorted(names)}
    return {name: place for name, place in places.items() if os.path.isdir(place)}


def remove(folder: Path) -> None:
    """Remove a published folder. It is renamed first, so that no process sees it half removed."""
    with writing(folder), suppress(FileNotFoundError):  # another process removed it first
        doomed = _temporary_name(folder.parent)
        os.rename(folder, doomed)
        sync_folder(folder.parent)
        _remove_tree(doomed)


def sweep(parent: Path) -> None:
    """Clean up after a killed process: remove temporary files and folders, restore a folder renamed aside."""
    with writing(parent):
        for name in sorted(_names(parent)):
            if _TEMPORARY.fullmatch(name):
                _remove_tree(parent / name)
            elif name.startswith(_ASIDE):
                folder = parent / name.removeprefix(_ASIDE)
                if os.path.isdir(folder):
                    remove(parent / name)
                else:
                    os.rename(parent / name, folder)
                    sync_folder(parent)


def remove_dead(parent: Path) -> None:
    """Remove the temporary folders that killed processes left in a folder that is no run's, so has no lock."""
    for name in sorted(_names(parent)):
        if _TEMPORARY.fullmatch(name) and os.path.isdir(parent / name) and not _is_running(int(name.split("-")[2])):
            with suppress(OSError):
                _remove_tree(parent / name)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


def make_folder(folder: Path) -> None:
    """Create the folder and its parents, durably."""
    if os.path.isdir(folder) or folder == folder.parent:
        return
    make_folder(folder.parent)
    if not make_new_folder(folder) and not os.path.isdir(folder):
        raise RunError(f"cannot write {shown(folder)}: a file of that name exists; choose another name")


def make_new_folder(folder: Path) -> bool:
    """Create the folder, durably; False if the name is already taken."""
    with writing(folder):
        try:
            os.mkdir(folder)
        except FileExistsError:
            return False
        sync_folder(folder.parent)
    return True


def shown(path: Path | str) -> str:
    """A path for a one-line message, whatever characters it contains."""
    text = str(path)
    return text if text.isprintable() else repr(text)


@contextmanager
def writing(path: Path, needed: Callable[[], int] | None = None) -> Iterator[None]:
    """Turn an OSError into one line that says what could not be written and what to do about it."""
    try:
        yield
    except OSError as error:
        message = f"cannot write {shown(path)}: {reason(error)}"
        if error.errno in _NO_SPACE:
            bytes_needed = f" ({needed()} bytes needed)" if needed else ""
            raise RunError(f"{message}{bytes_needed}; free some space and run the same command again") from error
        raise RunError(message + _WAYS_OUT.get(error.errno or 0, "")) from error


class _Hashed(io.RawIOBase):
    """Writes to a file descriptor (None: discards), counting and hashing the bytes."""

    def __init__(self, fd: int | None) -> None:
        super().__init__()
        self.fd, self.size, self.digest = fd, 0, hashlib.sha256()

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.size

    def write(self, data: Any) -> int:
        view = memoryview(data)
        if not view.nbytes:
            return 0
        view = view.cast("B")
        if self.fd is not None:
            write_all(self.fd, view)
            self.digest.update(view)
        self.size += len(view)
        return len(view)


def _write_content(content: Content, out: _Hashed) -> None:
    if callable(content):
        content(cast(BinaryIO, out))
    else:
        out.write(content)


def _count(content: Content) -> int:
    counter = _Hashed(None)
    _write_content(content, counter)
    return counter.size


def _write_new(path: Path, content: Content) -> Json:
    fd = os.open(path, _NEW, 0o666)
    try:
        out = _Hashed(fd)
        _write_content(content, out)
        os.fsync(fd)
    finally:
        os.close(fd)
    return {"bytes": out.size, "sha256": out.digest.hexdigest()}


def _held_file(parent: Path) -> tuple[Path, int]:
    """A new temporary file, locked as long as it is open, so that no process takes it for abandoned."""
    while True:
        temporary = _temporary_name(parent)
        fd = os.open(temporary, _NEW, 0o666)
        with suppress(OSError):  # a file system without locks
            fcntl.flock(fd, fcntl.LOCK_EX)
        if os.fstat(fd).st_nlink:
            return temporary, fd
        os.close(fd)  # removed before it was locked


def _remove_abandoned(parent: Path) -> None:
    """Remove the temporary files that killed processes left."""
    for name in _names(parent):
        if _TEMPORARY.fullmatch(name):
            with suppress(OSError):  # a folder, in use, or gone
                fd = os.open(parent / name, os.O_WRONLY)
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(parent / name)
                finally:
                    os.close(fd)


def write_all(fd: int, view: memoryview) -> None:
    while view:
        view = view[os.write(fd, view[:CHUNK]) :]


def sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno != errno.EINVAL:  # not supported, nor needed, on some network file systems
            raise
    finally:
        os.close(fd)


def _move_into_place(temporary: Path, folder: Path) -> None:
    """Several processes may publish the same folder at once: the last one wins."""
    while True:
        try:
            os.rename(temporary, folder)
            return
        except OSError as error:
            if error.errno not in _OCCUPIED:
                raise
        remove(_aside(folder))  # redundant: the folder itself exists
        try:
            os.rename(folder, _aside(folder))
        except OSError as error:
            if error.errno not in {*_OCCUPIED, errno.ENOENT}:
                raise


def _undo(temporary: Path, folder: Path) -> None:
    with suppress(OSError, RunError):
        if os.path.isdir(temporary):
            _remove_tree(temporary)
        if os.path.isdir(_aside(folder)) and not os.path.lexists(folder):
            os.rename(_aside(folder), folder)


def _remove_tree(path: Path) -> None:
    if os.path.islink(path) or not os.path.isdir(path):
        os.unlink(path)
        return
    for name in _names(path):
        _remove_tree(path / name)
    os.rmdir(path)


def _names(folder: Path) -> set[str]:
    try:
        return set(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return set()
    except OSError as error:
        raise RunError(f"cannot read {shown(folder)}: {reason(error)}") from error


def _aside(folder: Path) -> Path:
    return folder.with_name(_ASIDE + folder.name)


def _temporary_name(parent: Path) -> Path:
    return parent / f".seqloom-tmp-{os.getpid()}-{secrets.token_hex(4)}"


def _render_manifest(files: Mapping[str, Any]) -> bytes:
    digest = hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
    return json.dumps({"files": files, "sha256": digest}, sort_keys=True, indent=1).encode() + b"\n"


def _read_manifest(folder: Path) -> Json:
    path = folder / MANIFEST
    try:
        data = read_regular(path, _MOST)
        files = json.loads(data)["files"]
        unchanged = data == _render_manifest(files)  # byte for byte: catches a flipped bit in white space too
        unchanged = unchanged and all(map(_is_entry, files.items()))
    except OSError as error:
        raise Damaged(f"{shown(path)}: {reason(error)}") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        unchanged = False
    if not unchanged:
        raise Damaged(f"{shown(path)}: changed after it was written")
    found: Json = files
    return found


def _is_entry(entry: tuple[str, Any]) -> bool:
    """Whether a manifest lists a plain file name with its size and SHA-256."""
    name, written = entry
    plain = os.path.basename(name) == name and name not in ("", ".", "..", MANIFEST)
    return plain and type(written["bytes"]) is int and type(written["sha256"]) is str


def reason(error: OSError) -> str:
    text = error.strerror or str(error)
    return "no space left on the device" if error.errno == errno.ENOSPC else text[0].lower() + text[1:]
