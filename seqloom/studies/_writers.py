"""Language models to be prompted: pretrained weights, and small ones of our own, which also stand in for them in a
quick run. Nothing is trained on the prompts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from seqloom.core.network import Network
from seqloom.decode.chat import chat_ids, turn_ends
from seqloom.decode.stream import stream as tokens_of
from seqloom.pages.words import Pair
from seqloom.runs.run import load
from seqloom.runs.source import run_folder
from seqloom.studies._language import documents, language_task, stream, trained
from seqloom.studies._models import parameters
from seqloom.tokenizers import train_tokenizer

PRETRAINED = "weights:smollm2"
READ = 2_000_000  # characters of the documentation that small models learn


@dataclass(frozen=True)
class Writer:
    title: Pair
    model: Network
    tokenizer: Any

    @property
    def count(self) -> int:
        return parameters(self.model)

    def say(self, system: str, text: str, most: int) -> str:
        """The greedy answer, up to a number of tokens; by the chat template, if there is one."""
        if getattr(self.tokenizer, "template", ""):
            messages = [{"role": "system", "content": system}, {"role": "user", "content": text}]
            ids, ends = chat_ids(self.tokenizer, messages), turn_ends(self.tokenizer)
        else:
            own = self.tokenizer.encode(f"{system}\n\n{text}\nAnswer:").tolist()
            ids, ends = [*self.tokenizer.opening, *own], {self.tokenizer.eos}
        said: list[int] = []
        for (token,) in tokens_of(self.model, [ids], max_new=most):
            if int(token) in ends:
                break
            said.append(int(token))
        return str(self.tokenizer.decode(said)).strip()


def pretrained() -> Writer:
    run = load(run_folder(PRETRAINED))
    model: Any = run.model
    return Writer(("SmolLM2", "SmolLM2"), model.requires_grad_(False), run.tokenizer)


def small(steps: int, *, title: Pair, seed: int = 0, context: int = 1024, most: int = READ, **options: Any) -> Writer:
    """A GPT that has read the documentation of Python for so many updates."""
    texts = documents("python-docs", most)
    tokenizer = train_tokenizer("bpe", texts.texts, size=2048 if most == READ else 300)
    task = language_task(tokenizer, length=context)
    rows, how = stream(tokenizer, "".join(texts.texts)), {"preset": "llama", "context": context, **options}
    model: Any = trained(task, rows, "gpt", seed, steps=steps, batch=2, rate=3e-3, **how)
    return Writer(title, model.requires_grad_(False), tokenizer)


def stand_in() -> Writer:
    """For a quick run, which must not need weights."""
    title = ("untrained stand-in", "未训练的替身")
    return small(1, title=title, most=5_000, width=16, depth=1, heads=2)


def with_head(writer: Writer, head: Any) -> Network:
    """The same weights under the output layer of another task, which predicts the same tokens."""
    own: Any = writer.model.head
    head.weight, head.bias = own.weight, own.bias
    return Network(writer.model.embed, writer.model.backbone, head).requires_grad_(False).eval()


@torch.inference_mode()
def last_vector(writer: Writer, text: str) -> torch.Tensor:
    """The hidden vector after the last token of a text."""
    ids = torch.tensor([[*writer.tokenizer.opening, *writer.tokenizer.encode(text).tolist()]])
    return writer.model.advance(ids)[0][0, -1].float()
