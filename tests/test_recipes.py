"""Every recipe is understood, runs, and where it says so equals the defaults."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import text

from seqloom import runs
from seqloom.fitting import fit

RECIPES = sorted((Path(__file__).parent.parent / "recipes").glob("*.toml"))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_runs(recipe, tmp_path):
    book = tmp_path / "book.txt"
    book.write_text(text(4000))
    small = ["model.width=16", "train.steps=2", "train.threads=1"]
    run = fit(recipe, data=str(book), out=tmp_path / "run", overrides=small, quiet=True)
    assert run.summary["steps"] == 2


@pytest.mark.parametrize("model", ["lstm", "gpt"])
def test_the_shakespeare_recipes_are_the_defaults_a_user_gets(model):
    recipe = next(path for path in RECIPES if path.stem == f"shakespeare-{model}")
    assert runs.configure(recipe, {"data.train": "x"}) == runs.configure(None, {"data.train": "x", "model.name": model})
