"""Classification: what kind of text is this, or of two texts, or of a sequence of measurements?"""

from seqloom.tasks.classification.task import Classification, Config

__all__ = ["Config", "Classification"]
