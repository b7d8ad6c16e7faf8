"""What an index says when its folder, its files or its own parts are not as they should be."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from retrieve_toys import write_folder

from seqloom.core.errors import UserError
from seqloom.retrieve import writing
from seqloom.retrieve.answering import ask
from seqloom.retrieve.index import Index, index
from seqloom.retrieve.reading import limits

QUESTION = "How long does the guarantee last?"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_folder(tmp_path / "texts", 3)
    (tmp_path / "texts" / "terms.txt").write_text("The guarantee lasts three years.\n")
    return tmp_path / "texts"


@pytest.fixture
def made(folder: Path) -> Path:
    index(folder, folder.parent / "index").close()
    return folder.parent / "index"


def refused(folder: Path, out: Path, **how: object) -> str:
    with pytest.raises(UserError) as error:
        index(folder, out, **how)  # type: ignore[arg-type]
    return str(error.value)


def test_a_quotation_says_that_its_file_has_changed(folder: Path, made: Path) -> None:
    os.utime(folder / "terms.txt", (1, 1))
    assert ask(made, QUESTION).changed == {}
    (folder / "terms.txt").write_text("The guarantee lasts seven years.\n")
    reply = ask(made, QUESTION)
    assert "terms.txt, line 1 (the file has changed since it was indexed)\n\nbring the index up to date" in str(reply)
    assert reply.facts["sentences"][0]["quotation"]["since_indexed"] == "changed"
    assert "the file has changed since it was indexed" in reply.page() and "文件在建立索引后已被修改" in reply.page()
    (folder / "terms.txt").unlink()
    assert "terms.txt, line 1 (the file is no longer there)" in str(ask(made, QUESTION))


def test_documents_of_a_folder_that_cannot_be_read_stay(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "away").mkdir()
    (folder / "away" / "more.txt").write_text("The museum opens at nine.\n")
    out, listed = folder.parent / "index", os.scandir
    with index(folder, out) as made:
        count = made.counts()

    def failing(path: str | Path) -> object:
        if Path(path).name == "away":
            raise OSError(5, "Input/output error")
        return listed(path)

    monkeypatch.setattr(os, "scandir", failing)
    with index(folder, out) as made:
        assert made.counts() == count
        assert made.changes.ignored == {"folders that cannot be read": 1}


def test_a_refused_command_leaves_nothing_behind(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "a.exe").write_bytes(b"MZ")
    said = refused(tmp_path / "empty", tmp_path / "new")
    assert said.endswith("empty: no files in it that can be read (.exe 1); choose another folder")
    assert refused(folder, tmp_path / "new", columns={"foo": "body"}).startswith("unknown role of a column 'foo'")
    before = os.listdir(folder)
    refused(folder, folder)
    assert not (tmp_path / "new").exists() and os.listdir(folder) == before


def test_after_a_server_that_is_not_there_another_store_can_be_named(tmp_path: Path, folder: Path) -> None:
    assert "Connection refused" in refused(folder, tmp_path / "new", store="postgresql://127.0.0.1:9/x")
    index(folder, tmp_path / "new").close()


def test_an_index_keeps_its_columns(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.csv").write_text("body,other\nthe zebra,words that are longer\n")
    for columns in ({"text": "body"}, None):
        with index(tmp_path / "t", tmp_path / "i", columns=columns) as found:
            assert found.document("a.csv#1").text == "the zebra"


def test_an_index_of_a_newer_version_is_not_taken_for_a_folder_of_files(folder: Path, made: Path) -> None:
    facts = json.loads((made / "index.json").read_text())
    del facts["seal"]
    (made / "index.json").write_text(json.dumps(facts | {"format": 99}))
    assert refused(folder, made).endswith("; update seqloom")


def test_a_damaged_record_is_one_line(made: Path) -> None:
    with Index.open(made) as found:
        found._catalogue._write("UPDATE documents SET about = ?", [("{",)])
    with pytest.raises(UserError, match=r"^[^\n]*the record of '.*' is damaged; restore the file, or index into a new"):
        ask(made, QUESTION)


def test_an_index_that_cannot_be_written_to_is_one_line(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(UserError, match="read-only, and opening an index needs write permission; copy it"):
        Index.open(made)


def test_a_file_that_is_too_large_is_refused_before_it_is_read(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.truncate(folder / "terms.txt", 1 << 30)
    monkeypatch.setattr(writing.hashlib, "file_digest", None)
    for path in folder.glob("0*"):
        path.unlink()
    with index(folder, tmp_path / "new") as found:
        assert found.changes.skipped["terms.txt"].startswith(f"larger than {limits.LARGEST >> 20} MB")
        with pytest.raises(UserError, match="new: has no documents; index files that can be read: seqloom index"):
            found.search("anything")
