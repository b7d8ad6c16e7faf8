"""Classification: assign labels to a text, a pair of texts, or a sequence of measurements.

The model encodes the whole row (`encode`), pooling reduces it to one vector, and a linear layer scores the labels. A
text is read between <bos> and <eos>; two texts are read one after the other. After training, a temperature (Guo et al.
2017) is fitted on the validation set, so that labels predicted with probability 0.8 are correct 8 times out of 10.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.core.batch import IGNORE, Batch, pad
from seqloom.core.batching import batches_by_length
from seqloom.core.choice import Choice
from seqloom.core.errors import UserError
from seqloom.core.instance import Instance
from seqloom.core.network import SequenceModel
from seqloom.core.order import cut_by_length, spread
from seqloom.core.rows import Facts, Json, Row
from seqloom.core.score import Score, Text
from seqloom.core.state import State
from seqloom.core.task import Order, Step, Task
from seqloom.data.shapes.frames.scale import LabelledScale
from seqloom.data.shapes.labelled.vocabulary import LabelledTokenizer
from seqloom.tasks.classification import showing
from seqloom.tasks.classification.inputs import Examples, inputs_of
from seqloom.tasks.classification.instance import instance
from seqloom.tasks.classification.options import Options
from seqloom.tasks.classification.phrases import PHRASES
from seqloom.tasks.classification.pooling import PooledHead
from seqloom.tasks.classification.probing import Contrast, solve_head
from seqloom.tasks.classification.scores import fit_temperature, judge

_PIECES = 100  # scored separately, for paired comparisons of two models
_AT_ONCE = 16_384  # tokens per batch in evaluation
_WINDOW = 256  # rows predicted together
_KEPT = {"start": "only the start is", "end": "only the end is", "both": "only the start and the end are"}


class Classification(Task[Examples]):
    name = "classification"
    title = ("classification", "分类")
    protocol_phrases = PHRASES
    encodes = True
    accepts = frozenset({"causal", "bidirectional", "encoder-decoder"})
    metric = across = "accuracy"
    baseline_titles: ClassVar[dict[str, Text]] = {
        "majority": ("most frequent label", "最常见的类别"),
        "tf-idf": ("bag of words, logistic regression", "词袋 + 逻辑回归"),
        "mean and deviation": ("mean and standard deviation, logistic regression", "均值与标准差 + 逻辑回归"),
    }
    latency_unit = "row"

    def __init__(self, config: Options, known: LabelledTokenizer | LabelledScale) -> None:
        """`known`: the labels, with a tokenizer or a scale."""
        self.config, self.inputs = config, inputs_of(known)
        self.scores = (
            Score("loss", ("Loss", "损失"), unit=("nats per row", "奈特/样本")),
            Score("accuracy", ("Accuracy", "准确率"), True, compared=True),
            Score("macro_f1", ("Macro F1", "宏平均 F1"), True, compared=True),
            Score("micro_f1", ("Micro F1", "微平均 F1"), True, compared=known.multi),
            Score("calibration_error", ("Calibration error", "校准误差")),
        )
        self.labels, self.multi = known.labels, known.multi
        self.tokenizer = known if isinstance(known, LabelledTokenizer) else None
        self.balance: Tensor | None = None  # weight of each label in the loss; None: all 1
        self.longest = config.longest

    @property
    def selected_by(self) -> Score:
        return next(score for score in self.scores if score.name == self.config.select)

    def embed(self, width: int) -> nn.Module:
        return self.inputs.embed(width)

    def head(self, width: int) -> nn.Module:
        return PooledHead(width, len(self.labels), self.config.pooling, self.config.head_dropout)

    def check_rows(self, model: SequenceModel, parts: Mapping[str, Examples]) -> str | None:
        """Report rows that are cut and labels unknown to training; also set the label weights."""
        if self.config.weights == "balanced":
            self.balance = self._balance(parts["train"])
        most = self.config.longest
        if model.limit is not None and most > model.limit:
            raise UserError(
                f"task.longest={most} is longer than the model's context {model.limit}; set "
                f"task.longest={model.limit}, or, for a model from scratch, model.context={most}"
            )
        return self._remarks(parts)

    def _remarks(self, parts: Mapping[str, Examples]) -> str | None:
        remarks = []
        for part, rows in parts.items():
            if cut := int((rows.lengths > self.longest).sum()):
                remarks.append(f"{cut:,} of {len(rows):,} {part} rows are longer than {self.longest} tokens: "
                               f"{_KEPT[self.config.keep]} read (task.longest, task.keep)")  # fmt: skip
            if rows.unknown:
                unseen = ", ".join(f"{label!r} ({count:,})" for label, count in rows.unknown.most_common(3))
                remarks.append(f"the {part} split has labels unknown to training: {unseen}; counted as wrong")
        return "; ".join(remarks) or None

    def batches(self, rows: Examples, order: Order, carry: bool) -> Iterator[list[Batch]]:
        lengths = np.minimum(rows.lengths, self.config.longest)
        every = np.arange(len(rows))
        return batches_by_length(every, lengths, order, self.config.batch_tokens, lambda n: self.collate(rows, n))

    def collate(self, rows: Examples, chosen: np.ndarray) -> Batch:
        """An empty batch becomes one row excluded from the loss: every process must take part in every step."""
        sequences = [self.sequence(rows.parts(n)) for n in chosen]
        inputs, mask = pad(sequences or [self.inputs.empty()])
        targets = self._targets([rows.labels[n] for n in chosen])
        return Batch(inputs, mask, targets, origin=f"rows {[int(n) for n in chosen][:8]} ...")

    def examples(self, rows: Examples) -> Iterator[Batch]:
        """Every row once, the shortest first, for models that are not trained by gradient descent."""
        lengths = np.minimum(rows.lengths, self.config.longest)
        order = np.argsort(lengths, kind="stable")
        return (self.collate(rows, chosen) for chosen in cut_by_length(order, lengths, _AT_ONCE))

    def sequence(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        """What the model reads of a row."""
        return self.inputs.sequence(parts, self.config.longest, self.config.keep)

    def loss(self, model: SequenceModel, batch: Batch, state: State = None) -> Step:
        inputs = self.inputs.word_dropout(batch.inputs, self.config.word_dropout) if model.training else batch.inputs
        logits = model.encode(inputs, batch.mask).float()
        weights = None if self.balance is None else self.balance.to(logits.device)
        smoothing = self.config.smoothing if model.training else 0.0
        if self.multi:
            real = batch.targets[:, 0] != IGNORE
            targets = batch.targets * (1 - smoothing) + 0.5 * smoothing
            losses = F.binary_cross_entropy_with_logits(logits, targets, weights, reduction="none").sum(1)
            loss, count = (losses * real).sum(), int(real.sum())
        else:
            loss = F.cross_entropy(logits, batch.targets, weights, None, IGNORE, None, "sum", smoothing)
            count = int((batch.targets != IGNORE).sum())
        assert batch.mask is not None
        return Step(loss, count, tokens=int(batch.mask.sum()))

    def evaluate(
        self,
        model: SequenceModel,
        rows: Examples,
        *,
        naive: Facts | None = None,
        quick: bool = False,
        brief: bool = False,
    ) -> Json:
        count = min(len(rows), self.config.validation if quick else self.config.scored or len(rows))
        chosen = spread(count, len(rows))
        labels = [rows.labels[n] for n in chosen]
        probabilities = self._probabilities(self._read(model, rows, chosen))
        scores, correct = self._judge(probabilities, labels)
        scores["protocol"] = self._protocol(rows, chosen)
        if quick:
            return {key: scores[key] for key in ("loss", "accuracy", "macro_f1", "protocol")}
        scores["pieces"] = [float(piece.sum() * min(_PIECES, count) / count) for piece in
                            np.array_split(correct.astype(float), min(_PIECES, count))]  # fmt: skip
        show = showing.several if self.multi else showing.single
        scores["showcase"] = show(probabilities, self._targets(labels).numpy(), self.labels, chosen) | {"of": len(rows)}
        if naive:
            frequencies = np.tile(np.array(naive["counts"]) / naive["rows"], (count, 1))
            scores["baselines"] = {"majority": self._judge(frequencies, labels)[0]}
        return scores

    def settle(self, model: SequenceModel, valid: Examples) -> list[Choice]:
        head = model.part(PooledHead)
        if self.config.calibrate and head is not None:
            chosen = self._scored(valid)
            logits, targets = self._read(model, valid, chosen), self._targets([valid.labels[n] for n in chosen])
            head.temperature.fill_(fit_temperature(logits, targets))
        return []

    def solve_head(self, model: SequenceModel, rows: Examples) -> int:
        return solve_head(model, self.examples(rows), self.config.weights == "balanced")

    def contrast(self) -> Contrast:
        return Contrast(self)

    def _predict(self, model: SequenceModel, rows: Iterable[Row], **options: Any) -> Iterator[Row]:
        rows = iter(rows)
        while window := list(islice(rows, _WINDOW)):
            filled = [n for n, row in enumerate(window) if "frames" in row or row["source"]]
            logits = self._predicted(model, [window[n] for n in filled])
            answers = dict(zip(filled, map(self._answer, self._probabilities(logits)), strict=True))
            for n, row in enumerate(window):
                shown = {"text": row["source"]} if "source" in row else {}
                shown |= {"second": row["second"]} if "second" in row else {}
                yield {"line": row["line"]} | shown | answers.get(n, self._empty)

    def _predicted(self, model: SequenceModel, rows: Sequence[Row]) -> Tensor:
        sequences = [self.sequence(self.inputs.parts(row)) for row in rows]
        return self._logits(model, np.array(list(map(len, sequences)), int), sequences.__getitem__)

    def instance(self, model: SequenceModel, row: Row, vocabulary: Any, target: str | None = None) -> Instance:
        own = None if self.tokenizer is None else self.tokenizer.tokenizer
        parts = self.inputs.parts(row)
        whole = len(self.inputs.sequence(parts, sys.maxsize, self.config.keep))
        return instance(model, self.sequence(parts), own, target, labels=self.labels, multi=self.multi, whole=whole)

    def epoch_tokens(self, rows: Examples) -> int:
        return int(np.minimum(rows.lengths, self.config.longest).sum())

    def naive(self, rows: Examples) -> Facts:
        counts = np.bincount([n for labels in rows.labels for n in labels], minlength=len(self.labels))
        return {"counts": counts.tolist(), "rows": len(rows)}

    def baselines(self, train: Examples, parts: Mapping[str, Examples]) -> dict[str, dict[str, Json]]:
        """Logistic regression on a bag of words or on statistics of measurements: often hard to beat."""
        chosen = {part: self._scored(rows) for part, rows in parts.items()}
        targets = self._targets(train.labels).numpy()
        some = {part: (rows, chosen[part]) for part, rows in parts.items()}
        name, found, protocol = self.inputs.baseline(train, targets, some)
        labels = {part: [rows.labels[n] for n in chosen[part]] for part, rows in parts.items()}
        scores = {part: self._judge(probabilities, labels[part])[0] for part, probabilities in found.items()}
        return {part: {name: score | {"protocol": protocol}} for part, score in scores.items()}

    def showcase(self, model: SequenceModel, rows: Examples) -> Json:
        return self.scored_showcase(self.evaluate(model, rows), rows)

    def scored_showcase(self, scores: Json, rows: Examples) -> Json:
        return showing.with_texts(scores["showcase"], lambda some: self.inputs.texts(rows, some))

    def typical_length(self, rows: Examples) -> int:
        return max(1, round(float(np.minimum(rows.lengths, self.config.longest).mean())))

    def example(self, rows: int, length: int) -> Batch:
        inputs = self.inputs.random(rows, length, torch.Generator().manual_seed(0))
        targets = self._targets([[n % len(self.labels)] for n in range(rows)])
        return Batch(inputs, torch.ones(rows, length, dtype=torch.bool), targets, origin="random rows")

    def _judge(self, probabilities: np.ndarray, labels: Sequence[list[int]]) -> tuple[Json, np.ndarray]:
        return judge(probabilities, self._targets(labels).numpy(), self.labels)

    def _targets(self, labels: Sequence[list[int]]) -> Tensor:
        """(rows,) class numbers, IGNORE for a label unknown to training; or (rows, labels) zeros and ones."""
        if not self.multi:
            return torch.tensor([label if label >= 0 else IGNORE for (label,) in labels] or [IGNORE])
        targets = torch.zeros(len(labels), len(self.labels))
        for row, numbers in enumerate(labels):
            targets[row, [n for n in numbers if n >= 0]] = 1.0
        return targets if len(labels) else torch.full((1, len(self.labels)), float(IGNORE))

    def _scored(self, rows: Examples) -> np.ndarray:
        return spread(min(len(rows), self.config.scored or len(rows)), len(rows))

    def _read(self, model: SequenceModel, rows: Examples, chosen: np.ndarray) -> Tensor:
        lengths = np.minimum(rows.lengths[chosen], self.config.longest)
        return self._logits(model, lengths, lambda n: self.sequence(rows.parts(chosen[n])))

    @torch.inference_mode()
    def _logits(self, model: SequenceModel, lengths: np.ndarray, row: Callable[[int], np.ndarray]) -> Tensor:
        """(rows, labels); rows of similar length are prepared and read together."""
        training = model.training
        model.eval()
        found = torch.zeros(len(lengths), len(self.labels))
        for chosen in cut_by_length(np.argsort(lengths, kind="stable"), lengths, _AT_ONCE):
            inputs, mask = pad([row(n) for n in chosen])
            found[chosen] = model.encode(inputs.to(model.device), mask.to(model.device)).float().cpu()
        model.train(training)
        return found

    def _probabilities(self, logits: Tensor) -> np.ndarray:
        return (logits.sigmoid() if self.multi else logits.softmax(-1)).double().numpy()

    def _answer(self, probabilities: np.ndarray) -> Row:
        order = np.argsort(-probabilities, kind="stable")
        every = {self.labels[n]: round(float(probabilities[n]), 6) for n in order}
        if self.multi:
            return {"labels": [self.labels[n] for n in order if probabilities[n] >= 0.5], "probabilities": every}
        best = self.labels[order[0]]
        return {"label": best, "probability": every[best], "probabilities": every}

    @property
    def _empty(self) -> Row:
        fields = ("labels", "probabilities") if self.multi else ("label", "probability", "probabilities")
        return dict.fromkeys(fields) | {"reason": "an empty text"}

    def _balance(self, rows: Examples) -> Tensor:
        counts = torch.tensor(self.naive(rows)["counts"], dtype=torch.float32).clamp(min=1)
        return len(rows) / (len(counts) * counts)

    def _protocol(self, rows: Examples, chosen: np.ndarray) -> str:
        count = len(chosen)
        of = f"{count:,} rows" if count == len(rows) else f"{count:,} of {len(rows):,} rows, evenly spaced"
        cut_off = int((rows.lengths[chosen] > self.longest).sum())
        parts, kept = [of, "loss in nats per row"], _KEPT[self.config.keep]
        parts += [f"{cut_off:,} longer than {self.longest} tokens: {kept} read"] * (cut_off > 0)
        unseen = sum(-1 in labels for labels in (rows.labels[n] for n in chosen))
        parts += [f"{unseen:,} with a label unknown to training, counted as wrong"] * (unseen > 0)
        return "; ".join(parts)
