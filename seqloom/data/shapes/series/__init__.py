"""Numeric time series."""

from seqloom.data.shapes.series.shape import SHAPE

__all__ = ["SHAPE"]
