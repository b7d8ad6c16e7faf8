"""Task: what is asked of a model. It turns rows into batches, predictions into a loss and into scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

from torch import Tensor, nn

from seqloom.core.backbone import Kind
from seqloom.core.batch import Batch
from seqloom.core.config import Strict
from seqloom.core.errors import UserError
from seqloom.core.network import Lesson, SequenceModel
from seqloom.core.state import State

Row = dict[str, Any]


class Step(NamedTuple):
    """One piece of training: the *sum* of losses, how many there were, the state to hand on, and what was read."""

    loss: Tensor
    count: int  # type: ignore[assignment]
    state: State = None
    tokens: int | None = None  # that the budget counts; None: as many as there were losses


@dataclass(frozen=True)
class Order:
    """Which examples come when: a pure function of these numbers, so resuming is knowing the step.

    `batch` rows make one optimiser step over all processes; this process takes them in `accumulate`
    pieces. The same seed gives the same global batches whatever the world size and the accumulation.
    """

    batch: int
    seed: int = 0
    accumulate: int = 1
    rank: int = 0
    world: int = 1
    start: int = 0  # optimiser steps already done

    def __post_init__(self) -> None:
        if self.batch % (self.accumulate * self.world):
            raise UserError(
                f"train.batch={self.batch} must be a multiple of processes x train.accumulate "
                f"= {self.world} x {self.accumulate}"
            )

    def rows(self) -> list[slice]:
        """This process's pieces of the global batch."""
        size = self.batch // (self.accumulate * self.world)
        first = self.rank * self.accumulate
        return [slice((first + i) * size, (first + i + 1) * size) for i in range(self.accumulate)]


class TaskConfig(Strict):
    """The options of one task; each file in tasks/ has one subclass, named Config."""

    reads: ClassVar[str]  # the shape of its data: a file in materials/
    defaults: ClassVar[dict[str, Any]] = {}  # what suits this task, whatever the model: {"train.batch": 64, ...}
    shared: ClassVar[dict[str, Any]] = {}  # what a comparison sets so that all models read the same batches
    probes: ClassVar[tuple[dict[str, Any], ...]] = ()  # settings with which `Task.probe` is tried on new data
    whole: ClassVar[bool] = False  # rows are seen whole: a model's context, unless given, is the longest row's

    @property
    def tokens_per_row(self) -> int:
        """Most tokens of one row in one training step."""
        return 1

    def tokens_per_step(self, rows: int) -> int:
        """Most tokens of one training step of so many rows."""
        return rows * self.tokens_per_row

    def build(self, tokenizer: Any) -> Task:
        raise NotImplementedError


class Task(ABC):
    name: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]  # what a row must have
    accepts: ClassVar[frozenset[Kind]]
    metric: ClassVar[str]
    unit: ClassVar[str] = ""  # of the metric: nats per token
    higher_is_better: ClassVar[bool] = False
    verb: ClassVar[str] = "predict"  # the command that uses what was learned
    waits: ClassVar[Literal["token", "source", "row"]] = "token"  # its user waits for one more token, for what becomes
    # of a whole source, or for the answer to a row
    surprises: ClassVar[bool] = True  # its loss is that of tokens in their order, so its exponential is a perplexity
    writes: ClassVar[bool] = True  # its head scores the tokens that are read, so that one table can serve both
    encodes: ClassVar[bool] = False  # it sees every sequence whole, and nothing is written

    def check_verb(self, verb: str) -> None:
        if verb != self.verb:
            raise UserError(f"a {self.name} run does not {verb}; use seqloom {self.verb}")

    def check(self, kind: Kind) -> None:
        if kind not in self.accepts:
            wanted = " or ".join(sorted(self.accepts))
            raise UserError(f"{self.name} needs a model that is {wanted}; this one is {kind}")

    def check_rows(self, model: SequenceModel, parts: Mapping[str, Any]) -> str | None:
        """Refuse parts (train, valid, ...) that the model cannot read; what is worth a line about the rest."""
        return None

    @abstractmethod
    def embed(self, width: int) -> nn.Module: ...

    @abstractmethod
    def head(self, width: int) -> nn.Module: ...

    @abstractmethod
    def batches(self, rows: Any, order: Order, carry: bool) -> Iterator[list[Batch]]:
        """For ever, from step `order.start`: the pieces of each optimiser step.

        `carry`: the model's state may be handed from one batch to the next.
        """

    def stream(self, rows: Any) -> Any:
        """What a model that counts reads, in order: len() and slices of ids."""
        return rows

    def lessons(self, rows: Any) -> Iterator[Lesson]:
        """Every example once, for a model that solves equations."""
        raise UserError(f"{self.name} has no numbers to solve equations from; choose a model that learns by descent")

    @abstractmethod
    def loss(self, model: SequenceModel, batch: Batch, state: State = None) -> Step: ...

    @abstractmethod
    def evaluate(self, model: SequenceModel, rows: Any, **options: Any) -> dict[str, Any]:
        """Scores with their protocol; `self.metric` is among the keys."""

    def settle(self, model: SequenceModel, valid: Any) -> None:
        """What is fitted on the validation part once training is over, beside the weights."""
        return

    def predict(self, model: SequenceModel, rows: Iterable[Row], **how: Any) -> Iterator[Row]:
        """For each row, in order, what the model makes of it, as JSON."""
        raise UserError(f"a {self.name} run makes no predictions; use seqloom {self.verb}")

    def pictures(self, model: SequenceModel, rows: Iterable[Row], **how: Any) -> Iterator[dict[str, Any]]:
        """For each row what a chart of its prediction shows."""
        raise UserError(f"a {self.name} run has nothing to draw; leave --chart out")

    def refuse(self, how: Mapping[str, Any]) -> None:
        """Options of `predict` that this task has no use for."""
        if how:
            raise UserError(f"{', '.join(how)}: a {self.name} run has no such option")

    def align(self, model: SequenceModel, source: str, target: str | None = None) -> Any:
        """Where in a source the model looks while it writes a target (none: its own)."""
        raise UserError(f"a {self.name} run has no source and no output to align; seqloom explain needs a run that has")

    def naive(self, rows: Any) -> dict[str, Any]:
        """Facts of the training part that the naive baselines need, as JSON."""
        return {}

    def baselines(self, train: Any, parts: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Naive baselines that need the training part itself, scored on each part: {part: {name: scores}}."""
        return {}

    @property
    def shown(self) -> dict[str, bool]:
        """Scores that people read beside the metric, the chief one first; and whether higher is better."""
        return {}

    def typical_length(self, rows: Any) -> int:
        """Tokens of one training row, as they mostly are: the length at which work is counted."""
        return 1

    def flops(self, model: SequenceModel, length: int) -> float:
        """Of one token that counts in training, forward, in rows of that length."""
        return model.flops(length)

    def sample(self, model: SequenceModel, rows: Any) -> dict[str, str] | None:
        """What a model makes of a row: prompt, text and wanted; None: nothing to show."""
        return None

    def example(self, rows: int, length: int) -> Batch | None:
        """Inputs of that size with targets, always the same, to measure what models cost; None: not measured."""
        return None

    def probe(self, model: SequenceModel, rows: Any) -> Any:
        """Change the future: does anything move that was said before it? As evaluate.leakage.Leak; None: there is no
        future in such rows."""
        return None

    def by_position(self, model: SequenceModel, rows: Any, length: int) -> list[dict[str, Any]] | None:
        """Mean loss by the tokens read so far, up to `length` and beyond: [{"from": 1, "to": 2, "loss": 3.0}, ...]."""
        return None
