"""Questions about passages that contain the answers: SQuAD JSON (1.1, or 2.0 with unanswerable questions), or JSONL
with one question per line; re-read from the beginning as often as needed.

An answer has a text and the offset of its first character. If the two disagree, the offset is corrected when the text
occurs exactly once in the passage; otherwise the answer is excluded from training. Scoring uses all answer texts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from seqloom.core.errors import UserError
from seqloom.core.memory import require
from seqloom.core.quoting import quoted
from seqloom.core.rows import Json
from seqloom.data.files import check_file, read_text, suffix
from seqloom.data.role_names import flag
from seqloom.data.rows import named, read_jsonl, text_of
from seqloom.data.samples import find_sample
from seqloom.data.strict_json import parse_json

_HELD = 6  # bytes in memory of each byte of JSON
LINES = {".jsonl", ".ndjson"}
NO_ANSWER = "no question has an answer that is found in its passage; check the answers and their answer_start"
FORM = '{"context": "...", "question": "...", "answers": {"text": ["..."], "answer_start": [0]}}'


class Question(NamedTuple):
    line: int  # of the file; in a single JSON object, the number of the question
    context: str
    question: str
    answers: tuple[tuple[int, str], ...]  # (offset of the first character, text), verified
    texts: tuple[str, ...]  # all correct answers, including those not found in the passage
    impossible: bool = False  # marked as unanswerable from its passage
    mended: int = 0  # answers whose offset was corrected
    lost: int = 0  # answers that are not at their offset and do not occur exactly once
    id: str = ""


class Names(NamedTuple):
    """The columns of a JSONL file."""

    context: str = "context"
    question: str = "question"
    answers: str = "answers"

    def usual(self, row: Json) -> Json:
        """The row under the usual names."""
        return row | {role: row[name] for role, name in self._asdict().items() if name != role and name in row}


USUAL = Names()
Read = Callable[[], Iterator[tuple[int, str, Json]]]  # (line, place to name in an error, row)


class QuestionSource:
    """Questions in order; those that are empty or have an empty passage are left out."""

    unit = "passages"

    def __init__(self, name: str, read: Callable[[], Iterator[Question]]) -> None:
        self.name = name  # what the user typed
        self._read = read

    def rows(self) -> Iterator[Question]:
        return (row for row in self._read() if row.question and row.context.strip())

    def all(self) -> Iterator[Question]:
        return self._read()

    def key(self, row: Question) -> str:
        return row.context

    def like(self, name: str, read: Callable[[], Iterator[Question]]) -> QuestionSource:
        return QuestionSource(name, read)

    def texts(self) -> Iterator[str]:
        """Every passage (once per run of consecutive rows) and every question."""
        before = None
        for row in self.rows():
            if row.context != before:
                yield (before := row.context)
            yield row.question

    @property
    def bytes(self) -> int:
        """Length of passages (each once) and questions in UTF-8."""
        return self.counts.bytes

    @property
    def hash(self) -> str:
        """SHA-256 of the rows kept."""
        return self.counts.hash

    @cached_property
    def counts(self) -> Counts:
        return _count(self._read())


@dataclass
class Counts:
    """What one pass over all questions finds."""

    questions: int = 0
    passages: int = 0
    answers: int = 0  # at their offset, or corrected
    mended: int = 0
    lost: int = 0
    first_mended: int = 0  # line numbers
    first_lost: int = 0
    unanswered: int = 0  # questions with no answer found in the passage: scored, not trained on
    impossible: int = 0
    empty: int = 0  # left out
    bytes: int = 0
    hash: str = ""

    def remarks(self) -> list[str]:
        """Log messages on whatever is out of the ordinary."""
        messages = {
            "answers moved to the only occurrence of their text": self.mended,
            "answers left out of training (not at their offset, and not exactly one occurrence)": self.lost,
            "questions with no usable answer: scored, but not trained on": self.unanswered,
            "unanswerable questions": self.impossible,
            "questions left out because they or their passages are empty": self.empty,
        }
        return [f"{count:,} {what}" for what, count in messages.items() if count]


def open_questions(spec: str, names: Names = USUAL) -> QuestionSource:
    """SQuAD JSON, JSONL, `sample:NAME`; also compressed. Every question must have its answers."""
    source = QuestionSource(spec, lambda: (_question(row, line, place) for line, place, row in _find(spec, names)()))
    if next(source.rows(), None) is None:
        empty = source.counts.empty
        reason = f"all {empty:,} are empty or have an empty passage" if empty else f"expected lines like {FORM}"
        raise UserError(f"{spec}: contains no questions; {reason}")
    return source


def open_asked(spec: str, names: Names = USUAL) -> Iterator[Json]:
    """Questions to answer: {"line", "id" if given, "question", "context"}; reference answers are not needed."""
    found = False
    for line, place, row in _find(spec, names)():
        question, context = _text(row, "question", place).strip(), _text(row, "context", place)
        if question and context.strip():
            found = True
            id = {"id": str(row["id"])} if "id" in row else {}
            yield {"line": line} | id | {"question": question, "context": context}
    if not found:
        raise UserError(f"{spec}: contains no questions")


def _find(spec: str, names: Names) -> Read:
    if spec.startswith("sample:"):
        sample = find_sample(spec, "questions")
        return lambda: ((n, f"{spec}, question {n}", row) for n, row in enumerate(sample.read(), 1))
    path = Path(spec)
    check_file(path)
    if path.is_dir():
        raise UserError(f"{path}: is a folder; give one file, .json or .jsonl")
    if suffix(path) in LINES:
        return lambda: ((line, f"{path}:{line}", names.usual(row)) for line, row in read_jsonl(path))
    if suffix(path) == ".json":
        return lambda: _read_squad(path)
    raise UserError(f"{path}: not a question file; give SQuAD .json, or .jsonl with lines like {FORM}")


def _read_squad(path: Path) -> Iterator[tuple[int, str, Json]]:
    """{"data": [{"paragraphs": [{"context": ..., "qas": [...]}, ...]}, ...]}: one object, so it is read whole."""
    require(_HELD * path.stat().st_size, f"{path}: reading it whole", "give JSONL, one question per line")
    whole = parse_json("".join(read_text(path)), path)
    number = 0
    for a, article in enumerate(_list_of(whole, "data", str(path)), 1):
        place = f"{path}: article {a}"
        for p, paragraph in enumerate(_list_of(article, "paragraphs", place), 1):
            inside = f"{place}, paragraph {p}"
            context = text_of(_object(paragraph, inside), "context", inside)
            for q, question in enumerate(_list_of(paragraph, "qas", inside), 1):
                number += 1
                where = f"{inside}, question {q}"
                yield number, where, _object(question, where) | {"context": context}


def _list_of(holder: Any, key: str, place: str) -> list[Any]:
    found = _object(holder, place).get(key)
    if not isinstance(found, list):
        raise UserError(f'{place}: no list "{key}"; expected the SQuAD format: data, paragraphs, qas')
    return found


def _object(value: Any, place: str) -> Json:
    if not isinstance(value, dict):
        raise UserError(f"{place}: expected an object in braces, not {named(value)}")
    return value


def _text(row: Json, column: str, place: str) -> str:
    return text_of(row, column, place, role="passage" if column == "context" else column)


def _question(row: Json, line: int, place: str) -> Question:
    context, question = _text(row, "context", place), _text(row, "question", place).strip()
    if row.get("is_impossible") not in (None, True, False):
        raise UserError(f'{place}: "is_impossible" must be true or false, not {quoted(row["is_impossible"])}')
    if not isinstance(row.get("id", ""), str | int):
        raise UserError(f'{place}: "id" is {named(row["id"])}; give a text or a number')
    given = _given(row, place)
    texts = tuple(dict.fromkeys(text for _, text in given if text.strip()))
    if row.get("is_impossible") is True or not given:
        return Question(line, context, question, (), (), True, id=str(row.get("id", "")))
    found: list[tuple[int, str]] = []
    mended = lost = 0
    for start, text in given:
        offset = _located(context, start, text)
        if offset is None:
            lost += 1
            continue
        mended += offset != start
        found.append((offset, text))
    answers = tuple(dict.fromkeys(found))
    return Question(line, context, question, answers, texts, False, mended, lost, str(row.get("id", "")))


def _given(row: Json, place: str) -> list[tuple[int, str]]:
    """(offset, text) of each answer, from any of the three accepted forms."""
    if "answers" not in row and "answer" in row:
        row = {"answers": [{"text": row["answer"], "answer_start": row.get("answer_start")}]}
    given = row.get("answers")
    if isinstance(given, str):
        given = [{"text": given, "answer_start": row.get("answer_start")}]
    if given is None and row.get("is_impossible") is True:
        return []
    if isinstance(given, dict):
        texts, starts = given.get("text"), given.get("answer_start")
        if not (isinstance(texts, list) and isinstance(starts, list) and len(texts) == len(starts)):
            raise UserError(f'{place}: "answers" needs lists "text" and "answer_start" of the same length')
        given = [{"text": text, "answer_start": start} for text, start in zip(texts, starts, strict=True)]
    if not isinstance(given, list):
        raise UserError(f'{place}: no "answers"; a row looks like {FORM}; for another name: {flag("answers")}')
    return [_answer(one, place) for one in given]


def _answer(one: Any, place: str) -> tuple[int, str]:
    start = _object(one, f"{place}, answer").get("answer_start")
    if not isinstance(start, int) or isinstance(start, bool):
        raise UserError(
            f'{place}: "answer_start" must be an integer: the offset of the answer in the passage, in characters'
        )
    return start, text_of(one, "text", f"{place}, answer")


def _located(context: str, start: int, text: str) -> int | None:
    """The offset of the text: as given, or else of its only occurrence; None if neither is right."""
    if not text.strip():
        return None
    if start >= 0 and context.startswith(text, start):
        return start
    first = context.find(text)
    return first if first >= 0 and context.find(text, first + 1) < 0 else None


def _count(rows: Iterator[Question]) -> Counts:
    counts, digest, passages = Counts(), hashlib.sha256(), set()
    for row in rows:
        if not (row.question and row.context.strip()):
            counts.empty += 1
            continue
        counts.questions += 1
        counts.answers += len(row.answers)
        counts.impossible += row.impossible
        counts.unanswered += not row.answers and not row.impossible
        if row.mended:
            counts.mended, counts.first_mended = counts.mended + row.mended, counts.first_mended or row.line
        if row.lost:
            counts.lost, counts.first_lost = counts.lost + row.lost, counts.first_lost or row.line
        passage = row.context.encode()
        key = hashlib.blake2b(passage, digest_size=16).digest()
        if key not in passages:
            passages.add(key)
            counts.bytes += len(passage)
        counts.bytes += len(row.question.encode())
        digest.update(key + json.dumps([row.question, row.answers, row.texts, row.impossible]).encode())
    counts.passages, counts.hash = len(passages), digest.hexdigest()
    return counts
