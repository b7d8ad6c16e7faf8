"""Where names become objects: a configuration into a task and a model, a run folder into a working run.

Models and tasks are open sets: the file's name is the name you type, its `Config` says the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import torch
from pydantic import ValidationError
from safetensors.torch import load_file

from seqloom.adapt.int8 import to_int8
from seqloom.core.config import merge, parse_overrides, read_toml, validate
from seqloom.core.errors import UserError, unknown
from seqloom.core.network import ModelConfig, SequenceModel
from seqloom.core.run import DataConfig, RunConfig, RunFolder, TrainConfig
from seqloom.core.task import Task, TaskConfig
from seqloom.generate.beam import beam_search
from seqloom.generate.pick import Choice
from seqloom.generate.prompts import start
from seqloom.generate.stream import stream
from seqloom.materials import material_of
from seqloom.train.checkpoint import load_weights
from seqloom.train.engine import choose_device

BUDGETS = ("steps", "tokens", "seconds")
DEFAULT_TOKENS = 1_536_000  # minutes on two cores, and enough to tell architectures apart


def names(kind: str) -> list[str]:
    """The names in an open set: `models` or `tasks`. Imports none of them."""
    folder = Path(__file__).parent / kind
    return sorted(m.name for m in iter_modules([str(folder)]) if not m.name.startswith("_"))


def find_config(kind: str, name: str) -> Any:
    if not isinstance(name, str) or name not in names(kind):
        raise unknown(kind.removesuffix("s"), name, names(kind))
    return import_module(f"seqloom.{kind}.{name}").Config


def configure(recipe: Path | None, flags: Mapping[str, Any], overrides: Iterable[str] = ()) -> RunConfig:
    """What the user said (the later wins: recipe, flags, -o), over what suits the model she chose."""
    said = merge(read_toml(recipe) if recipe else {}, flags, parse_overrides(overrides))
    if start := said.get("train", {}).get("start"):
        said = _beginning_with(start, said)
    task = find_config("tasks", said.setdefault("task", {}).pop("name", "language_model"))
    model = find_config("models", said.setdefault("model", {}).pop("name", "lstm"))
    suits = {path: value for path, value in model.defaults.items() if _is_known(path, task)} | task.defaults
    if not any(said.get("train", {}).get(budget) for budget in BUDGETS):
        suits["train.tokens"] = DEFAULT_TOKENS
    kinds = {"task": task, "model": model, "data": DataConfig, "train": TrainConfig}
    sections = validate(kinds, merge(suits, said))
    if task.whole and "context" not in said["model"]:
        sections["model"] = sections["model"].reading(sections["task"].tokens_per_row)
    named = {k: {"name": kinds[k].__module__.rpartition(".")[2]} | sections[k].model_dump() for k in ("task", "model")}
    return RunConfig(**named, data=sections["data"], train=sections["train"])


def _beginning_with(start: str, said: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The model and the tokenizer are those of another run, but for what was said."""
    before = RunFolder(Path(start)).config()
    model, named = dict(before.model), said.get("model", {}).get("name")
    if named and named != model["name"]:
        raise UserError(f"--from {start}: a run of {model['name']}, not of {named}; leave --model out")
    kept = ("tokenizer", "vocabulary", "min_count", "split")
    known = find_config("tasks", said.get("task", {}).get("name", "language_model")).model_fields
    task = {option: before.task[option] for option in kept if option in before.task and option in known}
    limit: int | None = None
    with torch.device("meta"), suppress(NotImplementedError):  # one that only counts has no layers to build
        limit = _section("models", model).build().limit
    for option in ({"longest", "window"} & known.keys()) if limit else ():
        task[option] = min(limit, known[option].default)  # it reads no more than it could there
    return merge({"model": model, "task": task}, said)


def _is_known(path: str, task: type[TaskConfig]) -> bool:
    """What suits a model may be an option that this task does not have."""
    section, _, option = path.partition(".")
    return section != "task" or option in task.model_fields


def task_config(config: RunConfig) -> TaskConfig:
    return _section("tasks", config.task)


def model_config(config: RunConfig) -> ModelConfig:
    return _section("models", config.model)


def _section(kind: str, section: Mapping[str, Any]) -> Any:
    options = dict(section)
    name = options.pop("name")
    try:
        return find_config(kind, name).model_validate(options)
    except ValidationError as error:
        wrong = ", ".join(dict.fromkeys(str(mistake["loc"][0]) for mistake in error.errors() if mistake["loc"]))
        raise UserError(f"a run of {name} with options that it does not have: {wrong}; was run.json edited?") from None


class Run:
    """A trained run, ready to evaluate, to predict or to generate."""

    def __init__(self, folder: RunFolder, config: RunConfig, task: Task, model: SequenceModel, tokenizer: Any) -> None:
        self.folder, self.config, self.task, self.model, self.tokenizer = folder, config, task, model.eval(), tokenizer

    @property
    def summary(self) -> dict[str, Any]:
        return self.folder.summary() or {}

    def evaluate(self, data: str, **columns: str) -> dict[str, Any]:
        """Scores on a part, with their protocol and the naive baselines beside; `columns` as in the data section."""
        naive = json.loads((self.folder.model_files() / "naive.json").read_bytes())
        material, how = material_of(task_config(self.config)), self.config.data.model_copy(update=columns)
        return self.task.evaluate(self.model, material.prepare(material.open(data, how), self.tokenizer), naive=naive)

    def predict(
        self,
        data: str | None = None,
        *,
        texts: Iterable[str] = (),
        columns: Mapping[str, str] | None = None,
        **how: Any,
    ) -> Iterator[dict[str, Any]]:
        """For each source, of a file or of `texts`, a dict with its prediction, in order; read and searched as you go.

        Options: `beams`, `length_penalty`, `min_new`, `max_new`, `no_repeat`, `n_best`, `alignments`; or, to draw,
        `temperature`, `top_k`, `top_p`, `seed`; of forecasts `back`. `columns` as in the data section: {"source": "a"}.
        """
        self.task.check_verb("predict")
        rows: Iterable[dict[str, Any]] = ({"line": n, "source": text} for n, text in enumerate(texts, 1))
        return self.task.predict(self.model, rows if data is None else self._sources(data, columns), **how)

    def pictures(self, data: str, *, columns: Mapping[str, str] | None = None, **how: Any) -> Iterator[dict[str, Any]]:
        """The same as what a chart shows: of a forecast its history, its bands and what came."""
        return self.task.pictures(self.model, self._sources(data, columns), **how)

    def _sources(self, data: str, columns: Mapping[str, str] | None) -> Iterator[dict[str, Any]]:
        config = self.config.data.model_copy(update=columns or {})
        return material_of(task_config(self.config)).sources(data, config)

    def generate(self, prompt: str = "", *, count: int = 1, stop: Sequence[str] = (), **how: Any) -> Any:
        """The continuation of a prompt: a string, or a list of `count` strings.

        Options as in `stream`; or `beams` and `max_new`, to search for the most likely instead of drawing.
        """
        self.task.check_verb("generate")
        stop = [s for s in stop if s]
        if how.get("beams", 1) > 1:
            texts = self._search(prompt, count, **how)
        else:
            how.pop("beams", None)
            texts = self._draw(prompt, count, stop, **how)
        texts = [cut_at(text, stop) for text in texts]
        return texts[0] if count == 1 else texts

    def write(self, prompt: str = "", *, stop: Sequence[str] = (), **how: Any) -> Iterator[str]:
        """One continuation, as text, as soon as it is certain; ends with the document or before a stop string."""
        self.task.check_verb("generate")
        decoder, text, given, stop = self.tokenizer.decoder(), "", 0, [s for s in stop if s]
        held = max((len(s) for s in stop), default=1) - 1  # a stop string may be half written
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
        """The next token of each of `count` continuations, `max_new` times, also past an end of text."""
        choose = Choice(temperature=temperature, top_k=top_k, top_p=top_p)
        prompts = [self._prompt(prompt)] * count
        for tokens in stream(self.model, prompts, max_new=max_new, choose=choose, seed=seed):
            yield tokens.tolist()

    def _draw(self, prompt: str, count: int, stop: Sequence[str], **how: Any) -> list[str]:
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

    def _search(self, prompt: str, count: int, *, beams: int, max_new: int = 200, **drawing: Any) -> list[str]:
        if drawing:
            raise UserError(
                f"beams={beams} searches for the most likely text; {', '.join(drawing)} only apply to drawing"
            )
        end = self.tokenizer.eos
        with torch.inference_mode():
            state, last, refill = start(self.model, [self._prompt(prompt)])
        (found,) = beam_search(
            self.model, state, last, beams=max(beams, count), max_new=max_new, end=end, early=False, refill=refill
        )
        return [self.tokenizer.decode(hypothesis.tokens) for hypothesis in found[:count]]

    def _prompt(self, text: str) -> list[int]:
        """A prompt as ids; an empty one begins after a line break, or after an end of text where there are none."""
        ids = self.tokenizer.encode(text or "\n").tolist()
        return ids if (text and ids) or ids not in ([], [self.tokenizer.unk]) else [self.tokenizer.eos]


def load(folder: str | Path, *, int8: bool = False) -> Run:
    """A run that has a model; its files are verified first. `int8`: its linear maps in a byte per weight."""
    place = RunFolder(Path(folder))
    config = place.config()
    files = place.model_files()
    tokenizer = material_of(task_config(config)).load_tokenizer(files)
    task = task_config(config).build(tokenizer)
    model = model_config(config).assemble(task)
    load_weights(model, load_file(files / "model.safetensors"))
    if int8:
        model = to_int8(model)
    device = "cpu" if config.train.device == "cpu" else "auto"  # trained elsewhere, used here
    return Run(place, config, task, model.to(choose_device(device)), tokenizer)


def doctor(data: str, *, task: str = "language_model", **options: Any) -> list[Any]:
    """What is wrong with this data, before any training. Options as in `seqloom doctor`."""
    from seqloom.data.doctor import PROBED, examine

    found = examine(task, data, **options)
    if task in PROBED and not any(finding.level == "error" for finding in found):
        settings = {"train": data, "valid": options.pop("valid_data", None)} | options
        found.append(probe(task, DataConfig.model_validate(settings)))
    return found


def probe(task: str, data: DataConfig) -> Any:
    """A finding: whether forecasts of this data see the future, by any strategy and scale of windows, of a model that
    reads one way and of one that sees the history whole; with weights as they are drawn, for these decide nothing."""
    from seqloom.data.findings import Finding

    options = find_config("tasks", task)
    material = material_of(options())
    parts = material.open_parts(data)
    tokenizer = material.make_tokenizer(options(), parts["train"])
    rows, made = material.prepare(parts["train"], tokenizer), 0
    for settings in options.probes:
        built = options.model_validate(settings).build(tokenizer)
        for name in ("gru", "transformer"):
            model = find_config("models", name).model_validate({"width": 16}).assemble(built)
            found = built.probe(model, rows)
            if found.moved:
                return Finding("error", f"{name}, {settings}: {found}", "please report it")
            made += found.forecasts
    ways = len(options.probes)
    return Finding(
        "ok", f"leakage probe: {made:,} forecasts in {ways} ways, made again with another future; none moved"
    )


def fit(recipe: str | Path | None = None, **options: Any) -> Run:
    """Train a model, or go on training it. Options as in `seqloom fit`."""
    from seqloom.fitting import fit as train

    return train(recipe, **options)


def cut_at(text: str, stops: Sequence[str]) -> str:
    """The text before the first stop string."""
    places = [place for place in (text.find(s) for s in stops if s) if place >= 0]
    return text[: min(places)] if places else text


def check_reading(task: TaskConfig, model: SequenceModel) -> None:
    """A model with a limit reads windows that fit into it, and carries no state that could be cut."""
    truncation = getattr(task, "truncation", "regular")
    if model.limit is None:
        return
    for option in ("length", "context"):
        if (wanted := getattr(task, option, 0)) > model.limit:
            raise UserError(
                f"task.{option}={wanted} is longer than the model's context {model.limit}; set model.context={wanted}"
            )
    if truncation != "regular":
        raise UserError(f"task.truncation={truncation} cuts a carried state; this model reads windows and carries none")


def count_parameters(model: SequenceModel) -> int:
    return sum(p.numel() for p in model.parameters())


def blueprint(config: RunConfig, task: Task) -> SequenceModel:
    """The model without memory for its weights: to count them before they are allocated."""
    with torch.device("meta"):
        return model_config(config).assemble(task)
