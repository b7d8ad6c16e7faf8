"""Numeric series on a clock."""

from seqloom.data.shapes.series.shape import SHAPE

__all__ = ["SHAPE"]
