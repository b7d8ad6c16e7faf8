"""Language modelling: predict each token from the tokens before it.

The text is one long stream. A model whose state never grows reads long stretches of it in every row; the state is
carried from step to step but detached: truncated back-propagation through time. A model with a limited context reads
windows. Stretches and windows are shuffled, because text drifts and a model should not end up fitted to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Literal, cast

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from seqloom.core.batch import Batch
from seqloom.core.choice import Choice, part_to_score
from seqloom.core.errors import UserError
from seqloom.core.instance import Instance
from seqloom.core.loss import cross_entropy
from seqloom.core.network import SequenceModel
from seqloom.core.order import shuffled
from seqloom.core.rows import Facts, Json, Row
from seqloom.core.score import Score, Text
from seqloom.core.state import State, scale_gradient
from seqloom.core.task import Order, Step, Task, TaskConfig, check_limit
from seqloom.data.stream import TokenStream
from seqloom.layers.linear import Linear
from seqloom.tasks.language_model.instance import instance
from seqloom.tasks.language_model.perplexity import baselines, perplexity
from seqloom.tasks.language_model.phrases import PHRASES
from seqloom.tasks.language_model.positions import loss_by_position
from seqloom.tokenizers import Tokenizer

_STREAMS = 32  # parallel rows that validation text is read in during training
_STRETCH = 2048  # tokens that a row reads in order when state is carried
_SCORED = 2_000_000  # tokens of each split, of a text of more than ten times as many bytes
_PIECES = 100  # scored separately, for paired comparisons of two models

Schedule = tuple[Callable[[int], tuple[np.ndarray, int, bool]], int]  # step -> (starts, length, continues); steps


class Config(TaskConfig):
    length: int = Field(48, ge=1, description="tokens that gradients flow back through; random truncation: on average")
    stretch: int | None = Field(
        None,
        ge=0,
        description="tokens that a row reads in order; 0: an equal share of the text; none: 2048, or one window if no "
        "state is carried",
    )
    truncation: Literal["regular", "random", "full"] = Field(
        "regular", description="where gradients are cut: every length tokens, at random, or only between stretches"
    )
    reweight: bool = Field(False, description="random truncation: rescale gradients so that they are unbiased")
    context: int = Field(
        0,
        ge=0,
        description="evaluation: tokens of context; 0: the whole stream, or task.length if the model has a limit",
    )
    stride: int = Field(0, ge=0, description="evaluation: tokens between window starts; 0: half the context")
    validation: int = Field(65_536, ge=2, description="tokens of the validation set to score during training")
    scored: int = Field(0, ge=0, description="tokens of each split to score at the end; 0: all")
    scored_bytes: int = Field(
        0, ge=0, description="the same in bytes of text, which is the same text for every tokenizer; 0: no such limit"
    )

    shapes = ("texts",)
    across: ClassVar[Json] = {"task.scored": 0, "task.scored_bytes": 200_000}
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
            raise ValueError("reweight=true needs truncation=random")
        if self.stride > self.context > 0:
            raise ValueError(f"stride={self.stride} larger than context={self.context} would skip tokens; lower stride")
        return self

    @property
    def next_token(self) -> bool:
        return True

    @classmethod
    def choose(cls, train: Any, given: Mapping[str, Any]) -> list[Choice]:
        return part_to_score(train.bytes, _SCORED, "bytes of text")

    @property
    def tokens_per_row(self) -> int:
        return (self.stretch or _STRETCH) if self.truncation == "full" else self.length

    def tokens_of_step(self, rows: int, total: int) -> int:
        return rows * min(self.tokens_per_row, total)

    def build(self, vocabulary: Tokenizer) -> LanguageModel:
        return LanguageModel(self, vocabulary.size, vocabulary.unk, vocabulary.byte_counts)


class LanguageModel(Task[TokenStream]):
    name = "language_model"
    title = ("language modelling", "语言模型")
    protocol_phrases = PHRASES
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
        "uniform": ("uniform distribution", "均匀分布"),
        "unigram": ("unigram frequencies", "一元词频"),
        "ngram": ("n-gram", "n-gram"),
    }
    latency_unit = "token"
    binned = None  # inputs are tokens already; read by count-based models

    def __init__(
        self, config: Config, vocabulary: int, unknown: int | None = None, byte_counts: np.ndarray | None = None
    ) -> None:
        """`byte_counts`: bytes of text that each id stands for, where that is known."""
        self.config, self.vocabulary, self.unknown, self.byte_counts = config, vocabulary, unknown, byte_counts
        self.outputs = vocabulary
        self.across = "bits_per_byte" if byte_counts is not None else None

    def embed(self, width: int) -> nn.Module:
        return nn.Embedding(self.vocabulary, width)

    def head(self, width: int) -> nn.Module:
        return Linear(width, self.vocabulary)

    def check_model(self, model: SequenceModel) -> None:
        """With a limited context, windows must fit into it, and there is no carried state to truncate."""
        check_limit(model, "task.length", self.config.length)
        check_limit(model, "task.context", self.config.context)
        if model.limit is not None and self.config.truncation != "regular":
            raise UserError(
                f"task.truncation={self.config.truncation} needs a carried state, but this model reads separate "
                "windows; use task.truncation=regular"
            )

    def check_across(self, parts: Mapping[str, TokenStream]) -> None:
        super().check_across(parts)
        unknown = {} if self.unknown is None else {part: rows.counts[self.unknown] for part, rows in parts.items()}
        if part := next((part for part, count in unknown.items() if count and part != "train"), None):
            raise UserError(
                f"models with different tokenizers: {unknown[part]:,} tokens of the {part} set are unknown, so bits "
                "per byte cannot be told; use -o tokenizer.kind=bpe or bytes"
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
        if self.config.reweight and model.limit is None:  # separate windows are never truncated
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
        """`quick`: only the first task.validation tokens, in parallel streams."""
        context = self.config.context or (model.limit and min(model.limit, self.config.length))
        if quick:
            part = rows.head(self.config.validation)
            return self._check_unknown(
                perplexity(model, part, context=context, stride=context or 0, streams=_STREAMS), part
            )
        total, rows = len(rows), self._scored(rows)
        bounded = self.byte_counts if self.config.scored_bytes else None  # else the stream may not fit into memory
        scores = perplexity(
            model, rows, context=context, stride=self.config.stride, pieces=_PIECES, byte_counts=bounded
        )
        if len(rows) < total:
            scores["protocol"] += f" (out of {total - 1:,}, from the start)"
        scores["baselines"] = baselines(rows, self.vocabulary, naive)
        return self._check_unknown(scores, rows)

    def _scored(self, rows: TokenStream) -> TokenStream:
        """The beginning of a split, as far as it is scored."""
        rows = rows.head(self.config.scored or len(rows))
        most = self.config.scored_bytes
        if not most or most >= rows.bytes or self.byte_counts is None:
            return rows
        ends = np.cumsum(self.byte_counts[rows[: min(len(rows), most + 1)]])
        count = int(np.searchsorted(ends, most, side="right"))
        return TokenStream.of(rows[:count], int(ends[count - 1]) if count else 0, self.vocabulary)

    def _check_unknown(self, scores: Json, rows: TokenStream) -> Json:
        """Unknown tokens hide the bytes they replace: bits per byte would come out too low, so none is given."""
        if self.unknown is not None and (unknown := rows.counts[self.unknown]):
            scores["protocol"] += f", {unknown / len(rows):.1%} of them unknown (bits per byte omitted: too low)"
            for score in (scores, *scores.get("baselines", {}).values()):
                score["bits_per_byte"] = None
            scores.pop("pieces_of", None)
        return scores

    def naive(self, rows: TokenStream) -> Facts:
        """Token counts of the training set, for the unigram baseline."""
        return {"unigram": rows.counts.tolist()}

    def instance(self, model: SequenceModel, row: Row, vocabulary: Tokenizer, target: str | None = None) -> Instance:
        return instance(model, row, vocabulary, target)

    def stream(self, rows: TokenStream) -> TokenStream:
        """The tokens that a count-based model learns from."""
        return rows

    def typical_length(self, rows: TokenStream) -> int:
        return self.config.tokens_per_row

    def example(self, rows: int, length: int) -> Batch:
        ids = torch.randint(self.vocabulary, (rows, length + 1), generator=torch.Generator().manual_seed(0))
        return Batch(ids[:, :-1], None, ids[:, 1:], origin="random tokens")

    def by_position(self, model: SequenceModel, rows: TokenStream, length: int) -> list[Json]:
        return loss_by_position(model, rows, length)

    def _schedule(self, rows: TokenStream, order: Order, epoch: int, carry: bool) -> Schedule:
        """Stretches of text, reshuffled every epoch; each row reads one from start to end, then the next.

        A window is a stretch that is read in one step."""
        rng = np.random.default_rng((order.seed, epoch))
        span = self._span(len(rows) - 1, order.batch, carry)
        starts, count = _span_starts(len(rows) - 1, span, rng)
        cuts = self._cuts(span, rng)
        lengths = np.diff(cuts)
        each = len(lengths)  # steps per stretch

        def steps(step: int) -> tuple[np.ndarray, int, bool]:
            turn, part = divmod(step, each)
            return starts(turn * order.batch, order.batch) + cuts[part], int(lengths[part]), part > 0

        return steps, each * max(1, count // order.batch)

    def _span(self, total: int, batch: int, carry: bool) -> int:
        """Tokens per stretch."""
        stretch, length = self.config.stretch, self.config.length
        if total < 1:
            raise UserError(f"the training set has {total + 1} token(s); a language model needs at least 2")
        if stretch is None and not carry:
            return min(length, total)
        share = total // batch
        if share < 1:
            raise UserError(
                f"the training set has {total + 1} tokens, too few for train.batch={batch} rows; "
                "use a smaller train.batch or more text"
            )
        span = min(_STRETCH if stretch is None else stretch or share, share)
        if self.config.truncation == "regular" and span > length:
            span -= span % length  # all steps have full length
        return span

    def _cuts(self, span: int, rng: np.random.Generator) -> np.ndarray:
        """Where gradients are truncated: 0, ..., span."""
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
        """Unbiased truncation (Tallec & Ollivier 2017): after every chunk the gradient is cut with probability c;
        where it is not, it is multiplied by 1 / (1 - c). Steps differ in length, so gradients are averaged over the
        expected number of tokens, not the actual one; the reported loss is unaffected."""
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


def _span_starts(total: int, span: int, rng: np.random.Generator) -> tuple[Callable[[int, int], np.ndarray], int]:
    """Start positions of spans, shuffled and shifted every epoch: starts(first, size), and the number of spans."""
    shift, key = int(rng.integers(0, total % span + 1)), int(rng.integers(2**62))
    count = (total - shift) // span

    def starts(first: int, size: int) -> np.ndarray:
        return shift + shuffled(np.arange(first, first + size) % count, count, key) * span

    return starts, count


def _batch(rows: TokenStream, starts: np.ndarray, length: int, continues: bool) -> Batch:
    ids = torch.from_numpy(np.stack([rows[start : start + length + 1] for start in starts.tolist()]))
    origin = f"{length} tokens from each of {starts.tolist()}"
    return Batch(ids[:, :-1], None, ids[:, 1:], continues=continues, origin=origin)
