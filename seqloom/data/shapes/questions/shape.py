"""Questions on passages, and where in the passage the answer stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from seqloom.core.errors import UserError
from seqloom.core.progress import Reporter
from seqloom.core.task import Row
from seqloom.data.options import DataConfig
from seqloom.data.shapes.questions.reading import QuestionSource, open_asked, open_questions
from seqloom.data.shapes.questions.rows import QuestionRows
from seqloom.data.shapes.shape import Material
from seqloom.tokenizers import Tokenizer, train_tokenizer


class Questions(Material):
    def open(self, spec: str, data: DataConfig) -> QuestionSource:
        return open_questions(spec)

    def sources(self, spec: str, data: DataConfig) -> Iterator[Row]:
        return open_asked(spec)

    def make_tokenizer(self, config: Any, train: QuestionSource, known: Tokenizer | None = None) -> Tokenizer:
        c = config
        if known is not None:
            return known
        return train_tokenizer(c.tokenizer, train.texts(), size=c.vocabulary, min_count=c.min_count, split=c.split)

    def load_tokenizer(self, folder: Path) -> Tokenizer:
        return Tokenizer.load(folder)

    def prepare(
        self, part: QuestionSource, tokenizer: Tokenizer, talk: Reporter | None = None, name: str = ""
    ) -> QuestionRows:
        rows = QuestionRows(part.rows(), tokenizer, part)
        cut, answers = rows.cut()
        remarks = part.counts.remarks()
        if cut:
            remarks.append(f"{cut:,} of {answers:,} answers begin or end inside a token, and take the whole of it")
        if talk and remarks:
            talk.say(f"{name or part.name}: {'; '.join(remarks)}")
        return rows

    def check(self, rows: Mapping[str, QuestionRows], tokenizer: Tokenizer) -> None:
        counts = rows["train"].counts
        if counts[tokenizer.unk] > 0.5 * counts.sum():
            raise UserError(
                "more than half of the training part is unknown; raise task.vocabulary, lower task.min_count, or use "
                "task.tokenizer=bpe"
            )
        for part, asked in rows.items():
            if not len(asked):
                raise UserError(f"the {part} part has no questions")

    def describe(self, train: QuestionRows, tokenizer: Tokenizer) -> str:
        return f"{len(train):,} training questions on {train.passages:,} passages, vocabulary {tokenizer.size:,}"


MATERIAL = Questions()
