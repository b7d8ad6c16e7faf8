"""How many steps of a sequence a chunked form takes together."""

from __future__ import annotations


def even_chunk(steps: int, most: int) -> int:
    """The size of the fewest chunks of at most `most` steps, all equally long: 40 steps are 2 x 20, not 32 + 8 with
    24 steps of padding."""
    return -(-steps // -(-steps // most))
