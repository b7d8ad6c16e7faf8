"""An index: the passages of a folder of documents, found by words (BM25) and by meaning (vectors of an encoder).

INDEX/index.json         what it was made with
INDEX/catalogue.sqlite   files, documents, chunks: the record of what is acknowledged
INDEX/store/             the points that are searched
INDEX/.lock              the process that is writing here
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from seqloom.core.errors import RunError, UserError, unknown
from seqloom.core.progress import Reporter, Silent
from seqloom.retrieve.catalogue import DOOMED, Catalogue, State
from seqloom.retrieve.chunking import SIZE
from seqloom.retrieve.document import Document, Passage
from seqloom.retrieve.reading import files
from seqloom.retrieve.reading.table import ROLES
from seqloom.retrieve.search import DEPTH, fuse, inverse_frequencies
from seqloom.retrieve.settings import NAME, EncoderFacts, Settings
from seqloom.retrieve.stores import named_store, open_store
from seqloom.retrieve.stores.store import Hit, Store, without_password
from seqloom.retrieve.terms import question
from seqloom.retrieve.writing import Changes, Writer
from seqloom.runs import durable
from seqloom.runs.durable import Damaged, shown
from seqloom.runs.lock import locked

if TYPE_CHECKING:
    from seqloom.retrieve.encoder import Encoder

By = Literal["hybrid", "bm25", "dense"]
_CATALOGUE, _STORE = "catalogue.sqlite", "store"


class Index:
    """An index that is open; only one process can have it open. Close it, or use it in a `with` statement."""

    def __init__(self, path: Path, settings: Settings, catalogue: Catalogue, store: Store) -> None:
        self.path, self.settings, self._catalogue, self._store = path, settings, catalogue, store
        self._encoder: Encoder | None = None
        self._changed: dict[str, str] = {}
        self.changes = Changes()  # of the last update

    @classmethod
    def open(cls, path: str | Path) -> Index:
        path = Path(path)
        settings = Settings.read(path)
        if not os.access(path, os.W_OK):
            way = "copy it to a folder that you can write to"
            raise UserError(f"{shown(path)}: read-only, and opening an index needs write permission; {way}")
        if not (path / _CATALOGUE).exists():
            raise UserError(f"{shown(path)}: its indexing was interrupted before it began; run the same command again")
        return cls(path, settings, *_parts(path, settings))

    @property
    def encoder(self) -> Encoder | None:
        """Loaded when it is first needed; None: BM25 alone."""
        facts = self.settings.encoder
        if facts is not None and self._encoder is None:
            from seqloom.retrieve.encoder import load_encoder

            found = load_encoder(facts.name)
            if found.sha256 != facts.sha256:
                raise UserError(
                    f"{shown(self.path)}: made with other weights than those in {facts.name} (SHA-256 was "
                    f"{facts.sha256[:12]}, is {found.sha256[:12]}); restore them, or index into a new folder"
                )
            self._encoder = found
        return self._encoder

    def update(self, progress: Reporter | None = None) -> Changes:
        """Follow the folder: index what is new or changed, delete what is gone. Continues where a killed one ended."""
        with locked(self.path):
            self.changes = self._write(progress)
        self._changed.clear()
        return self.changes

    def search(self, query: str, k: int = 10, *, by: By = "hybrid") -> list[Passage]:
        """The best `k` chunks, the best first. `by`: one of the two rankings alone."""
        if by == "dense" and self.settings.encoder is None:
            raise UserError(f"{shown(self.path)}: made without an encoder, so it has no vectors; search by bm25")
        depth = max(k, DEPTH)
        by_terms = self._by_terms(query, depth) if by != "dense" else []
        by_vector = self._by_vector(query, depth) if by != "bm25" else []
        ranked = fuse(by_terms, by_vector) if by == "hybrid" and by_vector else by_terms or by_vector
        parts = {"bm25": dict(by_terms), "dense": dict(by_vector)}
        found: list[Passage] = []
        for first in range(0, len(ranked), max(1, k)):  # more than once only after an interrupted update
            if len(found) >= k:
                break
            some = ranked[first : first + k]
            chunks = self._catalogue.found([hit.id for hit in some])
            for id, score in some:
                if id in chunks:
                    found.append(Passage(chunks[id], score, {name: p[id] for name, p in parts.items() if id in p}))
        if not found and not self._catalogue.points:
            way = f"seqloom index FOLDER --out {shown(self.path)}"
            raise UserError(f"{shown(self.path)}: has no documents; index files that can be read: {way}")
        return found[:k]

    def document(self, path: str) -> Document:
        """A document as it was indexed."""
        found = self._catalogue.document(path)
        if found is None:
            raise UserError(f"{shown(self.path)}: has no document {path!r}")
        return found

    def changed(self, path: str) -> str:
        """What has become of a document's file since it was indexed: `changed`, `gone`, or nothing."""
        if path not in self._changed:
            self._changed[path] = self._compared(path)
        return self._changed[path]

    def paths(self) -> list[str]:
        """Of all documents."""
        return self._catalogue.paths()

    def keys(self) -> dict[str, str]:
        """The id that a table gives to a row, by the path of its document."""
        return self._catalogue.keys()

    def counts(self) -> dict[str, int]:
        documents, chunks = self._catalogue.tally([State.live, State.leaving])
        skipped = sum(file.skipped is not None for file in self._catalogue.files().values())
        return {"documents": documents, "chunks": chunks, "skipped": skipped}

    def close(self) -> None:
        self._store.close()
        self._catalogue.close()

    def __enter__(self) -> Index:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        counts, encoder = self.counts(), self.settings.encoder
        how = f"BM25 and {encoder.name}" if encoder else "BM25 alone"
        return f"{self.path}: {counts['documents']:,} documents, {counts['chunks']:,} chunks, {how}"

    def _by_terms(self, query: str, depth: int) -> list[Hit]:
        asked = question(query)
        frequencies = self._catalogue.frequencies(asked.ids.tolist())
        return self._store.by_terms(inverse_frequencies(asked, frequencies, self._catalogue.points), depth)

    def _by_vector(self, query: str, depth: int) -> list[Hit]:
        encoder = self.encoder
        if encoder is None:
            return []
        (vector,) = encoder.encode([query])
        return self._store.by_vector(vector, depth)

    def _compared(self, path: str) -> str:
        source, file = Path(self.settings.source), self._catalogue.file_of(path)
        if file is None:
            return ""
        try:
            place = source / file.name if source.is_dir() else source
            facts = os.stat(place)
            if (facts.st_size, facts.st_mtime_ns) == (file.size, file.modified):
                return ""
            if facts.st_size != file.size:
                return "changed"
            with open(place, "rb") as opened:
                return "" if hashlib.file_digest(opened, "sha256").digest() == file.sha256 else "changed"
        except OSError:
            return "gone"

    def _write(self, progress: Reporter | None) -> Changes:
        report = progress or Silent()
        try:
            return Writer(self._catalogue, self._store, self.settings, self.encoder, report).update(self.path)
        finally:
            report.close()


def index(
    folder: str | Path,
    out: str | Path,
    *,
    encoder: str | Path | None = None,
    store: str | None = None,
    size: int = SIZE,
    overlap: int = 0,
    columns: Mapping[str, str] | None = None,
    progress: Reporter | None = None,
) -> Index:
    """Index a folder of documents, or bring its index up to date; `Index.changes` says what was done.

    `encoder`: weights:minilm, hf:PATH or a run; None: BM25 alone. `store`: edge, or the address of a server (see
    `seqloom.retrieve.stores`). `size`: of chunks, in tokens; `overlap`: sentences that neighbouring chunks share.
    `columns`: which columns of tables are `text` and `title`. An index that exists keeps its store and its columns.
    """
    path, loaded = Path(out), None
    _check_source(Path(folder))
    for role in (columns or {}).keys() - set(ROLES):
        raise unknown("role of a column", role, ROLES)
    made = Settings.read(path) if (path / NAME).exists() else None
    if made is None:
        _check_empty(path)
    address = named_store(store, made.store if made else None)
    wanted = Settings(
        source=os.path.abspath(folder), store=without_password(address), size=size, overlap=overlap,
        columns=dict(made.columns if made and columns is None else columns or {}),
    )  # fmt: skip
    if encoder is not None:
        from seqloom.retrieve.encoder import load_encoder

        loaded = load_encoder(encoder)
        wanted.encoder = EncoderFacts(name=loaded.name, sha256=loaded.sha256, width=loaded.width)
    with locked(path):
        durable.sweep(path)
        found = Index(path, wanted, *_settled(path, wanted, address))
        found._encoder = loaded
        try:
            found.changes = found._write(progress)
        except BaseException:
            found.close()
            raise
    return found


def _check_source(folder: Path) -> None:
    """Refuse what has nothing to index, before an index is made of it."""
    if not folder.exists():
        raise UserError(f"{shown(folder)}: no such folder")
    ignored: Counter[str] = Counter()
    if next(files(folder, ignored), None) is None:
        others = f" ({', '.join(f'{kind} {count:,}' for kind, count in ignored.items())})" if ignored else ""
        raise UserError(f"{shown(folder)}: no files in it that can be read{others}; choose another folder")


def _check_empty(path: Path) -> None:
    if path.is_dir() and any(not name.startswith((".lock", ".seqloom-")) for name in os.listdir(path)):
        raise UserError(f"{shown(path)}: not empty, and not an index; choose another folder")


def _settled(path: Path, wanted: Settings, store: str) -> tuple[Catalogue, Store]:
    """The parts of a new index, whose settings are written, or of an old one, which must have the same."""
    if (path / NAME).exists():
        made = Settings.read(path)
        made.check(path, wanted)
        if made.source != wanted.source:
            wanted.write(path)
        return _parts(path, wanted, store)
    _check_empty(path)
    wanted.write(path)
    try:
        return _parts(path, wanted, store)
    except UserError:  # such as a server that is not there: the next command may name another one
        for name in (NAME, _CATALOGUE):
            (path / name).unlink(missing_ok=True)
        for name in (_STORE, f"{_STORE}.new"):
            shutil.rmtree(path / name, ignore_errors=True)
        raise


def _parts(path: Path, settings: Settings, store: str = "") -> tuple[Catalogue, Store]:
    """`store`: with a password that is not written down."""
    _check_files(path)
    catalogue = Catalogue(path / _CATALOGUE)
    try:
        width = settings.encoder.width if settings.encoder else None
        opened = open_store(store or settings.store, path / _STORE, width)
    except BaseException:
        catalogue.close()
        raise
    try:
        _check_points(path, settings, catalogue, opened.count())
    except BaseException:
        opened.close()
        catalogue.close()
        raise
    return catalogue, opened


def _check_files(path: Path) -> None:
    """A pipe in the place of a file would block whoever opens it, and a device never ends."""
    for parent, _, names in os.walk(path):
        for name in names:
            place = os.path.join(parent, name)
            with suppress(FileNotFoundError):
                if not stat.S_ISREG(os.stat(place).st_mode):
                    raise Damaged(f"{shown(place)}: not a regular file", "restore it, or index into a new folder")


def _check_points(path: Path, settings: Settings, catalogue: Catalogue, count: int) -> None:
    _, deleting = catalogue.tally(DOOMED)  # perhaps gone from the store already
    missing = catalogue.points - deleting - count
    if missing > 0:
        raise RunError(f"{shown(path)}: its store lacks {missing:,} chunks; restore it, or index into a new folder")
    if count and not catalogue.tally(list(State))[0] and settings.store != "edge":
        way = "give a name of its own after the address"
        raise UserError(f"store {settings.store}: has {count:,} chunks of another index; {way}")
