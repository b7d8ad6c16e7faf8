"""Classification: assign labels to a text, a pair of texts, or a sequence of measurements."""

from seqloom.tasks.classification.task import Classification, Config

__all__ = ["Config", "Classification"]
