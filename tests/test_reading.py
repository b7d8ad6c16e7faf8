"""Files as documents: text, code, Markdown, tables; folders; what cannot be read."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from seqloom.core.errors import UserError
from seqloom.data.files import declare
from seqloom.retrieve.document import Document
from seqloom.retrieve.reading import files, limits, read


def one(path: Path, content: str | bytes) -> Document:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (found,) = read(path, path.name)
    return found


def refused(path: Path, content: bytes = b"") -> str:
    if content:
        path.write_bytes(content)
    with pytest.raises(UserError) as error:
        list(read(path, path.name))
    message = str(error.value)
    assert "\n" not in message and message.startswith(f"{path}")
    return message.removeprefix(str(path))


def test_text_is_the_file_and_places_are_lines(tmp_path: Path) -> None:
    found = one(tmp_path / "a.txt", "one\ntwo\r\n三\n")
    assert found.text == "one\ntwo\n三\n"
    assert [found.number(found.text.index(word)) for word in ("one", "two", "三")] == [1, 2, 3]
    assert (found.path, found.title, found.unit) == ("a.txt", "a.txt", "line")


@pytest.mark.parametrize("name", ["a.py", "b.rs", "c.JSON", "Makefile", "README", "d.txt.gz"])
def test_source_code_and_compressed_text_are_text(tmp_path: Path, name: str) -> None:
    content = b"x = 1\n"
    assert one(tmp_path / name, gzip.compress(content) if name.endswith("gz") else content).text == "x = 1\n"


def test_gbk_is_read_when_declared_and_noted_otherwise(tmp_path: Path) -> None:
    path, text = tmp_path / "a.txt", "今天的天气很好，我们一起去公园散步，然后回家吃饭。" * 5
    found = one(path, text.encode("gbk"))
    assert (found.text, found.notes) == (text, ("not UTF-8: read as gb18030",))
    declare(str(path), "gbk")
    assert one(path, text.encode("gbk")).text == text


def test_utf_16_with_its_mark_is_read(tmp_path: Path) -> None:
    assert one(tmp_path / "a.txt", "中文\nb".encode("utf-16")).text == "中文\nb"


def test_characters_without_width_are_hidden(tmp_path: Path) -> None:
    found = one(
        tmp_path / "a.txt",
        "pay\u200b\u200dload, 👩\u200d💻, \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645, a\u200db",
    )
    assert [(found.text[h.start - 1 : h.end + 1], h.reason) for h in found.hidden] == [
        ("y\u200b\u200dl", "zero width"),
        ("a\u200db", "zero width"),
    ]


MARKDOWN = """\
---
title: "The title"
---
# First #

text `<!-- code -->` <!-- secret
over lines --> more

```python
# no heading
```

Second
------
- item
---
| a |
|---|
### 第三 <!-- x -->
[//]: # (also a comment)
####### seven
    # code
"""


def test_headings_of_markdown_are_those_outside_of_code(tmp_path: Path) -> None:
    found = one(tmp_path / "a.md", MARKDOWN)
    assert found.text == MARKDOWN and found.title == "The title"
    assert [(heading.level, heading.text) for heading in found.headings] == [(1, "First"), (2, "Second"), (3, "第三")]
    assert all(found.text.startswith(heading.text, heading.start) for heading in found.headings)
    assert found.number(found.headings[2].start) == 19


def test_comments_of_markdown_are_hidden(tmp_path: Path) -> None:
    found = one(tmp_path / "a.md", MARKDOWN)
    assert [found.text[h.start : h.end] for h in found.hidden] == [
        "<!-- secret\nover lines -->",
        "<!-- x -->",
        "[//]: # (also a comment)",
    ]


def test_a_row_of_a_table_is_a_document(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('id,review,stars\n1,"a fine\nfilm it was",5\n2,,4\n3,a long and boring film,1\n')
    found = list(read(path, "sub/a.csv"))
    assert [(d.path, d.text, d.number(0), d.unit) for d in found] == [
        ("sub/a.csv#1", "a fine\nfilm it was", 1, "row"),
        ("sub/a.csv#3", "a long and boring film", 3, "row"),
    ]


@pytest.mark.parametrize(("title", "text"), [("title", "abstract"), ("标题", "内容")])
def test_the_title_of_a_row_is_its_heading(tmp_path: Path, title: str, text: str) -> None:
    path = tmp_path / "a.jsonl"
    words = ["Winter", "Rain", "Storms", "Fog", "Snow"]
    rows = [{"_id": word[:2], title: f"About  {word}", text: f"{word} is what this text speaks of."} for word in words]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = list(read(path, "a.jsonl"))[2]
    assert found.text == "About Storms\n\nStorms is what this text speaks of."
    assert (found.title, found.headings[0].text) == ("About Storms", "About Storms")


def test_columns_may_be_given_by_name_or_number(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("one thing here\tanother thing there\nsome more words\tand even more words\n")
    assert [d.text for d in read(path, "a", {"text": "2"})] == ["another thing there", "and even more words"]
    path.write_text("a\tb\nsome text\tother text\n")
    assert [(d.text, d.title) for d in read(path, "a", {"text": "b", "title": "a"})] == [
        ("some text\n\nother text", "some text")
    ]


def test_a_table_with_two_texts_asks_which(tmp_path: Path) -> None:
    rows = "".join(f"{n} is what number,{9 - n} is the answer to it\n" for n in range(9))
    assert "could be the text: question" in refused(tmp_path / "a.csv", f"question,answer\n{rows}".encode())


def test_a_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("review,stars\nfine film,5\n")
    with pytest.raises(UserError, match=r"no column 'revew'; .*did you mean 'review'"):
        list(read(path, "a.csv", {"text": "revew"}))
    with pytest.raises(UserError, match="unknown role of a column 'txt'"):
        list(read(path, "a.csv", {"txt": "review"}))


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.pdf", "a.docx", "a.csv", "a.jsonl"])
def test_an_empty_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    assert refused(tmp_path / name) == ": the file is empty"


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html"])
def test_a_file_of_white_space_is_refused(tmp_path: Path, name: str) -> None:
    assert refused(tmp_path / name, b" \n\n") == ": no text in it"


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.csv", "a.py"])
def test_a_binary_with_the_name_of_a_text_is_refused(tmp_path: Path, name: str) -> None:
    assert "a binary file" in refused(tmp_path / name, bytes(range(256)) * 9)


def test_a_pdf_with_the_name_of_a_text_is_called_one(tmp_path: Path) -> None:
    assert "a PDF document, not text" in refused(tmp_path / "a.txt", b"%PDF-1.4\n\x00\x01")


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.pdf", "a.docx", "a.csv"])
def test_a_huge_file_is_refused_without_being_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.touch()
    os.truncate(path, (1 << 30) + 1)
    assert "larger than 1" in refused(path) and "the most that is read; split it" in refused(path)


def test_text_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LARGEST", 1 << 20)
    assert "larger than" in refused(tmp_path / "a.txt.gz", gzip.compress(b"a" * (2 << 20)))
    monkeypatch.setattr(limits, "LONGEST_LINE", 1 << 20)
    assert "a line of more than 1 MB" in refused(tmp_path / "a.jsonl.gz", gzip.compress(b"a" * (3 << 20)))


def test_a_kind_that_is_not_known_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path / "a.png", b"png").startswith(": no reader for .png; known: .txt")
    assert refused(tmp_path / "missing.txt") == ": no such file"


def test_a_folder_gives_known_files_in_order_and_counts_the_rest(tmp_path: Path) -> None:
    names = ["b.txt", "a/z.md", "a/b/c.py", "x.png", "y.png", "noise", ".git/config.txt", ".hidden.txt", "c.pdf.gz"]
    names += ["node_modules/m.js", "build/doc.txt", "app/build/made.txt", "app/package.json", "README", "中文/文档.md"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "out.txt").symlink_to("/etc/hostname")
    os.mkfifo(tmp_path / "pipe.txt")
    skipped: Counter[str] = Counter()
    found = list(files(tmp_path, skipped))
    assert [name for _, name in found] == [
        "README", "b.txt", "a/z.md", "a/b/c.py", "app/package.json", "build/doc.txt", "中文/文档.md",
    ]  # fmt: skip
    assert all(path == tmp_path / name for path, name in found)
    assert skipped == {
        ".png": 2, "no suffix": 1, "links": 2, "node_modules/": 1, "build/": 1, "not regular files": 1, ".gz": 1,
        "hidden files and folders": 2,
    }  # fmt: skip


def test_a_single_file_is_a_folder_of_one(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("text")
    assert list(files(path)) == [(path, "a.txt")]
    with pytest.raises(UserError, match="no such file"):
        list(files(tmp_path / "missing"))


def test_a_name_that_is_not_utf8_is_counted(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/\xff.txt", "w") as file:
        file.write("text")
    skipped: Counter[str] = Counter()
    assert list(files(tmp_path, skipped)) == [] and skipped == {"names that are not UTF-8": 1}


@pytest.mark.parametrize(("name", "package"), [("a.pdf", "pypdf"), ("a.docx", "docx")])
def test_a_package_that_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    content = io.BytesIO()
    zipfile.ZipFile(content, "w").close()
    assert "pip install 'seqloom[retrieve]'" in refused(tmp_path / name, content.getvalue())


def test_a_text_whose_encoding_is_not_clear_is_refused_without_an_option_that_there_is_not(tmp_path: Path) -> None:
    said = refused(tmp_path / "a.txt", b"plain words \x81\xff and \x9d more \xfe\xfe words\n" * 5)
    assert said.startswith(":1: not UTF-8") and "save it as UTF-8" in said and "--encoding" not in said


@pytest.mark.parametrize(
    ("name", "content", "rows", "note"),
    [
        ("a.jsonl", '{"text": "one"}\n{"text": \n{"text": "three"}\n', [1, 3], "1 row is not valid and left out: line"),
        ("a.csv", "id,text\n1,one\n2,two,too\n3,three\n4\n", [1, 3], "2 rows are not valid and left out: line 3: 3 fi"),
        ("a.csv", 'id,text\n1,one\n2,two\n3,"three\n', [1, 2], "1 row is not valid and left out, nor can what follo"),
    ],
)  # fmt: skip
def test_rows_that_are_not_valid_are_left_out_and_counted(
    tmp_path: Path, name: str, content: str, rows: list[int], note: str
) -> None:
    (tmp_path / name).write_text(content)
    found = list(read(tmp_path / name, name))
    assert [document.path for document in found] == [f"{name}#{row}" for row in rows]
    assert next(said for document in found for said in document.notes).startswith(note)


def test_an_index_inside_of_a_folder_is_not_read(tmp_path: Path) -> None:
    for name in ("a.txt", "old.index/index.json", "old.index/catalogue.sqlite", "old.index/store/b.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text")
    skipped: Counter[str] = Counter()
    assert [name for _, name in files(tmp_path, skipped)] == ["a.txt"] and skipped == {"indexes": 1}
