"""Questions on passages, with answers that stand in them: SQuAD's JSON (1.1, and 2.0 with questions that have no
answer), or JSONL with a question on each line; read from the beginning as often as needed.

An answer is known by its text and by the character it begins at. Where the two disagree, a text that occurs once in
the passage says where it is; any other is left out of training. Scores know all texts.
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
from seqloom.data.files import check_file, read_text, suffix
from seqloom.data.rows import read_jsonl, text_of
from seqloom.data.samples import find_sample

LINES = {".jsonl", ".ndjson"}
FORM = '{"context": "...", "question": "...", "answers": {"text": ["..."], "answer_start": [0]}}'


class Question(NamedTuple):
    line: int  # of the file; in one JSON object: which question it is
    context: str
    question: str
    answers: tuple[tuple[int, str], ...]  # (character it begins at, text), each where it says
    texts: tuple[str, ...]  # all true answers, also those that are not found in the passage
    impossible: bool = False  # the passage does not answer it, and the data says so
    mended: int = 0  # answers whose offset was wrong
    lost: int = 0  # answers that are not in the passage, or at several places and at none of them by their offset
    id: str = ""


Read = Callable[[], Iterator[tuple[int, str, dict[str, Any]]]]  # (line, place to name in an error, row)


class QuestionSource:
    """Questions in order; one without a text, or with an empty passage, is left out."""

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
        """Every passage once where it stands several times in a row, and every question."""
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
        """SHA-256 of all that is kept."""
        return self.counts.hash

    @cached_property
    def counts(self) -> Counts:
        return _count(self._read())


@dataclass
class Counts:
    """What one reading tells of all questions."""

    questions: int = 0
    passages: int = 0
    answers: int = 0  # where they say, or mended
    mended: int = 0
    lost: int = 0
    first_mended: int = 0  # lines
    first_lost: int = 0
    unanswered: int = 0  # questions none of whose answers is found: scored, not trained on
    impossible: int = 0
    empty: int = 0  # left out
    bytes: int = 0
    hash: str = ""

    def remarks(self) -> list[str]:
        """What a log must say of them; nothing of what is as it should be."""
        said = {
            "answers moved to the only place where their text stands": self.mended,
            "answers left out of training (their text is not at its offset, nor at one place alone)": self.lost,
            "questions with no answer left: scored by their texts, not trained on": self.unanswered,
            "questions without an answer in the passage": self.impossible,
            "questions left out, for they or their passage are empty": self.empty,
        }
        return [f"{count:,} {what}" for what, count in said.items() if count]


def open_questions(spec: str) -> QuestionSource:
    """SQuAD's JSON, JSONL, `sample:NAME`; also compressed. Every question must say what its answers are."""
    source = QuestionSource(spec, lambda: (_question(row, line, place) for line, place, row in _find(spec)()))
    if next(source.rows(), None) is None:
        empty = source.counts.empty
        reason = f"all {empty:,} are empty, or their passage is" if empty else f"a line looks like {FORM}"
        raise UserError(f"{spec}: no questions in it; {reason}")
    return source


def open_asked(spec: str) -> Iterator[dict[str, Any]]:
    """What is to be answered: {"line", "id" where there is one, "question", "context"}; answers are not needed."""
    found = False
    for line, place, row in _find(spec)():
        question, context = text_of(row, "question", place).strip(), text_of(row, "context", place)
        if question and context.strip():
            found = True
            id = {"id": str(row["id"])} if "id" in row else {}
            yield {"line": line} | id | {"question": question, "context": context}
    if not found:
        raise UserError(f"{spec}: no questions in it")


def _find(spec: str) -> Read:
    if spec.startswith("sample:"):
        sample = find_sample(spec, "questions")
        return lambda: ((n, f"{spec}, question {n}", row) for n, row in enumerate(sample.read(), 1))
    path = Path(spec)
    check_file(path)
    if path.is_dir():
        raise UserError(f"{path}: a folder; questions stand in one file, .json or .jsonl")
    if suffix(path) in LINES:
        return lambda: ((line, f"{path}:{line}", row) for line, row in read_jsonl(path))
    if suffix(path) == ".json":
        return lambda: _read_squad(path)
    raise UserError(f"{path}: not a file of questions; SQuAD's .json is wanted, or .jsonl with lines like {FORM}")


def _read_squad(path: Path) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """{"data": [{"paragraphs": [{"context": ..., "qas": [...]}, ...]}, ...]}: one object, so it is read as a whole."""
    try:
        whole = json.loads("".join(read_text(path)))
    except json.JSONDecodeError as error:
        way_out = "; one object per line is JSONL: name it .jsonl" if error.msg == "Extra data" else ""
        raise UserError(
            f"{path}:{error.lineno}: not valid JSON: {error.msg} at column {error.colno}{way_out}"
        ) from None
    except (RecursionError, ValueError) as error:
        raise UserError(f"{path}: not valid JSON: {error or 'nested too deeply'}") from None
    number = 0
    for a, article in enumerate(_list_of(whole, "data", str(path)), 1):
        place = f"{path}: article {a}"
        for p, paragraph in enumerate(_list_of(article, "paragraphs", place), 1):
            inside = f"{place}, paragraph {p}"
            context = text_of(_object(paragraph, inside), "context", inside)
            for q, asked in enumerate(_list_of(paragraph, "qas", inside), 1):
                number += 1
                where = f"{inside}, question {q}"
                yield number, where, _object(asked, where) | {"context": context}


def _list_of(holder: Any, key: str, place: str) -> list[Any]:
    found = _object(holder, place).get(key)
    if not isinstance(found, list):
        raise UserError(f'{place}: no list "{key}"; SQuAD\'s form is wanted: data, paragraphs, qas')
    return found


def _object(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UserError(f"{place}: an object is wanted, in braces")
    return value


def _question(row: dict[str, Any], line: int, place: str) -> Question:
    context, question = text_of(row, "context", place), text_of(row, "question", place).strip()
    given = _given(row, place)
    texts = tuple(dict.fromkeys(text for _, text in given if text.strip()))
    if row.get("is_impossible") is True or not given:
        return Question(line, context, question, (), (), True, id=str(row.get("id", "")))
    found: list[tuple[int, str]] = []
    mended = lost = 0
    for start, text in given:
        place_found = _located(context, start, text)
        if place_found is None:
            lost += 1
            continue
        mended += place_found != start
        found.append((place_found, text))
    answers = tuple(dict.fromkeys(found))
    return Question(line, context, question, answers, texts, False, mended, lost, str(row.get("id", "")))


def _given(row: dict[str, Any], place: str) -> list[tuple[int, str]]:
    """(offset, text) in any of the three forms."""
    if "answers" not in row and "answer" in row:
        row = {"answers": [{"text": row["answer"], "answer_start": row.get("answer_start")}]}
    given = row.get("answers")
    if given is None and row.get("is_impossible") is True:
        return []
    if isinstance(given, dict):
        texts, starts = given.get("text"), given.get("answer_start")
        if not (isinstance(texts, list) and isinstance(starts, list) and len(texts) == len(starts)):
            raise UserError(f'{place}: "answers" needs lists "text" and "answer_start" of the same length')
        given = [{"text": text, "answer_start": start} for text, start in zip(texts, starts, strict=True)]
    if not isinstance(given, list):
        raise UserError(f'{place}: no "answers"; a row looks like {FORM}')
    return [_answer(one, place) for one in given]


def _answer(one: Any, place: str) -> tuple[int, str]:
    start = _object(one, f"{place}, answer").get("answer_start")
    if not isinstance(start, int) or isinstance(start, bool):
        raise UserError(
            f'{place}: "answer_start" must be a number: the character of the passage where the answer begins'
        )
    return start, text_of(one, "text", f"{place}, answer")


def _located(context: str, start: int, text: str) -> int | None:
    """Where it stands: at its offset, or else at the only place there is."""
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
