"""Who writes the answer from the passages that were found: one file of this folder for each.

extractive          the best sentences of the passages, word for word; needs no language model
RUN, weights:, hf:  a language model that runs here
openai:URL#MODEL    a chat endpoint, which is sent the question and the passages
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from seqloom.core.errors import UserError
from seqloom.decode.endpoint import SCHEME, Endpoint
from seqloom.retrieve.answerers.extractive import Extractive
from seqloom.retrieve.answerers.reader import Reader
from seqloom.retrieve.answerers.written import Written, by_endpoint, by_run
from seqloom.retrieve.document import Document, Passage, Sentence
from seqloom.retrieve.relevance import Similarity
from seqloom.runs.source import is_foreign


class Answerer(Protocol):
    name: str

    def answer(self, question: str, passages: Sequence[Passage], documents: dict[str, Document]) -> list[Sentence]:
        """The sentences of the answer, in order; none if the passages do not have one."""


def find_answerer(name: str, similarity: Similarity | None, reader: str | None = None) -> Answerer:
    """`similarity`: by the encoder, where there is one; `reader`: a question answering run."""
    if reader is not None and name != Extractive.name:
        raise UserError(f"--reader: goes with the extractive answerer, not with {name}; leave one of them out")
    if name == Extractive.name:
        return Extractive(similarity, Reader.load(reader) if reader is not None else None)
    if name.startswith(SCHEME):
        return Written(name, by_endpoint(Endpoint.parse(name)), similarity)
    if not is_foreign(name) and not Path(name).is_dir():
        known = f"{Extractive.name}, a run folder, weights:smollm2, hf:PATH or {SCHEME}URL#MODEL"
        raise UserError(f"--answerer {name}: no such run; give {known}")
    return Written(name, by_run(name), similarity)
