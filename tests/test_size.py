"""What this machine cannot train is refused before it is allocated, and the message names the options to lower."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from seqloom.core import memory
from seqloom.core.config import parse_overrides
from seqloom.core.errors import RunError, UserError
from seqloom.runs.build import blueprint, check_size
from seqloom.runs.fit import fit
from seqloom.runs.registry import find_config
from seqloom.runs.settings import RunConfig
from seqloom.train.settings import TrainConfig


def check(model: str, *options: str, tokens: int = 10**6, device: str = "cpu") -> str:
    """What is said of a language model with these options on a text of so many tokens."""
    given: dict[str, dict[str, Any]] = {"task": {}, "model": {}, "train": {}}
    for path, value in parse_overrides(options).items():
        section, _, option = path.partition(".")
        given[section][option] = value
    chosen = {"task": find_config("tasks", "language_model"), "model": find_config("models", model)}
    named = {name: {"name": n} | chosen[name].model_validate(given[name]).model_dump()
             for name, n in (("task", "language_model"), ("model", model))}  # fmt: skip
    config = RunConfig(**named, data={}, tokenizer={}, train=TrainConfig.model_validate(given["train"]))
    task = chosen["task"].model_validate(given["task"]).build(SimpleNamespace(size=100, unk=None, byte_counts=None))
    return check_size(config, blueprint(config, task), task, tokens, device)


@pytest.fixture(autouse=True)
def room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 4 * 10**9)
    monkeypatch.setattr("seqloom.train.memory.torch.get_num_threads", lambda: 2)


@pytest.mark.parametrize(
    "model, options, lower",
    [
        ("lstm", ("model.width=50000",), r"model.width \(50,000\)$"),
        ("gpt", ("model.feed=4000000",), r"model.feed \(4,000,000\)$"),
        (
            "gpt",
            ("model.positions=learned", "model.context=1000000", "model.width=1024"),
            r"model.context \(1,000,000\), model.width \(1,024\)$",
        ),
        (
            "lstm",
            ("train.batch=1000000",),
            r"task.length \(48\), train.batch \(1,000,000\), model.width \(416\), or raise",
        ),
        ("lstm", ("task.length=5000000",), r"task.length \(5,000,000\), train.batch \(8\)"),
        ("lstm", ("task.length=5000000", "train.batch=1"), r"train.batch \(1\), model.width \(416\)$"),
    ],
)
def test_too_little_memory_names_what_to_lower(model: str, options: tuple[str, ...], lower: str) -> None:
    with pytest.raises(RunError, match=rf"training needs about .* but only 4.0 GB are available; lower .*{lower}"):
        check(model, *options, tokens=10**9)


def test_a_length_beyond_the_text_costs_no_more_than_the_text() -> None:
    assert check("lstm", "task.length=5000000", "model.width=16", tokens=5000) == ""


def test_a_step_that_takes_long_is_announced_and_one_without_end_is_refused() -> None:
    slow = ("train.batch=64", "model.width=1024", "model.depth=8", "model.heads=8")
    assert check("gpt", *slow, device="cuda") == ""
    assert "every training step takes" in check("gpt", *slow)
    with pytest.raises(RunError, match=r"every training step would take \d+ minutes or more .*lower task.length"):
        check("gpt", "task.length=200000", "model.context=200000", "train.batch=1", "model.width=64")


def test_muon_counts_but_no_optimizer_of_a_model_that_only_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 10**10)
    wide = ("model.width=8192", "task.length=1", "train.batch=1")
    with pytest.raises(RunError, match="every training step would take"):
        check("gru", *wide)
    assert check("gru", *wide, "train.optimizer=sgd") == check("ngram") == ""


def test_a_history_far_beyond_the_data_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("time,y\n" + "".join(f"{n},{n % 7}\n" for n in range(300)))
    settings = ["task.context=40000", "task.horizon=2", "model.width=8", "train.threads=1", "train.steps=1"]
    with pytest.raises(
        UserError, match=r"task.context=40,000: no series of the training set is so long; set it to 2048"
    ):
        fit(
            data=tmp_path / "a.csv", task="forecasting", model="gru", out=tmp_path / "r", overrides=settings, quiet=True
        )
