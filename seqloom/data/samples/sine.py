"""A slow sine wave under strong noise."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from seqloom.data.samples.sample import Sample


def sine() -> Iterator[dict[str, float]]:
    """A period and a half; the wave moves less in twenty steps than the noise does in one."""
    noise = np.random.default_rng(1).normal(0, 0.2, 1000)
    for time in range(1, 1001):
        yield {"time": time, "value": float(np.sin(0.01 * time) + noise[time - 1])}


SAMPLES = {"sine": Sample("series", "1,000 points of sin(0.01 t) with noise of standard deviation 0.2", sine)}
