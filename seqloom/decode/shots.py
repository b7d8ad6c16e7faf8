"""Few-shot examples: equally many rows of every label, drawn by a seed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seqloom.core.errors import UserError


def draw_shots(rows: Sequence[int], labels: Sequence[str], shots: int, seed: int) -> list[int]:
    """The numbers of `shots` rows of each label, in random order; `rows`: the label of each, -1 for none.

    With the same seed, fewer examples are always a part of more.
    """
    own, found = np.asarray(rows, int), list[int]()
    for label, name in enumerate(labels):
        members = np.flatnonzero(own == label)
        if len(members) < shots:
            raise UserError(
                f"{shots} examples per label: only {len(members)} of the rows have label {name!r}; use fewer"
            )
        found += np.random.default_rng((seed, label)).permutation(members)[:shots].tolist()
    order = np.random.default_rng((seed, len(labels), shots)).permutation(len(found))
    return [found[n] for n in order]
