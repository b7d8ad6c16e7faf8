"""The folder of a run, which holds everything about it.

    RUN/run.json            configuration, command, versions, hashes of the data
    RUN/metrics.jsonl       metrics during training, one JSON object per line
    RUN/checkpoints/        step-00001234/: everything needed to continue from that step, with a manifest
    RUN/model/              the trained model, with a manifest
    RUN/summary.json        final results; exists once the run is finished
    RUN/.lock               the process that is writing here

One process writes at a time. Nothing here imports torch.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from seqloom.core.errors import RunError, UserError
from seqloom.core.rows import Json
from seqloom.runs import durable, log
from seqloom.runs.durable import Content, Damaged, shown
from seqloom.runs.lock import locked
from seqloom.runs.settings import RunConfig

_STEP = re.compile(r"step-(\d{8,})")


class RunFolder:
    def __init__(self, path: Path) -> None:
        _check_name(path)
        self.path = path
        self._intact: set[int] = set()  # checkpoints written or verified by this process

    @classmethod
    def new(cls, root: Path, stem: str) -> RunFolder:
        """A new folder `root/stem-0001`, `-0002`, ...; concurrent callers each get their own."""
        _check_name(root / stem)
        if not stem or "/" in stem:
            raise UserError(f"{stem!r}: not a valid name for a run; it must not be empty or contain a slash")
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
        """Lock this folder for writing, creating it if needed; cleans up after a killed process."""
        with locked(self.path):
            for parent in (self.path, self._checkpoints):
                durable.sweep(parent)
            yield

    def write_record(self, record: Mapping[str, Any]) -> None:
        self._write_json("run.json", record)

    def record(self) -> Json:
        record = self._read_json("run.json")
        if record is None:
            raise UserError(f"{shown(self.path)}: not a run folder (no run.json); create one with seqloom fit")
        return record

    def config(self) -> RunConfig:
        """The configuration of the run."""
        try:
            return RunConfig.model_validate(self.record()["config"])
        except (KeyError, ValueError):
            raise UserError(f"{shown(self.path)}: run.json is invalid, or from another version of seqloom") from None

    def forget_summary(self) -> None:
        """Mark a finished run that continues as unfinished."""
        with durable.writing(self.path), suppress(FileNotFoundError):
            os.unlink(self.path / "summary.json")

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        self._write_json("summary.json", summary)

    def summary(self) -> Json | None:
        """The final results; None while the run is unfinished."""
        return self._read_json("summary.json")

    def log(self, entry: Mapping[str, Any]) -> None:
        log.append_line(self._metrics, entry)

    def metrics(self) -> list[Json]:
        return log.read_lines(self._metrics)

    def trim_metrics(self, step: int, validated: int | None = None) -> None:
        """Drop metrics after `step`, and validations after step `validated`, so that none appears twice when training
        resumes from there. A last step may be saved before its validation is."""
        if self._metrics.exists():
            validated = step if validated is None else validated
            kept = [e for e in self.metrics() if e.get("step", 0) <= (validated if "valid" in e else step)]
            durable.write_file(self._metrics, b"".join(durable.to_json(entry) + b"\n" for entry in kept))

    def save_checkpoint(
        self, step: int, files: Mapping[str, Content], keep: int, best: int | None, kept: Collection[int] = ()
    ) -> None:
        """Publish a checkpoint, then remove all but the latest `keep` intact ones, the best, and those of the steps
        `kept`."""
        log.sync_file(self._metrics)
        durable.publish(self._step_folder(step), files)
        self._intact.add(step)
        self._prune(max(1, keep), {best, *kept})

    def checkpoints(self) -> list[tuple[int, Path]]:
        """All checkpoints by step, latest first; not verified."""
        folders = durable.published(self._checkpoints).items()
        steps = [(int(match[1]), path) for name, path in folders if (match := _STEP.fullmatch(name))]
        return sorted(steps, reverse=True)

    def newest_whole(self, say: Callable[[str], None]) -> tuple[int, Path] | None:
        """The latest intact checkpoint; reports which ones were skipped, and why."""
        for step, path in self.checkpoints():
            try:
                durable.verify(path)
            except Damaged as damage:
                say(f"{damage}; skipping the checkpoint of step {step}")
                continue
            self._intact.add(step)
            return step, path
        return None

    def checkpoint(self, step: int) -> Path:
        return self._verified(self._step_folder(step))

    def publish(self, name: str, files: Mapping[str, Content]) -> None:
        """Publish a folder of the run with a manifest: `tokenizer`, `model`."""
        durable.publish(self.path / name, files)

    def published(self, name: str) -> Path:
        return self._verified(self.path / name)

    def publish_model(self, files: Mapping[str, Content]) -> None:
        self.publish("model", files)

    def model_files(self) -> Path:
        self.record()
        if not os.path.isdir(durable.locate(self.path / "model")):
            raise UserError(f"{shown(self.path)}: no trained model yet; run its fit command again to finish it")
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

    def _prune(self, keep: int, spared: Collection[int | None]) -> None:
        intact, excess = 0, []
        for step, path in self.checkpoints():
            if intact < keep:
                intact += self._is_intact(step, path)
            elif step not in spared:
                excess.append((step, path))
        for step, path in reversed(excess):
            durable.remove(path)
            self._intact.discard(step)

    def _is_intact(self, step: int, path: Path) -> bool:
        if step not in self._intact:
            try:
                durable.verify(path)
            except Damaged:
                return False
            self._intact.add(step)
        return True

    def _write_json(self, name: str, value: Mapping[str, Any]) -> None:
        text = json.dumps(json.loads(durable.to_json(value)), indent=1, ensure_ascii=False)
        durable.write_file(self.path / name, text.encode("utf-8", "backslashreplace") + b"\n")

    def _read_json(self, name: str) -> Json | None:
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
            raise Damaged(f"{shown(path)}: not a valid JSON object; restore the file, or start a new run")
        return value


def _check_name(path: Path) -> None:
    try:
        usable = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        usable = False
    if not usable:
        raise UserError(f"{shown(path)}: not a valid folder name; choose another")
