"""An RNN's cost per token is constant, a Transformer's grows with the context, and so does its memory

Trained weights make no difference to cost, so models of equal size with random weights read text of growing length. Three
things are measured: the time for the next token after a context, the time for reading the context at once, and the
bytes of the state after it. The first two belong to the machine; operations and bytes are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqloom.core.network import Network
from seqloom.core.progress import Reporter
from seqloom.core.state import State, flatten_state
from seqloom.pages.formats import count, short
from seqloom.pages.plots import Curve, Lines, Panel
from seqloom.pages.words import Pair
from seqloom.studies._models import parameters
from seqloom.studies._study import Finding, Measured, Rows, Study, Verdict, curve, exact, measured
from seqloom.studies._timing import fastest, processor
from seqloom.studies._training import matched, network, stretches, text

SAMPLE, WINDOW = "python-docs", 128
MODELS: dict[str, tuple[Pair, str]] = {  # name and architecture
    "lstm": (("LSTM", "LSTM"), "lstm"),
    "gpt": (("GPT", "GPT"), "gpt"),
    "window": ((f"GPT, window of {WINDOW}", f"GPT，窗口 {WINDOW}"), "gpt"),
    "linear": (("linear attention", "线性注意力"), "linear_attention"),
}
KINDS: dict[str, Pair] = {"next": ("next token", "下一个词元"), "whole": ("whole context", "整个上下文")}
FLAT, QUADRATIC, LINEAR = (
    0.2,
    1.5,
    1.2,
)  # exponents: at most, that count as constant; at least, as more than linear; ...
SAME = 0.01  # of an exponent of bytes
ENDS = 3  # contexts at either end that exponents are fitted to

Table = dict[str, np.ndarray]  # by model: (contexts, seeds)


@dataclass(frozen=True)
class Sizes:
    seeds: int
    size: int  # parameters
    rounds: int
    contexts: tuple[int, ...]
    after: int  # tokens read one by one after each context

    @property
    def longest(self) -> int:
        return self.contexts[-1] + 1 + self.after


FULL = Sizes(6, 400_000, 5, (64, 128, 256, 512, 1024, 2048, 4096, 8192), 16)
QUICK = Sizes(2, 30_000, 1, (8, 16, 32, 64), 2)


@dataclass
class Results:
    parameters: dict[str, int]
    seconds: dict[str, Table]  # by kind; for the next token, or for reading the whole context
    bytes: Table  # of the state, (contexts,)
    operations: Table  # floating-point, per token of the whole context, (contexts,)


def measure(quick: bool, progress: Reporter) -> Finding:
    size = QUICK if quick else FULL
    ids, tokens, digest = text(SAMPLE)
    given: dict[str, dict[str, Any]] = {"gpt": {"context": size.longest}, "window": {"window": WINDOW}}
    options = {key: matched(name, size.size, tokens, **given.get(key, {})) for key, (_, name) in MODELS.items()}
    shape = len(size.contexts), size.seeds
    seconds = {kind: {key: np.zeros(shape) for key in MODELS} for kind in KINDS}
    counted = {key: np.zeros(shape[0]) for key in MODELS}
    for seed in range(size.seeds):
        models = {key: network(name, tokens, seed, **options[key]).eval() for key, (_, name) in MODELS.items()}
        row = stretches(ids, 1, size.longest, torch.Generator().manual_seed(seed))[0]
        for n, context in enumerate(size.contexts):
            progress.update((seed + n / shape[0]) / shape[1], {"doing": f"seed {seed}, context {context:,}"})
            with torch.inference_mode():
                found, states = _raced(models, row, context, size)
            for (kind, key), value in found.items():
                seconds[kind][key][n, seed] = value
            for key, state in states.items():
                counted[key][n] = sum(t.nbytes for t in flatten_state(state).values())
    operations = {key: np.array([model.flops(n) for n in size.contexts]) for key, model in models.items()}
    return _finding(size, Results({k: parameters(m) for k, m in models.items()}, seconds, counted, operations), digest)


def _raced(
    models: dict[str, Network], row: Tensor, context: int, size: Sizes
) -> tuple[dict[tuple[str, str], float], dict[str, State]]:
    """Seconds for the next token, and for the whole context, by kind and model; and the states after the context."""
    states = {key: model.begin(row[:, :context]) for key, model in models.items()}
    runs: dict[tuple[str, str], Callable[[], object]] = {}
    for key, model in models.items():
        # the first token makes room for others in a growing state
        first, *rest = row[:, context : context + 1 + size.after].split(1, dim=1)
        runs["next", key] = partial(_continue, model, model(first, states[key])[1], rest)
        runs["whole", key] = partial(model.begin, row[:, :context])
    found = fastest(runs, size.rounds)
    return {(k, key): seconds / (size.after if k == "next" else 1) for (k, key), seconds in found.items()}, states


def _continue(model: Network, state: State, tokens: list[Tensor]) -> None:
    for token in tokens:
        _, state = model(token, state)


def exponents(contexts: tuple[int, ...], table: np.ndarray) -> list[float]:
    """Of the growth with the context, by least squares on logarithms, for each column of (contexts, seeds)."""
    return np.polyfit(np.log(contexts), np.log(table), 1)[0].tolist()


def verdict(rnn: list[Measured], bytes_: tuple[float, float], far: Measured, near: Measured) -> Verdict:
    """From exponents: of the RNN's seconds per token; of the bytes of the states of RNN and GPT; of the seconds in which
    the GPT reads the whole of a long and of a short context."""
    if any((one.low or 0.0) > FLAT for one in rnn) or bytes_[0] > SAME or abs(bytes_[1] - 1) > SAME:
        return "fails"
    if (far.high or 0.0) < QUADRATIC:
        return "fails"
    if any((one.high or 0.0) > FLAT for one in rnn) or (far.low or 0.0) < QUADRATIC:
        return "untold"
    return "conditions" if (near.low or 0.0) < QUADRATIC else "holds"
