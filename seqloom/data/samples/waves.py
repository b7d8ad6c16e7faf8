"""Noisy waves of five forms, as sequences of measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from seqloom.data.samples.sample import Sample


def waves() -> Iterator[tuple[np.ndarray, str]]:
    """A wave and its slope, of five forms, of any period, phase, length and noise."""
    chance = np.random.default_rng(1)
    forms: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "sine": np.sin,
        "square": lambda x: np.sign(np.sin(x)),
        "sawtooth": lambda x: (x / np.pi) % 2 - 1,
        "triangle": lambda x: 2 / np.pi * np.arcsin(np.sin(x)),
        "noise": lambda x: chance.uniform(-1, 1, len(x)),
    }
    for n in range(2000):
        name = list(forms)[n % len(forms)]
        steps = np.arange(chance.integers(30, 90))
        wave = forms[name](2 * np.pi * (steps / chance.uniform(8, 30) + chance.uniform()))
        wave = wave * chance.uniform(0.5, 2) + chance.normal(0, 0.2, len(steps))
        yield np.stack((wave, np.gradient(wave)), axis=1).astype(np.float32), name


SAMPLES = {"waves": Sample("frames", "2,000 noisy waves (value, slope), and which of 5 forms", waves)}
