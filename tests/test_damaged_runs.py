"""A run folder that was damaged, edited or mixed up is refused, with the file at fault, and the same `fit` mends it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save
from support import digest, small_fit, text

from seqloom.core.errors import RunError, UserError
from seqloom.runs import durable
from seqloom.runs.folder import RunFolder
from seqloom.runs.past import listed
from seqloom.runs.run import load

QUICK = ["train.steps=4", "train.save_every=2", "train.keep=2"]
GOLDEN = Path(__file__).parent / "golden" / "runs"


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "book.txt"
    path.write_text(text(2000))
    return path


@pytest.fixture(scope="module")
def finished(book: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_fit(book, tmp_path_factory.mktemp("runs") / "run", "gru", QUICK).folder.path


@pytest.fixture(scope="module")
def other(book: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model of another seed."""
    return small_fit(book, tmp_path_factory.mktemp("runs") / "run", "gru", [*QUICK, "train.seed=1"]).folder.path


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def replace(made: Callable[[Path], Any]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        path.unlink()
        made(path)

    return damage


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "deleted": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "cut": cut,
    "flipped": flip,
    "deep": lambda path: path.write_bytes(b"[" * 100_000),
    "another type": lambda path: path.write_bytes(b"[1]"),
    "a folder": replace(Path.mkdir),
    "a pipe": replace(os.mkfifo),
    "an endless device": replace(lambda path: path.symlink_to("/dev/zero")),
}
FILES = ["run.json", "summary.json", "model/model.safetensors", "model/naive.json", "model/tokenizer.json"]
FILES += ["model/manifest.json", "tokenizer/tokenizer.json", "metrics.jsonl", "checkpoints/step-00000004/progress.json"]
THOROUGHLY = ("run.json", "summary.json", "model/model.safetensors")
CASES = [(f, d) for f in FILES for d in DAMAGES if f in THOROUGHLY or d in ("deleted", "flipped", "a pipe")]


def fit_again(book: Path, run: Path) -> list[str]:
    """What must be deleted first, if anything."""
    try:
        small_fit(book, run, "gru", QUICK)
    except UserError as error:
        assert "delete" in str(error) and "\n" not in str(error)
        named = [path for path in (run, *run.rglob("*")) if str(path) in str(error)]
        worst = max(named, key=lambda path: len(str(path)))
        shutil.rmtree(worst) if worst.is_dir() and not worst.is_symlink() else worst.unlink()
        small_fit(book, run, "gru", QUICK)
        return [str(worst.relative_to(run))]
    return []


@pytest.mark.parametrize("file, damage", CASES)
def test_whatever_file_is_damaged_the_same_fit_leads_to_the_bits_of_the_first(book, finished, run, file, damage):
    DAMAGES[damage](run / file)
    needed = not file.startswith(("tokenizer", "metrics", "checkpoints")) and (file, damage) != (FILES[1], "deleted")
    if needed:
        with pytest.raises(UserError) as caught:
            load(run)
        assert str(run) in str(caught.value) and "run the command that made this run again" in str(caught.value)
    else:
        load(run)
    fit_again(book, run)
    assert bits(run) == bits(finished)
    if not file.startswith(("metrics", "checkpoints")):
        assert digest(run) == digest(finished)


def bits(run: Path) -> dict[str, bytes]:
    load(run)
    return {path.name: path.read_bytes() for path in (run / "model").iterdir()}


@pytest.mark.parametrize("file", ["metrics.jsonl", "model/manifest.json"])
def test_a_file_of_any_size_is_refused_before_it_is_read(run, file):
    os.truncate(run / file, 1 << 36)
    said = {"metrics.jsonl": "more than 1,073,741,824 bytes", "model/manifest.json": "not the model that"}
    with pytest.raises(RunError, match=said[file]):
        load(run).folder.metrics()


def test_what_is_damaged_but_not_needed_is_told_and_how_to_be_rid_of_it(book, run):
    flip(run / "metrics.jsonl")
    flip(run / "checkpoints" / "step-00000004" / "model.safetensors")
    remarks = RunFolder(run).remarks()
    assert len(remarks) == 2 and all("delete" in remark for remark in remarks)
    small_fit(book, run, "gru", QUICK)
    shutil.rmtree(run)
    small_fit(book, run, "gru", QUICK)
    assert RunFolder(run).remarks() == []


@pytest.mark.parametrize("part", ["run.json", "summary.json", "model", "tokenizer", "checkpoints/step-00000004"])
def test_a_part_of_another_run_is_noticed(book, finished, other, run, part):
    own, foreign = run / part, other / part
    if own.is_dir():
        shutil.rmtree(own)
        shutil.copytree(foreign, own)
    else:
        shutil.copy(foreign, own)
    if part in ("run.json", "summary.json", "model"):
        with pytest.raises(UserError, match=r"another run|not the model that summary.json"):
            load(run)
    if part.startswith("checkpoints"):
        (run / "summary.json").unlink()
    fit_again(book, run)
    assert bits(run) == bits(finished)


EDITS: list[Callable[[Any], Any]] = [
    lambda found: found | {"parameters": -1},
    lambda found: found | {"parameters": "12"},
    lambda found: found | {"extra": 1},
    lambda found: {key: value for key, value in found.items() if key != "seal"},
    lambda found: found | {"seal": 7},
]


@pytest.mark.parametrize("file", ["run.json", "summary.json"])
@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_file_is_refused(run, file, edit):
    path = run / file
    path.write_text(json.dumps(edit(json.loads(path.read_text()))))
    with pytest.raises(UserError, match=file):
        load(run)
    assert listed(run.parent)[0]["state"] == "damaged"


@pytest.mark.parametrize(
    "file, content, said",
    [
        ("run.json", {"versions": None}, "versions"),
        ("run.json", {"tokenizer": {"kind": "words", "size": -5, "hash": "0"}}, "tokenizer.size"),
        ("run.json", {"data": {"train": 5}}, "data.train"),
        ("run.json", {"config": None}, "config"),
        ("summary.json", {"steps": 1.5}, "steps"),
        ("summary.json", {"seconds": 1e999}, "not finite"),
        ("summary.json", {"tokens": "12"}, "tokens"),
        ("summary.json", {"scores": [1]}, "scores"),
    ],
)
def test_a_folder_of_an_earlier_version_has_no_seal_but_a_schema(tmp_path, file, content, said):
    run = Path(shutil.copytree(GOLDEN / "classification", tmp_path / "run"))
    load(run)
    path = run / file
    path.write_text(json.dumps(json.loads(path.read_text()) | content))
    with pytest.raises(UserError, match=said) as caught:
        load(run)
    assert file in str(caught.value)


@pytest.mark.parametrize(
    "section, options, said",
    [
        ("model", {"name": "nosuch"}, "unknown model 'nosuch'"),
        ("task", {"name": "nosuch"}, "unknown task 'nosuch'"),
        ("model", {"name": "gru", "depth": "deep"}, "depth"),
        ("model", {"name": "gru", "depth": 10**6}, "depth"),
        ("train", {"steps": "many"}, "train.steps"),
        ("data", 5, "data"),
    ],
)
def test_edited_settings_of_an_earlier_version_are_named(tmp_path, section, options, said):
    run = Path(shutil.copytree(GOLDEN / "classification", tmp_path / "run"))
    record = json.loads((run / "run.json").read_text())
    record["config"][section] = options
    (run / "run.json").write_text(json.dumps(record))
    with pytest.raises(UserError, match=said):
        load(run)


def test_settings_of_a_newer_version_are_said_to_be_so(tmp_path):
    run = Path(shutil.copytree(GOLDEN / "classification", tmp_path / "run"))
    record = json.loads((run / "run.json").read_text())
    record["config"]["train"]["invented"] = 1
    record["versions"]["seqloom"] = "99.0"
    (run / "run.json").write_text(json.dumps(record))
    with pytest.raises(UserError, match=r"invented.*written by seqloom 99\.0"):
        load(run)


WEIGHTS: dict[str, Callable[[dict[str, torch.Tensor], str], dict[str, torch.Tensor]]] = {
    "not finite": lambda tensors, name: tensors | {name: tensors[name] * torch.nan},
    "of a different shape": lambda tensors, name: tensors | {name: tensors[name][:1]},
    "of a different type": lambda tensors, name: tensors | {name: tensors[name].double()},
    "missing": lambda tensors, name: {key: value for key, value in tensors.items() if key != name},
    "unexpected": lambda tensors, name: tensors | {"zzz": torch.zeros(3)},
}


@pytest.mark.parametrize("fault", WEIGHTS)
@pytest.mark.parametrize("kind", ["classification", "counting"])
def test_weights_that_are_not_those_of_the_model_are_refused(tmp_path, kind, fault):
    run = Path(shutil.copytree(GOLDEN / kind, tmp_path / "run"))
    tensors = load_file(run / "model" / "model.safetensors")
    name = next(name for name, tensor in tensors.items() if tensor.is_floating_point() and tensor.dim())
    replace_model(run, {"model.safetensors": save(WEIGHTS[fault](tensors, name))})
    with pytest.raises(RunError, match=rf"{fault}|do not belong together"):
        load(run)


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff" * 8 + b"x", b"\x80\x05pickle", b"PK\x03\x04"])
def test_weights_that_are_no_safetensors_are_refused(tmp_path, content):
    run = Path(shutil.copytree(GOLDEN / "classification", tmp_path / "run"))
    replace_model(run, {"model.safetensors": content})
    with pytest.raises(RunError, match=r"model\.safetensors: not a safetensors file"):
        load(run)


@pytest.mark.parametrize("kind", ["classification", "measurements", "tagging", "forecasting", "translation"])
def test_a_tokenizer_scale_or_list_of_labels_of_another_run_is_refused(tmp_path, kind):
    for name in sorted(path.name for path in (GOLDEN / kind / "model").glob("*.json")):
        if name in ("naive.json", "manifest.json"):
            continue
        for content in (b"{}", b"[]", b'{"labels": 5, "tags": -1, "mean": "x", "scale": []}', b"[" * 100_000):
            run = Path(shutil.copytree(GOLDEN / kind, tmp_path / "run", dirs_exist_ok=True))
            replace_model(run, {name: content})
            with pytest.raises(UserError) as caught:
                load(run)
            assert str(run) in str(caught.value)


def replace_model(run: Path, files: dict[str, bytes]) -> None:
    """With a manifest that is right."""
    folder = run / "model"
    known = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != durable.MANIFEST}
    durable.publish(folder, known | files)


@pytest.mark.parametrize(
    "files", [{"../a": {"bytes": 1, "sha256": ""}}, {"a": 5}, {"a": {"bytes": "1"}}, {"": {}}, ["a"], "a", None]
)
def test_a_manifest_that_lists_no_files_is_damaged(tmp_path, files):
    (tmp_path / "manifest.json").write_bytes(durable._render_manifest(files))
    with pytest.raises(durable.Damaged, match=r"manifest\.json"):
        durable.verify(tmp_path)
