"""Every recipe is understood, runs, and where it says so equals the defaults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import text

from seqloom.runs.configure import configure
from seqloom.runs.fit import fit
from seqloom.runs.registry import data_options, find_config

pytestmark = pytest.mark.long

RECIPES = sorted((Path(__file__).parent.parent / "recipes").glob("*.toml"))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_runs(recipe, tmp_path):
    config = configure(recipe, {"data.train": "anything"})
    shape = find_config("tasks", config.task["name"]).shape(config.task)
    data = WRITERS[shape](tmp_path, data_options(config))
    small = ["model.width=16", "train.steps=2", "train.threads=1"]
    small += ["task.scored=20"] if config.data.get("valid_points") else ["data.valid_fraction=0.2"]
    run = fit(recipe, data=str(data), out=tmp_path / "run", overrides=small, quiet=True)
    assert run.summary["steps"] == (0 if config.model.get("solve") else 2)


def write_text(folder: Path, data: Any) -> Path:
    (folder / "book.txt").write_text(text(4000))
    return folder / "book.txt"


def write_pairs(folder: Path, data: Any) -> Path:
    """With a header, unless the columns are numbers."""
    lines = [] if data.source.isdigit() else [f"{data.source}\t{data.target}"]
    lines += [f"word {n} of {n % 7}\tof {n % 7} the word {n}" for n in range(80)]
    (folder / "pairs.tsv").write_text("\n".join(lines))
    return folder / "pairs.tsv"


def write_tagged(folder: Path, data: Any) -> Path:
    """Characters with tags: words as well."""
    (folder / "tagged.txt").write_text("".join(f"我 O\n在 O\n{'北京'[n % 2]} B-LOC\n{n % 7} O\n\n" for n in range(90)))
    return folder / "tagged.txt"


def write_questions(folder: Path, data: Any) -> Path:
    rows = [{"context": f"Number {n} is {n % 7} of seven.", "question": f"What is {n}?"} for n in range(80)]
    lines = [json.dumps(row | {"answer": "of seven", "answer_start": row["context"].index("of")}) for row in rows]
    (folder / "questions.jsonl").write_text("\n".join(lines))
    return folder / "questions.jsonl"


def write_labelled(folder: Path, data: Any) -> Path:
    """With a header, unless the columns are numbers."""
    named = not data.column.isdigit()
    text, label = (1, 2) if named else (int(data.column), int(data.label))
    rows = [{text: f"film number {n}", label: str(n % 3)} for n in range(90)]
    rows = [{text: data.column, label: data.label}, *rows] if named else rows
    lines = ["\t".join(row.get(number, "-") for number in range(1, max(row) + 1)) for row in rows]
    (folder / "rows.tsv").write_text("\n".join(lines))
    return folder / "rows.tsv"


def write_frames(folder: Path, data: Any) -> Path:
    frames = np.random.default_rng(0).normal(size=(60, 7, 3))
    np.savez(folder / "rows.npz", frames=frames, **{data.label: np.arange(60) % 4})
    return folder / "rows.npz"


def write_series(folder: Path, data: Any) -> Path:
    """As many points as the parts are to have; wide, a line with a name for each series."""
    values = np.random.default_rng(0).normal(size=(data.train_points or 900) + data.valid_points + data.test_points)
    lines = ["time,value", *(f"{n},{value:.3f}" for n, value in enumerate(values))]
    if data.layout == "wide":
        lines = [",".join(("id", *(f"V{n}" for n in range(len(values))))), *(_wide(name, values) for name in "ab")]
    (folder / "series.csv").write_text("\n".join(lines))
    return folder / "series.csv"


def _wide(name: str, values: np.ndarray) -> str:
    return ",".join((name, *(f"{value:.3f}" for value in values)))


WRITERS = {
    "texts": write_text,
    "pairs": write_pairs,
    "labelled": write_labelled,
    "frames": write_frames,
    "tagged": write_tagged,
    "questions": write_questions,
    "series": write_series,
}


@pytest.mark.parametrize("model", ["lstm", "gpt"])
def test_the_shakespeare_recipes_are_the_defaults_a_user_gets(model):
    recipe = next(path for path in RECIPES if path.stem == f"shakespeare-{model}")
    assert configure(recipe, {"data.train": "x"}) == configure(None, {"data.train": "x", "model.name": model})
