"""Interpolation is easier than extrapolation

Twice: missing values of a series, with the same number of known values and the same distance to the nearest, on both
sides or only before; and functions of one variable, inside the range of the training points and beyond it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from seqloom.core.progress import Reporter
from seqloom.data.samples import SAMPLES
from seqloom.layers.least_squares import Moments
from seqloom.pages.formats import short
from seqloom.pages.plots import Bars, BarSeries, Level, Lines, Panel
from seqloom.pages.words import Pair
from seqloom.studies._study import Finding, Measured, Study, Verdict, curve, measured

DISTANCES = (1, 2, 4, 8, 16)
INPUTS, POINTS = 8, 4000  # known values used for one missing value; points of a series
EQUAL = 1.1  # a ratio of errors up to this is none
SERIES: dict[str, Pair] = {
    "sine": ("noisy sine", "带噪正弦"),
    "walk": ("random walk", "随机游走"),
    "noise": ("white noise", "白噪声"),
    "sunspots": ("sunspots", "太阳黑子"),
}
OBSERVED, NOISE, BEYOND = 100, 0.1, 0.5  # points of a function on [-1, 1], and how far beyond it is asked
FITS: dict[str, Pair] = {
    "polynomial": ("polynomial of degree 9", "9 次多项式"),
    "network": ("tanh network", "tanh 网络"),
    "form": ("sine wave (the true form)", "正弦波（真实形式）"),
}
Fit = Callable[[np.ndarray], np.ndarray]


def measure(quick: bool, progress: Reporter) -> Finding:
    seeds, steps = (3, 50) if quick else (10, 1500)
    distances = (1, 4) if quick else DISTANCES
    ratios = {name: np.zeros((len(distances), seeds)) for name in SERIES}
    errors = {name: np.zeros((2, seeds)) for name in FITS}  # inside, beyond
    for seed in range(seeds):
        progress.update(seed / seeds, {"doing": f"seed {seed}"})
        for name in SERIES:
            series = _series(name, seed)
            for n, distance in enumerate(distances):
                inside, beyond = (_missing(series, distance, both, seed) for both in (True, False))
                ratios[name][n, seed] = beyond / inside
        for name in FITS:
            errors[name][:, seed] = _ranges(name, seed, steps)
    return _finding(seeds, steps, distances, ratios, errors)


def _series(name: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if name == "sunspots":
        return np.array([float(row["sunspots"]) for row in SAMPLES[name].read()])
    steps = rng.normal(size=POINTS)
    if name == "sine":
        return np.sin(0.1 * np.arange(POINTS)) + 0.2 * steps
    return steps.cumsum() if name == "walk" else steps


def _missing(series: np.ndarray, distance: int, both: bool, seed: int) -> float:
    """RMSE of the best linear estimate from INPUTS values at least `distance` away: half before and half after, or all
    before. Fitted on one half of the series and scored on the other; which half is which alternates with the seed."""
    before = np.arange(distance, distance + INPUTS)
    places = np.concatenate((-before[: INPUTS // 2], before[: INPUTS // 2])) if both else -before
    margin = distance + INPUTS
    middle = np.arange(margin, len(series) - margin)
    cut = int(np.random.default_rng(seed).uniform(0.4, 0.6) * len(middle))
    fitted, scored = (middle[: cut - margin], middle[cut + margin :])
    fitted, scored = (scored, fitted) if seed % 2 else (fitted, scored)
    moments = Moments(INPUTS, 1)
    moments.add(torch.from_numpy(series[fitted[:, None] + places]), torch.from_numpy(series[fitted, None]))
    solution = moments.solve(0.0).numpy()
    said = series[scored[:, None] + places] @ solution[:-1, 0] + solution[-1, 0]
    return float(np.sqrt(np.mean((said - series[scored]) ** 2)))


def _ranges(name: str, seed: int, steps: int) -> tuple[float, float]:
    """RMSE against the true function, inside [-1, 1] and up to BEYOND outside."""
    rng = np.random.default_rng(seed)
    speed, phase = rng.uniform(3, 6), rng.uniform(0, 2 * np.pi)
    x = rng.uniform(-1, 1, OBSERVED)
    y = np.sin(speed * x + phase) + NOISE * rng.normal(size=OBSERVED)
    fit = {"polynomial": _polynomial, "network": lambda x, y: _network(x, y, seed, steps), "form": _wave}[name](x, y)
    found = []
    for low, high in ((0.0, 1.0), (1.0, 1.0 + BEYOND)):
        asked = np.linspace(low, high, 200)
        asked = np.concatenate((-asked, asked))
        found.append(float(np.sqrt(np.mean((fit(asked) - np.sin(speed * asked + phase)) ** 2))))
    return found[0], found[1]


def _polynomial(x: np.ndarray, y: np.ndarray) -> Fit:
    return np.polynomial.Chebyshev.fit(x, y, 9, domain=[-1, 1])


def _wave(x: np.ndarray, y: np.ndarray) -> Fit:
    """Least squares over amplitude and phase for each of many frequencies; the best of them."""
    best: tuple[float, float, np.ndarray] | None = None
    for speed in np.linspace(2, 7, 501):
        basis = np.stack((np.sin(speed * x), np.cos(speed * x)), axis=1)
        weights = np.linalg.lstsq(basis, y, rcond=None)[0]
        error = float(np.sum((basis @ weights - y) ** 2))
        if best is None or error < best[0]:
            best = error, float(speed), weights
    assert best is not None
    _, speed, weights = best
    return lambda asked: np.stack((np.sin(speed * asked), np.cos(speed * asked)), axis=1) @ weights


def _network(x: np.ndarray, y: np.ndarray, seed: int, steps: int) -> Fit:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = torch.nn.Sequential(torch.nn.Linear(1, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)).double()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    inputs, targets = (torch.from_numpy(values)[:, None] for values in (x, y))
    for _ in range(steps):
        optimizer.zero_grad()
        (model(inputs) - targets).square().mean().backward()
        optimizer.step()
    return lambda asked: model(torch.from_numpy(asked)[:, None])[:, 0].detach().numpy()


def verdict(ratios: list[Measured]) -> Verdict:
    """Ratios of the errors, beyond to inside, each with its interval."""
    harder = [(one.low or 0.0) > EQUAL for one in ratios]
    if all(harder):
        return "holds"
    return "conditions" if any(harder) else "fails"


def _finding(
    seeds: int,
    steps: int,
    distances: tuple[int, ...],
    ratios: dict[str, np.ndarray],
    errors: dict[str, np.ndarray],
) -> Finding:
    above, harder = (0.0, None), ("above 1", "大于 1")
    far = distances[-1]
    by_series = [
        measured(
            (f"{en}: ratio of errors, distance {far}", f"{zh}：误差之比，距离 {far}"),
            ratios[name][-1],
            harder,
            bounds=above,
        )
        for name, (en, zh) in SERIES.items()
    ]
    by_fit = [
        measured((f"{en}: ratio of errors", f"{zh}：误差之比"), errors[name][1] / errors[name][0], harder, bounds=above)
        for name, (en, zh) in FITS.items()
    ]
    numbers = [*by_series, *by_fit]
    for name, title in FITS.items():
        for n, where in enumerate((("inside", "范围内"), ("beyond", "范围外"))):
            numbers.append(
                measured(
                    (f"{title[0]}: RMSE {where[0]}", f"{title[1]}：{where[1]} RMSE"), errors[name][n], bounds=above
                )
            )
    return Finding(
        verdict=verdict([*by_series, *by_fit]),
        summary=_summary(distances[-1], ratios, by_series, by_fit),
        protocol=_protocol(seeds, steps, distances),
        numbers=numbers,
        figure=_figure(distances, ratios, errors),
        caption=(
            "How much larger the error is when values are known only before the missing one; and errors of fits "
            "inside and beyond the range of their points (95 % intervals over seeds)",
            "只知道缺失值之前的值时误差增大多少；以及各种拟合在数据范围内外的误差（各种子的 95 % 置信区间）",
        ),
    )


def _figure(distances: tuple[int, ...], ratios: dict[str, np.ndarray], errors: dict[str, np.ndarray]) -> list[Panel]:
    bars = []
    for n, where in enumerate((("inside", "范围内"), ("beyond", "范围外"))):
        found = [measured(where, errors[name][n], bounds=(0.0, None)) for name in FITS]
        ends = [[one.low or one.value for one in found], [one.high or one.value for one in found]]
        bars.append(BarSeries(where, [one.value for one in found], *ends))
    return [
        Lines(
            x=("distance to the nearest known value", "与最近已知值的距离"),
            y=("error of extrapolation / error of interpolation", "外推误差 / 内插误差"),
            curves=[curve(SERIES[name], distances, table, bounds=(0.0, None)) for name, table in ratios.items()],
            log_x=True,
            ticks=[float(distance) for distance in distances],
            levels=[Level(("equally hard", "同样难"), 1.0)],
        ),
        Bars(
            x=("RMSE against the true function", "相对真实函数的 RMSE"),
            groups=list(FITS.values()),
            series=bars,
            log=True,
            levels=[Level(("noise of the points", "数据点的噪声"), NOISE)],
        ),
    ]


def _summary(distance: int, ratios: dict[str, np.ndarray], by_series: list[Measured], by_fit: list[Measured]) -> Pair:
    titles = [*SERIES.values(), *FITS.values()]
    pairs = list(zip([*by_series, *by_fit], titles, strict=True))
    told = [(f"{title[0]}: {short(one.value, 3)}", f"{title[1]}：{short(one.value, 3)}") for one, title in pairs]
    series, fits = told[: len(by_series)], told[len(by_series) :]
    means = {SERIES[name]: table.mean(axis=1) for name, table in ratios.items()}
    spans = [
        tuple(f"{name} {short(row.min(), 3)}–{short(row.max(), 3)}" for name in title) for title, row in means.items()
    ]
    harder = [title for one, title in pairs if (one.low or 0.0) > EQUAL]
    others = [title for title in titles if title not in harder] or [("none", "无")]
    return (
        f"At distance {distance}, from as many known values, the error of extrapolation, relative to that of "
        f"interpolation, is {_list(series)[0]} (over all distances: {_list(spans)[0]}). Relative to the error inside "
        f"the range of the points, the error beyond it is {_list(fits)[0]}. Above {EQUAL:g} by whole intervals: "
        f"{_list(harder)[0]}; not so here: {_list(others)[0]}.",
        f"距离为 {distance}、已知值个数相同时，外推误差与内插误差之比为 {_list(series)[1]}（在所有距离上："
        f"{_list(spans)[1]}）。数据范围之外与之内的误差之比为 {_list(fits)[1]}。整个置信区间都超过 {EQUAL:g} 的有："
        f"{_list(harder)[1]}；此处不然的有：{_list(others)[1]}。",
    )


def _list(pairs: Sequence[tuple[str, ...]]) -> Pair:
    return ", ".join(pair[0] for pair in pairs), "、".join(pair[1] for pair in pairs)


def _protocol(seeds: int, steps: int, distances: tuple[int, ...]) -> Pair:
    return (
        f"{seeds} seeds. Series: {POINTS:,} points of sin(0.1 t) with noise of standard deviation 0.2, of a random "
        "walk and of white noise, and sample:sunspots (seeds move the cut). A value is estimated by least squares "
        f"from {INPUTS} values at distances of at least {', '.join(map(str, distances))}: half on each side, or all "
        f"before it; fitted on one part of the series, scored on the other. Functions: {OBSERVED} points of sin(a x + "
        f"b), a in [3, 6], x in [-1, 1], noise {NOISE:g}; scored against the function on [-1, 1] and up to {BEYOND:g} "
        f"outside. Network: 32 units, Adam at 0.02, {steps:,} steps; the sine wave by least squares over 501 "
        "frequencies.",
        f"{seeds} 个种子。序列：sin(0.1 t) 加标准差 0.2 的噪声、随机游走、白噪声各 {POINTS:,} 个点，以及 "
        f"sample:sunspots（种子移动分界点）。用最小二乘从 {INPUTS} 个距离不小于 {'、'.join(map(str, distances))} 的值"
        "估计一个值：两侧各半，或全部在其前；在序列的一部分上拟合，在另一部分上评分。函数：sin(a x + b) 的 "
        f"{OBSERVED} 个点，a 取自 [3, 6]，x 取自 [-1, 1]，噪声 {NOISE:g}；在 [-1, 1] 内以及两侧各 {BEYOND:g} 的范围外"
        f"与真实函数比较。网络：32 个单元，Adam，学习率 0.02，{steps:,} 步；正弦波在 501 个频率上做最小二乘。",
    )


STUDY = Study(
    number=18,
    title=("Interpolation is easier than extrapolation", "内插比外推容易"),
    claim=(
        "Interpolation estimates between existing observations, extrapolation predicts beyond the known range; the "
        "former is easier.",
        "内插法在现有观测值之间进行估计，外推法对超出已知观测范围进行预测；前者更容易。",
    ),
    sources=(("002", "自回归模型代码"),),
    rule=(
        f"It holds if the error of extrapolation is more than {EQUAL:g} times that of interpolation, by the whole "
        "interval, for every series at the largest distance and for every fit; under conditions, if so for some.",
        f"若对最大距离处的每个序列和每种拟合，外推误差都超过内插误差的 {EQUAL:g} 倍（按整个置信区间），则成立；若只对"
        "其中一些如此，则为有条件成立。",
    ),
    remarks=(
        (
            "The document defines the two terms where it speaks of predicting many steps ahead; that they differ in "
            "difficulty is said by the book that it follows.",
            "文档在谈到多步预测时给出了这两个定义；两者难度不同的说法出自它所依据的书。",
        ),
        (
            "There is only one series of sunspots: seeds only move the place where it is cut, and its interval shows "
            "no more than that.",
            "太阳黑子只有一个序列：种子只移动分界点，其置信区间也只反映这一点。",
        ),
        (
            "How far back the known values reach matters for periodic series: as many values, all on one side, cover "
            "more of a period.",
            "对周期序列而言，已知值覆盖多远很重要：同样多的值若都在一侧，会覆盖更长的一段周期。",
        ),
        (
            "For a random walk, theory gives a ratio of sqrt(2): midway between two known values the variance is half "
            "of that at the same distance beyond the last one.",
            "对随机游走，理论比值为 sqrt(2)：两个已知值正中间的方差，是最后一个已知值之外同样距离处的一半。",
        ),
    ),
    measure=measure,
)
