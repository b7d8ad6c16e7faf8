"""An index follows its folder, whatever happens to either."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from retrieve_toys import ToyEncoder, change_folder, content, write_folder

from seqloom.core.errors import UserError
from seqloom.retrieve import encoder as encoders
from seqloom.retrieve import writing
from seqloom.retrieve.index import Index, index


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_folder(tmp_path / "texts", 20)
    return tmp_path / "texts"


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoders, "load_encoder", lambda name: ToyEncoder())


def made(folder: Path, out: Path, **how: Any) -> dict[str, Any]:
    with index(folder, out, **how) as found:
        return content(found)


def test_a_passage_is_a_place_in_its_document(folder: Path, tmp_path: Path) -> None:
    (folder / "one.txt").write_text("Nothing here.\n\nThe zebra crossed the road.\n")
    with index(folder, tmp_path / "index") as found:
        (passage,) = found.search("where did zebras cross?", 3)
        chunk = passage.chunk
        assert chunk.path == "one.txt" and "zebra" in chunk.text
        assert found.document("one.txt").text[chunk.start : chunk.end] == chunk.text
        assert passage.scores == {"bm25": passage.score}
        assert found.encoder is None and "BM25 alone" in repr(found)


def test_an_index_opened_again_gives_the_same(folder: Path, tmp_path: Path) -> None:
    before = made(folder, tmp_path / "index")
    with Index.open(tmp_path / "index") as found:
        assert content(found) == before


def test_an_update_equals_a_new_index_of_the_folder(
    folder: Path, tmp_path: Path, toy: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "_ENCODED", 7)
    monkeypatch.setattr(writing, "_DELETED", 5)
    made(folder, tmp_path / "old", encoder="toy")
    change_folder(folder, 1)
    with Index.open(tmp_path / "old") as found:
        changes = found.update()
        after = content(found)
    new = made(folder, tmp_path / "new", encoder="toy")
    assert (changes.added, changes.removed, changes.unchanged) == (10, 10, 10)
    for name in ("documents", "chunks", "terms", "files", "points"):
        assert after[name] == new[name], name


def test_an_update_of_an_unchanged_folder_reads_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = made(folder, tmp_path / "index")
    monkeypatch.setattr(writing, "read", None)
    for path in folder.iterdir():
        os.utime(path, (1, 1))
    for _ in range(2):  # by content, then by size and time
        with Index.open(tmp_path / "index") as found:
            changes = found.update()
            assert (changes.added, changes.removed, changes.unchanged) == (0, 0, 20)
            assert content(found) == before


def test_a_row_that_did_not_change_is_not_indexed_again(tmp_path: Path) -> None:
    table = tmp_path / "texts" / "table.jsonl"
    table.parent.mkdir()
    table.write_text("".join(f'{{"_id": "k{n}", "text": "number {n} of some"}}\n' for n in range(9)))
    made(table.parent, tmp_path / "index")
    table.write_text(table.read_text().replace("number 4", "another 4"))
    with Index.open(tmp_path / "index") as found:
        changes = found.update()
        assert (changes.added, changes.removed) == (1, 1)
        assert found.keys()["table.jsonl#5"] == "k4"


def test_a_file_that_cannot_be_read_is_counted_and_the_rest_is_indexed(folder: Path, tmp_path: Path) -> None:
    before = made(folder, tmp_path / "index")
    (folder / "binary.txt").write_bytes(b"\0\1\2")
    (folder / "003.txt").write_bytes(b"\0\1\2")
    with Index.open(tmp_path / "index") as found:
        changes = found.update()
        assert set(changes.skipped) == {"binary.txt", "003.txt"}
        assert all(reason and "\n" not in reason for reason in changes.skipped.values())
        assert found.counts()["documents"] == 19 and found.counts()["skipped"] == 2
        assert "003.txt" not in found.paths()
    (folder / "binary.txt").unlink()
    write_folder(folder, 20)
    with Index.open(tmp_path / "index") as found:
        found.update()
        assert content(found) == before


def test_an_old_version_is_found_until_the_new_one_is_acknowledged(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "one.txt").write_text("the zebra")
    made(folder, tmp_path / "index")
    (folder / "one.txt").write_text("the zebra again")
    with Index.open(tmp_path / "index") as found:
        monkeypatch.setattr(writing.Writer, "_index", lambda self: None)
        monkeypatch.setattr(writing.Writer, "_delete", lambda self: None)
        found.update()
        assert [p.chunk.text for p in found.search("zebra")] == ["the zebra"]
        monkeypatch.undo()
        monkeypatch.setattr(writing.Writer, "_delete", lambda self: None)
        found.update()
        assert [p.chunk.text for p in found.search("zebra")] == ["the zebra again"]
        assert found.document("one.txt").text == "the zebra again"


def test_a_file_that_changes_back_during_an_interrupted_update(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = made(folder, tmp_path / "index")
    old = (folder / "004.txt").read_text()
    with Index.open(tmp_path / "index") as found:
        (folder / "004.txt").write_text("something else")
        with monkeypatch.context() as patch:
            patch.setattr(found._catalogue, "forget", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                found.update()
        (folder / "004.txt").write_text(old)
        found.update()
        assert content(found) == before


def test_two_rankings_are_fused(folder: Path, tmp_path: Path, toy: None) -> None:
    with index(folder, tmp_path / "index", encoder="toy") as found:
        both = found.search("river bank", 50)
        assert len(both) > 5
        assert {"bm25", "dense"} == set().union(*(p.scores for p in both))
        assert [p.score for p in both] == sorted((p.score for p in both), reverse=True)
        assert found.search("river bank", 5) == both[:5]
        assert all(set(p.scores) == {"dense"} for p in found.search("river bank", 5, by="dense"))
        assert all(set(p.scores) == {"bm25"} for p in found.search("river bank", 5, by="bm25"))


def test_a_question_in_chinese(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("长江是中国最长的河流。\n\n泰山位于山东省。")
    with index(tmp_path / "texts", tmp_path / "index") as found:
        assert "长江" in found.search("中国最长的河是哪一条？", 1)[0].chunk.text
        assert found.search("???") == [] == found.search("")


def one_line(match: str) -> Any:
    return pytest.raises(UserError, match=rf"^[^\n]*{match}[^\n]*$")


def test_bad_input_is_one_line_each(folder: Path, tmp_path: Path, toy: None) -> None:
    (tmp_path / "empty").mkdir()
    with one_line("empty: no files in it that can be read; choose another folder"):
        index(tmp_path / "empty", tmp_path / "i1")
    with one_line("nowhere: no such folder"):
        index(tmp_path / "nowhere", tmp_path / "i2")
    with one_line("texts: not empty, and not an index; choose another folder"):
        index(folder, folder)
    (tmp_path / "killed").mkdir()
    (tmp_path / "killed" / ".seqloom-tmp-1-0123abcd").write_text("its settings were being written")
    index(folder, tmp_path / "killed").close()
    assert not list((tmp_path / "killed").glob(".seqloom-*"))
    with one_line(r"i3: not an index \(no index.json\); create one: seqloom index"):
        Index.open(tmp_path / "i3")
    with one_line("not known; use edge"):
        index(folder, tmp_path / "i4", store="redis")
    made(folder, tmp_path / "index", encoder="toy")
    with one_line(r"index: made with encoder toy \(SHA-256 000000000000\), not none; use the same again"):
        index(folder, tmp_path / "index")
    with index(folder, tmp_path / "plain") as plain, one_line("made without an encoder, so it has no vectors"):
        plain.search("x", by="dense")


def test_an_index_of_other_weights_is_not_searched(
    folder: Path, tmp_path: Path, toy: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(folder, tmp_path / "index", encoder="toy")
    monkeypatch.setattr(ToyEncoder, "sha256", "1" * 64)
    with Index.open(tmp_path / "index") as found, one_line("made with other weights than those in toy"):
        found.search("river")


def test_an_index_in_use_is_one_line(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqloom.retrieve.stores.edge._PATIENCE", 0.0)
    with index(folder, tmp_path / "index"):
        with one_line("index: in use by another process"):
            Index.open(tmp_path / "index")
        with one_line("index: in use by another process"):
            index(folder, tmp_path / "index")


def test_a_folder_that_became_empty_does_not_empty_its_index(folder: Path, tmp_path: Path) -> None:
    before = made(folder, tmp_path / "index")
    for path in folder.iterdir():
        path.unlink()
    with Index.open(tmp_path / "index") as found:
        with one_line("no files in it that can be read"):
            found.update()
        assert content(found) == before


def test_an_index_inside_its_folder_does_not_index_itself(folder: Path) -> None:
    made(folder, folder / "index")
    (folder / "index" / "notes.txt").write_text("not a document")
    with index(folder, folder / "index") as found:
        assert found.counts()["documents"] == 20


def test_a_store_that_lost_points_is_one_line(folder: Path, tmp_path: Path) -> None:
    made(folder, tmp_path / "index")
    with Index.open(tmp_path / "index") as found:
        found._store.delete(list(found._store.ids())[:3])
        found._store.flush()
    with one_line("its store lacks 3 chunks; restore it, or index into a new folder"):
        Index.open(tmp_path / "index")
