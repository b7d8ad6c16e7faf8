"""Questions about passages, with the position of the answer in the passage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import Field

from seqloom.core.choice import Choice
from seqloom.core.errors import UserError
from seqloom.core.progress import Reporter
from seqloom.core.rows import Row
from seqloom.data.files import suffix
from seqloom.data.findings import Finding
from seqloom.data.options import DataOptions
from seqloom.data.rows import Rows as TableRows
from seqloom.data.rows import read_jsonl
from seqloom.data.shapes.questions.doctor import examine_questions
from seqloom.data.shapes.questions.reading import LINES, NO_ANSWER, Names, QuestionSource, open_asked, open_questions
from seqloom.data.shapes.questions.roles import question_roles
from seqloom.data.shapes.questions.rows import QuestionRows
from seqloom.data.shapes.shape import RowShape, fitted, mostly_unknown, unknown_among
from seqloom.data.survey import survey_texts
from seqloom.tokenizers import Tokenizer
from seqloom.tokenizers.options import Kind, TokenizerOptions

_SURVEYED = 2000  # passages and questions that show the script


class Options(DataOptions):
    """SQuAD JSON has fixed names; those of JSONL may differ."""

    roles = {"question": "question", "passage": "context", "answers": "answers"}

    context: str = Field("context", min_length=1, description="passage column of JSONL files")
    question: str = Field("question", min_length=1, description="question column of JSONL files")
    answers: str = Field("answers", min_length=1, description="column of the answers in JSONL files")

    @property
    def names(self) -> Names:
        return Names(self.context, self.question, self.answers)


class QuestionTokenizerOptions(TokenizerOptions):
    kind: Kind = Field("bpe", description="what a token is")
    vocabulary: int = Field(8000, ge=2, le=10**7, description="maximum vocabulary size of words and bpe")


class Questions(RowShape[Options, TokenizerOptions, QuestionSource, QuestionRows, Tokenizer]):
    options = Options
    tokenizer = QuestionTokenizerOptions
    columns = {"question": "question", "passage": "context", "answers": "answers", "context": "context"}
    echoes = {"question": "question", "id": "id"}
    beside = {"passage": "context"}
    inputs = frozenset({"question", "context"})

    def open(self, spec: str, options: Options) -> QuestionSource:
        return open_questions(spec, options.names)

    def roles(self, spec: str, given: Mapping[str, object], predict: bool = False) -> list[Choice]:
        return question_roles(spec, given)

    def sources(self, spec: str, options: Options) -> Iterator[Row]:
        return open_asked(spec, options.names)

    def answered(self, spec: str, options: Options) -> Iterator[Row]:
        for row in self.open(spec, options).rows():
            if row.answers:
                asked = {"line": row.line, "question": row.question, "context": row.context}
                yield asked | {"truth": row.answers[0][1]}

    def table(self, spec: str, options: Options) -> TableRows | None:
        return read_jsonl(Path(spec)) if suffix(Path(spec)) in LINES and not spec.startswith("sample:") else None

    def examine(self, options: Options) -> list[Finding]:
        return examine_questions(options.train, options.valid, options.names)

    def choose(self, train: QuestionSource, given: Mapping[str, Any]) -> list[Choice]:
        survey = survey_texts(islice(train.texts(), _SURVEYED))
        reason = f"{survey.script}, and a sub-word may reach beyond an answer"
        return [Choice("tokenizer.kind", "characters", reason)] if survey.unspaced else []

    def make_vocabulary(
        self, options: TokenizerOptions, train: QuestionSource, known: Tokenizer | None = None
    ) -> Tokenizer:
        return known or fitted(options, train.texts())

    def load_vocabulary(self, folder: Path) -> Tokenizer:
        return Tokenizer.load(folder)

    def prepare(
        self, part: QuestionSource, vocabulary: Tokenizer, talk: Reporter | None = None, name: str = ""
    ) -> QuestionRows:
        rows = QuestionRows(part.rows(), vocabulary, part)
        cut, answers = rows.cut()
        remarks = part.counts.remarks()
        if cut:
            remarks.append(f"{cut:,} of {answers:,} answers begin or end inside a token and are extended to all of it")
        if talk and remarks:
            talk.say(f"{name or part.name}: {'; '.join(remarks)}")
        return rows

    def check(self, rows: Mapping[str, QuestionRows], vocabulary: Tokenizer) -> None:
        counts = rows["train"].counts
        if unknown_among(counts, vocabulary.unk) > 0.5 * counts.sum():
            raise mostly_unknown("the training set", vocabulary.kind)
        source = rows["train"].origin
        if source and not source.counts.answers:
            raise UserError(f"{source.name}: {NO_ANSWER}")
        for part, questions in rows.items():
            if not len(questions):
                raise UserError(f"the {part} split has no questions")

    def describe(self, train: QuestionRows, vocabulary: Tokenizer) -> str:
        return f"{len(train):,} training questions about {train.passages:,} passages, vocabulary {vocabulary.size:,}"


SHAPE = Questions()
