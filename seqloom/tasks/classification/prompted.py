"""Classification by prompting: a language model reads an instruction, a few labelled examples and the row, and the
labels are scored by the log-probability of their words. Nothing is trained.

    prefix       instruction and examples: read once, its state is handed on to every row
    row          the text in the words of the template, up to the label
    label        its tokens, each scored from the state after the row; the sum is the score of the label

The three are tokenised separately, in examples too, so that a label has the same tokens everywhere. Contextual
calibration (Zhao et al. 2021) subtracts the scores that the labels get for an input without content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqloom.core.backbone import Kind, at_end
from seqloom.core.batch import IGNORE, Batch, cut, pad
from seqloom.core.choice import Choice
from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.core.order import cut_by_length, spread
from seqloom.core.rows import Row
from seqloom.core.state import State, select_rows
from seqloom.core.task import Step
from seqloom.data.shapes.frames.scale import LabelledScale
from seqloom.data.shapes.labelled.rows import LabelledRows
from seqloom.data.shapes.labelled.vocabulary import LabelledTokenizer
from seqloom.decode.chat import conversation
from seqloom.decode.shots import draw_shots
from seqloom.decode.templates import Wording, find_template
from seqloom.layers.linear import Linear
from seqloom.tasks.classification.classifier import Classification
from seqloom.tasks.classification.inputs import Examples
from seqloom.tasks.classification.options import Options
from seqloom.tasks.classification.scores import fit_temperature

_SLOTS = 8192  # tokens held in states at once, those of the prefix included
_LEAST = 8  # tokens of a row that must fit into the context
_ANY = 2**31  # tokens: no limit
_SETTLED = 200  # rows of the validation set that the temperature is fitted to

Texts = Sequence[str]


class PromptHead(Linear):
    """The output layer of the language model, with what was prepared before the first row."""

    grows = ("prefix", "suffix", "drawn")  # buffers whose size depends on the data

    def __init__(self, width: int, tokens: int, labels: int) -> None:
        super().__init__(width, tokens)
        self.prefix: Tensor  # token ids of the instruction and the examples
        self.suffix: Tensor  # of a chat: token ids between a row and its label
        self.drawn: Tensor  # numbers of the training rows that are examples
        self.prior: Tensor  # log-probabilities of the labels for an input without content
        self.temperature: Tensor
        for name in self.grows:
            self.register_buffer(name, torch.zeros(0, dtype=torch.long))
        self.register_buffer("prior", torch.zeros(labels))
        self.register_buffer("temperature", torch.ones(()))


class Prompted(Classification):
    encodes = False
    ties = True
    accepts = frozenset({"causal"})

    def __init__(self, config: Options, known: LabelledTokenizer | LabelledScale) -> None:
        if not isinstance(known, LabelledTokenizer):
            raise UserError("task.prompt: measurements cannot be written into a prompt; use texts")
        if known.multi:
            raise UserError("task.prompt: chooses one label per row, but these rows may have several; use another "
                            "train.method, or leave data.separator out")  # fmt: skip
        super().__init__(config, known)
        self.known, self.template = known, find_template(config.prompt)
        self.asked = _ANY  # tokens of a row with the words around it
        Wording(self.template, self.labels, pair="{second}" in self.template.example)  # refuses what does not fit

    def embed(self, width: int) -> nn.Module:
        return nn.Embedding(self.known.size, width)

    def head(self, width: int) -> nn.Module:
        return PromptHead(width, self.known.size, len(self.labels))

    def check_kind(self, kind: Kind) -> None:
        if kind not in self.accepts:
            raise UserError(
                f"train.method=prompt needs a language model, which reads from left to right; this one is {kind}: "
                "start from another, such as weights:smollm2, or use train.method=probe"
            )

    def check_rows(self, model: SequenceModel, parts: Mapping[str, Examples]) -> str | None:
        if model.limit is not None:
            self.longest = min(self.longest, model.limit)
        return self._remarks(parts)

    def draw_prompt(self, model: SequenceModel, rows: LabelledRows, seed: int) -> int:
        """Draw the examples, prepare the prefix, and calibrate; returns the tokens read."""
        head = _head(model)
        drawn = draw_shots([label for (label,) in rows.labels], self.labels, self.config.shots, seed)
        texts = dict(_some(rows, {0, *drawn}))
        shots = [(texts[n], rows.labels[n][0]) for n in drawn]
        prefix, suffix = self._prefix(shots, pair=len(texts[0]) > 1)
        head.drawn = torch.tensor(drawn, dtype=torch.long, device=model.device)
        head.prefix, head.suffix = (torch.from_numpy(ids).to(model.device) for ids in (prefix, suffix))
        head.prior.zero_()
        head.temperature.fill_(1.0)
        self._room(model)
        if not self.config.calibration:
            return len(prefix)
        neutral = [[self.template.neutral] * len(texts[0])]
        head.prior.copy_(self._scored_labels(model, neutral)[0].log_softmax(-1))
        return len(prefix) + len(self._query(neutral[0], head))

    def prompt(self, model: SequenceModel, *texts: str) -> str:
        """What the model reads for a row, as text."""
        self._room(model)
        head = _head(model)
        ids = head.prefix.tolist() + self._query(texts, head).tolist()
        names = self.known.tokenizer
        marked = [names.name(id) if id in names.specials else names.decode([id]) for id in ids]
        return "".join(marked) if head.suffix.numel() else names.decode(ids)

    def loss(self, model: SequenceModel, batch: Batch, state: State = None) -> Step:
        """For measuring what a row costs; there is nothing to train."""
        head = _head(model)
        begun = self._begin(model, head) if state is None else state
        scores = self._label_scores(model, head, begun, batch.inputs, batch.mask)
        tokens = batch.inputs.numel() if batch.mask is None else int(batch.mask.sum())
        known = int((batch.targets != IGNORE).sum())
        return Step(F.cross_entropy(scores, batch.targets, ignore_index=IGNORE, reduction="sum"), known, tokens=tokens)

    def row_reader(self, model: SequenceModel) -> tuple[Callable[[Tensor], Tensor], int | None]:
        """For measuring latency: scores the labels of one row, after a prompt that has been read."""
        head = _head(model)
        self._room(model)
        state = self._begin(model, head)
        longest = None if self.asked == _ANY else self.asked + len(head.suffix)
        return lambda inputs: self._label_scores(model, head, state, inputs, None), longest

    def settle(self, model: SequenceModel, valid: Examples) -> list[Choice]:
        if self.config.calibrate:
            chosen = spread(min(len(valid), _SETTLED), len(valid))
            logits, targets = self._read(model, valid, chosen), self._targets([valid.labels[n] for n in chosen])
            _head(model).temperature.fill_(fit_temperature(logits, targets))
        return []

    def _read(self, model: SequenceModel, rows: Examples, chosen: np.ndarray) -> Tensor:
        found = dict(_some(cast(LabelledRows, rows), set(chosen.tolist())))
        return self._calibrated(model, [found[n] for n in chosen.tolist()])

    def _predicted(self, model: SequenceModel, rows: Sequence[Row]) -> Tensor:
        return self._calibrated(model, [[row["source"], *([row["second"]] if "second" in row else [])] for row in rows])

    def _calibrated(self, model: SequenceModel, rows: Sequence[Texts]) -> Tensor:
        head = _head(model)
        return (self._scored_labels(model, rows) - head.prior.cpu()) / head.temperature.cpu()

    @torch.inference_mode()
    def _scored_labels(self, model: SequenceModel, rows: Sequence[Texts]) -> Tensor:
        """The log-probability of each label after each row, (rows, labels); rows of similar length together."""
        training, head, found = model.training, _head(model), torch.zeros(len(rows), len(self.labels))
        model.eval()
        self._room(model)
        state, sequences = self._begin(model, head), [self._query(texts, head) for texts in rows]
        lengths = np.array([len(head.prefix) + len(ids) for ids in sequences], int)
        for chosen in cut_by_length(np.argsort(lengths, kind="stable"), lengths, _SLOTS):
            inputs, mask = (t.to(model.device) for t in pad([sequences[n] for n in chosen]))
            found[chosen] = self._label_scores(model, head, state, inputs, mask).cpu()
        model.train(training)
        return found

    def _begin(self, model: SequenceModel, head: PromptHead) -> State:
        return model.begin(head.prefix[None]) if len(head.prefix) else None

    def _label_scores(
        self, model: SequenceModel, head: PromptHead, state: State, inputs: Tensor, mask: Tensor | None
    ) -> Tensor:
        """(B, labels), from the state after the prefix, of one row, and the rows' tokens (B, T)."""
        labels = self._label_ids(chat=self.template.chat)
        own = select_rows(state, torch.zeros(len(inputs), dtype=torch.long))
        hidden, after = model.advance(inputs, own, None if mask is None or bool(mask.all()) else mask)
        first = torch.tensor([ids[0] for ids in labels], device=inputs.device)
        found = model.answer(at_end(hidden, mask)).float().log_softmax(-1)[:, first]  # (B, labels)
        longer = [n for n, ids in enumerate(labels) if len(ids) > 1]
        each = max(1, _SLOTS // ((len(head.prefix) + inputs.size(1)) * len(inputs)))  # labels at once
        for some in (longer[n : n + each] for n in range(0, len(longer), each)):
            found[:, some] += self._continued(model, after, len(inputs), [labels[n] for n in some])
        return found

    def _continued(self, model: SequenceModel, state: State, rows: int, labels: Sequence[np.ndarray]) -> Tensor:
        """The log-probability of all tokens of the labels but their first, (rows, labels)."""
        ids, mask = (t.to(model.device) for t in pad(labels))
        many = torch.arange(rows).repeat_interleave(len(labels))
        hidden, _ = model.advance(ids[:, :-1].repeat(rows, 1), select_rows(state, many), mask[:, 1:].repeat(rows, 1))
        chances = model.answer(hidden).float().log_softmax(-1)  # (rows * labels, T - 1, tokens)
        taken = chances.gather(-1, ids[:, 1:].repeat(rows, 1)[..., None])[..., 0]
        return (taken * mask[:, 1:].repeat(rows, 1)).sum(1).view(rows, len(labels))

    def _label_ids(self, chat: bool) -> list[np.ndarray]:
        wording = Wording(self.template, self.labels)
        found = [self.known.encode(("" if chat else wording.gap) + word) for word in wording.words]
        for n, ids in enumerate(found):
            same = [other for other in range(n) if np.array_equal(found[other], ids)]
            if same or not len(ids):
                reason = f"is the same as {wording.words[same[0]]!r}" if same else "is nothing"
                raise UserError(f"task.prompt: to this model, the word {wording.words[n]!r} {reason}; use another")
        return found

    def _prefix(self, shots: Sequence[tuple[Texts, int]], pair: bool) -> tuple[np.ndarray, np.ndarray]:
        """Token ids before every row, and between a row and its label."""
        wording, encode = Wording(self.template, self.labels, pair), self.known.encode
        shots = [(self._shortened(texts, self.longest), label) for texts, label in shots]
        if self.template.chat:
            pieces = conversation(self.known.tokenizer, wording.messages(shots, ("",) * (1 + pair)))
            rows = [n for n, (_, message) in enumerate(pieces) if message == len(shots) * 2 + _opens(wording)]
            if len(rows) != 1:
                raise UserError(f"the chat template of this model writes the row {len(rows)} times instead of once; "
                                "leave chat out of the template of the prompt, or use another model")  # fmt: skip
            (row,) = rows
            before, after = ([ids for ids, _ in some] for some in (pieces[:row], pieces[row + 1 :]))
            return _joined(before), _joined(after)
        opening, labels = wording.opening(), self._label_ids(chat=False)
        parts: list[Any] = [self.known.tokenizer.opening]
        parts += [encode(opening), encode(self.template.separator)] if opening.strip() else []
        for texts, label in shots:
            parts += [encode(wording.shown(texts)), labels[label], encode(wording.after + self.template.separator)]
        return _joined(parts), _joined([])

    def _query(self, texts: Texts, head: PromptHead) -> np.ndarray:
        """What the model reads of a row; of a text that is too long, a part."""
        wording, most = Wording(self.template, self.labels, pair=len(texts) > 1), self.longest
        while True:
            ids = self.known.encode(wording.asked(self._shortened(texts, most)))
            excess = len(ids) - self.asked
            if excess <= 0 or most <= 1:
                return np.concatenate((ids, head.suffix.cpu().numpy()))
            most = max(1, min(most, self.asked) - excess)

    def _shortened(self, texts: Texts, most: int) -> list[str]:
        """At most this many tokens of a row's texts together; the longest text is cut first."""
        parts = [self.known.encode(text) for text in texts]
        if sum(map(len, parts)) <= most:
            return list(texts)
        sizes = [len(ids) for ids in parts]
        while sum(sizes) > most:
            n = int(np.argmax(sizes))
            sizes[n] = max(most - sum(sizes) + sizes[n], sorted(sizes)[-2] - 1 if len(sizes) > 1 else 0, 0)
        kept = [cut(ids, size, self.config.keep) for ids, size in zip(parts, sizes, strict=True)]
        cuts = zip(texts, parts, kept, strict=True)
        return [text if len(ids) == len(own) else self.known.tokenizer.decode(own) for text, ids, own in cuts]

    def _room(self, model: SequenceModel) -> None:
        """How many tokens a row may have (`asked`); refuses a prefix that leaves no room."""
        head = _head(model)
        self.asked = _ANY
        if model.limit is None:
            return
        fixed = len(head.prefix) + len(head.suffix) + max(map(len, self._label_ids(self.template.chat)))
        empty = len(self.known.encode(Wording(self.template, self.labels, False).asked([""])))
        self.asked = model.limit - fixed
        if self.asked < empty + _LEAST:
            raise UserError(
                f"the prompt has {fixed + empty:,} tokens without the row, with task.shots={self.config.shots}; the "
                f"model's context is {model.limit:,}: use fewer examples, shorter ones (task.longest), or another "
                "template"
            )
        self.longest = min(self.config.longest, self.asked - empty)

    def _protocol(self, rows: Examples, chosen: np.ndarray) -> str:
        shots = self.config.shots
        parts = [super()._protocol(rows, chosen)]
        parts += [f"prompted with {shots} examples per label" if shots != 1 else "prompted with 1 example per label"]
        parts += ["calibrated with an input without content"] * self.config.calibration
        return "; ".join(parts)


def _head(model: SequenceModel) -> PromptHead:
    found = model.part(PromptHead)
    assert found is not None
    return found


def _some(rows: LabelledRows, chosen: set[int]) -> Iterable[tuple[int, Texts]]:
    return ((n, texts) for n, texts in enumerate(rows.texts()) if n in chosen)


def _opens(wording: Wording) -> int:
    return int(bool(wording.opening().strip()))


def _joined(parts: Sequence[Any]) -> np.ndarray:
    return np.fromiter(chain.from_iterable(parts), np.int64)
