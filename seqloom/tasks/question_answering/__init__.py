"""Question answering: find the answer to a question in a passage, as the characters from here to there."""

from seqloom.tasks.question_answering.task import Config, QuestionAnswering

__all__ = ["Config", "QuestionAnswering"]
