"""The cost of a model: latency and state size, and training throughput.

All models are measured in one process, in short alternating turns (see `turns.py`); the fastest turn is reported, and
whether it is stable. With one thread on a CPU, turns are counted in CPU time, which other programs do not lengthen.
What is slow has fewer turns, in smaller batches, at fewer lengths.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from statistics import median

import torch
from torch import Tensor

from seqloom.core.batch import Batch
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json
from seqloom.core.state import State, flatten_state
from seqloom.core.task import AnyTask
from seqloom.lab.protocols import LatencyUnit, MeasuredTask, RowReader, latency_unit, row_reader
from seqloom.lab.turns import enough, take_turns, unsettled
from seqloom.train.clock import Clock
from seqloom.train.memory import keep_memory

_SHORT = (8, 16, 32, 64, 128, 256)
CONTEXTS = {"token": (64, 128, 256, 512, 1024, 2048, 4096, 8192), "source": _SHORT, "row": _SHORT}
LENGTHS = {"token": (64, 128, 256, 512, 1024, 2048), "source": _SHORT, "row": _SHORT}
TOKENS, LEAST_TOKENS = 2048, 512  # per training step, whatever the sequence length; fewer would be slower per token
TURNS = 8  # of training steps, at most, per model and length
STEPS = 3  # timed steps per turn; one where a step is long
_AFTER = 1 + 8 * STEPS  # tokens read one by one after a context; the first is a warm-up
_TURNS_OF_A_MODEL = 2.0  # seconds for the turns of a model beyond the least
_GROWTH = 4  # upper bound on the slowdown when the context doubles
_LONG = 0.01  # seconds: a step that is long enough to be timed alone
_TRAINING = 3.0  # seconds of training steps that every model may take

Points = list[Json]


def measure_costs(
    models: Mapping[str, SequenceModel],
    tasks: Mapping[str, AnyTask],
    contexts: Sequence[int] = (),
    seconds: float = 6.0,
) -> dict[str, dict[str, Points]]:
    """Per model and context length: `latency` in seconds, with whether it is `stable`, and the size of the `state` in
    bytes. `tasks`: of the models; one task, but perhaps with different tokenizers.

    Latency is the time for the next token; for tasks that read a source, for an output as long as the source; for
    tasks that read whole rows, for one row, and there is no state. A context is skipped where it exceeds what the model
    can read, or where reading would take more than `seconds` in total.
    """
    found: dict[str, dict[str, Points]] = {name: {"latency": [], "state": []} for name in models}
    timers: dict[tuple[str, int], _Timed] = {}
    with _modes(models, training=False), torch.inference_mode():
        readers = {name: row_reader(tasks[name], model) for name, model in models.items()}
        for context in sorted(contexts or CONTEXTS[_unit(tasks)]):
            for name, model in models.items():
                past = [timer.seconds for (other, _), timer in timers.items() if other == name]
                if _affordable(past, seconds) and (timer := _timer(model, tasks[name], context, readers[name])):
                    timers[name, context] = timer
        chains = [[key for key in timers if key[0] == name] for name in models]  # a longer context is never cheaper
        limit = min(seconds, _TURNS_OF_A_MODEL) * len(models)
        times = take_turns({key: timer.turn for key, timer in timers.items()}, limit, chains)
    doubtful = unsettled(times, chains)
    for (name, context), timer in timers.items():
        point = {"seconds": times[name, context].fastest, "stable": (name, context) not in doubtful}
        found[name]["latency"].append({"context": context} | point)
        if timer.bytes is not None:
            found[name]["state"].append({"context": context, "bytes": timer.bytes})
    return found


def throughput(
    models: Mapping[str, SequenceModel],
    tasks: Mapping[str, AnyTask],
    lengths: Sequence[int] = (),
    tokens: int = TOKENS,
    seconds: float = 3.0,
) -> dict[str, Points]:
    """Training throughput (forward and backward) in tokens per second, by sequence length, in batches of `tokens`, or
    of fewer if these take long.

    Models without gradient descent and lengths that a model cannot read, or that would take too long, are skipped.
    Every model gets at least one turn, and more while they fit into `seconds` per model.
    """
    keep_memory()  # as in training
    found: dict[str, Points] = {name: [] for name in models}
    trained = {name: model for name, model in models.items() if model.descends}
    lengths = sorted(lengths or LENGTHS[_unit(tasks)])
    with _modes(trained, training=True), torch.enable_grad():
        sizes = {
            name: _affordable_rows(model, tasks[name], lengths, tokens, max(seconds, _TRAINING))
            for name, model in trained.items()
        }
        turns = {
            (name, length): partial(_training_step, trained[name], tasks[name], sizes[name][length], length)
            for length in lengths
            for name in trained
            if length in sizes[name]
        }
        times = take_turns(turns, seconds * len(trained), least=1, most=TURNS, agreeing=2)
    for (name, length), taken in times.items():
        read = sizes[name][length] * length
        speed = {"tokens": read, "tokens_per_second": read / taken.fastest, "stable": taken.stable}
        found[name].append({"length": length} | speed)
    return found


def state_bytes(state: State) -> int:
    """Size of a state just returned by `begin`, before any buffers for further tokens are allocated."""
    return sum(t.numel() * t.element_size() for t in flatten_state(state).values())


class _Timed(ABC):
    """A model at one context length, ready to be timed; it has already run one step."""

    steps = STEPS  # per turn
    seconds: float  # time to read the context, or estimated time for all turns
    bytes: int | None  # size of the state

    def __init__(self, model: SequenceModel) -> None:
        self.model, self.clock = model, _clock(model)

    @abstractmethod
    def step(self) -> float: ...

    def turn(self) -> float:
        """Median time of a few steps."""
        return median(self.step() for _ in range(self.steps))

    def warm_up(self) -> float:
        """The first step, which shows how many make a turn; returns the estimated time for all turns."""
        took = self.step()
        self.steps = 1 if took > _LONG else STEPS
        return took * (1 + self.steps * enough([took]))

    def lap(self) -> float:
        """Seconds since the clock was restarted, when all that was begun is done."""
        _finish(self.model)
        return self.clock.lap().seconds


class _TokenTimer(_Timed):
    """Generation: after reading a context, one token per step; after some tokens, again from the end of the context."""

    def __init__(self, model: SequenceModel, inputs: Tensor, context: int) -> None:
        super().__init__(model)
        self.clock.restart()
        self.begun = model.begin(inputs[:, :context])
        self.seconds = self.lap()
        self.bytes = state_bytes(self.begun)
        if not _can_read(model, context + _AFTER):  # at its maximum context: time the last tokens it can read
            assert model.reach is not None
            context = model.reach - _AFTER
            self.begun = model.begin(inputs[:, :context])
        self.following = inputs[:, context : context + _AFTER].split(1, dim=1)
        self.tokens: Iterator[Tensor] = iter(())
        self.warm_up()

    def step(self) -> float:
        token = next(self.tokens, None)
        if token is None:
            self.tokens = iter(self.following)
            _, self.state = self.model(next(self.tokens), self.begun)  # makes room for more tokens: not timed
            token = next(self.tokens)
        self.clock.restart()
        _, self.state = self.model(token, self.state)
        return self.lap()


class _OutputTimer(_Timed):
    """Sequence to sequence: read a source and decode greedily an output of the same length, with batch size 1."""

    def __init__(self, model: SequenceModel, source: Tensor, first: Tensor) -> None:
        super().__init__(model)
        self.source, self.first = source, first
        self.bytes = state_bytes(model.begin(source))
        self.seconds = self.warm_up()

    def step(self) -> float:
        self.clock.restart()
        state, last = self.model.begin(self.source), self.first
        for _ in range(self.source.size(1)):
            logits, state = self.model(last, state)
            last = logits.argmax(-1)
        return self.lap()


class _RowTimer(_Timed):
    """Understanding: predict for a whole row, with batch size 1."""

    bytes = None

    def __init__(self, model: SequenceModel, read: Callable[[Tensor], object], inputs: Tensor) -> None:
        super().__init__(model)
        self.read, self.inputs = read, inputs
        self.seconds = self.warm_up()

    def step(self) -> float:
        self.clock.restart()
        self.read(self.inputs)
        return self.lap()


def _unit(tasks: Mapping[str, AnyTask]) -> LatencyUnit:
    return latency_unit(next(iter(tasks.values())))


def example(task: AnyTask, rows: int, length: int) -> Batch | None:
    """None if the task cannot be measured."""
    return task.example(rows, length) if isinstance(task, MeasuredTask) else None


def _timer(model: SequenceModel, task: AnyTask, context: int, reader: RowReader) -> _Timed | None:
    """None if the model cannot read that much, or the task has no example."""
    if latency_unit(task) == "row":
        batch = example(task, 1, context)
        if batch is None or (reader.longest is not None and context > reader.longest):
            return None
        inputs = batch.inputs if batch.context is None else batch.context
        return _RowTimer(model, reader.read, inputs.to(model.device))
    if latency_unit(task) == "source":
        batch = example(task, 1, context)
        if batch is None or batch.context is None or not _can_read(model, _longest_sequence(model, batch)):
            return None
        return _OutputTimer(model, batch.context.to(model.device), batch.inputs[:, :1].to(model.device))
    batch = example(task, 1, context + _AFTER)
    if batch is None or not _can_read(model, max(context, _AFTER + 1)):
        return None
    return _TokenTimer(model, batch.inputs.to(model.device), context)


def _longest_sequence(model: SequenceModel, batch: Batch) -> int:
    """Longest sequence in tokens: a causal model continues from the context, an encoder-decoder starts afresh."""
    given = 0 if batch.context is None else batch.context.size(1)
    return batch.inputs.size(1) + given if model.joins else max(batch.inputs.size(1), given)


def _affordable(past: Sequence[float], seconds: float) -> bool:
    return not past or sum(past) + _GROWTH * past[-1] <= seconds


def _affordable_rows(
    model: SequenceModel, task: AnyTask, lengths: Sequence[int], tokens: int, seconds: float
) -> dict[int, int]:
    """By sequence length, rows of a training step: of `tokens` if two steps at each length fit into `seconds`, else of
    fewer; where even the fewest take too long, the longest sequences are left out."""
    readable = [length for length in lengths if _can_train(model, task, length)]
    if not readable:
        return {}
    shortest = readable[0]
    rows = max(1, min(tokens, LEAST_TOKENS) // shortest)
    _training_step(model, task, 1, shortest)  # a warm-up
    per_token = max(1e-9, _training_step(model, task, rows, shortest) / (rows * shortest))
    while tokens > LEAST_TOKENS and 2 * tokens * len(readable) * per_token > seconds:
        tokens //= 2
    most = max(1, int(seconds / (tokens * per_token)))
    return {length: max(1, tokens // length) for length in readable[:most]}


def _can_train(model: SequenceModel, task: AnyTask, length: int) -> bool:
    batch = example(task, 1, length)
    return batch is not None and _can_read(model, _longest_sequence(model, batch))


def _training_step(model: SequenceModel, task: AnyTask, rows: int, length: int) -> float:
    batch = example(task, rows, length)
    assert batch is not None
    batch, clock = batch.to(model.device), _clock(model)
    task.loss(model, batch).loss.backward()
    _finish(model)
    seconds = clock.lap().seconds
    model.zero_grad(set_to_none=True)
    return seconds


def _clock(model: SequenceModel) -> Clock:
    """With several threads the waiting of one for another belongs to the time."""
    return Clock("cpu" if torch.get_num_threads() == 1 else "wall", model.device.type)


def _can_read(model: SequenceModel, tokens: int) -> bool:
    return model.reach is None or tokens <= model.reach


def _finish(model: SequenceModel) -> None:
    """Accelerators run asynchronously: wait for them."""
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
