"""Question answering: find the span of a passage that answers a question.

    <bos> question <eos> window of the passage <eos>   ->   start and end scores for each position

A passage longer than a window is read in several overlapping ones. Training points at the answer in windows that
contain it; at prediction, the best span of all windows is the answer. With `no_answer`, the first position means none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.core.batch import IGNORE, Batch, pad
from seqloom.core.batching import batches_by_length
from seqloom.core.errors import UserError
from seqloom.core.instance import Instance
from seqloom.core.network import SequenceModel
from seqloom.core.order import cut_by_length, spread
from seqloom.core.rows import Facts, Json, Row
from seqloom.core.score import Score, Text
from seqloom.core.state import State
from seqloom.core.task import Order, Step, Task, TaskConfig
from seqloom.data.shapes.questions.rows import Asked, QuestionRows
from seqloom.layers.inputs import MatchedEmbedding, PartedEmbedding
from seqloom.layers.linear import Linear
from seqloom.tasks.question_answering import showing
from seqloom.tasks.question_answering.answers import Found, Given, answer_tokens, as_json, asked, text_of
from seqloom.tasks.question_answering.instance import instance
from seqloom.tasks.question_answering.phrases import PHRASES
from seqloom.tasks.question_answering.scores import Rules, agreements, baselines, protocol
from seqloom.tasks.question_answering.spans import best_spans
from seqloom.tasks.question_answering.windows import cut_windows
from seqloom.tokenizers import Tokenizer

_PIECES = 100  # scored separately, for paired comparisons of two models
_AT_ONCE = 8192  # tokens per batch in evaluation
_CHUNK = 256  # questions predicted together
_SPECIALS = 3  # special tokens per window

Asking = Asked | Given
Questions = QuestionRows | Sequence[Asking]


class Config(TaskConfig):
    window: int = Field(256, ge=8, description="maximum tokens read at once: question, passage window, special tokens")
    stride: int = Field(64, ge=0, description="tokens of the passage that adjacent windows share")
    longest_question: int = Field(40, ge=1, description="tokens of a question to read; the rest is cut off")
    longest_answer: int = Field(30, ge=1, description="maximum tokens of a predicted answer")
    no_answer: bool = Field(False, description="also learn when a passage has no answer (SQuAD 2.0)")
    match: bool = Field(True, description="mark passage tokens that occur in the question (Chen et al. 2017)")
    rules: Rules = Field("auto", description="for exact match and F1; auto: cmrc for Chinese questions, else squad")
    batch_tokens: int = Field(4096, ge=0, description="tokens per batch, padding included; 0: train.batch rows")
    validation: int = Field(500, ge=1, description="questions of the validation set to score during training")
    scored: int = Field(0, ge=0, description="questions of each split to score at the end; 0: all")

    shapes = ("questions",)
    whole = True
    defaults: ClassVar[Json] = {"train.batch": 32}
    shared: ClassVar[Json] = {"task.validation": 500, "task.scored": 1000}

    @model_validator(mode="after")
    def _leave_room_for_the_passage(self) -> Config:
        least = self.longest_question + self.stride + _SPECIALS + 1
        if self.window < least:
            raise ValueError(
                f"window={self.window} must be at least {least}: longest_question={self.longest_question}, "
                f"stride={self.stride}, {_SPECIALS} special tokens and one new token of the passage"
            )
        return self

    @property
    def tokens_per_row(self) -> int:
        return self.window

    def tokens_per_step(self, rows: int) -> int:
        return self.batch_tokens or rows * self.window

    def build(self, vocabulary: Tokenizer) -> QuestionAnswering:
        return QuestionAnswering(self, vocabulary)


class Reading(NamedTuple):
    """Predicted answers to each question, best first, and the loss of each window that has a target."""

    answers: list[list[Found]]
    losses: np.ndarray


class QuestionAnswering(Task[QuestionRows]):
    name = "question_answering"
    predict_options = ("n_best",)
    title = ("question answering", "问答")
    protocol_phrases = PHRASES
    encodes = True
    accepts = frozenset({"causal", "bidirectional", "encoder-decoder"})
    scores = (
        Score("f1", ("F1", "F1"), True, compared=True),
        Score("exact", ("Exact match", "完全匹配"), True, compared=True),
        Score("loss", ("Loss", "损失"), unit=("nats per window", "奈特/窗口")),
    )
    metric = across = "f1"
    baseline_titles: ClassVar[dict[str, Text]] = {
        "best sentence": ("best sentence", "最相近的句子"),
        "first sentence": ("first sentence", "第一句"),
    }
    latency_unit = "row"

    def __init__(self, config: Config, tokenizer: Tokenizer) -> None:
        self.config, self.tokenizer = config, tokenizer

    def embed(self, width: int) -> nn.Module:
        size, separator = self.tokenizer.size + 1, self.tokenizer.eos  # one more for the mask of pre-trained weights
        if not self.config.match:
            return PartedEmbedding(size, width, separator)
        return MatchedEmbedding(size, width, separator, _keys(self.tokenizer))

    def head(self, width: int) -> nn.Module:
        return Linear(width, 2)

    def check_rows(self, model: SequenceModel, parts: Mapping[str, QuestionRows]) -> str | None:
        """Report what is cut, split into windows or left out of training; refuse windows that the model cannot read."""
        c, rows = self.config, parts["train"]
        if model.limit is not None and c.window > model.limit:
            raise UserError(
                f"task.window={c.window} is longer than the model's context {model.limit}; set "
                f"model.context={c.window}, or task.window={model.limit}"
            )
        windows = self.windows(rows.lengths)
        targets = self.targets(rows, windows)
        trained = np.unique(windows[targets[:, 0] != IGNORE, 0])
        if not len(trained):
            raise UserError("no training question has its whole answer in one window; see seqloom doctor")
        split, cut = int((np.bincount(windows[:, 0]) > 1).sum()), int((rows.lengths[:, 0] > c.longest_question).sum())
        left = len(rows) - len(trained)
        windows_left = int((targets[:, 0] == IGNORE).sum())
        remarks = {
            f"passages are longer than a window and are split; {len(windows):,} windows in all (task.window)": split,
            "questions are cut after task.longest_question tokens": cut,
            "questions are left out of training: their answer is unknown or not whole in any window"
            + ("" if c.no_answer else ", or they have none (task.no_answer)"): left,
            f"of {len(windows):,} windows are left out of training: they do not contain the answer": windows_left,
        }
        return "; ".join(f"{count:,} {what}" for what, count in remarks.items() if count) or None

    def batches(self, rows: QuestionRows, order: Order, carry: bool) -> Iterator[list[Batch]]:
        windows = self.windows(rows.lengths)
        targets = self.targets(rows, windows)
        trained = np.flatnonzero(targets[:, 0] != IGNORE)
        lengths = self._sizes(rows.lengths, windows)

        def collate(chosen: np.ndarray) -> Batch:
            return self.collate(rows, windows[chosen], targets[chosen])

        return batches_by_length(trained, lengths, order, self.config.batch_tokens, collate)

    def collate(self, rows: Questions, windows: np.ndarray, targets: np.ndarray) -> Batch:
        """Windows with their (first, last) targets; an empty batch becomes one window excluded from the loss."""
        read = [self._input(rows[row], begin, end) for row, begin, end in windows.tolist()]
        own = self.tokenizer
        inputs, mask = pad(read or [np.array([own.bos, own.eos, own.blank, own.eos])])
        labels = torch.from_numpy(targets) if len(read) else torch.full((1, 2), IGNORE)
        origin = f"questions {windows[:8, 0].tolist()} ..."
        return Batch(inputs, None if bool(mask.all()) else mask, labels, origin=origin)

    def loss(self, model: SequenceModel, batch: Batch, state: State = None) -> Step:
        losses, _, _ = self._read(model, batch)
        tokens = batch.inputs.numel() if batch.mask is None else int(batch.mask.sum())
        count = int((batch.targets[:, 0] != IGNORE).sum())
        return Step(losses.sum(), count, tokens=tokens if count else 0)

    def windows(self, lengths: np.ndarray) -> np.ndarray:
        """(question, begin, end) of every window, in tokens of the passage; `lengths` of questions and passages."""
        rooms = self.config.window - _SPECIALS - np.minimum(lengths[:, 0], self.config.longest_question)
        return cut_windows(lengths[:, 1], rooms, self.config.stride)

    def targets(self, rows: Questions, windows: np.ndarray) -> np.ndarray:
        """(first, last) position of the first answer that is whole in each window; IGNORE: excluded from the loss.

        With `no_answer`, the target of a window without an answer is its first position, unless the answer is unknown.
        """
        found = np.full((len(windows), 2), IGNORE, np.int64)
        for n, (row, begin, end) in enumerate(windows.tolist()):
            one = rows[row]
            whole = next(((a, b) for a, b in one.spans if begin <= a and b < end), None)
            if whole is not None:
                shift = self._shift(len(one.asked)) - begin
                found[n] = whole[0] + shift, whole[1] + shift
            elif self.config.no_answer and (one.impossible or one.spans):
                found[n] = 0
        return found

    def evaluate(
        self,
        model: SequenceModel,
        rows: QuestionRows,
        *,
        naive: Facts | None = None,
        quick: bool = False,
        brief: bool = False,
    ) -> Json:
        """`quick`: only task.validation questions; `brief`: without baselines."""
        count = min(len(rows), self.config.validation if quick else self.config.scored or len(rows))
        chosen = [rows[int(n)] for n in spread(count, len(rows))]
        reading = self.read(model, chosen)
        answers = [self._text(one, found) for one, found in zip(chosen, reading.answers, strict=True)]
        exact, f1 = agreements(answers, chosen, self.config.rules)
        scores: Json = {
            "f1": float(f1.mean()),
            "exact": float(exact.mean()),
            "loss": float(reading.losses.mean()) if len(reading.losses) else float("nan"),
            "questions": count,
            "protocol": self._protocol(chosen, len(rows)),
        }
        if quick:
            return scores
        pieces = np.array_split(f1, min(_PIECES, count))
        scores["pieces"] = [float(piece.sum() * len(pieces) / count) for piece in pieces]  # their mean is the score
        if not brief:
            scores["baselines"] = baselines(chosen, self.config.rules)
        return scores

    def _predict(self, model: SequenceModel, rows: Iterable[Row], *, n_best: int = 3, **options: Any) -> Iterator[Row]:
        """Each row with `answer`, its character offsets `start` and `end` (exclusive), `score` and `n_best` answers.

        The score is the sum of start and end scores; with `no_answer`, minus the score of no answer.
        """
        if n_best < 0:
            raise UserError(f"n_best={n_best}: must be 0 (none) or more")
        return self._predicted(model, map(asked, rows), n_best)

    def read(self, model: SequenceModel, chosen: Sequence[Asking], n_best: int = 1) -> Reading:
        """The best spans of all windows of each question; one batch of windows is in memory at a time."""
        lengths = np.array([(len(one.asked), len(one.passage)) for one in chosen], np.int64).reshape(-1, 2)
        windows = self.windows(lengths)
        targets, sizes = self.targets(chosen, windows), self._sizes(lengths, windows)
        found: list[dict[tuple[int, int], float]] = [{} for _ in chosen]
        losses = np.full(len(windows), np.nan)
        training = model.training
        model.eval()
        for part in cut_by_length(np.argsort(sizes, kind="stable"), sizes, _AT_ONCE):
            batch = self.collate(chosen, windows[part], targets[part]).to(model.device)
            with torch.inference_mode():
                batch_losses, scores, allowed = self._read(model, batch)
                spans = self._spans(scores, allowed, max(1, n_best))
            losses[part] = np.where(targets[part, 0] == IGNORE, np.nan, batch_losses.double().cpu().numpy())
            for window, rank in np.ndindex(*spans[0].shape):
                row, begin, _ = windows[part[window]].tolist()
                score, shift = float(spans[0][window, rank]), begin - self._shift(len(chosen[row].asked))
                span = int(spans[1][window, rank]) + shift, int(spans[2][window, rank]) + shift
                if np.isfinite(score):
                    found[row][span] = max(score, found[row].get(span, score))
        model.train(training)
        best = [sorted((Found(s, *span) for span, s in spans.items()), key=lambda f: -f.score) for spans in found]
        return Reading([answers[: max(1, n_best)] for answers in best], losses[~np.isnan(losses)])

    def instance(self, model: SequenceModel, row: Row, vocabulary: Any, target: str | None = None) -> Instance:
        """`target`: the answer to explain, as it stands in the passage; default: the model's own."""
        one = Given.of(asked(row), self.tokenizer)
        first, last = answer_tokens(one, target) if target is not None else self._best(model, one)
        windows = self.windows(np.array([(len(one.asked), len(one.passage))], np.int64))
        whole = next((w for w in windows.tolist() if w[1] <= first and last < w[2]), windows[0].tolist())
        batch = self.collate([one], np.array([whole], np.int64), np.full((1, 2), IGNORE))
        shift = self._shift(len(one.asked)) - whole[1]
        allowed = torch.zeros(batch.inputs.size(1), dtype=torch.bool)
        allowed[shift + whole[1] : shift + whole[2]] = True
        span, given = (first + shift, last + shift), target is not None
        return instance(model, batch.inputs, allowed, span, self.tokenizer, given=given, cut=len(windows) > 1)

    def _best(self, model: SequenceModel, one: Given) -> tuple[int, int]:
        (found,) = self.read(model, [one]).answers
        if not found:
            raise UserError("--text: the model finds no answer in the passage; give one with --target")
        return found[0].first, found[0].last

    def typical_length(self, rows: QuestionRows) -> int:
        return max(1, round(float(self._sizes(rows.lengths, self.windows(rows.lengths)).mean())))

    def showcase(self, model: SequenceModel, rows: QuestionRows) -> Json:
        some = [rows[int(n)] for n in spread(min(showing.QUESTIONS, len(rows)), len(rows))]
        answers = [self._text(one, found) for one, found in zip(some, self.read(model, some).answers, strict=True)]
        return showing.showcase(answers, some, self.config.rules, len(rows))

    def example(self, rows: int, length: int) -> Batch:
        own, question = self.tokenizer, length // 5
        draw = torch.Generator().manual_seed(0)
        ids = torch.randint(own.blank, own.size, (rows, max(length, 4)), generator=draw)
        ids = ids.masked_fill(ids == own.eos, own.size - 1)
        ids[:, 0], ids[:, question + 1], ids[:, -1] = own.bos, own.eos, own.eos
        return Batch(ids, None, torch.full((rows, 2), question + 2), origin="random tokens")

    def _read(self, model: SequenceModel, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """The loss of each window, (B,); start and end scores, (B, T, 2); where an answer may be, (B, T)."""
        scores = model.encode(batch.inputs, batch.mask)
        ends = (batch.inputs == self.tokenizer.eos).int()
        ends[:, 0] = 0  # what begins the question may be the same token
        allowed = (ends.cumsum(1) == 1) & (ends == 0)  # after the question's end, before the passage's
        valid = allowed.clone()
        valid[:, 0] |= self.config.no_answer
        logits = scores.masked_fill(~valid[..., None], -torch.inf)
        losses = F.cross_entropy(logits, batch.targets, ignore_index=IGNORE, reduction="none")  # (B, 2)
        return losses.mean(1), scores, allowed

    def _spans(self, scores: Tensor, allowed: Tensor, count: int) -> tuple[np.ndarray, ...]:
        starts, ends = scores.unbind(-1)
        best, first, last = best_spans(starts, ends, allowed, self.config.longest_answer, count)
        if self.config.no_answer:
            best = best - (starts[:, :1] + ends[:, :1])
        return best.double().cpu().numpy(), first.cpu().numpy(), last.cpu().numpy()

    def _input(self, one: Asking, begin: int, end: int) -> np.ndarray:
        own, question = self.tokenizer, one.asked[: self.config.longest_question]
        return np.concatenate(([own.bos], question, [own.eos], one.passage[begin:end], [own.eos]))

    def _shift(self, length: int) -> int:
        """Where the passage begins after a question of `length` tokens."""
        return 2 + min(length, self.config.longest_question)

    def _sizes(self, lengths: np.ndarray, windows: np.ndarray) -> np.ndarray:
        """Tokens of each window, including question and special tokens."""
        question = np.minimum(lengths[windows[:, 0], 0], self.config.longest_question)
        found: np.ndarray = windows[:, 2] - windows[:, 1] + question + _SPECIALS
        return found

    def _text(self, one: Asking, found: list[Found]) -> str:
        if not found or (self.config.no_answer and found[0].score <= 0):
            return ""
        return text_of(one, found[0])

    def _protocol(self, chosen: Sequence[Asking], total: int) -> str:
        c = self.config
        of = "questions" if len(chosen) == total else f"of {total:,} questions, evenly spaced"
        none = sum(one.impossible for one in chosen)
        without = f", {none:,} of them without an answer" if none else ""
        return (
            f"exact match and F1 (0 to 1) {protocol(chosen, c.rules)}; {len(chosen):,} {of}{without}; "
            f"windows of {c.window} tokens, overlapping by {c.stride}; answers of at most {c.longest_answer} tokens; "
            "loss in nats, mean of start and end, over windows with the answer" + (" or none" if c.no_answer else "")
        )

    def _predicted(self, model: SequenceModel, rows: Iterator[Row], n_best: int) -> Iterator[Row]:
        while chunk := list(islice(rows, _CHUNK)):
            chosen = [Given.of(row, self.tokenizer) for row in chunk]
            for row, one, found in zip(chunk, chosen, self.read(model, chosen, n_best).answers, strict=True):
                given = {name: value for name, value in row.items() if name != "context"}
                best: Json = {"answer": "", "start": None, "end": None, "score": None}
                answers = [as_json(one, answer) for answer in found]
                if answers:
                    nothing = self.config.no_answer and found[0].score <= 0
                    best |= {"score": found[0].score} if nothing else answers[0]
                cut = {"cut": True} if len(one.asked) > self.config.longest_question else {}
                yield given | best | ({"n_best": answers[:n_best]} if n_best else {}) | cut


def _keys(tokenizer: Tokenizer) -> list[int]:
    """Equal for tokens that differ only in case and surrounding spaces; 0 for those without a letter or digit."""
    names = [tokenizer.name(id).strip().lower() for id in range(tokenizer.size)]
    known: dict[str, int] = {}
    counted = [
        known.setdefault(name, len(known) + 1) if id not in tokenizer.specials and any(map(str.isalnum, name)) else 0
        for id, name in enumerate(names)
    ]
    return [*counted, 0]
