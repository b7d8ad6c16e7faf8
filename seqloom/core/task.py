"""Task: what is asked of a model. It turns rows into batches, predictions into a loss and into scores.

What a single feature asks of some tasks only (to align, to draw, to be measured, to be counted) is a small protocol in
that feature's folder, not a member of this class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from torch import Tensor, nn

from seqloom.core.backbone import Kind
from seqloom.core.batch import Batch
from seqloom.core.config import Strict
from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Facts, Json, Row, Rows
from seqloom.core.score import Score, Text
from seqloom.core.state import State

R = TypeVar("R", bound=Rows)


class Step(NamedTuple):
    """One training step on one piece of a batch."""

    loss: Tensor  # the *sum* over all targets
    count: int  # type: ignore[assignment]  # how many targets there were
    state: State = None  # to hand to the next batch
    tokens: int | None = None  # that count towards the budget; None: as many as targets


@dataclass(frozen=True)
class Order:
    """Which examples come when: a pure function of these numbers, so resuming only needs the step.

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
    """The options of one task; each folder in tasks/ has one subclass, named Config."""

    shapes: ClassVar[tuple[str, ...]]  # that its data may have, the usual one first: folders in data/shapes/
    defaults: ClassVar[Json] = {}  # settings that suit this task, whatever the model: {"train.batch": 64, ...}
    shared: ClassVar[Json] = {}  # settings of a comparison, so that all models read the same batches
    whole: ClassVar[bool] = False  # rows are read whole: unless given, a model's context is that of the longest row

    @classmethod
    def shape(cls, options: Mapping[str, object]) -> str:
        """The shape of the data that a task with these options reads."""
        return cls.shapes[0]

    @property
    def tokens_per_row(self) -> int:
        """Most tokens of one row in one training step."""
        return 1

    def tokens_per_step(self, rows: int) -> int:
        """Most tokens of one training step with `rows` rows."""
        return rows * self.tokens_per_row

    def build(self, vocabulary: Any) -> AnyTask:
        raise NotImplementedError


class Task(ABC, Generic[R]):
    name: ClassVar[str]
    title: ClassVar[Text]
    verb: ClassVar[str] = "predict"  # the command that uses a trained run
    baseline_titles: ClassVar[Mapping[str, Text]] = {}  # of the naive baselines, by name
    perplexity: ClassVar[bool] = False  # its loss is the mean surprise of tokens in order, so exp(loss) is a perplexity
    ties: ClassVar[bool] = False  # its head scores the tokens that are read, so one table can serve both (model.tie)
    outputs: int = 1  # numbers that the head gives for each position
    encodes: bool = False  # it sees every sequence whole (`encode`), and generates nothing
    accepts: frozenset[Kind]
    scores: tuple[Score, ...]  # in the order in which they are printed
    metric: str  # the score that runs are judged by

    @property
    def main_score(self) -> Score:
        """The metric, as it was declared."""
        return next(score for score in self.scores if score.name == self.metric)

    def check_kind(self, kind: Kind) -> None:
        if kind not in self.accepts:
            wanted = " or ".join(sorted(self.accepts))
            raise UserError(f"{self.name} needs a model that is {wanted}; this one is {kind}")

    def check_model(self, model: SequenceModel) -> None:
        """Refuse a model whose context is shorter than what this task reads."""

    def check_rows(self, model: SequenceModel, parts: Mapping[str, R]) -> str | None:
        """Refuse parts (train, valid, ...) that the model cannot read; a remark on what is cut or left out."""
        return None

    @abstractmethod
    def embed(self, width: int) -> nn.Module: ...

    @abstractmethod
    def head(self, width: int) -> nn.Module: ...

    @abstractmethod
    def batches(self, rows: R, order: Order, carry: bool) -> Iterator[list[Batch]]:
        """Endlessly, from step `order.start`: the pieces of each optimiser step.

        `carry`: the model's state may be handed from one batch to the next.
        """

    @abstractmethod
    def loss(self, model: SequenceModel, batch: Batch, state: State = None) -> Step: ...

    @abstractmethod
    def evaluate(
        self, model: SequenceModel, rows: R, *, naive: Facts | None = None, quick: bool = False, brief: bool = False
    ) -> Json:
        """Scores with their protocol; `self.metric` is among the keys.

        `naive`: facts for the baselines; `quick`: a part only, while training; `brief`: the metric, without what takes
        long.
        """

    def predict(self, model: SequenceModel, rows: Iterable[Row], **options: Any) -> Iterator[Row]:
        """For each row, in order, the model's prediction, as JSON."""
        raise UserError(f"a {self.name} run makes no predictions; use seqloom {self.verb}")

    def naive(self, rows: R) -> Facts:
        """Facts of the training part that the naive baselines need, as JSON."""
        return {}

    def baselines(self, train: R, parts: Mapping[str, R]) -> dict[str, dict[str, Json]]:
        """Baselines that need the training part itself, scored on each part: {part: {name: scores}}."""
        return {}


def refuse_options(task: str, options: Mapping[str, object]) -> None:
    """Options of `predict` that a task does not have."""
    if options:
        raise UserError(f"{', '.join(options)}: a {task} run has no such option")


def check_limit(model: SequenceModel, option: str, wanted: int) -> None:
    """A model with a limit reads windows that fit into it."""
    if model.limit is not None and wanted > model.limit:
        raise UserError(
            f"{option}={wanted} is longer than the model's context {model.limit}; set model.context={wanted}"
        )


AnyTask = Task[Any]  # a task of any rows
