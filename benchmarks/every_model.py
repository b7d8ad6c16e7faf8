"""Compare the speed of all models: python benchmarks/every_model.py [--quick] [--minutes N] [--json FILE] ...

All models have about the same number of parameters. At every point (rows x length) the models and a measurement of the
hardware limit take turns in each round; the best turn counts. Weights are random, the text is real, all in float32.

training   The real Trainer.update with AdamW. As the length grows, the number of rows shrinks: 4,096 tokens per update,
           8,192 at the greatest length. Share: three times the forward FLOPs, relative to a large matrix product.
memory     Peak memory of two such updates, including the model and its optimizer state.
decoding   One token at a time, carrying the state; the timed tokens are centred on the given length. Share: the bytes
           of weights and state that a step must read, relative to the bandwidth of repeatedly reading a buffer as large
           as the weights.

Models that are not trained by gradient descent are only measured in decoding. `-` marks lengths that a model does not
support or that did not fit into the time: --minutes first reduces the number of rounds, then skips the slowest models
at the greatest lengths.
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
from seqloom.lab.cost import state_bytes
from seqloom.lab.matching import match_size
from seqloom.lab.peak import peak_memory
from seqloom.runs.build import count_parameters
from seqloom.runs.registry import find_config, names

LIMIT = "limit"
GROWTH = 2.5  # upper estimate of the time per call relative to the previous point
CALLS = 5  # minimum training updates per point: two to measure memory, one warm-up, two rounds

Shapes = tuple[tuple[int, int], ...]  # rows x length


@dataclass(frozen=True)
class Size:
    """Sizes of models and batches, and the duration of the measurements."""

    parameters: int = 800_000
    decode_rows: Shapes = ((1, 64), (8, 64), (64, 64))
    decode_lengths: Shapes = ((1, 64), (1, 256), (1, 1024), (1, 4096), (1, 8192))
    train_rows: Shapes = ((1, 64), (8, 64), (64, 64))
    train_lengths: Shapes = ((64, 64), (16, 256), (4, 1024), (1, 4096), (1, 8192))
    span: int = 32  # tokens decoded per call, centred on the length
    text: int = 400_000  # tokens of text; models without gradient descent are fitted to all of it
    rounds: int = 7
    turn: float = 0.1  # seconds per contender and round
    matmul: int = 2048

    @property
    def longest(self) -> int:
        """The longest sequence that a model has to process."""
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
    """The measurements of one model at one point."""

    tokens_per_second: float
    share: float | None  # of the hardware limit; None: not defined, the model has no trained weights
    peak_bytes: int | None  # training only
    seconds: list[float]  # per call, for each round


@dataclass
class Bench:
    """The models, the text they process, and the measurements that were skipped."""

    models: dict[str, SequenceModel]
    text: Tensor
    size: Size
    folder: Path
    left_out: list[str] = field(default_factory=list)

    def warm_up(self) -> None:
        """Libraries allocate memory on first use, which must not be attributed to the first model measured."""
        for model in self.models.values():
            if model.descends:
                self._learner(model, Point("train", 1, 8))

    def measure(self, minutes: float) -> Iterator[dict[str, Any]]:
        """Measure every point, dividing the remaining time equally between the remaining points."""
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
            past |= {(point.kind, name): float("inf") for name in slow}  # longer sequences would be slower still
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
    """Trains a copy of a model, carrying the state between updates if a training run would."""

    def __init__(self, model: SequenceModel, ids: Tensor, folder: Path) -> None:
        batch = Batch(ids[:, :-1], None, ids[:, 1:], continues=True)
        self.tokens, self.flops = batch.targets.numel(), 3 * model.flops(ids.size(1) - 1)
        with peak_memory() as peak:
            self.update = common.our_update(deepcopy(model), batch, folder)
            for _ in range(2):  # the first update allocates the optimizer state
                self.update()
        self.peak = peak.bytes

    def __call__(self) -> None:
        self.update()

    def figure(self, seconds: list[float], limit: float) -> Figure:
        speed = self.tokens / min(seconds)
        return Figure(speed, speed * self.flops / limit, self.peak, seconds)


class Decoder:
    """Decodes `span` tokens per call around a given length, always starting from the same cached state."""

    def __init__(self, model: SequenceModel, ids: Tensor, span: int) -> None:
        self.model, start = model.eval(), ids.size(1) - span - span // 2 - 1
        with torch.inference_mode():
            self.state = model.begin(ids[:, :start])
        self.first, *self.tokens = ids[:, start : start + 1 + span].split(1, dim=1)
        weights = common.weight_bytes(model) if model.descends else None
        self.bytes = weights and weights + state_bytes(self.state)

    def __call__(self) -> None:
        self.seconds(1)

    def seconds(self, calls: int) -> float:
        spent = 0.0
        with torch.inference_mode():
            for _ in range(calls):
                _, state = self.model(self.first, self.state)  # copies and enlarges a growing cache, untimed
                started = time.perf_counter()
                for token in self.tokens:
                    _, state = self.model(token, state)
                spent += time.perf_counter() - started
        return spent / calls

    def figure(self, seconds: list[float], limit: float) -> Figure:
        steps = len(self.tokens) / min(seconds)
        share = None if self.bytes is None else steps * self.bytes / limit
        return Figure(steps * len(self.first), share, None, seconds)


def main() -> None:
    options = read_options()
    if options.threads:
        torch.set_num_threads(options.threads)
    size = QUICK if options.quick else Size()
    size = replace(size, parameters=options.params or size.parameters)
    before = json.loads(options.against.read_text()) if options.against else None
    if before and before["size"] != json.loads(json.dumps(asdict(size))):
        sys.exit(f"{options.against}: measured with different sizes, so the results cannot be compared")
    report = measure(size, options.models.split(",") if options.models else language_models(), options.minutes)
    report = {"quick": options.quick, **report}
    print(tables.table(report))
    if before:
        print("\n" + tables.ratios(report, before))
    if options.json:
        common.write_json(options.json, report)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smoke test with tiny sizes, a few seconds")
    parser.add_argument("--minutes", type=float, default=8.0, help="approximate time limit in minutes (default: 8)")
    parser.add_argument("--models", metavar="A,B", help="models to measure (default: all)")
    parser.add_argument("--params", type=int, help="parameters per model (default: 800000)")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0: torch's default")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results to this file")
    parser.add_argument("--against", type=Path, metavar="FILE", help="also compare with earlier --json results")
    return parser.parse_args()


def measure(size: Size, names: Sequence[str], minutes: float) -> dict[str, Any]:
    """All results, ready to be written as JSON."""
    text, models, left_out = read_text(size.text), {}, []
    for name in names:
        try:
            models[name] = make_model(name, size.parameters, size.longest)
        except UserError as error:  # the size cannot be matched, or the task does not support the model
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
    """Decoding first, because it needs less than its share of the time; lengths in ascending order."""
    decode = [Point("decode", *shape) for shape in size.decode_rows + size.decode_lengths]
    train = [Point("train", *shape) for shape in size.train_rows + size.train_lengths]
    return list(dict.fromkeys(decode + train))


def affordable(calls: dict[str, float], seconds: float) -> list[str]:
    """The models that fit into the time, judging by their seconds per call at the previous point; drops the slowest."""
    chosen = sorted(calls, key=lambda name: calls[name])
    while chosen and CALLS * GROWTH * sum(calls[name] for name in chosen) > seconds:
        chosen.pop()
    return [name for name in calls if name in chosen]


def language_models() -> list[str]:
    """The models that support language modelling, except those of transformers: their size is that of their weights."""
    return [name for name in names("models") if name != "pretrained" and accepts(common.make_task(), name)]


def accepts(task: Task, name: str) -> bool:
    try:
        with torch.device("meta"):
            find_config("models", name).model_validate({}).assemble(task)
    except UserError:
        return False
    return True


def make_model(name: str, parameters: int, longest: int) -> SequenceModel:
    """Build a model with about this many parameters that can process `longest` tokens."""
    task = common.make_task()
    config: ModelConfig = find_config("models", name).model_validate({}).reading(longest)

    def blueprint(config: ModelConfig) -> SequenceModel:
        with torch.device("meta"):
            return config.assemble(task)

    if blueprint(config).descends:
        config = match_size(config, parameters, lambda candidate: count_parameters(blueprint(candidate)), name)
    torch.manual_seed(0)
    return config.assemble(task)


def read_text(tokens: int) -> Tensor:
    """Token ids of real text: bytes modulo the vocabulary size."""
    data = "".join(open_text("sample:python-docs").pieces()).encode()[:tokens]
    return torch.from_numpy(np.frombuffer(data, np.uint8) % common.VOCABULARY).long()


def rows_of(text: Tensor, rows: int, length: int) -> Tensor:
    """Excerpts (rows, length) at equal distances in the text."""
    starts = torch.arange(rows) * ((len(text) - length) // rows)
    return text[starts[:, None] + torch.arange(length)]


if __name__ == "__main__":
    main()
