"""An answer with what it takes to show it."""

from __future__ import annotations

from dataclasses import dataclass, field

from seqloom.retrieve.document import Answer, Document


@dataclass(frozen=True)
class Reply(Answer):
    answerer: str = "extractive"
    encoder: str = ""  # name of the encoder; empty: BM25 alone
    best: dict[str, float] = field(default_factory=dict)  # how near the passages come to the question
    documents: dict[str, Document] = field(default_factory=dict, repr=False)  # of the passages, by path
    changed: dict[str, str] = field(default_factory=dict)  # files of quotations that are not as indexed: changed, gone
