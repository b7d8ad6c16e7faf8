"""A run of the stable schedule branched off a longer one is the run that was trained alone: bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from support import small_fit, text

from seqloom.core.errors import RunError
from seqloom.runs import branch
from seqloom.runs.folder import RunFolder

STABLE = ["train.schedule=stable", "train.floor=0.05", "train.log_every=1"]
BUDGET, SHARES = 4000, (1 / 4, 1 / 2)


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "book.txt"
    path.write_text(text(3000))
    return path


@pytest.fixture(scope="module", params=["lstm", "gpt"])
def trunk(book: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> tuple[str, Path]:
    out = tmp_path_factory.mktemp("trunk") / "run"
    marks = [int(0.8 * share * BUDGET) for share in SHARES]
    small_fit(book, out, request.param, [*STABLE, f"train.tokens={BUDGET}", f"train.keep_at={marks}", "train.keep=1"])
    return request.param, out


def tensors(run: Path) -> dict[str, torch.Tensor]:
    """Weights, moments, carried states and random generators at the end."""
    folder = RunFolder(run)
    files = [*sorted(folder.checkpoints()[0][1].glob("*.safetensors")), folder.model_files() / "model.safetensors"]
    return {f"{file.name} {name}": tensor for file in files for name, tensor in load_file(file).items()}


@pytest.mark.parametrize("place", [0, 1])
def test_a_branch_equals_the_run_that_was_trained_alone(book: Path, trunk: tuple[str, Path], tmp_path, place) -> None:
    (model, longer), tokens = trunk, round(SHARES[place] * BUDGET)
    branch.begin(RunFolder(tmp_path / "branch"), RunFolder(longer), place, tokens)
    begun = RunFolder(tmp_path / "branch").checkpoints()[0][0]
    branched = small_fit(book, tmp_path / "branch", model, [*STABLE, f"train.tokens={tokens}"])
    alone = small_fit(book, tmp_path / "alone", model, [*STABLE, f"train.tokens={tokens}"])
    assert 0.75 < begun / alone.summary["steps"] < 0.85
    found, wanted = tensors(tmp_path / "branch"), tensors(tmp_path / "alone")
    assert found.keys() == wanted.keys()
    assert [name for name in wanted if not torch.equal(found[name], wanted[name])] == []
    assert branched.summary["scores"] == alone.summary["scores"]
    steps = [
        {k: v for k, v in e.items() if not k.endswith("seconds")} for e in RunFolder(tmp_path / "branch").metrics()
    ]
    assert [e for e in steps if "train" in e] == [
        {k: v for k, v in e.items() if not k.endswith("seconds")}
        for e in RunFolder(tmp_path / "alone").metrics()
        if "train" in e
    ]


def test_the_last_weights_are_the_result_of_a_stable_run(trunk: tuple[str, Path]) -> None:
    summary = RunFolder(trunk[1]).summary()
    assert summary is not None and summary["best_step"] == summary["steps"]


def test_checkpoints_to_branch_from_are_kept_beside_the_latest(trunk: tuple[str, Path]) -> None:
    summary = RunFolder(trunk[1]).summary()
    kept = [step for step, _ in RunFolder(trunk[1]).checkpoints()]
    assert summary is not None and len(kept) == 1 + len(SHARES) and kept[0] == summary["steps"]


def test_a_run_without_such_a_checkpoint_is_refused(book: Path, tmp_path: Path) -> None:
    small_fit(book, tmp_path / "run", extra=["train.tokens=500"])
    with pytest.raises(RunError, match="no checkpoint to branch from"):
        branch.begin(RunFolder(tmp_path / "branch"), RunFolder(tmp_path / "run"), 0, 250)
