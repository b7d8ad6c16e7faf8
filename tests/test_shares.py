"""A share of the training set: nested, a function of the seed alone, and the same for whoever trains on it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import text

from seqloom.core.errors import UserError
from seqloom.data.options import DataOptions
from seqloom.data.portions import draw_rows
from seqloom.data.shapes.labelled.reading import open_labelled
from seqloom.data.split import draw_text, split_text
from seqloom.data.text import Source, as_documents, open_text
from seqloom.runs.configure import configure
from seqloom.runs.material import Material

SHARES = (1 / 8, 1 / 4, 1 / 2)
LINES = "data.time=line"


def parts(task: str, data: Path, *options: str) -> dict[str, Any]:
    flags = {"task.name": task, "data.train": str(data), "data.test_fraction": 0.1}
    return Material(configure(None, flags, options)).parts


def test_a_share_of_a_text_is_exact_and_part_of_a_larger_one(tmp_path: Path) -> None:
    path = tmp_path / "book.txt"
    path.write_text("".join(f"{n:06d} {n:06d} é\n" for n in range(20_000)), encoding="utf-8")
    whole = split_text(open_text(str(path)))["train"]
    drawn = [draw_text(whole, share, 3) for share in SHARES]
    kept = []
    for source, share in zip(drawn, SHARES, strict=True):
        read = "".join(source.pieces())
        assert abs(source.bytes - share * whole.bytes) <= 80 and source.bytes == len(read.encode())
        numbers = [int(line[:6]) for line in read.split("\n") if len(line) == 15 and line[:6] == line[7:13]]
        kept.append(set(numbers))
        assert numbers == sorted(numbers), "stretches stay in their order"
        assert numbers[-1] - numbers[0] > 14_000, "they come from all over the text"
    assert kept[0] < kept[1] < kept[2]
    same, other = draw_text(whole, 0.5, 3), draw_text(whole, 0.5, 4)
    assert drawn[2].hash == same.hash != other.hash
    assert draw_text(whole, 0.999, 3).bytes < whole.bytes


def test_documents_keep_their_ends_and_a_short_text_is_cut(tmp_path: Path) -> None:
    texts = [f"document {n} " + "x" * 300 for n in range(200)]
    source = Source("many", lambda: as_documents(texts), documents=True)
    drawn = draw_text(source, 0.25, 1)
    whole = [piece for piece, ends in drawn.marked() if ends]
    assert drawn.documents and len(whole) > 40 and sum(piece in texts for piece in whole) > 30
    tiny = Source("tiny", lambda: iter([("a short text", False)]))
    assert "".join(draw_text(tiny, 0.5, 0).pieces()) == "a shor"


def test_a_share_of_rows_is_part_of_a_larger_one_whatever_the_numbers(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("text,label\n" + "".join(f"text {n},{'ab'[n % 2]}\n" for n in range(3000)))
    source = open_labelled(str(path))
    drawn = [{row.texts for row in draw_rows(source, amount, 5).rows()} for amount in (10, 1 / 8, 600, 1 / 4, 1 / 2)]
    assert [len(rows) for rows in drawn] == [10, 375, 600, 750, 1500]
    assert all(less < more for less, more in pairwise(drawn))


def test_a_share_of_series_is_their_latest_points_and_held_out_points_keep_their_history(tmp_path: Path) -> None:
    path = tmp_path / "series.csv"
    path.write_text("value\n" + "".join(f"{np.sin(n / 5) + n / 100:.4f}\n" for n in range(400)))
    whole, less = parts("forecasting", path, LINES), parts("forecasting", path, LINES, "data.examples=0.25")
    (one,), (cut,) = whole["train"].series, less["train"].series
    end = whole["train"].ends[0]
    assert less["train"].points == round(0.25 * end) and less["train"].begins == [0]
    assert (cut.values[: less["train"].ends[0]] == one.values[end - less["train"].points : end]).all()
    assert (cut.times[: less["train"].ends[0]] == one.times[end - less["train"].points : end]).all()
    for part in ("valid", "test"):
        assert less[part].hash == whole[part].hash
    assert less["train"].seasons == whole["train"].seasons, "those of the whole training set"


def test_validation_and_test_set_stay_whole(tmp_path: Path) -> None:
    path = tmp_path / "book.txt"
    path.write_text(text(30_000))
    whole, less = parts("language_model", path), parts("language_model", path, "data.examples=0.125", "data.draw=2")
    assert {part: less[part].hash == whole[part].hash for part in whole} == {
        "train": False, "valid": True, "test": True
    }  # fmt: skip


def test_a_share_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "book.txt"
    path.write_text(text(3000))
    with pytest.raises(ValueError, match="a whole number of rows, or a share below 1"):
        DataOptions(train="a", examples=2.5)
    assert DataOptions(train="a", examples=20.0).examples == 20 and DataOptions(train="a").examples == 0
    with pytest.raises(UserError, match=r"data\.examples=20: a text has no rows to draw; give a share below 1"):
        parts("language_model", path, "data.examples=20")
    path.write_text("value\n" + "".join(f"{n % 7}\n" for n in range(90)))
    with pytest.raises(UserError, match=r"data\.examples=20: series are split in time, not drawn; use data\.train"):
        parts("forecasting", path, LINES, "data.examples=20")
