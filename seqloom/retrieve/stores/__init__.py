"""Stores by name: `edge` is inside the index; a server is named by its address.

edge                                       inside the index folder
qdrant:http://HOST:6333/COLLECTION         a Qdrant server or cluster; its key in QDRANT_API_KEY
postgresql://USER@HOST/DATABASE#TABLE      Postgres with pgvector; its password in PGPASSWORD or .pgpass
"""

from __future__ import annotations

from pathlib import Path

from seqloom.core.errors import UserError
from seqloom.retrieve.stores.store import Store


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
        f"store {name!r}: not known; use edge, qdrant:http://HOST:6333/COLLECTION or postgresql://...#TABLE"
    )
