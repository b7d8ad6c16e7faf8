"""Batches of rows of like length, for ever: which come when is a pure function of the order, so resuming is knowing
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
    """The pieces of each optimiser step that this process takes; `collate` also gets pieces of no rows.

    `lengths` of all rows, of which `rows` are trained on; `budget`: tokens of a batch; 0: `order.batch` rows.
    """
    epoch, skip = 0, order.start
    while True:
        plan = plan_epoch(rows, lengths, order.seed, epoch, order.batch, budget)
        for batch in plan[skip:]:
            pieces = np.array_split(batch, order.world * order.accumulate)
            yield [collate(pieces[order.rank * order.accumulate + n]) for n in range(order.accumulate)]
        epoch, skip = epoch + 1, max(0, skip - len(plan))
