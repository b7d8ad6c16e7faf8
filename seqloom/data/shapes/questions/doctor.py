"""Findings on questions about passages: answers that are not at their offset, unanswerable questions, duplicates,
passages shared by two splits, and passages too long to read at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from seqloom.core.errors import UserError
from seqloom.data.findings import Finding, Level, Lines, concluded
from seqloom.data.portions import split_rows
from seqloom.data.shapes.pairs.doctor import EAST_ASIAN, Seen, script_of
from seqloom.data.shapes.questions.reading import (
    NO_ANSWER,
    USUAL,
    Counts,
    Names,
    Question,
    QuestionSource,
    open_questions,
)

FEW, SMALL = 100, 10_000  # questions
LONG = {EAST_ASIAN: 200, "": 900}  # characters that roughly fill a window of 256 tokens
LONG_ANSWER = {EAST_ASIAN: 30, "": 120}  # characters in about 30 tokens


@dataclass
class Survey:
    """What one pass over the questions finds."""

    lengths: Counter[int] = field(default_factory=Counter)  # of passages in characters, once per question
    answers: Counter[int] = field(default_factory=Counter)  # of answers in characters
    scripts: Counter[str] = field(default_factory=Counter)
    questions: Lines = field(default_factory=Lines)  # with their passages
    passages: Lines = field(default_factory=Lines)
    outside: Seen = field(default_factory=Seen)  # rows with an answer that is not at its answer_start
    spread: int = 0  # questions with answers at different places

    def add(self, row: Question) -> None:
        self.lengths[len(row.context)] += 1
        self.answers.update(len(text) for _, text in row.answers)
        self.scripts.update(script for script in (script_of(character) for character in row.question) if script)
        self.questions.add(f"{row.context}\0{row.question}", True)
        self.passages.add(row.context, True)
        self.spread += len({start for start, _ in row.answers}) > 1
        if row.mended or row.lost:
            self.outside.add(row.line)

    @property
    def script(self) -> str:
        """Chinese or Japanese; empty for any other."""
        return EAST_ASIAN if 3 * self.scripts[EAST_ASIAN] > self.scripts.total() else ""


def examine_questions(spec: str, valid: str | None = None, names: Names = USUAL) -> list[Finding]:
    """All findings on questions, errors included; never raises for the content of the file."""
    try:
        source = open_questions(spec, names)
        survey = Survey()
        for row in source.rows():
            survey.add(row)
        counts = source.counts
        findings = [*_size(counts), *_answers(survey, counts), *_lengths(survey), *_repeats(survey)]
        findings += _overlap(survey, open_questions(valid, names)) if valid else _split(source)
    except UserError as error:
        return [Finding("error", str(error), "fix the file and run the doctor again")]
    return concluded([*findings, _suited(survey)])


def _size(counts: Counts) -> Iterator[Finding]:
    size = f"{counts.questions:,} questions about {counts.passages:,} passages, {counts.bytes:,} bytes"
    if counts.questions < FEW:
        yield Finding("warning", f"{size}: too few to learn from", "expect the model to memorise them")
    elif counts.questions < SMALL:
        advice = "from scratch, a model will learn little beyond easy questions; a pre-trained encoder helps"
        yield Finding("note", f"{size}: a small dataset", advice)
    else:
        yield Finding("ok", size)
    if counts.empty:
        message = f"{counts.empty:,} questions are left out: the question or its passage is empty"
        yield Finding("note", message, "nothing to do, unless this is unexpected")


def _answers(survey: Survey, counts: Counts) -> Iterator[Finding]:
    level: Level
    if wrong := counts.mended + counts.lost:
        first = survey.outside.first
        level = "warning" if wrong > (counts.answers + counts.lost) / 100 else "note"
        message = f"{wrong:,} answers are not at their answer_start; the first is in question {first}"
        advice = (
            f"{counts.mended:,} occur only once and are corrected; {counts.lost:,} are left out of training; offsets "
            "count characters, not bytes, from 0"
        )
        yield Finding(level, message, advice)
    else:
        yield Finding("ok", f"all {counts.answers:,} answers are at their answer_start")
    if not counts.answers:
        yield Finding("error", NO_ANSWER)
    elif counts.unanswered:
        message = f"{counts.unanswered:,} questions have no answer that can be found in their passage"
        yield Finding("note", message, "they are scored against their answer texts, but not trained on")
    if counts.impossible:
        share = counts.impossible / counts.questions
        message = f"{share:.1%} of the questions are unanswerable from their passage"
        yield Finding("note", message, "set task.no_answer=true, or the model must always give an answer")
    if survey.spread:
        message = f"{survey.spread:,} questions have correct answers at several places"
        yield Finding("ok", f"{message}; training uses the first, scoring the best match")


def _lengths(survey: Survey) -> Iterator[Finding]:
    for what, lengths, long, advice in (
        ("passages", survey.lengths, LONG, "they are read in windows; a larger task.window reads more at once"),
        ("answers", survey.answers, LONG_ANSWER, "raise task.longest_answer, and task.stride to match"),
    ):
        if not lengths:
            continue
        most, total = long[survey.script], lengths.total()
        over = sum(count for length, count in lengths.items() if length > most)
        message = f"{what}: mean {_mean(lengths):,.0f} characters, longest {max(lengths):,}"
        if over > total / 100:
            yield Finding("note", f"{message}; {over / total:.1%} have more than {most:,}", advice)
        else:
            yield Finding("ok", message)


def _repeats(survey: Survey) -> Iterator[Finding]:
    if (same := survey.questions.repeated()) > 0.001:
        level: Level = "warning" if same > 0.1 else "note"
        advice = "remove duplicates; put several correct answers in one row"
        yield Finding(level, f"{same:.1%} of the questions are duplicates about the same passage", advice)


def _overlap(survey: Survey, valid: QuestionSource) -> Iterator[Finding]:
    for row in valid.rows():
        survey.passages.add(row.context, False)
    message = f"{survey.passages.overlap():.1%} of the questions in {valid.name} are about passages of the training set"
    if survey.passages.overlap() > 0.01:
        yield Finding("warning", message, "scores will look too good; remove these passages from one of the two")
    else:
        yield Finding("ok", message)


def _split(source: QuestionSource) -> Iterator[Finding]:
    try:
        split_rows(source)
    except UserError as error:
        yield Finding("error", str(error))
    else:
        yield Finding("ok", "validation: questions are split by passage, so no passage is in two splits")


def _suited(survey: Survey) -> Finding:
    if survey.script == EAST_ASIAN:
        advice = "use the characters tokenizer, so that no token cuts an answer, and task.longest_answer=60"
        return Finding("note", "the questions are in Chinese or Japanese", advice)
    return Finding("note", "the questions have spaces between words", "the words or bpe tokenizer suits them")


def _mean(lengths: Counter[int]) -> float:
    return sum(length * count for length, count in lengths.items()) / lengths.total()
