"""Stores by name: `edge` is inside the index; a server is named by its address.

edge                                       inside the index folder
qdrant:http://HOST:6333/COLLECTION         a Qdrant server or cluster; its key in QDRANT_API_KEY
postgresql://USER@HOST/DATABASE#TABLE      Postgres with pgvector; its password in PGPASSWORD or .pgpass

Without a TABLE, every index gets one of its own.
"""

from __future__ import annotations

import re
from pathlib import Path
from uuid import uuid4

from seqloom.core.errors import UserError
from seqloom.retrieve.stores.store import Store, without_password


def named_store(given: str | None, kept: str | None) -> str:
    """The store of an index; `given`: by the user, `kept`: that of an index that exists, without a password."""
    if given is None:
        return kept or "edge"
    if not given.startswith(("postgres:", "postgresql:")):
        return given
    address, hash, table = re.sub("^postgres:(?=postgres)", "", given).partition("#")
    if not address.startswith(("postgres://", "postgresql://")):
        raise UserError(f"store {given}: not an address; use postgresql://USER@HOST/DATABASE")
    if hash:
        return f"{address}#{table}"
    same = kept is not None and kept.partition("#")[0] == without_password(address)
    return f"{address}#{kept.partition('#')[2] if kept and same else f'seqloom_{uuid4().hex[:8]}'}"


def open_store(name: str, folder: Path, width: int | None) -> Store:
    """The store of an index; `folder`: where one inside the index lives; `width`: of the vectors, None: there are
    none."""
    if name == "edge":
        from seqloom.retrieve.stores.edge import EdgeStore

        return EdgeStore(folder, width)
    if name.startswith("qdrant:"):
        from seqloom.retrieve.stores.qdrant import QdrantStore

        return QdrantStore.at(name.removeprefix("qdrant:"), width)
    if name.startswith(("postgresql:", "postgres:")):
        from seqloom.retrieve.stores.postgres import PostgresStore

        return PostgresStore.at(name, width)
    raise UserError(
        f"store {name!r}: not known; use edge, qdrant:http://HOST:6333/COLLECTION or postgresql://USER@HOST/DATABASE"
    )
