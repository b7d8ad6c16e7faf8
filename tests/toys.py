"""Small things the tests share: a task of a few tokens, streams in memory, models with every weight alive."""

from __future__ import annotations

import inspect
import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.data.shapes.pairs.rows import PairRows
from seqloom.data.shapes.pairs.vocabulary import TokenizerPair
from seqloom.data.stream import TokenStream
from seqloom.decode.beam import Hypothesis, beam_search
from seqloom.decode.prompts import start
from seqloom.runs.registry import find_config, names
from seqloom.tasks import translation as translating
from seqloom.tasks.language_model.task import Config, LanguageModel
from seqloom.tasks.translation.task import Translation
from seqloom.tokenizers import Tokenizer, train_tokenizer

VOCABULARY = 11
Model = TypeVar("Model", bound=nn.Module)
Case = tuple[str, dict[str, Any]]  # a model and some of its options


def language_model(vocabulary: int = VOCABULARY, **options: Any) -> LanguageModel:
    return Config.model_validate(options).build(SimpleNamespace(size=vocabulary, unk=None, byte_counts=None))


def tokens(*shape: int, seed: int = 0, vocabulary: int = VOCABULARY) -> Tensor:
    return torch.randint(vocabulary, shape, generator=torch.Generator().manual_seed(seed))


def stream(ids: Any, vocabulary: int = VOCABULARY) -> TokenStream:
    return TokenStream.of(np.asarray(ids), 2 * len(ids), vocabulary)


def alive(model: Model, std: float = 0.3) -> Model:
    """Every weight drawn anew, for many start at zero; in double precision, and in evaluation mode."""
    generator = torch.Generator().manual_seed(1)
    for weight in model.parameters():
        nn.init.normal_(weight, std=std, generator=generator)
    return (model.double() if list(model.parameters()) else model).eval()


def network(name: str, options: dict[str, Any], vocabulary: int = VOCABULARY) -> SequenceModel:
    """A small model of the language-model task; one that counts has read a short text."""
    config = find_config("models", name).model_validate({"width": 16, **options})
    model = config.assemble(language_model(vocabulary))
    if not model.descends:
        model.observe([tokens(300, seed=9, vocabulary=vocabulary)])
    return alive(model)


def kept(build: Callable[..., Model]) -> Callable[..., Model]:
    """Build the model of a case once for all turns of a test; for tests that leave it as it is."""
    last: dict[str, Model] = {}

    def built(*case: Any) -> Model:
        key = title(case)  # type: ignore[arg-type]
        if key not in last:
            last.clear()
            last[key] = build(*case)
        return last[key]

    return built


def every_case() -> list[Case]:
    """Every model in the folder, in all of its variants."""
    return [(name, options) for name in names("models") for options in find_config("models", name).variants]


def accepted(build: Callable[..., Any], *case: Any) -> bool:
    """Whether a task takes a model: ask it."""
    try:
        build(*case)
    except UserError:
        return False
    return True


def language_models() -> list[str]:
    """The models that the language-model task accepts as they come."""
    return [name for name in names("models") if accepted(network, name, {})]


def title(case: Case) -> str:
    return " ".join([case[0], *(f"{option}={value}" for option, value in case[1].items())])


@cache
def _characters(letters: str) -> Tokenizer:
    return train_tokenizer("characters", [letters])


def translation(**options: Any) -> Translation:
    """Words of a to h into words of A to F; each side has a vocabulary of its own, or both have one."""
    alphabets = ["abcdefghABCDEF"] * 2 if options.get("joint") else ["abcdefgh", "ABCDEF"]
    source, target = map(_characters, alphabets)
    own = {name: value for name, value in options.items() if name != "joint"}
    return translating.Config.model_validate(own).build(TokenizerPair(source, target))


def translator(name: str, options: dict[str, Any]) -> SequenceModel:
    """A small model of the translation task; with one vocabulary, for some models have one table."""
    task = translation(joint=True)
    return alive(find_config("models", name).model_validate({"width": 16, **options}).assemble(task))


def pair_rows(task: Translation, pairs: Sequence[tuple[str, str]]) -> PairRows:
    """Pairs of texts in memory, as a task reads them."""
    sides = (task.tokenizers.source, [s for s, _ in pairs]), (task.tokenizers.target, [t for _, t in pairs])
    streams = [stream([id for text in texts for id in [*own.encode(text), own.eos]], own.size) for own, texts in sides]
    origin: Any = SimpleNamespace(rows=lambda: ((n, *pair) for n, pair in enumerate(pairs)))
    return PairRows(streams[0], streams[1], (sides[0][0].eos, sides[1][0].eos), origin)


def words(count: int, longest: int, seed: int = 0) -> list[tuple[str, str]]:
    """Pairs of words, the shortest of one letter, the longest of as many as asked."""
    chance = random.Random(seed)
    sizes = [(chance.randint(1, longest), chance.randint(1, longest)) for _ in range(count)]
    return [("".join(chance.choices("abcdefgh", k=m)), "".join(chance.choices("ABCDEF", k=n))) for m, n in sizes]


def search(model: SequenceModel, prompts: list[list[int]], **options: Any) -> list[list[Hypothesis]]:
    """Beam search from the states that prompts leave."""
    with torch.inference_mode():
        state, last, refill = start(model, prompts)
    return beam_search(model, state, last, refill=refill, **options)


@contextmanager
def at(**place: Any) -> Iterator[None]:
    """A failure inside a loop says at which turn."""
    try:
        yield
    except BaseException as error:
        error.add_note(
            "at " + ", ".join(f"{name}={getattr(value, '__name__', value)}" for name, value in place.items())
        )
        raise


def each(**choices: Sequence[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test with every combination of values, as one case: for what need not stand in the list of tests."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def every(**given: Any) -> None:
            for values in itertools.product(*choices.values()):
                turn = dict(zip(choices, values, strict=True))
                with at(**turn):
                    test(**given, **turn)

        signature = inspect.signature(test)
        rest = [parameter for name, parameter in signature.parameters.items() if name not in choices]
        every.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return every

    return decorate


def close(ours: Any, theirs: Any) -> None:
    """Equal up to rounding: nine digits in double precision, five in single."""
    tolerance = 1e-9 if torch.as_tensor(ours).dtype == torch.float64 else 1e-5
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


class ToyScale:
    """What a forecaster knows of its data, with nothing to read from files."""

    method = "standard"

    def __init__(self, targets: int = 1, past: int = 0, known: int = 0, season: int = 1, gaps: bool = False) -> None:
        self.targets, self.past, self.known = (
            [f"{k}{n}" for n in range(m)] for k, m in zip("xpk", (targets, past, known), strict=True)
        )
        self.seasons = [season] if season > 1 else []
        self.season, self.missing, self.frequency = season, self.targets if gaps else [], "number"
        self.centre, self.spread = 5.0 + np.arange(targets), 2.0 + np.arange(targets)

    def apply(self, values: np.ndarray, part: str = "targets") -> np.ndarray:
        return ((values - self.centre) / self.spread).astype(np.float32)

    def undo(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(values, np.float64) * self.spread + self.centre


class ToySeries:
    """Noisy waves as SeriesRows; the first `begins` points are history."""

    def __init__(
        self,
        scale: ToyScale,
        lengths: Sequence[int],
        begins: Sequence[int] | int = 0,
        seed: int = 0,
        missing: float = 0.0,
    ) -> None:
        rng = np.random.default_rng(seed)
        self.scale, self.names = scale, [f"s{n}" for n in range(len(lengths))]
        self.values, self.past, self.known, self.times = [], [], [], []
        for n, length in enumerate(lengths):
            t = np.arange(length)[:, None]
            wave = np.sin(t / 3 + n + np.arange(len(scale.targets))) + 0.1 * rng.standard_normal(
                (length, len(scale.targets))
            )
            wave[rng.random(wave.shape) < missing] = np.nan
            self.values.append(wave.astype(np.float32))
            self.past.append(rng.standard_normal((length, len(scale.past))).astype(np.float32))
            self.known.append(rng.standard_normal((length + 40, len(scale.known))).astype(np.float32))
            self.times.append(np.arange(length))
        self.begins = [begins] * len(lengths) if isinstance(begins, int) else list(begins)
        self.lengths = np.array(lengths) - np.array(self.begins)

    def __len__(self) -> int:
        return len(self.values)

    def future_known(self, series: int, steps: int) -> np.ndarray:
        length = len(self.values[series])
        return self.known[series][length : length + steps]
