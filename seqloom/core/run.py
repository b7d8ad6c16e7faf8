"""A run, as files: its complete configuration, and the folder where everything about it meets.

    RUN/run.json            what was asked: configuration, seed, versions, hash of the data
    RUN/metrics.jsonl       what was measured on the way, one JSON object per line
    RUN/checkpoints/        step-00001234/: all that is needed to continue from that step, with a manifest
    RUN/model/              the trained model, with a manifest
    RUN/summary.json        how it ended; exists once the run is finished
    RUN/.lock               who is writing here

One process writes at a time. Nothing here loads torch.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from seqloom.core import durable
from seqloom.core.config import Strict
from seqloom.core.durable import Content, Damaged, shown
from seqloom.core.errors import RunError, UserError

_STEP = re.compile(r"step-(\d{8,})")
_PATIENCE = 1.0  # seconds to wait for the name of a lock's holder that has just taken it


class DataConfig(Strict):
    """Where the data comes from and how it is split."""

    model_config = ConfigDict(coerce_numbers_to_str=True)  # a column may be a number

    train: str = Field(min_length=1, description="file, folder or sample:NAME to learn from")
    valid: str | None = Field(None, description="file, folder or sample:NAME to validate on; else a part of train")
    test: str | None = Field(None, description="file, folder or sample:NAME to test on; else a part of train")
    column: str = Field("text", min_length=1, description="column with the text, in JSONL and CSV files")
    source: str = Field("source", min_length=1, description="pairs: column of what is given; a number: no header")
    target: str = Field("target", min_length=1, description="pairs: column of what is wanted; a number: no header")
    label: str = Field("label", min_length=1, description="labelled: column of the label; a number: no header")
    second: str | None = Field(None, description="labelled: column of a second text, read after the first")
    separator: str | None = Field(None, description="labelled: rows have several labels, with this between them")
    row: str = Field("id", min_length=1, description="measurements in a table: column that says which sequence it is")
    word: int = Field(1, description="CoNLL columns: that of the words; from 1, or from the end: -1 is the last")
    tag: int = Field(-1, description="CoNLL columns: that of the tags")
    layout: Literal["long", "wide"] = Field("long", description="series: a line is one time step, or a whole series")
    time: str | None = Field(None, description="series: column that says when; line: none, lines follow evenly")
    series: str | None = Field(None, description="series: column that says which series a line belongs to")
    targets: str | None = Field(None, description="series: what is forecast, a,b; else every column of numbers")
    past: str = Field("", description="series: columns that are known only up to now, a,b")
    known: str = Field("", description="series: columns that are known ahead, a,b; in lines with empty targets too")
    calendar: str = Field("", description="series: hour,weekday,monthday,yearday,month as inputs; auto: what suits")
    scale: Literal["standard", "robust", "none"] = Field("standard", description="series: by mean or by median")
    season: int = Field(0, ge=0, description="series: points of a season; 0: by frequency; 1: there is none")
    split_by: Literal["time", "share"] = Field("time", description="series: cut at one moment, or each in its own time")
    train_points: int = Field(0, ge=0, description="series: first points to train on; 0: all that is left")
    valid_points: int = Field(0, ge=0, description="series: points to validate on; 0: valid_fraction")
    test_points: int = Field(0, ge=0, description="series: points to test on; 0: test_fraction")
    valid_fraction: float = Field(0.1, ge=0, lt=1, description="part of train set aside when valid is not given")
    test_fraction: float = Field(0.0, ge=0, lt=1, description="part of train set aside when test is not given")
    examples: int = Field(0, ge=0, description="learn from so many rows only, drawn from the training part; 0: all")
    draw: int = Field(0, ge=0, description="which rows are drawn: another number, others")

    @model_validator(mode="after")
    def _leave_something_to_learn_from(self) -> DataConfig:
        if self.valid_fraction + self.test_fraction >= 1:
            raise ValueError("valid_fraction and test_fraction together leave nothing to train on")
        return self


class TrainConfig(Strict):
    """How a model is trained. Of the budgets, the first that is reached ends the run."""

    model_config = ConfigDict(allow_inf_nan=False)

    steps: int | None = Field(None, ge=1, description="budget: optimiser steps")
    tokens: int | None = Field(None, ge=1, description="budget: tokens learned from")
    seconds: float | None = Field(None, gt=0, description="budget: seconds of training")
    batch: int = Field(8, ge=1, description="rows in one optimiser step, over all processes")
    accumulate: int = Field(1, ge=1, description="pieces in which each process takes its share of a batch")
    optimizer: Literal["adamw", "sgd", "muon"] = Field("muon", description="muon: for matrices, adamw for the rest")
    rate: float = Field(4e-3, gt=0, description="learning rate")
    matrix_rate: float = Field(0.02, gt=0, description="learning rate of muon's matrices")
    weight_decay: float = Field(0.0, ge=0, description="pull of the weights towards zero")
    momentum: float = Field(0.95, ge=0, lt=1, description="momentum of sgd and muon")
    beta1: float = Field(0.9, ge=0, lt=1, description="adamw: memory of the gradient")
    beta2: float = Field(0.99, ge=0, lt=1, description="adamw: memory of its square")
    schedule: Literal["constant", "cosine", "inverse_sqrt"] = Field("cosine", description="the rate after warm-up")
    warmup: int = Field(
        100, ge=0, description="steps in which the rate rises from zero (at most a tenth of the budget)"
    )
    floor: float = Field(0.0, ge=0, le=1, description="least share of the rate that a schedule leaves")
    clip: float = Field(1.0, ge=0, description="largest gradient; 0: any")
    clip_by: Literal["norm", "value"] = Field("norm", description="clip the whole gradient's norm, or each value")
    start: str | None = Field(None, description="a run whose encoder and tokenizer it begins with (--from)")
    freeze: int = Field(0, ge=0, description="stages that do not learn; 1: the table of tokens, 2: also a layer")
    stage_decay: float = Field(1.0, gt=0, le=1, description="rate of each stage over that of the next above it")
    evaluate_every: int = Field(0, ge=0, description="steps between validations; 0: ten in a run")
    save_every: int = Field(0, ge=0, description="steps between checkpoints; 0: at each validation")
    log_every: int = Field(10, ge=1, description="steps between lines of metrics")
    patience: int = Field(0, ge=0, description="stop after so many validations without a better one; 0: never")
    keep: int = Field(2, ge=1, description="newest checkpoints to keep, beside the best")
    seed: int = Field(0, ge=0, lt=2**63, description="start of every random number")
    threads: int = Field(0, ge=0, description="threads of the processor; 0: torch's choice")
    device: Literal["auto", "cpu", "cuda", "mps"] = Field("auto", description="where to compute")
    precision: Literal["auto", "float32", "bfloat16"] = Field("auto", description="auto: bfloat16 on GPUs only")
    shard: bool = Field(False, description="shard the model over the processes (FSDP2, under torchrun)")
    compile: bool = Field(False, description="torch.compile the training step; docs/speed.md says when it pays")
    tensorboard: bool = Field(False, description="also write TensorBoard events")


class RunConfig(Strict):
    """The complete configuration of a run, to JSON and back."""

    task: dict[str, Any] = Field(description="name of the task, and its options")
    model: dict[str, Any] = Field(description="name of the model, and its options")
    data: DataConfig
    train: TrainConfig

    @field_validator("task", "model")
    @classmethod
    def _has_a_name(cls, section: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(section.get("name"), str):
            raise ValueError("a name is needed")
        return section


class RunFolder:
    def __init__(self, path: Path) -> None:
        _check_name(path)
        self.path = path
        self._whole: set[int] = set()  # checkpoints that this process has written or verified

    @classmethod
    def new(cls, root: Path, stem: str) -> RunFolder:
        """A fresh folder `root/stem-0001`, `-0002`, ...: as many callers at once as there are, each gets its own."""
        _check_name(root / stem)
        if not stem or "/" in stem:
            raise UserError(f"{stem!r}: not a name for a run; it must be something, and without a slash")
        durable.make_folder(root)
        numbered = re.compile(re.escape(stem) + r"-(\d{4,})", re.DOTALL)
        taken = [int(match[1]) for name in os.listdir(root) if (match := numbered.fullmatch(name))]
        number = max(taken, default=0)
        while True:
            number += 1
            path = root / f"{stem}-{number:04d}"
            if durable.make_new_folder(path):
                return cls(path)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the one writer of this folder, which is made if need be; the kernel frees it however we end."""
        durable.make_folder(self.path)
        with durable.writing(self.path):
            fd = os.open(self.path / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
        _held.add(fd)
        try:
            self._acquire(fd)
            for parent in (self.path, self._checkpoints):
                durable.sweep(parent)
            yield
        finally:
            if fd in _held:
                _held.discard(fd)
                fcntl.flock(fd, fcntl.LOCK_UN)
                os.close(fd)

    def write_record(self, record: Mapping[str, Any]) -> None:
        self._write_json("run.json", record)

    def record(self) -> dict[str, Any]:
        record = self._read_json("run.json")
        if record is None:
            raise UserError(f"{shown(self.path)}: not a run folder (no run.json); seqloom fit makes one")
        return record

    def config(self) -> RunConfig:
        """The configuration it was made with."""
        try:
            return RunConfig.model_validate(self.record()["config"])
        except (KeyError, ValueError):
            raise UserError(f"{shown(self.path)}: its run.json is not one that this version understands") from None

    def forget_summary(self) -> None:
        """A finished run that goes on is not finished."""
        with durable.writing(self.path), suppress(FileNotFoundError):
            os.unlink(self.path / "summary.json")

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        self._write_json("summary.json", summary)

    def summary(self) -> dict[str, Any] | None:
        """How the run ended; None while it is not finished."""
        return self._read_json("summary.json")

    def log(self, entry: Mapping[str, Any]) -> None:
        durable.append_line(self._metrics, entry)

    def metrics(self) -> list[dict[str, Any]]:
        return durable.read_lines(self._metrics)

    def trim_metrics(self, step: int) -> None:
        """Forget what was measured after `step`, so that no step appears twice once training goes on from there."""
        if self._metrics.exists():
            kept = [entry for entry in self.metrics() if entry.get("step", 0) <= step]
            durable.write_file(self._metrics, b"".join(durable.to_json(entry) + b"\n" for entry in kept))

    def save_checkpoint(self, step: int, files: Mapping[str, Content], keep: int, best: int | None) -> None:
        """Publish a checkpoint, then remove all but the newest `keep` whole ones and the best."""
        durable.sync_file(self._metrics)
        durable.publish(self._step_folder(step), files)
        self._whole.add(step)
        self._prune(max(1, keep), best)

    def checkpoints(self) -> list[tuple[int, Path]]:
        """By step, newest first; not verified."""
        folders = durable.published(self._checkpoints).items()
        steps = [(int(match[1]), path) for name, path in folders if (match := _STEP.fullmatch(name))]
        return sorted(steps, reverse=True)

    def newest_whole(self, say: Callable[[str], None]) -> tuple[int, Path] | None:
        """The newest checkpoint that is as it was written; says which ones were passed over, and why."""
        for step, path in self.checkpoints():
            try:
                durable.verify(path)
            except Damaged as damage:
                say(f"{damage}; passing over the checkpoint of step {step}")
                continue
            self._whole.add(step)
            return step, path
        return None

    def checkpoint(self, step: int) -> Path:
        return self._verified(self._step_folder(step))

    def publish(self, name: str, files: Mapping[str, Content]) -> None:
        """A folder of the run with a manifest: `tokenizer`, `model`."""
        durable.publish(self.path / name, files)

    def published(self, name: str) -> Path:
        return self._verified(self.path / name)

    def publish_model(self, files: Mapping[str, Content]) -> None:
        self.publish("model", files)

    def model_files(self) -> Path:
        self.record()
        if not os.path.isdir(durable.locate(self.path / "model")):
            raise UserError(f"{shown(self.path)}: no trained model yet; issue its fit command again to finish it")
        return self._verified(self.path / "model")

    @property
    def _metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def _checkpoints(self) -> Path:
        return self.path / "checkpoints"

    def _step_folder(self, step: int) -> Path:
        return self._checkpoints / f"step-{step:08d}"

    def _verified(self, folder: Path) -> Path:
        place = durable.locate(folder)
        durable.verify(place)
        return place

    def _prune(self, keep: int, best: int | None) -> None:
        whole, excess = 0, []
        for step, path in self.checkpoints():
            if whole < keep:
                whole += self._is_whole(step, path)
            elif step != best:
                excess.append((step, path))
        for step, path in reversed(excess):
            durable.remove(path)
            self._whole.discard(step)

    def _is_whole(self, step: int, path: Path) -> bool:
        if step not in self._whole:
            try:
                durable.verify(path)
            except Damaged:
                return False
            self._whole.add(step)
        return True

    def _write_json(self, name: str, value: Mapping[str, Any]) -> None:
        text = json.dumps(json.loads(durable.to_json(value)), indent=1, ensure_ascii=False)
        durable.write_file(self.path / name, text.encode("utf-8", "backslashreplace") + b"\n")

    def _read_json(self, name: str) -> dict[str, Any] | None:
        path = self.path / name
        try:
            value = json.loads(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise RunError(f"cannot read {shown(path)}: {durable.reason(error)}") from error
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise Damaged(f"{shown(path)}: not the JSON object that was written there")
        return value

    def _acquire(self, fd: int) -> None:
        started = time.monotonic()
        while True:
            with durable.writing(self.path), suppress(BlockingIOError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.ftruncate(fd, 0)
                os.pwrite(fd, durable.to_json(_holder()), 0)
                return
            holder = _read_holder(fd)
            if holder or time.monotonic() - started > _PATIENCE:
                user = f"in use by {holder or 'another process'}"
                raise RunError(f"{shown(self.path)}: {user}; wait for it to end, or choose another folder")
            time.sleep(0.01)


_held: set[int] = set()


def _let_go() -> None:
    """A forked child must not keep its parent's folders locked."""
    for fd in _held:
        with suppress(OSError):
            os.close(fd)
    _held.clear()


os.register_at_fork(after_in_child=_let_go)


def _holder() -> dict[str, Any]:
    since = datetime.now().astimezone().isoformat(timespec="seconds")
    return {"pid": os.getpid(), "host": socket.gethostname(), "since": since}


def _read_holder(fd: int) -> str | None:
    """`process 17 on host since ...`; None if it has not written its name yet and the file names an older one."""
    try:
        holder = json.loads(os.pread(fd, 4096, 0))
        pid, host, since = holder["pid"], holder["host"], holder["since"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    if host == socket.gethostname() and not _is_alive(pid):
        return None
    return f"process {pid} on {host} since {since}"


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _check_name(path: Path) -> None:
    try:
        usable = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        usable = False
    if not usable:
        raise UserError(f"{shown(path)}: not a name that a folder can have; choose another")
