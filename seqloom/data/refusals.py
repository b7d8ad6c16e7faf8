"""Error messages for files that are not UTF-8 text: what the file looks like instead, and what to do, in one line."""

from __future__ import annotations

import codecs
import re
import shlex
import zipfile
from collections.abc import Iterable
from pathlib import Path

from seqloom.core.errors import UserError
from seqloom.data.encodings import Encoding, is_surely_utf8, recognise, recognise_wide

SAMPLE = 1 << 17  # bytes at the beginning, and as many from the first one that is not UTF-8

_CONTROLS = re.compile(rb"[\0-\x08\x0e-\x1f]")
_RARE = 50  # bytes of a text for each of these that slipped in; a binary file has more of them
_SPREADSHEET = "save it as CSV (UTF-8) in the program that made it"
_DOCUMENT = "save it as plain text (UTF-8) in the program that made it"
_RENAME = "rename it so that its name ends in "
FORMATS = {  # first bytes: what it is, and the way out
    b"\xd0\xcf\x11\xe0": ("an older Excel workbook or Word document", "save it as CSV or plain text (UTF-8)"),
    b"%PDF-": ("a PDF document", "extract its text first, for example with pdftotext"),
    b"{\\rtf": ("a rich text document", _DOCUMENT),
    b"PAR1": ("a parquet file", _RENAME + ".parquet"),
    b"\x1f\x8b": ("compressed with gzip", _RENAME + ".gz"),
    b"BZh": ("compressed with bzip2", _RENAME + ".bz2"),
    b"\xfd7zXZ": ("compressed with xz", _RENAME + ".xz"),
    b"7z\xbc\xaf": ("a 7z archive", "unpack it first"),
    b"SQLite format 3": ("an SQLite database", "export the table as CSV"),
}
KEPT_NAMES = {  # formats that only some tasks read: what it is, and the way out
    ".parquet": ("a parquet file", "this task reads text; save it as CSV or JSONL"),
    ".npz": ("an NPZ file of arrays", "this task reads text; arrays are for classification"),
}
ZIPPED = {  # a name inside: what it is, and the way out
    "xl/": ("an Excel workbook", _SPREADSHEET),
    "word/": ("a Word document", _DOCUMENT),
    "content.xml": ("an OpenDocument file", "save it as CSV or plain text (UTF-8)"),
    "": ("a zip archive", "unpack it first"),
}


class Undecodable(UserError):
    """A text in another encoding than it is read as; `encoding`: the one that it is in, if that is clear."""

    def __init__(self, message: str, encoding: str | None = None) -> None:
        super().__init__(message)
        self.encoding = encoding


def not_utf8(path: Path, line: int, place: str, blocks: Iterable[bytes]) -> UserError:
    """`place`: the first byte that is not UTF-8."""
    sample, damaged = _sampled(blocks)
    if known := _format(path, sample):
        return known
    if damaged:
        advice = "the rest is UTF-8: repair this line, or leave out such bytes: iconv -c -f utf-8 -t utf-8"
        return UserError(f"{path}:{line}: not UTF-8 {place}; {advice}")
    verdict = recognise(sample)
    if verdict.best is None:
        return Undecodable(f"{path}:{line}: not UTF-8 {place}; {_unclear(verdict.likely)}")
    name = verdict.best.name
    return Undecodable(f"{path}:{line}: not UTF-8; it looks like {verdict.best}: {_way_out(path, name)}", name)


def not_as_declared(path: Path, line: int, name: str, codec: str, blocks: Iterable[bytes]) -> UserError:
    """`name`: the encoding that the user gave, or that the byte order mark says; `codec`: what it was read as."""
    sample, _ = _sampled(blocks)
    if known := _format(path, sample):
        return known
    if is_surely_utf8(sample):
        return Undecodable(f"{path}:{line}: not {name}; it is UTF-8: leave --encoding out", "utf-8")
    if not codec.startswith(("utf-16", "utf-32")) and (wide := recognise_wide(sample)):
        return Undecodable(f"{path}:{line}: not {name}; it looks like {wide.upper()}: use --encoding {wide}", wide)
    best = recognise(sample).best
    if best is None or best.codec == codec:
        return Undecodable(f"{path}:{line}: not {name}, or damaged; repair this line, or give another --encoding")
    return Undecodable(f"{path}:{line}: not {name}; it looks like {best}: use --encoding {best.name}", best.name)


def not_text(path: Path, first: bytes, offset: int, line: int) -> UserError:
    """A file with a NUL byte; `first`: its beginning."""
    if known := _format(path, first):
        return known
    if wide := recognise_wide(first):
        return Undecodable(f"{path}: {wide.upper()} text without a byte order mark: {_way_out(path, wide)}", wide)
    if _RARE * len(_CONTROLS.findall(first)) < len(first):
        way_out = f"remove such bytes: tr -d '\\000' < {shlex.quote(str(path))} > clean{path.suffix}"
        return UserError(f"{path}:{line}: a NUL byte in a text; {way_out}")
    return UserError(f"{path}: a binary file (NUL byte at offset {offset}); give a text file in UTF-8")


def check_name(path: Path, first: bytes) -> None:
    """Refuse a text in a file whose name says that it is none; `first`: its beginning."""
    if kept := KEPT_NAMES.get(path.suffix.lower()):
        fault = f"{path}: by its name {kept[0]}, but it is none; rename it, or write it again"
        raise _format(path, first) or UserError(fault)


def _format(path: Path, first: bytes) -> UserError | None:
    found = next((known for start, known in FORMATS.items() if first.startswith(start)), None)
    if first.startswith(b"PK\x03\x04"):
        try:
            names = zipfile.ZipFile(path).namelist()
        except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
            names = []
        found = next(
            known for inside, known in ZIPPED.items() if any(n.startswith(inside) for n in names) or not inside
        )
    found = found and KEPT_NAMES.get(path.suffix.lower(), found)
    return UserError(f"{path}: {found[0]}, not text: {found[1]}") if found else None


def _way_out(path: Path, name: str) -> str:
    kinds = [kind for kind in path.suffixes[-2:] if kind not in (".gz", ".xz", ".bz2")]
    convert = f"iconv -f {name} -t utf-8 {shlex.quote(str(path))} > utf8{kinds[-1] if kinds else '.txt'}"
    return f"add --encoding {name}" + (f", or convert it: {convert}" if kinds == path.suffixes[-2:] else "")


def _unclear(likely: Iterable[Encoding]) -> str:
    names = [encoding.name for encoding in likely]
    tried = f", or try --encoding {' or '.join(names)}" if names else ", or give its --encoding"
    return f"its encoding is not clear: save it as UTF-8{tried}"


def _sampled(blocks: Iterable[bytes]) -> tuple[bytes, bool]:
    """Lines from the beginning and from the first one that is not UTF-8; and whether the rest of these is UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    head = tail = b""
    bad = False
    for block in blocks:
        if not bad:
            try:
                decoder.decode(block)
            except UnicodeDecodeError as error:
                bad = True
                start = max(0, error.start - (len(error.object) - len(block)))
                if head:
                    at = block.rfind(b"\n", 0, start) + 1
                    tail, block = block[at:], block[:at]
        elif len(head) >= SAMPLE:
            tail += block
        if len(head) < SAMPLE:
            head += block
        if bad and len(head) >= SAMPLE and len(tail) >= SAMPLE:
            break
    sample = _lines(head) + _lines(tail)
    text = sample.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    return sample, sum(character > "\x7f" for character in text) - broken > 10 * broken


def _lines(data: bytes) -> bytes:
    """Without an incomplete last line; a cut anywhere else could be inside a character."""
    if len(data) < SAMPLE:
        return data
    cut = re.match(rb"(?s).*[\r\n ,]", data[:SAMPLE])
    return cut[0] if cut else data[:SAMPLE]
