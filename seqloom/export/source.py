"""What is exported: a finished run with all its weights, and inputs on which its copy is compared with it."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from seqloom.core.batch import Batch
from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json
from seqloom.core.task import Order
from seqloom.export.tokens import tokenizer_of
from seqloom.runs.base import is_partial
from seqloom.runs.durable import shown
from seqloom.runs.folder import RunFolder
from seqloom.runs.registry import model_config
from seqloom.runs.run import Run, load
from seqloom.runs.winner import run_of
from seqloom.tokenizers.tokenizer import Tokenizer
from seqloom.train.checkpoint import weights

_TOKENS = 2048  # of the validation part that perplexities are measured on
_PROBE = "The cat sat (on a mat), and then: 12 dogs ran off.\nAgain!"


class Samples(NamedTuple):
    batch: Batch
    origin: str  # what they are, for the card


class Source:
    def __init__(self, path: Path) -> None:
        place = RunFolder(run_of(path))
        place.config()
        if place.record().get("bare") is None and place.summary() is None:
            raise UserError(f"{shown(place.path)}: not finished yet; run its fit command again to finish it")
        if is_partial(place):
            raise UserError(
                f"{shown(place.path)}: only adds to the weights of another run; make a plain run of it first: "
                f"seqloom merge {shown(path)} --out PLAIN"
            )
        self.run: Run = load(place.path)
        self.path = place.path
        self.model: SequenceModel = self.run.model.to("cpu").eval()
        self.task, self.record = self.run.task, place.record()

    @property
    def architecture(self) -> str:
        name: str = self.run.config.model["name"]
        return name

    @cached_property
    def section(self) -> Json:
        """The options of the model."""
        return {"name": self.architecture, **model_config(self.run.config).model_dump()}

    @cached_property
    def tokenizer(self) -> Tokenizer | None:
        return tokenizer_of(self.run.tokenizer)

    @cached_property
    def tensors(self) -> dict[str, Tensor]:
        return {name: tensor.detach() for name, tensor in weights(self.model).items()}

    @cached_property
    def rows(self) -> Any:
        """The validation part; None if it is not there any more."""
        try:
            return self.run.material.rows(self.run.tokenizer).get("valid")
        except (UserError, OSError):
            return None

    @cached_property
    def samples(self) -> Samples:
        """Inputs as in training: of the validation part or, where that is gone, random ones."""
        if self.rows is not None and len(self.rows):
            batch = next(iter(self.task.batches(self.rows, Order(batch=4), False)))[0]
            return Samples(batch, "the validation part")
        task: Any = self.task
        return Samples(task.example(3, min(24, self.model.limit or 24)), "random inputs")

    @cached_property
    def stream(self) -> Tensor:
        """Token ids in a row, (1, T), for perplexities: of the validation part, or written by the model itself."""
        if self.rows is not None and len(self.rows) > 1:
            return torch.as_tensor([int(id) for id in self.rows[: min(_TOKENS, len(self.rows))]])[None]
        tokens = [token for (token,) in self.run.stream(max_new=64, temperature=1.0, seed=0)]
        return torch.tensor([tokens])

    @property
    def texts(self) -> list[str]:
        """For tokenizers."""
        found = ["", _PROBE, "<eos> </s> [SEP]", "  two  blanks \u00e9\u732b\u3002"]
        if self.tokenizer is not None and self.task.name in ("language_model", "masked_lm"):
            found.append(self.tokenizer.decode(self.stream[0, :300].tolist()))
        return found
