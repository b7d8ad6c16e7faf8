"""Training an RNN is sequential, training a Transformer is parallel

Two things are measured. The longest chain of operations that have to wait for each other, forward and backward: it is
counted, and no machine can shorten it. And tokens per second of training, by the length and the number of rows of a
batch: that belongs to the machine. minGRU is the third way: recurrent, but without a state in its gates, so that the
same network can be computed one step after the other or by a scan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from seqloom.core.network import Network
from seqloom.core.progress import Reporter
from seqloom.core.taps import find_taps, replace
from seqloom.pages.formats import count, short
from seqloom.pages.plots import Curve, Lines, Panel
from seqloom.pages.words import Pair
from seqloom.studies._chain import longest
from seqloom.studies._models import parameters
from seqloom.studies._study import Finding, Measured, Rows, Study, Verdict, curve, exact, measured
from seqloom.studies._timing import fastest, one_thread, processor, timed
from seqloom.studies._training import matched, network, stretches, text

SAMPLE = "python-docs"
MODELS: dict[str, tuple[Pair, str]] = {  # name and architecture
    "lstm": (("LSTM", "LSTM"), "lstm"),
    "steps": (("minGRU, step by step", "minGRU，逐步"), "mingru"),
    "scan": (("minGRU, scan", "minGRU，扫描"), "mingru"),
    "gpt": (("GPT", "GPT"), "gpt"),
}
GROWS, SLOWER = 0.9, 0.8  # exponent of a chain that grows with the length; relative speed that counts as slower

Shape = tuple[int, int]  # rows, length
Speeds = dict[tuple[str, Shape], list[float]]  # tokens per second, for each seed


@dataclass(frozen=True)
class Sizes:
    seeds: int
    size: int  # parameters
    rounds: int
    chains: tuple[int, ...]  # lengths that chains are counted for
    even: tuple[Shape, ...]  # as many tokens, differently arranged
    single: tuple[Shape, ...]
    wide: tuple[Shape, ...]  # more and more rows

    @property
    def shapes(self) -> list[Shape]:
        return list(dict.fromkeys(self.even + self.single + self.wide))

    @property
    def longest(self) -> int:
        return max(self.chains + tuple(length for _, length in self.shapes))


FULL = Sizes(
    seeds=6,
    size=400_000,
    rounds=5,
    chains=(64, 128, 256, 512, 1024, 2048),
    even=((64, 32), (16, 128), (4, 512), (1, 2048)),
    single=((1, 32), (1, 128), (1, 512), (1, 2048)),
    wide=((1, 128), (4, 128), (16, 128), (64, 128)),
)
QUICK = Sizes(2, 10_000, 1, (16, 32), ((4, 8), (1, 32)), ((1, 8), (1, 32)), ((1, 8), (4, 8)))


@dataclass
class Results:
    parameters: dict[str, int]
    chains: dict[str, list[int]]  # for each length
    speeds: Speeds = field(default_factory=dict)
    alone: Speeds = field(default_factory=dict)  # with one thread, one long row; empty if there is only one


def measure(quick: bool, progress: Reporter) -> Finding:
    size, threads = QUICK if quick else FULL, torch.get_num_threads()
    ids, tokens, digest = text(SAMPLE)
    options = {}
    for name in dict.fromkeys(name for _, name in MODELS.values()):
        given = {"context": size.longest} if name == "gpt" else {}
        options[name] = matched(name, size.size, tokens, **given)

    def make(key: str, seed: int) -> Network:
        name = MODELS[key][1]
        return network(name, tokens, seed, **options[name])

    progress.update(0.0, {"doing": "chains"})
    with torch.device("meta"):
        blueprints = {key: make(key, 0) for key in MODELS}
    chains = {key: [_chain(key, model, length) for length in size.chains] for key, model in blueprints.items()}
    found = Results({key: parameters(make(key, 0)) for key in MODELS}, chains)
    for seed in range(size.seeds):
        models, draw = {key: make(key, seed) for key in MODELS}, torch.Generator().manual_seed(seed)
        for n, shape in enumerate(size.shapes):
            share = (seed + n / len(size.shapes)) / size.seeds
            progress.update(share, {"doing": f"seed {seed}, {shape[0]} x {shape[1]}"})
            batch = stretches(ids, *shape, draw)
            _race(found.speeds, models, batch, size.rounds)
            if threads > 1 and shape == size.single[-1]:
                with one_thread():
                    _race(found.alone, models, batch, size.rounds)
    return _finding(size, found, threads, digest)


def _chain(key: str, model: Network, length: int) -> int:
    row = torch.zeros(1, length, dtype=torch.long, device="meta")
    model.zero_grad(set_to_none=True)  # adding to gradients would be one more operation
    with _way(key, model):
        return longest(lambda: _loss(model, row, row))


def _race(speeds: Speeds, models: dict[str, Network], batch: tuple[Tensor, Tensor], rounds: int) -> None:
    rows, length = batch[0].shape
    turns = {key: timed(partial(_update, key, model, batch), elapsed=True) for key, model in models.items()}
    for key, seconds in fastest(turns, rounds).items():
        speeds.setdefault((key, (rows, length)), []).append(rows * length / seconds)


def _update(key: str, model: Network, batch: tuple[Tensor, Tensor]) -> None:
    model.zero_grad(set_to_none=True)
    with _way(key, model):
        _loss(model, *batch).backward()


def _loss(model: Network, inputs: Tensor, targets: Tensor) -> Tensor:
    return cross_entropy(model(inputs)[0].flatten(0, 1), targets.flatten())


@contextmanager
def _way(key: str, model: Network) -> Iterator[None]:
    """Every step by itself: a state that passes an edit, if only the identity, has to exist before the next."""
    paths = find_taps(model, "*.cell.state") if key == "steps" else {}
    with replace(model, {path: lambda h: h for path in paths}):
        yield


def exponent(chains: list[int], lengths: tuple[int, ...]) -> float:
    """Of the growth over the two longest lengths."""
    return float(np.log(chains[-1] / chains[-2]) / np.log(lengths[-1] / lengths[-2]))


def verdict(lstm: float, gpt: float, ratios: list[Measured]) -> Verdict:
    """From the exponents of the chains, and the speed of the LSTM relative to the GPT for each shape of a batch."""
    if lstm < GROWS or gpt != 0.0:
        return "fails"
    if all((one.high or one.value) < SLOWER for one in ratios):
        return "holds"
    return "conditions" if any((one.low or one.value) > SLOWER for one in ratios) else "untold"


def _finding(size: Sizes, found: Results, threads: int, digest: str) -> Finding:
    ratios = [_ratio(found.speeds, "lstm", "gpt", shape, ("slower", "更慢")) for shape in size.shapes]
    growth = {key: exponent(chain, size.chains) for key, chain in found.chains.items()}
    decided = verdict(growth["lstm"], growth["gpt"], ratios)
    return Finding(
        verdict=decided,
        summary=_summary(size, found, ratios),
        protocol=_protocol(size, found, threads),
        numbers=[*_chain_numbers(size, found, growth), *ratios, *_other_ratios(size, found, threads)],
        figure=_figure(size, found),
        caption=(
            "The longest chain of dependent operations of a training update, counted; and tokens per second of "
            "training, means over seeds with 95 % intervals",
            "一次训练更新中最长的依赖操作链（计数所得）；以及训练时每秒词元数，各种子的均值与 95 % 置信区间",
        ),
        tables=[_table(size, found)],
        data={SAMPLE: digest},
    )


def _chain_numbers(size: Sizes, found: Results, growth: dict[str, float]) -> list[Measured]:
    numbers, last, none = [], size.chains[-1], ("", "")
    said = {"lstm": (("sequential", "顺序"), ("1", "1")), "gpt": (("parallel", "并行"), ("0", "0"))}
    for key, (title, _) in MODELS.items():
        claims = said.get(key, (none, none))
        name = (f"{title[0]}: chain for {last:,} tokens", f"{title[1]}：{last:,} 个词元的依赖链")
        numbers.append(exact(name, found.chains[key][-1], claims[0]))
        name = (f"{title[0]}: exponent of the chain's growth", f"{title[1]}：依赖链增长的指数")
        numbers.append(exact(name, growth[key], claims[1]))
    return numbers


def _ratio(speeds: Speeds, one: str, other: str, shape: Shape, claimed: Pair = ("", "")) -> Measured:
    names = MODELS[one][0], MODELS[other][0]
    label = (f"speed of {names[0][0]} / {names[1][0]}, {_shape(shape)}",
             f"{names[0][1]} 与 {names[1][1]} 的速度之比，{_shape(shape)}")  # fmt: skip
    return measured(label, np.array(speeds[one, shape]) / speeds[other, shape], claimed, bounds=(0.0, None))


def _other_ratios(size: Sizes, found: Results, threads: int) -> list[Measured]:
    """The same network by a scan and step by step; one long row against many short ones; all threads against one."""
    row, numbers = size.single[-1], [_ratio(found.speeds, "scan", "steps", shape) for shape in size.even]
    for key, (title, _) in MODELS.items():
        first, last = (np.array(found.speeds[key, shape]) for shape in (size.even[0], size.even[-1]))
        label = (
            f"{title[0]}: speed with {_shape(size.even[-1])} / with {_shape(size.even[0])}",
            f"{title[1]}：{_shape(size.even[-1])} 与 {_shape(size.even[0])} 的速度之比",
        )
        numbers.append(measured(label, last / first, bounds=(0.0, None)))
    for key, (title, _) in MODELS.items() if found.alone else ():
        label = (
            f"{title[0]}: speed of {threads} threads / of one, {_shape(row)}",
            f"{title[1]}：{threads} 个线程与一个线程的速度之比，{_shape(row)}",
        )
        speeds = np.array(found.speeds[key, row]) / found.alone[key, row]
        numbers.append(measured(label, speeds, bounds=(0.0, None)))
    return numbers


def _figure(size: Sizes, found: Results) -> list[Panel]:
    def speeds(shapes: tuple[Shape, ...], along: int) -> list[Curve]:
        places = [shape[along] for shape in shapes]
        return [
            curve(title, places, [found.speeds[key, shape] for shape in shapes], bounds=(0.0, None))
            for key, (title, _) in MODELS.items()
        ]

    total, width = size.even[0][0] * size.even[0][1], size.wide[0][1]
    chains = [Curve(title, list(map(float, size.chains)), list(map(float, found.chains[key])))
              for key, (title, _) in MODELS.items()]  # fmt: skip

    def panel(title: Pair, x: Pair, y: Pair, curves: list[Curve], ticks: Iterable[int]) -> Lines:
        return Lines(x=x, y=y, curves=curves, title=title, log_x=True, log_y=True, ticks=[float(n) for n in ticks])

    length, rows = ("tokens in a row", "每行词元数"), ("rows", "行数")
    counted, timed_ = ("dependent operations", "依赖的操作数"), ("tokens per second", "每秒词元数")
    chain, one = ("The longest chain of an update", "一次更新的最长依赖链"), ("One row", "一行")
    even = (f"Always {total:,} tokens: fewer, longer rows", f"总是 {total:,} 个词元：行更少、更长")
    wide = (f"Rows of {width} tokens", f"每行 {width} 个词元")
    return [
        panel(chain, length, counted, chains, size.chains),
        panel(even, length, timed_, speeds(size.even, 1), (n for _, n in size.even)),
        panel(one, length, timed_, speeds(size.single, 1), (n for _, n in size.single)),
        panel(wide, rows, timed_, speeds(size.wide, 0), (n for n, _ in size.wide)),
    ]


def _table(size: Sizes, found: Results) -> Rows:
    rows: list[list[Pair | float | str]] = []
    for shape in size.shapes:
        rows.append([_shape(shape), *(float(np.mean(found.speeds[key, shape])) for key in MODELS)])
    return Rows(
        ("Tokens per second of training, means over seeds", "训练时每秒词元数，各种子的均值"),
        [("rows x tokens", "行 x 词元"), *(title for title, _ in MODELS.values())],
        rows,
    )


def _summary(size: Sizes, found: Results, ratios: list[Measured]) -> Pair:
    first, last = size.chains[0], size.chains[-1]
    chain = {key: f"{count(values[0])} → {count(values[-1])}" for key, values in found.chains.items()}
    slower = sum((one.high or one.value) < SLOWER for one in ratios)
    values = [one.value for one in ratios]
    low, high = short(min(values), 2), short(max(values), 2)
    return (
        f"From {first:,} to {last:,} tokens, the longest chain of dependent operations of an update goes "
        f"{chain['lstm']} in an LSTM, {chain['gpt']} in a GPT and {chain['scan']} in a minGRU by a scan "
        f"({chain['steps']} step by step). On this machine and at equal parameters, the LSTM trains at {low} to "
        f"{high} times the speed of the GPT; it is slower, by the rule, for {slower} of {len(ratios)} shapes of a "
        "batch.",
        f"从 {first:,} 到 {last:,} 个词元，一次更新中最长的依赖操作链在 LSTM 中为 {chain['lstm']}，在 GPT 中为 "
        f"{chain['gpt']}，在用扫描计算的 minGRU 中为 {chain['scan']}（逐步计算：{chain['steps']}）。在这台机器上、参数"
        f"量相同时，LSTM 的训练速度是 GPT 的 {low} 到 {high} 倍；按规则，{len(ratios)} 种批次形状中有 {slower} 种"
        "更慢。",
    )


def _shape(shape: Shape) -> str:
    return f"{shape[0]} x {shape[1]:,}"


def _protocol(size: Sizes, found: Results, threads: int) -> Pair:
    counts = [", ".join(f"{title[n]} {found.parameters[key]:,}"
                        for key, (title, name) in MODELS.items() if key != "steps") for n in (0, 1)]  # fmt: skip
    return (
        "Language models of characters with embedding and output layer, at the default depths (LSTM 1 layer, "
        f"minGRU 2, GPT 4); parameters: {counts[0]}. An update: forward pass, cross entropy and backward pass over "
        f"random stretches of sample:{SAMPLE}, float32, without the optimizer. {size.seeds} seeds (weights and "
        f"text); in each the models take turns, up to {size.rounds} each, and the fastest counts (elapsed time); "
        f"one shape also with one thread. Threads: {threads}; processor: {processor()}. Step by step: the same "
        "minGRU, but every state is computed before the next. Chains are counted on one row, in tensor operations "
        "without views, as an accelerator would run them without fusing any.",
        "以字符为单位的语言模型，含嵌入层与输出层，采用默认层数（LSTM 1 层，minGRU 2 层，GPT 4 层）；参数量："
        f"{counts[1]}。一次更新：在 sample:{SAMPLE} 的随机片段上做前向、交叉熵和反向计算，float32，不含优化器。"
        f"{size.seeds} 个种子（权重和文本）；每个种子中各模型轮流计时，每个至多 {size.rounds} 次，取最快的一次（经过"
        f"的时间）；其中一种形状也用一个线程测量。线程数：{threads}；处理器：{processor()}。逐步：同一个 minGRU，但"
        "每个状态都在下一个之前算出。依赖链在一行上计数，以张量操作为单位，不含视图，即加速器不做任何算子融合时的执"
        "行方式。",
    )


STUDY = Study(
    number=12,
    title=(
        "Training an RNN is sequential, training a Transformer is parallel",
        "RNN 的训练是顺序的，Transformer 的训练是并行的",
    ),
    claim=(
        "Each step of an RNN depends on the hidden state of the one before, which hinders parallel training and "
        "makes it slow; a Transformer processes the whole sequence at the same time, which makes training faster.",
        "RNN 每一步的输出取决于先前的隐状态和当前输入，串行计算阻碍了训练时的并行，训练时间过长；Transformer 同时处理整"
        "个序列，并行化加快了训练速度。",
    ),
    sources=(("000", "训练和并行化"), ("001", "RNN的优缺点"), ("004", "Transformer")),
    rule=(
        "Training is sequential if the longest chain of dependent operations grows with the length to the power of "
        f"{GROWS:g} or more (over the two longest lengths), and parallel if it does not grow. If the LSTM's is not the "
        "one or the GPT's not the other, the claim fails. If they are, it holds if for every shape of a batch the LSTM "
        f"also trains at less than {SLOWER:g} times the speed of the GPT, by the whole interval; under conditions, if "
        "for some shape it is surely not so slow: then the chain is what holds, and whether it costs time depends on "
        "machine and batch. Otherwise it cannot be told.",
        f"若最长的依赖操作链随长度以不低于 {GROWS:g} 的幂增长（取最长的两个长度），则训练是顺序的；若不增长，则是并行"
        "的。若 LSTM 不属于前者或 GPT 不属于后者，则不成立。若都符合：当每种批次形状下 LSTM 的训练速度按整个置信区间都"
        f"低于 GPT 的 {SLOWER:g} 倍，则成立；若某种形状下确定没有这么慢，则为有条件成立：成立的是依赖链，而它是否耗时取"
        "决于机器和批次。其余无法判断。",
    ),
    remarks=(
        (
            "The rule was written after a first trial of speeds with one thread, in which the LSTM was not slower: "
            "so the part that does not depend on the machine decides first.",
            "写下规则之前已在一个线程上试测过速度，当时 LSTM 并不更慢：因此规则先看与机器无关的部分。",
        ),
        (
            "Other programs ran during part of the timing, which widened some intervals.",
            "部分计时期间有其他程序在运行，使一些置信区间变宽。",
        ),
        (
            "A processor with few cores is busy with the work of a single row already, so a short chain is of little "
            "use to it. An accelerator with thousands of units waits for the chain. Speeds here say nothing about one.",
            "核心很少的处理器仅一行数据就已经忙满，依赖链短对它用处不大；有数千个计算单元的加速器则要等待依赖链。这里的"
            "速度不能说明加速器上的情况。",
        ),
        (
            "Every operation counts as one, although sums over many terms are chains themselves: of the logarithm of "
            "their number, in attention too.",
            "每个操作都计为一步，但多项求和本身也是一条依赖链，长度为项数的对数，注意力也是如此。",
        ),
        (
            "The LSTM is computed by a fused kernel on a processor; its chain is that of the same computation, "
            "operation by operation. minGRU's scan goes step by step on a processor where a step is large, because "
            "that was faster there; its chain is that of the parallel form. Step by step, the gradient is computed by "
            "autograd, in the scan by a backward pass written by hand, so their ratio holds both differences.",
            "LSTM 在处理器上用融合核函数计算；它的依赖链是同一计算逐个操作展开的结果。当每一步较大时，minGRU 的扫描在处"
            "理器上会逐步进行，因为那样更快；它的依赖链按并行形式计算。逐步计算时梯度由自动求导得出，"
            "扫描则用手写的反向计算，因此两者之比包含这两种差别。",
        ),
    ),
    measure=measure,
)
