"""Alignments of words, as attention or a dictionary gives them, against those that people have drawn."""

from __future__ import annotations


def alignment_error_rate(
    predicted: set[tuple[int, int]], sure: set[tuple[int, int]], possible: set[tuple[int, int]] | None = None
) -> float:
    """AER (Och and Ney 2003, section 6): 1 - (|A & S| + |A & P|) / (|A| + |S|); a sure link is also a possible one."""
    allowed = sure | (possible or set())
    total = len(predicted) + len(sure)
    return 1 - (len(predicted & sure) + len(predicted & allowed)) / total if total else 0.0
