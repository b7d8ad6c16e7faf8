"""Masked language modelling: predict hidden tokens from the context on both sides. Pre-trains encoders without labels.

Windows start anywhere in the text, each preceded by <bos>, and masks are drawn afresh whenever a window is read. Only
masked positions pass through the head. No text is predicted from start to end, so there is no perplexity: the scores
are masked accuracy and pseudo-perplexity.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.core.batch import IGNORE, Batch
from seqloom.core.choice import Choice, part_to_score
from seqloom.core.errors import UserError
from seqloom.core.instance import Instance
from seqloom.core.loss import cross_entropy
from seqloom.core.network import SequenceModel
from seqloom.core.order import shuffled
from seqloom.core.rows import Facts, Json, Row
from seqloom.core.score import Score, Text
from seqloom.core.state import State
from seqloom.core.task import Order, Step, Task, TaskConfig, check_limit
from seqloom.data.stream import TokenStream
from seqloom.layers.linear import Linear
from seqloom.tasks.masked_lm import showing
from seqloom.tasks.masked_lm.instance import instance
from seqloom.tasks.masked_lm.masking import Joints, hide
from seqloom.tasks.masked_lm.phrases import PHRASES
from seqloom.tokenizers import Tokenizer

_SCORED = 2_000_000  # tokens of each split, of a text of more than ten times as many bytes
_PIECES = 100  # scored separately, for paired comparisons of two models
_AT_ONCE = 8192  # tokens per batch in evaluation
_FILLS = 5  # candidates shown per gap
GAP = "<mask>"


class Config(TaskConfig):
    length: int = Field(128, ge=2, description="tokens per window, including <bos>")
    share: float = Field(0.15, gt=0, lt=1, description="share of tokens to mask")
    group: Literal["token", "word"] = Field(
        "token", description="unit of masking; word: whole words, or up to three Chinese characters"
    )
    validation: int = Field(65_536, ge=2, description="tokens of the validation set to score during training")
    scored: int = Field(0, ge=0, description="tokens of each split to score at the end; 0: all")

    shapes = ("texts",)
    defaults: ClassVar[Json] = {"tokenizer.kind": "bpe", "task.length": 128, "train.batch": 16}
    shared: ClassVar[Json] = {"task.validation": 20_000, "task.scored": 200_000, "train.batch": 16}
    whole = True

    @classmethod
    def choose(cls, train: Any, given: Mapping[str, Any]) -> list[Choice]:
        return part_to_score(train.bytes, _SCORED, "bytes of text")

    @property
    def tokens_per_row(self) -> int:
        return self.length

    def tokens_of_step(self, rows: int, total: int) -> int:
        """A window is padded to its full length."""
        return rows * self.length

    def build(self, vocabulary: Tokenizer) -> MaskedLM:
        return MaskedLM(self, vocabulary)


class MaskedLM(Task[TokenStream]):
    name = "masked_lm"
    title = ("masked language modelling", "掩码语言模型")
    protocol_phrases = PHRASES
    ties = True
    encodes = True
    accepts = frozenset({"causal", "bidirectional", "encoder-decoder"})
    scores = (
        Score("loss", ("Loss", "损失"), unit=("nats per masked token", "奈特/被掩词元")),
        Score("masked_accuracy", ("Masked accuracy", "被掩词元准确率"), higher_is_better=True, compared=True),
        Score("pseudo_perplexity", ("Pseudo-perplexity", "伪困惑度"), compared=True),
    )
    metric = "loss"
    baseline_titles: ClassVar[dict[str, Text]] = {"unigram": ("unigram frequencies", "一元词频")}
    latency_unit = "row"

    def __init__(self, config: Config, tokenizer: Tokenizer) -> None:
        self.config, self.tokenizer = config, tokenizer
        self.mask = tokenizer.size  # the id after the tokenizer's own
        self.vocabulary = self.outputs = tokenizer.size + 1
        self.ordinary = np.setdiff1d(np.arange(tokenizer.size), sorted(tokenizer.specials))  # ids that may be masked
        by_token = config.group == "token" or tokenizer.kind == "words"  # one token per word already
        self.joints = None if by_token else Joints.of(tokenizer.size, self._text, tokenizer.specials)

    def embed(self, width: int) -> nn.Module:
        return nn.Embedding(self.vocabulary, width)

    def head(self, width: int) -> nn.Module:
        return Linear(width, self.vocabulary)

    def check_model(self, model: SequenceModel) -> None:
        check_limit(model, "task.length", self.config.length)

    def batches(self, rows: TokenStream, order: Order, carry: bool) -> Iterator[list[Batch]]:
        """Every epoch cuts the text into adjacent windows from a random offset, and shuffles them."""
        size, epoch, skip = self.config.length - 1, 0, order.start
        while True:
            rng = np.random.default_rng((order.seed, epoch))
            first = int(rng.integers(min(size, max(1, len(rows) - size))))
            count = max(1, (len(rows) - first) // size)
            steps = -(-count // order.batch)
            key = int(rng.integers(2**62))
            for step in range(skip, steps):
                chosen = shuffled(np.arange(step * order.batch, (step + 1) * order.batch) % count, count, key)
                draw = np.random.default_rng((order.seed, epoch, step))
                windows = np.stack([self._window(rows, first + int(n) * size) for n in chosen])
                inputs, targets = self._hide(windows, draw)
                real = windows != self.tokenizer.pad
                yield [_batch(inputs[mine], targets[mine], real[mine]) for mine in order.rows()]
            epoch, skip = epoch + 1, max(0, skip - steps)

    def loss(self, model: SequenceModel, batch: Batch, state: State = None) -> Step:
        masked = batch.targets != IGNORE
        logits = self._logits(model, batch, masked)
        return Step(cross_entropy(logits, batch.targets[masked]), int(masked.sum()), tokens=batch.inputs.numel())

    def evaluate(
        self,
        model: SequenceModel,
        rows: TokenStream,
        *,
        naive: Facts | None = None,
        quick: bool = False,
        brief: bool = False,
    ) -> Json:
        """The same tokens are masked every time."""
        most = self.config.validation if quick else self.config.scored or len(rows)
        nats, correct, masked = self._tally(model, rows, min(most, len(rows)))
        loss = float(nats.sum() / masked.sum())
        scores: Json = {
            "loss": loss,
            "masked_accuracy": float(correct.sum() / masked.sum()),
            "pseudo_perplexity": math.exp(min(loss, 700)),
            "tokens": int(masked.sum()),
            "protocol": f"{int(masked.sum()):,} of {min(most, len(rows)):,} tokens masked (share "
            f"{self.config.share:.0%}, by {self.config.group}), windows of {self.config.length} tokens; loss in nats "
            "per masked token, not a perplexity",
        }
        if quick:
            return scores
        pieces = np.array_split(nats, min(_PIECES, len(nats)))
        share = masked.sum() / len(pieces)
        scores["pieces"] = [float(piece.sum() / share) for piece in pieces]
        if naive:
            scores["baselines"] = {"unigram": self._unigram(np.array(naive["counts"], float), rows, most)}
        return scores

    def _predict(self, model: SequenceModel, rows: Iterable[Row], **options: Any) -> Iterator[Row]:
        """Fill the gaps of each text, written <mask>; a text without any is an error."""
        for row in rows:
            yield {"line": row["line"], "text": row["source"], "gaps": self._fill(model, row)}

    @torch.inference_mode()
    def showcase(self, model: SequenceModel, rows: TokenStream) -> Json | None:
        """Some tokens of the text hidden one at a time."""
        own, size = self.tokenizer, self.config.length - 1
        gaps = np.array(showing.places(rows, lambda id: own.decode([id])), np.int64)
        if not len(gaps):
            return None
        starts = (gaps - size // 2).clip(0, max(0, len(rows) - size))
        windows = np.stack([self._window(rows, start)[: len(rows) + 1] for start in starts.tolist()])
        inside = gaps - starts + 1
        tokens = windows[np.arange(len(gaps)), inside]
        texts = [
            showing.around(own.decode(ids[1:n].tolist()), own.decode(ids[n + 1 :].tolist()))
            for ids, n in zip(windows, inside.tolist(), strict=True)
        ]
        windows[np.arange(len(gaps)), inside] = self.mask
        training = model.training
        model.eval()
        guesses = self._guesses(model, windows, inside)
        model.train(training)
        found = [
            {"before": before, "after": after, "gold": own.name(int(token)), "predicted": guessed[:3]}
            for (before, after), token, guessed in zip(texts, tokens, guesses, strict=True)
        ]
        return {"kind": "gaps", "of": len(rows), "rows": found}

    def instance(self, model: SequenceModel, row: Row, vocabulary: Tokenizer, target: str | None = None) -> Instance:
        most = min(self.config.length, model.limit or self.config.length)
        return instance(model, row, vocabulary, target, gap=GAP, mask=self.mask, most=most)

    def naive(self, rows: TokenStream) -> Facts:
        return {"counts": rows.counts.tolist()}

    def typical_length(self, rows: TokenStream) -> int:
        return self.config.length

    def example(self, rows: int, length: int) -> Batch:
        ids = np.random.default_rng(0).integers(4, self.mask, (rows, length))
        inputs, targets = hide(ids, self.config.share, self.mask, np.random.default_rng(1))
        return _batch(inputs, targets, np.ones_like(inputs, bool))

    def _text(self, id: int) -> str:
        return self.tokenizer.decode([id])

    def _hide(self, windows: np.ndarray, draw: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        return hide(windows, self.config.share, self.mask, draw, self.joints, self.tokenizer.specials)

    def _window(self, rows: TokenStream, start: int) -> np.ndarray:
        ids = rows[start : start + self.config.length - 1]
        short = self.config.length - 1 - len(ids)
        return np.concatenate(([self.tokenizer.bos], ids, np.full(short, self.tokenizer.pad)))

    def _logits(self, model: SequenceModel, batch: Batch, masked: Tensor) -> Tensor:
        hidden = model.represent(batch.inputs, batch.mask)
        return model.answer(hidden[masked])

    @torch.inference_mode()
    def _tally(self, model: SequenceModel, rows: TokenStream, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Summed loss, correct predictions and masked tokens of each window."""
        training = model.training
        model.eval()
        starts = range(0, most, self.config.length - 1)
        nats, correct, masked = np.zeros(len(starts)), np.zeros(len(starts)), np.zeros(len(starts))
        at_once = max(1, _AT_ONCE // self.config.length)
        for first in range(0, len(starts), at_once):
            windows = np.stack([self._window(rows, start) for start in starts[first : first + at_once]])
            draw = np.random.default_rng((1, first))
            inputs, labels = self._hide(windows, draw)
            batch = _batch(inputs, labels, windows != self.tokenizer.pad).to(model.device)
            chosen = batch.targets != IGNORE
            logits, targets = self._logits(model, batch, chosen).float(), batch.targets[chosen]
            losses = F.cross_entropy(logits, targets, reduction="none").double().cpu().numpy()
            row = first + chosen.nonzero()[:, 0].cpu().numpy()
            np.add.at(nats, row, losses)
            np.add.at(correct, row, (logits.argmax(-1) == targets).cpu().numpy())
            np.add.at(masked, row, 1)
        model.train(training)
        if not masked.sum():
            raise UserError("the split is too short: none of its tokens was masked; use more text")
        return nats, correct, masked

    def _unigram(self, counts: np.ndarray, rows: TokenStream, most: int) -> Json:
        """Loss of the training set's token frequencies, accuracy of its most frequent token."""
        counts, part = counts[self.ordinary] + 1.0, rows.head(most).counts[self.ordinary]
        loss = float(-(part * np.log(counts / counts.sum())).sum() / max(1, part.sum()))
        correct = float(part[counts.argmax()] / max(1, part.sum()))
        return {"loss": loss, "masked_accuracy": correct, "pseudo_perplexity": math.exp(min(loss, 700))}

    @torch.inference_mode()
    def _fill(self, model: SequenceModel, row: Row) -> list[list[Json]]:
        text = row["source"]
        if GAP not in text:
            raise UserError(f"line {row['line']}: {text[:40]!r}: nothing to fill; write {GAP} where a token is missing")
        first, *others = [self.tokenizer.encode(piece) for piece in text.split(GAP)]
        ids, size = np.concatenate((first, *([self.mask, *piece] for piece in others))), self.config.length - 1
        gaps = np.flatnonzero(ids == self.mask)
        starts = (gaps - size // 2).clip(0, max(0, len(ids) - size))  # a long text is cut around each gap
        windows = np.stack([np.concatenate(([self.tokenizer.bos], ids[start : start + size])) for start in starts])
        return self._guesses(model, windows, gaps - starts + 1)

    def _guesses(self, model: SequenceModel, windows: np.ndarray, gaps: np.ndarray) -> list[list[Json]]:
        """The most likely tokens at one position of each window, with their probabilities."""
        hidden = model.represent(torch.from_numpy(windows).to(model.device))
        at_gaps = hidden[torch.arange(len(gaps)), torch.from_numpy(gaps)]
        ordinary = torch.from_numpy(self.ordinary).to(hidden.device)
        probabilities = model.answer(at_gaps)[:, ordinary].float().softmax(-1)
        best = probabilities.topk(min(_FILLS, probabilities.size(1)))
        return [
            [{"token": self.tokenizer.name(id), "probability": round(p, 6)} for p, id in zip(*pair, strict=True)]
            for pair in zip(best.values.tolist(), ordinary[best.indices].tolist(), strict=True)
        ]


def _batch(inputs: np.ndarray, targets: np.ndarray, real: np.ndarray) -> Batch:
    mask = None if real.all() else torch.from_numpy(real)
    return Batch(torch.from_numpy(inputs), mask, torch.from_numpy(targets), origin="windows")
