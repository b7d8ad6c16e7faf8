"""Labelled texts."""

from seqloom.data.shapes.labelled.shape import SHAPE

__all__ = ["SHAPE"]
