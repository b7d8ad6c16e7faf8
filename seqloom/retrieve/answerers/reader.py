"""A question answering run as a reader: the span of the passages that answers a question."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seqloom.core.errors import UserError
from seqloom.retrieve.document import Passage

if TYPE_CHECKING:
    from seqloom.runs.run import Run

TASK = "question_answering"


class Reader:
    def __init__(self, run: Run) -> None:
        self._run = run

    @classmethod
    def load(cls, name: str | Path) -> Reader:
        from seqloom.runs.run import load
        from seqloom.runs.source import run_folder

        run = load(run_folder(name))
        if run.task.name != TASK:
            raise UserError(f"--reader {name}: a {run.task.name} run; train one: seqloom fit --task {TASK} --data DATA")
        return cls(run)

    def find(self, question: str, passages: Sequence[Passage]) -> tuple[str, int, int] | None:
        """Its file and offsets; None: it finds no answer."""
        rows = [
            {"line": n, "question": question, "context": passage.chunk.text} for n, passage in enumerate(passages, 1)
        ]
        read = self._run.task.predict(self._run.model, rows, n_best=0)
        found = [(one, passage.chunk) for one, passage in zip(read, passages, strict=True) if one["answer"]]
        if not found:
            return None
        best, chunk = max(found, key=lambda pair: pair[0]["score"])
        return chunk.path, chunk.start + best["start"], chunk.start + best["end"]
