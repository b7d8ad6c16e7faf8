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

from seqloom.core.errors import UserError
from seqloom.core.json_text import to_json
from seqloom.core.rows import Json
from seqloom.core.version import VERSION
from seqloom.runs import durable, log, schema
from seqloom.runs.durable import MANIFEST, Content, Damaged, shown
from seqloom.runs.kept import check_own
from seqloom.runs.lock import locked
from seqloom.runs.regular import read_regular
from seqloom.runs.settings import FREE, RunConfig

_STEP = re.compile(r"step-(\d{8,})")
_MOST = 64 << 20  # bytes of run.json or summary.json
AGAIN = "run the command that made this run again"
_WAYS_OUT = {
    "run.json": f"restore the file, or delete it and {AGAIN}",
    "summary.json": f"{AGAIN}, which writes it anew",
}


class _Unreadable(Damaged):
    """run.json or summary.json alone is damaged."""


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
    def lock(self, own: str = "") -> Iterator[None]:
        """Lock this folder for writing, creating it if needed; cleans up after a killed process. `own`: the file that
        is written there, to refuse the folder of something else."""
        if own:
            check_own(self.path, own)
        with locked(self.path):
            for parent in (self.path, self._checkpoints):
                durable.sweep(parent)
            yield

    def write_record(self, record: Mapping[str, Any]) -> None:
        known = None
        with suppress(Damaged):  # it is replaced
            known = self.identity
        self._write_json("run.json", record, run=known or _identify(record))

    def record(self) -> Json:
        """What run.json says of the run."""
        record, own = self._read_json("run.json")
        if record is None and os.path.isdir(self.path / "model"):
            raise Damaged(f"{shown(self.path / 'run.json')}: missing", f"restore it, or {AGAIN}")
        if record is None:
            raise UserError(f"{shown(self.path)}: not a run folder (no run.json); create one with seqloom fit")
        with suppress(_Unreadable):
            _, seal = self._read_json("summary.json")
            if seal and seal.run != (own.run if own else None):
                fault = f"{shown(self.path / 'run.json')}: edited, or that of another run than summary.json is of"
                raise Damaged(fault, f"restore it, or delete {shown(self.path)} and {AGAIN}")
        return record

    @property
    def identity(self) -> str | None:
        """The same for runs that differ at most in their budget; None if an earlier version wrote run.json."""
        _, seal = self._read_json("run.json")
        return seal.run if seal else None

    def config(self) -> RunConfig:
        """The configuration of the run."""
        record = self.record()
        try:
            return RunConfig.model_validate(record["config"])
        except (KeyError, ValueError) as error:
            fault, written = schema.mistake(error), record.get("versions", {}).get("seqloom", VERSION)
            by = "" if written == VERSION else f" (written by seqloom {written}, this is {VERSION})"
            raise UserError(f"{shown(self.path / 'run.json')}: config.{fault}{by}; {_WAYS_OUT['run.json']}") from None

    def forget_summary(self) -> None:
        """Mark a finished run that continues as unfinished."""
        with durable.writing(self.path / "summary.json"), suppress(FileNotFoundError):
            os.unlink(self.path / "summary.json")

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """After everything else, because it marks the end and says which model and log the results are of."""
        belongs = {"run": self.identity, "model": self._model_digest(), "metrics": log.digest(self._metrics)}
        self._write_json("summary.json", summary, **belongs)

    def summary(self) -> Json | None:
        """The final results; None while the run is unfinished."""
        summary, seal = self._read_json("summary.json")
        if summary is not None and seal is None and self.identity:
            raise _Unreadable(f"{shown(self.path / 'summary.json')}: edited", _WAYS_OUT["summary.json"])
        return summary

    def is_whole(self) -> bool:
        """Whether the run is finished and its files are as they were left."""
        try:
            return self.summary() is not None and bool(self.model_files())
        except UserError:
            return False

    def remarks(self) -> list[str]:
        """On what is damaged in a finished run, but not needed to use it."""
        _, seal = self._read_json("summary.json")
        found = []
        if seal and seal.metrics != log.digest(self._metrics):
            name = shown(self._metrics)
            found.append(f"{name}: not as training left it; for a new one delete {shown(self.path)} and {AGAIN}")
        for _, path in self.checkpoints():
            try:
                durable.verify(path)
            except Damaged as damage:
                found.append(f"{damage.fault}; only needed to train further: delete {shown(path)}")
        return found

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
            durable.write_file(self._metrics, b"".join(to_json(entry) + b"\n" for entry in kept))

    def save_checkpoint(
        self, step: int, files: Mapping[str, Content], keep: int, best: int | None, kept: Collection[int] = ()
    ) -> None:
        """Publish a checkpoint, then remove those that are no longer kept."""
        log.sync_file(self._metrics)
        durable.publish(self._step_folder(step), files)
        self._intact.add(step)
        self.prune(keep, best, kept)

    def prune(self, keep: int, best: int | None, kept: Collection[int] = ()) -> None:
        """Remove all checkpoints but the latest `keep` intact ones, the best, and those of the steps `kept`."""
        intact, excess = 0, []
        for step, path in self.checkpoints():
            if intact < max(1, keep):
                intact += self._is_intact(step, path)
            elif step not in {best, *kept}:
                excess.append((step, path))
        for step, path in reversed(excess):
            durable.remove(path)
            self._intact.discard(step)

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
        """The folder of the trained model, verified."""
        self.record()
        if not os.path.isdir(durable.locate(self.path / "model")):
            raise UserError(f"{shown(self.path)}: no trained model yet; run its fit command again to finish it")
        self.summary()
        _, seal = self._read_json("summary.json")
        if seal and seal.model != self._model_digest():
            raise Damaged(f"{shown(self.path / 'model')}: not the model that summary.json has the results of", AGAIN)
        return self._verified(self.path / "model")

    def naive(self) -> Json | None:
        """Statistics of the training set, for the naive baselines; None if the weights came from elsewhere."""
        path = self.model_files() / "naive.json"
        try:
            data = read_regular(path, _MOST)
            return None if data.strip() == b"null" else schema.parse(data)
        except OSError as error:
            raise Damaged(f"cannot read {shown(path)}: {durable.reason(error)}", AGAIN) from error
        except ValueError as error:
            raise Damaged(f"{shown(path)}: {error}", AGAIN) from None

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
        try:
            durable.verify(place)
        except Damaged as damage:
            raise Damaged(damage.fault, AGAIN) from None
        return place

    def _model_digest(self) -> str | None:
        """Of its manifest, which has the digests of all files."""
        return log.digest(durable.locate(self.path / "model") / MANIFEST)

    def _is_intact(self, step: int, path: Path) -> bool:
        if step not in self._intact:
            try:
                durable.verify(path)
            except Damaged:
                return False
            self._intact.add(step)
        return True

    def _write_json(self, name: str, value: Mapping[str, Any], **belongs: str | None) -> None:
        whole = schema.sealed(json.loads(to_json(value)), **belongs)
        text = json.dumps(whole, indent=1, ensure_ascii=False)
        durable.write_file(self.path / name, text.encode("utf-8", "backslashreplace") + b"\n")

    def _read_json(self, name: str) -> tuple[Json | None, schema.Seal | None]:
        """Its content without the seal, and the seal; nothing if there is no such file."""
        path = self.path / name
        try:
            return schema.opened(name, read_regular(path, _MOST))
        except (FileNotFoundError, NotADirectoryError):
            return None, None
        except OSError as error:
            raise _Unreadable(f"cannot read {shown(path)}: {durable.reason(error)}", _WAYS_OUT[name]) from error
        except ValueError as error:
            raise _Unreadable(f"{shown(path)}: {error}", _WAYS_OUT[name]) from None


def _identify(record: Mapping[str, Any]) -> str | None:
    """A digest of the settings but for the budget, of the data and of the tokenizer."""
    config, data = record.get("config"), record.get("data", {})
    if config is None:
        return None
    train = {name: value for name, value in config.get("train", {}).items() if name not in FREE}
    parts = {name: part["hash"] for name, part in data.items()}
    facts = {"config": config | {"train": train}, "data": parts, "tokenizer": record.get("tokenizer", {})}
    return schema.digest(json.loads(to_json(facts)))


def _check_name(path: Path) -> None:
    try:
        usable = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        usable = False
    if not usable:
        raise UserError(f"{shown(path)}: not a valid folder name; choose another")
