"""How an index follows its folder: read what is new or changed, index it, delete what is gone.

Every step is safe to interrupt. Whatever a killed process left behind, the next one sees in the catalogue and does
again or undoes, so that the index becomes what it would have become without the interruption.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from seqloom.core.errors import UserError
from seqloom.core.progress import Reporter
from seqloom.retrieve.catalogue import DOOMED, Catalogue, Entry, File, Kept, State
from seqloom.retrieve.chunking import chunks
from seqloom.retrieve.document import Chunk, Document
from seqloom.retrieve.reading import files, largest, read
from seqloom.retrieve.reading.folder import UNREADABLE
from seqloom.retrieve.reading.limits import too_large
from seqloom.retrieve.settings import Settings
from seqloom.retrieve.stored import document_hash
from seqloom.retrieve.stores.store import Point, Store
from seqloom.retrieve.terms import counts, length, weigh
from seqloom.runs.durable import shown

if TYPE_CHECKING:
    from seqloom.retrieve.encoder import Encoder

_READ = 500  # documents of a file that are staged in one transaction
_CHUNKS = 4000  # that are acknowledged at once
_ENCODED = 256  # the same, when each has to be encoded
_DELETED = 5000
_RACE = 2_000_000_000  # nanoseconds: a file changed this shortly before it was read may change again unnoticed


@dataclass
class Changes:
    """What an update did."""

    added: int = 0  # documents, new or changed
    removed: int = 0  # documents, gone or changed
    chunks: int = 0  # that were indexed
    unchanged: int = 0  # files
    skipped: dict[str, str] = field(default_factory=dict)  # files that could not be read, and why
    notes: dict[str, str] = field(default_factory=dict)  # what could not be read of others
    ignored: dict[str, int] = field(default_factory=dict)  # files of other kinds, by suffix
    seconds: float = 0.0


class Writer:
    def __init__(
        self, catalogue: Catalogue, store: Store, settings: Settings, encoder: Encoder | None, report: Reporter
    ) -> None:
        self.catalogue, self.store, self.settings = catalogue, store, settings
        self.encoder, self.report, self.changes = encoder, report, Changes()

    def update(self, own: Path) -> Changes:
        """`own`: the folder of the index, which is not indexed itself."""
        started = time.perf_counter()
        self._read(own)
        if self.catalogue.fact("average") is None and (mean := self.catalogue.mean_length()):
            with self.catalogue.transaction():
                self.catalogue.set_fact("average", mean)
        self._index()
        self._delete()
        if self.changes.added or self.changes.removed:
            self.store.tidy()
        self.changes.seconds = time.perf_counter() - started
        return self.changes

    # reading

    def _read(self, own: Path) -> None:
        folder, ignored = Path(self.settings.source), Counter[str]()
        inside = os.path.realpath(own)
        present = [
            (path, name) for path, name in files(folder, ignored) if not os.path.realpath(path).startswith(inside + "/")
        ]
        if not present:
            raise UserError(f"{shown(folder)}: no files in it that can be read; choose another folder")
        self.changes.ignored = dict(sorted(ignored.items()))
        known, total = self.catalogue.files(), len(present)
        with self.catalogue.together():
            for number, (path, name) in enumerate(present):
                self.report.update(number / total, {"doing": f"reading {number:,} of {total:,} files"})
                self._read_file(path, name, known.get(name))
        gone = known.keys() - {name for _, name in present}
        if ignored[UNREADABLE]:  # what is in there may be back next time
            gone = set()
        with self.catalogue.transaction():
            for name in sorted(gone):
                self.catalogue.forget_file(name)

    def _read_file(self, path: Path, name: str, before: File | None) -> None:
        try:
            facts = os.stat(path)
            if before and not before.skipped and (facts.st_size, facts.st_mtime_ns) == (before.size, before.modified):
                self._same(before)
                return
            if facts.st_size > (most := largest(path)):
                self._skip(File(name, facts.st_size, 0, b"", _reason(too_large(path, most), path)))
                return
            modified = facts.st_mtime_ns if time.time_ns() - facts.st_mtime_ns > _RACE else 0
            with open(path, "rb") as file:
                digest = hashlib.file_digest(file, "sha256").digest()
        except OSError as error:
            self._skip(File(name, 0, 0, b"", error.strerror or str(error)))
            return
        now = File(name, facts.st_size, modified, digest)
        if before and not before.skipped and before.sha256 == digest:
            with self.catalogue.transaction():
                self.catalogue.write_file(now._replace(notes=before.notes))
            self._same(before)
            return
        try:
            self._stage(path, now)
        except UserError as error:
            self._skip(now._replace(skipped=_reason(error, path)))

    def _same(self, file: File) -> None:
        self.changes.unchanged += 1
        if file.notes:
            self.changes.notes[file.name] = file.notes

    def _stage(self, path: Path, file: File) -> None:
        """Documents that did not change stay; the file is known once the last one is read."""
        old, notes = self.catalogue.documents_of(file.name), list[str]()
        documents = read(path, file.name, self.settings.columns or None)
        while part := list(islice(documents, _READ)):
            fresh, again = [], []
            for document in part:
                notes += document.notes
                sha256 = document_hash(document)
                id, state = old.pop((document.path, sha256), (None, State.staged))
                if id is None:
                    fresh.append(self._entry(document, sha256))
                elif state in DOOMED:
                    again.append(id)
            with self.catalogue.transaction():
                self.catalogue.stage(file.name, fresh)
                self.catalogue.stage_again(again)
        with self.catalogue.transaction():
            self.catalogue.dismiss(id for id, _ in old.values())
            self.catalogue.write_file(file._replace(notes="; ".join(notes)))
        if notes:
            self.changes.notes[file.name] = "; ".join(notes)

    def _entry(self, document: Document, sha256: bytes) -> Entry:
        parts = chunks(document, size=self.settings.size, overlap=self.settings.overlap)
        return Entry(document, sha256, parts, [length(indexed_text(part)) for part in parts])

    def _skip(self, file: File) -> None:
        """What was indexed of it before leaves: it is no longer what stands in the file."""
        with self.catalogue.transaction():
            self.catalogue.forget_file(file.name)
            self.catalogue.write_file(file)
        self.changes.skipped[file.name] = file.skipped or ""

    # indexing and deleting

    def _index(self) -> None:
        _, total = self.catalogue.tally([State.staged])
        average, size = float(self.catalogue.fact("average") or 1.0), _ENCODED if self.encoder else _CHUNKS
        for batch in self._batches([State.staged], size):
            texts = [indexed_text(chunk) for kept in batch for chunk in kept.chunks]
            found = [counts(text) for text in texts]
            vectors: Sequence[np.ndarray | None] = [None] * len(texts)
            if self.encoder is not None:
                vectors = list(self.encoder.encode(texts))
            ids = [id for kept in batch for id in kept.ids]
            parts = zip(ids, found, vectors, strict=True)
            self.store.upsert([Point(id, weigh(one, average), vector) for id, one, vector in parts])
            self.store.flush()
            with self.catalogue.transaction():
                self.catalogue.acknowledge(batch, _in_how_many(batch, found, counted=False))
            self.changes.added += len(batch)
            self.changes.chunks += len(ids)
            doing = f"indexed {self.changes.chunks:,} of {total:,} chunks"
            self.report.update(self.changes.chunks / max(1, total), {"doing": doing})

    def _delete(self) -> None:
        for batch in self._batches(DOOMED, _DELETED):
            self.store.delete([id for kept in batch for id in kept.ids])
            self.store.flush()
            found = [counts(indexed_text(chunk)) for kept in batch for chunk in kept.chunks]
            with self.catalogue.transaction():
                self.catalogue.forget(batch, _in_how_many(batch, found, counted=True))
            self.changes.removed += sum(kept.counted for kept in batch)

    def _batches(self, states: Sequence[State], size: int) -> Iterator[list[Kept]]:
        while batch := self.catalogue.to_do(states, size):
            yield batch


def indexed_text(chunk: Chunk) -> str:
    """What a chunk is found by: its text, after the headings that it stands under and does not begin with itself."""
    above = [heading for heading in chunk.headings if not chunk.text.startswith(heading)]
    return "\n".join([*above, chunk.text])


def _in_how_many(batch: Sequence[Kept], found: Sequence[Mapping[int, int]], *, counted: bool) -> Counter[int]:
    """The number of chunks with each term; `found`: the terms of all chunks of the batch, `counted`: of which documents
    they are taken."""
    tally: Counter[int] = Counter()
    wanted = [kept.counted == counted for kept in batch for _ in kept.ids]
    for one, take in zip(found, wanted, strict=True):
        if take:
            tally.update(one.keys())
    return tally


def _reason(error: UserError, path: Path) -> str:
    """Without the path, which stands beside it; its line in words."""
    said = str(error).removeprefix(f"{path}: ")
    return re.sub(rf"^{re.escape(str(path))}:(?=\d+: )", "line ", said)
