"""Sharing weights over time keeps a network small and lowers the risk of overfitting

The same gated cell reads every step, or every step has a cell of its own, of the same size. Parameters are counted.
Then both learn from few and from many sequences: a task with one rule for all positions, and one in which a single
place matters. Last, both are tested at positions and lengths that training never showed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch

from seqloom.core.progress import Reporter
from seqloom.pages.formats import count, short
from seqloom.pages.plots import Curve, Level, Lines, Panel
from seqloom.pages.words import Pair
from seqloom.studies._models import parameters
from seqloom.studies._sharing import CLIP, HIDDEN, LENGTH, PLACE, ROWS, Batch, accuracy, drawn, steps, train
from seqloom.studies._study import Finding, Measured, Rows, Study, Verdict, curve, ends, exact, measured
from seqloom.studies._training import SYMBOLS

RATES = (1e-2, 3e-3)
CLEAR = 0.05  # a difference of accuracies that matters
KINDS: dict[str, Pair] = {"shared": ("shared", "共享"), "own": ("a cell for each step", "每步各有单元")}
TASKS: dict[str, Pair] = {
    "anywhere": ("one rule for all positions", "所有位置同一规则"),
    "place": ("one place matters", "只看一个位置"),
}
LENGTHS = (1, 4, 16, 64, 256, 1024)  # that parameters are counted for
READ = (4, 8, 12, 16, 24, 32)  # lengths that are tested


class Sizes(NamedTuple):
    seeds: int
    updates: int
    tested: int  # new sequences
    sequences: tuple[int, ...]  # to learn from


@dataclass
class Results:
    rates: dict[tuple[str, str], list[float]] = field(default_factory=dict)  # accuracy at each rate, by task and kind
    # by task, kind and number of sequences: a (accuracy on these, on new ones) for each seed
    learned: dict[tuple[str, str, int], list[tuple[float, float]]] = field(default_factory=dict)
    # by kind, for each seed: accuracy at positions seen and not seen in training, and at each length
    positions: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    lengths: dict[str, list[list[float]]] = field(default_factory=dict)


def measure(quick: bool, progress: Reporter) -> Finding:
    size = Sizes(2, 3, 32, (32, 64)) if quick else Sizes(6, 600, 2000, (64, 256, 1024, 4096))
    found = Results()
    for task in TASKS:
        for kind in KINDS:
            progress.update(0.0, {"doing": "learning rates"})
            tried = [_learned(task, kind, size.sequences[-1], rate, 0, size)[1] for rate in RATES]
            found.rates[task, kind] = tried
    rates = {key: RATES[int(np.argmax(tried))] for key, tried in found.rates.items()}
    for seed in range(1, size.seeds + 1):
        progress.update((seed - 0.5) / (size.seeds + 1), {"doing": f"seed {seed}"})
        for (task, kind), rate in rates.items():
            for sequences in size.sequences:
                score = _learned(task, kind, sequences, rate, seed, size)
                found.learned.setdefault((task, kind, sequences), []).append(score)
        for kind in KINDS:
            _generalised(found, kind, rates["anywhere", kind], seed, size)
    return _finding(size, found)


def _learned(task: str, kind: str, sequences: int, rate: float, seed: int, size: Sizes) -> tuple[float, float]:
    """Accuracy on the sequences that it learned from, and on new ones."""
    draw = torch.Generator().manual_seed(seed)
    ids, symbols = drawn(task, sequences, draw)
    model = steps(kind, LENGTH, seed)

    def batch() -> Batch:
        rows = torch.randint(sequences, (ROWS,), generator=draw)
        return ids[rows], symbols[rows]

    train(model, batch, rate, size.updates)
    new = drawn(task, size.tested, torch.Generator().manual_seed(10**6 + seed))
    return accuracy(model, (ids, symbols)), accuracy(model, new)


def _generalised(found: Results, kind: str, rate: float, seed: int, size: Sizes) -> None:
    """From new sequences in every update: trained on every other distance, and on all distances at one length."""
    every = torch.arange(1, LENGTH)
    for distances in (every[::2], every):
        model, draw = steps(kind, LENGTH, seed), torch.Generator().manual_seed(seed)
        train(model, lambda given=distances, draw=draw: drawn("anywhere", ROWS, draw, given), rate, size.updates)  # type: ignore[misc]
        test = torch.Generator().manual_seed(10**6 + seed)
        if len(distances) < len(every):
            scores = [accuracy(model, drawn("anywhere", size.tested, test, part)) for part in (distances, every[1::2])]
            found.positions.setdefault(kind, []).append((scores[0], scores[1]))
        else:
            scores = [accuracy(model, drawn("anywhere", size.tested, test, length=length)) for length in READ]
            found.lengths.setdefault(kind, []).append(scores)


def verdict(counted: bool, helps: list[bool], undecided: bool) -> Verdict:
    """Whether the counts are as claimed; then, for each task and number of sequences, what sharing does."""
    if not counted:
        return "fails"
    if any(helps):
        return "holds" if all(helps) else "conditions"
    return "untold" if undecided else "fails"


@dataclass(frozen=True)
class Effect:
    """Of sharing, for one task and number of sequences."""

    task: str
    sequences: int
    better: Measured  # accuracy on new sequences, shared less own
    overfit: Measured  # how much more the own cells' accuracy falls from the known sequences to new ones

    @property
    def helps(self) -> bool:
        return ends(self.better)[0] > CLEAR and ends(self.overfit)[0] > CLEAR

    @property
    def hurts(self) -> bool:
        return ends(self.better)[1] < -CLEAR

    @property
    def undecided(self) -> bool:
        most = min(ends(self.better)[1], ends(self.overfit)[1])
        return not self.helps and not self.hurts and most > CLEAR


def effect(found: Results, task: str, sequences: int) -> Effect:
    known, new = ({kind: np.array(found.learned[task, kind, sequences])[:, n] for kind in KINDS} for n in (0, 1))
    gap = {kind: known[kind] - new[kind] for kind in KINDS}
    name = TASKS[task]
    english, chinese = f"{name[0]}, {sequences:,} sequences", f"{name[1]}，{sequences:,} 条序列"
    return Effect(
        task,
        sequences,
        measured(
            (f"{english}: accuracy on new ones, shared less own", f"{chinese}：新序列上的准确率，共享减各自"),
            new["shared"] - new["own"],
            ("higher", "更高"),
        ),
        measured(
            (
                f"{english}: fall from known to new ones, own less shared",
                f"{chinese}：从已见到新序列的下降，各自减共享",
            ),
            gap["own"] - gap["shared"],
            ("overfits less", "过拟合更少"),
        ),
    )


def _finding(size: Sizes, found: Results) -> Finding:
    counts = {kind: [parameters(steps(kind, length, 0).cells) for length in LENGTHS] for kind in KINDS}
    one = counts["own"][0]
    counted = set(counts["shared"]) == {one} and counts["own"] == [one * length for length in LENGTHS]
    effects = [effect(found, task, sequences) for task in TASKS for sequences in size.sequences]
    numbers = [
        exact(
            (f"{title[0]}: parameters for {LENGTHS[-1]:,} steps", f"{title[1]}：{LENGTHS[-1]:,} 步的参数量"),
            counts[kind][-1],
        )
        for kind, title in KINDS.items()
    ]
    return Finding(
        verdict=verdict(counted, [e.helps for e in effects], any(e.undecided for e in effects)),
        summary=_summary(found, counts, effects),
        protocol=_protocol(size, found, one),
        numbers=[*numbers, *(e.better for e in effects), *(e.overfit for e in effects), *_unseen(found)],
        figure=_figure(size, found, counts),
        caption=(
            "Parameters against length, counted; accuracy on new sequences against the number learned from, and "
            "against their length (bands are 95 % intervals over seeds)",
            "参数量随长度的变化（计数所得）；新序列上的准确率随训练序列数和序列长度的变化（色带为各种子的 95 % 置信区"
            "间）",
        ),
        tables=[_table(size, found)],
    )


def _unseen(found: Results) -> list[Measured]:
    numbers = []
    for kind, title in KINDS.items():
        seen, unseen = np.array(found.positions[kind]).T
        for values, what in ((seen, ("seen", "见过的")), (unseen, ("not seen", "未见过的"))):
            label = (f"{title[0]}: accuracy at positions {what[0]}", f"{title[1]}：{what[1]}位置上的准确率")
            numbers.append(measured(label, values, bounds=(0.0, 1.0)))
        for n, length in enumerate(READ):
            label = (f"{title[0]}: accuracy at length {length}", f"{title[1]}：长度 {length} 时的准确率")
            values = np.array(found.lengths[kind])[:, n]
            numbers.append(measured(label, values, bounds=(0.0, 1.0)))
    return numbers


def _figure(size: Sizes, found: Results, counts: dict[str, list[int]]) -> list[Panel]:
    chance = [Level(("chance", "随机"), 1 / SYMBOLS)]
    known = {"new": 1, "known": 0}
    panels: list[Panel] = [
        Lines(
            x=("steps", "步数"), y=("parameters of the cells", "单元的参数量"), log_x=True, log_y=True,
            curves=[Curve(title, list(map(float, LENGTHS)), list(map(float, counts[kind])))
                    for kind, title in KINDS.items()],
            ticks=list(map(float, LENGTHS)),
        )
    ]  # fmt: skip
    for task, title in TASKS.items():
        curves = []
        for kind, name in KINDS.items():
            for part, column in known.items():
                table = np.array([np.array(found.learned[task, kind, n])[:, column] for n in size.sequences])
                label = ({"new": f"{name[0]}, new", "known": f"{name[0]}, known"}[part],
                         {"new": f"{name[1]}，新序列", "known": f"{name[1]}，已见"}[part])  # fmt: skip
                curves.append(curve(label, size.sequences, table, bounds=(0.0, 1.0)))
        panels.append(
            Lines(
                title=title, x=("sequences to learn from", "训练序列数"), y=("accuracy", "准确率"), curves=curves,
                log_x=True, ticks=list(map(float, size.sequences)), levels=chance, from_zero=True,
            )
        )  # fmt: skip
    tables = {kind: np.array(found.lengths[kind]).T for kind in KINDS}
    panels.append(
        Lines(
            title=(f"One rule for all positions, trained at length {LENGTH}", f"所有位置同一规则，训练长度 {LENGTH}"),
            x=("length", "长度"), y=("accuracy", "准确率"), levels=chance, from_zero=True,
            curves=[curve(title, READ, tables[kind], bounds=(0.0, 1.0)) for kind, title in KINDS.items()],
            ticks=list(map(float, READ)),
        )
    )  # fmt: skip
    return panels


def _table(size: Sizes, found: Results) -> Rows:
    rows: list[list[Pair | float | str]] = []
    for task, title in TASKS.items():
        for kind, name in KINDS.items():
            rows.append([title, name, *found.rates[task, kind]])
    heads = [("task", "任务"), ("weights", "权重")]
    heads += [(f"accuracy at rate {rate:g}", f"学习率 {rate:g} 时的准确率") for rate in RATES]
    label = (f"Learning rates, on one more seed with {size.sequences[-1]:,} sequences",
             f"学习率，另一个种子，{size.sequences[-1]:,} 条序列")  # fmt: skip
    return Rows(label, heads, rows)


def _summary(found: Results, counts: dict[str, list[int]], effects: list[Effect]) -> Pair:
    def told(task: str, column: int) -> str:
        parts = (("helps", "helps", "有益"), ("hurts", "hurts", "有害"))
        mine = [e for e in effects if e.task == task]
        said = []
        for flag, *words in parts:
            with_ = [f"{e.sequences:,}" for e in mine if getattr(e, flag)]
            if with_:
                said.append(
                    (
                        f"sharing {words[0]} with {', '.join(with_)} sequences",
                        f"{'、'.join(with_)} 条序列时共享{words[1]}",
                    )[column]
                )
        return (" and ", "，")[column].join(said) or ("no clear difference", "无明显差异")[column]

    seen = {kind: [short(float(v), 3) for v in np.array(found.positions[kind]).mean(axis=0)] for kind in KINDS}
    half = {kind: short(float(np.array(found.lengths[kind])[:, READ.index(LENGTH // 2)].mean()), 3) for kind in KINDS}
    last, shared, own = f"{LENGTHS[-1]:,}", count(counts["shared"][-1]), count(counts["own"][-1])
    return (
        f"For {last} steps, a shared cell has {shared} parameters and cells of their own {own}. Where one rule holds "
        f"for all positions, {told('anywhere', 0)}; where one place matters, {told('place', 0)}. At positions seen and "
        f"not seen in training, the shared cell is right in {' and '.join(seen['shared'])}, own cells in "
        f"{' and '.join(seen['own'])}; at half the trained length in {half['shared']} and {half['own']}.",
        f"{last} 步时，共享单元有 {shared} 个参数，各自的单元共有 {own} 个。所有位置同一规则时，"
        f"{told('anywhere', 1)}；只看一个位置时，{told('place', 1)}。在训练中见过和未见过的位置上，共享单元的准确率为 "
        f"{' 和 '.join(seen['shared'])}，各自的单元为 {' 和 '.join(seen['own'])}；在训练长度的一半处分别为 "
        f"{half['shared']} 和 {half['own']}。",
    )


def _protocol(size: Sizes, found: Results, one: int) -> Pair:
    rates = " / ".join(f"{RATES[int(np.argmax(tried))]:g}" for tried in found.rates.values())
    listed = ", ".join(f"{rate:g}" for rate in RATES)
    return (
        f"A GRU cell of {HIDDEN} units ({one:,} parameters) on one-hot tokens, shared or one for each of {LENGTH} "
        f"steps, and a linear output layer after the last. One rule: {SYMBOLS} symbols, one of them somewhere among "
        f"noise, and a question at the end. One place: symbols only; asked for is number {PLACE + 1}. Learned from "
        f"{', '.join(f'{n:,}' for n in size.sequences)} sequences, tested on {size.tested:,} new ones; {size.updates} "
        f"updates of {ROWS}, Adam, norm clipped at {CLIP:g}, {size.seeds} seeds. The rate is the better of {listed} on "
        f"one more seed, for each task and kind ({rates}). Positions: new sequences in every update, with the symbol "
        "at every other distance from the end, tested at the others. Lengths: all distances at the trained length; "
        "beyond it the last cell goes on.",
        f"{HIDDEN} 个单元的 GRU 单元（{one:,} 个参数），输入为独热词元，所有步共享或 {LENGTH} 步各有一个，最后一步之后"
        f"为线性输出层。同一规则：{SYMBOLS} 个符号之一出现在噪声中的某处，末尾提问。一个位置：全是符号，问的是第 "
        f"{PLACE + 1} 个。从 {', '.join(f'{n:,}' for n in size.sequences)} 条序列中学习，在 {size.tested:,} 条新序列上"
        f"测试；{size.updates} 次更新，每次 {ROWS} 条，Adam，范数裁剪到 {CLIP:g}，{size.seeds} 个种子。对每种任务和权"
        f"重方式，学习率取 {listed} 中在另一个种子上较好者（{rates}）。位置：每次更新用新序列，符号只出现在与末尾相隔"
        "奇数的位置，在其余位置上测试。长度：在训练长度上使用所有距离；超出时由最后一个单元继续。",
    )


STUDY = Study(
    number=15,
    title=(
        "Sharing weights over time keeps a network small and lowers the risk of overfitting",
        "随时间共享权重使网络保持小巧，并降低过拟合风险",
    ),
    claim=(
        "The same weights are used at every time step, which reduces the number of parameters and lowers the risk of "
        "overfitting.",
        "权重共享：不同的 timestep 采用相同的权重，可以减少模型参数量，降低过拟合风险。",
    ),
    sources=(("001", "RNN的优缺点"), ("001", "网络结构")),
    rule=(
        "Counts first: with sharing the number must be the same for every length, without it proportional to the "
        "length; else the claim fails. Sharing helps, for a task and a number of training sequences, if by whole "
        f"intervals it is right on new sequences more often by {CLEAR:g} and falls less from known to new ones by "
        f"{CLEAR:g}; it hurts if it is right less often by {CLEAR:g}. The claim holds if sharing helps everywhere; "
        "under conditions, if it helps somewhere; it fails if it surely helps nowhere, and otherwise cannot be told.",
        "先看计数：共享时参数量必须对所有长度相同，不共享时必须与长度成正比，否则不成立。对每种任务和训练序列数，按整"
        f"个置信区间，若共享在新序列上的准确率高出 {CLEAR:g} 且从已见到新序列的下降少 {CLEAR:g}，则为有益；若准确率低 "
        f"{CLEAR:g}，则为有害。若处处有益，则成立；若只在某处有益，则为有条件成立；若确定无一有益，则不成立；其余无法判"
        "断。",
    ),
    remarks=(
        (
            "The same document also counts sharing among the drawbacks, because every word gets the same weight. The "
            "second task is one in which that matters: the position says which token to keep.",
            "同一文档也把权重共享列为缺点，因为每个单词得到同样的权重。第二个任务正是如此：由位置决定该记住哪个词元。",
        ),
        (
            "Both kinds have the same cell size, so cells of their own have as many times more parameters as there are "
            "steps: that is the claim. It is not a comparison at equal parameters.",
            "两种方式的单元大小相同，因此各自的单元总参数是步数倍：论断说的正是这一点。这不是参数量相同的比较。",
        ),
        (
            "A network with a cell for each step has no weights beyond its last one. That its last cell goes on there "
            "is a choice made here.",
            "每步各有单元的网络在最后一步之后没有权重；这里让最后一个单元继续工作，是一种人为的选择。",
        ),
        (
            "At lengths below the trained one, own cells are used from the first on: the question is then read by a "
            "cell that never saw it, and the output layer reads a cell that it was not trained on. Lining them up at "
            "the end would be as natural, and was not tried.",
            "长度小于训练长度时，各自的单元从第一个开始使用：读到提问的单元从未见过提问，输出层读取的也不是训练时的那个"
            "单元。从末尾对齐同样自然，但没有尝试。",
        ),
        (
            "That a shared cell has one size for every length follows from how it is built; the counts check the "
            "code, not nature.",
            "共享单元的大小与长度无关，这由构造决定；计数检验的是代码，而不是事实。",
        ),
    ),
    measure=measure,
)
