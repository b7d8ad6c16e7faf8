"""Questions about passages."""

from seqloom.data.shapes.questions.shape import SHAPE

__all__ = ["SHAPE"]
