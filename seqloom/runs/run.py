"""Run: a trained model loaded from its folder, for evaluation, prediction and generation."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from safetensors.torch import load_file

from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json, Row
from seqloom.core.task import AnyTask
from seqloom.decode.beam import beam_search
from seqloom.decode.pick import Choice
from seqloom.decode.prompts import start
from seqloom.decode.stream import stream
from seqloom.layers.int8 import to_int8
from seqloom.runs.folder import RunFolder
from seqloom.runs.material import Material
from seqloom.runs.registry import model_config
from seqloom.runs.seen import Seen, seen_in
from seqloom.runs.settings import RunConfig
from seqloom.runs.winner import run_of
from seqloom.train.checkpoint import load_weights
from seqloom.train.engine import choose_device


@runtime_checkable
class DrawnTask(Protocol):
    """A task whose predictions can be plotted as charts."""

    def pictures(self, model: SequenceModel, rows: Iterable[Row], **options: Any) -> Iterator[Json]: ...


class Run:
    """A trained run, ready to evaluate, predict or generate."""

    def __init__(
        self, folder: RunFolder, config: RunConfig, task: AnyTask, model: SequenceModel, vocabulary: Any
    ) -> None:
        self.folder, self.config, self.task, self.model = folder, config, task, model.eval()
        self.tokenizer = vocabulary

    @property
    def summary(self) -> Json:
        return self.folder.summary() or {}

    @cached_property
    def material(self) -> Material:
        """Its data, and the reader for other data of the same shape."""
        return Material(self.config)

    def evaluate(self, data: str, **columns: object) -> Json:
        """Scores on a file, with their protocol and the naive baselines; `columns` as in the data section."""
        naive = json.loads((self.folder.model_files() / "naive.json").read_bytes())
        return self.task.evaluate(self.model, self.material.read(data, self.tokenizer, **columns), naive=naive)

    def seen(self, data: str, **columns: object) -> Seen | None:
        """Whether this file was used to train the run ("train") or to select its checkpoint ("valid")."""
        return seen_in(self.folder.record(), self.material, data, **columns)

    def predict(
        self,
        data: str | None = None,
        *,
        texts: Iterable[str] = (),
        columns: Mapping[str, object] | None = None,
        through: Callable[[Iterable[Row]], Iterable[Row]] = iter,
        **options: Any,
    ) -> Iterator[Row]:
        """A dict with the prediction for each source in a file or in `texts`, in order; evaluated lazily.

        Options: `beams`, `length_penalty`, `min_new`, `max_new`, `no_repeat`, `n_best`, `alignments`; for sampling,
        `temperature`, `top_k`, `top_p`, `seed`; for forecasts, `back`. `columns` of the data section: {"source": "a"};
        `through` is applied to the rows that are read, for example to count them.
        """
        self._check_verb("predict")
        rows: Iterable[Row] = ({"line": n, "source": text} for n, text in enumerate(texts, 1))
        if data is not None:
            rows = self.sources(data, columns=columns)
        return self.task.predict(self.model, through(rows), **options)

    def sources(self, data: str, *, columns: Mapping[str, object] | None = None) -> Iterator[Row]:
        """The rows of a file to predict from."""
        return self.material.sources(data, **(columns or {}))

    def pictures(self, data: str, *, columns: Mapping[str, object] | None = None, **options: Any) -> Iterator[Json]:
        """Chart data for each prediction: for a forecast, its history, prediction intervals and actual values."""
        if not isinstance(self.task, DrawnTask):
            raise UserError(f"a {self.task.name} run has no charts; leave --chart out")
        return self.task.pictures(self.model, self.material.sources(data, **(columns or {})), **options)

    def generate(self, prompt: str = "", *, count: int = 1, stop: Sequence[str] = (), **how: Any) -> Any:
        """The continuation of a prompt: a string, or a list of `count` strings.

        Options as in `stream`; or `beams` and `max_new`, to search for the most likely text instead of sampling.
        """
        self._check_verb("generate")
        stop = [s for s in stop if s]
        if how.get("beams", 1) > 1:
            texts = self._search(prompt, count, **how)
        else:
            how.pop("beams", None)
            texts = self._sample(prompt, count, stop, **how)
        texts = [cut_at(text, stop) for text in texts]
        return texts[0] if count == 1 else texts

    def write(self, prompt: str = "", *, stop: Sequence[str] = (), **how: Any) -> Iterator[str]:
        """Stream one continuation as text; it ends at the end-of-text token or before a stop string."""
        self._check_verb("generate")
        decoder, text, given, stop = self.tokenizer.decoder(), "", 0, [s for s in stop if s]
        held = max((len(s) for s in stop), default=1) - 1  # characters that may begin a stop string
        for (token,) in self.stream(prompt, **how):
            if token == self.tokenizer.eos:
                break
            text += decoder.push(token)
            if (cut := cut_at(text, stop)) != text:
                yield cut[given:]
                return
            if len(text) - held > given:
                yield text[given : len(text) - held]
                given = len(text) - held
        yield cut_at(text + decoder.flush(), stop)[given:]

    def stream(
        self,
        prompt: str = "",
        *,
        max_new: int = 200,
        temperature: float = 0.8,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int | None = None,
        count: int = 1,
    ) -> Iterator[list[int]]:
        """The next token of each of `count` continuations, `max_new` times, even after an end-of-text token."""
        choose = Choice(temperature=temperature, top_k=top_k, top_p=top_p)
        prompts = [self._prompt(prompt)] * count
        for tokens in stream(self.model, prompts, max_new=max_new, choose=choose, seed=seed):
            yield tokens.tolist()

    def _check_verb(self, verb: str) -> None:
        if verb != self.task.verb:
            raise UserError(f"a {self.task.name} run does not {verb}; use seqloom {self.task.verb}")

    def _sample(self, prompt: str, count: int, stop: Sequence[str], **how: Any) -> list[str]:
        decoders = [self.tokenizer.decoder() for _ in range(count)]
        texts = [""] * count
        ended = [False] * count
        for tokens in self.stream(prompt, count=count, **how):
            for n, token in enumerate(tokens):
                ended[n] = ended[n] or token == self.tokenizer.eos or any(s in texts[n] for s in stop)
                texts[n] += "" if ended[n] else decoders[n].push(token)
            if all(ended):
                break
        return [text + decoder.flush() for text, decoder in zip(texts, decoders, strict=True)]

    def _search(self, prompt: str, count: int, *, beams: int, max_new: int = 200, **sampling: Any) -> list[str]:
        if sampling:
            raise UserError(
                f"beams={beams} searches for the most likely text; {', '.join(sampling)} only apply to sampling"
            )
        end = self.tokenizer.eos
        with torch.inference_mode():
            state, last, refill = start(self.model, [self._prompt(prompt)])
        (found,) = beam_search(
            self.model, state, last, beams=max(beams, count), max_new=max_new, end=end, early=False, refill=refill
        )
        return [self.tokenizer.decode(hypothesis.tokens) for hypothesis in found[:count]]

    def _prompt(self, text: str) -> list[int]:
        """A prompt as ids; an empty one becomes a line break, or an end-of-text token if line breaks have no id."""
        ids = self.tokenizer.encode(text or "\n").tolist()
        return ids if (text and ids) or ids not in ([], [self.tokenizer.unk]) else [self.tokenizer.eos]


def load(folder: str | Path, *, int8: bool = False) -> Run:
    """Load a trained run after verifying its files; from the folder of a comparison, the model that it recommends.

    `int8`: quantise linear layers to one byte per weight."""
    place = RunFolder(run_of(Path(folder)))
    config = place.config()
    files = place.model_files()
    material = Material(config)
    vocabulary = material.load_vocabulary(files)
    task = material.task(vocabulary)
    model = model_config(config).assemble(task)
    load_weights(model, load_file(files / "model.safetensors"))
    if int8:
        model = to_int8(model)
    device = "cpu" if config.train.device == "cpu" else "auto"  # it may have been trained on another device
    return Run(place, config, task, model.to(choose_device(device)), vocabulary)


def cut_at(text: str, stops: Sequence[str]) -> str:
    """The text before the first stop string."""
    places = [place for place in (text.find(s) for s in stops if s) if place >= 0]
    return text[: min(places)] if places else text
