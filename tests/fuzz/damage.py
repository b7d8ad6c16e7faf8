"""What spoils a file as a whole. A damage takes a valid source and gives a spoiled one, with whether a command has to
refuse it; spoiled.py has those that know what is in the file."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace

from hypothesis import strategies as st

from fuzz.case import File, Wanted, binary, repeated, text
from fuzz.sources import Draw, Source
from fuzz.tables import UTF8

Spoiled = tuple[Source, Wanted, str]
Damage = Callable[[Draw, Source], Spoiled | None]  # None: not for such a source

PACKED = ("csv.gz", "tsv.bz2", "jsonl.xz", "parquet", "lengths", "offsets")
PLACES = {  # what may be where a file was expected, by the kind of `File`
    "fifo": "",
    "socket": "",
    "folder": "",
    "link": "/dev/zero",
}
LINKS = ("/dev/zero", "/dev/null", "/dev/stdin", "/dev/tty", "nowhere", "data.csv/x", "/proc/self/mem", "/", "\udcff")


def file_of(source: Source, file: File) -> Source:
    return replace(source, files=(file, *source.files[1:]), table=None)


def content(source: Source) -> bytes:
    first = source.files[0]
    return base64.b64decode(first.content) if first.kind == "base64" else first.content.encode("utf-8", "surrogatepass")


def emptied(draw: Draw, source: Source) -> Spoiled | None:
    """Nothing, or white space, which is a text too: a model of language can learn it."""
    blank = draw(st.sampled_from(["", " ", "\n\n\n", "\t\n \r\n", "\ufeff", "\x00" * 10]))
    if len(source.files) > 1:
        source = replace(source, files=tuple(text(file.path, blank) for file in source.files), table=None)
    wanted: Wanted = "either" if source.task in ("language_model", "masked_lm") and blank.isspace() else "fail"
    return file_of(source, text(source.files[0].path, blank)), wanted, f"emptied: {blank!r}"


def truncated(draw: Draw, source: Source) -> Spoiled | None:
    data, share = content(source), draw(st.floats(0.02, 0.98))
    wanted: Wanted = "fail" if source.kind in (*PACKED, "squad") else "either"
    return (
        file_of(source, binary(source.files[0].path, data[: int(len(data) * share)])),
        wanted,
        f"truncated at {share:.2f}",
    )


def inserted(draw: Draw, source: Source) -> Spoiled | None:
    """Bytes in the middle. What is no UTF-8, or a NUL, has to be refused where the file is plain text."""
    data, share = content(source), draw(st.floats(0.0, 1.0))
    piece = draw(
        st.sampled_from([b"\x00", b"\xff\xfe\xfd", b"\xc3(", b"\xed\xa0\x80", b"\r", b'"', b"\x1a", b"\xef\xbb\xbf"])
    )
    at = int(len(data) * share)
    at = next((n for n in range(at, -1, -1) if n == len(data) or data[n] < 0x80), 0)  # between two characters
    plain = source.kind in (*UTF8, "squad", "conll") or source.files[0].path.endswith(("txt", "md", "text", "en"))
    wanted: Wanted = "fail" if plain and len(source.files) == 1 and piece[0] in (0, 255, 0xC3, 0xED) else "either"
    return (
        file_of(source, binary(source.files[0].path, data[:at] + piece + data[at:])),
        wanted,
        f"{piece!r} at {share:.2f}",
    )


def flipped(draw: Draw, source: Source) -> Spoiled | None:
    data = bytearray(content(source))
    for _ in range(draw(st.integers(1, 4))):
        data[draw(st.integers(0, len(data) - 1))] ^= 1 << draw(st.integers(0, 7))
    return file_of(source, binary(source.files[0].path, bytes(data))), "either", "bits flipped"


def garbage(draw: Draw, source: Source) -> Spoiled | None:
    heads = [
        b"",
        b"PK\x03\x04",
        b"PAR1",
        b"\x1f\x8b\x08",
        b"\x93NUMPY\x01\x00",
        b"BZh9",
        b"\xfd7zXZ\x00",
        b"%PDF-1.4\n",
        b"{",
    ]
    data = draw(st.sampled_from(heads)) + draw(st.binary(min_size=40, max_size=400)) + b"\xff\x00\xff"
    if len(source.files) > 1:
        return None
    return file_of(source, binary(source.files[0].path, data)), "fail", f"garbage {data[:8]!r}"


def elsewhere(draw: Draw, source: Source) -> Spoiled | None:
    """Something else where the file was."""
    kind = draw(st.sampled_from(["fifo", "socket", "folder", "link", "missing"]))
    name = source.files[0].path
    content = draw(st.sampled_from([*LINKS, name])) if kind == "link" else ""
    files = () if kind == "missing" else (File(name, content, kind),)
    whole = replace(source, files=(*files, *source.files[1:]), spec=source.data, table=None)
    in_folder = source.spec == "data"
    wanted: Wanted = "either" if in_folder or content == "/" else "fail"
    return whole, wanted, f"{kind} {content} instead of the file"


def misnamed(draw: Draw, source: Source) -> Spoiled | None:
    ending = draw(
        st.sampled_from(["parquet", "npz", "gz", "xz", "json", "jsonl", "po", "csv", "bz2", "txt", "", "CSV", "pdf"])
    )
    if len(source.files) > 1 or source.files[0].path.endswith(ending or "-"):
        return None
    file = replace(source.files[0], path=f"data.{ending}")
    packed = ("gz", "xz", "bz2", *(("parquet", "npz") if source.task in ("classification", "forecasting") else ()))
    known = ending in packed and ending not in source.kind
    return replace(source, files=(file,), table=None), "fail" if known else "either", f"called .{ending}"


def spliced(draw: Draw, source: Source) -> Spoiled | None:
    from fuzz.sources import SOURCES

    other = SOURCES[draw(st.sampled_from(sorted(SOURCES)))](draw)
    data = [content(source), content(other)]
    if draw(st.booleans()):
        data.reverse()
    return (
        file_of(source, binary(source.files[0].path, b"".join(data))),
        "either",
        f"joined with {other.kind or other.task}",
    )


def huge(draw: Draw, source: Source) -> Spoiled | None:
    """A file that is large in one way: a cell, a line, the number of lines, of columns, or NULs."""
    name, way = source.files[0].path, draw(st.sampled_from(["cell", "lines", "columns", "nuls", "nested"]))
    if len(source.files) > 1:
        return None
    if way == "nuls":
        return file_of(source, File(name, str(3 << 30), "sparse")), "fail", "3 GB of NULs"
    if way == "nested":
        return file_of(source, repeated(name, '{"text": ', "[", 200_000)), "either", "nested 200,000 deep"
    head = (",".join(source.table.header) if source.table else "text,label") + "\n"
    row = ",".join(map(str, source.table.rows[0])) if source.table else "the cat,good"
    made = {
        "cell": repeated(name, head + '"', "a ", 2_000_000, '",good\n'),
        "lines": repeated(name, head, row + "\n", 20_000),
        "columns": repeated(name, "a,", "b,", 200_000, "c\n1,2,3\n"),
    }
    return file_of(source, made[way]), "either", f"huge: {way}"


FILES: tuple[Damage, ...] = (emptied, truncated, inserted, flipped, garbage, elsewhere, misnamed, spliced, huge)
