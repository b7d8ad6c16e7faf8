"""Without division by sqrt(k), attention saturates and its gradient dies

Queries and keys with independent entries of variance 1, as right after a normalised layer: their dot products have
variance k. The softmax of such scores is measured with and without the division, from k = 4 to 4096.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

from seqloom.core.progress import Reporter
from seqloom.pages.formats import short
from seqloom.pages.plots import Level, Lines, Panel
from seqloom.pages.words import Pair
from seqloom.studies._study import Finding, Measured, Study, Verdict, curve, measured

WIDTHS = tuple(4**n for n in range(1, 7))  # 4 .. 4096
KEYS = 64
SPREAD, SHARP = 0.5, 0.1  # entropy, of that of equal weights: clearly spread, nearly one-hot
DEAD, STEADY = 0.01, 2.0  # gradients: of that at the smallest k; ratio of the largest to the smallest
WAYS: dict[str, Pair] = {"divided": ("divided by sqrt(k)", "除以 sqrt(k)"), "plain": ("not divided", "不除")}
KINDS = ("entropy", "median", "mean", "query")

Table = dict[str, dict[str, np.ndarray]]  # way, kind: (widths, seeds)


def measure(quick: bool, progress: Reporter) -> Finding:
    seeds, queries = (3, 200) if quick else (20, 2000)
    found: Table = {way: {kind: np.zeros((len(WIDTHS), seeds)) for kind in KINDS} for way in WAYS}
    for n, width in enumerate(WIDTHS):
        progress.update(n / len(WIDTHS), {"doing": f"k = {width}"})
        for seed in range(seeds):
            for way in WAYS:
                for kind, value in _scores(width, seed, queries, way == "divided").items():
                    found[way][kind][n, seed] = value
    return _finding(seeds, queries, found)


def _scores(width: int, seed: int, queries: int, divided: bool) -> dict[str, float]:
    """Entropy of the weights, and norms of the gradient of sum(r w), r random, over many queries."""
    draw = torch.Generator().manual_seed(seed)
    keys = torch.randn(KEYS, width, generator=draw, dtype=torch.float64)
    query = torch.randn(queries, width, generator=draw, dtype=torch.float64).requires_grad_()
    scores = query @ keys.T / (math.sqrt(width) if divided else 1.0)  # (queries, KEYS)
    scores.retain_grad()
    weights = scores.softmax(1)
    (weights * torch.randn(KEYS, generator=draw, dtype=torch.float64)).sum().backward()
    assert scores.grad is not None and query.grad is not None
    norms = scores.grad.norm(dim=1)
    return {
        "entropy": float(torch.special.entr(weights.detach()).sum(1).mean()) / math.log(KEYS),
        "median": float(norms.median()),
        "mean": float(norms.mean()),
        "query": float(query.grad.norm(dim=1).median()),
    }


def verdict(found: dict[str, dict[str, list[Measured]]]) -> Verdict:
    """By whole intervals; entropy and median gradient of the scores, for each k."""
    entropy, gradient = found["plain"]["entropy"], found["plain"]["median"]
    steady = found["divided"]["median"]
    kept = all((one.low or 0.0) > SPREAD for one in found["divided"]["entropy"])
    kept = kept and max(one.value for one in steady) < STEADY * min(one.value for one in steady)
    sharp = (entropy[-1].high or 1.0) < SHARP
    dead = (gradient[-1].high or 1.0) < DEAD * (gradient[0].low or 0.0)
    if kept and sharp and dead:
        return "holds"
    return "conditions" if kept and (sharp or dead) else "fails"


def _finding(seeds: int, queries: int, table: Table) -> Finding:
    found = {
        way: {
            kind: [measured(WAYS[way], row, bounds=(0.0, 1.0) if kind == "entropy" else (0.0, None)) for row in rows]
            for kind, rows in kinds.items()
        }
        for way, kinds in table.items()
    }
    decided = verdict(found)
    return Finding(
        verdict=decided,
        summary=_summary(found),
        protocol=(
            f"{KEYS} keys and {queries:,} queries per seed, entries normal with variance 1, {seeds} seeds, float64. "
            "Entropy of the weights, as a share of that of equal weights. Gradient: of a random linear function of "
            "the weights (coefficients normal), with respect to the scores after the division or to the query; the "
            "norm for each query, then median or mean over queries.",
            f"每个种子 {KEYS} 个键和 {queries:,} 个查询，各分量为方差 1 的正态分布，{seeds} 个种子，float64。权重的熵"
            "以其与均匀权重的熵之比表示。梯度：权重的随机线性函数（系数为正态分布）对分数（除过之后）或对查询的梯度；"
            "先取每个查询的范数，再取各查询的中位数或均值。",
        ),
        numbers=_numbers(table),
        figure=_figure(table),
        caption=(
            "Entropy of attention weights, and gradients of the scores and of the query, against k; bands are 95 % "
            "intervals",
            "注意力权重的熵，以及分数的梯度与查询的梯度随 k 的变化；色带为 95 % 置信区间",
        ),
    )


def _numbers(table: Table) -> list[Measured]:
    kinds: dict[str, Pair] = {
        "entropy": ("entropy", "熵"),
        "median": ("median gradient of the scores", "分数梯度的中位数"),
        "mean": ("mean gradient of the scores", "分数梯度的均值"),
        "query": ("median gradient of the query", "查询梯度的中位数"),
    }
    claims: dict[tuple[str, str], Pair] = {
        ("plain", "median"): ("tiny at large k", "k 大时极小"),
        ("divided", "median"): ("stable", "稳定"),
    }
    numbers = []
    for kind, title in kinds.items():
        for way, said in WAYS.items():
            for n in (0, len(WIDTHS) - 1):
                name = (f"{title[0]}, k = {WIDTHS[n]}, {said[0]}", f"{title[1]}，k = {WIDTHS[n]}，{said[1]}")
                bounds = (0.0, 1.0) if kind == "entropy" else (0.0, None)
                claimed = claims.get((way, kind), ("", "")) if n else ("", "")
                numbers.append(measured(name, table[way][kind][n], claimed, bounds=bounds))
    return numbers


def _figure(table: Table) -> list[Panel]:
    x = ("k, the width of queries and keys", "k，即查询与键的宽度")
    ticks = [float(width) for width in WIDTHS]
    entropy = Lines(
        x=x,
        y=("entropy of the weights (1: all equal)", "权重的熵（1：全部相等）"),
        curves=[curve(WAYS[way], WIDTHS, table[way]["entropy"], bounds=(0.0, 1.0)) for way in WAYS],
        log_x=True,
        ticks=ticks,
        levels=[Level(("nearly one-hot", "近于独热"), SHARP)],
        from_zero=True,
    )
    shown: dict[tuple[str, str], Pair] = {
        ("divided", "median"): ("divided: median", "除：中位数"),
        ("plain", "median"): ("not divided: median", "不除：中位数"),
        ("plain", "mean"): ("not divided: mean", "不除：均值"),
    }
    scores = Lines(
        x=x,
        y=("gradient with respect to the scores", "对分数的梯度"),
        curves=[curve(name, WIDTHS, table[way][kind], bounds=(0.0, None)) for (way, kind), name in shown.items()],
        log_x=True,
        log_y=True,
        ticks=ticks,
    )
    query = Lines(
        x=x,
        y=("gradient with respect to the query, median", "对查询的梯度，中位数"),
        curves=[curve(WAYS[way], WIDTHS, table[way]["query"], bounds=(0.0, None)) for way in WAYS],
        log_x=True,
        log_y=True,
        ticks=ticks,
    )
    return [entropy, scores, query]


def _summary(found: dict[str, dict[str, list[Measured]]]) -> Pair:
    def ends(way: str, kind: str) -> Sequence[str]:
        return [short(found[way][kind][n].value, 3) for n in (0, -1)]

    plain, divided = ends("plain", "entropy"), ends("divided", "entropy")
    dies, stays, mean = ends("plain", "median"), ends("divided", "median"), ends("plain", "mean")
    first, last = WIDTHS[0], WIDTHS[-1]
    return (
        f"From k = {first} to {last:,} without division, the entropy of the weights falls from {plain[0]} to "
        f"{plain[1]} of its maximum and the median gradient of the scores from {dies[0]} to {dies[1]} (the mean, "
        f"which a minority of the queries carries, from {mean[0]} to {mean[1]}). With division, the entropy goes from "
        f"{divided[0]} to {divided[1]} and the gradient from {stays[0]} to {stays[1]}.",
        f"k 从 {first} 到 {last:,}，不做除法时权重的熵从最大值的 {plain[0]} 降到 {plain[1]}，分数梯度的中位数从 "
        f"{dies[0]} 降到 {dies[1]}（均值由少数查询支撑，从 {mean[0]} 到 {mean[1]}）。做除法时熵从 "
        f"{divided[0]} 到 {divided[1]}，梯度从 {stays[0]} 到 {stays[1]}。",
    )


STUDY = Study(
    number=11,
    title=(
        "Without division by sqrt(k), attention saturates and its gradient dies",
        "若不除以 sqrt(k)，注意力会饱和，梯度会消失",
    ),
    claim=(
        "When the embedding dimension k is large, dot products become large and the gradient of the softmax becomes "
        "tiny; division by sqrt(k) removes this growth and keeps the gradient stable.",
        "当嵌入维度 k 较大时，点积的值会变得很大，导致 softmax 的梯度变得极小；除以 sqrt(k) 可以消除这种放大效应，使梯"
        "度保持稳定。",
    ),
    sources=(("003", "点积缩放"),),
    rule=(
        f"It holds if, with division, the entropy stays above {SPREAD:g} of its maximum at every k and the median "
        f"gradient of the scores varies by less than a factor of {STEADY:g}, and without division, at the largest k, "
        f"the entropy is below {SHARP:g} of its maximum and the median gradient below {DEAD:g} of that at the "
        "smallest k; under conditions, if only one of the latter two is so.",
        f"若做除法时，熵在每个 k 都高于最大值的 {SPREAD:g}，且分数梯度的中位数变化不到 {STEADY:g} 倍；而不做除法时，在"
        f"最大的 k 处，熵低于最大值的 {SHARP:g}，且梯度中位数低于最小 k 处的 {DEAD:g}，则成立；若后两项只满足一项，则"
        "为有条件成立。",
    ),
    remarks=(
        (
            "The growth comes from entries of variance 1. Where queries and keys are normalised (QK norm) or start "
            "small, scores need not grow with k.",
            "这种增长来自方差为 1 的分量。若查询和键经过归一化（QK norm）或初始值很小，分数不一定随 k 增大。",
        ),
        (
            "The division also divides the gradient that reaches the query: at small k the undivided one is larger.",
            "除法也会缩小传到查询的梯度：k 较小时，不除的梯度反而更大。",
        ),
    ),
    measure=measure,
)
