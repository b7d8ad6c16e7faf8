"""Endless batches of rows of similar length. Their sequence is a pure function of the order, so resuming needs only
the step."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from seqloom.core.batch import Batch
from seqloom.core.order import plan_epoch
from seqloom.core.task import Order


def batches_by_length(
    rows: np.ndarray, lengths: np.ndarray, order: Order, budget: int, collate: Callable[[np.ndarray], Batch]
) -> Iterator[list[Batch]]:
    """This process's micro-batches for each optimiser step; `collate` must accept an empty one.

    `lengths`: of all rows; `rows`: the indices to train on; `budget`: tokens per batch; 0: `order.batch` rows.
    """
    epoch, skip = 0, order.start
    while True:
        plan = plan_epoch(rows, lengths, order.seed, epoch, order.batch, budget)
        for batch in plan[skip:]:
            pieces = np.array_split(batch, order.world * order.accumulate)
            yield [collate(pieces[order.rank * order.accumulate + n]) for n in range(order.accumulate)]
        epoch, skip = epoch + 1, max(0, skip - len(plan))
