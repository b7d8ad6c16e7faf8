"""Gradients vanish if the eigenvalues of the recurrent matrix are below 1 and explode if they are above

The recurrent matrix of a tanh RNN is scaled to a given spectral radius. Without inputs the state stays at 0, where tanh
has slope 1 and the RNN is exactly linear; with inputs tanh saturates. Measured: the factor per step by which gradients
shrink or grow, against the radius.
"""

from __future__ import annotations

import numpy as np
import torch

from seqloom.core.progress import Reporter
from seqloom.explain.views.gradients import slope
from seqloom.pages.formats import short
from seqloom.pages.plots import Curve, Level, Lines
from seqloom.studies._gradients import geometric, norms_by_lag, recurrent_matrix, set_radius
from seqloom.studies._models import backbone
from seqloom.studies._study import Finding, Measured, Study, Verdict, curve, measured

WIDTH, ROWS, LAGS, FIRST = 64, 4, 100, 10  # the first lags depend on the direction, not yet on the largest eigenvalue
RADII = (0.5, 0.7, 0.9, 1.0, 1.1, 1.3, 1.5)
SHOWN = (0.5, 0.9, 1.0, 1.1, 1.5)
INPUTS = {  # standard deviation of the inputs
    0.0: ("no inputs: linear", "无输入：线性"),
    0.1: ("tanh, weak inputs", "tanh，弱输入"),
    1.0: ("tanh, strong inputs", "tanh，强输入"),
}
STRONG = 1.0
TRANSIENT = 0.9  # the radius at which the growth before the decay is quoted


def measure(quick: bool, progress: Reporter) -> Finding:
    seeds, lags = (2, 30) if quick else (12, LAGS)
    norms = np.zeros((len(INPUTS), len(RADII), seeds, lags + 1))
    peaks = []
    for seed in range(seeds):
        progress.update(seed / seeds, {"doing": f"seed {seed}"})
        for n, radius in enumerate(RADII):
            model = backbone("rnn", seed, width=WIDTH).double()
            with torch.no_grad():
                draw = torch.Generator().manual_seed(100 * seed + n)
                recurrent_matrix(model).copy_(torch.randn(WIDTH, WIDTH, generator=draw))
            set_radius(model, radius)
            for m, strength in enumerate(INPUTS):
                draw = torch.Generator().manual_seed(seed)
                x = strength * torch.randn(ROWS, lags + 1, model.inputs or WIDTH, generator=draw, dtype=torch.double)
                norms[m, n, seed] = norms_by_lag(model, x, draw)
            if radius == TRANSIENT:
                peaks.append(_peak(recurrent_matrix(model).detach().numpy(), lags))
    return _finding(seeds, norms, peaks)


def _peak(matrix: np.ndarray, lags: int) -> float:
    """The largest spectral norm of the powers of a matrix: how much a gradient can grow, in the worst direction."""
    power, found = np.eye(len(matrix)), []
    for _ in range(lags):
        power = power @ matrix
        found.append(float(np.linalg.norm(power, 2)))
    return max(found)


def signs(rates: list[Measured]) -> bool | None:
    """Whether gradients vanish below radius 1 and grow above it, by whole intervals of the logarithmic rate; None: some
    interval contains 0."""
    sure = True
    for radius, rate in zip(RADII, rates, strict=True):
        low, high = rate.low or 0.0, rate.high or 0.0
        if radius == 1.0:
            continue
        if (high < 0) if radius > 1 else (low > 0):
            return False
        sure = sure and (low > 0 or high < 0)
    return True if sure else None


def verdict(linear: bool | None, tanh: list[bool | None]) -> Verdict:
    if linear is None:
        return "untold"
    if not linear:
        return "fails"
    return "holds" if all(tanh) else "conditions"


def _finding(seeds: int, norms: np.ndarray, peaks: list[float]) -> Finding:
    lags = np.arange(FIRST, norms.shape[-1])
    rates = np.array([[[slope(one[FIRST:], lags) for one in row] for row in table] for table in norms], dtype=float)
    logs = np.log(RADII)
    numbers, found = [], []
    for m, name in enumerate(INPUTS.values()):
        lines = [float(np.polyfit(logs, column, 1)[0]) for column in rates[m].T]
        claimed = ("1", "1") if not m else ("at most 1", "至多为 1")
        numbers.append(measured((f"logarithmic rate per log radius, {name[0]}", f"对数速率对对数半径的斜率，{name[1]}"),
                                lines, claimed))  # fmt: skip
        found.append([measured(name, row) for row in rates[m]])
        for radius, row in zip(RADII, rates[m], strict=True):
            said = (f"factor per step at radius {radius:g}, {name[0]}", f"半径 {radius:g} 时每步的倍数，{name[1]}")
            wanted = "1" if radius == 1 else "< 1" if radius < 1 else "> 1"
            numbers.append(measured(said, np.exp(row), (wanted, wanted), bounds=(0.0, None)))
    said = (
        f"largest spectral norm of powers of the matrix, radius {TRANSIENT:g}",
        f"矩阵各次幂的最大谱范数，半径 {TRANSIENT:g}",
    )
    numbers.append(measured(said, peaks, bounds=(0.0, None)))
    below = float((rates[1:] <= rates[0] + 1e-9).mean())
    return Finding(
        verdict=verdict(signs(found[0]), [signs(one) for one in found[1:]]),
        summary=_summary(
            rates, numbers[-1], below, [name for name, one in zip(INPUTS.values(), found, strict=True) if signs(one)]
        ),
        protocol=_protocol(seeds, norms.shape[-1] - 1),
        numbers=numbers,
        figure=[_rates(rates), _by_lag(norms[list(INPUTS).index(STRONG)])],
        caption=(
            "Factor per step against the spectral radius, and gradient norm against the lag with strong inputs; bands "
            "are 95 % intervals over seeds",
            "每步的倍数与谱半径的关系，以及强输入下梯度范数随间隔的变化；色带为各种子的 95 % 置信区间",
        ),
    )


def _rates(rates: np.ndarray) -> Lines:
    curves = [curve(name, RADII, np.exp(rates[m]), bounds=(0.0, None)) for m, name in enumerate(INPUTS.values())]
    same = Curve(("the radius itself", "半径本身"), list(RADII), list(RADII), draw="dashed")
    return Lines(
        x=("spectral radius", "谱半径"),
        y=("factor per step", "每步的倍数"),
        curves=[*curves, same],
        ticks=[0.5, 0.7, 0.9, 1.1, 1.3, 1.5],
        levels=[Level(("neither", "不增不减"), 1.0)],
    )


def _by_lag(norms: np.ndarray) -> Lines:
    lags = list(range(0, norms.shape[-1], 5))
    curves = []
    for radius in SHOWN:
        rows = np.log(norms[RADII.index(radius)][:, lags]).T  # (lags, seeds)
        curves.append(geometric((f"{radius:g}", f"{radius:g}"), lags, rows))
    return Lines(
        x=("lag", "间隔"), y=("gradient norm", "梯度范数"), curves=curves, log_y=True,
        title=("By spectral radius, strong inputs", "不同谱半径，强输入"),
    )  # fmt: skip


def _summary(rates: np.ndarray, peak: Measured, below: float, agreeing: list[tuple[str, str]]) -> tuple[str, str]:
    """`agreeing`: where gradients shrink at every radius below 1 and grow at every radius above 1."""
    english, chinese = ("; ".join(name[n] for name in agreeing) or ("none", "无")[n] for n in (0, 1))
    ends = [RADII.index(radius) for radius in (0.5, 0.9, 1.1, 1.5)]
    linear, weak, strong = (" / ".join(short(float(np.exp(table[n].mean())), 3) for n in ends) for table in rates)
    return (
        f"At radius 0.5 / 0.9 / 1.1 / 1.5 a gradient is multiplied per step by {linear} in the linear RNN, by {weak} "
        f"with weak inputs and by {strong} with strong ones. As claimed at every radius, by whole intervals: "
        f"{english}. The tanh RNN is at or below the linear one in {below:.0%} of cases. At radius {TRANSIENT:g} "
        f"powers of the matrix still have a spectral norm of up to {short(peak.value, 3)} before they decay.",
        f"半径为 0.5 / 0.9 / 1.1 / 1.5 时，梯度每步的倍数在线性 RNN 中为 {linear}，弱输入时为 {weak}，强输入时为 "
        f"{strong}。在每个半径上都如论断所言（以整个置信区间为准）：{chinese}。tanh RNN 在 {below:.0%} 的情形中不超过"
        f"线性 RNN。半径为 {TRANSIENT:g} 时，矩阵的幂在衰减之前谱范数仍可达 {short(peak.value, 3)}。",
    )


def _protocol(seeds: int, lags: int) -> tuple[str, str]:
    return (
        f"seqloom's rnn (tanh), width {WIDTH}, recurrent matrix with normal entries scaled to the radius, {seeds} "
        "seeds (weights, inputs and direction), double precision. The gradient is that of a random direction of the "
        f"last state with respect to earlier states, geometric mean of {ROWS} sequences. Factor per step: exp of the "
        f"slope of the logarithm of its norm, over lags {FIRST} to {lags}. Weak and strong inputs: normal, standard "
        "deviation 0.1 and 1.",
        f"seqloom 的 rnn（tanh），宽度 {WIDTH}，循环矩阵元素服从正态分布并缩放到给定半径，{seeds} 个种子（权重、输入和"
        f"方向），双精度。梯度取最后状态的一个随机方向对先前各状态的梯度，对 {ROWS} 条序列取几何平均。每步的倍数：范数"
        f"的对数在间隔 {FIRST} 到 {lags} 上的斜率取 exp。弱输入和强输入：正态分布，标准差为 0.1 和 1。",
    )


STUDY = Study(
    number=3,
    title=(
        "Gradients vanish if the eigenvalues of the recurrent matrix are below 1 and explode if they are above",
        "循环矩阵的特征值小于 1 则梯度消失，大于 1 则梯度爆炸",
    ),
    claim=(
        "The state is multiplied by the same matrix at every step, so gradients contain high powers of it, in which "
        "eigenvalues below 1 vanish and eigenvalues above 1 diverge.",
        "状态在传递过程中始终和固定的矩阵相乘，求梯度时会遇到矩阵的高次幂，其中小于 1 的特征值将会消失，大于 1 的特征值"
        "将会发散。",
    ),
    sources=(("002", "循环神经网络"),),
    rule=(
        "It holds if, by whole intervals, gradients shrink at every radius below 1 and grow at every radius above 1, "
        "without inputs and with them; under conditions, if only without inputs, where the RNN is linear.",
        "若在每个小于 1 的半径上梯度都缩小、在每个大于 1 的半径上都增大（以整个置信区间为准），无论有无输入，则成立；"
        "若只在没有输入、RNN 为线性时如此，则为有条件成立。",
    ),
    remarks=(
        (
            "Eigenvalues tell what happens in the end. A matrix that is not normal can make a gradient grow for many "
            "steps although all its eigenvalues are below 1.",
            "特征值只说明最终的趋势。对非正规矩阵，即使所有特征值都小于 1，梯度也可能先增大许多步。",
        ),
        (
            "tanh has a slope of at most 1, so it can only take away from the norm of each factor; the larger states "
            "are, the more.",
            "tanh 的斜率至多为 1，因此只会减小每个因子的范数；状态越大，减小得越多。",
        ),
    ),
    measure=measure,
)
