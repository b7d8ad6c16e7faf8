"""Retrievers by name: the entries of a comparison.

bm25             by words alone; needs no encoder
dense:ENCODER    by the vectors of an encoder alone
hybrid:ENCODER   by both, as `seqloom index` searches
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from seqloom.core.errors import UserError
from seqloom.retrieve.choosing import USUAL
from seqloom.retrieve.index import By
from seqloom.runs.source import cache_folder, is_foreign
from seqloom.weights.packages import is_installed

_KINDS: tuple[By, ...] = ("dense", "hybrid")  # that need an encoder
_WAYS = "bm25, dense:ENCODER or hybrid:ENCODER, where the encoder is weights:minilm, hf:PATH or a run"


@dataclass(frozen=True)
class Retriever:
    name: str
    by: By
    encoder: str | None = None  # None: bm25


BM25 = Retriever("bm25", "bm25")


def parse_retrievers(names: str | Sequence[str] | None) -> list[Retriever]:
    """BM25 is always among them, as what any encoder has to beat; None: also the usual encoder, if it is installed."""
    if names is None:
        usual = is_installed(USUAL.partition(":")[2], cache_folder())
        names = [f"{kind}:{USUAL}" for kind in _KINDS] if usual else []
    given = [name.strip() for name in (names.split(",") if isinstance(names, str) else names)]
    found = [_parse(name) for name in given]
    for one in found:
        if found.count(one) > 1:
            raise UserError(f"--models: {one.name} is given more than once; name each retriever once")
    return found if BM25 in found else [BM25, *found]


def _parse(name: str) -> Retriever:
    if name == BM25.name:
        return BM25
    kind, _, encoder = name.partition(":")
    for by in _KINDS:
        if kind == by and encoder:
            return Retriever(name, by, encoder)
        if kind == by:
            raise UserError(f"--models {name}: needs an encoder; write for example {by}:{USUAL}")
    if is_foreign(name):
        raise UserError(f"--models {name}: say how to search with it: dense:{name} or hybrid:{name}")
    raise UserError(f"--models {name or 'with an empty name'}: not a retriever; use {_WAYS}")


def folder_name(encoder: str | None) -> str:
    """Of the index of an encoder; two paths that end alike have different ones."""
    if encoder is None:
        return BM25.name
    plain = re.sub(r"[^\w.-]+", "-", encoder.rstrip("/").rpartition("/")[2]).strip("-.")
    if encoder.startswith("weights:"):
        return plain
    return f"{plain or 'run'}-{hashlib.sha256(encoder.encode()).hexdigest()[:8]}"
