"""The speed of every model, side by side: python benchmarks/every_model.py [--quick] [--minutes N] [--json FILE] ...

All models have as many parameters. At every point (rows x length) they take turns, round by round, and so does the
machine's limit; the best turn counts. Weights are random, text is real, all of it is float32.

training   The trainer's own update with AdamW. When the length grows, the rows become fewer: 4,096 tokens in each
           update, 8,192 in the last. Share: three times the forward operations, of a large matrix product's speed.
memory     The peak of two such updates, the model and its optimiser included.
decoding   One token at a time, the state handed on; the tokens timed stand around the length given. Share: the bytes
           of weights and state that a step must read, of the speed of reading as many as the weights again and again.

Models that learn by counting are only decoded. `-` is what a model cannot read, or what the time did not allow for:
--minutes shortens the rounds first, and then leaves out the slowest models, from the longest lengths down.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import common
import numpy as np
import tables
import torch
from torch import Tensor

from seqloom.core.batch import Batch
from seqloom.core.errors import UserError
from seqloom.core.model import ModelConfig
from seqloom.core.network import SequenceModel
from seqloom.core.task import Task
from seqloom.data.text import open_text
from seqloom.lab.cost import peak_memory, state_bytes
from seqloom.lab.matching import match_size
from seqloom.runs.build import count_parameters
from seqloom.runs.registry import find_config, names

LIMIT = "limit"
GROWTH = 2.5  # a call takes about so many times as long as at the point before, or less
CALLS = 5  # at least, of a training update at one point: two for the memory, one to begin with, two rounds

Shapes = tuple[tuple[int, int], ...]  # rows x length


@dataclass(frozen=True)
class Size:
    """How large everything is, and how long it is measured."""

    parameters: int = 800_000
    decode_rows: Shapes = ((1, 64), (8, 64), (64, 64))
    decode_lengths: Shapes = ((1, 64), (1, 256), (1, 1024), (1, 4096), (1, 8192))
    train_rows: Shapes = ((1, 64), (8, 64), (64, 64))
    train_lengths: Shapes = ((64, 64), (16, 256), (4, 1024), (1, 4096), (1, 8192))
    span: int = 32  # tokens decoded in one call, as many before the length as after it
    text: int = 400_000  # tokens, for those that count
    rounds: int = 7
    turn: float = 0.1  # seconds of a contender in a round
    matmul: int = 2048

    @property
    def longest(self) -> int:
        """Tokens that a model must be able to read."""
        return max(length for _, length in self.decode_lengths + self.train_lengths) + self.span


QUICK = Size(
    parameters=30_000,
    decode_rows=((1, 8), (2, 8)),
    decode_lengths=((1, 8), (1, 16)),
    train_rows=((1, 8), (2, 8)),
    train_lengths=((2, 8), (1, 16)),
    span=4,
    text=4_000,
    rounds=2,
    turn=0.0,
    matmul=64,
)


class Point(NamedTuple):
    kind: str  # train or decode
    rows: int
    length: int

    def __str__(self) -> str:
        return f"{self.kind} {self.rows} x {self.length}"


@dataclass
class Figure:
    """Of one model at one point."""

    tokens_per_second: float
    share: float | None  # of the limit; None: it has no weights to speak of
    peak_bytes: int | None  # of training
    seconds: list[float]  # of each round's calls


@dataclass
class Bench:
    """The models, what they read, and what became of them."""

    models: dict[str, SequenceModel]
    text: Tensor
    size: Size
    folder: Path
    left_out: list[str] = field(default_factory=list)

    def warm_up(self) -> None:
        """Libraries keep memory from their first call on, which no model should answer for."""
        for model in self.models.values():
            if model.descends:
                self._learner(model, Point("train", 1, 8))

    def measure(self, minutes: float) -> Iterator[dict[str, Any]]:
        """Every point, with an equal part of the time that is left."""
        points, ends, past = every_point(self.size), time.perf_counter() + 60 * minutes, dict[tuple[str, str], float]()
        for n, point in enumerate(points):
            print(f"{n + 1}/{len(points)} {point}", file=sys.stderr, flush=True)
            seconds = (ends - time.perf_counter()) / (len(points) - n)
            calls = {name: past.get((point.kind, name), 0.0) for name in self.models if self._can(name, point)}
            chosen = affordable(calls, seconds)
            slow = [name for name in calls if name not in chosen]
            self.left_out += [f"{point}: {name}, too slow for the time given" for name in slow]
            measured = self._point(point, chosen, seconds)
            past |= {(point.kind, name): min(figure["seconds"]) for name, figure in measured["figures"].items()}
            past |= {(point.kind, name): float("inf") for name in slow}  # and longer ones are slower still
            yield measured

    def _can(self, name: str, point: Point) -> bool:
        model, span = self.models[name], self.size.span if point.kind == "decode" else 0
        if point.kind == "train" and not model.descends:
            return False
        if model.reach is not None and model.reach < point.length + span:
            self.left_out.append(f"{point}: {name}, which reads no more than {model.reach} tokens")
            return False
        return True

    def _point(self, point: Point, names: Sequence[str], seconds: float) -> dict[str, Any]:
        ends = time.perf_counter() + seconds
        make = self._decoder if point.kind == "decode" else self._learner
        contenders = {name: make(self.models[name], point) for name in names}
        limit = common.ReadLimit(4 * self.size.parameters) if point.kind == "decode" else self._matmul()
        left = ends - time.perf_counter()
        turns = common.race({**contenders, LIMIT: limit}, self.size.rounds, self.size.turn, left)
        speed = limit.work / min(turns[LIMIT])
        figures = {name: asdict(contender.figure(turns[name], speed)) for name, contender in contenders.items()}
        return {**point._asdict(), "limit": speed, "unit": limit.unit, "figures": figures}

    def _matmul(self) -> common.MatmulLimit:
        return common.MatmulLimit(self.size.matmul)

    def _decoder(self, model: SequenceModel, point: Point) -> Decoder:
        return Decoder(model, rows_of(self.text, point.rows, point.length + self.size.span), self.size.span)

    def _learner(self, model: SequenceModel, point: Point) -> Learner:
        return Learner(model, rows_of(self.text, point.rows, point.length + 1), self.folder)


class Learner:
    """A copy of a model that is trained; carries its state if it would in a run."""

    def __init__(self, model: SequenceModel, ids: Tensor, folder: Path) -> None:
        batch = Batch(ids[:, :-1], None, ids[:, 1:], continues=True)
        self.tokens, self.flops = batch.targets.numel(), 3 * model.flops(ids.size(1) - 1)
        with peak_memory() as peak:
            self.update = common.our_update(deepcopy(model), batch, folder)
            for _ in range(2):  # the first makes the optimiser's moments
                self.update()
        self.peak = peak.bytes

    def __call__(self) -> None:
        self.update()

    def figure(self, seconds: list[float], limit: float) -> Figure:
        speed = self.tokens / min(seconds)
        return Figure(speed, speed * self.flops / limit, self.peak, seconds)


class Decoder:
    """A model that has read a little less than a length; a call reads on, to a little more, from there again."""

    def __init__(self, model: SequenceModel, ids: Tensor, span: int) -> None:
        self.model, first = model.eval(), ids.size(1) - span - span // 2 - 1
        with torch.inference_mode():
            self.state = model.begin(ids[:, :first])
        self.room, *self.tokens = ids[:, first : first + 1 + span].split(1, dim=1)
        bytes_of_weights = None if not model.descends else common.weight_bytes(model)
        self.bytes = bytes_of_weights and bytes_of_weights + state_bytes(self.state)

    def __call__(self) -> None:
        self.seconds(1)

    def seconds(self, calls: int) -> float:
        spent = 0.0
        with torch.inference_mode():
            for _ in range(calls):
                _, state = self.model(self.room, self.state)  # a state that grows is copied here, with room for more
                started = time.perf_counter()
                for token in self.tokens:
                    _, state = self.model(token, state)
                spent += time.perf_counter() - started
        return spent / calls

    def figure(self, seconds: list[float], limit: float) -> Figure:
        steps = len(self.tokens) / min(seconds)
        share = None if self.bytes is None else steps * self.bytes / limit
        return Figure(steps * len(self.room), share, None, seconds)


def main() -> None:
    options = read_options()
    if options.threads:
        torch.set_num_threads(options.threads)
    size = QUICK if options.quick else Size()
    size = replace(size, parameters=options.params or size.parameters)
    before = json.loads(options.against.read_text()) if options.against else None
    if before and before["size"] != json.loads(json.dumps(asdict(size))):
        sys.exit(f"{options.against}: measured at other sizes, which cannot be compared")
    report = measure(size, options.models.split(",") if options.models else language_models(), options.minutes)
    report = {"quick": options.quick, **report}
    print(tables.table(report))
    if before:
        print("\n" + tables.ratios(report, before))
    if options.json:
        common.write_json(options.json, report)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, a few seconds: does everything still run?")
    parser.add_argument("--minutes", type=float, default=8.0, help="about how long it may take; 8")
    parser.add_argument("--models", metavar="A,B", help="only these; all")
    parser.add_argument("--params", type=int, help="parameters of each model; 800000")
    parser.add_argument("--threads", type=int, default=0, help="threads of the processor; 0: torch's choice")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    parser.add_argument("--against", type=Path, metavar="FILE", help="print the ratio to figures written before, too")
    return parser.parse_args()


def measure(size: Size, names: Sequence[str], minutes: float) -> dict[str, Any]:
    """All figures, as JSON."""
    text, models, left_out = read_text(size.text), {}, []
    for name in names:
        try:
            models[name] = make_model(name, size.parameters, size.longest)
        except UserError as error:  # too small, or not for this task
            left_out.append(str(error))
            continue
        if not models[name].descends:
            models[name].observe([text])
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(models, text, size, Path(folder), left_out)
        bench.warm_up()
        points = list(bench.measure(minutes))
    counted = {name: count_parameters(model) for name, model in models.items()}
    return {
        "machine": common.describe_machine(),
        "size": asdict(size),
        "models": counted,
        "points": points,
        "left_out": left_out,
    }


def every_point(size: Size) -> list[Point]:
    """Decoding first, which takes less time than it is given; then lengths grow."""
    decode = [Point("decode", *shape) for shape in size.decode_rows + size.decode_lengths]
    train = [Point("train", *shape) for shape in size.train_rows + size.train_lengths]
    return list(dict.fromkeys(decode + train))


def affordable(calls: dict[str, float], seconds: float) -> list[str]:
    """Those who can take part, given how long a call took them at the point before; the slowest give way."""
    chosen = sorted(calls, key=lambda name: calls[name])
    while chosen and CALLS * GROWTH * sum(calls[name] for name in chosen) > seconds:
        chosen.pop()
    return [name for name in calls if name in chosen]


def language_models() -> list[str]:
    """Those that the task accepts."""
    return [name for name in names("models") if accepts(common.make_task(), name)]


def accepts(task: Task, name: str) -> bool:
    try:
        with torch.device("meta"):
            find_config("models", name).model_validate({}).assemble(task)
    except UserError:
        return False
    return True


def make_model(name: str, parameters: int, longest: int) -> SequenceModel:
    """Of that size, made to read so many tokens."""
    task = common.make_task()
    config: ModelConfig = find_config("models", name).model_validate({}).reading(longest)

    def blueprint(config: ModelConfig) -> SequenceModel:
        with torch.device("meta"):
            return config.assemble(task)

    if blueprint(config).descends:
        config = match_size(config, parameters, lambda tried: count_parameters(blueprint(tried)), name)
    torch.manual_seed(0)
    return config.assemble(task)


def read_text(tokens: int) -> Tensor:
    """Real text, its letters folded into the vocabulary."""
    letters = "".join(open_text("sample:python-docs").pieces()).encode()[:tokens]
    return torch.from_numpy(np.frombuffer(letters, np.uint8) % common.VOCABULARY).long()


def rows_of(text: Tensor, rows: int, length: int) -> Tensor:
    """(rows, length), from all over the text"""
    starts = torch.arange(rows) * ((len(text) - length) // rows)
    return text[starts[:, None] + torch.arange(length)]


if __name__ == "__main__":
    main()
