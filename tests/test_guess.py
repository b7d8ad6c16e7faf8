"""Which task a file is for, guessed from the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_roles import conll, table

from seqloom.core.errors import UserError
from seqloom.data.samples import SAMPLES
from seqloom.runs.guess import guess_task
from seqloom.runs.registry import names


@pytest.mark.parametrize(
    ("name", "columns", "wanted"),
    [
        ("a.csv", "review:text, stars:stars", "classification"),
        ("a.tsv", "verdict, text", "classification"),
        ("a.csv", "class, text, text", "classification"),
        ("a.csv", "premise:text, hypothesis:text, label:class", "classification"),
        ("a.csv", "id:id, dialogue:lines, summary:text", "translation"),
        ("a.csv", "en:text, zh:中文", "translation"),
        ("a.txt", "text, 中文, credit", "translation"),
        ("a.tsv", "name, name", "translation"),
        ("a.csv", "date:date, price:price", "forecasting"),
        ("a.csv", "x:price, y:price, z:price", "forecasting"),
        ("a.csv", "date:date, sales:stars, price:price", "forecasting"),
        ("a.jsonl", "id:id, text:text", "language_model"),
        ("a.csv", "passage:lines, question:text, answer:text", "question_answering"),
    ],
)
def test_a_table_is_for_the_task_that_its_columns_suit(tmp_path: Path, name: str, columns: str, wanted: str) -> None:
    (task, reason), *_ = guess_task(table(tmp_path / name, columns))
    assert task == wanted and reason and len(reason) < 80


@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        ("a.txt", "Once upon a time.\n" * 9, "language_model"),
        ("a.bio", conll("word", "bio"), "tagging"),
        ("a.txt", conll("word", "pos", "bio"), "tagging"),
        ("a.jsonl", json.dumps({"words": ["a"], "tags": ["O"]}) + "\n", "tagging"),
        ("a.jsonl", json.dumps({"text": "a b", "spans": [{"start": 0, "end": 1, "label": "A"}]}) + "\n", "tagging"),
        ("a.po", 'msgid "a"\nmsgstr "b"\n', "translation"),
        ("a.json", json.dumps({"data": [{"paragraphs": [{"context": "x", "qas": []}]}]}), "question_answering"),
        ("a.txt", "0.1,0.2\n0.3,0.4\n", "forecasting"),
        ("a.npz", "", "classification"),
    ],
)
def test_a_file_is_for_the_task_that_its_kind_suits(tmp_path: Path, name: str, content: str, wanted: str) -> None:
    (tmp_path / name).write_text(content)
    assert guess_task(str(tmp_path / name))[0][0] == wanted


def test_every_sample_suits_a_task_and_what_is_not_there_is_said(tmp_path: Path) -> None:
    tasks = set(names("tasks"))
    assert all({task for task, _ in guess_task(f"sample:{name}")} <= tasks for name in SAMPLES)
    assert guess_task("a.en,a.de") == [("translation", "two parallel files")]
    assert guess_task(str(tmp_path))[0][0] == "language_model"
    for spec in ("sample:nothing", str(tmp_path / "nowhere.csv")):
        with pytest.raises(UserError):
            guess_task(spec)
    (tmp_path / "empty.txt").write_text("")
    assert guess_task(str(tmp_path / "empty.txt")) == []
