"""One fixed vector forgets the start of a long source, and the decoder forgets the source as it writes

Random letters are copied or written in reverse, half and half, so that every source position is written once early and
once late: averages over both orders tell the two ends of the source from the two ends of the output. The decoder sees
the source as its initial state only, as one vector at every step, or by attention.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from seqloom.core.progress import Reporter
from seqloom.pages.formats import fixed
from seqloom.pages.plots import Level, Lines
from seqloom.pages.words import Pair
from seqloom.studies._models import parameters
from seqloom.studies._pairs import CLIP, Draw, Pairs, Training, held_out, hits, trained, written
from seqloom.studies._study import Finding, Measured, Rows, Study, Verdict, above, curve, ends, measured
from seqloom.studies._training import matched, network

LETTERS, SIZE = 16, 80_000
LENGTHS = (8, 16)  # of the source: short and long, models of their own
LONG = LENGTHS[-1]
START, STEPS = LETTERS, LETTERS + 2  # ids: a start token for each order; then the numbers of steps, for each order
TOKENS = STEPS + 2 * LONG
MARGIN = 0.05  # difference in accuracy that counts as forgetting
ABLE = 0.9  # accuracy that shows that the task can be learned
RATES = (1e-2, 5e-3)
CONTEXTS: dict[str, Pair] = {
    "first": ("initial state only", "仅作初始状态"),
    "every_step": ("one vector at every step", "每步都输入同一向量"),
    "attention": ("attention", "注意力"),
}
WAYS: dict[str, Pair] = {
    "letters": ("decoder reads what was written", "解码器读取已写的字母"),
    "number": ("decoder reads only the number of the step", "解码器只读步数"),
}
ENDS: dict[str, tuple[Pair, Pair]] = {  # differences in accuracy, and what the claim says of them
    "place": (
        ("last quarter of the source - first quarter", "源序列最后四分之一 - 最前四分之一"),
        ("the start is forgotten", "遗忘开头"),
    ),
    "step": (
        ("first quarter of the steps - last quarter", "最初四分之一步 - 最后四分之一步"),
        ("forgotten while writing", "边写边遗忘"),
    ),
}
JUDGED = (("place", "letters"), ("place", "number"), ("step", "number"))
Key = tuple[str, str, int]  # way, context, length


@dataclass(frozen=True)
class Scores:
    place: np.ndarray  # (S, seeds): accuracy by position in the source, mean of both orders
    step: np.ndarray  # (S, seeds): by step of the decoder

    def ends(self, kind: str) -> np.ndarray:
        """Forgetting, of each seed: positive if the start of the source, or the end of the output, is worse."""
        table = self.place if kind == "place" else self.step
        quarter = len(table) // 4
        gap: np.ndarray = table[-quarter:].mean(0) - table[:quarter].mean(0)
        return gap if kind == "place" else -gap


def measure(quick: bool, progress: Reporter) -> Finding:
    seeds, updates, rows = (2, 2, 32) if quick else (5, 1200, 1000)
    options = {name: _sizes(name) for name in CONTEXTS}
    found: dict[Key, Scores] = {}
    rates: dict[tuple[str, str], list[float]] = {}  # accuracy of the pilot seed at each rate
    keys = [(way, name, length) for way in WAYS for name in CONTEXTS for length in LENGTHS[::-1]]
    for n, (way, name, length) in enumerate(keys):

        def run(seed: int, rate: float, key: Key = (way, name, length), n: int = n) -> np.ndarray:
            progress.update((n + seed / (seeds + 1)) / len(keys), {"doing": f"{', '.join(map(str, key))}, seed {seed}"})
            draws = [_draw(key[0], key[2], backwards) for backwards in (False, True)]
            model = trained(
                "seq2seq", TOKENS, LETTERS, _both(draws), Training(updates, rate=rate), seed, **options[key[1]]
            )
            return np.stack([hits(model, draw(rows, held_out(key[2]))).numpy() for draw in draws])

        if length == LONG:  # the rate of the long source serves both
            rates[way, name] = [float(run(0, rate).mean()) for rate in RATES]
        rate = RATES[int(np.argmax(rates[way, name]))]
        table = np.stack([run(seed, rate) for seed in range(1, seeds + 1)], axis=-1)  # (orders, steps, seeds)
        place = (table[0] + table[1][::-1]) / 2
        found[way, name, length] = Scores(place, table.mean(0))
    counts = {name: parameters(network("seq2seq", TOKENS, 0, outputs=LETTERS, **options[name])) for name in CONTEXTS}
    return _finding((seeds, updates, rows), found, rates, counts)


def _sizes(context: str) -> dict[str, Any]:
    one: dict[str, Any] = {"context": context, "cell": "lstm", "bidirectional": False, "inputs": 32}
    return matched("seq2seq", SIZE, TOKENS, outputs=LETTERS, **one)


def _draw(way: str, length: int, backwards: bool) -> Draw:
    def drawn(rows: int, generator: torch.Generator) -> Pairs:
        sources = torch.randint(LETTERS, (rows, length), generator=generator)
        targets = sources.flip(1) if backwards else sources
        if way == "letters":
            return written(sources, targets, START + backwards)
        numbers = STEPS + backwards * LONG + torch.arange(length)
        return Pairs(sources, numbers.expand(rows, -1), targets)

    return drawn


def _both(draws: list[Draw]) -> Draw:
    """Half of the rows in either order."""

    def drawn(rows: int, generator: torch.Generator) -> Pairs:
        parts = [draw(rows // len(draws), generator) for draw in draws]
        return Pairs(
            torch.cat([part.sources for part in parts]),
            torch.cat([part.inputs for part in parts]),
            torch.cat([part.targets for part in parts]),
        )

    return drawn


def verdict(forgotten: list[Measured], able: list[Measured]) -> Verdict:
    """`forgotten`: the gaps that the claim predicts, for the initial state only; `able`: accuracy of attention."""
    if any(ends(one)[0] < ABLE for one in able):
        return "untold"
    return above(forgotten, MARGIN)


def _finding(
    sizes: tuple[int, int, int],
    found: dict[Key, Scores],
    rates: dict[tuple[str, str], list[float]],
    counts: dict[str, int],
) -> Finding:
    gaps: dict[tuple[str, Key], Measured] = {}
    means: dict[Key, Measured] = {}
    for (way, name, length), scores in found.items():
        end = tuple(f"{CONTEXTS[name][n]}, {WAYS[way][n]}, {length}" for n in (0, 1))
        for kind, (title, claimed) in ENDS.items():
            said = claimed if name == "first" and length == LONG and (way, kind) != ("letters", "step") else ("", "")
            label = (f"{title[0]}: {end[0]} letters", f"{title[1]}：{end[1]} 个字母")
            gaps[kind, (way, name, length)] = measured(label, scores.ends(kind), said, bounds=(-1.0, 1.0))
        label = (f"accuracy: {end[0]} letters", f"准确率：{end[1]} 个字母")
        means[way, name, length] = measured(label, scores.step.mean(0), bounds=(0.0, 1.0))
    judged = [gaps[kind, (way, "first", LONG)] for kind, way in JUDGED]
    heads = [("context", "上下文"), ("decoder input", "解码器输入"), ("parameters", "参数量")]
    heads += [(f"accuracy at rate {rate:g}", f"学习率 {rate:g} 时的准确率") for rate in RATES]
    rows: list[list[Pair | float | str]] = [
        [CONTEXTS[name], WAYS[way], counts[name], *tried] for (way, name), tried in rates.items()
    ]
    return Finding(
        verdict=verdict(judged, [means[way, "attention", LONG] for way in WAYS]),
        summary=_summary(gaps, means),
        protocol=_protocol(*sizes, counts),
        numbers=[*gaps.values(), *means.values()],
        figure=[_figure(found, way, kind) for way in WAYS for kind in ENDS],
        caption=(
            f"Accuracy by position in the source and by step of the decoder, {LONG} letters, mean of copying and "
            "reversing, two neighbouring points averaged; bands are 95 % intervals over seeds",
            f"准确率随源序列位置和解码步数的变化，{LONG} 个字母，照抄与反转的平均，相邻两点取平均；色带为各种子的 "
            "95 % 置信区间",
        ),
        tables=[Rows(("Sizes, and accuracy of the pilot runs", "参数量与试验运行的准确率"), heads, rows)],
    )


def _figure(found: dict[Key, Scores], way: str, kind: str) -> Lines:
    places = [pair + 1.5 for pair in range(0, LONG, 2)]  # neighbours are averaged: half as many points
    axis = {
        "place": ("position in the source", "在源序列中的位置"),
        "step": ("step of the decoder", "解码步数"),
    }
    return Lines(
        x=axis[kind],
        y=("accuracy", "准确率"),
        curves=[
            curve(
                title, places, getattr(found[way, name, LONG], kind).reshape(len(places), 2, -1).mean(1), bounds=(0, 1)
            )
            for name, title in CONTEXTS.items()
        ],
        title=(WAYS[way][0][0].upper() + WAYS[way][0][1:], WAYS[way][1]),
        ticks=[1.0, *map(float, range(4, LONG + 1, 4))],
        levels=[Level(("chance", "随机"), 1 / LETTERS)],
        from_zero=True,
    )


def _summary(gaps: dict[tuple[str, Key], Measured], means: dict[Key, Measured]) -> Pair:
    def told(kind: str, way: str, name: str = "first") -> str:
        one = gaps[kind, (way, name, LONG)]
        low, high = one.low or 0.0, one.high or 0.0
        return f"{fixed(one.value, 2, sign=True)} [{fixed(low, 2, sign=True)}, {fixed(high, 2, sign=True)}]"

    right = [" / ".join(fixed(means[way, name, LONG].value, 2) for name in CONTEXTS) for way in WAYS]
    english, chinese = (" / ".join(title[n] for title in CONTEXTS.values()) for n in (0, 1))
    return (
        f"With {LONG} letters and the source as initial state only, accuracy on the last quarter of the source differs "
        f"from that on the first by {told('place', 'letters')} if the decoder reads what was written and by "
        f"{told('place', 'number')} if it reads only the number of the step; in the latter case, accuracy in the first "
        f"quarter of the steps differs from that in the last by {told('step', 'number')} (with one vector at every "
        f"step: {told('step', 'number', 'every_step')}). Mean accuracy of {english}: {right[0]} and {right[1]} "
        f"(chance: {1 / LETTERS:.2g}).",
        f"{LONG} 个字母、源序列仅作初始状态时，源序列最后四分之一与最前四分之一的准确率之差：解码器读取已写的字母时为 "
        f"{told('place', 'letters')}，只读步数时为 {told('place', 'number')}；后一种情形下，最初四分之一步与最后四分之"
        f"一步之差为 {told('step', 'number')}（每步都输入同一向量时为 {told('step', 'number', 'every_step')}）。"
        f"{chinese} 的平均准确率：{right[0]}，以及 {right[1]}（随机：{1 / LETTERS:.2g}）。",
    )


def _protocol(seeds: int, updates: int, rows: int, counts: dict[str, int]) -> Pair:
    lengths, rates = " and ".join(map(str, LENGTHS)), ", ".join(f"{rate:g}" for rate in RATES)
    english, chinese = (", ".join(f"{CONTEXTS[name][n]} {count:,}" for name, count in counts.items()) for n in (0, 1))
    return (
        f"Random strings of {LETTERS} letters, of length {lengths}, a model for each; a start token says whether to "
        f"copy or to reverse, half of the rows each. Encoder and decoder are LSTMs of one layer, the encoder reads "
        f"from left to right. Parameters: {english}. {updates:,} updates of 64 rows, Adam with a rate that falls to 0, "
        f"norm clipped at {CLIP:g}, {seeds} seeds. The rate of each model and decoder input is the better of {rates} "
        f"on one more seed, at the longer length. At each step the decoder reads the right letter before (teacher "
        f"forcing), or instead the number of the step and the order, which say nothing of the letters. Accuracy on "
        f"{rows:,} new strings for each order, then averaged over both.",
        f"由 {LETTERS} 种字母组成的随机串，长度为 {lengths.replace(' and ', ' 和 ')}，各训练一个模型；起始词元说明是照"
        f"抄还是反转，各占一半。编码器和解码器均为一层 LSTM，编码器从左向右读。参数量：{chinese}。{updates:,} 次更新，"
        f"每次 64 行，Adam，学习率降至 0，范数裁剪到 {CLIP:g}，{seeds} 个种子。每种模型和解码器输入的学习率取 {rates} "
        "中在另一个种子（较长长度）上较好者。解码器每步读取前一个正确的字母（教师强制），或者只读步数和顺序，它们与字"
        f"母无关。准确率在每种顺序的 {rows:,} 个新串上测得，再对两种顺序取平均。",
    )


STUDY = Study(
    number=7,
    title=(
        "One fixed vector forgets the start of a long source, and the decoder forgets the source as it writes",
        "单个固定向量会遗忘长源序列的开头，解码器边写边遗忘源序列",
    ),
    claim=(
        "The encoder compresses the whole source, of any length, into one vector of fixed size, which has more "
        "information about the end of the source; if the sequence is long, the start may be practically forgotten. As "
        "the decoder goes on, what the initial state contains of the source decays, so that the decoder gradually "
        "forgets the source.",
        "编码器将整个源端序列（不论长度）压缩为一个固定维度的向量，其中关于源端序列末尾的信息更多，如果序列很长，最终"
        "可能基本上“遗忘”了序列开头；随着解码步数的增加，初始隐状态中包含的源端信息也会衰减，解码器会逐渐“遗忘”源端序"
        "列。",
    ),
    sources=(("001", "Simple RNN"),),
    rule=(
        f"For the initial state only and {LONG} letters: the last quarter of the source must be better than the first, "
        "with either input of the decoder; and the first quarter of the steps better than the last, where the decoder "
        f"reads only the number of the step. It holds if all three differences are above {MARGIN:g}, fails if all are "
        "below it, and holds under conditions if at least one is above, by whole intervals; otherwise it cannot be "
        f"told, nor if attention has less than {ABLE:.0%} right.",
        f"针对仅作初始状态、{LONG} 个字母的情形：不论解码器读什么，源序列最后四分之一都应好于最前四分之一；解码器只"
        f"读步数时，最初四分之一步应好于最后四分之一步。按整个置信区间，三个差都大于 {MARGIN:g} 则成立；都小于它则不"
        f"成立；至少有一个大于它则为有条件成立；其余无法判断；若注意力的准确率不到 {ABLE:.0%}，也无法判断。",
    ),
    remarks=(
        (
            "The equation quoted beside the claim, h_t = f(h_(t-1), y_(t-1), c), is that of Cho et al. (2014) and "
            "already feeds the context c to every step. The form with an initial state only, of which the claim "
            "speaks, is that of Sutskever et al. (2014). Here they are “every step” and “initial state only”.",
            "论断旁所引的公式 h_t = f(h_(t-1), y_(t-1), c) 出自 Cho 等（2014），每一步都已输入上下文 c；论断所说的只"
            "有初始状态的形式出自 Sutskever 等（2014）。此处分别为“每步都输入同一向量”和“仅作初始状态”。",
        ),
        (
            "A decoder that reads what was written becomes better with every step, the opposite of forgetting: the "
            "table has the figures. Perhaps the letters already written, together with what the vector holds, narrow "
            "down the rest; that was not measured. Forgetting while writing is therefore judged where the decoder "
            "reads only the number of the step. This was seen in pilots before the rule was written.",
            "读取已写字母的解码器越写越准，与遗忘正相反，数值见表。原因也许是已写的字母与向量中保存的内容一起缩小了"
            "其余字母的范围，但没有测量。因此，“边写边遗忘”只在解码器只读步数时判断。这一点是在制定规则之前的试验中"
            "看到的。",
        ),
        (
            "The two rates were tried on the strings that are scored. All models with one vector took the larger one, "
            "so they may be under-tuned; attention was right with either.",
            "两种学习率是在计分所用的字符串上选择的。只有一个向量的模型都选了较大的那个，因此调参可能不足；注意力用"
            "哪个都能答对。",
        ),
        (
            "“One vector at every step” is the encoder's last hidden vector, through a linear layer and tanh, and the "
            "initial state as well.",
            "“每步都输入同一向量”指编码器最后的隐向量经过线性层和 tanh，它同时也是初始状态。",
        ),
        (
            "Pilots on one seed, with other sizes and budgets, were seen before the rule was written: in most of "
            "them both ends of the source were better than its middle. LSTMs, as in Sutskever et al., were taken "
            "because they learned more within the same budget than GRUs. One seed of the final protocol was seen "
            "after the rule was written; nothing was changed after that.",
            "在制定规则之前看过单个种子、其他规模和预算的试验：其中大多数情况下，源序列两端都好于中间。采用 LSTM（"
            "与 Sutskever 等相同）是因为它在同样预算内比 GRU 学得更多。制定规则之后看过最终方案的一个种子，此后没有"
            "再改动。",
        ),
        (
            "Position and step are separated only for a comparison of the two ends, and if their effects add up: "
            "in both orders, the middle of the source is written in the middle of the output, so that a dip there "
            "may be due to either.",
            "只有在比较两端、且两种效应可加时，位置与步数才能分开：两种顺序下，源序列的中部都在输出的中部写出，因此"
            "中部的下降可能由任何一方引起。",
        ),
        (
            "What is measured is what models learn to keep within this budget, all positions being equally important. "
            "Random letters cannot be compressed; a source with redundancy needs less room.",
            "测量的是模型在此预算内学会保留什么，且各位置同等重要。随机字母无法压缩；有冗余的源序列需要的容量更小。",
        ),
    ),
    measure=measure,
)
