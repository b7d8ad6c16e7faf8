"""Noisy waves of five shapes, as sequences of measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from seqloom.data.samples.sample import Sample


def waves() -> Iterator[tuple[np.ndarray, str]]:
    """A wave and its slope; five shapes, random period, phase, length and amplitude."""
    rng = np.random.default_rng(1)
    shapes: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "sine": np.sin,
        "square": lambda x: np.sign(np.sin(x)),
        "sawtooth": lambda x: (x / np.pi) % 2 - 1,
        "triangle": lambda x: 2 / np.pi * np.arcsin(np.sin(x)),
        "noise": lambda x: rng.uniform(-1, 1, len(x)),
    }
    for n in range(2000):
        name = list(shapes)[n % len(shapes)]
        steps = np.arange(rng.integers(30, 90))
        wave = shapes[name](2 * np.pi * (steps / rng.uniform(8, 30) + rng.uniform()))
        wave = wave * rng.uniform(0.5, 2) + rng.normal(0, 0.2, len(steps))
        yield np.stack((wave, np.gradient(wave)), axis=1).astype(np.float32), name


SAMPLES = {"waves": Sample("frames", "2,000 noisy waves (value, slope), each of one of 5 shapes", waves)}
