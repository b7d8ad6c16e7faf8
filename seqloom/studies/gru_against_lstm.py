"""A GRU has fewer parameters than an LSTM, trains faster, and is about as good

Parameters are counted. Speed is that of a training update, by three implementations: the kernels used here, those of
torch.nn, and the same plain loop over the cell's step. Loss is that of language models of bytes on two texts, at equal
width and at equal numbers of parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqloom.core.model import ModelConfig
from seqloom.core.progress import Reporter
from seqloom.core.task import AnyTask
from seqloom.lab.matching import match_size
from seqloom.pages.formats import count, fixed, short
from seqloom.pages.plots import Bars, Level, Panel
from seqloom.pages.words import Pair
from seqloom.runs.registry import section
from seqloom.studies._language import PIECES, Documents, counted, documents, language_task, stream, trained
from seqloom.studies._layers import WAYS, layer
from seqloom.studies._models import parameters
from seqloom.studies._study import Finding, Measured, Rows, Study, Verdict, bars, ends, exact, measured
from seqloom.studies._timing import fastest, processor, timed
from seqloom.tokenizers import Tokenizer, train_tokenizer

SAMPLES: dict[str, Pair] = {
    "python-docs": ("documentation", "文档文本"),
    "python-source": ("source code", "源代码"),
}
MODELS: dict[str, Pair] = {
    "lstm": ("LSTM", "LSTM"),
    "gru": ("GRU, equal width", "GRU，宽度相同"),
    "wide": ("GRU, equal parameters", "GRU，参数量相同"),
}
WIDTH, INPUTS, ROWS, LENGTH = 128, 64, 16, 64
WIDTHS = (128, 512)  # that speed is measured at
RATES = (1e-2, 4e-3)
FASTER, MARGIN = 1.05, 0.05  # relative speed; nats per byte

Setting = tuple[str, int]  # an implementation, a width


@dataclass(frozen=True)
class Sizes:
    seeds: int
    read: int  # characters of each text, at most
    most: int  # of these to train on, at most
    held: int
    steps: int
    rounds: int
    widths: tuple[int, ...]


@dataclass
class Results:
    sizes: dict[str, int]  # parameters of each whole model
    cells: dict[str, int]  # of its recurrent layer
    widths: dict[str, int]
    rates: dict[tuple[str, str], list[float]] = field(default_factory=dict)  # loss at each, by text and model
    loss: dict[tuple[str, str], list[float]] = field(default_factory=dict)  # by text and model, for each seed
    unigram: dict[str, list[float]] = field(default_factory=dict)
    seconds: dict[tuple[str, Setting], list[float]] = field(default_factory=dict)  # by model; an update, for each seed


def measure(quick: bool, progress: Reporter) -> Finding:
    size = (
        Sizes(2, 100_000, 20_000, 1000, 1, 1, (32,)) if quick else Sizes(5, 2_000_000, 500_000, 20_000, 300, 7, WIDTHS)
    )
    tokenizer = train_tokenizer("bytes", [])
    task, sources = language_task(tokenizer, length=LENGTH), {}
    for sample in SAMPLES:
        sources[sample] = documents(sample, size.read)
    options = _options(task)
    found = Results(*_counts(task, options), {key: one["width"] for key, one in options.items()})
    for seed in range(size.seeds + 1):
        for n, (sample, key) in enumerate(product(SAMPLES, MODELS)):
            share = (seed + n / 6) / (size.seeds + 1)
            progress.update(share, {"doing": f"seed {seed}, {sample}, {key}"})
            _learn(found, task, tokenizer, sources[sample], (sample, key), options[key], seed, size)
        if seed:
            _race(found, seed, size)
    return _finding(size, found, sources)


def _name(key: str) -> str:
    return "lstm" if key == "lstm" else "gru"


def _options(task: AnyTask) -> dict[str, dict[str, Any]]:
    """Of each model: an LSTM, a GRU of its width, and one as wide as its parameters allow."""
    given = {"width": WIDTH, "inputs": INPUTS, "depth": 1}

    def size(config: ModelConfig) -> int:
        return parameters(config.assemble(task))

    target = size(section("models", {"name": "lstm", **given}))
    wide = match_size(section("models", {"name": "gru", **given}), target, size, "gru")
    return {"lstm": given, "gru": given, "wide": wide.model_dump(include={"width", "inputs", "depth"})}


def _counts(task: AnyTask, options: dict[str, dict[str, Any]]) -> tuple[dict[str, int], dict[str, int]]:
    configs = {key: section("models", {"name": _name(key), **one}) for key, one in options.items()}
    whole = {key: parameters(config.assemble(task)) for key, config in configs.items()}
    return whole, {key: parameters(config.build()) for key, config in configs.items()}


def _learn(
    found: Results, task: AnyTask, tokenizer: Tokenizer, source: Documents, place: tuple[str, str],
    options: dict[str, Any], seed: int, size: Sizes,
) -> None:  # fmt: skip
    """Loss on held-out text; with seed 0, which is not counted otherwise, at each learning rate."""
    sample, key = place
    train, held = (stream(tokenizer, text) for text in source.split(seed, size.held, size.most))
    rates = RATES if not seed else (RATES[int(np.argmin(found.rates[place]))],)
    losses = []
    for rate in rates:
        model = trained(task, train, _name(key), seed, steps=size.steps, batch=ROWS, rate=rate, **options)
        losses.append(float(task.evaluate(model, held)["loss"]))
    if not seed:
        found.rates[place] = losses
        return
    found.loss.setdefault(place, []).extend(losses)
    if key == "lstm":
        found.unigram.setdefault(sample, []).append(task.evaluate(counted(task, train, 1), held)["loss"])


def _race(found: Results, seed: int, size: Sizes) -> None:
    """Forward and backward through one recurrent layer, by every implementation; and by the kernels used here at equal
    parameters."""
    x = torch.randn(ROWS, LENGTH, INPUTS, generator=torch.Generator().manual_seed(seed))
    places = [(key, (way, width)) for way in WAYS for width in size.widths for key in ("lstm", "gru")]
    turns = {}
    for key, setting in dict.fromkeys([*places, ("lstm", ("here", WIDTH)), ("wide", ("here", WIDTH))]):
        way, width = setting
        run = layer(_name(key), way, found.widths["wide"] if key == "wide" else width, x, seed)
        turns[key, setting] = timed(partial(_update, run))
    for place, seconds in fastest(turns, size.rounds).items():
        found.seconds.setdefault(place, []).append(seconds)


def _update(run: Callable[[], Tensor]) -> None:
    run().sum().backward()


def verdict(fewer: bool, speeds: list[Measured], losses: list[Measured]) -> Verdict:
    """From the GRU's relative speed in every setting, and its loss above the LSTM's on every text."""
    faster = [ends(one)[0] > FASTER for one in speeds]
    close = [ends(one)[1] < MARGIN for one in losses]
    slow = all(ends(one)[1] < FASTER for one in speeds)
    worse = all(ends(one)[0] > MARGIN for one in losses)
    if not fewer or slow or worse:
        return "fails"
    if all(faster) and all(close):
        return "holds"
    return "conditions" if any(faster) and any(close) else "untold"


def _finding(size: Sizes, found: Results, sources: dict[str, Documents]) -> Finding:
    speeds = {setting: _speed(found, setting) for setting in product(WAYS, size.widths)}
    label = ("speed of the GRU of equal parameters / LSTM, kernels used here",
             "参数量相同的 GRU 与 LSTM 的速度之比，本库的核函数")  # fmt: skip
    ratio = np.array(found.seconds["lstm", ("here", WIDTH)]) / found.seconds["wide", ("here", WIDTH)]
    extra = {(sample, "wide"): _worse(found, sample, "wide") for sample in SAMPLES}
    worse = {(sample, "gru"): _worse(found, sample, "gru") for sample in SAMPLES}
    return Finding(
        verdict=verdict(found.cells["gru"] < found.cells["lstm"], list(speeds.values()), list(worse.values())),
        summary=_summary(found, speeds, worse | extra),
        protocol=_protocol(size, found),
        numbers=[
            *_sizes(found),
            *speeds.values(),
            measured(label, ratio, bounds=(0.0, None)),
            *worse.values(),
            *extra.values(),
            *_losses(found),
        ],
        figure=_figure(found, speeds, worse | extra),
        caption=(
            "Loss on held-out text; how far the GRU's is above the LSTM's; and its relative speed in training (95 % "
            "intervals over seeds)",
            "留出文本上的损失；GRU 的损失比 LSTM 高多少；以及训练时的相对速度（各种子的 95 % 置信区间）",
        ),
        tables=[_table(found)],
        data={sample: source.digest for sample, source in sources.items()},
    )


def _speed(found: Results, setting: Setting) -> Measured:
    way, width = setting
    label = (
        f"speed of GRU / LSTM, {WAYS[way][0]}, width {width}",
        f"GRU 与 LSTM 的速度之比，{WAYS[way][1]}，宽度 {width}",
    )
    ratio = np.array(found.seconds["lstm", setting]) / found.seconds["gru", setting]
    return measured(label, ratio, ("faster: above 1", "更快：大于 1"), bounds=(0.0, None))


def _worse(found: Results, sample: str, key: str) -> Measured:
    label = (f"{SAMPLES[sample][0]}, {MODELS[key][0]}: loss above that of the LSTM",
             f"{SAMPLES[sample][1]}，{MODELS[key][1]}：比 LSTM 高出的损失")  # fmt: skip
    values = np.array(found.loss[sample, key]) - found.loss[sample, "lstm"]
    return measured(label, values, ("about 0", "约为 0"), unit=("nats per byte", "奈特/字节"))


def _sizes(found: Results) -> list[Measured]:
    share = found.cells["gru"] / found.cells["lstm"]
    label = ("parameters of the recurrent layer at equal width, GRU / LSTM", "宽度相同时循环层的参数量之比，GRU / LSTM")
    numbers = [exact(label, share, ("fewer: below 1", "更少：小于 1"))]
    for key, title in MODELS.items():
        name = (f"{title[0]}: parameters of the model", f"{title[1]}：模型的参数量")
        numbers.append(exact(name, found.sizes[key]))
    return numbers


def _losses(found: Results) -> list[Measured]:
    numbers = []
    for (sample, key), values in found.loss.items():
        label = (f"{SAMPLES[sample][0]}, {MODELS[key][0]}: loss", f"{SAMPLES[sample][1]}，{MODELS[key][1]}：损失")
        numbers.append(measured(label, values, unit=("nats per byte", "奈特/字节"), bounds=(0.0, None)))
    return numbers


def _figure(found: Results, speeds: dict[Setting, Measured], worse: dict[tuple[str, str], Measured]) -> list[Panel]:
    def series(key: str) -> list[Measured]:
        return [measured(MODELS[key], found.loss[sample, key], bounds=(0.0, None)) for sample in SAMPLES]

    texts = list(SAMPLES.values())
    naive = [measured(("", ""), found.unigram[sample], bounds=(0.0, None)) for sample in SAMPLES]
    settings = [(f"{WAYS[way][0]}, width {width}", f"{WAYS[way][1]}，宽度 {width}") for way, width in speeds]
    return [
        Bars(
            title=("Loss", "损失"),
            x=("on held-out text (nats per byte)", "留出文本（奈特/字节）"),
            groups=texts,
            series=[*(bars(title, series(key)) for key, title in MODELS.items()), bars(("unigram", "一元模型"), naive)],
        ),
        Bars(
            title=("Loss above that of the LSTM", "比 LSTM 高出的损失"),
            x=("nats per byte", "奈特/字节"),
            groups=texts,
            series=[bars(MODELS[key], [worse[sample, key] for sample in SAMPLES]) for key in ("gru", "wide")],
            levels=[Level(("limit", "界限"), MARGIN)],
        ),
        Bars(
            title=("Speed in training, GRU / LSTM", "训练速度，GRU / LSTM"),
            x=("relative speed", "相对速度"),
            groups=settings,
            series=[bars(("GRU / LSTM", "GRU / LSTM"), list(speeds.values()))],
            levels=[Level(("as fast", "一样快"), 1.0)],
        ),
    ]


def _table(found: Results) -> Rows:
    rows: list[list[Pair | float | str]] = [
        [SAMPLES[s], MODELS[key], *tried] for (s, key), tried in found.rates.items()
    ]
    heads = [("text", "文本"), ("model", "模型"), *((f"rate {rate:g}", f"学习率 {rate:g}") for rate in RATES)]
    return Rows(
        ("Loss at each learning rate, on a seed that is not counted", "各学习率下的损失，另一个种子"), heads, rows
    )


def _summary(found: Results, speeds: dict[Setting, Measured], worse: dict[tuple[str, str], Measured]) -> Pair:
    share = short(found.cells["gru"] / found.cells["lstm"], 3)
    by_way = {way: " / ".join(short(one.value, 3) for (w, _), one in speeds.items() if w == way) for way in WAYS}
    widths = " / ".join(str(width) for _, width in list(speeds)[: len(speeds) // len(WAYS)])
    above = {key: " / ".join(fixed(worse[sample, key].value, 3, sign=True) for sample in SAMPLES)
             for key in ("gru", "wide")}  # fmt: skip
    texts = [" / ".join(title[n] for title in SAMPLES.values()) for n in (0, 1)]
    told = [", ".join(f"{by_way[way]} ({title[0]})" for way, title in WAYS.items()),
            "、".join(f"{by_way[way]}（{title[1]}）" for way, title in WAYS.items())]  # fmt: skip
    return (
        f"At equal width, the recurrent layer of a GRU has {share} times the parameters of an LSTM's. At widths "
        f"{widths} a forward and backward pass of it runs at {told[0]} times the speed. On {texts[0]}, its loss "
        f"differs by {above['gru']} nats per byte at equal width, and by {above['wide']} at equal parameters.",
        f"宽度相同时，GRU 循环层的参数量是 LSTM 的 {share} 倍。宽度为 {widths} 时，该层前向加反向计算的速度与 LSTM "
        f"之比为 {told[1]}。在{texts[1]}上，宽度相同时损失相差 {above['gru']} 奈特/字节，参数量相同时相差 "
        f"{above['wide']}。",
    )


def _protocol(size: Sizes, found: Results) -> Pair:
    sizes = " / ".join(count(found.sizes[key]) for key in MODELS)
    samples, rates = ", ".join(f"sample:{sample}" for sample in SAMPLES), ", ".join(f"{rate:g}" for rate in RATES)
    return (
        f"One layer; LSTM and GRU of width {WIDTH}, and a GRU of width {found.widths['wide']}; {sizes} parameters "
        f"with embedding and output layer. The first files of {samples}, up to {size.read:,} characters, in bytes; "
        f"{size.seeds} seeds, by which files are shuffled: {size.held:,} characters from up to {PIECES} files are held "
        f"out; of at most {size.most:,} characters of the others, {size.steps * ROWS * LENGTH:,} bytes are trained on. "
        f"Adam, {size.steps} steps of {ROWS} rows of {LENGTH} bytes, the state carried; the "
        f"rate, which falls to 0, is the better of {rates} on one more seed, for each model and text. Differences are "
        f"paired by seed. Speed: forward and backward pass of one layer on the same {ROWS} x {LENGTH} x {INPUTS} "
        f"random numbers, models and implementations in turns, up to {size.rounds} each, the fastest of which counts "
        "(CPU time with one thread, otherwise elapsed time). "
        f"Threads: {torch.get_num_threads()}; processor: {processor()}.",
        f"一层；宽度 {WIDTH} 的 LSTM 和 GRU，以及宽度 {found.widths['wide']} 的 GRU；含嵌入层与输出层的参数量为 "
        f"{sizes}。{samples} 最前面的文件，至多 {size.read:,} 个字符，以字节为单位；{size.seeds} 个种子，按种子打乱"
        f"文件：从至多 {PIECES} 个文件中留出 {size.held:,} 个字符；其余文件至多 {size.most:,} 个字符，从中训练 "
        f"{size.steps * ROWS * LENGTH:,} 个字节。Adam，{size.steps} 步，每步 {ROWS} 行、每行 {LENGTH} 个字节，传递状"
        f"态；学习率降至 0，对每个模型和文本取 {rates} 中在另一个种子上较好者。差值按种子配对。速度：一层在同样的 "
        f"{ROWS} x {LENGTH} x {INPUTS} 随机数上的前向与反向计算，各模型和实现轮流计时，每个至多 {size.rounds} 次，取"
        f"最快的一次（一个线程时为 CPU 时间，否则为经过的时间）。线程数：{torch.get_num_threads()}；处理器："
        f"{processor()}。",
    )


STUDY = Study(
    number=14,
    title=(
        "A GRU has fewer parameters than an LSTM, trains faster, and is about as good",
        "GRU 比 LSTM 参数更少、训练更快、效果相当",
    ),
    claim=(
        "The GRU is a simplified LSTM that merges forget and input gate into an update gate: fewer parameters, faster "
        "training, about the same results.",
        "GRU 是 LSTM 的简化版，合并遗忘门和输入门为“更新门”，参数更少，训练更快，效果相当。",
    ),
    sources=(("004", "GRU"),),
    rule=(
        "At equal width and by whole intervals: it holds if the GRU has fewer parameters, trains (a forward and "
        f"backward pass of the layer) at more than {FASTER:g} times the speed in every setting (implementation and "
        f"width), and has a loss less than {MARGIN:g} nats per byte above the LSTM's on both texts. It fails if it "
        "has no fewer parameters, is faster in no setting, or is worse by more than that on both texts. It holds "
        "under conditions if it is faster in some settings and close enough on some text; otherwise it cannot be "
        "told.",
        "宽度相同，按整个置信区间：若 GRU 参数更少，在每种设置（实现与宽度）下训练（该层的前向与反向计算）速度都超"
        f"过 LSTM 的 {FASTER:g} 倍，且在两种文本上损失比 LSTM 高出不到 {MARGIN:g} 奈特/字节，则成立。若参数并不更少，"
        "或在任何设置下都不更快，或在两种文本上都差得更多，则不成立。若在某些设置下更快，且在某种文本上足够接近，则"
        "为有条件成立；其余无法判断。",
    ),
    remarks=(
        (
            "Speed is that of an implementation. The LSTM, here and in torch.nn, runs in one fused kernel of a "
            "library; for the GRU torch has none on a processor, and the kernel used here is a loop with a backward "
            "pass written by hand. The plain loop is the same code for both.",
            "速度取决于实现。LSTM 在本库和 torch.nn 中都由一个融合的库核函数计算；GRU 在处理器上 torch 没有这样的核函"
            "数，本库用的是手写反向传播的循环。普通循环则是两者相同的代码。",
        ),
        (
            "Before the rule was written, one trial had shown that the GRU's kernel used here is slower than the "
            "LSTM's; torch.nn and the plain loop were added so that more than one implementation decides.",
            "写下规则之前，一次试测已显示这里的 GRU 核函数比 LSTM 慢；因此加入了 torch.nn 和普通循环，使结论不只取决"
            "于一种实现。",
        ),
        (
            "A short training on a single core tells which model learns faster from the same data, not which is better "
            "in the end.",
            "在单核上的短暂训练只说明哪个模型从同样的数据中学得更快，而不说明最终哪个更好。",
        ),
    ),
    measure=measure,
)
