"""One running text, or many documents."""

from seqloom.data.shapes.texts.shape import SHAPE

__all__ = ["SHAPE"]
