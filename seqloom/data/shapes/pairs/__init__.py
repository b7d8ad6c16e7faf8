"""Pairs of texts: source and target."""

from seqloom.data.shapes.pairs.shape import SHAPE

__all__ = ["SHAPE"]
