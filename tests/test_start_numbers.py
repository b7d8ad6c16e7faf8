"""Starting from a run that reads numbers, which has no tokenizer: `fit --from` and entries of a comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqloom import compare, fit
from seqloom.core.errors import UserError

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("jobs_here", "short_probes")]

SHORT: Any = {"train": {"steps": 2, "threads": 1}, "quiet": True}
SMALL: dict[str, Any] = {"trials": 0, "seeds": 1, "budget": "tokens=6k", "quiet": True}


def waves(path: Path, features: int) -> str:
    """Sequences of two kinds: those that rise, and those that fall."""
    rng = np.random.default_rng(features)
    slopes = np.where(np.arange(120) % 2, 1.0, -1.0)[:, None, None]
    frames = slopes * np.linspace(-1, 1, 12)[:, None] + rng.normal(0, 0.3, (120, 12, features))
    np.savez(path, frames=frames.astype(np.float32), label=np.where(slopes[:, 0, 0] > 0, "up", "down"))
    return str(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data of two features, a run on it, data of three features, labelled texts, and a run on these."""
    place = tmp_path_factory.mktemp("numbers")
    lines = [f"{label},it goes {label} {n} times\n" for n in range(60) for label in ("up", "down")]
    (place / "rows.csv").write_text("label,text\n" + "".join(lines))
    two, _ = waves(place / "two.npz", 2), waves(place / "three.npz", 3)
    for name, data in (("run", two), ("read", str(place / "rows.csv"))):
        fit(task="classification", data=data, model={"name": "gru", "width": 8}, out=place / name, **SHORT)
    return place


def test_a_run_on_measurements_is_a_start_for_others_of_the_same_features(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, again = str(folder / "two.npz"), SHORT | {"quiet": False}
    found = fit(task="classification", data=data, start=folder / "run", out=tmp_path / "again", **again)
    assert found.config.model["width"] == 8 and "0 initialised" in "".join(capsys.readouterr()), "also its output layer"


def test_a_run_on_series_is_a_start_too(tmp_path: Path) -> None:
    table = tmp_path / "series.csv"
    table.write_text("time,value\n" + "".join(f"{n},{np.sin(n / 3):.4f}\n" for n in range(300)))
    shared: Any = {"task": "forecasting", "data": str(table), **SHORT}
    fit(model={"name": "gru", "width": 8}, out=tmp_path / "run", **shared)
    assert fit(start=tmp_path / "run", out=tmp_path / "again", **shared).config.model["width"] == 8


def test_a_comparison_has_entries_that_start_from_a_run_on_measurements(folder: Path, tmp_path: Path) -> None:
    models = ["lstm", *(f"{way}:run:{folder / 'run'}" for way in ("full", "probe", "lora"))]
    asked: Any = SMALL | {"task": "classification", "data": str(folder / "two.npz"), "params": "500"}
    found = compare(models=models, out=tmp_path / "out", **asked)
    entries = {entry["name"]: entry for entry in found.result["entries"]}
    assert set(entries) >= {"lstm", "full run", "probe run", "lora run"}
    assert all(entry["state"] == "done" for entry in entries.values()), [entry["error"] for entry in entries.values()]
    assert found.result["protocol"]["tokenizers"] == 1, "all share the scale of the training set"


REFUSED = [
    ("run", "three.npz", r"it reads other inputs \(embed.weight has shape \(8, 2\) there, \(8, 3\) here\); start from"),
    ("run", "rows.csv", "was trained on numbers, but this data is text; start from a run on text"),
    ("read", "two.npz", "was trained on text, but this data is numbers; start from a run on numbers"),
]


@pytest.mark.parametrize(("start", "data", "message"), REFUSED)
def test_what_a_run_cannot_read_is_refused_in_one_line(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], start: str, data: str, message: str
) -> None:
    named: Any = {"task": "classification", "data": str(folder / data)}
    with pytest.raises(UserError, match=message):
        fit(start=folder / start, out=tmp_path / "again", **named, **SHORT)
    with pytest.raises(UserError, match=message):
        compare(models=["gru", f"full:run:{folder / start}"], params="500", out=tmp_path / "out", **named, **SMALL)
    assert not list((tmp_path / "out").glob("runs/*")), "before anything is trained"
    assert "not used by" not in "".join(capsys.readouterr())
