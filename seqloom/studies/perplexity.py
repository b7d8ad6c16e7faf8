"""Perplexity is 1 at best, infinite at worst, and the vocabulary size for a uniform guess

First the limits, with a model that knows the text and gives the next token a chosen lead over all others. Then what the
number of a real model depends on: how much context each token has, how far the windows overlap, and what a token is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from seqloom.core.network import SequenceModel
from seqloom.core.progress import Reporter
from seqloom.core.state import State
from seqloom.pages.formats import short
from seqloom.pages.plots import Bars, BarSeries, Curve, Lines, Panel
from seqloom.pages.words import Pair
from seqloom.studies._language import PIECES, Documents, counted, documents, language_task, stream, trained
from seqloom.studies._study import Finding, Measured, Rows, Study, Verdict, curve, exact, measured
from seqloom.tokenizers import Tokenizer, train_tokenizer

SAMPLE = "python-source"
CLOSE = 1e-6  # relative error that counts as none in float32
LEADS = (-8.0, -4.0, -2.0, 0.0, 2.0, 4.0, 8.0, 16.0, 32.0)
CONTEXTS = (4, 8, 16, 32, 64, 128)
MIDDLE = 16  # the context whose figures are told
OVERLAP = 8  # windows that start an eighth of their length apart
ORDER = 5  # of the n-gram that different units are compared with
UNITS: dict[str, tuple[Pair, str, int]] = {  # name, kind of tokenizer, largest vocabulary
    "bytes": (("bytes", "字节"), "bytes", 0),
    "small": (("subwords, 512", "子词，512"), "bpe", 512),
    "large": (("subwords, 4096", "子词，4096"), "bpe", 4096),
}


@dataclass(frozen=True)
class Sizes:
    seeds: int
    steps: int  # of the GPT
    scored: int  # characters
    trained: int
    contexts: tuple[int, ...] = CONTEXTS


class Informed(SequenceModel):
    """Knows the text: each next token has a logit of its `lead`, every other token 0. State: tokens read."""

    kind = "causal"
    limit = None

    def __init__(self, ids: np.ndarray, vocabulary: int, leads: Tensor) -> None:
        super().__init__()
        self.ids, self.vocabulary, self.leads = torch.from_numpy(ids), vocabulary, leads

    def forward(self, inputs: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        read = 0 if state is None else int(state)  # type: ignore[arg-type]
        after = read + inputs.size(1)
        upcoming = self.ids[read + 1 : after + 1]
        logits = torch.zeros(1, inputs.size(1), self.vocabulary)
        logits[0, torch.arange(len(upcoming)), upcoming] = self.leads[read + 1 : after + 1]
        return logits, torch.tensor(after)

    def encode(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        return self(inputs, None, mask)[0]

    def begin(self, context: Tensor, mask: Tensor | None = None) -> State:
        return self(context, None, mask)[1]


def measure(quick: bool, progress: Reporter) -> Finding:
    sizes = Sizes(2, 10, 1000, 20_000, (4, 16, 128)) if quick else Sizes(4, 200, 10_000, 500_000)
    source = documents(SAMPLE, 100_000 if quick else 2_000_000)
    whole = "".join(source.texts)
    tokenizers = {name: train_tokenizer(kind, [whole], size=size) for name, (_, kind, size) in UNITS.items()}
    progress.update(0.05, {"doing": "limits"})
    limits = {name: _limits(tokenizer, whole[: sizes.scored]) for name, tokenizer in tokenizers.items()}
    by_unit, by_context = {name: np.zeros((3, sizes.seeds)) for name in UNITS}, []
    for seed in range(sizes.seeds):
        progress.update(0.1 + 0.9 * seed / sizes.seeds, {"doing": f"seed {seed}"})
        by_context.append(_by_context(tokenizers["bytes"], source, seed, sizes))
        for name, tokenizer in tokenizers.items():
            by_unit[name][:, seed] = _by_unit(tokenizer, source, seed, sizes)
    return _finding(sizes, tokenizers, limits, np.array(by_context), by_unit, source)


def _limits(tokenizer: Tokenizer, text: str) -> tuple[list[float], bool]:
    """Perplexity for each lead, and whether one token that was thought impossible makes it infinite."""
    task, rows = language_task(tokenizer), stream(tokenizer, text)
    ids, found = rows[: len(rows)], []
    for lead in LEADS:
        leads = torch.full((len(ids),), lead)
        found.append(task.evaluate(Informed(ids, tokenizer.size, leads), rows)["perplexity"])
    leads[len(ids) // 2] = -math.inf
    return found, math.isinf(task.evaluate(Informed(ids, tokenizer.size, leads), rows)["perplexity"])


def _by_context(tokenizer: Tokenizer, source: Documents, seed: int, sizes: Sizes) -> list[list[float]]:
    """Perplexity of one GPT on one text, [disjoint or overlapping windows][context]."""
    train, held = (stream(tokenizer, text) for text in source.split(seed, sizes.scored, sizes.trained))
    longest = CONTEXTS[-1]
    options = {"width": 64, "depth": 2, "heads": 4, "context": longest}
    task = language_task(tokenizer, length=longest)
    model = trained(task, train, "gpt", seed, steps=sizes.steps, batch=16, rate=3e-3, **options)
    found: list[list[float]] = []
    for part in (1, OVERLAP):
        row = []
        for context in sizes.contexts:
            protocol = language_task(tokenizer, length=longest, context=context, stride=max(1, context // part))
            row.append(protocol.evaluate(model, held)["perplexity"])
        found.append(row)
    return found


def _by_unit(tokenizer: Tokenizer, source: Documents, seed: int, sizes: Sizes) -> list[float]:
    """Perplexity per token and per byte, and bits per byte, of an n-gram on the same text."""
    texts = source.split(seed, sizes.scored, sizes.trained)
    train, held = (stream(tokenizer, text) for text in texts)
    task = language_task(tokenizer)
    scores = task.evaluate(counted(task, train, ORDER), held)
    nats = scores["loss"] * scores["tokens"]
    return [scores["perplexity"], math.exp(nats / scores["bytes"]), scores["bits_per_byte"]]


def verdict(uniform: float, best: float, infinite: bool) -> Verdict:
    """From the largest relative errors of the uniform and of the certain guess."""
    return "holds" if uniform <= CLOSE and best <= CLOSE and infinite else "fails"


def _finding(
    sizes: Sizes,
    tokenizers: dict[str, Tokenizer],
    limits: dict[str, tuple[list[float], bool]],
    by_context: np.ndarray,  # (seeds, 2, contexts)
    by_unit: dict[str, np.ndarray],  # (3, seeds)
    source: Documents,
) -> Finding:
    vocabularies = {name: tokenizer.size for name, tokenizer in tokenizers.items()}
    uniform = max(abs(limits[name][0][LEADS.index(0.0)] / size - 1) for name, size in vocabularies.items())
    best = max(abs(limits[name][0][-1] - 1) for name in limits)
    infinite = all(limits[name][1] for name in limits)
    said: dict[Pair, tuple[float, str]] = {
        ("uniform guess: largest relative error against the vocabulary size", "均匀猜测与词表大小的最大相对误差"): (
            uniform,
            "0",
        ),
        ("certain and correct guess: largest error against 1", "完全确定且正确的猜测与 1 的最大误差"): (best, "0"),
        ("vocabularies where one impossible token makes it infinite", "一个不可能的词元使其为无穷大的词表数"): (
            sum(limits[name][1] for name in limits),
            str(len(limits)),
        ),
    }
    numbers = [exact(name, value, (claimed, claimed)) for name, (value, claimed) in said.items()]
    middle, last = sizes.contexts.index(MIDDLE), sizes.contexts[-1]
    where = {(0, -1): (last, last), (0, middle): (MIDDLE, MIDDLE), (1, middle): (MIDDLE, MIDDLE // OVERLAP)}
    by_protocol = {
        key: measured(
            (f"GPT, bytes: context {context}, stride {stride}", f"GPT，字节：上下文 {context}，步长 {stride}"),
            by_context[:, key[0], key[1]], bounds=(1.0, None),
        )
        for key, (context, stride) in where.items()
    }  # fmt: skip
    names = (f"GPT, context {MIDDLE}: side by side / overlapping", f"GPT，上下文 {MIDDLE}：首尾相接 / 重叠")
    overlap = measured(names, by_context[:, 0, middle] / by_context[:, 1, middle], bounds=(0.0, None))
    per_token = {
        name: measured(
            (f"{ORDER}-gram, {UNITS[name][0][0]}: per token", f"{ORDER}-gram，{UNITS[name][0][1]}：每词元"),
            by_unit[name][0], bounds=(1.0, None),
        )
        for name in UNITS
    }  # fmt: skip
    return Finding(
        verdict=verdict(uniform, best, infinite),
        summary=_summary(uniform, best, infinite, list(by_protocol.values()), list(per_token.values()), by_unit),
        protocol=_protocol(sizes, vocabularies),
        numbers=[*numbers, *by_protocol.values(), overlap, *per_token.values()],
        figure=_figure(sizes, vocabularies, limits, by_context, by_unit),
        caption=(
            "Perplexity against the lead of the correct token; of one GPT against context and overlap; of one kind of "
            "model by unit (95 % intervals over seeds)",
            "困惑度随正确词元领先程度的变化；同一个 GPT 随上下文与重叠的变化；同一类模型随单位的变化（各种子的 95 % 置"
            "信区间）",
        ),
        tables=[_units(vocabularies, by_unit)],
        data={SAMPLE: source.digest},
    )


def _figure(
    sizes: Sizes,
    vocabularies: dict[str, int],
    limits: dict[str, tuple[list[float], bool]],
    by_context: np.ndarray,
    by_unit: dict[str, np.ndarray],
) -> list[Panel]:
    sized = {name: (f"V = {size:,}", f"V = {size:,}") for name, size in vocabularies.items()}
    windows = (("windows side by side", "窗口首尾相接"), ("windows an eighth apart", "窗口相隔八分之一"))
    kinds: tuple[Pair, ...] = (("per token", "每词元"), ("per byte", "每字节"))
    return [
        Lines(
            x=("lead of the correct token over each other token (logits)", "正确词元对其他每个词元的领先（logit）"),
            y=("perplexity", "困惑度"),
            curves=[Curve(sized[name], list(LEADS), limits[name][0]) for name in limits],
            log_y=True,
        ),
        Lines(
            x=("context (bytes)", "上下文（字节）"),
            y=("perplexity per byte of one GPT", "同一个 GPT 的每字节困惑度"),
            curves=[
                curve(name, sizes.contexts, by_context[:, n].T, bounds=(1.0, None)) for n, name in enumerate(windows)
            ],
            log_x=True,
            ticks=[float(context) for context in sizes.contexts],
        ),
        Bars(
            x=(f"perplexity of a {ORDER}-gram, the same text", f"{ORDER}-gram 的困惑度，同一文本"),
            groups=[UNITS[name][0] for name in UNITS],
            series=[_series(kinds[n], [by_unit[name][n] for name in UNITS]) for n in range(2)],
            log=True,
        ),
    ]


def _series(name: Pair, values: Sequence[np.ndarray]) -> BarSeries:
    found = [measured(name, row, bounds=(1.0, None)) for row in values]
    return BarSeries(
        name,
        [one.value for one in found],
        [one.low or one.value for one in found],
        [one.high or one.value for one in found],
    )


def _units(vocabularies: dict[str, int], by_unit: dict[str, np.ndarray]) -> Rows:
    return Rows(
        (f"A {ORDER}-gram on the same text in different units, means over seeds",
         f"同一文本、不同单位下的 {ORDER}-gram，各种子的均值"),
        [("unit", "单位"), ("vocabulary", "词表大小"), ("perplexity per token", "每词元困惑度"),
         ("perplexity per byte", "每字节困惑度"), ("bits per byte", "每字节比特数")],
        [[UNITS[name][0], float(vocabularies[name]), *map(float, by_unit[name].mean(axis=1))] for name in UNITS],
    )  # fmt: skip


def _summary(
    uniform: float,
    best: float,
    infinite: bool,
    protocols: list[Measured],
    units: list[Measured],
    by_unit: dict[str, np.ndarray],
) -> Pair:
    errors = short(uniform, 2), short(best, 2)
    never = ("infinite", "无穷大") if infinite else ("finite", "有限值")
    contexts = " / ".join(short(one.value, 3) for one in protocols)
    tokens = " / ".join(short(one.value, 3) for one in units)
    bits = " / ".join(short(float(table[2].mean()), 3) for table in by_unit.values())
    return (
        f"A uniform guess has the vocabulary size as its perplexity up to {errors[0]}, a certain and correct one 1 up "
        f"to {errors[1]}, and a token of probability 0 makes it {never[0]}. In between, the number belongs to its "
        f"protocol (means over seeds): the same GPT on the same text has {contexts} (context {CONTEXTS[-1]}; "
        f"{MIDDLE}, windows side by side; {MIDDLE}, overlapping), and {ORDER}-grams on the same text have {tokens} "
        f"per token in three units, at {bits} bits per byte.",
        f"均匀猜测的困惑度等于词表大小（误差 {errors[0]} 以内），完全确定且正确的猜测为 1（误差 {errors[1]} 以内），概"
        f"率为 0 的词元使它成为{never[1]}。在两端之间，这个数取决于协议（各种子的均值）：同一个 GPT 在同一文本上为 "
        f"{contexts}（上下文 {CONTEXTS[-1]}；{MIDDLE}，窗口首尾相接；{MIDDLE}，窗口重叠），同一文本上的 {ORDER}-gram "
        f"以三种单位计为每词元 {tokens}，对应每字节 {bits} 比特。",
    )


def _protocol(sizes: Sizes, vocabularies: dict[str, int]) -> Pair:
    listed = ", ".join(f"{size:,}" for size in vocabularies.values())
    return (
        f"sample:{SAMPLE}, its first 2 million characters; files shuffled by {sizes.seeds} seeds, {sizes.scored:,} "
        f"characters from up to {PIECES} files held out and scored, {sizes.trained:,} of the others trained on. "
        f"Limits: a model that knows the text, vocabularies of {listed} tokens. GPT: bytes, width 64, 2 layers, 4 "
        f"heads, windows of {CONTEXTS[-1]}, Adam at 0.003 falling to 0, {sizes.steps} steps of 16 windows. "
        "Perplexity: the exponential of the mean loss over every token but the first, each counted once, in windows "
        f"that start a stride apart; overlapping: an eighth of the context. Units: modified Kneser-Ney {ORDER}-grams; "
        "subwords are byte-level BPE, learned from all the text.",
        f"sample:{SAMPLE} 的前 200 万个字符；文件按 {sizes.seeds} 个种子打乱，从至多 {PIECES} 个文件中留出 "
        f"{sizes.scored:,} 个字符用于评分，其余文件中 {sizes.trained:,} 个字符用于训练。极限：知道文本的模型，词表大小"
        f"为 {listed}。GPT：字节，宽度 64，2 层，4 头，窗口 {CONTEXTS[-1]}，Adam，学习率 0.003 降至 0，{sizes.steps} "
        "步，每步 16 个窗口。困惑度：除第一个外每个词元计一次，平均损失的指数，窗口按步长依次开始；重叠时步长为上下文"
        f"的八分之一。单位：修正 Kneser-Ney {ORDER}-gram；子词为字节级 BPE，从全部文本中学得。",
    )


STUDY = Study(
    number=1,
    title=(
        "Perplexity is 1 at best, infinite at worst, and the vocabulary size for a uniform guess",
        "困惑度最好为 1，最坏为无穷大，均匀猜测时等于词表大小",
    ),
    claim=(
        "Perplexity, the exponential of the mean negative log-likelihood, is 1 in the best case and infinite in the "
        "worst; the baseline, random prediction, has the number of distinct tokens in the vocabulary.",
        "困惑度是平均负对数似然的指数，最好的情况下为 1，最坏的情况下为正无穷大，基线是随机预测，困惑度为词表中唯一词"
        "元的数量。",
    ),
    sources=(("002", "循环神经网络"),),
    rule=(
        "It holds if, for every vocabulary, a uniform guess has the vocabulary size and a certain and correct one "
        f"has 1 within a relative error of {CLOSE:g}, and a token of probability 0 makes it infinite; otherwise it "
        "fails.",
        f"若对每个词表，均匀猜测的困惑度等于词表大小，完全确定且正确的猜测为 1（相对误差 {CLOSE:g} 以内），且概率为 0 "
        "的词元使其为无穷大，则成立；否则不成立。",
    ),
    remarks=(
        (
            "A first run on another sample, of which few documents were held out, was discarded; the context of "
            "16 in the summary was chosen after seeing that overlap hardly matters at 128.",
            "最初在另一份样本上的运行因留出的文档太少而弃用；概述中的上下文 16 是在看到 128 时重叠几乎没有影响之"
            "后选定的。",
        ),
        (
            "Perplexities per token of different tokenizers cannot be compared: a larger unit has more of everything "
            "in it. Bits per byte can be.",
            "不同分词器的每词元困惑度不可比较：单位越大，每个单位包含的信息越多。每字节比特数则可以比较。",
        ),
        (
            "Right after the start of a window a token has hardly any context, so overlapping windows give a lower "
            "number for the same model.",
            "窗口开头的词元几乎没有上下文，因此同一个模型在窗口重叠时得到的数值更低。",
        ),
        (
            "The vocabulary counts every token that the model spreads probability over, including special tokens that "
            "never occur.",
            "词表大小包括模型会分配概率的每个词元，也包括从不出现的特殊词元。",
        ),
    ),
    measure=measure,
)
