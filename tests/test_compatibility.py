"""Settings of earlier versions are understood, with one line that names the new spelling."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import pairs_file, text

from seqloom.compare.field import Field
from seqloom.compare.plan import Plan
from seqloom.core.errors import UserError
from seqloom.core.progress import Silent
from seqloom.lab.rules import Budget
from seqloom.runs.configure import configure
from seqloom.runs.folder import RunFolder
from seqloom.runs.registry import current, data_options, find_config, tokenizer_options
from seqloom.runs.settings import MOVED, RunConfig

FLAGS = {"data.train": "a.txt"}


def test_options_that_moved_work_in_their_old_place_and_say_so_once() -> None:
    said: list[str] = []
    old = ["task.tokenizer=words", "task.vocabulary=500", "task.min_count=2", "task.split=space"]
    new = ["tokenizer.kind=words", "tokenizer.vocabulary=500", "tokenizer.min_count=2", "tokenizer.split=space"]
    assert configure(None, FLAGS, old, said.append) == configure(None, FLAGS, new)
    assert len(said) == 4 and "task.tokenizer is now tokenizer.kind" in said[0]


def test_the_new_place_wins_over_the_old_one() -> None:
    config = configure(None, FLAGS, ["task.tokenizer=words", "tokenizer.kind=bpe"])
    assert config.tokenizer["kind"] == "bpe"


def test_a_recipe_of_an_earlier_version_works(tmp_path: Path) -> None:
    recipe = tmp_path / "old.toml"
    recipe.write_text('[data]\nlabel = "stars"\n[task]\nname = "translation"\ntokenizer = "bytes"\njoint = true\n')
    said: list[str] = []
    config = configure(recipe, {"data.train": str(pairs_file(tmp_path / "pairs.tsv"))}, (), said.append)
    assert config.tokenizer["kind"] == "bytes" and config.tokenizer["joint"] and "label" not in config.data
    assert any("data.label: not used by translation" in line for line in said)


def test_a_misspelled_option_is_still_a_mistake() -> None:
    with pytest.raises(UserError, match=r"data.colum: no such option; did you mean data.column"):
        configure(None, FLAGS, ["data.colum=x"])
    with pytest.raises(UserError, match=r"tokenizer.knd: no such option; did you mean tokenizer.kind"):
        configure(None, FLAGS, ["tokenizer.knd=x"])


def test_every_option_that_moved_has_a_place() -> None:
    from seqloom.data.shapes import find_shape, shape_names

    known = {name for shape in shape_names() for name in find_shape(shape).tokenizer.model_fields}
    assert {new.removeprefix("tokenizer.") for new in MOVED.values()} <= known


def test_a_record_of_an_earlier_version_is_read_as_this_one_would_write_it() -> None:
    """Then every run had the data options of all shapes, and the task said what a token is."""
    task = {"name": "language_model", "length": 8, "tokenizer": "bytes", "vocabulary": 300, "min_count": 1}
    record = {
        "task": task | {"split": "punctuation"},
        "model": {"name": "gru"},
        "data": {"train": "a.txt", "column": "body", "label": "label", "season": 0},
        "train": {},
    }
    config = current(RunConfig.model_validate(record))
    assert config.task["length"] == 8 and "tokenizer" not in config.task
    assert config.tokenizer.items() >= {"kind": "bytes", "vocabulary": 300, "min_count": 1}.items()
    assert config.data["column"] == "body" and not {"label", "season"} & set(config.data)
    options = [(name, find_config(f"{name}s", getattr(config, name)["name"])) for name in ("task", "model")]
    for name, kind in options:
        assert set(getattr(config, name)) == {"name", *kind.model_fields}, "options that came later have their default"
    assert data_options(config).train == "a.txt" and tokenizer_options(config).model_dump()["kind"] == "bytes"


def test_a_comparison_names_the_new_spelling_once(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(text(3000))
    plan = Plan(
        task="language_model", data={"train": str(tmp_path / "a.txt")}, models=("rnn", "gru"), params=20_000,
        count="all", budget=Budget.parse("tokens=40k"), trials=0, trial_share=1.0, seeds=1, seed=0, threads=1,
        overrides=("task.tokenizer=bytes",),
    )  # fmt: skip
    heard = Heard()
    field = Field(plan, RunFolder(tmp_path / "out"), heard)
    assert all(sized.config.tokenizer["kind"] == "bytes" for sized in field.entries)
    assert [line for line in heard.said if "task.tokenizer is now tokenizer.kind" in line] == heard.said[:1]


class Heard(Silent):
    """A reporter that remembers what it was told."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


def test_the_hint_reaches_the_user(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    from seqloom.runs.fit import fit

    (tmp_path / "a.txt").write_text(text(500))
    settings = ["task.tokenizer=bytes", "model.order=2"]
    fit(None, data=str(tmp_path / "a.txt"), model="ngram", out=tmp_path / "run", overrides=settings)
    assert capsys.readouterr().err.count("task.tokenizer is now tokenizer.kind") == 1


def test_an_option_that_came_later_has_its_default_in_an_older_record() -> None:
    config = configure(None, {"task.name": "classification", "data.train": "a.csv"})
    older = config.model_copy(update={"tokenizer": {k: v for k, v in config.tokenizer.items() if k != "lower"}})
    assert current(older) == config and config.tokenizer["lower"] is False
