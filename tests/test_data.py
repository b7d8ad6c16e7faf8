"""Data: any kind of source is read as one stream, split in order, tokenised once; bad files are named in one line."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.core.errors import RunError, UserError
from seqloom.data import files, stream, text
from seqloom.data.samples import SAMPLES
from seqloom.data.split import split_text
from seqloom.data.stream import TokenStream, default_cache, prepare
from seqloom.data.text import Source, open_text
from seqloom.tokenizers import train_tokenizer

pytestmark = pytest.mark.long

POEM = "天地玄黄，宇宙洪荒。\nRoses are red,\n  violets are blue.\n\nCafé 🎉\n" * 50


def write(path: Path, content: str | bytes) -> str:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def whole(source: Source) -> str:
    return "".join(source.pieces())


def of_text(content: str, piece: int = 7) -> Source:
    return Source("a text", lambda: ((content[i : i + piece], False) for i in range(0, len(content), piece)))


@pytest.fixture
def small_blocks(monkeypatch):
    """Files of a few hundred bytes behave like large ones."""
    monkeypatch.setattr(files.read_blocks, "__defaults__", (64,))
    monkeypatch.setattr(text._join, "__defaults__", (64,))


@pytest.mark.parametrize(
    "suffix, pack", [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)]
)
def test_a_text_file_is_read_plain_or_compressed(tmp_path, suffix, pack, small_blocks):
    source = open_text(write(tmp_path / f"poem.txt{suffix}", pack(POEM.encode())))
    assert whole(source) == POEM == whole(source)
    assert source.bytes == len(POEM.encode()) and not source.documents
    assert source.hash == open_text(write(tmp_path / "same.txt", POEM)).hash
    assert all(len(piece) <= 4 * 64 for piece in source.pieces())


def test_a_byte_order_mark_is_dropped_and_line_ends_become_one_kind(tmp_path, small_blocks):
    source = open_text(write(tmp_path / "a.txt", b"\xef\xbb\xbf" + POEM.replace("\n", "\r\n").encode()))
    assert whole(source) == POEM
    assert source.bytes == len(POEM.encode())


def test_pieces_end_at_line_ends_and_long_lines_are_cut(tmp_path):
    lines = "a line of words\n" * 40_000
    pieces = list(open_text(write(tmp_path / "a.txt", lines + "x" * 2_000_000)).pieces())
    assert "".join(pieces) == lines + "x" * 2_000_000
    assert pieces[0].endswith("words") and pieces[1].startswith("\n")
    assert max(map(len, pieces)) <= 4 * files.BLOCK


def test_jsonl_and_csv_are_documents(tmp_path):
    texts = ['one, "quoted"', "two\nlines", "三"]
    rows = "".join(json.dumps({"id": i, "text": t}) + "\n\n" for i, t in enumerate(texts))
    table = 'id,text\r\n0,"one, ""quoted"""\r\n1,"two\r\nlines"\r\n\r\n2,三\r\n'
    tabbed = 'id\ttext\n0\t"one, ""quoted"""\n1\t"two\nlines"\n2\t三'
    for name, content in [("a.jsonl", rows), ("a.csv", table), ("a.tsv", tabbed)]:
        source = open_text(write(tmp_path / name, content))
        assert list(source.marked()) == [(t, True) for t in texts] and source.documents
        assert source.bytes == sum(len(t.encode()) for t in texts)
    assert whole(open_text(write(tmp_path / "b.jsonl.gz", gzip.compress(rows.encode())))) == "".join(texts)
    assert whole(open_text(str(tmp_path / "a.csv"), column="id")) == "012"


def test_a_directory_is_its_text_files_in_order(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / ".git").mkdir()
    write(tmp_path / "b.txt", "bee")
    write(tmp_path / "a.md", "ay")
    write(tmp_path / "sub" / "c.jsonl", '{"text": "see"}\n{"text": "sea"}\n')
    write(tmp_path / ".hidden", "no")
    write(tmp_path / ".git" / "config", "no")
    write(tmp_path / "image.png", b"\x89PNG\0\0")
    write(tmp_path / "empty.txt", "")
    source = open_text(str(tmp_path))
    assert list(source.marked()) == [("ay", True), ("bee", True), ("see", True), ("sea", True)]


def test_documents_cut_elsewhere_are_other_data(tmp_path):
    one = open_text(write(tmp_path / "1.jsonl", '{"text": "ab"}\n{"text": "c"}\n'))
    two = open_text(write(tmp_path / "2.jsonl", '{"text": "a"}\n{"text": "bc"}\n'))
    assert one.hash != two.hash


@pytest.mark.parametrize("name, size", [("python-docs", 300_000), ("python-source", 5_000_000)])
def test_samples_are_the_same_every_time(name, size):
    source = open_text(f"sample:{name}")
    assert source.bytes > size and source.hash == open_text(f"sample:{name}").hash
    assert name in SAMPLES


BAD_FILES = {
    "empty": ("a.txt", b"", "a.txt: the file is empty"),
    "only a mark": ("a.txt", b"\xef\xbb\xbf", "a.txt: the file is empty"),
    "binary": ("a.txt", b"abc\0def", "a.txt: a binary file (NUL byte at offset 3)"),
    "utf-16 without a mark": ("a.txt", "hallo".encode("utf-16-le"), "a.txt: UTF-16LE text without a byte order mark"),
    "latin1": (
        "a.txt",
        "Zeile\nschöner".encode("latin1"),
        "a.txt:2: not UTF-8; it looks like Latin-1 (Western European): add --encoding latin1",
    ),
    "cut off": ("a.txt", "天".encode()[:2], "a.txt:1: not UTF-8 (byte 0xe5 at column 1)"),
    "not gzip": ("a.txt.gz", b"plain", "a.txt.gz: damaged compressed file"),
    "half gzip": ("a.txt.gz", gzip.compress(os.urandom(5000))[:3000], "a.txt.gz: damaged compressed file"),
    "bad xz": ("a.txt.xz", b"plain", "a.txt.xz: damaged compressed file"),
    "xz of NULs": ("a.txt.xz", bytes(5000), "a.txt.xz: damaged compressed file"),
    "bad json": ("a.jsonl", b'{"text": "a"}\n{"text": \n', "a.jsonl:2: not valid JSON"),
    "cut json": ("a.jsonl", b'{"text": "a', "a.jsonl:1: not valid JSON: Unterminated string starting at column 10"),
    "no object": ("a.jsonl", b"[1]\n", "a.jsonl:1: expected one JSON object per line"),
    "no column": (
        "a.jsonl",
        b'{"txt": "a", "id": 1}\n',
        "a.jsonl:1: no column 'text'; available: txt, id; did you mean 'txt'?",
    ),
    "not text": ("a.jsonl", b'{"text": 3}\n', "a.jsonl:1: column 'text' is a number, not text"),
    "null": ("a.jsonl", b'{"text": null}\n', "a.jsonl:1: column 'text' is null"),
    "surrogate": ("a.jsonl", b'{"text": "\\ud800"}\n', "a.jsonl:1: column 'text' has a lone surrogate (\\ud800)"),
    "deep": ("a.jsonl", b'{"text": ' + b"[" * 100_000 + b"\n", "a.jsonl:1: JSON nested too deeply"),
    "huge number": ("a.jsonl", b'{"text": ' + b"9" * 5000 + b"}\n", "a.jsonl:1: not valid JSON"),
    "no text": ("a.jsonl", b'{"text": ""}\n', "a.jsonl: contains no text"),
    "header only": ("a.csv", b"id,text\n", "a.csv: contains no text"),
    "csv column": (
        "a.csv",
        b"id,texts\n1,a\n",
        "a.csv:2: no column 'text'; available: id, texts; did you mean 'texts'?",
    ),
    "ragged": ("a.csv", b'id,text\n1,"a\nb"\n2,b,c\n', "a.csv:4: 3 fields, but the header has 2"),
    "open quote": (
        "a.csv",
        b'id,text\n1,a\n2,"b\n3,c\n',
        "a.csv:3: not valid CSV: a quote is opened here and never closed",
    ),
    "csv nul": ("a.csv", b"id,text\n1,a\0\n", "a.csv: a binary file"),
    "csv latin1": ("a.csv", b"id,text\n1,\xe4\n", "a.csv:2: not UTF-8 (byte 0xe4 at column 3)"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_is_explained_in_one_line(tmp_path, case):
    name, content, message = BAD_FILES[case]
    path = write(tmp_path / name, content)
    with pytest.raises(UserError) as error:
        whole(open_text(path))
    assert message in str(error.value) and str(error.value).startswith(str(tmp_path))
    assert "\n" not in str(error.value) and error.value.exit_code == 2


def test_bad_utf8_far_into_a_file_is_found(tmp_path, small_blocks):
    path = write(tmp_path / "a.txt", POEM.encode() + b"ab\xff\n")
    with pytest.raises(UserError, match=r"a.txt:251: not UTF-8 \(byte 0xff at column 3\)"):
        whole(open_text(path))


def test_a_field_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("seqloom.data.rows.LONGEST_FIELD", 1000)
    path = write(tmp_path / "a.csv", 'text\n"' + "line\n" * 1000)
    with pytest.raises(UserError, match=r"a\.csv:2: not valid CSV: a field of more than"):
        whole(open_text(path))


@pytest.mark.parametrize(
    "spec, message",
    [
        ("none.txt", "none.txt: no such file"),
        ("sample:python-doc", "unknown sample 'python-doc'; did you mean 'python-docs'?"),
        ("/dev/null", "not a regular file"),
        ("a\0b", "not a valid file name"),
    ],
)
def test_a_wrong_name_is_explained(spec, message):
    with pytest.raises(UserError) as error:
        open_text(spec)
    assert message in str(error.value)


def test_a_directory_without_text_is_refused(tmp_path):
    write(tmp_path / "image", b"\0")
    with pytest.raises(UserError, match="no text files in this folder"):
        open_text(str(tmp_path))


@given(
    st.text(st.characters(exclude_categories=("Cs",)), min_size=60),
    st.sampled_from([0.1, 0.25]),
    st.sampled_from([0.0, 0.2]),
)
def test_the_parts_put_together_are_the_whole(content, valid, test):
    source = of_text(content)
    parts = split_text(source, valid, test)
    assert list(parts) == (["train", "valid", "test"] if test else ["train", "valid"])
    assert "".join(map(whole, parts.values())) == content
    for part in parts.values():
        assert part.bytes == len(whole(part).encode()) > 0
    assert len({part.hash for part in parts.values()}) == len(parts)
    assert abs(parts["valid"].bytes - valid * source.bytes) <= 5


def test_ninety_percent_is_the_same_cut_as_everyone_makes():
    content = "x" * 1_115_394
    assert split_text(of_text(content, 10_000))["train"].bytes == int(len(content) * 0.9)


def test_a_split_keeps_the_ends_of_documents():
    source = Source("documents", lambda: iter([("abcd", True), ("efgh", True), ("ij", True)]), documents=True)
    parts = split_text(source, 0.4)
    assert list(parts["train"].marked()) == [("abcd", True), ("ef", False)]
    assert list(parts["valid"].marked()) == [("gh", True), ("ij", True)]


@pytest.mark.parametrize(
    "content, valid, test",
    [("a", 0.1, 0.0), ("abc", 1e-12, 0.0), ("a" * 50, 0.9, 0.1), ("abc", 1.5, 0), ("abc", -0.1, 0)],
)
def test_impossible_splits_are_refused(content, valid, test):
    with pytest.raises(UserError):
        split_text(of_text(content), valid, test)


def test_no_validation_part_leaves_the_whole_text():
    assert {name: whole(part) for name, part in split_text(of_text("abc"), 0.0).items()} == {"train": "abc"}


@pytest.mark.parametrize("kind", ["characters", "bytes", "words", "bpe"])
def test_a_prepared_text_is_its_ids(tmp_path, kind):
    source = of_text(POEM, 400)
    tokenizer = train_tokenizer(kind, source.pieces(), size=400)
    done: list[int] = []
    prepared = prepare(source, tokenizer, tmp_path, done.append)
    ids = np.concatenate(list(tokenizer.encode_many(source.pieces())))
    assert prepared[:].tolist() == ids.tolist() and prepared[:].dtype == np.int64
    assert (
        prepared[3:10].tolist() == ids[3:10].tolist()
        and prepared[len(ids) - 2 : len(ids) + 5].tolist() == ids[-2:].tolist()
    )
    assert len(prepared) == len(ids) and prepared.bytes == len(POEM.encode()) == done[-1]
    assert prepared.counts.tolist() == np.bincount(ids, minlength=tokenizer.size).tolist()
    assert done == sorted(done)
    assert not list(tmp_path.glob("*.tmp"))


def test_documents_end_with_an_end(tmp_path):
    tokenizer = train_tokenizer("bytes", [])
    source = Source("documents", lambda: iter([("a", True), ("b", False), ("c", True)]), documents=True)
    assert prepare(source, tokenizer, tmp_path)[:].tolist() == [101, tokenizer.eos, 102, 103, tokenizer.eos]


def test_the_second_time_nothing_is_tokenised(tmp_path, monkeypatch):
    source, tokenizer = of_text(POEM), train_tokenizer("bytes", [])
    first = prepare(source, tokenizer, tmp_path)
    monkeypatch.setattr(tokenizer, "encode_many", None)
    second = prepare(source, tokenizer, tmp_path)
    assert second[:].tolist() == first[:].tolist() and second.hash == first.hash
    assert second.counts.tolist() == first.counts.tolist() and second.bytes == first.bytes


def test_another_text_or_tokenizer_is_another_entry(tmp_path):
    tokenizers = [train_tokenizer(kind, [POEM]) for kind in ("bytes", "characters")]
    hashes = {prepare(of_text(t), k, tmp_path).hash for t in (POEM, POEM[:-1]) for k in tokenizers}
    assert len(hashes) == 4 == len(list(tmp_path.glob("*.ids")))


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: data[:100], lambda data: b"", lambda data: data + b"x"]
)
def test_a_damaged_entry_is_made_again(tmp_path, damage):
    source, tokenizer = of_text(POEM), train_tokenizer("bytes", [])
    ids = prepare(source, tokenizer, tmp_path)[:].tolist()
    (entry,) = tmp_path.glob("*.ids")
    entry.write_bytes(damage(entry.read_bytes()))
    assert prepare(source, tokenizer, tmp_path)[:].tolist() == ids


def test_an_interrupted_preparation_leaves_nothing(tmp_path):
    def stop(done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(of_text(POEM), train_tokenizer("bytes", []), tmp_path, stop)
    assert not list(tmp_path.iterdir())


def test_old_temporary_files_are_swept(tmp_path):
    for name, age in [("old.tmp", 10**6), ("new.tmp", 0)]:
        write(tmp_path / name, "x")
        then = (tmp_path / name).stat().st_mtime - age
        os.utime(tmp_path / name, (then, then))
    prepare(of_text(POEM), train_tokenizer("bytes", []), tmp_path)
    assert [path.name for path in tmp_path.glob("*.tmp")] == ["new.tmp"]


def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(stream.os, "fsync", full)
    with pytest.raises(RunError, match=r"No space left on device.*SEQLOOM_CACHE"):
        prepare(of_text(POEM), train_tokenizer("bytes", []), tmp_path)
    assert not list(tmp_path.iterdir())


def test_reading_gives_memory_back(tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "KEPT", 3 * stream.AROUND)
    prepared = prepare(of_text(POEM), train_tokenizer("bytes", []), tmp_path)
    before = [prepared[i : i + 5].tolist() for i in range(20)]
    assert before == [prepared[i : i + 5].tolist() for i in range(20)]
    assert prepared._mapped <= stream.KEPT


@pytest.mark.parametrize("size, width", [(5, 1), (256, 1), (257, 2), (65_536, 2), (65_537, 4)])
def test_ids_take_as_little_room_as_they_can(size, width):
    prepared = TokenStream.of(np.array([0, size - 1, 1]), 3, size)
    assert stream.id_type(size).itemsize == width
    assert prepared[:].tolist() == [0, size - 1, 1] and len(prepared.counts) == size
    assert prepared[:].dtype == np.int64 and prepared.bytes == 3


def test_the_cache_is_where_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.delenv("SEQLOOM_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "seqloom"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_cache() == Path.home() / ".cache" / "seqloom"
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "own"))
    prepared = prepare(of_text("abc"), train_tokenizer("bytes", []))
    assert len(prepared) == 3 and list((tmp_path / "own").glob("*.ids"))


def test_a_text_without_a_token_is_an_empty_stream(tmp_path):
    tokenizer = train_tokenizer("words", ["a b"])
    assert prepare(of_text("   "), tokenizer, tmp_path)[:].tolist() == []
