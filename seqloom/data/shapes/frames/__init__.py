"""Sequences of measurements with labels."""

from seqloom.data.shapes.frames.shape import SHAPE

__all__ = ["SHAPE"]
