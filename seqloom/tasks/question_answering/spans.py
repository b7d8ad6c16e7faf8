"""The best spans of a sequence, given a score for each position as a start and as an end."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F


def best_spans(
    starts: Tensor, ends: Tensor, allowed: Tensor, longest: int, count: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The `count` best spans of every row: (scores, first, last), each (B, count), best first.

    `starts`, `ends`, `allowed`: (B, T). A span starts and ends at allowed positions, does not end before it starts, and
    has at most `longest` positions; its score is the sum of both. Spans that do not exist have the score -inf.
    """
    starts, ends = (scores.masked_fill(~allowed, -math.inf) for scores in (starts, ends))
    length = starts.size(1)
    longest = min(longest, length)
    # one diagonal for each length: (B, longest, T)
    sums = torch.stack([starts + F.pad(ends[:, more:], (0, more), value=-math.inf) for more in range(longest)], dim=1)
    kept = min(count, longest * length)
    scores, where = sums.flatten(1).topk(kept)
    more, first = where // length, where % length
    missing = count - kept
    return F.pad(scores, (0, missing), value=-math.inf), F.pad(first, (0, missing)), F.pad(first + more, (0, missing))
