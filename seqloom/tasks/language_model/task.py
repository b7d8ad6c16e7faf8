"""Language modelling: after each token, what comes next?

The text is one long stream. A model whose state never grows reads long stretches of it in every row, the
state handed from step to step and cut from the gradient: truncated back-propagation through time. A
model with a limit reads windows. Stretches and windows are shuffled: text changes as it goes on, and a
model should not end with whatever stood last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Literal, cast

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from seqloom.core.batch import Batch
from seqloom.core.errors import UserError
from seqloom.core.loss import cross_entropy
from seqloom.core.network import SequenceModel
from seqloom.core.order import shuffled
from seqloom.core.rows import Facts, Json
from seqloom.core.score import Score, Text
from seqloom.core.state import State, scale_gradient
from seqloom.core.task import Order, Step, Task, TaskConfig, check_limit
from seqloom.data.stream import TokenStream
from seqloom.layers.linear import Linear
from seqloom.tasks.language_model.perplexity import baselines, perplexity
from seqloom.tasks.language_model.positions import loss_by_position
from seqloom.tokenizers import Tokenizer

_STREAMS = 32  # rows in which validation is read while training
_STRETCH = 2048  # tokens that a row reads in order, where a state is carried
_PIECES = 100  # in which a whole part is scored, so that two models can be compared piece by piece

Schedule = tuple[Callable[[int], tuple[np.ndarray, int, bool]], int]  # step -> (starts, length, continues); steps


class Config(TaskConfig):
    length: int = Field(48, ge=1, description="tokens that gradients flow back through (mean, if random)")
    stretch: int | None = Field(
        None,
        ge=0,
        description="tokens a row reads in order; 0: its share of all; none: 2048, or a window if no state is carried",
    )
    truncation: Literal["regular", "random", "full"] = Field("regular", description="where the gradient is cut")
    reweight: bool = Field(False, description="random cuts: weigh what is left so that the gradient is unbiased")
    context: int = Field(
        0,
        ge=0,
        description="evaluation: tokens seen at once; 0: the whole stream; with a limit, as many as in training",
    )
    stride: int = Field(0, ge=0, description="evaluation: tokens between two windows; 0: half the context")
    validation: int = Field(65_536, ge=2, description="tokens of the validation part read while training")
    scored: int = Field(0, ge=0, description="tokens of each part that are scored at the end; 0: all")

    shapes = ("texts",)
    shared: ClassVar[Json] = {
        "task.length": 64,
        "task.stretch": _STRETCH,
        "task.validation": 20_000,
        "task.scored": 200_000,
        "train.batch": 8,
    }

    @model_validator(mode="after")
    def _check(self) -> Config:
        if self.reweight and self.truncation != "random":
            raise ValueError("reweight=true belongs to truncation=random")
        if self.stride > self.context > 0:
            raise ValueError(f"stride={self.stride} larger than context={self.context} would leave tokens out")
        return self

    @property
    def tokens_per_row(self) -> int:
        return (self.stretch or _STRETCH) if self.truncation == "full" else self.length

    def build(self, vocabulary: Tokenizer) -> LanguageModel:
        return LanguageModel(self, vocabulary.size, vocabulary.unk)


class LanguageModel(Task[TokenStream]):
    name = "language_model"
    title = ("language modelling", "语言模型")
    verb = "generate"
    perplexity = True
    ties = True
    accepts = frozenset({"causal"})
    scores = (
        Score("loss", ("Loss", "损失"), unit=("nats per token", "奈特/词元")),
        Score("perplexity", ("Perplexity", "困惑度")),
        Score("bits_per_byte", ("Bits per byte", "每字节比特数"), compared=True),
    )
    metric = "loss"
    baseline_titles: ClassVar[dict[str, Text]] = {
        "uniform": ("uniform guess", "均匀猜测"),
        "unigram": ("unigram guess", "按词频猜测"),
        "ngram": ("n-gram", "n-gram"),
    }
    latency_unit = "token"
    binned = None  # tokens are tokens already: what a model that counts asks

    def __init__(self, config: Config, vocabulary: int, unknown: int | None = None) -> None:
        self.config, self.vocabulary, self.unknown = config, vocabulary, unknown
        self.outputs = vocabulary

    def embed(self, width: int) -> nn.Module:
        return nn.Embedding(self.vocabulary, width)

    def head(self, width: int) -> nn.Module:
        return Linear(width, self.vocabulary)

    def check_model(self, model: SequenceModel) -> None:
        """A model with a limit reads windows that fit into it, and carries no state that could be cut."""
        check_limit(model, "task.length", self.config.length)
        check_limit(model, "task.context", self.config.context)
        if model.limit is not None and self.config.truncation != "regular":
            raise UserError(
                f"task.truncation={self.config.truncation} cuts a carried state; this model reads windows and carries "
                "none"
            )

    def batches(self, rows: TokenStream, order: Order, carry: bool) -> Iterator[list[Batch]]:
        epoch, skip = 0, order.start
        while True:
            steps, count = self._schedule(rows, order, epoch, carry)
            for step in range(skip, count):
                starts, length, continues = steps(step)
                yield [_batch(rows, starts[mine], length, continues) for mine in order.rows()]
            epoch, skip = epoch + 1, max(0, skip - count)

    def loss(self, model: SequenceModel, batch: Batch, state: State = None) -> Step:
        if self.config.reweight and model.limit is None:  # separate windows are never cut
            return self._reweighted(model, batch, state)
        logits, state = model(batch.inputs, state, batch.mask)
        return Step(cross_entropy(logits, batch.targets), batch.targets.numel(), state)

    def evaluate(
        self,
        model: SequenceModel,
        rows: TokenStream,
        *,
        naive: Facts | None = None,
        quick: bool = False,
        brief: bool = False,
    ) -> Json:
        """`quick`: a part of it, in parallel streams."""
        context = self.config.context or (model.limit and min(model.limit, self.config.length))
        if quick:
            part = rows.head(self.config.validation)
            return self._honest(perplexity(model, part, context=context, stride=context or 0, streams=_STREAMS), part)
        total, rows = len(rows), rows.head(self.config.scored or len(rows))
        scores = perplexity(model, rows, context=context, stride=self.config.stride, pieces=_PIECES)
        if len(rows) < total:
            scores["protocol"] += f" (the first of {total - 1:,})"
        scores["baselines"] = baselines(rows, self.vocabulary, naive)
        return self._honest(scores, rows)

    def _honest(self, scores: Json, rows: TokenStream) -> Json:
        """What unknown words stand for is not predicted, so with them bits per byte would be too few."""
        if self.unknown is not None and (lost := rows.counts[self.unknown]):
            scores["protocol"] += f", {lost / len(rows):.1%} of them unknown (so bits per byte would be too few)"
            for score in (scores, *scores.get("baselines", {}).values()):
                score["bits_per_byte"] = None
        return scores

    def naive(self, rows: TokenStream) -> Facts:
        """What the naive baselines need to know of the training part."""
        return {"unigram": rows.counts.tolist()}

    def stream(self, rows: TokenStream) -> TokenStream:
        """What a model that counts reads."""
        return rows

    def typical_length(self, rows: TokenStream) -> int:
        return self.config.tokens_per_row

    def example(self, rows: int, length: int) -> Batch:
        ids = torch.randint(self.vocabulary, (rows, length + 1), generator=torch.Generator().manual_seed(0))
        return Batch(ids[:, :-1], None, ids[:, 1:], origin="random tokens")

    def by_position(self, model: SequenceModel, rows: TokenStream, length: int) -> list[Json]:
        return loss_by_position(model, rows, length)

    def _schedule(self, rows: TokenStream, order: Order, epoch: int, carry: bool) -> Schedule:
        """Stretches of text in an order of their own each epoch; every row reads one from end to end, then the next.

        A window is a stretch that one step reads."""
        rng = np.random.default_rng((order.seed, epoch))
        span = self._span(len(rows) - 1, order.batch, carry)
        starts, count = _places(len(rows) - 1, span, rng)
        cuts = self._cuts(span, rng)
        lengths = np.diff(cuts)
        each = len(lengths)  # steps that one stretch takes

        def steps(step: int) -> tuple[np.ndarray, int, bool]:
            turn, part = divmod(step, each)
            return starts(turn * order.batch, order.batch) + cuts[part], int(lengths[part]), part > 0

        return steps, each * max(1, count // order.batch)

    def _span(self, total: int, batch: int, carry: bool) -> int:
        """Tokens of a stretch."""
        stretch, length = self.config.stretch, self.config.length
        if total < 1:
            raise UserError(f"the training part has {total + 1} token; a language model needs at least 2")
        if stretch is None and not carry:
            return min(length, total)
        share = total // batch
        if share < 1:
            raise UserError(
                f"the training part has {total + 1} tokens, too few for train.batch={batch} rows; "
                "use a smaller train.batch or more text"
            )
        span = min(_STRETCH if stretch is None else stretch or share, share)
        if self.config.truncation == "regular" and span > length:
            span -= span % length  # every step is a full one
        return span

    def _cuts(self, span: int, rng: np.random.Generator) -> np.ndarray:
        """Where gradients stop: 0, ..., span."""
        length = self.config.length
        if self.config.truncation == "full":
            return np.array([0, span])
        if self.config.truncation == "regular":
            return np.append(np.arange(0, span, length), span)
        chunk = self._chunk
        ends = np.cumsum(rng.geometric(chunk / length, size=1 + 2 * span // length + 16) * chunk)
        while ends[-1] < span:
            ends = np.r_[ends, ends[-1] + ends]
        return np.concatenate(([0], ends[ends < span], [span]))

    @property
    def _chunk(self) -> int:
        return max(1, self.config.length // 4)

    def _reweighted(self, model: SequenceModel, batch: Batch, state: State) -> Step:
        """Unbiased truncation (Tallec & Ollivier 2017): the gradient may be cut after every chunk, with
        probability c; where it was not, it is multiplied by 1 / (1 - c). Steps differ in length, so the
        gradient is taken per expected token, not per token; the loss that is reported stays what it is."""
        keep = 1 - self._chunk / self.config.length
        loss: Any = 0.0
        for n, (inputs, targets) in enumerate(
            zip(batch.inputs.split(self._chunk, 1), batch.targets.split(self._chunk, 1), strict=True)
        ):
            if n > 0:
                state = scale_gradient(state, 1 / keep)
            logits, state = model(inputs, state)
            loss = loss + cross_entropy(logits, targets)
        share = batch.inputs.size(1) / self.config.length
        return Step(cast(Tensor, scale_gradient(loss, share)), batch.targets.numel(), state)


def _places(total: int, span: int, rng: np.random.Generator) -> tuple[Callable[[int, int], np.ndarray], int]:
    """Where spans begin, shuffled and each epoch shifted: starts(first, how many), and how many there are."""
    shift, key = int(rng.integers(0, total % span + 1)), int(rng.integers(2**62))
    count = (total - shift) // span

    def starts(first: int, size: int) -> np.ndarray:
        return shift + shuffled(np.arange(first, first + size) % count, count, key) * span

    return starts, count


def _batch(rows: TokenStream, starts: np.ndarray, length: int, continues: bool) -> Batch:
    ids = torch.from_numpy(np.stack([rows[start : start + length + 1] for start in starts.tolist()]))
    origin = f"{length} tokens from each of {starts.tolist()}"
    return Batch(ids[:, :-1], None, ids[:, 1:], continues=continues, origin=origin)
