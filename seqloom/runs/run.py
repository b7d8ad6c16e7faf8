"""Run: a trained model loaded from its folder, for evaluation, prediction and generation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, overload, runtime_checkable

import torch

from seqloom.core.errors import RunError, UserError
from seqloom.core.network import SequenceModel
from seqloom.core.rows import Json, Row
from seqloom.core.task import AnyTask
from seqloom.data.memory import Data, is_path, like, store, title
from seqloom.data.options import DataOptions
from seqloom.data.shapes.columns import Columns, column_options
from seqloom.decode.beam import MOST_BEAMS, beam_search, check_beams
from seqloom.decode.chat import chat_ids, turn_ends
from seqloom.decode.pick import Choice
from seqloom.decode.prompts import start
from seqloom.decode.stream import stream
from seqloom.layers.int8 import to_int8
from seqloom.layers.kernels.engine import has_kernels
from seqloom.layers.linear import by_columns
from seqloom.layers.lora import adapter_tensors, merge
from seqloom.layers.tensors import read_tensors
from seqloom.runs.base import attach, find_base, is_partial
from seqloom.runs.durable import Damaged, shown
from seqloom.runs.folder import AGAIN, RunFolder
from seqloom.runs.material import Material
from seqloom.runs.predicting import Predictions, Sources, beside, text_row
from seqloom.runs.registry import check_options, feature, model_config
from seqloom.runs.seen import WARNINGS, seen_in
from seqloom.runs.settings import RunConfig, Say
from seqloom.runs.shown import as_html, as_text
from seqloom.runs.terminal import Plain
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
        self.say: Say = Plain().say  # about choices that were made; replace it to be told elsewhere, or not at all

    def __repr__(self) -> str:
        return as_text(str(self.folder.path), self.config, self.summary, self.task)

    def _repr_html_(self) -> str:
        return as_html(str(self.folder.path), self.config, self.summary, self.task)

    @property
    def summary(self) -> Json:
        """Scores, parameters, tokens and time."""
        return self.folder.summary() or {}

    @property
    def history(self) -> list[Json]:
        """What was recorded during training, step by step: losses, validation scores, learning rate."""
        return self.folder.metrics()

    @cached_property
    def material(self) -> Material:
        """Its data, and the reader for other data of the same shape."""
        return Material(self.config)

    def evaluate(self, data: Data, *, columns: Columns | None = None, **options: object) -> Json:
        """Scores on a file, or on data in memory as in `seqloom.fit`, with their protocol and the naive baselines.

        `columns`: names by role, like {"label": "stars"}, where they are others than in training and cannot be found;
        `options`: others of the data section.
        """
        naive = self.folder.naive()
        spec, needed = self._placed(data)
        how = self._options(spec, columns, needed | options)
        seen = seen_in(self.folder.record(), self.material, spec, how)
        if seen is not None:
            self.say(WARNINGS[seen].format(data=title(spec)))
        scores = self.task.evaluate(self.model, self.material.read(spec, self.tokenizer, how), naive=naive)
        return scores | {"trained_on": seen == "train", "selected_on": seen == "valid"}

    @overload
    def predict(
        self,
        data: str | Path | None = None,
        *,
        texts: Iterable[str] = (),
        second: str | None = None,
        passage: str | None = None,
        columns: Columns | None = None,
        settings: Mapping[str, object] | None = None,
        **options: Any,
    ) -> Predictions: ...

    @overload
    def predict(
        self,
        data: list[Any],
        *,
        columns: Columns | None = None,
        settings: Mapping[str, object] | None = None,
        **options: Any,
    ) -> list[Row]: ...

    @overload
    def predict(
        self,
        data: Data,
        *,
        columns: Columns | None = None,
        settings: Mapping[str, object] | None = None,
        **options: Any,
    ) -> Any: ...

    def predict(
        self,
        data: Data = None,
        *,
        texts: Iterable[str] = (),
        second: str | None = None,
        passage: str | None = None,
        columns: Columns | None = None,
        settings: Mapping[str, object] | None = None,
        **options: Any,
    ) -> Any:
        """A dict with the prediction for each source in a file or in `texts`, in order; evaluated lazily. The other
        columns of a table come along.

        For data in memory a list of them; for a data frame or dataset another one, with the predictions as columns.

        `second`, `passage`: what the model reads beside each of `texts`. Options: those in `run.task.predict_options`
        ("Predict" in the docs). `columns`: names by role, like {"text": "body"}, where they are others than in training
        and cannot be found; `settings`: other options of the data section.
        """
        self._check_verb("predict")
        self.task.check_options(options)
        if data is None:
            material, others = self.material, {"second": second, "passage": passage}
            rows = (text_row(material, text, line, **others) for line, text in enumerate(texts, 1))
            return Predictions(self.task.predict(self.model, rows, **options))
        if second is not None or passage is not None:
            raise UserError("second, passage: belong to texts; a row of data has its own")
        spec, needed = self._placed(data)
        how, shape = self._options(spec, columns, {**needed, **(settings or {})}, predict=True), self.material.shape
        sources = Sources(lambda: shape.sources(spec, how), spec)
        found = self.task.predict(self.model, sources, **options)
        table = shape.table(spec, how)
        if table is not None:
            echoes = {field: getattr(how, option, option) for field, option in shape.echoes.items()}
            found = beside(table, found, echoes)
        beside_rows = table is not None
        return Predictions(found, sources, beside_rows) if is_path(data) else like(data, list(found), beside_rows)

    def _placed(self, data: Data) -> tuple[str, Json]:
        """A path, and the data options with which it is read."""
        if is_path(data):
            return str(data), {}
        stored = store(data, self.material.shape.layout(self.material.options.model_dump(), self.tokenizer))
        return stored.spec, {path.removeprefix("data."): value for path, value in stored.settings.items()}

    def pictures(
        self,
        data: str,
        *,
        columns: Columns | None = None,
        settings: Mapping[str, object] | None = None,
        **options: Any,
    ) -> Iterator[Json]:
        """Chart data for each prediction: for a forecast, its history, prediction intervals and actual values."""
        if not isinstance(self.task, DrawnTask):
            raise UserError(f"a {self.task.name} run has no charts; leave --chart out")
        return self.task.pictures(self.model, self.sources(data, columns=columns, settings=settings), **options)

    def sources(
        self, data: str, *, columns: Columns | None = None, settings: Mapping[str, object] | None = None
    ) -> Iterator[Row]:
        """The rows of a file as `predict` reads them."""
        how = self._options(data, columns, settings or {}, predict=True)
        found: Iterator[Row] = self.material.shape.sources(data, how)
        return found

    def answered(
        self, data: str, *, columns: Columns | None = None, settings: Mapping[str, object] | None = None
    ) -> Iterator[Row]:
        """The rows of a file with their true answers, as "truth"."""
        found: Iterator[Row] = self.material.shape.answered(data, self._options(data, columns, settings or {}))
        return found

    def explain(self, text: str | Row | None = None, **options: Any) -> Any:
        """Look inside the model on a text, a row, or a row of a file: `seqloom.explain(run, text, ...)`."""
        return feature("explain.explaining").explain(self, text, **options)

    def generate(self, prompt: str = "", *, count: int = 1, stop: Sequence[str] = (), **how: Any) -> Any:
        """The continuation of a prompt: a string, or a list of `count` strings.

        Options as in `stream`; or `beams` and `max_new`, to search for the most likely text instead of sampling.
        `chat`: the prompt is what a user says, and the answer is returned; `system`: what the chat begins with.
        """
        self._check_verb("generate")
        stop = [s for s in stop if s]
        if count < 1:
            raise UserError(f"count={count}: must be 1 or more")
        if how.get("beams", 1) != 1:
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
        ends = self.ends(bool(how.get("chat")))
        for (token,) in self.stream(prompt, **how):
            if token in ends:
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
        chat: bool = False,
        system: str = "",
    ) -> Iterator[list[int]]:
        """The next token of each of `count` continuations, `max_new` times, even after an end-of-text token."""
        choose = Choice(temperature=temperature, top_k=top_k, top_p=top_p)
        prompts = [self.prompt_ids(prompt, chat, system)] * count
        for tokens in stream(self.model, prompts, max_new=max_new, choose=choose, seed=seed):
            yield tokens.tolist()

    def _options(
        self, data: str, columns: Columns | None, options: Mapping[str, object], predict: bool = False
    ) -> DataOptions:
        """How to read another file; says which columns were found where they have other names than in training."""
        given = {**column_options(self.material.shape, columns or {}), **options}
        how, found = self.material.options_for(data, self.tokenizer, given, predict)
        if found:
            self.say(f"columns: {', '.join(f'{role} = {name}' for role, name in found.items())}")
        return how

    def _check_verb(self, verb: str) -> None:
        if verb != self.task.verb:
            raise UserError(f"a {self.task.name} run does not {verb}; use seqloom {self.task.verb}")

    def _sample(self, prompt: str, count: int, stop: Sequence[str], **how: Any) -> list[str]:
        decoders = [self.tokenizer.decoder() for _ in range(count)]
        texts, ended, ends = [""] * count, [False] * count, self.ends(bool(how.get("chat")))
        for tokens in self.stream(prompt, count=count, **how):
            for n, token in enumerate(tokens):
                ended[n] = ended[n] or token in ends or any(s in texts[n] for s in stop)
                texts[n] += "" if ended[n] else decoders[n].push(token)
            if all(ended):
                break
        return [text + decoder.flush() for text, decoder in zip(texts, decoders, strict=True)]

    def _search(
        self,
        prompt: str,
        count: int,
        *,
        beams: int,
        max_new: int = 200,
        chat: bool = False,
        system: str = "",
        **sampling: Any,
    ) -> list[str]:
        if sampling:
            raise UserError(
                f"beams={beams} searches for the most likely text; {', '.join(sampling)} only apply to sampling"
            )
        check_beams(beams)
        if count > MOST_BEAMS:
            raise UserError(f"count={count}: a search gives at most {MOST_BEAMS}; sample for more, with beams=1")
        end = min(self.ends(chat) - {self.tokenizer.eos}, default=self.tokenizer.eos)  # of a turn, if that differs
        with torch.inference_mode():
            state, last, refill = start(self.model, [self.prompt_ids(prompt, chat, system)])
        (found,) = beam_search(
            self.model, state, last, beams=max(beams, count), max_new=max_new, end=end, early=False, refill=refill
        )
        return [self.tokenizer.decode(hypothesis.tokens) for hypothesis in found[:count]]

    def ends(self, chat: bool) -> set[int]:
        """The tokens after which a text, or an answer in a chat, ends."""
        return turn_ends(self.tokenizer) if chat else {self.tokenizer.eos}

    def prompt_ids(self, text: str, chat: bool = False, system: str = "") -> list[int]:
        """A prompt as ids, after what the tokenizer begins every text with; an empty one without that becomes a line
        break, or an end-of-text token if line breaks have no id."""
        if system and not chat:
            raise UserError("system: only a chat has a system message; set chat=True (--chat), or leave it out")
        if chat:
            first = [{"role": "system", "content": system}] if system else []
            return chat_ids(self.tokenizer, [*first, {"role": "user", "content": text}])
        opening = list(self.tokenizer.opening)
        if opening and not text:
            return opening
        ids = self.tokenizer.encode(text or "\n").tolist()
        return [*opening, *ids] if (text and ids) or ids not in ([], [self.tokenizer.unk]) else [self.tokenizer.eos]


def load(folder: str | Path, *, int8: bool = False) -> Run:
    """Load a trained run after verifying its files; from the folder of a comparison, the model that it recommends.

    `int8`: quantise linear layers to one byte per weight."""
    place = RunFolder(run_of(Path(folder)))
    config, record = place.config(), place.record()
    if record.get("bare"):
        raise UserError(
            f"{record['converted']}: an encoder without an output layer; train one: seqloom fit --task TASK "
            f"--data DATA --from {record['converted']}"
        )
    files = place.model_files()
    check_options(config, place.path / "run.json")
    material = Material(config)
    vocabulary = material.load_vocabulary(files)
    if vocabulary.hash != record.get("tokenizer", {}).get("hash"):
        raise Damaged(f"{shown(files)}: the tokenizer is not the one that run.json names", AGAIN)
    task = material.task(vocabulary)
    model = model_config(config).assemble(task)
    if is_partial(place):
        attach(model, find_base(place, config), config)
    named = adapter_tensors(model, files) if config.lora.rank else read_tensors(files / "model.safetensors")
    try:
        load_weights(model, named)
    except RunError as error:
        raise Damaged(f"{shown(files)}: {error}", AGAIN) from None
    device = choose_device("cpu" if config.train.device == "cpu" else "auto")  # maybe another than in training
    if int8:
        model = to_int8(merge(model))
    elif task.verb == "generate" and device.type == "cpu" and not has_kernels():
        by_columns(model)  # texts are written one token at a time
    return Run(place, config, task, model.to(device), vocabulary)


def cut_at(text: str, stops: Sequence[str]) -> str:
    """The text before the first stop string."""
    places = [place for place in (text.find(s) for s in stops if s) if place >= 0]
    return text[: min(places)] if places else text
