"""Every model for every task in every target: equal, or refused in a sentence that names what can hold it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from kill_cases import DATA, SMALL, desk, sized

import seqloom
from seqloom.core.errors import UserError
from seqloom.export.exporting import TARGETS
from seqloom.export.target import BAR
from seqloom.runs.fit import fit
from seqloom.runs.registry import names

UNLEARNED = {"ngram", "naive", "nearest", "frequent", "tfidf", "pretrained"}
BRIEF = ["train.steps=4", "train.batch=4", "train.threads=1"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    desk(folder)
    return folder


@pytest.mark.parametrize("model", names("models"))
@pytest.mark.parametrize("task", DATA)
def test_every_model_in_every_target(place: Path, tmp_path: Path, task: str, model: str) -> None:
    os.chdir(place)
    words = ["tokenizer.kind=words"] if task == "classification" else []
    options = [*SMALL[task], *sized(model, task), *BRIEF, *words]
    try:
        fit(None, task=task, data=DATA[task], model=model, out=tmp_path / "run", overrides=options, quiet=True)
    except UserError:
        return  # the task does not take this model
    for to in TARGETS:
        out = tmp_path / to
        try:
            facts = seqloom.export(tmp_path / "run", to=to, out=out)
        except UserError as refused:
            assert to != "onnx" or model in UNLEARNED, f"{to}: {refused}"
            assert str(refused).startswith("--to ") and "; " in str(refused)
            assert not out.exists()
            continue
        assert facts["difference"] <= BAR
        assert {"README.md", "export.json"} <= {path.name for path in out.iterdir()}
