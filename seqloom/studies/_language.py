"""Language models outside a run, for studies of text: documents of a sample, tasks and models by name, training.

Scores come from the task (`task.evaluate(model, rows)`), as in every run.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch

from seqloom.core.network import SequenceModel
from seqloom.core.state import detach_state
from seqloom.core.task import AnyTask, Order
from seqloom.data.samples import SAMPLES
from seqloom.data.stream import TokenStream
from seqloom.runs.registry import section
from seqloom.tokenizers import Tokenizer

PIECES = 20  # that held-out text is made of


@dataclass(frozen=True)
class Documents:
    texts: list[str]
    digest: str  # SHA-256 of all of them

    def split(self, seed: int, held: int, most: int | None = None) -> tuple[str, str]:
        """Documents in random order, to train on, at most `most` characters of them; and held-out text, equal pieces
        from random places of other documents."""
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(self.texts)).tolist()
        pieces = min(PIECES, len(order) // 4)
        size = held // pieces
        out = [n for n in order if len(self.texts[n]) > size][:pieces]
        starts = [int(rng.integers(len(self.texts[n]) - size)) for n in out]
        test = "".join(self.texts[n][start : start + size] for n, start in zip(out, starts, strict=True))
        return "".join(self.texts[n] for n in order if n not in out)[:most], test


def documents(sample: str, most: int | None = None) -> Documents:
    """The first documents of a sample, until they have `most` characters; all of them without it."""
    texts, total = [], 0
    for text in SAMPLES[sample].read():
        texts.append(text)
        total += len(text)
        if most is not None and total >= most:
            break
    return Documents(texts, hashlib.sha256("".join(texts).encode()).hexdigest())


def language_task(tokenizer: Tokenizer, **options: Any) -> AnyTask:
    task: AnyTask = section("tasks", {"name": "language_model", **options}).build(tokenizer)
    return task


def stream(tokenizer: Tokenizer, text: str, *, backwards: bool = False) -> TokenStream:
    ids = tokenizer.encode(text)
    return TokenStream.of(ids[::-1] if backwards else ids, len(text.encode()), tokenizer.size)


def counted(task: AnyTask, rows: TokenStream, order: int) -> SequenceModel:
    """An n-gram, which learns by counting."""
    model: SequenceModel = section("models", {"name": "ngram", "order": order}).assemble(task)
    model.learn(task, rows)
    return model


def trained(
    task: AnyTask, rows: TokenStream, name: str, seed: int, *, steps: int, batch: int, rate: float, **options: Any
) -> SequenceModel:
    """A model of random weights, trained."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model: SequenceModel = section("models", {"name": name, "dropout": 0.0, **options}).assemble(task)
    return tuned(task, rows, model, seed, steps=steps, batch=batch, rate=rate)


def tuned(
    task: AnyTask, rows: TokenStream, model: SequenceModel, seed: int, *, steps: int, batch: int, rate: float
) -> SequenceModel:
    """Adam on what is not frozen, with a rate that falls linearly to zero; the state is carried where a model has no
    limit."""
    learns = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.Adam(learns, lr=rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    state = None
    for (one,) in islice(task.batches(rows, Order(batch, seed), carry=model.limit is None), steps):
        done = task.loss(model, one, detach_state(state) if one.continues else None)
        optimizer.zero_grad()
        (done.loss / done.count).backward()
        torch.nn.utils.clip_grad_norm_(learns, 1.0)
        optimizer.step()
        schedule.step()
        state = done.state
    return model.eval()
