"""Sentences of tagged words."""

from seqloom.data.shapes.tagged.shape import SHAPE

__all__ = ["SHAPE"]
