"""Question answering: find the span of a passage that answers a question."""

from seqloom.tasks.question_answering.task import Config, QuestionAnswering

__all__ = ["Config", "QuestionAnswering"]
