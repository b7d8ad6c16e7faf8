"""A bidirectional RNN is two one-way models glued together, while attention fuses both sides

One bit stands in the left third of a sequence, one in the right third. In the middle third, every position is asked for
the left bit, for their sum, or for their exclusive or. The sum needs both sides, but is a threshold of a term of the
left and a term of the right; the exclusive or is not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from seqloom.core.backbone import Backbone
from seqloom.core.model import ModelConfig
from seqloom.core.network import Network
from seqloom.core.progress import Reporter
from seqloom.core.state import State
from seqloom.lab.matching import match_size
from seqloom.pages.formats import short
from seqloom.pages.plots import Bars, BarSeries, Level
from seqloom.pages.words import Pair
from seqloom.runs.registry import section
from seqloom.studies._models import backbone, parameters
from seqloom.studies._study import Finding, Measured, Rows, Study, Verdict, measured
from seqloom.studies._training import clipped

THIRD, NOISE, OUTPUTS = 4, 8, 3  # tokens in a third, kinds of noise, classes of the largest task
ROWS, CLIP, SIZE = 32, 1.0, 12_000
GOOD, BOUND, CHANCE = 0.95, 0.75, 0.5
RATES = (3e-3, 1e-3)
TASKS: dict[str, tuple[Pair, Callable[[Tensor, Tensor], Tensor]]] = {
    "left": (("the left bit", "左侧的比特"), lambda left, right: left),
    "sum": (("the sum", "两比特之和"), lambda left, right: left + right),
    "xor": (("the exclusive or", "两比特的异或"), lambda left, right: left ^ right),
}


class Glued(Backbone):
    """Two models that never meet: one reads from the left, one from the right, and their outputs stand side by side."""

    kind = "bidirectional"

    def __init__(self, forward: Backbone, backward: Backbone) -> None:
        super().__init__()
        self.ahead, self.back = forward, backward
        self.inputs, self.width = forward.inputs or forward.width, forward.width + backward.width

    def forward(self, x: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        return torch.cat((self.ahead.encode(x), self.back.encode(x.flip(1)).flip(1)), dim=-1), None


@dataclass(frozen=True)
class Sizes:
    seeds: int
    plain: int  # updates of the tasks that need no fusion
    joint: int  # of the exclusive or, which every model learns late
    rows: int  # to test on, a multiple of 4

    def updates(self, task: str) -> int:
        return self.joint if task == "xor" else self.plain


@dataclass(frozen=True)
class Model:
    title: Pair
    name: str
    options: dict[str, Any]
    glued: bool = False  # two of these
    hidden: bool = False  # a hidden layer before the output


BOTH = {"bidirectional": True}
MODELS = {
    "one": Model(("BiLSTM, one layer", "BiLSTM，一层"), "lstm", BOTH),
    "stacks": Model(("two LSTMs of two layers, glued", "两个两层 LSTM 拼接"), "lstm", {"depth": 2}, glued=True),
    "head": Model(("BiLSTM, one layer, hidden layer after it", "BiLSTM，一层，后接隐藏层"), "lstm", BOTH, hidden=True),
    "two": Model(("BiLSTM, two layers", "BiLSTM，两层"), "lstm", {"depth": 2, **BOTH}),
    "encoder": Model(("Transformer encoder, one layer", "Transformer 编码器，一层"), "bert", {"depth": 1}),
    "deep": Model(("Transformer encoder, two layers", "Transformer 编码器，两层"), "bert", {"depth": 2}),
}
APART, MIXED, ATTENTION = ("one", "stacks"), ("head", "two"), ("encoder", "deep")
Table = dict[tuple[str, str], list[float]]  # by model and task: accuracies of all seeds


def measure(quick: bool, progress: Reporter) -> Finding:
    sizes = Sizes(2, 2, 2, 32) if quick else Sizes(5, 500, 3000, 512)
    found: Table = {}
    pilots: Table = {}  # of one seed at each rate; it is not counted among the others
    counts: dict[str, int] = {}
    done, total = 0, len(MODELS) * len(TASKS)
    for name, model in MODELS.items():
        options = _matched(model)
        counts[name] = parameters(_network(model, options, 0))
        for task in TASKS:
            progress.update(done / total, {"doing": f"{name}, {task}"})
            done += 1

            def run(seed: int, rate: float, model: Model = model, task: str = task, options: Any = options) -> float:
                network = _network(model, options, seed)
                _train(network, task, rate, sizes.updates(task), seed)
                return _accuracy(network, task, sizes.rows, seed)

            pilots[name, task] = [run(0, rate) for rate in RATES]
            rate = RATES[int(np.argmax(pilots[name, task]))]
            found[name, task] = [run(seed, rate) for seed in range(1, sizes.seeds + 1)]
    return _finding(sizes, found, pilots, counts)


def _network(model: Model, options: dict[str, Any], seed: int) -> Network:
    body = backbone(model.name, seed, **options)
    if model.glued:
        body = Glued(body, backbone(model.name, seed + 2000, **options))
    with torch.random.fork_rng():
        torch.manual_seed(seed + 1000)
        embed = nn.Embedding(2 + NOISE, body.inputs or body.width)
        head: nn.Module = nn.Linear(body.width, OUTPUTS)
        if model.hidden:
            head = nn.Sequential(nn.Linear(body.width, body.width), nn.ReLU(), head)
    return Network(embed, body, head).train()


def _matched(model: Model) -> dict[str, Any]:
    """Options with which a model has SIZE parameters, embedding and output layer included."""

    def options(config: ModelConfig) -> dict[str, Any]:
        return config.model_dump(exclude={"dropout"}) | {"dropout": 0.0}

    def count(config: ModelConfig) -> int:
        return parameters(_network(model, options(config), 0))

    config = section("models", {"name": model.name, **model.options})
    return options(match_size(config, SIZE, count, model.name))


def examples(rows: int, task: str, draw: torch.Generator) -> tuple[Tensor, Tensor]:
    """Noise with one bit in the left third and one in the right, (rows, 3 THIRD), and the answer (rows,)."""
    noise = 2 + torch.randint(NOISE, (rows, 3 * THIRD), generator=draw)
    bits, places = torch.randint(2, (2, rows), generator=draw), torch.randint(THIRD, (2, rows), generator=draw)
    return _with_bits(noise, places, bits), TASKS[task][1](bits[0], bits[1])


def fours(count: int, task: str, draw: torch.Generator) -> tuple[Tensor, Tensor]:
    """The same in groups of 4 rows that differ in nothing but the bits: one row for each combination of these.

    Only so is BOUND arithmetic: with drawn bits, the luck of the draw takes a share beyond it.
    """
    noise = 2 + torch.randint(NOISE, (count, 3 * THIRD), generator=draw)
    places = torch.randint(THIRD, (2, count), generator=draw)
    bits = torch.tensor([[0, 0, 1, 1], [0, 1, 0, 1]]).repeat(1, count)
    rows = _with_bits(noise.repeat_interleave(4, dim=0), places.repeat_interleave(4, dim=1), bits)
    return rows, TASKS[task][1](bits[0], bits[1])


def _with_bits(noise: Tensor, places: Tensor, bits: Tensor) -> Tensor:
    every = torch.arange(len(noise))
    noise[every, places[0]], noise[every, 2 * THIRD + places[1]] = bits[0], bits[1]
    return noise


def _answers(model: Network, inputs: Tensor) -> Tensor:
    """Logits in the middle third, (rows, classes, THIRD)."""
    return model.encode(inputs)[:, THIRD : 2 * THIRD].transpose(1, 2)


def _train(model: Network, task: str, rate: float, updates: int, seed: int) -> None:
    draw, weights = torch.Generator().manual_seed(seed), list(model.parameters())
    optimizer = torch.optim.Adam(weights, lr=rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / updates)
    for _ in range(updates):
        inputs, answers = examples(ROWS, task, draw)
        optimizer.zero_grad()
        cross_entropy(_answers(model, inputs), answers[:, None].expand(-1, THIRD)).backward()
        clipped(weights, CLIP)
        optimizer.step()
        schedule.step()


@torch.inference_mode()
def _accuracy(model: Network, task: str, rows: int, seed: int) -> float:
    inputs, answers = fours(rows // 4, task, torch.Generator().manual_seed(10**6 + seed))
    return float((_answers(model.eval(), inputs).argmax(1) == answers[:, None]).double().mean())


def verdict(numbers: dict[tuple[str, str], Measured], best: dict[str, float]) -> Verdict:
    """By model and task, the accuracies; by model, that of its best seed on the exclusive or.

    A seed cannot exceed the bound, but the interval of the mean over seeds that reach it can.
    """

    def reached(name: str, task: str) -> bool:
        return (numbers[name, task].low or 0.0) >= GOOD

    if any(best[name] > BOUND for name in APART):
        return "fails"
    able = all(reached(name, task) for name in APART for task in ("left", "sum"))
    able = able and any(reached(name, "xor") for name in ATTENTION)
    if not able:
        return "untold"
    return "conditions" if any(best[name] >= GOOD for name in MIXED) else "holds"


def _finding(sizes: Sizes, found: Table, pilots: Table, counts: dict[str, int]) -> Finding:
    numbers = {}
    for (name, task), values in found.items():
        title, asked = MODELS[name].title, TASKS[task][0]
        said = {("xor", name in APART): ("not fused", "未融合"), ("xor", name in ATTENTION): ("fused", "融合")}
        label = (f"{asked[0]}, {title[0]}", f"{asked[1]}，{title[1]}")
        numbers[name, task] = measured(label, values, said.get((task, True), ("", "")), bounds=(0.0, 1.0))
    heads = [("model", "模型"), ("task", "任务"), ("parameters", "参数量")]
    heads += [(f"accuracy at rate {rate:g}", f"学习率 {rate:g} 时的准确率") for rate in RATES]
    rows: list[list[Pair | float | str]] = [
        [MODELS[name].title, TASKS[task][0], counts[name], *values] for (name, task), values in pilots.items()
    ]
    best = {name: max(found[name, "xor"]) for name in MODELS}
    decided = verdict(numbers, best)
    return Finding(
        verdict=decided,
        summary=_summary(numbers, best, decided),
        protocol=_protocol(sizes, counts),
        numbers=list(numbers.values()),
        figure=[_panel(numbers, task) for task in TASKS],
        caption=(
            "Accuracy in the middle of the sequence, equal numbers of parameters; intervals over seeds (95 %)",
            "序列中段的准确率，参数量相同；各种子的 95 % 置信区间",
        ),
        tables=[Rows(("Sizes, and accuracy of the pilot runs", "参数量与试验运行的准确率"), heads, rows)],
    )


def _panel(numbers: dict[tuple[str, str], Measured], task: str) -> Bars:
    shown = [numbers[name, task] for name in MODELS]
    ends = [[one.value if end is None else end for one, end in zip(shown, side, strict=True)]
            for side in ([one.low for one in shown], [one.high for one in shown])]  # fmt: skip
    levels = [Level((f"chance: {CHANCE:g}", f"随机：{CHANCE:g}"), CHANCE)]
    levels += [Level((f"most without fusion: {BOUND:g}", f"不融合时的上限：{BOUND:g}"), BOUND)] * (task == "xor")
    return Bars(
        title=TASKS[task][0],
        x=("accuracy", "准确率"),
        groups=[model.title for model in MODELS.values()],
        series=[BarSeries(("accuracy", "准确率"), [one.value for one in shown], *ends)],
        levels=levels,
    )


def _summary(numbers: dict[tuple[str, str], Measured], best: dict[str, float], decided: Verdict) -> Pair:
    def told(names: tuple[str, ...], task: str, n: int) -> str:
        parts = [f"{short(numbers[name, task].value, 3)} ({MODELS[name].title[n]})" for name in names]
        return ", ".join(parts) if n == 0 else "、".join(parts)

    able = [MODELS[name].title for name in MIXED if best[name] >= GOOD]
    where = (
        " So it holds where the two directions never meet; with at least one seed, both sides were fused as well by: "
        f"{'; '.join(english for english, _ in able)}.",
        "因此，该说法在两个方向互不相遇时成立；至少有一个种子下，以下模型也融合了两侧："
        f"{'；'.join(chinese for _, chinese in able)}。",
    )
    where = where if decided == "conditions" else ("", "")
    return (
        f"Accuracy on the exclusive or of a bit on the left and one on the right: {told(APART, 'xor', 0)}; "
        f"{told(MIXED, 'xor', 0)}; {told(ATTENTION, 'xor', 0)}. On the sum, which needs both sides but no fusion: "
        f"{told(APART, 'sum', 0)}; {told(ATTENTION, 'sum', 0)}.{where[0]}",
        f"对左右各一个比特求异或的准确率：{told(APART, 'xor', 1)}；{told(MIXED, 'xor', 1)}；"
        f"{told(ATTENTION, 'xor', 1)}。求和需要两侧、但不需要融合，准确率：{told(APART, 'sum', 1)}；"
        f"{told(ATTENTION, 'sum', 1)}。{where[1]}",
    )


def _protocol(sizes: Sizes, counts: dict[str, int]) -> Pair:
    rates = ", ".join(f"{rate:g}" for rate in RATES)
    least, most = min(counts.values()), max(counts.values())
    return (
        f"Sequences of {3 * THIRD} tokens, {NOISE} kinds of noise; a bit at a random place of the left third, one at a "
        f"random place of the right third, the answer wanted at each of the {THIRD} positions between. {least:,} to "
        f"{most:,} parameters per model; encoders with learned positions and 4 heads. {sizes.plain:,} "
        f"updates of {ROWS} sequences, {sizes.joint:,} for the exclusive or, Adam with a rate that falls to zero, norm "
        f"clipped at {CLIP:g}, {sizes.seeds} seeds; for each model and task the better rate of {rates} on one more "
        f"seed. Accuracy on {sizes.rows} new sequences, in groups of 4 that differ in nothing but the two bits and "
        "have all their combinations. Bound: if the score of each class is a term of what was read from the left plus "
        "a term of what was read from the right, at most 3 of such a group can have the exclusive or right.",
        f"序列长 {3 * THIRD} 个词元，{NOISE} 种噪声；左侧三分之一的随机位置有一个比特，右侧三分之一的随机位置有一个，"
        f"在中间的 {THIRD} 个位置上都要求给出答案。每个模型 {least:,} 到 {most:,} 个参数；编码器用可学习的位置编码，4 "
        f"个头。{sizes.plain:,} 次更新（异或为 {sizes.joint:,} 次），每次 {ROWS} 条序列，Adam，学习率降至零，范数裁剪"
        f"到 {CLIP:g}，{sizes.seeds} 个种子；每个模型和任务的学习率取 {rates} 中在另一个种子上较好者。用 {sizes.rows} "
        "条新序列测准确率，每 4 条一组，组内只有两个比特不同，且含其全部组合。上限：若每个类别的得分是左侧所读内容的一"
        "项加上右侧所读内容的一项，则求异或时每组至多答对 3 条。",
    )


STUDY = Study(
    number=26,
    title=(
        "A bidirectional RNN is two one-way models glued together, while attention fuses both sides",
        "双向 RNN 只是两个单向模型的拼接，注意力则融合两侧",
    ),
    claim=(
        "Attention reads the context on both sides at once. Before it there was only the BiLSTM, which in essence is "
        "two one-way models stacked together and not a thorough fusion of contexts as in the Transformer.",
        "双向 context 融合：注意力同时读入两侧的 context。在此之前只有 BiLSTM，但是其本质只是两个单向建模的叠加，而不"
        "是 Transformer 这种彻底的 context 融合。",
    ),
    sources=(("001", "思想"),),
    rule=(
        f"It holds if both models whose directions never meet (a BiLSTM of one layer, two glued LSTMs) reach "
        f"{GOOD:.0%} on the left bit and on the sum by the whole interval but at most {BOUND:.0%} on the exclusive or "
        f"with every seed, and at least one encoder reaches {GOOD:.0%} there by the whole interval; under conditions, "
        f"if a BiLSTM with a second layer or with a hidden layer after it reaches {GOOD:.0%} there with any seed, "
        f"because then it can fuse. It fails if one of the two exceeds {BOUND:.0%} with any seed; otherwise it cannot "
        "be told.",
        f"若两个方向互不相遇的模型（单层 BiLSTM、两个 LSTM 拼接）按整个置信区间在左侧比特与求和上都达到 {GOOD:.0%}，"
        f"而在异或上每个种子都不超过 {BOUND:.0%}，且至少一个编码器在异或上按整个置信区间达到 {GOOD:.0%}，则成立；若两"
        f"层 BiLSTM 或后接隐藏层的 BiLSTM 有任一种子在异或上也达到 {GOOD:.0%}（说明它能够融合），则为有条件成立。若这"
        f"两个模型之一有任一种子超过 {BOUND:.0%}，则不成立；其余无法判断。",
    ),
    remarks=(
        (
            "In pilot runs with thirds of 6 tokens and 400 updates only the encoders learned the exclusive or; with "
            "3,000 updates both BiLSTMs that can fuse learned it too, so it has 3,000 here, and thirds of 4. A smaller "
            "budget would have hidden that.",
            "在每段 6 个词元、400 次更新的试验中，只有编码器学会了异或；3,000 次更新时，两种能够融合的 BiLSTM 也学会了"
            "，因此这里异或用 3,000 次更新，每段 4 个词元。预算较小时看不到这一点。",
        ),
        (
            "That the glued models stay at or below the bound on these groups of four is arithmetic, not luck of "
            "training: this part of the rule could not turn out otherwise. The exclusive or is the plainest case that "
            "needs fusion; how often real text does is not measured here.",
            "在这些四条一组的序列上，拼接的模型不超过上限是算术上的必然，与训练的运气无关：规则的这一部分不会有别的结果。"
            "异或是需要融合的最简单的情形；真实文本中有多常见，这里没有测量。",
        ),
        (
            "An encoder layer has more than attention: a feed-forward network follows it. Which of the two fuses the "
            "sides here is not told apart.",
            "编码器层除注意力之外还有其后的前馈网络。这里没有区分是两者中的哪一个完成了融合。",
        ),
        (
            "In a BiLSTM as it is commonly stacked, each layer reads the outputs of both directions of the layer "
            "below; ELMo (Peters et al. 2018) keeps the two directions apart in all layers.",
            "通常堆叠的 BiLSTM，每一层读入下一层两个方向的输出；ELMo（Peters 等，2018）则在所有层中让两个方向各自独"
            "立。",
        ),
    ),
    measure=measure,
)
