"""Pre-training, then fine-tuning, beats training from scratch

A small encoder tells the language of names. It starts from random weights, or from predicting masked characters of
names without labels; both are fine-tuned on the same labelled names with the same number of updates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seqloom.core.network import Network
from seqloom.core.progress import Reporter
from seqloom.pages.formats import fixed, short
from seqloom.pages.plots import Level, Lines
from seqloom.pages.words import Pair
from seqloom.studies._models import parameters
from seqloom.studies._names import (
    BATCH,
    DEPTH,
    DRAWS,
    FEW,
    LONGEST,
    PILOT,
    SHARE,
    WIDTH,
    Names,
    names,
    pretrain,
    regression,
    stack,
    tuned_accuracy,
)
from seqloom.studies._study import Finding, Measured, Rows, Study, Verdict, curve, measured

COUNTS, LONG = (16, 64, 256, 1024, 4096), (64, 1024)
TIMES = 5
MIDDLE = 256  # at which learning rates are tried
RATES = (3e-3, 1e-3)
START = 3e-3  # learning rate of pre-training
WAYS: dict[str, Pair] = {
    "tuned": ("pre-trained, then fine-tuned", "预训练后微调"),
    "scratch": ("from scratch", "从零训练"),
    "longer": (f"from scratch, {TIMES} times the updates", f"从零训练，更新次数为 {TIMES} 倍"),
    "regression": ("character n-grams, logistic regression", "字符 n-gram，逻辑回归"),
}
Table = dict[str, np.ndarray]  # by way: (counts, seeds)


@dataclass(frozen=True)
class Sizes:
    counts: tuple[int, ...]  # labelled names
    long: tuple[int, ...]  # of these, where a model from scratch is also trained TIMES as long
    seeds: int
    steps: int  # updates of pre-training
    updates: int  # of fine-tuning
    held: int  # names to test on


def measure(quick: bool, progress: Reporter) -> Finding:
    sizes = Sizes((16, 64), (64,), 2, 2, 1, 100) if quick else Sizes(COUNTS, LONG, 4, 2000, 200, 2000)
    data = names()
    found: dict[str, list[list[float]]] = {way: [] for way in WAYS}  # by way: seeds, counts
    pilots, rates = {}, {}
    for seed in range(sizes.seeds + 1):  # the first only chooses the learning rates
        progress.update(seed / (sizes.seeds + 1), {"doing": f"seed {seed}, pre-training"})
        learn, test = data.split(seed, sizes.held)
        plain, read = stack(data, seed), stack(data, seed)
        pretrain(read, data, learn, "masked", seed, sizes.steps, START)
        starts = {"tuned": read, "scratch": plain}

        def run(
            start: Network, count: int, rate: float, times: int = 1, seed: int = seed,
            parts: tuple[np.ndarray, np.ndarray] = (learn, test),
        ) -> float:  # fmt: skip
            return tuned_accuracy(start, data, parts, count, seed, steps=times * sizes.updates, rate=rate)

        if seed == 0:
            pilots = {way: [run(start, MIDDLE, rate) for rate in RATES] for way, start in starts.items()}
            rates = {way: RATES[int(np.argmax(values))] for way, values in pilots.items()}
            continue
        progress.update((seed + 0.5) / (sizes.seeds + 1), {"doing": f"seed {seed}, fine-tuning"})
        for way, start in starts.items():
            found[way].append([run(start, count, rates[way]) for count in sizes.counts])
        found["longer"].append([run(plain, count, rates["scratch"], TIMES) for count in sizes.long])
        found["regression"].append([regression(data, learn[:count], test) for count in sizes.counts])
    return _finding(sizes, data, {way: np.array(values).T for way, values in found.items()}, pilots)


def verdict(gains: list[list[Measured]]) -> Verdict:
    """For each number of labelled names, what pre-training gains over each way of training from scratch."""
    better = [all((one.low or 0.0) > 0 for one in each) for each in gains]
    worse = [any((one.high or 0.0) < 0 for one in each) for each in gains]
    if all(better):
        return "holds"
    if any(better):
        return "conditions"
    return "fails" if any(worse) else "untold"


def _gains(sizes: Sizes, found: Table) -> list[list[Measured]]:
    gains = []
    for n, count in enumerate(sizes.counts):
        over = {"scratch": found["scratch"][n]}
        over |= {"longer": found["longer"][sizes.long.index(count)]} if count in sizes.long else {}
        gains.append([
            measured(
                (f"gain with {count:,} labels over {WAYS[way][0]}", f"{count:,} 个标注时，比{WAYS[way][1]}高出"),
                found["tuned"][n] - values,
                ("above 0", "大于 0"),
            )
            for way, values in over.items()
        ])  # fmt: skip
    return gains


def _finding(sizes: Sizes, data: Names, found: Table, pilots: dict[str, list[float]]) -> Finding:
    gains = _gains(sizes, found)
    numbers = [one for each in gains for one in each]
    for way, title in WAYS.items():
        for count, values in zip(sizes.long if way == "longer" else sizes.counts, found[way], strict=True):
            label = (f"accuracy with {count:,} labels, {title[0]}", f"{count:,} 个标注时的准确率，{title[1]}")
            numbers.append(measured(label, values, bounds=(0.0, 1.0)))
    heads = [("start", "起点"), *((f"accuracy at rate {rate:g}", f"学习率 {rate:g} 时的准确率") for rate in RATES)]
    rows: list[list[Pair | float | str]] = [[WAYS[way], *values] for way, values in pilots.items()]
    most = float(np.bincount(data.labels).max() / len(data.labels))
    return Finding(
        verdict=verdict(gains),
        summary=_summary(sizes, gains, found),
        protocol=_protocol(sizes, data),
        numbers=numbers,
        figure=[
            Lines(
                x=("labelled names", "标注的名称数"),
                y=("accuracy", "准确率"),
                curves=[
                    curve(title, sizes.long if way == "longer" else sizes.counts, found[way], bounds=(0.0, 1.0))
                    for way, title in WAYS.items()
                ],
                log_x=True,
                ticks=[float(count) for count in sizes.counts],
                levels=[Level(("most frequent language", "最常见的语言"), most)],
                from_zero=True,
            )
        ],
        caption=(
            "Accuracy against the number of labelled names; bands are 95 % intervals over seeds",
            "准确率随标注名称数的变化；色带为各种子的 95 % 置信区间",
        ),
        tables=[Rows((f"Pilot runs with {MIDDLE} labels", f"{MIDDLE} 个标注的试验运行"), heads, rows)],
        data={"languages": data.digest},
    )


def _cost(sizes: Sizes) -> float:
    """Names read with pre-training, relative to fine-tuning alone on FEW names or more."""
    return 1 + sizes.steps * BATCH / (sizes.updates * FEW)


def _summary(sizes: Sizes, gains: list[list[Measured]], found: Table) -> Pair:
    def listed(n: int) -> str:
        parts = []
        for count, each in zip(sizes.counts, gains, strict=True):
            one = each[0]
            low, high = (fixed(100 * (end or 0.0), 1, sign=True) for end in (one.low, one.high))
            said = f"{fixed(100 * one.value, 1, sign=True)} [{low}, {high}]"
            parts.append((f"{said} with {count:,} labels", f"{count:,} 个标注时 {said}")[n])
        return (", ", "，")[n].join(parts)

    longer = [f"{short(float(found['longer'][n].mean()), 3)} ({count:,})" for n, count in enumerate(sizes.long)]
    same = [short(float(found["tuned"][sizes.counts.index(count)].mean()), 3) for count in sizes.long]
    cost = short(_cost(sizes), 3)
    return (
        f"Percentage points that pre-training gains over training from scratch with the same updates: {listed(0)}. "
        f"{TIMES} times the updates from scratch give {', '.join(longer)}, against {', '.join(same)} with "
        f"pre-training. With {FEW} labels or more, {cost} times as many names are read in all with pre-training as "
        "from scratch with the same updates of fine-tuning.",
        f"更新次数相同时，预训练比从零训练高出的百分点：{listed(1)}。从零训练、更新次数为 {TIMES} 倍时准确率为 "
        f"{'、'.join(longer)}，预训练后则为 {'、'.join(same)}。标注不少于 {FEW} 个时，加上预训练，读入的名称总数是"
        f"微调更新次数相同的从零训练的 {cost} 倍。",
    )


def _protocol(sizes: Sizes, data: Names) -> Pair:
    size, rates = parameters(stack(data, 0)), ", ".join(f"{rate:g}" for rate in RATES)
    learned, kinds = len(data.rows) - sizes.held, len(data.languages)
    return (
        f"sample:languages, names in {kinds} languages with Latin letters that occur in one language only and have at "
        f"most {LONGEST} characters: {sizes.held:,} to test on, the other {learned:,} without labels for pre-training, "
        f"a few of these with labels for fine-tuning ({DRAWS} choices, whose accuracies are averaged); a new split for "
        f"each of {sizes.seeds} seeds. Encoder by "
        f"character, {DEPTH} layers of width {WIDTH}, {size:,} parameters, no dropout. Pre-training: {SHARE:.0%} of "
        f"the characters masked, {sizes.steps:,} updates of {BATCH} names, Adam at {START:g} falling to 0. "
        f"Fine-tuning: a new output layer on the mean of all positions, all weights trained, {sizes.updates} updates "
        f"of up to {FEW} names; the better rate of {rates} for each start, on one more seed. From scratch: the same "
        f"without pre-training, from the same random weights; with {TIMES} times the updates, at the rate chosen for "
        "one time. Logistic regression: TF-IDF of character 1- to 3-grams, on the first of the "
        f"{DRAWS} choices of names only.",
        f"sample:languages，{kinds} 种用拉丁字母书写的语言的名称，只取仅见于一种语言、不超过 {LONGEST} 个字符者："
        f"{sizes.held:,} 个用于测试，其余 {learned:,} 个不带标注用于预训练，其中少数带标注用于微调（选 {DRAWS} 次，"
        f"准确率取平均）；{sizes.seeds} 个种子各用一种划分。按字符的编码器，{DEPTH} 层，宽度 {WIDTH}，{size:,} 个参数，"
        f"无 dropout。预训练：掩盖 {SHARE:.0%} 的字符，{sizes.steps:,} 次更新，每次 {BATCH} 个名称，Adam，学习率由 "
        f"{START:g} 降至 0。微调：在所有位置的均值上加新的输出层，训练全部权重，{sizes.updates} 次更新，"
        f"每次至多 {FEW} 个名称；两种起点的学习率各取 {rates} 中在另一个种子上较好者。"
        f"从零训练：没有预训练，其余相同，随机初始权重也相同；更新次数为 {TIMES} 倍时沿用一倍时选定的学习率。逻辑回归："
        f"字符 1 至 3-gram 的 TF-IDF，只用 {DRAWS} 次所选名称中的第一次。",
    )


STUDY = Study(
    number=20,
    title=("Pre-training, then fine-tuning, beats training from scratch", "先预训练再微调，胜过从零训练"),
    claim=(
        "Transformers can be pre-trained on large corpora without labels, by language modelling or masked language "
        "modelling, and then fine-tuned for various tasks: effective transfer learning.",
        "可以使用无监督目标，如语言建模或掩码语言建模，在大规模语料库上对 Transformer 模型进行预训练；预训练之后，可以"
        "在各种下游任务上微调，从而实现有效的迁移学习。",
    ),
    sources=(("000", "预训练和迁移学习"),),
    rule=(
        "Pre-training is better at a number of labels if, by the whole interval of the paired difference, it gains "
        f"over training from scratch with the same updates, and, with {LONG[0]} and {LONG[1]:,} labels, also over "
        f"{TIMES} times as many. It holds if it is better at every number of labels; under conditions, if at some; it "
        "fails if at none and somewhere worse; otherwise it cannot be told.",
        "在某个标注数量下，若按配对差的整个置信区间，预训练优于更新次数相同的从零训练，并且在 "
        f"{LONG[0]} 和 {LONG[1]:,} 个标注时也优于 {TIMES} 倍更新次数的从零训练，则算更好。若在每个数量下都更好，则成立"
        "；若只在某些数量下，则为有条件成立；若都不更好且在某处更差，则不成立；其余无法判断。",
    ),
    remarks=(
        PILOT,
        (
            "Character n-grams with logistic regression, which see no unlabelled names, are above both networks in the "
            "figure: pre-training beats training the same network from scratch, not every model.",
            "图中，不使用任何无标注名称的字符 n 元组加逻辑回归高于两个网络：预训练胜过的是从零训练同一网络，而不是"
            "所有模型。",
        ),
        (
            "The unlabelled names come from the same list as the labelled ones, without overlap with the test. Text of "
            "another kind may help less. Nothing here is a large corpus.",
            "无标注的名称与有标注的名称出自同一列表，与测试集不重叠。换成另一类文本，效果可能更差。这里的数据都算不上大"
            "规模语料。",
        ),
        (
            "Logistic regression on character n-grams is shown as a reference and takes no part in the rule.",
            "字符 n-gram 上的逻辑回归只作参照，不参与判定。",
        ),
        (
            "Equal updates are not equal cost: pre-training is paid for once, and worth it where it serves several "
            "tasks or where labels are dear.",
            "更新次数相同不等于代价相同：预训练的代价只付一次，在服务于多个任务或标注昂贵时才划算。",
        ),
    ),
    measure=measure,
)
