"""What a model costs: the time and memory of one more token, or of a whole output; the speed of training, the peak.

All models are measured in one process, in turns of a few hundredths of a second, so that a busy moment of the machine
hurts all alike; what is reported is the quietest turn.
"""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

from seqloom.core.batch import Batch
from seqloom.core.network import SequenceModel
from seqloom.core.state import State, flatten_state
from seqloom.core.task import AnyTask
from seqloom.lab.protocols import measured
from seqloom.train.memory import keep_memory

_SHORT = (8, 16, 32, 64, 128, 256)
CONTEXTS = {"token": (64, 128, 256, 512, 1024, 2048, 4096, 8192), "source": _SHORT, "row": _SHORT}
LENGTHS = {"token": (64, 128, 256, 512, 1024, 2048), "source": _SHORT, "row": _SHORT}
TOKENS = 2048  # of one training step, however long its sequences
TURNS = 8  # of each model at each context
STEPS = 3  # tokens in one turn; of whole outputs one
_AFTER = 1 + TURNS * STEPS  # tokens read one by one after a context; the first makes room for the others
_GROWTH = 4  # reading twice as much takes at most so many times longer

Points = list[dict[str, Any]]


def measure_costs(
    models: Mapping[str, SequenceModel], task: AnyTask, contexts: Sequence[int] = (), seconds: float = 6.0
) -> dict[str, dict[str, Points]]:
    """For every model, by the tokens it has read: `latency`, seconds for what one waits for, and `state`, the bytes it
    remembers. One waits for one more token; where a source is read first, for an output as long as the source; or for
    the answer to a row that is seen whole, of which nothing is kept.

    No figure where a model cannot read so much, or where reading would take it more than `seconds` altogether.
    """
    found: dict[str, dict[str, Points]] = {name: {"latency": [], "state": []} for name in models}
    readers: dict[tuple[str, int], _Timed] = {}
    with _modes(models, training=False), torch.inference_mode():
        for context in sorted(contexts or CONTEXTS[measured(task).latency_unit]):
            for name, model in models.items():
                past = [reader.seconds for (other, _), reader in readers.items() if other == name]
                if _affordable(past, seconds) and (reader := _begin(model, task, context)):
                    readers[name, context] = reader
        times = _take_turns(readers)
    for (name, context), reader in readers.items():
        found[name]["latency"].append({"context": context, "seconds": min(times[name, context])})
        if reader.bytes is not None:
            found[name]["state"].append({"context": context, "bytes": reader.bytes})
    return found


def throughput(
    models: Mapping[str, SequenceModel],
    task: AnyTask,
    lengths: Sequence[int] = (),
    tokens: int = TOKENS,
    seconds: float = 3.0,
) -> dict[str, Points]:
    """Tokens per second in training (forward and backward) by the length of the sequences, of which as many as make
    up `tokens` are read side by side. No figure for models that only count, or cannot read so much.

    A model takes turns while they fit into its `seconds`, at least one.
    """
    keep_memory()  # as in training
    found: dict[str, Points] = {name: [] for name in models}
    trained = {name: model for name, model in models.items() if model.descends}
    best: dict[tuple[str, int], float] = {}
    spent = dict.fromkeys(trained, 0.0)
    with _modes(trained, training=True), torch.enable_grad():
        for turn in range(TURNS):
            chosen = [name for name in trained if turn == 0 or spent[name] * (turn + 1) / turn <= seconds]
            for length in sorted(lengths or LENGTHS[measured(task).latency_unit]):
                batch = measured(task).example(max(1, tokens // length), length)
                for name in chosen:
                    if batch is not None and _can_read(trained[name], _read_in_a_row(trained[name], batch)):
                        took = _training_step(trained[name], task, batch)
                        spent[name] += took
                        best[name, length] = min(took, best.get((name, length), took))
    for (name, length), took in best.items():
        found[name].append({"length": length, "tokens_per_second": max(1, tokens // length) * length / took})
    return found


def state_bytes(state: State) -> int:
    """Of a state fresh from `begin`, which holds what was read and no room for more."""
    return sum(t.numel() * t.element_size() for t in flatten_state(state).values())


class Peak:
    """`bytes`: the most that was taken inside the block above what was taken before it; None: not known."""

    bytes: int | None = None


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """How much memory a block takes at most, in a process that has done other things before.

    Linux lets a process start its record anew. Elsewhere only a new record shows: what the process took before
    hides a part, or all (None).
    """
    peak = Peak()
    _give_back()
    resettable = _forget_record()
    before = _resident("VmRSS:") if resettable else _record()
    yield peak
    taken = (_resident("VmHWM:") if resettable else _record()) - before
    peak.bytes = taken if taken > 0 else None


class _Timed(ABC):
    """What is timed, and has been timed once."""

    steps: int  # in one turn
    seconds: float  # that it takes before, or altogether
    bytes: int | None  # of state

    @abstractmethod
    def step(self) -> float: ...


class _Reader(_Timed):
    """A model that has read a context and goes on, a token at a time."""

    steps = STEPS

    def __init__(self, model: SequenceModel, inputs: Tensor, context: int) -> None:
        self.model = model
        started = time.perf_counter()
        self.state = model.begin(inputs[:, :context])
        _finish(model)
        self.seconds = time.perf_counter() - started
        self.bytes = state_bytes(self.state)
        if not _can_read(model, context + _AFTER):  # it ends here: time the last tokens that it can read
            assert model.reach is not None
            context = model.reach - _AFTER
            self.state = model.begin(inputs[:, :context])
        self.tokens = iter(inputs[:, context : context + _AFTER].split(1, dim=1))
        self.step()

    def step(self) -> float:
        token = next(self.tokens)
        started = time.perf_counter()
        _, self.state = self.model(token, self.state)
        _finish(self.model)
        return time.perf_counter() - started


class _Writer(_Timed):
    """A model that reads a source and writes as many tokens, the likeliest each time: one row, as a user waits."""

    steps = 1

    def __init__(self, model: SequenceModel, source: Tensor, first: Tensor) -> None:
        self.model, self.source, self.first = model, source, first
        self.bytes = state_bytes(model.begin(source))
        self.seconds = (1 + TURNS) * self.step()  # all that it will take

    def step(self) -> float:
        started = time.perf_counter()
        state, last = self.model.begin(self.source), self.first
        for _ in range(self.source.size(1)):
            logits, state = self.model(last, state)
            last = logits.argmax(-1)
        _finish(self.model)
        return time.perf_counter() - started


class _Answerer(_Timed):
    """A model that sees a row whole and answers: one row, as a user waits."""

    steps, bytes = STEPS, None

    def __init__(self, model: SequenceModel, inputs: Tensor) -> None:
        self.model, self.inputs = model, inputs
        self.seconds = (1 + TURNS * STEPS) * self.step()

    def step(self) -> float:
        started = time.perf_counter()
        self.model.encode(self.inputs)
        _finish(self.model)
        return time.perf_counter() - started


def _begin(model: SequenceModel, task: AnyTask, context: int) -> _Timed | None:
    """None: it cannot read so much, or there is nothing to read."""
    if measured(task).latency_unit == "row":
        batch = measured(task).example(1, context)
        if batch is None or not _can_read(model, context):
            return None
        return _Answerer(model, (batch.inputs if batch.context is None else batch.context).to(model.device))
    if measured(task).latency_unit == "source":
        batch = measured(task).example(1, context)
        if batch is None or batch.context is None or not _can_read(model, _read_in_a_row(model, batch)):
            return None
        return _Writer(model, batch.context.to(model.device), batch.inputs[:, :1].to(model.device))
    batch = measured(task).example(1, context + _AFTER)
    if batch is None or not _can_read(model, max(context, _AFTER + 1)):
        return None
    return _Reader(model, batch.inputs.to(model.device), context)


def _read_in_a_row(model: SequenceModel, batch: Batch) -> int:
    """Tokens: a causal model goes on from what it was given first, an encoder-decoder begins anew."""
    given = 0 if batch.context is None else batch.context.size(1)
    return batch.inputs.size(1) + given if model.joins else max(batch.inputs.size(1), given)


def _take_turns(readers: Mapping[tuple[str, int], _Timed]) -> dict[tuple[str, int], list[float]]:
    """The median time of a step in every turn."""
    times: dict[tuple[str, int], list[float]] = {key: [] for key in readers}
    for _ in range(TURNS):
        for key, reader in readers.items():
            times[key].append(median(reader.step() for _ in range(reader.steps)))
    return times


def _affordable(past: Sequence[float], seconds: float) -> bool:
    return not past or sum(past) + _GROWTH * past[-1] <= seconds


def _training_step(model: SequenceModel, task: AnyTask, batch: Batch) -> float:
    batch = batch.to(model.device)
    started = time.perf_counter()
    task.loss(model, batch).loss.backward()
    _finish(model)
    seconds = time.perf_counter() - started
    model.zero_grad(set_to_none=True)
    return seconds


def _can_read(model: SequenceModel, tokens: int) -> bool:
    return model.reach is None or tokens <= model.reach


def _finish(model: SequenceModel) -> None:
    """Other devices compute while Python goes on."""
    if model.device.type != "cpu":
        torch.accelerator.synchronize()


@contextmanager
def _modes(models: Mapping[str, SequenceModel], training: bool) -> Iterator[None]:
    before = {name: model.training for name, model in models.items()}
    try:
        for model in models.values():
            model.train(training)
        yield
    finally:
        for name, model in models.items():
            model.train(before[name])


def _give_back() -> None:
    """What was freed goes back to the system, so that it does not count as taken."""
    gc.collect()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library: it has rules of its own
            ctypes.CDLL("libc.so.6").malloc_trim(0)


def _forget_record() -> bool:
    """Let the highest memory of this process so far be the present one; False where the system does not."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _resident(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


def _record() -> int:
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
