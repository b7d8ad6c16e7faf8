"""Context is kept as a vector (RNN), as weights (TTT), or as a list (attention)

Pairs of a key and a value are read, then all keys are asked for in another order. Models with the same number of
parameters differ in what they keep of the pairs: how many bytes that is, and how many values can be recalled from it.
TTT is also trained with its inner steps turned round, which raise the inner loss, because its reading is contested.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from seqloom.core.network import Network
from seqloom.core.progress import Reporter
from seqloom.lab.cost import state_bytes
from seqloom.pages.formats import scaled, short
from seqloom.pages.plots import Level, Lines, Panel
from seqloom.pages.words import Pair
from seqloom.studies import _conditions
from seqloom.studies._fast_weights import as_linear_attention, inner_change, turn_round
from seqloom.studies._models import backbone, parameters
from seqloom.studies._study import Finding, Measured, Rows, Study, Verdict, curve, exact, measured
from seqloom.studies._training import descend, matched, network

KEYS, VALUES = 64, 8
TOKENS = KEYS * VALUES + KEYS  # a pair is one token, and so is a question
PAIRS = (4, 8, 16, 32, 64)
MOST = PAIRS[-1]
SIZE, ROWS, CLIP = 40_000, 32, 1.0
RATES = (1e-2, 3e-3)
WIDTH = 128  # at which the parameters of one layer are counted
KEPT = 0.9  # share recalled that counts as everything kept
SMALL: dict[str, Any] = {"width": 32, "depth": 1, "heads": 2}


@dataclass(frozen=True)
class Kind:
    title: Pair
    memory: Pair
    name: str  # of the architecture
    options: dict[str, Any] = field(default_factory=dict)
    ascends: bool = False  # inner steps of TTT turned round


MODELS: dict[str, Kind] = {
    "rnn": Kind(("RNN", "RNN"), ("vector", "向量"), "rnn"),
    "lstm": Kind(("LSTM", "LSTM"), ("two vectors", "两个向量"), "lstm"),
    "ttt": Kind(("TTT", "TTT"), ("weights", "权重"), "ttt", {**SMALL, "kernel": 1}),
    "linear": Kind(("linear attention", "线性注意力"), ("matrix", "矩阵"), "linear_attention", {**SMALL, "kernel": 1}),
    "gpt": Kind(("attention", "注意力"), ("list", "列表"), "gpt", {**SMALL, "context": 2 * MOST, "preset": "llama"}),
    "ascent": Kind(
        ("TTT, steps turned round", "TTT，内层步反向"), ("weights", "权重"), "ttt", {**SMALL, "kernel": 1}, ascends=True
    ),
}
DOUBLED = ("parameters when the width doubles", "宽度加倍时的参数量倍数")
VECTORS = ("rnn", "lstm")


@dataclass
class Result:
    """Of one kind of memory."""

    parameters: int
    bytes: list[int]  # of the state of one row, after so many pairs
    pilots: list[float]  # mean recall of the first seed at each rate; it is not counted among the others
    recalled: np.ndarray  # (PAIRS, seeds)
    inner: list[float]  # inner loss after a token's own step, relative to before, by seed; empty: no inner model


def measure(quick: bool, progress: Reporter) -> Finding:
    seeds, updates, rows = (2, 2, 8) if quick else (4, 1500, 128)
    found: dict[str, Result] = {}
    for n, (name, kind) in enumerate(MODELS.items()):
        options = matched(kind.name, SIZE, TOKENS, outputs=VALUES, **kind.options)

        def run(seed: int, rate: float, n: int = n, kind: Kind = kind, given: dict[str, Any] = options) -> Network:
            progress.update((n + seed / (seeds + 1)) / len(MODELS), {"doing": f"{kind.title[0]}, seed {seed}"})
            model = _network(kind, seed, given)
            _train(model, rate, updates, seed)
            return model.eval()

        pilots = [float(np.mean(_recalled(run(0, rate), rows))) for rate in RATES]
        rate = RATES[int(np.argmax(pilots))]
        trained = [run(seed, rate) for seed in range(1, seeds + 1)]
        found[name] = Result(
            parameters(trained[0]),
            [_bytes(trained[0], pairs) for pairs in PAIRS],
            pilots,
            np.array([_recalled(model, rows) for model in trained]).T,
            [_inner(model, rows) for model in trained] if kind.name == "ttt" else [],
        )
    return _finding((seeds, updates, rows), found)


def draw(rows: int, pairs: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """`pairs` tokens, no key twice, then a question for each key in another order, (rows, 2 * pairs); and the values
    asked for, (rows, pairs)."""
    keys = torch.rand(rows, KEYS, generator=generator).argsort(1)[:, :pairs]
    values = torch.randint(VALUES, (rows, pairs), generator=generator)
    asked = torch.rand(rows, pairs, generator=generator).argsort(1)
    inputs = torch.cat((keys * VALUES + values, KEYS * VALUES + keys.gather(1, asked)), dim=1)
    return inputs, values.gather(1, asked)


def _network(kind: Kind, seed: int, options: dict[str, Any]) -> Network:
    model = network(kind.name, TOKENS, seed, outputs=VALUES, **options)
    if kind.ascends:
        turn_round(model)
    return model


def _train(model: Network, rate: float, updates: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)

    def loss(step: int) -> Tensor:
        pairs = PAIRS[step % len(PAIRS)]
        inputs, values = draw(ROWS, pairs, generator)
        return cross_entropy(model(inputs)[0][:, pairs:].flatten(0, 1), values.flatten())

    descend(model, loss, rate, updates, CLIP)


@torch.inference_mode()
def _recalled(model: Network, rows: int) -> list[float]:
    """Share of values, by number of pairs."""
    shares = []
    for pairs in PAIRS:
        inputs, values = draw(rows, pairs, torch.Generator().manual_seed(10**6 + pairs))
        shares.append(float((model(inputs)[0][:, pairs:].argmax(-1) == values).double().mean()))
    return shares


@torch.inference_mode()
def _bytes(model: Network, pairs: int) -> int:
    inputs, _ = draw(1, pairs, torch.Generator().manual_seed(0))
    return state_bytes(model.begin(inputs[:, :pairs]))


def _inner(model: Network, rows: int) -> float:
    inputs, _ = draw(rows, MOST, torch.Generator().manual_seed(10**6))
    return inner_change(model, inputs[:, :MOST])


def verdict(grows: bool, above: list[Measured], kept: list[Measured]) -> Verdict:
    """Whether only the list grows; recall of TTT less that of each vector, at most pairs; recall from the list."""
    if not grows or all((one.high or 0.0) <= 0 for one in above):
        return "fails"
    better = [(one.low or 0.0) > 0 for one in above]
    if all(better) and all((one.low or 0.0) >= KEPT for one in kept):
        return "holds"
    return "conditions" if any(better) else "untold"


def _finding(sizes: tuple[int, int, int], found: dict[str, Result]) -> Finding:
    numbers: list[Measured] = []
    by_name: dict[str, list[Measured]] = {}
    for name, result in found.items():
        by_name[name] = [_recall(name, pairs, row) for pairs, row in zip(PAIRS, result.recalled, strict=True)]
        numbers += by_name[name]
    above = [_difference(("ttt", other), found) for other in VECTORS]
    further = [_difference(pair, found) for pair in (("gpt", "ttt"), ("ttt", "ascent"), ("ttt", "linear"))]
    states = [_state(name, result) for name, result in found.items()]
    inner = [_step(name, found[name].inner) for name in ("ttt", "ascent")]
    same = exact(
        (
            "TTT without norm, from zero: largest difference from linear attention",
            "无归一化、从零开始的 TTT：与线性注意力的最大差",
        ),
        max(map(as_linear_attention, range(10))),
        seeds=10,
    )
    grows = {name: result.bytes[-1] > result.bytes[0] for name, result in found.items()}
    told, conditions = _summary(by_name, found, inner), _conditions.told(_asked(above, by_name["gpt"]))
    return Finding(
        verdict=verdict(all(one == (name == "gpt") for name, one in grows.items()), above, by_name["gpt"]),
        summary=(f"{told[0]} {conditions[0]}", f"{told[1]}{conditions[1]}"),
        protocol=_protocol(*sizes, found),
        numbers=[*numbers, *above, *further, *states, *inner, same, *_layers()],
        figure=_figure(found),
        caption=(
            "Values recalled and bytes of the state against the number of pairs read, equal numbers of parameters; "
            "bands are 95 % intervals over seeds",
            "能回忆的值与状态的字节数随所读键值对数目的变化，参数量相同；色带为各种子的 95 % 置信区间",
        ),
        tables=[_table(found)],
    )


def _asked(above: list[Measured], kept: list[Measured]) -> _conditions.Conditions:
    return [*((one, 0.0) for one in above), *((one, KEPT) for one in kept)]


def _recall(name: str, pairs: int, row: np.ndarray) -> Measured:
    title, last = MODELS[name].title, pairs == MOST
    said = {"gpt": ("all kept", "无压缩"), "rnn": ("limited", "有限"), "lstm": ("limited", "有限")}
    claimed = said.get(name, ("more than a vector", "强于向量") if name == "ttt" else ("", "")) if last else ("", "")
    label = (f"recalled of {pairs} pairs, {title[0]}", f"{pairs} 对中回忆出的比例，{title[1]}")
    return measured(label, row, claimed, bounds=(0.0, 1.0))


def _difference(names: tuple[str, str], found: dict[str, Result]) -> Measured:
    (a, b), (one, other) = names, (found[name].recalled[-1] for name in names)
    label = (
        f"recalled of {MOST} pairs: {MODELS[a].title[0]} less {MODELS[b].title[0]}",
        f"{MOST} 对中回忆出的比例：{MODELS[a].title[1]}减{MODELS[b].title[1]}",
    )
    return measured(label, one - other, ("above 0", "大于 0") if a == "ttt" and b in VECTORS else ("", ""))


def _state(name: str, result: Result) -> Measured:
    title = MODELS[name].title
    label = (f"state after {MOST} pairs, {title[0]}", f"{MOST} 对之后的状态，{title[1]}")
    return exact(
        label, result.bytes[-1], ("grows", "增长") if name == "gpt" else ("fixed", "固定"), unit=("bytes", "字节")
    )


def _layers() -> list[Measured]:
    """Parameters of one layer, of WIDTH and relative to half of it."""
    found = []
    for name in ("rnn", "lstm", "ttt", "linear", "gpt"):
        kind, counts = MODELS[name], []
        for width in (WIDTH, WIDTH // 2):
            inputs = {"inputs": width} if name in VECTORS else {}
            counts.append(parameters(backbone(kind.name, **{**kind.options, **inputs, "width": width})))
        said = (f"parameters of a layer of width {WIDTH}", f"宽度 {WIDTH} 的一层的参数量")
        for label, value in ((said, counts[0]), (DOUBLED, counts[0] / counts[1])):
            found.append(exact((f"{label[0]}, {kind.title[0]}", f"{label[1]}，{kind.title[1]}"), value))
    return [*found[::2], *found[1::2]]


def _step(name: str, values: list[float]) -> Measured:
    title = MODELS[name].title
    label = (
        f"{title[0]}: inner loss after / before a token's own step",
        f"{title[1]}：自身一步之后与之前的内层损失之比",
    )
    return measured(label, values, bounds=(0.0, None))


def _table(found: dict[str, Result]) -> Rows:
    heads: list[Pair] = [("model", "模型"), ("memory", "记忆"), ("parameters", "参数量")]
    heads += [(f"bytes after {pairs} pairs", f"{pairs} 对之后的字节数") for pairs in PAIRS]
    heads += [(f"recall at rate {rate:g}", f"学习率 {rate:g} 时的回忆率") for rate in RATES]
    rows: list[list[Pair | float | str]] = [
        [MODELS[name].title, MODELS[name].memory, one.parameters, *one.bytes, *one.pilots]
        for name, one in found.items()
    ]
    return Rows(("Sizes, state, and mean recall of the pilot runs", "参数量、状态与试验运行的平均回忆率"), heads, rows)


def _figure(found: dict[str, Result]) -> list[Panel]:
    x, ticks = ("pairs read", "所读的键值对数"), [float(pairs) for pairs in PAIRS]
    recalled = [curve(MODELS[name].title, PAIRS, one.recalled, bounds=(0, 1)) for name, one in found.items()]
    return [
        Lines(
            x=x,
            y=("share of values recalled", "回忆出的值的比例"),
            curves=recalled,
            log_x=True,
            ticks=ticks,
            levels=[Level(("chance", "随机"), 1 / VALUES)],
            from_zero=True,
        ),
        Lines(
            x=x,
            y=("state of one sequence (bytes)", "一条序列的状态（字节）"),
            curves=[
                curve(MODELS[name].title, PAIRS, [[size] for size in one.bytes])
                for name, one in found.items()
                if not MODELS[name].ascends  # its state is that of TTT
            ],
            log_x=True,
            log_y=True,
            ticks=ticks,
        ),
    ]


def _summary(by_name: dict[str, list[Measured]], found: dict[str, Result], inner: list[Measured]) -> Pair:
    def told(n: int, place: int) -> str:
        listed = [f"{MODELS[name].title[n]} {short(found[name].recalled[place].mean(), 3)}" for name in by_name]
        return (", ", "，")[n].join(listed)

    state = {name: scaled(one.bytes[-1], "B") for name, one in found.items()}
    growth = [(name, one.bytes[-1] / one.bytes[0]) for name, one in found.items() if one.bytes[-1] > one.bytes[0]]
    grown = [
        (", ", "，")[n].join(f"{MODELS[name].title[n]} {short(times, 3)}" for name, times in growth) for n in (0, 1)
    ]
    steps = [short(one.value, 3) for one in inner]
    return (
        f"Share recalled of {MOST} pairs: {told(0, -1)} (chance {1 / VALUES:g}); of {PAIRS[0]} pairs: {told(0, 0)}. "
        f"State after {MOST} pairs: RNN {state['rnn']}, LSTM {state['lstm']}, TTT {state['ttt']}, linear attention "
        f"{state['linear']}, attention {state['gpt']}; those that grow, and how many times from {PAIRS[0]} to {MOST} "
        f"pairs: {grown[0]}. TTT's own step changes the inner loss of a pair by a factor of {steps[0]}, turned round "
        f"of {steps[1]}.",
        f"{MOST} 对中回忆出的比例：{told(1, -1)}（随机 {1 / VALUES:g}）；{PAIRS[0]} 对时：{told(1, 0)}。{MOST} 对之后"
        f"的状态：RNN {state['rnn']}，LSTM {state['lstm']}，TTT {state['ttt']}，线性注意力 {state['linear']}，注意力 "
        f"{state['gpt']}；随对数增长的状态，以及从 {PAIRS[0]} 对到 {MOST} 对的倍数：{grown[1]}。TTT 自身的一步使该对的"
        f"内层损失变为 {steps[0]} 倍，反向时为 {steps[1]} 倍。",
    )


def _protocol(seeds: int, updates: int, rows: int, found: dict[str, Result]) -> Pair:
    english, chinese = (
        (", ", "，")[n].join(f"{MODELS[name].title[n]} {one.parameters:,}" for name, one in found.items())
        for n in (0, 1)
    )
    pairs, rates = ", ".join(map(str, PAIRS)), ", ".join(f"{rate:g}" for rate in RATES)
    return (
        f"{KEYS} keys, {VALUES} values; a pair is one token, and so is a question; {pairs} pairs, no key twice, then "
        f"every key in another order. Parameters: {english}; one layer each, attention with rotary positions, no "
        f"short convolution, TTT with a linear inner model and mini-batches of 16. {updates:,} updates of {ROWS} "
        f"rows, the number of pairs in turn; Adam with a rate that falls to 0, norm clipped at {CLIP:g}; {seeds} "
        f"seeds. The rate of each model is the better of {rates} on one more seed. Recall on {rows} new rows per "
        "number of pairs. State: all tensors that are handed on after the pairs, one sequence, 4 bytes per number. "
        "Parameters of a layer: without embedding and output layer, attention and matrices with their feed-forward "
        "network. Steps turned round: TTT with inner learning rates of the opposite sign, in training as well.",
        f"{KEYS} 个键，{VALUES} 个值；一个键值对是一个词元，一次提问也是；{pairs} 对，键不重复，然后按另一顺序问每个"
        f"键。参数量：{chinese}；各为一层，注意力用旋转位置编码，无短卷积，TTT 的内层模型为线性，小批次为 16。"
        f"{updates:,} 次更新，每次 {ROWS} 行，各种对数轮流；Adam，学习率降至 0，范数裁剪到 {CLIP:g}；{seeds} 个种子。"
        f"每个模型的学习率取 {rates} 中在另一个种子上较好者。每种对数用 {rows} 行新数据测回忆率。状态：读完键值对之后"
        "传递的全部张量，一条序列，每个数 4 字节。一层的参数量不含嵌入和输出层，注意力与各种矩阵记忆含前馈网络。内层"
        "步反向：TTT 的内层学习率取相反符号，训练时也如此。",
    )


STUDY = Study(
    number=25,
    title=(
        "Context is kept as a vector (RNN), as weights (TTT), or as a list (attention)",
        "上下文保存为向量（RNN）、权重（TTT）或列表（注意力）",
    ),
    claim=(
        "An RNN compresses all context into one hidden vector of fixed size, whose expressiveness is limited for long "
        "contexts; TTT compresses it into the weights of a model, which is more expressive; self-attention stores all "
        "of it in a list (the KV cache), without compression.",
        "RNN 将所有 context 压缩到一个固定大小的隐向量，上下文较长时表达能力有限；TTT 把 context 压缩到模型权重中，增强"
        "了表达能力；self-attention 使用一个列表（KV Cache）存储所有 context，无压缩。",
    ),
    sources=(("001", "思想"),),
    rule=(
        f"By whole intervals: it holds if only the state of attention grows with the number of pairs, if TTT recalls "
        f"more of {MOST} pairs than RNN and LSTM, and attention at least {KEPT:.0%} of any number of pairs; under "
        "conditions, if TTT recalls more than at least one of the two. It fails if another state grows, or if TTT "
        "recalls no more than either; otherwise it cannot be told.",
        f"按整个置信区间：若只有注意力的状态随对数增长，{MOST} 对时 TTT 回忆得比 RNN 和 LSTM 都多，且注意力在任何对数下"
        f"至少回忆 {KEPT:.0%}，则成立；若 TTT 至少多于两者之一，则为有条件成立。若其他状态也增长，或 TTT 不多于任何一"
        "个，则不成立；其余无法判断。",
    ),
    remarks=(
        (
            "With equal parameters the states are not equal: d vectors of d weights each serve a vector of d numbers "
            "or a matrix of about d times d. That is part of the claim, not a flaw of the comparison; but it means "
            "that weights and vector are not compared at the same number of bytes.",
            "参数量相同时状态大小并不相同：d 行、每行 d 个权重，可以服务于 d 个数的向量，也可以服务于约 d 乘 d 的矩阵。"
            "这是论断的一部分，不是比较的缺陷；但也意味着权重与向量并不是在相同字节数下比较的。",
        ),
        (
            "What is measured is what is learned within the budget. A vector that recalls little may hold more than "
            "training taught the model to keep in it.",
            "测量的是在给定预算内学到的。回忆得少的向量，能容纳的可能比训练教会模型保存的更多。",
        ),
        (
            "One reading of TTT (Sun et al. 2024): a memory that learns while it reads, because every token is a "
            "step of gradient descent that reconstructs its value from its key. The other (arXiv 2602.21204): "
            "learned linear attention, in which the inner loss need not be minimised at all. Without the norm, from "
            "zero and within one mini-batch the two are the same function (see the numbers). The closer steps that "
            "raise the inner loss come to the same recall, the less recall rests on a falling inner loss.",
            "对 TTT 的一种解读（Sun et al. 2024）：它是边读边学的记忆，因为每个词元都是一步梯度下降，由键重建值。另一"
            "种解读（arXiv 2602.21204）：它是学到的线性注意力，内层损失根本不必被最小化。没有归一化、从零开始、在一个"
            "小批次之内，两者是同一个函数（见数值表）。让内层损失上升的步所得的回忆率越接近，回忆就越不依赖内层损失的"
            "下降。",
        ),
        (
            "Attention that recalls no less of many pairs than of few has lost nothing to their number: what it then "
            "does not recall, it has not learned within the budget.",
            "若注意力在对数多时回忆的比例不低于对数少时，则没有因对数而损失什么：未能回忆的部分，是在给定预算内没有学"
            "会。",
        ),
        (
            "Learning rates are chosen on one more seed, but by the recall on the same new rows that is measured "
            "afterwards.",
            "学习率在另一个种子上选定，但依据的是之后用来评分的同一批新数据上的回忆率。",
        ),
        (
            "A pair is one token here, so that no model has to learn to join neighbouring tokens first; with key and "
            "value as separate tokens (`seqloom diagnose`, many_pairs) that step takes most of the training.",
            "这里一个键值对是一个词元，因此模型不必先学会把相邻词元连起来；若键与值是分开的词元（`seqloom diagnose` 的 "
            "many_pairs），训练大部分花在这一步上。",
        ),
    ),
    measure=measure,
)
