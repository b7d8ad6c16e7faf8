"""Tagging: label each word of a sentence, for example with named entities or parts of speech.

    scores = model.encode(words);  tags = the best of each word or, with a CRF, the best path

A sentence is read between <bos> and <eos>. If a word is several tokens, the first carries its tag.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from seqloom.core.batch import IGNORE, Batch, pad
from seqloom.core.batching import batches_by_length
from seqloom.core.choice import Choice, Demand
from seqloom.core.errors import UserError
from seqloom.core.instance import Instance
from seqloom.core.loss import cross_entropy
from seqloom.core.network import SequenceModel
from seqloom.core.order import cut_by_length
from seqloom.core.rows import Facts, Json, Row
from seqloom.core.score import Score, Text
from seqloom.core.state import State
from seqloom.core.task import Order, Step, Task, TaskConfig
from seqloom.core.words import cut_characters, cut_words
from seqloom.data.shapes.tagged.rows import Pieces, TaggedRows
from seqloom.data.shapes.tagged.vocabulary import TagVocabulary
from seqloom.tasks.tagging import choices, showing
from seqloom.tasks.tagging.baseline import count_tags, frequent_tags
from seqloom.tasks.tagging.crf import CRF
from seqloom.tasks.tagging.features import SpelledEmbedding
from seqloom.tasks.tagging.head import TagHead, words_only
from seqloom.tasks.tagging.instance import instance
from seqloom.tasks.tagging.phrases import PHRASES
from seqloom.tasks.tagging.scores import count_names, f1_pieces, f1_score, score_names, told_names

_PIECES = 100  # scored separately, for paired comparisons of two models
_AT_ONCE = 4096  # tokens per batch in evaluation
_CHUNK = 500  # sentences predicted together


class Config(TaskConfig):
    characters: Literal["none", "convolution", "lstm"] = Field(
        "none", description="with tokenizer.kind=words: how to encode the characters of each word"
    )
    features: int = Field(50, ge=2, description="size of the vector that encodes a word's characters")
    crf: bool = Field(False, description="CRF over the tags: find the best path, not the best tag of each word")
    batch_tokens: int = Field(1024, ge=0, description="tokens per batch, padding included; 0: train.batch sentences")
    longest: int = Field(256, ge=3, description="maximum tokens read at once; longer sentences are split between words")
    word_dropout: float = Field(0.0, ge=0, lt=1, description="share of words read as <unk> in training")
    dropout: float = Field(0.0, ge=0, lt=1, description="dropout before the head, and on inputs with characters")
    smoothing: float = Field(0.0, ge=0, lt=1, description="label smoothing; not with a CRF")
    validation: int = Field(2000, ge=1, description="sentences of the validation set to score during training")

    shapes = ("tagged",)
    whole = True
    defaults: ClassVar[Json] = {"train.batch": 32}
    shared: ClassVar[Json] = {"task.validation": 1000}

    @model_validator(mode="after")
    def _check_options(self) -> Config:
        if self.crf and self.smoothing:
            raise ValueError("a CRF does not support label smoothing; set smoothing=0 or crf=false")
        return self

    @classmethod
    def choose(cls, train: Any, given: Mapping[str, Any]) -> list[Choice]:
        return choices.choose(train, given)

    @classmethod
    def demand(cls, train: Any, settings: Mapping[str, Any]) -> Demand:
        return choices.demand(train)

    @property
    def tokens_per_row(self) -> int:
        return self.longest

    def tokens_per_step(self, rows: int) -> int:
        return self.batch_tokens or rows * self.longest

    def build(self, vocabulary: TagVocabulary) -> Tagging:
        return Tagging(self, vocabulary)


class Sentence(NamedTuple):
    words: list[str]
    tags: list[str]


class Tagging(Task[TaggedRows]):
    name = "tagging"
    title = ("tagging", "序列标注")
    protocol_phrases = PHRASES
    encodes = True
    accepts = frozenset({"causal", "bidirectional", "encoder-decoder"})
    baseline_titles: ClassVar[dict[str, Text]] = {
        "frequent tag": ("most frequent tag of each word", "每个词最常见的标签")
    }
    latency_unit = "row"

    def __init__(self, config: Config, vocabulary: TagVocabulary) -> None:
        self.config, self.tokens, self.tags = config, vocabulary, vocabulary.tags
        if config.characters != "none" and vocabulary.kind != "words":
            raise UserError(
                f"task.characters={config.characters} needs tokenizer.kind=words, not {vocabulary.kind}; set "
                "tokenizer.kind=words or task.characters=none"
            )
        entities = vocabulary.entities
        self.metric = self.across = "f1" if entities else "accuracy"
        self.scores = (
            Score("f1", ("Entity F1", "实体 F1"), True),
            Score("precision", ("Precision", "精确率"), True),
            Score("recall", ("Recall", "召回率"), True),
            Score("accuracy", ("Word accuracy", "词准确率"), True, compared=entities),
            Score("loss", ("Loss", "损失"), unit=("nats per word", "奈特/词"), compared=True),
        )
        numbers = {tag: number for number, tag in enumerate(self.tags)}
        self._begins = np.array([numbers.get(f"B-{t[2:]}", n) if t[:2] == "I-" else n for t, n in numbers.items()])
        self._longest = config.longest  # tokens per piece; fewer if the model's context is shorter

    def embed(self, width: int) -> nn.Module:
        c, size = self.config, self.tokens.size + 1  # one more for the mask token of pre-trained weights
        if c.characters == "none" or self.tokens.letters is None:
            return nn.Embedding(size, width)
        return SpelledEmbedding(size, self.tokens.letters.size, width, c.characters, c.features, c.dropout)

    def head(self, width: int) -> nn.Module:
        return TagHead(width, self.tags, self.config.dropout, self.config.crf)

    def check_rows(self, model: SequenceModel, parts: Mapping[str, TaggedRows]) -> str | None:
        """Report repaired tags, tags unknown to training, and sentences that are split."""
        self._longest = self._max_tokens(model)
        remarks = []
        for part, rows in parts.items():
            if fault := rows.origin.fault:
                remarks.append(f"the {part} split has {fault}")
            if rows.unknown:
                new = ", ".join(rows.tags[rows.known :][:5])
                remarks.append(f"the {part} split has {rows.unknown:,} words with tags unknown to training ({new})")
            if extra := len(rows.pieces(self._longest).first) - len(rows):
                remarks.append(f"{part} sentences of more than {self._longest} tokens are split ({extra:,} splits)")
        return "; ".join(remarks) or None

    def batches(self, rows: TaggedRows, order: Order, carry: bool) -> Iterator[list[Batch]]:
        pieces, budget = rows.pieces(self._longest), self.config.batch_tokens
        whole = np.arange(len(pieces.first))
        return batches_by_length(
            whole, pieces.lengths, order, budget, lambda chosen: self.collate(rows, pieces, chosen)
        )

    def examples(self, rows: TaggedRows) -> Iterator[Batch]:
        """Every sentence once, the shortest first, for models that are not trained by gradient descent."""
        pieces = rows.pieces(self._longest)
        order = np.argsort(pieces.lengths, kind="stable")
        return (self.collate(rows, pieces, chosen) for chosen in cut_by_length(order, pieces.lengths, _AT_ONCE))

    def collate(self, rows: TaggedRows, pieces: Pieces, chosen: np.ndarray) -> Batch:
        """An empty batch becomes one row excluded from the loss: every process must take part in every step."""
        own, sequences, tags, spans = self.tokens, [], [], []
        for n in chosen:
            first, end = pieces.first[n], pieces.end[n]
            begin = rows.begins[first]
            ids = rows.ids[begin : rows.begins[end]][: pieces.lengths[n] - 2]
            targets, starts = np.full(len(ids) + 2, IGNORE), rows.begins[first:end] - begin + 1
            targets[starts] = rows.tag_ids[first:end]
            if pieces.inner[n] and targets[1] < len(self.tags):
                targets[1] = self._begins[targets[1]]  # the rest of an entity that was split
            sequences.append(np.concatenate(([own.bos], ids, [own.eos])))
            tags.append(targets)
            spans.append((first, end))
        inputs, mask = pad(sequences or [np.array([own.bos, own.eos])])
        labels = pad(tags or [np.full(2, IGNORE)], IGNORE)[0]
        if self.config.characters != "none":
            inputs = self._spelled(inputs, rows, spans)
        real = None if bool(mask.all()) else mask
        return Batch(inputs, real, labels, origin=f"sentences {[int(n) for n in chosen][:8]} ...")

    def loss(self, model: SequenceModel, batch: Batch, state: State = None) -> Step:
        inputs = batch.inputs
        if self.config.word_dropout and model.training:
            inputs = self._with_unknown(inputs)
        nats, counts, _ = self._losses(model, inputs, batch)
        return Step(nats.sum(), int(counts.sum()))

    @torch.inference_mode()
    def tag(self, model: SequenceModel, rows: TaggedRows, count: int) -> tuple[np.ndarray, float, int]:
        """The tag of each word in the first `count` sentences, the summed loss, and the number of words in it."""
        pieces = rows.pieces(self._max_tokens(model), count)
        found = np.zeros(rows.word_bounds[count], np.int64)
        loss, words, training = 0.0, 0, model.training
        model.eval()
        order = np.argsort(pieces.lengths, kind="stable")
        for chosen in cut_by_length(order, pieces.lengths, _AT_ONCE):
            batch = self.collate(rows, pieces, chosen).to(model.device)
            nats, counts, tags = self._losses(model, batch.inputs, batch, decoded=True)
            loss, words = loss + float(nats.sum(dtype=torch.float64)), words + int(counts.sum())
            for n, path in zip(chosen, tags.cpu().numpy(), strict=True):
                found[pieces.first[n] : pieces.end[n]] = path[: pieces.end[n] - pieces.first[n]]
        model.train(training)
        return found, loss, words

    def evaluate(
        self,
        model: SequenceModel,
        rows: TaggedRows,
        *,
        naive: Facts | None = None,
        quick: bool = False,
        brief: bool = False,
    ) -> Json:
        """`quick`: the first sentences, main scores only; `brief`: without scores per type and baselines."""
        count = min(len(rows), self.config.validation) if quick else len(rows)
        tags, nats, words = self.tag(model, rows, count)
        reference, predicted = rows.named(rows.tag_ids[: len(tags)]), rows.named(tags)
        scores = self._scores(predicted, reference, full=not quick and not brief)
        scores |= {"loss": nats / max(1, words), "words": len(tags), "protocol": self._protocol(model, rows, count)}
        if quick:
            del scores["pieces"]
        elif not brief and naive:
            frequent = [frequent_tags(sentence.words, naive) for sentence in rows.sentences()]
            baseline = self._scores(frequent, reference, full=False)
            scores["baselines"] = {"frequent tag": {k: v for k, v in baseline.items() if k != "pieces"}}
        return scores

    def _predict(self, model: SequenceModel, rows: Iterable[Row], **options: Any) -> Iterator[Row]:
        """Rows have `words`, or a text (`source`) to split into words; `places`: offsets of words in `text`."""
        rows = iter(rows)
        while chunk := [self._cut_text(row) for row in islice(rows, _CHUNK)]:
            encoded = self.tokens.rows([Sentence(row["words"], []) for row in chunk])
            tags = encoded.named(self.tag(model, encoded, len(encoded))[0])
            yield from (self._answer(row, found) for row, found in zip(chunk, tags, strict=True))

    def instance(self, model: SequenceModel, row: Row, vocabulary: Any, target: str | None = None) -> Instance:
        words = self._cut_text(row)["words"]
        rows = self.tokens.rows([Sentence(words, [])])
        pieces = rows.pieces(self._max_tokens(model))
        if len(pieces.first) > 1:
            raise UserError(f"--text is longer than the {self._max_tokens(model):,} tokens read at once; shorten it")
        batch = self.collate(rows, pieces, np.zeros(1, np.int64))
        return instance(model, batch, words, vocabulary, target, tags=self.tags)

    def epoch_tokens(self, rows: TaggedRows) -> int:
        return rows.words

    def naive(self, rows: TaggedRows) -> Facts:
        return count_tags(rows.sentences())

    def typical_length(self, rows: TaggedRows) -> int:
        return max(1, round(float(rows.pieces(self._longest).lengths.mean())))

    def showcase(self, model: SequenceModel, rows: TaggedRows) -> Json:
        wanted = set(showing.choose(rows).tolist())
        some = [sentence for n, sentence in enumerate(rows.sentences()) if n in wanted]
        encoded = self.tokens.rows(some)
        found = encoded.named(self.tag(model, encoded, len(some))[0])
        shown = [showing.shown(one.words, one.tags, tags) for one, tags in zip(some, found, strict=True)]
        return {"kind": "tags", "of": len(rows), "rows": shown}

    def example(self, rows: int, length: int) -> Batch:
        draw = torch.Generator().manual_seed(0)
        ids = torch.randint(self.tokens.size, (rows, length), generator=draw)
        if self.config.characters != "none" and self.tokens.letters is not None:
            letters = torch.randint(1, self.tokens.letters.size, (rows, length, 6), generator=draw)
            return Batch(torch.cat((ids[..., None], letters), -1), None, torch.zeros_like(ids), origin="random words")
        return Batch(ids, None, torch.zeros_like(ids), origin="random words")

    def _max_tokens(self, model: SequenceModel) -> int:
        """Maximum tokens of a sentence that the model reads at once."""
        most = min(self.config.longest, model.limit or self.config.longest)
        if most < 3:
            raise UserError(f"model.context={most} has no room for a word between <bos> and <eos>; set at least 3")
        return most

    def _spelled(self, inputs: Tensor, rows: TaggedRows, spans: list[tuple[int, int]]) -> Tensor:
        """Each word id followed by its character ids, (B, T, 1 + C)."""
        assert rows.spellings is not None and rows.spelled is not None
        forms = [rows.spellings[rows.spelled[first:end]] for first, end in spans]
        longest = max((int((form != 0).sum(1).max()) for form in forms if len(form)), default=1)
        letters = np.zeros((*inputs.shape, longest), np.int64)
        for row, form in enumerate(forms):
            letters[row, 1 : len(form) + 1] = form[:, :longest]
        return torch.cat((inputs[..., None], torch.from_numpy(letters)), -1)

    def _with_unknown(self, inputs: Tensor) -> Tensor:
        """Word dropout: read some words as <unk>; special tokens, padding and characters stay."""
        ids = inputs[..., 0] if inputs.dim() == 3 else inputs
        special = torch.isin(ids, torch.tensor(sorted(self.tokens.specials), device=ids.device))
        chosen = (torch.rand(ids.shape, device=ids.device) < self.config.word_dropout) & ~special
        ids = ids.masked_fill(chosen, self.tokens.blank)
        return torch.cat((ids[..., None], inputs[..., 1:]), -1) if inputs.dim() == 3 else ids

    def _losses(
        self, model: SequenceModel, inputs: Tensor, batch: Batch, decoded: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Summed loss, number of words and (with `decoded`) tags; unknown tags are excluded from the loss.

        With a CRF, loss and words are per sentence, and a sentence with an unknown tag is excluded as a whole.
        """
        scores, targets, real = words_only(model.encode(inputs, batch.mask), batch.targets)
        unknown = targets >= len(self.tags)
        crf = model.part(CRF)
        if crf is None:
            known = targets.masked_fill(unknown, IGNORE)
            smoothing = self.config.smoothing if model.training else 0.0
            nats = cross_entropy(scores, known, smoothing) if scores.numel() else scores.sum()
            return nats, (known != IGNORE).sum(), scores.argmax(-1)
        whole = ~unknown.any(1)
        nats = crf.loss(scores, targets.masked_fill(unknown, 0), real) * whole
        return nats, real.sum(1) * whole, crf.decode(scores, real) if decoded else targets

    def _scores(self, predicted: list[list[str]], reference: list[list[str]], full: bool) -> Json:
        """`full`: also for each entity type."""
        pieces = min(_PIECES, len(reference))
        correct = np.array([sum(map(str.__eq__, *both)) for both in zip(predicted, reference, strict=True)])
        words = sum(map(len, reference))
        accuracy = {"accuracy": float(correct.sum() / max(1, words))}
        if not self.tokens.entities:
            share = max(1, words) / pieces
            return accuracy | {"pieces": [float(piece.sum() / share) for piece in np.array_split(correct, pieces)]}
        counts = count_names(predicted, reference)
        scores = score_names(predicted, reference) if full else f1_score(counts)
        return scores | accuracy | {"pieces": f1_pieces(counts, pieces)}

    def _protocol(self, model: SequenceModel, rows: TaggedRows, count: int) -> str:
        by = "entity F1 by seqeval (micro-averaged; first word, last word and label must match)"
        of = f"{count:,}" if count == len(rows) else f"the first {count:,} of {len(rows):,}"
        protocol = f"{by if self.tokens.entities else 'share of words with the correct tag'}, {of} sentences"
        protocol += ", best path of a CRF" if self.config.crf else ", best tag of each word"
        if rows.unknown:
            protocol += f"; {rows.unknown:,} words with tags unknown to training count as wrong, but not in the loss"
        most = self._max_tokens(model)
        if extra := len(rows.pieces(most, count).first) - count:
            protocol += f"; sentences of more than {most} tokens split between words ({extra:,} splits)"
        return f"{protocol}; loss in nats per word"

    def _cut_text(self, row: Row) -> Row:
        """Split a text into words, unless it comes with words."""
        text = row.get("source", row.get("text"))
        if text is None or (row.get("words") and not self.tokens.single) or row.get("tags"):
            return row
        places = cut_characters(text) if self.tokens.single else cut_words(text)
        return row | {"text": text, "places": places, "words": [text[begin:end] for begin, end in places]}

    def _answer(self, row: Row, tags: list[str]) -> Row:
        answer: Row = {"line": row["line"], "words": row["words"], "tags": tags}
        if row.get("tags"):
            answer["wanted"] = row["tags"]
        if self.tokens.entities:
            answer["entities"] = told_names(row["words"], tags, row.get("text"), row.get("places"))
        return answer
