"""Text to text: read a source, then generate the target, with any model.

    state = model.begin(source);  logits, _ = model(target so far, state)

An encoder-decoder sees the whole source; a causal model (GPT, LSTM, ...) reads it as the start of one sequence. Pairs
of similar length share a batch, to limit padding. Targets are padded on the right, after every position that counts, so
they need no mask.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.core.batch import IGNORE, Batch, pad
from seqloom.core.batching import batches_by_length
from seqloom.core.choice import Choice, Demand
from seqloom.core.errors import UserError
from seqloom.core.instance import Instance
from seqloom.core.loss import cross_entropy
from seqloom.core.network import SequenceModel
from seqloom.core.order import cut_by_length, spread
from seqloom.core.rows import Facts, Json, Row
from seqloom.core.score import Score, Text
from seqloom.core.state import State
from seqloom.core.task import Order, Step, Task, TaskConfig
from seqloom.data.shapes.pairs.rows import PairRows
from seqloom.data.shapes.pairs.vocabulary import TokenizerPair
from seqloom.decode.alignment import Alignment
from seqloom.decode.beam import Hypothesis
from seqloom.decode.decoding import Decoding
from seqloom.layers.linear import Linear
from seqloom.tasks.translation import choices, lengths, showing
from seqloom.tasks.translation.forgetting import forgetting
from seqloom.tasks.translation.nearest import nearest, searched
from seqloom.tasks.translation.phrases import PHRASES
from seqloom.tasks.translation.scores import lead, score_texts
from seqloom.tasks.translation.sources import AT_ONCE
from seqloom.tasks.translation.writer import Found, Writer

_PIECES = 100  # scored separately, for paired comparisons of two models
_EXAMPLES = 256  # pairs per batch of `examples`

_LOSS = (
    Score("loss", ("Loss", "损失"), unit=("nats per target token", "奈特/目标词元")),
    Score("perplexity", ("Perplexity", "困惑度")),
)
_ACCURACY = Score("accuracy", ("Token accuracy", "词元准确率"), higher_is_better=True)  # teacher forcing
_EXACT = Score("exact", ("Exact match", "完全匹配"), higher_is_better=True, compared=True)
_SCORES = {  # by task.metric, the main score first
    "translation": (
        Score("bleu", ("BLEU", "BLEU"), higher_is_better=True, compared=True, most=100.0),
        Score("chrf", ("chrF", "chrF"), higher_is_better=True, compared=True, most=100.0),
    ),
    "summary": (
        Score("rougeL", ("ROUGE-L", "ROUGE-L"), higher_is_better=True, compared=True, most=100.0),
        Score("rouge1", ("ROUGE-1", "ROUGE-1"), higher_is_better=True, compared=True, most=100.0),
        Score("rouge2", ("ROUGE-2", "ROUGE-2"), higher_is_better=True, compared=True, most=100.0),
    ),
    "transcription": (Score("error_rate", ("Error rate, %", "错误率（%）"), compared=True),),
}


class Config(TaskConfig):
    batch_tokens: int = Field(2048, ge=0, description="tokens per batch on its longer side; 0: train.batch rows")
    longest: int = Field(
        256, ge=2, description="pairs with more tokens on either side are left out of training; fit reports how many"
    )
    reverse: bool = Field(False, description="read the source backwards (Sutskever et al. 2014)")
    smoothing: float = Field(0.1, ge=0, lt=1, description="label smoothing: probability spread over all other tokens")
    sampling: float = Field(0.0, ge=0, lt=1, description="scheduled sampling: share of inputs that are predictions")
    metric: Literal["translation", "summary", "transcription"] = Field(
        "translation", description="scores to report: BLEU and chrF, ROUGE, or token error rate"
    )
    bleu: Literal["auto", "13a", "zh", "char", "intl", "ja-mecab", "ko-mecab"] = Field(
        "auto", description="tokenisation for BLEU; auto: zh for Chinese, char for Japanese, else 13a"
    )
    beams: int = Field(5, ge=1, le=256, description="hypotheses kept in beam search; 1: greedy search")
    length_penalty: float = Field(1.0, ge=0, le=10, description="log-probabilities are divided by length to this power")
    tune_length: bool = Field(False, description="choose length_penalty on the validation set after training")
    min_new: int = Field(0, ge=0, le=4096, description="minimum tokens of an output")
    max_new: int = Field(
        0, ge=0, le=4096, description="maximum tokens of an output; 0: twice the source length plus 10"
    )
    no_repeat: int = Field(0, ge=0, le=4096, description="size of n-grams that an output may not repeat; 0: no limit")
    select: Literal["loss", "accuracy"] = Field(
        "loss", description="validation score that selects the checkpoint: loss, or accuracy of the most likely token"
    )
    validation: int = Field(1000, ge=1, description="pairs of the validation set to score during training")
    scored: int = Field(0, ge=0, description="pairs of each split to score at the end; 0: all")

    shapes = ("pairs",)
    defaults: ClassVar[Json] = {"train.batch": 64}
    shared: ClassVar[Json] = {"task.validation": 500, "task.scored": 1000, "task.select": "loss",
                             "task.tune_length": False}  # fmt: skip

    @classmethod
    def choose(cls, train: Any, given: Mapping[str, Any]) -> list[Choice]:
        return choices.choose(train, given)

    @classmethod
    def demand(cls, train: Any, settings: Mapping[str, Any]) -> Demand:
        return choices.demand(train, settings)

    @property
    def tokens_per_row(self) -> int:
        return 2 * self.longest

    def tokens_per_step(self, rows: int) -> int:
        return self.batch_tokens or rows * self.longest

    def build(self, vocabulary: TokenizerPair) -> Translation:
        return Translation(self, vocabulary)


class Translation(Task[PairRows]):
    name = "translation"
    predict_options = (
        "beams", "length_penalty", "min_new", "max_new", "no_repeat", "n_best", "temperature", "top_k", "top_p", "seed",
        "alignments",
    )  # fmt: skip
    title = ("text to text", "文本到文本")
    protocol_phrases = PHRASES
    perplexity = True
    ties = True
    accepts = frozenset({"causal", "encoder-decoder"})
    metric = "loss"
    baseline_titles: ClassVar[dict[str, Text]] = {
        "copy": ("copy of the source", "照抄源文本"),
        "frequent": ("most frequent target", "最常见的目标"),
        "nearest": ("nearest training pair", "最相近的训练对"),
        "lead-3": ("first three sentences", "前三句"),
    }
    latency_unit = "source"

    def __init__(self, config: Config, tokenizers: TokenizerPair) -> None:
        self.config, self.tokenizers = config, tokenizers
        self.scores = (*_LOSS, *_SCORES[config.metric], _EXACT)
        self.vocabulary = self.outputs = tokenizers.target.size
        self.writer = self._writer(config.length_penalty)

    def _writer(self, penalty: float) -> Writer:
        c = self.config
        how = Decoding(beams=c.beams, length_penalty=penalty, min_new=c.min_new, no_repeat=c.no_repeat)
        return Writer(self.tokenizers, how, c.max_new, c.reverse)

    @property
    def selected_by(self) -> Score:
        return _ACCURACY if self.config.select == "accuracy" else self.main_score

    def embed(self, width: int) -> nn.Module:
        return nn.Embedding(self.tokenizers.size, width)

    def head(self, width: int) -> nn.Module:
        return Linear(width, self.vocabulary)

    def check_rows(self, model: SequenceModel, parts: Mapping[str, PairRows]) -> str | None:
        """Training pairs must fit the model's context, and pairs to score must be readable at all."""
        short = self._short(parts["train"])
        if not len(short):
            raise UserError(f"task.longest={self.config.longest}: every pair is longer; raise it")
        for part, rows in parts.items():
            trained = part == "train"
            lengths = rows.lengths[short] if trained else rows.lengths
            longest = int(lengths.sum(1).max() if model.joins else lengths.max())
            most = model.limit if trained else model.reach
            if most is not None and longest > most:
                raise UserError(
                    f"the {part} split has a pair of {longest:,} tokens, longer than the model's context {most:,}; "
                    f"set model.context={longest}, or {'lower task.longest' if trained else 'leave long pairs out'}"
                )
        count = len(parts["train"])
        remark = f"{count - len(short):,} of {count:,} pairs have more than {self.config.longest} tokens on a side"
        return f"{remark} and are left out of training (task.longest)" if len(short) < count else None

    def batches(self, rows: PairRows, order: Order, carry: bool) -> Iterator[list[Batch]]:
        longer, budget = rows.lengths.max(1), self.config.batch_tokens
        return batches_by_length(self._short(rows), longer, order, budget, lambda chosen: self.collate(rows, chosen))

    def examples(self, rows: PairRows) -> Iterator[Batch]:
        """Every pair that is not too long once, in order, for models that are not trained by gradient descent."""
        short = self._short(rows)
        return (self.collate(rows, short[n : n + _EXAMPLES]) for n in range(0, len(short), _EXAMPLES))

    def spellings(self) -> list[str]:
        """The text of each id that the model reads, with the space before it; empty for special tokens."""
        own, blank = self.tokenizers.source, " " if self.tokenizers.source.kind == "words" else ""
        texts = [own.decode([id]) for id in range(own.size)]
        return [""] * self.tokenizers.shift + [blank + text if text else "" for text in texts]

    def collate(self, rows: PairRows, chosen: np.ndarray) -> Batch:
        """An empty batch becomes one row excluded from the loss: every process must take part in every step."""
        sources = [self.writer.source(rows.source(n)) for n in chosen] or [self.writer.source(np.zeros(1, np.int64))]
        targets = [rows.target(n) for n in chosen] or [np.zeros(1, np.int64)]
        context, context_mask = pad(sources)
        written, mask = pad(targets)
        inputs = F.pad(written, (1, -1), value=self.tokenizers.target.bos)
        labels = written.masked_fill(~mask, IGNORE) if len(chosen) else torch.full_like(inputs, IGNORE)
        real = None if bool(context_mask.all()) else context_mask
        return Batch(inputs, mask, labels, context, real, origin=f"pairs {[int(n) for n in chosen][:8]} ...")

    def loss(self, model: SequenceModel, batch: Batch, state: State = None) -> Step:
        assert batch.context is not None
        state = model.begin(batch.context, batch.context_mask)
        inputs = batch.inputs
        if self.config.sampling and model.training:
            inputs = self._guessed(model, batch, state)
        logits, _ = model(inputs, state)
        loss = cross_entropy(logits, batch.targets, self.config.smoothing if model.training else 0.0)
        return Step(loss, int((batch.targets != IGNORE).sum()))

    def evaluate(
        self,
        model: SequenceModel,
        rows: PairRows,
        *,
        naive: Facts | None = None,
        quick: bool = False,
        brief: bool = False,
    ) -> Json:
        """`quick`: only the loss, on task.validation pairs; `brief`: without decoding."""
        chosen = self._scored(rows, self.config.validation if quick else self.config.scored)
        count = len(chosen)
        nats, hits, tokens = self._losses(model, rows, chosen)
        loss = float(nats.sum() / tokens.sum())
        scores: Json = {"loss": loss, "perplexity": math.exp(min(loss, 700)), "tokens": int(tokens.sum())}
        if quick:
            how = {"accuracy": hits / int(tokens.sum()), "protocol": f"nats per target token, {count:,} pairs"}
            return scores | how
        if brief:
            scores["protocol"] = f"nats per target token, {count:,} pairs"
        else:
            scores |= self._generation_scores(model, rows, chosen, naive)
        pieces = np.array_split(nats, min(_PIECES, count))
        share = tokens.sum() / len(pieces)  # the same for all pieces, so that their mean is the loss
        return scores | {"pieces": [float(piece.sum() / share) for piece in pieces]}

    def settle(self, model: SequenceModel, valid: PairRows) -> list[Choice]:
        """Choose the length penalty by the main score of the outputs for some validation sources."""
        if not self.config.tune_length or self.config.beams == 1 or not model.descends:
            return []
        references, main = _references(valid, self._scored(valid, lengths.SOURCES)), _SCORES[self.config.metric][0]

        def score(penalty: float) -> float:
            outputs, _ = self._writer(penalty).write(model, list(references))
            return float(self._score(outputs, references)[main.name])

        found = lengths.tuned(main, score, len(references))
        self.config = self.config.model_copy(update={"length_penalty": found.value})
        self.writer = self._writer(found.value)
        return [found]

    def translate(self, model: SequenceModel, texts: Sequence[str], how: Decoding | None = None) -> Found:
        """The hypotheses for each source text, best first."""
        return self.writer.search(model, texts, how)

    def text(self, hypothesis: Hypothesis) -> str:
        return self.writer.text(hypothesis)

    def _predict(self, model: SequenceModel, rows: Iterable[Row], **options: Any) -> Iterator[Row]:
        return self.writer.predict(model, rows, **options)

    def align(self, model: SequenceModel, source: str, target: str | None = None) -> Alignment:
        return self.writer.align(model, source, target)

    def instance(self, model: SequenceModel, row: Row, vocabulary: Any, target: str | None = None) -> Instance:
        return self.writer.instance(model, row["source"], target)

    def epoch_tokens(self, rows: PairRows) -> int:
        return int(rows.lengths[self._short(rows), 1].sum())

    def naive(self, rows: PairRows) -> Facts:
        (frequent, _), *_ = Counter(target for _, target in rows.texts()).most_common(1)
        return {"frequent": frequent}

    def baselines(self, train: PairRows, parts: Mapping[str, PairRows]) -> dict[str, dict[str, Json]]:
        """The target of the most similar source in the training set."""
        found = {}
        for part, rows in parts.items():
            references = _references(rows, self._scored(rows, self.config.scored))
            most = searched(len(references), len(train))
            known = list(islice(train.texts(), most))
            indices = nearest(list(references), [source for source, _ in known])
            scores = self._score([known[n][1] for n in indices], references)
            of = "" if most == len(train) else f"the first {most:,} of "
            scores["protocol"] += f"; target of the most similar source (trigrams) in {of}{len(train):,} training pairs"
            found[part] = {"nearest": scores}
        return found

    def typical_length(self, rows: PairRows) -> int:
        return max(1, round(float(rows.lengths[self._short(rows)].mean())))

    def flops(self, model: SequenceModel, length: int) -> float:
        """Per target token, with a source of equal length; a causal model reads that too, but without the head."""
        if not model.joins:
            return model.flops(length)
        return 2 * model.flops(2 * length) - model.head_flops()

    def showcase(self, model: SequenceModel, rows: PairRows) -> Json:
        pairs = showing.choose(rows)
        outputs, _ = self.writer.write(model, [source for source, _ in pairs])
        return showing.showcase(pairs, outputs, len(rows))

    def example(self, rows: int, length: int) -> Batch:
        draw = torch.Generator().manual_seed(0)
        ids = torch.randint(self.vocabulary, (rows, length + 1), generator=draw)
        context = torch.randint(self.tokenizers.shift, self.tokenizers.size, (rows, length), generator=draw)
        return Batch(ids[:, :-1], None, ids[:, 1:], context, origin="random tokens")

    def _short(self, rows: PairRows) -> np.ndarray:
        return np.flatnonzero(rows.lengths.max(1) <= self.config.longest)

    def _guessed(self, model: SequenceModel, batch: Batch, state: State) -> Tensor:
        """Scheduled sampling (Bengio et al. 2015): replace some inputs by the model's own predictions.

        The predictions come from one teacher-forced pass, so that all positions are read in parallel.
        """
        with torch.no_grad():
            predictions = model(batch.inputs, state)[0].argmax(-1)
        predictions = torch.cat((batch.inputs[:, :1], predictions[:, :-1]), dim=1)
        chosen = torch.rand(predictions.shape, device=predictions.device) < self.config.sampling
        return torch.where(chosen, predictions, batch.inputs)

    def _scored(self, rows: PairRows, most: int) -> np.ndarray:
        """Indices of at most `most` pairs, evenly spaced, because a file may be sorted by length; 0: all."""
        return spread(min(most or len(rows), len(rows)), len(rows))

    @torch.inference_mode()
    def _losses(self, model: SequenceModel, rows: PairRows, chosen: np.ndarray) -> tuple[np.ndarray, int, np.ndarray]:
        """The loss of each pair, summed; the target tokens that are the most likely ones; the tokens of each pair."""
        hits, nats, tokens, longer = 0, np.zeros(len(chosen)), rows.lengths[chosen, 1], rows.lengths[chosen].max(1)
        training = model.training
        model.eval()
        for part in cut_by_length(np.argsort(longer, kind="stable"), longer, AT_ONCE):
            batch = self.collate(rows, chosen[part]).to(model.device)
            assert batch.context is not None
            logits, _ = model(batch.inputs, model.begin(batch.context, batch.context_mask))
            each = F.cross_entropy(logits.transpose(1, 2), batch.targets, ignore_index=IGNORE, reduction="none")
            nats[part] = each.sum(1, dtype=torch.float64).cpu().numpy()
            hits += int((logits.argmax(-1) == batch.targets).sum())
        model.train(training)
        return nats, hits, tokens

    def _generation_scores(self, model: SequenceModel, rows: PairRows, chosen: np.ndarray, naive: Facts | None) -> Json:
        """Scores of the generated texts and of the naive baselines, against the references."""
        references = _references(rows, chosen)
        outputs, cut = self.writer.write(model, list(references))
        scores = self._score(outputs, references)
        of = "" if len(chosen) == len(rows) else f" (of {len(chosen):,} of {len(rows):,} pairs, evenly spaced)"
        of += f" ({cut:,} truncated to the model's context)" if cut else ""
        scores["protocol"] = (
            f"{scores['protocol']}; {len(outputs):,} sources{of}, {self.writer.how}; loss in nats per target token"
        )
        scores["forgetting"] = forgetting(list(references), outputs, list(references.values()))
        simple = {"copy": list(references)} | {name: [text] * len(references) for name, text in (naive or {}).items()}
        if self.config.metric == "summary":
            simple["lead-3"] = [lead(text, 3) for text in references]
        return scores | {"baselines": {name: self._score(texts, references) for name, texts in simple.items()}}

    def _score(self, outputs: Sequence[str], references: Mapping[str, list[str]]) -> Json:
        return score_texts(outputs, list(references.values()), self.config.metric, self.config.bleu)


def _references(rows: PairRows, chosen: np.ndarray) -> dict[str, list[str]]:
    """The references of each source; one that occurs several times has several."""
    found: dict[str, list[str]] = {}
    wanted = set(chosen.tolist())
    for number, (source, target) in enumerate(rows.texts()):
        if number in wanted:
            found.setdefault(source, []).append(target)
    return found
