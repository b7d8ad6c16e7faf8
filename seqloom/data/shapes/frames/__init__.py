"""Labelled sequences of measurements."""

from seqloom.data.shapes.frames.shape import SHAPE

__all__ = ["SHAPE"]
