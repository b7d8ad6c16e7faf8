"""Learning from few rows on top of an encoder: its output layer is solved (probe), or it is tuned before (setfit)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_classification import each_model, model_of, rows, task
from toys import Case

from seqloom.core.batch import IGNORE
from seqloom.core.errors import UserError
from seqloom.core.task import Order
from seqloom.runs.fit import fit
from seqloom.runs.run import load
from seqloom.tasks.classification.probing import Contrast, _balanced, _pairs, head_of, pooled

pytestmark = pytest.mark.long


def table(folder: Path, count: int = 90) -> Path:
    """Three labels, each with letters of its own among others."""
    rng = np.random.default_rng(0)
    letters = {"one": "abc", "two": "def", "three": "ghi"}
    lines = ["text,label"]
    for n in range(count):
        label = list(letters)[n % 3]
        words = ["".join(rng.choice(list(letters[label] + "xyz"), 4)) for _ in range(4)]
        lines.append(f"{' '.join(words)},{label}")
    path = folder / "rows.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def run(data: Path, out: Path, method: str, **train: Any) -> Any:
    settings = {"method": method, "seed": 3, "threads": 1} | train
    return fit(data=str(data), task={"name": "classification", "pooling": "mean"}, model={"name": "bert", "width": 32},
               tokenizer={"kind": "characters"}, train=settings, out=out, quiet=True)  # fmt: skip


@each_model
def test_the_solved_layer_is_at_least_as_good_as_the_initial_one(case: Case) -> None:
    name, options = case
    model, classify = model_of(name, options), task()
    if not model.descends:
        return
    examples = rows(60)
    for n, labels in enumerate(examples.labels):
        labels[:] = [n % 3]
    before = _loss(classify, model, examples)
    classify.solve_head(model, examples)
    assert _loss(classify, model, examples) <= before


def _loss(classify: Any, model: Any, examples: Any) -> float:
    model.eval()
    with torch.no_grad():
        steps = [classify.loss(model, batch) for batch in classify.examples(examples)]
    return sum(float(step.loss) for step in steps) / sum(step.count for step in steps)


def test_solving_changes_the_output_layer_only() -> None:
    model = model_of("bert", {})
    before = {name: value.clone() for name, value in model.state_dict().items()}
    task().solve_head(model, rows(30))
    changed = {name for name, value in model.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == {"head.out.weight", "head.out.bias"}


def test_several_labels_per_row_are_solved_one_by_one() -> None:
    model, classify = model_of("bert", {}, multi=True), task(multi=True)
    examples = rows(40, multi=True)
    before = _loss(classify, model, examples)
    classify.solve_head(model, examples)
    assert _loss(classify, model, examples) < before


def test_pairs_are_of_different_rows_with_known_labels() -> None:
    same, counts = _pairs(torch.tensor([0, 0, 1, IGNORE]))
    assert same[:3, :3].tolist() == [[True, True, False], [True, True, False], [False, False, True]]
    assert counts.tolist() == [[n != m and 3 not in (n, m) for m in range(4)] for n in range(4)]


def test_a_batch_has_pairs_of_every_label_it_has() -> None:
    examples = rows(50)
    chosen = _balanced(examples, seed=1)(4, 12)
    labels = [examples.labels[n][0] for n in chosen]
    assert len(chosen) == 12
    assert all(labels.count(label) >= 2 for label in labels)
    assert np.array_equal(chosen, _balanced(examples, seed=1)(4, 12)), "a function of seed and step"


def test_contrast_draws_rows_of_one_label_together() -> None:
    torch.manual_seed(0)
    model, contrast, examples = model_of("bert", {}), Contrast(task()), rows(24)
    for n, labels in enumerate(examples.labels):
        labels[:] = [n % 3]
    before = contrast.evaluate(model, examples)["loss"]
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for (batch,), _ in zip(contrast.batches(examples, Order(12, seed=1), False), range(60), strict=False):
        step = contrast.loss(model, batch)
        optimizer.zero_grad()
        (step.loss / step.count).backward()
        optimizer.step()
    assert contrast.evaluate(model, examples)["loss"] < 0.75 * before
    assert all(p.grad is None for p in head_of(model).out.parameters())
    assert pooled(model, batch).shape == (12, 16)


@pytest.mark.parametrize("method", ["probe", "setfit"])
def test_a_run_learns_and_comes_back(method: str, tmp_path: Path) -> None:
    found = run(table(tmp_path), tmp_path / "run", method, steps=30, rate=1e-3)
    assert found.summary["scores"]["valid"]["accuracy"] > 0.5
    again = load(tmp_path / "run")
    assert list(again.predict(["abca cbax", "ghig xhiy"])) == list(found.predict(["abca cbax", "ghig xhiy"]))
    assert found.summary["steps"] == (0 if method == "probe" else 30)


def test_a_probe_leaves_the_encoder_as_it_was(tmp_path: Path) -> None:
    data = table(tmp_path)
    base = run(data, tmp_path / "base", "descent", steps=5)
    fit(data=str(data), task="classification", start=tmp_path / "base", train={"method": "probe", "threads": 1},
        out=tmp_path / "probe", quiet=True)  # fmt: skip
    probe = load(tmp_path / "probe").model.state_dict()
    kept = [name for name, value in base.model.state_dict().items() if torch.equal(value, probe[name])]
    assert all(name in kept for name in probe if name.startswith(("embed.", "backbone.")))


def test_a_probe_is_told_what_it_uses_and_nothing_of_gradient_descent(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    data = table(tmp_path)
    run(data, tmp_path / "base", "descent", steps=2)
    capsys.readouterr()
    fit(data=str(data), task="classification", start=tmp_path / "base", train={"method": "probe"}, out=tmp_path / "b")
    said = capsys.readouterr().err
    assert "task.pooling=max" in said
    assert not any(option in said for option in ("train.rate", "train.epochs", "task.smoothing", "random encoder"))
    fit(data=str(data), task="classification", model="bert", train={"method": "probe"}, out=tmp_path / "c")
    assert "without --from: the output layer is solved on a random encoder" in capsys.readouterr().err


def test_contrastive_validation_counts_its_batches(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    fit(data=str(table(tmp_path)), task="classification", model={"name": "bert", "width": 16}, out=tmp_path / "run",
        train={"method": "setfit", "steps": 2})  # fmt: skip
    assert "contrastive loss, 1 batch of 32 rows" in capsys.readouterr().err


def test_methods_are_refused_where_they_do_not_apply(tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text("so it goes. " * 400)
    with pytest.raises(UserError, match=r"train\.method=probe: language_model does not support it"):
        fit(data=str(tmp_path / "book.txt"), model="lstm", train={"method": "probe"}, out=tmp_path / "a", quiet=True)
    with pytest.raises(UserError, match=r"train\.method=setfit: tfidf has no encoder"):
        fit(data=str(table(tmp_path)), task="classification", model="tfidf", train={"method": "setfit"},
            out=tmp_path / "b", quiet=True)  # fmt: skip
