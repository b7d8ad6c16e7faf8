"""`ask --evaluate`: questions whose answers are known, and what becomes of them."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seqloom.core.errors import UserError
from seqloom.core.progress import Reporter, Silent
from seqloom.core.rows import Json
from seqloom.data.strict_json import parse_json
from seqloom.retrieve.answering import LONGEST, Asking
from seqloom.retrieve.checking import evaluate_citations
from seqloom.retrieve.reading import lines

_WAYS = '{"question": "...", "answers": ["..."]}'


class Asked(NamedTuple):
    question: str
    answers: tuple[str, ...]  # any of them is right; none: the documents do not have the answer


def read_questions(path: str | Path) -> list[Asked]:
    """JSONL: a question and its answers on every line; one answer, or the form of SQuAD, will do."""
    found = [_asked(line, path, number) for number, line in enumerate(lines(Path(path)), 1) if line.strip()]
    if not found:
        raise UserError(f"{path}: no questions in it; give one on every line: {_WAYS}")
    return found


def _asked(line: str, path: str | Path, number: int) -> Asked:
    place = f"{path}:{number}"
    try:
        row = parse_json(line, Path(path), number)
        answers: Any = row.get("answers", row.get("answer", []))
        answers = answers.get("text", []) if isinstance(answers, dict) else answers
        answers = [answers] if isinstance(answers, str) else answers
        asked = Asked(row["question"], tuple(answers))
    except (ValueError, LookupError, TypeError, AttributeError):
        raise UserError(f"{place}: not a question with its answers; give {_WAYS}") from None
    if not all(isinstance(text, str) and text.strip() for text in (asked.question, *asked.answers)):
        raise UserError(f"{place}: a question and its answers are texts, and not empty; give {_WAYS}")
    if len(asked.question) > LONGEST:
        raise UserError(f"{place}: the question has {len(asked.question):,} characters; ask in at most {LONGEST:,}")
    return asked


def evaluate(asking: Asking, questions: Sequence[Asked], progress: Reporter | None = None) -> Json:
    """Shares of the questions that have an answer, and of those that have none."""
    report, replies = progress or Silent(), []
    for number, asked in enumerate(questions):
        replies.append(asking.ask(asked.question))
        report.update((number + 1) / len(questions), {"doing": f"asked {number + 1:,} of {len(questions):,} questions"})
    report.close()
    with_answer = [(reply, asked) for reply, asked in zip(replies, questions, strict=True) if asked.answers]
    without = [reply for reply, asked in zip(replies, questions, strict=True) if not asked.answers]
    quoted = [_among([s.quotation.text for s in r.sentences if s.quotation], a.answers) for r, a in with_answer]
    found = [_among([p.chunk.text for p in r.passages], a.answers) for r, a in with_answer]
    answered = [reply for reply in replies if not reply.refused]
    return {
        "questions": len(questions),
        "with_answer": len(with_answer),
        "quoted": _share(quoted),
        "found": _share(found),
        "refused": _share([bool(reply.refused) for reply, _ in with_answer]),
        "without_answer": len(without),
        "rightly_refused": _share([bool(reply.refused) for reply in without]),
        "sentences_per_answer": sum(len(reply.sentences) for reply in answered) / max(1, len(answered)),
        "citations": evaluate_citations(replies),
        "answerer": asking.answerer.name,
        "encoder": asking.encoder or None,
        "k": asking.k,
    }


def _among(texts: Sequence[str], answers: Sequence[str]) -> bool:
    return any(_plain(answer) in text for text in map(_plain, texts) for answer in answers)


def _plain(text: str) -> str:
    """Without differences of case, width and white space."""
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())


def _share(these: Sequence[bool]) -> float | None:
    return sum(these) / len(these) if these else None
