"""In a plain RNN gradients vanish or explode exponentially with distance

The gradient of the loss of the last prediction, at the input vectors 1, 2, 3, ... tokens before: for an RNN, an LSTM, a
GRU and attention on the same text, before and after training; and for an RNN whose recurrent matrix is large.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from seqloom.core.instance import Instance, Output, repeat
from seqloom.core.network import Network, SequenceModel
from seqloom.core.progress import Reporter
from seqloom.explain.views.gradients import microscope, slope
from seqloom.pages.formats import short
from seqloom.pages.plots import Curve, Lines, Panel
from seqloom.studies._gradients import geometric, recurrent_matrix, set_radius, spectral_radius
from seqloom.studies._study import Finding, Measured, Rows, Study, Verdict, measured
from seqloom.studies._training import clipped, network, stretches, text

WIDTH, STEPS, ROWS, RATE, CLIP = 32, 64, 8, 1e-2, 1.0
LARGE = 3.0  # spectral radius of the RNN whose gradients explode
EVERY = 5  # one in so many lags is drawn
STRAIGHT = 0.9  # least share of variance (R squared) that a line must explain
MODELS: dict[str, tuple[tuple[str, str], dict[str, Any]]] = {
    "rnn": (("RNN", "RNN"), {}),
    "lstm": (("LSTM", "LSTM"), {}),
    "gru": (("GRU", "GRU"), {}),
    "gpt": (("attention (GPT)", "注意力（GPT）"), {"depth": 2, "heads": 4, "context": STEPS, "preset": "llama"}),
}
STAGES = {"fresh": ("before training", "训练前"), "trained": ("after training", "训练后")}
WIDE = (f"RNN, radius {LARGE:g}", f"RNN，半径 {LARGE:g}")
Key = tuple[str, str]  # model, stage
Norms = dict[Key, list[np.ndarray]]  # of each seed, by lag


def measure(quick: bool, progress: Reporter) -> Finding:
    seeds, updates, texts = (2, 2, 1) if quick else (4, 120, 3)
    ids, tokens, digest = text()
    norms: Norms = {}
    products: Norms = {}
    radii: dict[Key, list[float]] = {}
    factors: list[float] = []
    for seed in range(seeds):
        for n, name in enumerate(MODELS):
            progress.update((seed + n / len(MODELS)) / seeds, {"doing": f"seed {seed}, {name}"})
            model = network(name, tokens, seed, width=WIDTH, **MODELS[name][1])
            for stage in STAGES:
                if stage == "trained":
                    _train(model, ids, updates, seed)
                _look(model, (name, stage), ids, texts, seed, norms, products)
                if name == "rnn":
                    radii.setdefault((name, stage), []).append(spectral_radius(recurrent_matrix(model)))
        model = network("rnn", tokens, seed, width=WIDTH)
        set_radius(model, LARGE)
        _look(model, ("rnn", "large"), ids, texts, seed, norms, products)
        factors.append(_clipping(model, ids, seed))
    return _finding((seeds, updates, texts), norms, products, radii, factors, digest)


def _train(model: Network, ids: Tensor, updates: int, seed: int) -> None:
    draw, parameters = torch.Generator().manual_seed(seed), list(model.parameters())
    optimizer = torch.optim.Adam(parameters, lr=RATE)
    for _ in range(updates):
        inputs, targets = stretches(ids, ROWS, STEPS, draw)
        optimizer.zero_grad()
        cross_entropy(model(inputs)[0].flatten(0, 1), targets.flatten()).backward()
        clipped(parameters, CLIP)
        optimizer.step()


def _look(model: Network, key: Key, ids: Tensor, texts: int, seed: int, norms: Norms, products: Norms) -> None:
    """Geometric means over some texts: gradient norms at the input vectors by lag, from lag 1 on, and the spectral norm
    of the product of Jacobians of a recurrent memory."""
    draw, seen, jacobian = torch.Generator().manual_seed(seed + 1), [], []
    for _ in range(texts):
        inputs, targets = stretches(ids, 1, STEPS, draw)
        view = microscope(model.eval(), _instance(inputs, int(targets[0, -1])))
        seen.append(np.log(view.tensors["embedding"][1:] + 1e-45))
        jacobian += [np.log(values[1:] + 1e-45) for name, values in view.tensors.items() if name.endswith(", Jacobian")]
    model.train()
    norms.setdefault(key, []).append(np.exp(np.mean(seen, axis=0)))
    if jacobian:
        products.setdefault(key, []).append(np.exp(np.mean(jacobian, axis=0)))


def _instance(inputs: Tensor, target: int) -> Instance:
    """A text whose last prediction is looked at."""

    def read(model: SequenceModel, copies: int) -> Tensor:
        return model(repeat(inputs, copies))[0][:, -1:].log_softmax(-1)

    shown = tuple(str(token) for token in inputs[0].tolist())
    output = Output(str(target), target, given=True, at=len(shown) - 1)
    return Instance("language_model", shown, (output,), read, str)


def _clipping(model: Network, ids: Tensor, seed: int) -> float:
    """What clipping multiplies a gradient by, that of the last prediction."""
    inputs, targets = stretches(ids, 1, STEPS, torch.Generator().manual_seed(seed + 1))
    model.zero_grad()
    cross_entropy(model(inputs)[0][:, -1], targets[:, -1]).backward()
    return min(1.0, CLIP / clipped(list(model.parameters()), CLIP))


def straight(norms: np.ndarray) -> tuple[float, float]:
    """R squared of the logarithm of norms as a line in the lag (exponential), and in its logarithm (a power law)."""
    lags, logs = np.arange(1, len(norms) + 1), np.log(norms)
    return float(np.corrcoef(lags, logs)[0, 1] ** 2), float(np.corrcoef(np.log(lags), logs)[0, 1] ** 2)


def exponential(rate: Measured, fits: np.ndarray) -> int:
    """-1 or 1 if gradients shrink or grow exponentially, by the whole interval of the rate; 0: neither. `fits`:
    R squared of a line and of a power law, (seeds, 2)."""
    line, power = fits.mean(axis=0)
    if line < STRAIGHT or line < power:
        return 0
    return -1 if (rate.high or 0.0) < 0 else 1 if (rate.low or 0.0) > 0 else 0


def verdict(fresh: int, trained: int, large: int) -> Verdict:
    """Of the RNN before and after training and with a large recurrent matrix."""
    if not fresh and not large:
        return "fails"
    return "holds" if fresh and trained and large > 0 else "conditions"


def _finding(
    sizes: tuple[int, int, int],
    norms: Norms,
    products: Norms,
    radii: dict[Key, list[float]],
    factors: list[float],
    digest: str,
) -> Finding:
    numbers, rates, kinds = [], {}, {}
    for key, found in norms.items():
        name, stage = MODELS[key[0]][0], STAGES.get(key[1], (f"radius {LARGE:g}", f"半径 {LARGE:g}"))
        values = [slope(one, np.arange(1, len(one) + 1)) or 0.0 for one in found]
        fits = np.array([straight(one) for one in found])
        claimed = (("not 1", "不为 1"), ("1", "1")) if key[0] == "rnn" else (("", ""), ("", ""))
        rates[key], kinds[key] = measured(name, values), exponential(measured(name, values), fits)
        said = (f"factor per token, {name[0]}, {stage[0]}", f"每个词元的倍数，{name[1]}，{stage[1]}")
        numbers.append(measured(said, np.exp(values), claimed[0], bounds=(0.0, None)))
        if key[0] == "rnn":
            said = (f"R squared of an exponential, RNN, {stage[0]}", f"指数拟合的 R 平方，RNN，{stage[1]}")
            numbers.append(measured(said, fits[:, 0], claimed[1], bounds=(0.0, 1.0)))
            said = (f"R squared of a power law, RNN, {stage[0]}", f"幂律拟合的 R 平方，RNN，{stage[1]}")
            numbers.append(measured(said, fits[:, 1], bounds=(0.0, 1.0)))
    for key, values in radii.items():
        said = (f"spectral radius, RNN, {STAGES[key[1]][0]}", f"谱半径，RNN，{STAGES[key[1]][1]}")
        numbers.append(measured(said, values, bounds=(0.0, None)))
    return Finding(
        verdict=verdict(*(kinds["rnn", stage] for stage in (*STAGES, "large"))),
        summary=_summary(norms, rates),
        protocol=_protocol(*sizes),
        numbers=numbers,
        figure=_figure(norms, factors),
        caption=(
            "Gradient of the last prediction's loss at earlier input vectors, relative to lag 1; bands are 95 % "
            "intervals over seeds",
            "最后一个预测的损失对先前输入向量的梯度，相对于间隔 1；色带为各种子的 95 % 置信区间",
        ),
        tables=[_jacobians(products)],
        data={"sample:python-docs": digest},
    )


def _lines(name: tuple[str, str], found: list[np.ndarray], shift: list[float] | None = None) -> Curve:
    """Relative to lag 1, on the logarithmic scale."""
    lags = list(range(1, len(found[0]) + 1, EVERY))
    table = np.array([np.log(one / one[0])[::EVERY] for one in found]).T + (np.log(shift) if shift else 0.0)
    return geometric(name, lags, table)


def _figure(norms: Norms, factors: list[float]) -> list[Panel]:
    x, y = ("lag in tokens", "间隔（词元）"), ("gradient norm, lag 1 = 1", "梯度范数，间隔 1 处为 1")
    panels: list[Panel] = []
    for stage, title in STAGES.items():
        curves = [_lines(MODELS[name][0], norms[name, stage]) for name in MODELS]
        panels.append(Lines(x, y, curves, title=(title[0].capitalize(), title[1]), log_y=True))
    large = norms["rnn", "large"]
    after = ("after clipping", "裁剪后")
    curves = [_lines(WIDE, large), _lines(after, large, factors)]
    return [*panels, Lines(x, y, curves, title=("Exploding, before training", "爆炸，训练前"), log_y=True)]


def _jacobians(products: Norms) -> Rows:
    rows: list[list[tuple[str, str] | float | str]] = []
    for key, found in products.items():
        stage = STAGES.get(key[1], (f"radius {LARGE:g}", f"半径 {LARGE:g}"))
        means = np.exp(np.mean(np.log(found), axis=0))
        rows.append([MODELS[key[0]][0], stage, *(float(means[lag - 1]) for lag in (1, 10, 30, 60))])
    heads = [("model", "模型"), ("stage", "阶段"), *((f"lag {lag}", f"间隔 {lag}") for lag in (1, 10, 30, 60))]
    return Rows(
        ("Spectral norm of the product of Jacobians of the memory", "记忆的雅可比矩阵之积的谱范数"), heads, rows
    )


def _summary(norms: Norms, rates: dict[Key, Measured]) -> tuple[str, str]:
    def factor(key: Key) -> str:
        return short(math.exp(rates[key].value), 3)

    names = [MODELS[name][0] for name in MODELS]
    fresh, trained = (" / ".join(factor((name, stage)) for name in MODELS) for stage in STAGES)
    fits = [np.mean([straight(one) for one in norms["rnn", stage]], axis=0) for stage in (*STAGES, "large")]
    line, power = (" / ".join(short(float(fit[n]), 2) for fit in fits) for n in (0, 1))
    return (
        f"Per token of distance the gradient is multiplied by {fresh} before training and {trained} after it "
        f"({' / '.join(name[0] for name in names)}); by {factor(('rnn', 'large'))} in an RNN of spectral radius "
        f"{LARGE:g}. In the RNN (before, after, large radius) an exponential explains {line} of the variance of the "
        f"logarithm, a power law {power}.",
        f"距离每增加一个词元，梯度的倍数在训练前为 {fresh}，训练后为 {trained}（"
        f"{' / '.join(name[1] for name in names)}）；谱半径为 {LARGE:g} 的 RNN 为 {factor(('rnn', 'large'))}。对 RNN（"
        f"训练前、训练后、大半径），指数拟合解释了对数方差的 {line}，幂律为 {power}。",
    )


def _protocol(seeds: int, updates: int, texts: int) -> tuple[str, str]:
    return (
        f"Width {WIDTH} (GPT: 2 layers, 4 heads, rotary positions), {seeds} seeds. Characters of sample:python-docs, "
        f"sequences of {STEPS}; training: {updates} updates of {ROWS} sequences, Adam at {RATE:g}, clipped at norm "
        f"{CLIP:g}. Gradients by the microscope of seqloom explain: norm of dL/dx at the input vectors, L the loss of "
        f"the last prediction, geometric mean of {texts} texts. Factor per token: exp of the slope of its logarithm "
        f"over lags 1 to {STEPS - 1}.",
        f"宽度 {WIDTH}（GPT：2 层，4 头，旋转位置编码），{seeds} 个种子。sample:python-docs 的字符，序列长 {STEPS}；训"
        f"练：{updates} 次更新，每次 {ROWS} 条序列，Adam，学习率 {RATE:g}，范数裁剪到 {CLIP:g}。梯度由 seqloom "
        f"explain 的梯度显微镜给出：dL/dx 在输入向量处的范数，L 为最后一个预测的损失，对 {texts} 段文本取几何平均。每"
        f"个词元的倍数：其对数在间隔 1 到 {STEPS - 1} 上的斜率取 exp。",
    )


STUDY = Study(
    number=2,
    title=(
        "In a plain RNN gradients vanish or explode exponentially with distance",
        "普通 RNN 的梯度随距离呈指数消失或爆炸",
    ),
    claim=(
        "The influence of early inputs of an RNN decreases exponentially with distance; back-propagated over long "
        "sequences, gradients decay or grow exponentially.",
        "RNN 早期输入的影响随距离以指数形式减小；长序列反向传播时，梯度呈指数衰减或增长。",
    ),
    sources=(
        ("000", "什么是 RNN 和 LSTM？"),
        ("001", "RNN的优缺点"),
        ("002", "循环神经网络"),
        ("004", "RNN 的问题"),
    ),
    rule=(
        "Gradients vanish or grow exponentially if a line explains at least "
        f"{STRAIGHT:.0%} of the variance of their logarithm against the lag, more than a power law does, and the "
        "interval of its slope does not contain 0. It holds if that is so for the RNN before and after training, and "
        f"with growth at spectral radius {LARGE:g}; it fails if neither before training nor at that radius; else it "
        "holds under conditions.",
        f"若直线能解释梯度对数随间隔变化的方差的至少 {STRAIGHT:.0%}，且优于幂律，斜率的置信区间又不含 0，则视为指数消"
        f"失或增长。若 RNN 在训练前后都如此，且谱半径为 {LARGE:g} 时增长，则成立；若训练前与该半径下都不如此，则不成立"
        "；其余为有条件成立。",
    ),
    remarks=(
        (
            "Clipping multiplies the whole gradient by one number: the curve moves down, its shape stays.",
            "裁剪把整个梯度乘以同一个数：曲线整体下移，形状不变。",
        ),
        (
            "The curves are relative to lag 1, because the scale of input vectors differs between models.",
            "曲线以间隔 1 为基准，因为各模型输入向量的尺度不同。",
        ),
    ),
    measure=measure,
)
