"""Masked language modelling: some tokens are hidden, guess them from both sides. How an encoder learns without labels.

Windows of the text begin anywhere, each with a mark in front, and what is hidden is drawn anew whenever a window is
read. Only the hidden positions pass through the head. The score is not a perplexity, for no text is predicted from its
beginning to its end: it is called masked accuracy and pseudo-perplexity.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.core.batch import IGNORE, Batch
from seqloom.core.errors import UserError
from seqloom.core.loss import cross_entropy
from seqloom.core.network import SequenceModel
from seqloom.core.order import shuffled
from seqloom.core.rows import Facts, Json, Row
from seqloom.core.score import Score, Text
from seqloom.core.state import State
from seqloom.core.task import Order, Step, Task, TaskConfig, check_limit, refuse_options
from seqloom.data.stream import TokenStream
from seqloom.layers.linear import Linear
from seqloom.tasks.masked_lm.masking import Joints, hide
from seqloom.tokenizers import Tokenizer

_PIECES = 100  # in which a part is scored, so that two models can be compared piece by piece
_AT_ONCE = 8192  # tokens of a batch that is only read
_FILLS = 5  # most likely tokens shown for a gap
GAP = "<mask>"


class Config(TaskConfig):
    length: int = Field(128, ge=2, description="tokens of a window, the mark in front counted")
    share: float = Field(0.15, gt=0, lt=1, description="share of tokens that are hidden")
    group: Literal["token", "word"] = Field(
        "token", description="what is hidden at once; word: whole words, of Chinese up to three characters"
    )
    validation: int = Field(65_536, ge=2, description="tokens of the validation part read while training")
    scored: int = Field(0, ge=0, description="tokens of each part that are read to be scored at the end; 0: all")

    shapes = ("texts",)
    defaults: ClassVar[Json] = {"tokenizer.kind": "bpe", "task.length": 128, "train.batch": 16}
    shared: ClassVar[Json] = {"task.validation": 20_000, "task.scored": 200_000, "train.batch": 16}
    whole = True

    @property
    def tokens_per_row(self) -> int:
        return self.length

    def build(self, vocabulary: Tokenizer) -> MaskedLM:
        return MaskedLM(self, vocabulary)


class MaskedLM(Task[TokenStream]):
    name = "masked_lm"
    title = ("masked language modelling", "掩码语言模型")
    ties = True
    encodes = True
    accepts = frozenset({"causal", "bidirectional", "encoder-decoder"})
    scores = (
        Score("loss", ("Loss", "损失"), unit=("nats per masked token", "奈特/被掩词元")),
        Score("masked_accuracy", ("Masked accuracy", "被掩词元准确率"), higher_is_better=True, compared=True),
        Score("pseudo_perplexity", ("Pseudo-perplexity", "伪困惑度"), compared=True),
    )
    metric = "loss"
    baseline_titles: ClassVar[dict[str, Text]] = {"unigram": ("unigram guess", "按词频猜测")}
    latency_unit = "row"

    def __init__(self, config: Config, tokenizer: Tokenizer) -> None:
        self.config, self.tokenizer = config, tokenizer
        self.mask = tokenizer.size  # one id more than there are tokens
        self.vocabulary = self.outputs = tokenizer.size + 1
        apart = config.group == "token" or tokenizer.kind == "words"  # words are whole already
        self.joints = None if apart else Joints.of(tokenizer.size, lambda id: tokenizer.decode([id]))

    def embed(self, width: int) -> nn.Module:
        return nn.Embedding(self.vocabulary, width)

    def head(self, width: int) -> nn.Module:
        return Linear(width, self.vocabulary)

    def check_model(self, model: SequenceModel) -> None:
        check_limit(model, "task.length", self.config.length)

    def batches(self, rows: TokenStream, order: Order, carry: bool) -> Iterator[list[Batch]]:
        """Windows of an epoch begin one after the other from a place of its own, in any order."""
        size, epoch, skip = self.config.length - 1, 0, order.start
        while True:
            rng = np.random.default_rng((order.seed, epoch))
            first = int(rng.integers(min(size, max(1, len(rows) - size))))
            count = max(1, (len(rows) - first) // size)
            steps = -(-count // order.batch)
            key = int(rng.integers(2**62))
            for step in range(skip, steps):
                chosen = shuffled(np.arange(step * order.batch, (step + 1) * order.batch) % count, count, key)
                drawn = np.random.default_rng((order.seed, epoch, step))
                windows = np.stack([self._window(rows, first + int(n) * size) for n in chosen])
                seen, asked = hide(windows, self.config.share, self.mask, drawn, self.joints)
                yield [_batch(seen[mine], asked[mine], windows[mine] != self.tokenizer.pad) for mine in order.rows()]
            epoch, skip = epoch + 1, max(0, skip - steps)

    def loss(self, model: SequenceModel, batch: Batch, state: State = None) -> Step:
        asked = batch.targets != IGNORE
        logits = self._answers(model, batch, asked)
        return Step(cross_entropy(logits, batch.targets[asked]), int(asked.sum()), tokens=batch.inputs.numel())

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
        nats, right, asked = self._scored(model, rows, min(most, len(rows)))
        loss = float(nats.sum() / asked.sum())
        scores: Json = {
            "loss": loss,
            "masked_accuracy": float(right.sum() / asked.sum()),
            "pseudo_perplexity": math.exp(min(loss, 700)),
            "tokens": int(asked.sum()),
            "protocol": f"{int(asked.sum()):,} hidden of {min(most, len(rows)):,} tokens ({self.config.share:.0%}, by "
            f"{self.config.group}), windows of {self.config.length}; nats per masked token, not a perplexity",
        }
        if quick:
            return scores
        pieces = np.array_split(nats, min(_PIECES, len(nats)))
        share = asked.sum() / len(pieces)
        scores["pieces"] = [float(piece.sum() / share) for piece in pieces]
        if naive:
            scores["baselines"] = {"unigram": self._unigram(np.array(naive["counts"], float), rows, most)}
        return scores

    def predict(self, model: SequenceModel, rows: Iterable[Row], **options: Any) -> Iterator[Row]:
        """Fills the gaps of a text, written <mask>; a text without one is an error."""
        refuse_options(self.name, options)
        for row in rows:
            yield {"line": row["line"], "text": row["source"], "gaps": self._fill(model, row["source"])}

    def naive(self, rows: TokenStream) -> Facts:
        return {"counts": rows.counts.tolist()}

    def typical_length(self, rows: TokenStream) -> int:
        return self.config.length

    def example(self, rows: int, length: int) -> Batch:
        ids = np.random.default_rng(0).integers(4, self.mask, (rows, length))
        seen, asked = hide(ids, self.config.share, self.mask, np.random.default_rng(1))
        return _batch(seen, asked, np.ones_like(seen, bool))

    def _window(self, rows: TokenStream, begin: int) -> np.ndarray:
        ids = rows[begin : begin + self.config.length - 1]
        short = self.config.length - 1 - len(ids)
        return np.concatenate(([self.tokenizer.bos], ids, np.full(short, self.tokenizer.pad)))

    def _answers(self, model: SequenceModel, batch: Batch, asked: Tensor) -> Tensor:
        hidden = model.represent(batch.inputs, batch.mask)
        return model.answer(hidden[asked])

    @torch.inference_mode()
    def _scored(self, model: SequenceModel, rows: TokenStream, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Nats, right guesses and questions of each window."""
        training = model.training
        model.eval()
        begins = range(0, most, self.config.length - 1)
        nats, right, asked = np.zeros(len(begins)), np.zeros(len(begins)), np.zeros(len(begins))
        at_once = max(1, _AT_ONCE // self.config.length)
        for start in range(0, len(begins), at_once):
            windows = np.stack([self._window(rows, begin) for begin in begins[start : start + at_once]])
            seen, wanted = hide(windows, self.config.share, self.mask, np.random.default_rng((1, start)), self.joints)
            batch = _batch(seen, wanted, windows != self.tokenizer.pad).to(model.device)
            there = batch.targets != IGNORE
            logits, targets = self._answers(model, batch, there).float(), batch.targets[there]
            each = F.cross_entropy(logits, targets, reduction="none").double().cpu().numpy()
            row = start + there.nonzero()[:, 0].cpu().numpy()
            np.add.at(nats, row, each)
            np.add.at(right, row, (logits.argmax(-1) == targets).cpu().numpy())
            np.add.at(asked, row, 1)
        model.train(training)
        if not asked.sum():
            raise UserError("the part is too short: no token of it was hidden, so there is nothing to score")
        return nats, right, asked

    def _unigram(self, counts: np.ndarray, rows: TokenStream, most: int) -> Json:
        """Always the most frequent token, or its share of the training part."""
        counts = counts + 1.0
        part = rows.head(most).counts[4:]
        loss = float(-(part * np.log(counts[4:] / counts[4:].sum())).sum() / max(1, part.sum()))
        right = float(part[counts[4:].argmax()] / max(1, part.sum()))
        return {"loss": loss, "masked_accuracy": right, "pseudo_perplexity": math.exp(min(loss, 700))}

    @torch.inference_mode()
    def _fill(self, model: SequenceModel, text: str) -> list[list[Json]]:
        if GAP not in text:
            raise UserError(f"{text[:40]!r}: nothing to fill; write {GAP} where a token is missing")
        first, *others = [self.tokenizer.encode(piece) for piece in text.split(GAP)]
        ids, size = np.concatenate((first, *([self.mask, *piece] for piece in others))), self.config.length - 1
        gaps = np.flatnonzero(ids == self.mask)
        begins = (gaps - size // 2).clip(0, max(0, len(ids) - size))  # of a long text, what stands around each gap
        windows = np.stack([np.concatenate(([self.tokenizer.bos], ids[begin : begin + size])) for begin in begins])
        hidden = model.represent(torch.from_numpy(windows).to(model.device))
        asked = hidden[torch.arange(len(gaps)), torch.from_numpy(gaps - begins + 1)]
        chances = model.answer(asked)[:, 4 : self.mask].float().softmax(-1)
        best = chances.topk(min(_FILLS, chances.size(1)))
        return [
            [{"token": self.tokenizer.name(id + 4), "probability": round(p, 6)} for p, id in zip(*pair, strict=True)]
            for pair in zip(best.values.tolist(), best.indices.tolist(), strict=True)
        ]


def _batch(seen: np.ndarray, asked: np.ndarray, real: np.ndarray) -> Batch:
    mask = None if real.all() else torch.from_numpy(real)
    return Batch(torch.from_numpy(seen), mask, torch.from_numpy(asked), origin="windows")
