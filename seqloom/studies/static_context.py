"""A static context is not enough: each output needs its own

Strings are to be reversed by encoder-decoders of equal size. The decoder sees the same vector at every step, either the
final states of the encoder or the mean of its outputs, or a context of its own for each output by attention. Random
letters cannot be compressed, text can.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqloom.core.network import Network
from seqloom.core.progress import Reporter
from seqloom.pages.formats import fixed
from seqloom.pages.plots import Curve, Level, Lines
from seqloom.pages.words import Pair
from seqloom.studies._models import parameters
from seqloom.studies._pairs import CLIP, Draw, Pairs, Training, held_out, hits, trained, written
from seqloom.studies._study import Finding, Measured, Rows, Study, Verdict, above, curve, ends, measured
from seqloom.studies._training import matched, network, stretches, text

LETTERS, SIZE = 16, 80_000
LENGTHS = (4, 8, 16, 24, 32)
HELD = 0.1  # of the text, at its end
MARGIN, ABLE = 0.05, 0.9  # a difference in accuracy that counts; accuracy of attention at the shortest length
RATES = (1e-2, 5e-3)
MODELS: dict[str, tuple[Pair, dict[str, Any]]] = {
    "final": (("static: final states", "静态：最终状态"), {"context": "every_step", "summary": "final"}),
    "mean": (("static: mean of the outputs", "静态：各步输出的平均"), {"context": "every_step", "summary": "mean"}),
    "own": (("its own for each output: attention", "每个输出各自的：注意力"), {"context": "attention"}),
}
STATIC = ("final", "mean")
DATA: dict[str, Pair] = {"letters": ("random letters", "随机字母"), "text": ("text", "文本")}


@dataclass(frozen=True)
class Results:
    """Of one kind of data."""

    right: dict[str, np.ndarray]  # accuracy by model: (lengths, seeds)
    wrong: dict[str, np.ndarray]  # the same with sources of other rows
    pilots: dict[str, list[float]]  # accuracy on the pilot seed at each rate
    parameters: dict[str, int]

    @property
    def best(self) -> str:
        """The better of the static models, over all lengths."""
        return max(STATIC, key=lambda name: self.right[name].mean())


def measure(quick: bool, progress: Reporter) -> Finding:
    seeds, updates, rows = (2, 2, 16) if quick else (5, 1500, 500)
    found = {}
    for n, data in enumerate(DATA):

        def say(share: float, doing: str, n: int = n) -> None:
            progress.update((n + share) / len(DATA), {"doing": doing})

        found[data] = _measured(data, seeds, updates, rows, say)
    return _finding((seeds, updates, rows), found)


def _measured(data: str, seeds: int, updates: int, rows: int, say: Any) -> Results:
    kinds = _kinds(data)
    right, wrong, pilots, counts = {}, {}, {}, {}
    for n, (name, (_, own)) in enumerate(MODELS.items()):
        options = matched("seq2seq", SIZE, kinds + 1, outputs=kinds, cell="lstm", inputs=32, **own)

        def run(seed: int, rate: float, name: str = name, options: dict[str, Any] = options, n: int = n) -> Network:
            say((n + seed / (seeds + 1)) / len(MODELS), f"{data}, {name}, seed {seed}")
            return trained("seq2seq", kinds + 1, kinds, _mixed(data), Training(updates, rate=rate), seed, **options)

        def scored(model: Network, shift: int = 0) -> list[float]:
            return [_accuracy(model, data, length, rows, shift) for length in LENGTHS]

        pilots[name] = [float(np.mean(scored(run(0, rate)))) for rate in RATES]
        models = [run(seed, RATES[int(np.argmax(pilots[name]))]) for seed in range(1, seeds + 1)]
        right[name] = np.array([scored(model) for model in models]).T
        wrong[name] = np.array([scored(model, shift=1) for model in models]).T
        counts[name] = parameters(network("seq2seq", kinds + 1, 0, outputs=kinds, **options))
    return Results(right, wrong, pilots, counts)


def _kinds(data: str) -> int:
    return LETTERS if data == "letters" else text()[1]


@cache
def _text(held: bool) -> Tensor:
    ids = text()[0]
    cut = int(len(ids) * (1 - HELD))
    return ids[cut:] if held else ids[:cut]


def _draw(data: str, length: int, held: bool) -> Draw:
    def drawn(rows: int, generator: torch.Generator) -> Pairs:
        if data == "letters":
            sources = torch.randint(LETTERS, (rows, length), generator=generator)
        else:
            sources, _ = stretches(_text(held), rows, length, generator)
        return written(sources, sources.flip(1), _kinds(data))

    return drawn


def _mixed(data: str) -> Draw:
    """All rows of a batch have one of the lengths, drawn evenly."""

    def drawn(rows: int, generator: torch.Generator) -> Pairs:
        length = LENGTHS[int(torch.randint(len(LENGTHS), (1,), generator=generator))]
        return _draw(data, length, held=False)(rows, generator)

    return drawn


def _accuracy(model: Network, data: str, length: int, rows: int, shift: int) -> float:
    """`shift`: each row gets the source of the row so far below."""
    pairs = _draw(data, length, held=True)(rows, held_out(length))
    return float(hits(model, Pairs(pairs.sources.roll(shift, 0), pairs.inputs, pairs.targets)).mean())


def verdict(gaps: list[Measured], able: list[Measured]) -> Verdict:
    """`gaps`: what attention is better by, at every length of all data."""
    if any(ends(one)[0] < ABLE for one in able):
        return "untold"
    return above(gaps, MARGIN)


def _finding(sizes: tuple[int, int, int], found: dict[str, Results]) -> Finding:
    gaps: dict[str, list[Measured]] = {}
    numbers, able = [], []
    for data, one in found.items():
        title = DATA[data]
        gaps[data] = []
        for length, own, static in zip(LENGTHS, one.right["own"], one.right[one.best], strict=True):
            label = (
                f"attention - better static context: {title[0]}, length {length}",
                f"注意力 - 较好的静态上下文：{title[1]}，长度 {length}",
            )
            gaps[data].append(measured(label, own - static, ("above 0", "大于 0"), bounds=(-1.0, 1.0)))
        for name, (model, _) in MODELS.items():
            ends = [
                measured(
                    (
                        f"accuracy: {title[0]}, length {length}, {model[0]}",
                        f"准确率：{title[1]}，长度 {length}，{model[1]}",
                    ),
                    one.right[name][LENGTHS.index(length)],
                    bounds=(0.0, 1.0),
                )
                for length in (LENGTHS[0], LENGTHS[-1])
            ]
            numbers += ends
            able += ends[:1] if name == "own" else []
    heads = [("data", "数据"), ("context", "上下文"), ("parameters", "参数量")]
    heads += [(f"accuracy at rate {rate:g}", f"学习率 {rate:g} 时的准确率") for rate in RATES]
    rows: list[list[Pair | float | str]] = [
        [DATA[data], MODELS[name][0], one.parameters[name], *one.pilots[name]]
        for data, one in found.items()
        for name in MODELS
    ]
    return Finding(
        verdict=verdict([gap for row in gaps.values() for gap in row], able),
        summary=_summary(gaps, found),
        protocol=_protocol(*sizes, found),
        numbers=[*(gap for row in gaps.values() for gap in row), *numbers],
        figure=[_figure(data, one) for data, one in found.items()],
        caption=(
            "Accuracy by length of the string, equal numbers of parameters; bands are 95 % intervals over seeds",
            "准确率随串长的变化，参数量相同；色带为各种子的 95 % 置信区间",
        ),
        tables=[Rows(("Sizes, and mean accuracy of the pilot runs", "参数量与试验运行的平均准确率"), heads, rows)],
        data={"python-docs": text()[2]},
    )


def _figure(data: str, one: Results) -> Lines:
    x = [float(length) for length in LENGTHS]
    curves = [curve(title, LENGTHS, one.right[name], bounds=(0.0, 1.0)) for name, (title, _) in MODELS.items()]
    floor = Curve(
        ("static, source of another string", "静态，源序列换成别的串"),
        x,
        one.wrong[one.best].mean(1).tolist(),
        draw="dashed",
    )
    return Lines(
        x=("length", "长度"),
        y=("accuracy", "准确率"),
        curves=[*curves, floor],
        title=(DATA[data][0].capitalize(), DATA[data][1]),
        ticks=x,
        levels=[Level(("chance", "随机"), 1 / _kinds(data))],
        from_zero=True,
    )


def _lengths(gaps: list[Measured], column: int) -> str:
    """At which lengths attention is clearly better."""
    found = [str(length) for length, gap in zip(LENGTHS, gaps, strict=True) if (gap.low or 0.0) > MARGIN]
    return ", ".join(found) if found else ("none", "无")[column]


def _summary(gaps: dict[str, list[Measured]], found: dict[str, Results]) -> Pair:
    def told(data: str, column: int) -> str:
        one = found[data]
        right = " / ".join(fixed(value, 2) for value in one.right["own"].mean(1))
        static = " / ".join(fixed(value, 2) for value in one.right[one.best].mean(1))
        clear = _lengths(gaps[data], column)
        return (
            f"{DATA[data][0]}: {right} with attention and {static} with the better static context ("
            f"{MODELS[one.best][0][0]}), a difference above {MARGIN:g} at lengths {clear}",
            f"{DATA[data][1]}：注意力为 {right}，较好的静态上下文（{MODELS[one.best][0][1]}）为 {static}，差大于 "
            f"{MARGIN:g} 的长度：{clear}",
        )[column]

    lengths = " / ".join(map(str, LENGTHS))
    return (
        f"Accuracy at lengths {lengths}. {'; '.join(told(data, 0) for data in DATA)}.".replace(". random", ". Random"),
        f"长度 {lengths} 时的准确率。{'；'.join(told(data, 1) for data in DATA)}。",
    )


def _protocol(seeds: int, updates: int, rows: int, found: dict[str, Results]) -> Pair:
    counts = [count for one in found.values() for count in one.parameters.values()]
    lengths, rates = (", ".join(f"{value:g}" for value in values) for values in (LENGTHS, RATES))
    kinds, most = text()[1], f"{min(counts):,}–{max(counts):,}"
    return (
        f"Reversal of {LETTERS} kinds of random letters, and of stretches of sample:python-docs ({kinds} "
        f"characters; its last {HELD:.0%} only for scoring). Lengths {lengths}, one for each batch. Encoder, in "
        f"both directions, and decoder are LSTMs of one layer; {most} parameters. {updates:,} updates of 64 rows, "
        f"Adam with a rate that falls to 0, norm clipped at {CLIP:g}, {seeds} seeds; the rate of each model is the "
        f"better of {rates} on one more seed. The decoder reads the right characters before each step. Accuracy on "
        f"{rows} new strings of each length. Dashed: the better static model, given the source of another string.",
        f"反转 {LETTERS} 种随机字母，以及 sample:python-docs 的片段（{kinds} 种字符；其最后 {HELD:.0%} 只用于评分）。"
        f"长度 {lengths}，每批一种长度。编码器（双向）和解码器均为一层 LSTM；参数量 {most}。{updates:,} 次更新，每次"
        f" 64 行，Adam，学习率降至 0，范数裁剪到 {CLIP:g}，{seeds} 个种子；每种模型的学习率取 {rates} 中在另一个种子"
        f"上较好者。解码器每步读取前面正确的字符。每种长度用 {rows} 个新串测准确率。虚线：较好的静态模型，但源序列换"
        "成别的串。",
    )


STUDY = Study(
    number=8,
    title=(
        "A static context is not enough: each output needs its own",
        "静态的上下文不够，每个输出需要各自的上下文",
    ),
    claim=(
        "The context is static for every timestep: the final hidden states of the encoder, or the mean of its "
        "outputs at all timesteps. But should every token that the decoder writes really use the same context? "
        "Words at different places may need information of different degrees and aspects.",
        "context 对于每个 timestep 都是静态的（encoder 端的 final hidden states，或者是所有 timestep 的 output 的平"
        "均值）。但是每个 decoder 端的 token 在解码时，用到的 context 真的应该是一样的吗？不同位置的单词可能需要不"
        "同程度和不同方面的信息。",
    ),
    sources=(("001", "Contextualized RNN"), ("001", "RNN的优缺点")),
    rule=(
        f"It holds if, at every length and on both kinds of data, attention has more than {MARGIN:g} more right "
        "than the static context that is better over all lengths, by whole intervals; under conditions, if only at "
        "some of them; it fails if the difference is below that everywhere, and otherwise cannot be told, nor if "
        f"attention itself has less than {ABLE:.0%} right at the shortest length.",
        f"若按整个置信区间，在每种长度和两种数据上，注意力的准确率都比总体较好的静态上下文高出 {MARGIN:g} 以上，则成"
        "立；若只在其中一部分如此，则为有条件成立；若处处都低于此，则不成立；其余无法判断；若注意力自身在最短长度上"
        f"的准确率不到 {ABLE:.0%}，也无法判断。",
    ),
    remarks=(
        (
            "The summary names a length only if the whole interval of the difference is above the limit, not just "
            "its mean.",
            "只有差的整个置信区间都超过界限时，摘要才列出该长度，仅均值超过的不列。",
        ),
        (
            "One pilot seed, at fewer updates and for two of the three models, was seen after the rule was "
            "written; nothing was changed after it.",
            "制定规则之后，看过一个试验种子的结果（更新次数较少，三个模型中的两个），此后没有再改动。",
        ),
        (
            "The static context at every step is the form of Cho et al. (2014); attention with the state after a step "
            "as query is that of Luong et al. (2015).",
            "每步输入静态上下文的形式出自 Cho 等（2014）；以一步之后的状态作查询的注意力出自 Luong 等（2015）。",
        ),
        (
            "Sentences are stood in for by strings, and translation by reversal: each output then needs exactly one "
            "place of the source. Where one vector can hold all that an output needs, as with a class label, a static "
            "context loses nothing.",
            "这里用字符串代替句子，用反转代替翻译：每个输出恰好需要源序列的一个位置。若一个向量就能容纳输出所需的一"
            "切（例如类别标签），静态上下文并无损失。",
        ),
        (
            "The decoder knows the characters before each output, and in text these alone say something of the next. "
            "The dashed line is the accuracy with a wrong source, which also misleads it. Chance is that of a uniform "
            "guess; in text the commonest character is far more frequent.",
            "解码器知道每个输出之前的字符，在文本中这些字符本身就透露了下一个。虚线是源序列为错误串时的准确率，错误"
            "的源序列也会误导它。“随机”指均匀猜测；文本中最常见的字符要频繁得多。",
        ),
        (
            "The two rates were tried on the strings that are scored, and the static models took the larger one, so "
            "they may be under-tuned. Test strings are drawn anew, but short ones often occur in training as well.",
            "两种学习率是在计分所用的字符串上选择的，静态模型选了较大的那个，因此调参可能不足。测试串是重新抽取的，"
            "但短串往往也在训练中出现过。",
        ),
        (
            "Lengths are far smaller than those of sentences in a corpus, and so are the models; at which length a "
            "static context gives out depends on its width and on the budget of training.",
            "长度和模型都远小于语料库的情形；静态上下文在多长时不够用，取决于它的宽度和训练预算。",
        ),
    ),
    measure=measure,
)
