"""Sentences whose words have tags."""

from seqloom.data.shapes.tagged.shape import SHAPE

__all__ = ["SHAPE"]
