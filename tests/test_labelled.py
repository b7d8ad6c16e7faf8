"""Texts and measurements with labels: every format, and every way it can be wrong."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import examine

from seqloom.core.errors import UserError
from seqloom.data.portions import draw_rows, split_rows
from seqloom.data.shapes.frames.reading import open_frames
from seqloom.data.shapes.labelled import SHAPE
from seqloom.data.shapes.labelled.reading import open_labelled, open_unlabelled

ROWS = [("good film", "pos"), ("bad film", "neg"), ("so-so", "pos")]


def table(path: Path, rows: Any = ROWS, separator: str = ",") -> Path:
    path.write_text("\n".join(separator.join(row) for row in [("text", "label"), *rows]) + "\n", encoding="utf-8")
    return path


def read(source: Any) -> list[tuple[Any, ...]]:
    return [(*row.texts, *row.labels) for row in source.rows()]


def test_the_same_rows_from_every_format(tmp_path: Path) -> None:
    bare = tmp_path / "bare.txt"
    bare.write_text("".join(f"{label}\t{text}\n" for text, label in ROWS))
    packed = tmp_path / "rows.jsonl.gz"
    packed.write_bytes(gzip.compress("".join(json.dumps({"text": t, "label": n}) + "\n" for t, n in ROWS).encode()))
    sources = [
        open_labelled(str(table(tmp_path / "a.csv"))),
        open_labelled(str(table(tmp_path / "a.tsv", separator="\t"))),
        open_labelled(str(bare), "2", "1"),
        open_labelled(str(packed)),
    ]
    assert all(read(source) == ROWS for source in sources)
    assert len({source.hash for source in sources}) == 1 and sources[0].count == 3
    assert sources[0].labels == {"pos": 2, "neg": 1} and sources[0].bytes == sum(len(text) for text, _ in ROWS)


def test_two_texts_numbers_and_lists_as_labels(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [{"a": "one", "b": "two", "y": 3}, {"a": "x", "b": "y", "y": ["p", "q", "p"]}, {"a": "z", "b": "z", "y": []}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = open_labelled(str(path), "a", "y", "b", separator="|")
    assert read(source) == [("one", "two", "3"), ("x", "y", "p", "q"), ("z", "z")] and source.multi
    assert read(open_labelled(str(table(tmp_path / "m.csv", [("t", "a|b"), ("u", "c")])), separator="|")) == [
        ("t", "a", "b"),
        ("u", "c"),
    ]


@pytest.mark.parametrize(
    ("content", "options", "wanted"),
    [
        ("text,label\nx,\n", {}, r"a.csv:2: no label, expected one"),
        ("text,label\n,a\n ,b\n", {}, r"a.csv: no rows to learn from; all 2 have an empty text"),
        ("text,label\n", {}, "a.csv: no rows to learn from; the file has no rows"),
        ("text,kind\nx,a\n", {"label": "kin"}, r"a.csv:2: no column 'kin'; .*did you mean 'kind'"),
        ("text,label\nx,a,b\n", {}, r"a.csv:2: 3 fields, but the header has 2"),
        ("x\ty\n", {"text": "1", "label": "2"}, r"no column 2; this line has 1 column, separated by commas"),
    ],
)
def test_bad_tables_are_one_clear_line(tmp_path: Path, content: str, options: dict[str, str], wanted: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content)
    with pytest.raises(UserError, match=wanted):
        open_labelled(str(path), **options)


def test_several_labels_where_one_is_wanted_name_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "x", "label": ["a", "b"]}\n')
    with pytest.raises(UserError, match=r"a.jsonl:1: 2 labels, expected one.*data.separator"):
        open_labelled(str(path))


def test_plain_text_and_folders_are_refused_with_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("x\n")
    with pytest.raises(UserError, match=r"plain text has no labels; .*--columns text=2,label=1"):
        open_labelled(str(path))
    with pytest.raises(UserError, match="a folder"):
        open_labelled(str(tmp_path))
    assert list(open_unlabelled(str(path))) == [(1, ("x",))]


def test_empty_texts_are_left_out_and_counted_and_no_text_is_in_two_parts(tmp_path: Path) -> None:
    rows = [(f"text {n % 60}", "ab"[n % 2]) for n in range(120)] + [("", "a")]
    source = open_labelled(str(table(tmp_path / "a.csv", rows)))
    assert source.count == 120 and source.dropped == 1
    parts = split_rows(source, 0.2, 0.2)
    texts = [{row.texts for row in part.rows()} for part in parts.values()]
    assert sum(map(len, texts)) == len(set.union(*texts)) == 60
    assert sum(part.count for part in parts.values()) == 120
    with pytest.raises(UserError, match=r"too few rows \(1\) for a valid split"):
        split_rows(open_labelled(str(table(tmp_path / "b.csv", [("x", "a")]))), 0.1)


FRAMES = [np.arange(2 * n, dtype=np.float32).reshape(n, 2) for n in (3, 1, 5)]


def npz(path: Path, **arrays: Any) -> str:
    np.savez(path, **arrays)
    return str(path)


def test_measurements_from_every_format(tmp_path: Path) -> None:
    flat, labels = np.concatenate(FRAMES), np.array([1, 0, 1])
    cube = np.zeros((3, 5, 2), np.float32)
    for n, row in enumerate(FRAMES):
        cube[n, : len(row)] = row
    offsets = np.cumsum([0, 3, 1, 5])
    lines = ["id,label,x,y", *(f"s{n},{labels[n]},{x},{y}" for n, row in enumerate(FRAMES) for x, y in row)]
    (tmp_path / "long.csv").write_text("\n".join(lines) + "\n")
    import pyarrow
    from pyarrow import parquet

    columns: dict[str, list[Any]] = {"id": [], "label": [], "x": [], "y": []}
    for n, row in enumerate(FRAMES):
        for x, y in row.tolist():
            for name, value in zip(columns, (f"s{n}", int(labels[n]), x, y), strict=True):
                columns[name].append(value)
    parquet.write_table(pyarrow.table(columns), tmp_path / "long.parquet")
    sources = [
        open_frames(npz(tmp_path / "flat.npz", frames=flat, offsets=offsets, label=labels)),
        open_frames(npz(tmp_path / "cube.npz", data=cube, lengths=[3, 1, 5], kind=labels), "kind", column="data"),
        open_frames(str(tmp_path / "long.csv")),
        open_frames(str(tmp_path / "long.parquet")),
    ]
    for source in sources:
        assert all((a == b).all() for a, b in zip(source.frames, FRAMES, strict=True))
        assert source.row_labels == [("1",), ("0",), ("1",)]
    assert len({source.hash for source in sources}) == 1


@pytest.mark.parametrize(
    ("arrays", "wanted"),
    [
        ({"frames": np.ones((4, 2)), "label": [1]}, "has shape .4, 2.; give .rows, time, features."),
        ({"frames": np.ones((2, 3, 2)), "label": [1]}, "2 sequences in 'frames', but 1 labels in 'label'"),
        ({"frames": np.ones((2, 3, 2)), "kind": [1, 2]}, "no array 'label'; available: frames, kind"),
        ({"frames": np.full((1, 3, 2), np.nan), "label": [1]}, r"6 values .* not finite, the first at \[0, 0, 0\]"),
        ({"frames": np.ones((4, 2)), "offsets": [0, 3], "label": [1]}, "'offsets' must increase from 0 to 4"),
        ({"frames": np.ones((1, 3, 2)), "lengths": [9], "label": [1]}, "'lengths' does not fit"),
        ({"frames": np.array([["a"]]), "label": [1]}, "holds <U1, not numbers"),
    ],
)  # fmt: skip
def test_bad_arrays_are_one_clear_line(tmp_path: Path, arrays: dict[str, Any], wanted: str) -> None:
    with pytest.raises(UserError, match=wanted):
        open_frames(npz(tmp_path / "a.npz", **arrays))


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (["id,label,x", "a,1,2", "a,1,oops"], r"a.csv:3: x='oops' is not a number"),
        (["id,label,x", "a,1,nan"], r"a.csv:2: x='nan' is not finite"),
        (["id,label,x", "a,1,2", "a,2,2"], r"a.csv:2: sequence 'a' has several labels: 1, 2"),
        (["id,label,x", "a,1,2", "b,1,2", "a,1,3"], r"a.csv:4: sequence 'a' is interrupted; sort"),
        (["row,label,x", "a,1,2"], r"a.csv:2: no column 'id'; available: row, label, x"),
    ],
)
def test_bad_lines_of_measurements_are_named(tmp_path: Path, lines: list[str], wanted: str) -> None:
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(UserError, match=wanted):
        open_frames(str(tmp_path / "a.csv"))


def test_a_broken_archive_and_strange_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(b"no zip")
    with pytest.raises(UserError, match="not an NPZ file of plain arrays"):
        open_frames(str(tmp_path / "a.npz"))
    (tmp_path / "a.txt").write_text("1 2 3\n")
    with pytest.raises(UserError, match="give measurements as NPZ"):
        open_frames(str(tmp_path / "a.txt"))


def test_empty_sequences_are_left_out_and_counted_and_parts_are_stable() -> None:
    source = open_frames("sample:waves")
    parts = split_rows(source, 0.1, 0.1)
    assert sum(part.count for part in parts.values()) == source.count == 2000
    assert 140 < parts["valid"].count < 260


def test_empty_sequences_are_counted(tmp_path: Path) -> None:
    path = npz(tmp_path / "a.npz", frames=np.ones((3, 2)), offsets=[0, 0, 3], label=["x", "y"])
    source = open_frames(path)
    assert source.count == source.dropped == 1 and source.row_labels == [("y",)]


def said(findings: list[Any], *levels: str) -> str:
    return "\n".join(f.message for f in findings if not levels or f.level in levels)


def test_the_doctor_knows_rows_with_labels(tmp_path: Path) -> None:
    good = [(f"text number {n}", "ab"[n % 2]) for n in range(400)]
    assert {f.level for f in examine("classification", str(table(tmp_path / "good.csv", good)))} == {"ok"}
    uneven = [(f"text number {n}", "rare" if n % 40 == 0 else "often") for n in range(400)]
    torn = [("the same", "a"), ("the same", "b"), ("", "a")]
    path = str(table(tmp_path / "bad.csv", [*uneven, *torn, *good[:30], *good[:30]]))
    found = said(examine("classification", path), "warning", "note")
    for what in ("of 'often'", "fewer than 20 rows", "with a different label", "empty text", "are duplicates"):
        assert what in found, found
    valid = str(table(tmp_path / "valid.csv", [("text number 4", "often"), ("new", "perhaps")]))
    both = said(examine("classification", path, valid_data=valid), "warning")
    assert "labels found only in the validation set: 'perhaps'" in both and "also in the training set" in both
    many = str(table(tmp_path / "many.csv", [(f"text {n} " * 300, f"label {n}") for n in range(260)]))
    assert "different labels" in said(examine("classification", many)) and "texts are long" in said(
        examine("classification", many), "note"
    )
    alone = str(table(tmp_path / "one.csv", [(f"text {n}", "a") for n in range(50)]))
    assert "the only label is 'a'" in said(examine("classification", alone), "error")
    assert "no such file" in said(examine("classification", "nowhere.csv"), "error")


def test_the_doctor_knows_measurements(tmp_path: Path) -> None:
    assert "2 features, 30 to 89 time steps" in said(examine("classification", "sample:waves"))
    frames = np.ones((60, 4, 2))
    frames[:, :, 1] = np.arange(240).reshape(60, 4)
    path = npz(tmp_path / "a.npz", frames=frames, label=np.arange(60) % 2, lengths=[0, *[4] * 59])
    found = said(examine("classification", path))
    assert "features that never change: [0]" in found and "1 sequences are empty" in found
    assert "no array 'kind'" in said(examine("classification", path, label="kind", valid_data=path), "error")


def test_rows_are_drawn_by_a_number_and_no_more_than_there_are(tmp_path: Path) -> None:
    rows = [(f"text {n}", "ab"[n % 2]) for n in range(50)] + [("", "a")]
    source = open_labelled(str(table(tmp_path / "a.csv", rows)))
    first, same, other = (draw_rows(source, 20, draw) for draw in (1, 1, 2))
    texts = [row.texts for row in first.rows()]
    assert first.count == len(set(texts)) == 20 and texts == sorted(texts, key=lambda text: int(text[0].split()[1]))
    assert first.hash == same.hash != other.hash and set(texts) <= {row.texts for row in source.rows()}
    with pytest.raises(UserError, match=r"data.examples=51: .*a.csv has only 50"):
        draw_rows(source, 51, 0)


def test_quotes_of_a_tsv_hold_cells_together_or_are_letters(tmp_path: Path) -> None:
    quoted, plain = tmp_path / "quoted.tsv", tmp_path / "plain.tsv"
    quoted.write_text('label\ttext\na\t"one\ttwo ""three"""\nb\t"four\nfive"\n')
    plain.write_text('label\ttext\na\t"one" two\nb\tthree\nb\t"four\n')
    assert [row.texts for row in open_labelled(str(quoted)).rows()] == [('one\ttwo "three"',), ("four\nfive",)]
    assert [row.texts for row in open_labelled(str(plain)).rows()] == [('"one" two',), ("three",), ('"four',)]
    plain.write_text('label\ttext\na\t"one\ttwo"\n')
    assert next(open_labelled(str(plain)).rows()).texts == ("one\ttwo",), "a file that changes is read anew"


def test_short_texts_that_are_told_by_their_spelling_are_read_by_character(tmp_path: Path) -> None:
    """Names whose ending gives the label, and orders whose first word does."""
    rng = np.random.default_rng(0)
    stems = ["".join(rng.choice(list("bdfgklmnprstv"), 4)) for _ in range(600)]
    ending, order = {"a": "it", "ski": "pl"}, {"stop": "end", "start": "begin"}
    files = {
        "names.csv": [f"{stem}{end},{ending[end]}" for stem, end in zip(stems, [*ending] * 300, strict=False)],
        "orders.csv": [f"{word} {stem},{order[word]}" for stem, word in zip(stems, [*order] * 300, strict=False)],
    }
    kinds = {}
    for name, lines in files.items():
        (tmp_path / name).write_text("\n".join(["text,label", *lines]))
        chosen = SHAPE.choose(open_labelled(str(tmp_path / name)), {})
        kinds[name] = next((choice.value, choice.reason) for choice in chosen if choice.path == "tokenizer.kind")
    assert kinds["names.csv"][0] == "characters"
    assert "told by their spelling" in kinds["names.csv"][1]
    assert kinds["orders.csv"] == ("words", "")
