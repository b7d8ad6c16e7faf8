"""Task: what a model is trained to do. It turns rows into batches, and predictions into a loss and scores.

Methods that one feature needs from some tasks only (alignments, charts, timing, counting) are small protocols in that
feature's folder, not members of this class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from torch import Tensor, nn

from seqloom.core.backbone import Kind
from seqloom.core.batch import Batch
from seqloom.core.choice import Choice, Demand, Start, fine_tuning
from seqloom.core.config import Strict
from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Facts, Json, Row, Rows
from seqloom.core.score import Score, Text
from seqloom.core.state import State

R = TypeVar("R", bound=Rows)


class Step(NamedTuple):
    """The result of one forward pass on one micro-batch."""

    loss: Tensor  # *summed* over all targets
    count: int  # type: ignore[assignment]  # number of targets
    state: State = None  # passed on to the next batch
    tokens: int | None = None  # tokens counted towards the budget; None: same as `count`


@dataclass(frozen=True)
class Order:
    """The order of the examples: a pure function of these numbers, so resuming only needs the step.

    An optimiser step takes `batch` rows over all processes; each process splits its share into `accumulate`
    micro-batches. The same seed gives the same global batches whatever the world size and the accumulation.
    """

    batch: int
    seed: int = 0
    accumulate: int = 1
    rank: int = 0
    world: int = 1
    start: int = 0  # optimiser steps already completed

    def __post_init__(self) -> None:
        if self.batch % (self.accumulate * self.world):
            raise UserError(
                f"train.batch={self.batch} must be a multiple of processes x train.accumulate "
                f"= {self.world} x {self.accumulate}"
            )

    def rows(self) -> list[slice]:
        """This process's micro-batches, as slices of the global batch."""
        size = self.batch // (self.accumulate * self.world)
        first = self.rank * self.accumulate
        return [slice((first + i) * size, (first + i + 1) * size) for i in range(self.accumulate)]


class TaskConfig(Strict):
    """The options of one task; each folder in tasks/ has one subclass, named Config."""

    shapes: ClassVar[tuple[str, ...]]  # supported shapes of data (data/shapes/), the default one first
    defaults: ClassVar[Json] = {}  # default settings for this task, with any model: {"train.batch": 64, ...}
    shared: ClassVar[Json] = {}  # settings fixed in a comparison, so that all models get the same batches
    own: ClassVar[frozenset[str]] = frozenset()  # options that an entry of a comparison may set for itself
    across: ClassVar[Json] = {}  # settings of a comparison of models with different tokenizers, above the shared ones
    whole: ClassVar[bool] = False  # rows are read whole: the model's context defaults to the longest row

    @classmethod
    def choose(cls, train: Any, given: Mapping[str, Any]) -> list[Choice]:
        """Settings that suit this training set (a part), where the user gives none; `given`: settings by path, those
        of the user and those already chosen."""
        return []

    @classmethod
    def demand(cls, train: Any, settings: Mapping[str, Any]) -> Demand | None:
        """What is asked of the model on this training set, with these settings; None: its defaults are kept."""
        return None

    @classmethod
    def tune(cls, start: Start, train: Any, settings: Mapping[str, Any]) -> list[Choice]:
        """Settings to tune pretrained weights, which replace those for a model that learns from nothing."""
        return fine_tuning(start, epochs=3.0)

    @classmethod
    def shape(cls, options: Mapping[str, object]) -> str:
        """The shape of data that the task reads with these options."""
        return cls.shapes[0]

    @classmethod
    def reading(cls, shape: str) -> Json:
        """The options with which the task reads this shape of data, where it is not the default one."""
        return {}

    @property
    def next_token(self) -> bool:
        """Whether the output layer predicts the next token, so that all such tasks can take it from each other."""
        return False

    @property
    def tokens_per_row(self) -> int:
        """Maximum tokens per row in one training step."""
        return 1

    def tokens_per_step(self, rows: int) -> int:
        """Maximum tokens in one training step of `rows` rows."""
        return rows * self.tokens_per_row

    def tokens_of_step(self, rows: int, total: int) -> int:
        """The same where the training set has `total` tokens, none of which is read twice in a step."""
        return min(self.tokens_per_step(rows), total)

    def build(self, vocabulary: Any) -> AnyTask:
        raise NotImplementedError


class Task(ABC, Generic[R]):
    name: ClassVar[str]
    title: ClassVar[Text]
    verb: ClassVar[str] = "predict"  # the command that runs a trained model
    baseline_titles: ClassVar[Mapping[str, Text]] = {}  # titles of the naive baselines, by name
    protocol_phrases: ClassVar[Sequence[Text]] = ()  # in both languages; {} stands for a number or a name
    perplexity: ClassVar[bool] = False  # the loss is the mean token NLL, so exp(loss) is the perplexity
    ties: ClassVar[bool] = False  # input and output share a vocabulary, so their embeddings can be tied (model.tie)
    predict_options: ClassVar[tuple[str, ...]] = ()  # keywords of `predict`, each an option of `seqloom predict`
    outputs: int = 1  # output size of the head, per position
    encodes: bool = False  # it uses `encode` on complete sequences and generates nothing
    accepts: frozenset[Kind]
    scores: tuple[Score, ...]  # in printing order
    metric: str  # name of the score that runs are ranked by
    across: str | None = None  # the score by which models with different tokenizers are ranked; None: there is none

    @property
    def main_score(self) -> Score:
        """The declaration of the metric."""
        return next(score for score in self.scores if score.name == self.metric)

    @property
    def selected_by(self) -> Score:
        """The validation score that selects the best checkpoint."""
        return self.main_score

    def check_kind(self, kind: Kind) -> None:
        if kind not in self.accepts:
            wanted = " or ".join(sorted(self.accepts))
            raise UserError(f"{self.name} needs a model that is {wanted}; this one is {kind}")

    def check_model(self, model: SequenceModel) -> None:
        """Raise if the model's context is too short for this task."""

    def check_rows(self, model: SequenceModel, parts: Mapping[str, R]) -> str | None:
        """Raise if the model cannot read a part (train, valid, ...); returns a note on truncated or dropped rows."""
        return None

    def check_across(self, parts: Mapping[str, R]) -> None:
        """Raise if scores of this task, on these parts, do not compare with those of another tokenizer."""
        if self.across is None:
            raise UserError(
                f"models with different tokenizers: scores of {self.name} depend on the tokenizer; compare models with "
                "the same one"
            )

    @abstractmethod
    def embed(self, width: int) -> nn.Module: ...

    @abstractmethod
    def head(self, width: int) -> nn.Module: ...

    @abstractmethod
    def batches(self, rows: R, order: Order, carry: bool) -> Iterator[list[Batch]]:
        """Endless, from step `order.start`: the micro-batches of each optimiser step.

        `carry`: the model's state may be passed from one batch to the next.
        """

    @abstractmethod
    def loss(self, model: SequenceModel, batch: Batch, state: State = None) -> Step: ...

    @abstractmethod
    def evaluate(
        self, model: SequenceModel, rows: R, *, naive: Facts | None = None, quick: bool = False, brief: bool = False
    ) -> Json:
        """Scores with their protocol; `self.metric` is among the keys.

        `naive`: facts for the baselines; `quick`: a subset of the rows, during training; `brief`: the metric only,
        without slow scores.
        """

    def predict(self, model: SequenceModel, rows: Iterable[Row], **options: Any) -> Iterator[Row]:
        """The model's prediction for each row, in order, as JSON; `options`: those in `predict_options`."""
        self.check_options(options)
        return self._predict(model, rows, **options)

    def check_options(self, given: Iterable[str]) -> None:
        """Raise on options of `predict` that the task does not have."""
        if strange := [name for name in given if name not in self.predict_options]:
            own = ", ".join(map(as_typed, self.predict_options))
            raise UserError(
                f"{as_typed(strange[0])}: a {self.name} run has no such option; "
                + (f"the options of its predictions: {own}" if own else "its predictions have no options")
            )

    def _predict(self, model: SequenceModel, rows: Iterable[Row], **options: Any) -> Iterator[Row]:
        raise UserError(f"a {self.name} run does not predict; use seqloom {self.verb}")

    def epoch_tokens(self, rows: R) -> int:
        """Tokens in one pass over the training set, as `Step` counts them."""
        return rows.tokens

    def naive(self, rows: R) -> Facts:
        """Statistics of the training set for the naive baselines, as JSON."""
        return {}

    def baselines(self, train: R, parts: Mapping[str, R]) -> dict[str, dict[str, Json]]:
        """Scores of baselines that need the training set itself: {part: {name: scores}}."""
        return {}


def as_typed(option: str) -> str:
    """A keyword as an option of the command line."""
    return f"--{option.replace('_', '-')}"


def check_limit(model: SequenceModel, option: str, wanted: int) -> None:
    """Raise if a window does not fit into the model's context."""
    if model.limit is not None and wanted > model.limit:
        raise UserError(
            f"{option}={wanted} is longer than the model's context {model.limit}; set model.context={wanted}"
        )


AnyTask = Task[Any]
