"""Dot products of learned vectors measure fit, and the features find their own meaning

A table of ratings is made from planted traits of films and viewers, and a part of it is shown. Vectors are learned by
gradient descent so that their dot products match it. Then: how well they predict the rest, how much of the planted
traits they contain up to a linear map or a rotation, and whether a single learned dimension is a single trait.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np
import torch
from torch import Tensor

from seqloom.core.progress import Reporter
from seqloom.pages.formats import short
from seqloom.pages.plots import Bars, BarSeries, Level, Lines, Panel
from seqloom.pages.words import Pair
from seqloom.studies._study import Finding, Measured, Rows, Study, Verdict, curve, measured

VIEWERS, FILMS, TRAITS, NOISE = 120, 80, 3, 0.3
SHARES = (0.1, 0.2, 0.3, 0.5, 0.8)  # of the table that is shown
SHOWN = 0.5  # the share for everything but the first figure
SHARE = f"{100 * SHOWN:g} %"
RANKS = (1, 2, 3, 4, 6)  # learned dimensions
PENALTIES = (0.01, 0.1, 1.0)  # of squared lengths; chosen on a tenth of the shown ratings
NEAR, FOUND, OWN = 1.25, 0.95, 0.9  # error, of the noise; recovery (correlation); one dimension, one trait
KINDS: dict[str, Pair] = {
    "signed": ("traits of either sign", "有正有负的特征"),
    "positive": ("non-negative traits, mostly 0", "非负且多为 0 的特征"),
}

RECOVERED: dict[str, tuple[Pair, Pair]] = {  # what is measured, and what the claim says of it
    "canonical": (("smallest canonical correlation", "最小典型相关系数"), ("meaningful features", "有意义的特征")),
    "procrustes": (
        ("variance explained after rotation", "旋转后解释的方差"),
        ("meaningful features", "有意义的特征"),
    ),
    "axes": (
        ("correlation of a trait with its own dimension", "特征与其对应维度的相关"),
        ("one dimension, one trait", "一个维度对应一个特征"),
    ),
    "rotated": (("the same, planted traits turned at random", "同上，随机旋转后的原特征"), ("", "")),
}


@dataclass(frozen=True)
class Table:
    """For all seeds at once: S seeds, N viewers, M films, r traits."""

    viewers: Tensor  # (S, N, r)
    films: Tensor  # (S, M, r)
    ratings: Tensor  # (S, N, M)
    order: Tensor  # (S, N, M): a cell is shown if this is below the share


@dataclass(frozen=True)
class Learned:
    viewers: Tensor
    films: Tensor
    error: np.ndarray  # (S,): RMSE on cells that were not shown


def measure(quick: bool, progress: Reporter) -> Finding:
    seeds, steps = (3, 100) if quick else (10, 500)
    shares, ranks = ((0.2, SHOWN), (1, TRAITS)) if quick else (SHARES, RANKS)
    tables = {kind: _planted(kind, seeds) for kind in KINDS}
    signed, fits = tables["signed"], {}
    asked = dict.fromkeys([*((share, TRAITS) for share in shares), *((SHOWN, rank) for rank in ranks)])
    for n, (share, rank) in enumerate(asked):
        progress.update(n / (len(asked) + 1), {"doing": f"{share:.0%} shown, {rank} dimensions"})
        fits[share, rank] = _learned(signed, share, rank, steps)
    learned = {
        "signed": fits[SHOWN, TRAITS],
        "positive": _learned(tables["positive"], SHOWN, TRAITS, steps, positive=True),
    }
    return _finding(
        (seeds, steps),
        {share: fits[share, TRAITS].error for share in shares},
        {share: _additive(signed, share) for share in shares},
        {rank: fits[SHOWN, rank].error for rank in ranks},
        {kind: _recovery(found.films, tables[kind].films) for kind, found in learned.items()},
    )


def _planted(kind: str, seeds: int) -> Table:
    draw = torch.Generator().manual_seed(len(kind))
    viewers, films = (torch.randn(seeds, count, TRAITS, generator=draw) for count in (VIEWERS, FILMS))
    if kind == "positive":  # about six in ten are 0
        viewers, films = (2 * (traits - 0.25).clamp(min=0) for traits in (viewers, films))
    fit = viewers @ films.transpose(1, 2)
    noise = NOISE * torch.randn(fit.shape, generator=draw)
    return Table(viewers, films, fit + noise, torch.rand(fit.shape, generator=draw))


def _learned(table: Table, share: float, rank: int, steps: int, positive: bool = False) -> Learned:
    """With the penalty that predicts a tenth of the shown ratings best, on average over seeds."""
    inside = table.order < 0.9 * share
    aside = (table.order < share) & ~inside
    errors = [
        float(_rmse(_descend(table, inside, rank, steps, one, positive), table, aside).mean()) for one in PENALTIES
    ]
    penalty = PENALTIES[int(np.argmin(errors))]
    viewers, films = _descend(table, table.order < share, rank, steps, penalty, positive)
    return Learned(viewers, films, _rmse((viewers, films), table, table.order >= share))


def _descend(
    table: Table, shown: Tensor, rank: int, steps: int, penalty: float, positive: bool
) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(rank)
    seeds = len(table.ratings)
    weights = [0.3 * torch.randn(seeds, count, rank, generator=draw) for count in (VIEWERS, FILMS)]
    weights = [weight.abs() if positive else weight for weight in weights]
    optimizer = torch.optim.Adam([weight.requires_grad_() for weight in weights], lr=0.05)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    for _ in range(steps):
        optimizer.zero_grad()
        miss = (weights[0] @ weights[1].transpose(1, 2) - table.ratings) * shown
        loss = miss.square().sum() + penalty * sum(weight.square().sum() for weight in weights)
        loss.backward()
        optimizer.step()
        schedule.step()
        if positive:
            for weight in weights:
                weight.data.clamp_(min=0)  # projected, so that gradients still reach what is 0
    return weights[0].detach(), weights[1].detach()


def _rmse(vectors: tuple[Tensor, Tensor], table: Table, asked: Tensor) -> np.ndarray:
    miss = (vectors[0] @ vectors[1].transpose(1, 2) - table.ratings) * asked
    return (miss.square().sum((1, 2)) / asked.sum((1, 2))).sqrt().numpy()


def _additive(table: Table, share: float) -> np.ndarray:
    """Without vectors: the mean, and how much each viewer and each film differs from it."""
    shown = table.order < share
    left = table.ratings - _mean(table.ratings, shown, (1, 2))
    left = left - _mean(left, shown, (2,))
    left = (left - _mean(left, shown, (1,))) * ~shown
    return (left.square().sum((1, 2)) / (~shown).sum((1, 2))).sqrt().numpy()


def _mean(values: Tensor, shown: Tensor, dims: tuple[int, ...]) -> Tensor:
    return (values * shown).sum(dims, keepdim=True) / shown.sum(dims, keepdim=True).clamp(min=1)


def _recovery(learned: Tensor, planted: Tensor) -> dict[str, np.ndarray]:
    """Of the films' vectors, per seed: the smallest canonical correlation, the share of variance that remains explained
    after the best rotation and scale (orthogonal Procrustes), and the correlation of each trait with its own dimension,
    for the best pairing; `rotated` is the last for the planted traits themselves, turned at random."""
    kinds: dict[str, list[float]] = {"canonical": [], "procrustes": [], "axes": [], "rotated": []}
    for n, (a, b) in enumerate(zip(learned.double().numpy(), planted.double().numpy(), strict=True)):
        a, b = a - a.mean(axis=0), b - b.mean(axis=0)
        bases = [np.linalg.qr(x)[0] for x in (a, b)]
        kinds["canonical"].append(float(np.linalg.svd(bases[0].T @ bases[1])[1].min()))
        overlap = np.linalg.svd(a.T @ b)[1].sum()
        kinds["procrustes"].append(float(overlap**2 / ((a**2).sum() * (b**2).sum())))
        kinds["axes"].append(_axes(a, b))
        turns = np.linalg.qr(np.random.default_rng(n).normal(size=(50, TRAITS, TRAITS)))[0]
        kinds["rotated"].append(float(np.mean([_axes(b @ turn, b) for turn in turns])))
    return {kind: np.array(values) for kind, values in kinds.items()}


def _axes(a: np.ndarray, b: np.ndarray) -> float:
    table = np.abs(np.corrcoef(a.T, b.T)[:TRAITS, TRAITS:])
    return max(float(table[range(TRAITS), order].mean()) for order in permutations(range(TRAITS)))


def verdict(error: Measured, canonical: Measured, axes: Measured) -> Verdict:
    """Error relative to the noise, recovery up to a linear map, and of each trait by its own dimension."""
    if (error.low or 0.0) > NEAR or (canonical.high or 0.0) < FOUND:
        return "fails"
    if (error.high or 0.0) > NEAR or (canonical.low or 0.0) < FOUND:
        return "untold"
    return "holds" if (axes.low or 0.0) > OWN else "conditions"


def _finding(
    sizes: tuple[int, int],
    by_share: dict[float, np.ndarray],
    plain: dict[float, np.ndarray],
    by_rank: dict[int, np.ndarray],
    recovery: dict[str, dict[str, np.ndarray]],
) -> Finding:
    names: Pair = (f"RMSE / noise, {SHARE} shown", f"RMSE / 噪声，给出 {SHARE}")
    error = measured(names, by_share[SHOWN] / NOISE, ("good", "匹配"), bounds=(0.0, None))
    names = ("the same, means of viewers and films only", "同上，仅用观众与电影的均值")
    base = measured(names, plain[SHOWN] / NOISE, bounds=(0.0, None))
    found: dict[str, dict[str, Measured]] = {kind: {} for kind in KINDS}
    for kind, (en, zh) in KINDS.items():
        for name, (title, said) in RECOVERED.items():
            names = (f"{en}: {title[0]}", f"{zh}：{title[1]}")
            found[kind][name] = measured(names, recovery[kind][name], said, bounds=(0.0, 1.0))
    signed = found["signed"]
    decided = verdict(error, signed["canonical"], signed["axes"])
    return Finding(
        verdict=decided,
        summary=_summary(decided, error, base, found),
        protocol=_protocol(*sizes),
        numbers=[error, base, *(one for kind in found.values() for one in kind.values())],
        figure=_figure(by_share, plain, found),
        caption=(
            "Error on ratings that were not shown, against the share of the table that was; and how much of the "
            "planted traits is in the learned vectors (95 % intervals over seeds)",
            "未给出的评分上的误差随给出比例的变化；以及学到的向量包含多少植入的特征（各种子的 95 % 置信区间）",
        ),
        tables=[_ranks(by_rank)],
    )


def _ranks(by_rank: dict[int, np.ndarray]) -> Rows:
    rows: list[list[Pair | float | str]] = []
    for rank, errors in by_rank.items():
        one = measured(("", ""), errors, bounds=(0.0, None))
        rows.append([str(rank), one.value, one.low or one.value, one.high or one.value])
    return Rows(
        (
            f"RMSE by the number of learned dimensions ({TRAITS} planted, {SHARE} shown, noise {NOISE:g})",
            f"RMSE 随学习维数的变化（植入 {TRAITS} 个，给出 {SHARE}，噪声 {NOISE:g}）",
        ),
        [("dimensions", "维数"), ("RMSE", "RMSE"), ("low", "下限"), ("high", "上限")],
        rows,
    )


def _figure(
    by_share: dict[float, np.ndarray], plain: dict[float, np.ndarray], found: dict[str, dict[str, Measured]]
) -> list[Panel]:
    percent = [100 * share for share in by_share]
    bars = []
    for kind, numbers in found.items():
        listed = list(numbers.values())
        ends = [[one.low or 0.0 for one in listed], [one.high or one.value for one in listed]]
        bars.append(BarSeries(KINDS[kind], [one.value for one in listed], *ends))
    return [
        Lines(
            x=("share of the table shown (%)", "给出的评分比例（%）"),
            y=("RMSE on the ratings not shown", "未给出评分上的 RMSE"),
            curves=[
                curve(("dot products", "点积"), percent, np.array(list(by_share.values())), bounds=(0.0, None)),
                curve(("means only", "仅均值"), percent, np.array(list(plain.values())), bounds=(0.0, None)),
            ],
            ticks=percent,
            levels=[Level(("noise", "噪声"), NOISE)],
            from_zero=True,
        ),
        Bars(
            x=("recovery of the traits of films (1: all)", "电影特征的恢复程度（1：全部）"),
            groups=[title for title, _ in RECOVERED.values()],
            series=bars,
        ),
    ]


def _summary(decided: Verdict, error: Measured, base: Measured, found: dict[str, dict[str, Measured]]) -> Pair:
    where = (
        " So, for traits of either sign, their space is found, but not each by itself.",
        "因此，对有正有负的特征，找到的是它们所张成的空间，而不是各个特征本身。",
    )
    where = where if decided == "conditions" else ("", "")
    fit = short(error.value, 3), short(base.value, 3)
    signed, positive = ({name: short(one.value, 3) for name, one in found[kind].items()} for kind in KINDS)
    return (
        f"With {SHARE} of the table shown, dot products predict the rest with {fit[0]} times the noise (means only: "
        f"{fit[1]} times). Between the learned vectors and the planted traits the smallest canonical correlation is "
        f"{signed['canonical']}, and {signed['procrustes']} of the variance agrees after a rotation. A trait "
        f"correlates with its own dimension by {signed['axes']} (planted traits turned at random: "
        f"{signed['rotated']}); if traits are non-negative and mostly 0, and learned as such, by {positive['axes']} "
        f"(turned at random: {positive['rotated']}).{where[0]}",
        f"给出 {SHARE} 的评分时，点积对其余评分的误差为噪声的 {fit[0]} 倍（仅用均值：{fit[1]} 倍）。学到的向量与植入的"
        f"特征之间，最小典型相关系数为 {signed['canonical']}，旋转之后一致的方差为 {signed['procrustes']}。特征与其对"
        f"应维度的相关为 {signed['axes']}（随机旋转的原特征：{signed['rotated']}）；若特征非负且多为 0，并按此学习，则"
        f"为 {positive['axes']}（随机旋转：{positive['rotated']}）。{where[1]}",
    )


def _protocol(seeds: int, steps: int) -> Pair:
    listed = ", ".join(f"{penalty:g}" for penalty in PENALTIES)
    return (
        f"{VIEWERS} viewers, {FILMS} films, {TRAITS} planted traits (normal; or normal less 0.25, cut at 0 and "
        f"doubled), rating: dot product plus normal noise of {NOISE:g}; {seeds} seeds. Vectors of {TRAITS} dimensions "
        f"by Adam at 0.05 falling to 0, {steps} steps on all shown ratings; a penalty on squared lengths of {listed}, "
        "chosen on a tenth of the shown ratings. Non-negative traits are learned with vectors cut at 0 after each "
        "step. Recovery is measured on the films' vectors, centred; a trait's own dimension is that of the best "
        "pairing, by absolute correlation.",
        f"{VIEWERS} 个观众，{FILMS} 部电影，{TRAITS} 个植入特征（正态；或正态减 0.25、截于 0 再加倍），评分为点积加标"
        f"准差 {NOISE:g} 的正态噪声；{seeds} 个种子。{TRAITS} 维向量，Adam，学习率 0.05 降至 0，在全部给出的评分上训练"
        f" {steps} 步；长度平方的惩罚取 {listed}，用给出评分的十分之一选择。学习非负特征时，每步之后把向量截于 0。恢复"
        "程度在中心化的电影向量上测量；特征对应的维度取绝对相关最大的配对。",
    )


STUDY = Study(
    number=28,
    title=(
        "Dot products of learned vectors measure fit, and the features find their own meaning",
        "学到的向量的点积衡量匹配程度，特征会自发获得含义",
    ),
    claim=(
        "If features of films and viewers are parameters, fitted so that their dot products match known preferences, "
        "then the features often come to map to meaningful contents by themselves: one dimension may be romance, "
        "another action.",
        "把电影特征和用户特征作为模型的参数，通过优化使点积匹配用户的已知喜好，训练后这些特征往往会自发地映射到有意义"
        "的内容：某个维度可能对应“浪漫”，另一个维度可能对应“动作”。",
    ),
    sources=(("003", "Self-Attention"),),
    rule=(
        f"For traits of either sign with {SHARE} of the table shown and by whole intervals: it holds if the error "
        f"is below {NEAR:g} times the noise, the smallest canonical correlation above {FOUND:g}, and the correlation "
        f"of a trait with its own dimension above {OWN:g}; under conditions, if only the last is not so. It fails if "
        "the error is above or the canonical correlation below its limit, and cannot be told if an interval reaches "
        "across.",
        f"对有正有负的特征，给出 {SHARE} 的评分，按整个置信区间：若误差低于噪声的 {NEAR:g} 倍，最小典型相关系数高"
        f"于 {FOUND:g}，且特征与其对应维度的相关高于 {OWN:g}，则成立；若只有最后一项不满足，则为有条件成立。若误差高于"
        "或典型相关低于其界限，则不成立；若置信区间跨过界限，则无法判断。",
    ),
    remarks=(
        (
            "Penalties, steps and the projection of non-negative traits were chosen with quick runs; the limits "
            "of the rule were not changed.",
            "惩罚项、步数和非负特征的投影是用快速运行选定的；规则的界限没有改动。",
        ),
        (
            "Turning all vectors of films and viewers in the same way changes no dot product, so nothing in the "
            "ratings can make one dimension one trait. What is found is the space of the traits.",
            "把电影和观众的所有向量同样旋转，点积不变，因此评分无法使某个维度恰好是某个特征。能找到的是特征所张成的空"
            "间。",
        ),
        (
            "The error of a perfect prediction is the noise. That of the true traits would be exactly that; learned "
            "ones add the uncertainty of what was not shown.",
            "完美预测的误差就是噪声。真实特征恰好达到它；学到的特征还要加上未给出部分的不确定性。",
        ),
    ),
    measure=measure,
)
