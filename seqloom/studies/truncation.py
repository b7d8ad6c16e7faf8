"""Random truncation of back-propagation through time is no better than regular truncation

Full BPTT is the reference. Regular truncation cuts the gradient every K steps, random truncation after pieces of random
length, K on average. Re-weighted, what is not cut is multiplied by 1 / (1 - probability of a cut), which makes the
gradient unbiased (Tallec & Ollivier 2017). Measured: bias and variance of the gradient, and what they do in training.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from seqloom.core.network import Network
from seqloom.core.progress import Reporter
from seqloom.pages.formats import short
from seqloom.pages.plots import Bars, BarSeries, Level, Lines
from seqloom.studies._study import Finding, Measured, Rows, Study, Verdict, curve, exact, measured
from seqloom.studies._training import RECALL_TOKENS, SYMBOLS, network, recall, stretches, text
from seqloom.studies._truncation import (
    CLIP,
    KEEP,
    RATE,
    SCHEMES,
    against,
    every_pattern,
    factors,
    full_gradient,
    gradients,
    train,
)

WIDTH, ROWS = 32, 8
MIDDLE = 16  # mean length of a piece in training on text, and of the numbers that are quoted
SHORT = 8  # the same in training on recall
FAR = 16  # tokens of a sequence of recall: the symbol is the first of them, the question the last
BATCHES = 16  # over which the full gradient varies
MODELS = {"rnn": ("RNN", "RNN"), "lstm": ("LSTM", "LSTM")}
RANDOM = ("random", "reweighted")
CUT = ("regular", *RANDOM)
WORSE, LESS = 0.05, 0.1  # nats per character, share of symbols: a difference that matters


@dataclass
class Sizes:
    seeds: int
    steps: int  # of a sequence of text
    lengths: tuple[int, ...]  # of pieces, on average
    draws: int  # of cuts, for each mean length
    updates: int
    recalls: int  # updates on recall
    patterns: int  # steps of the sequence whose cuts are enumerated


@dataclass
class Results:
    """By model and scheme, or by scheme. Lists have an entry for each seed."""

    estimates: dict[tuple[str, str], list[np.ndarray]] = field(default_factory=dict)  # (lengths, 4) each
    batches: dict[str, list[float]] = field(default_factory=dict)
    loss: dict[str, list[float]] = field(default_factory=dict)
    recalled: dict[str, list[float]] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    held: dict[str, list[float]] = field(default_factory=dict)
    enumerated: dict[str, list[float]] = field(default_factory=dict)


def measure(quick: bool, progress: Reporter) -> Finding:
    size = Sizes(2, 24, (8, 16), 3, 1, 1, 4) if quick else Sizes(6, 64, (4, 8, 16, 32), 64, 200, 200, 9)
    ids, tokens, digest = text()
    known, unknown = ids[: int(0.9 * len(ids))], ids[int(0.9 * len(ids)) :]
    found = Results()

    def batch(draw: torch.Generator) -> tuple[Tensor, Tensor]:
        return stretches(known, ROWS, size.steps, draw)

    for seed in range(size.seeds):
        for n, name in enumerate(MODELS):
            progress.update((seed + n / 3) / size.seeds, {"doing": f"seed {seed}, {name} on text"})
            for scheme in SCHEMES if name == "lstm" else ["full"]:
                model = network(name, tokens, seed, width=WIDTH)
                costs = train(model, batch, scheme, MIDDLE, size.updates, seed)
                if name == "lstm":
                    found.loss.setdefault(scheme, []).append(_loss(model, unknown, size.steps))
                    found.seconds.setdefault(scheme, []).append(costs[0])
                    found.held.setdefault(scheme, []).append(costs[1])
                if scheme == "full":
                    _compare(found, name, model, known, size, seed)
        progress.update((seed + 2 / 3) / size.seeds, {"doing": f"seed {seed}, recall"})
        for scheme in SCHEMES:
            found.recalled.setdefault(scheme, []).append(_recalled(scheme, size.recalls, seed))
    return _finding(size, found, digest)


@torch.inference_mode()
def _loss(model: Network, ids: Tensor, steps: int) -> float:
    inputs, targets = stretches(ids, 256, steps, torch.Generator().manual_seed(0))
    return float(torch.nn.functional.cross_entropy(model(inputs)[0].flatten(0, 1), targets.flatten()))


def _recalled(scheme: str, updates: int, seed: int) -> float:
    """Share of symbols recalled after training; only the last token has a target."""

    def batch(draw: torch.Generator) -> tuple[Tensor, Tensor]:
        inputs, symbols = recall(4 * ROWS, FAR, FAR - 1, draw)
        targets = torch.full_like(inputs, -100)
        targets[:, -1] = symbols
        return inputs, targets

    model = network("lstm", RECALL_TOKENS, seed, outputs=SYMBOLS, width=WIDTH)
    train(model, batch, scheme, SHORT, updates, seed)
    with torch.inference_mode():
        inputs, symbols = recall(1024, FAR, FAR - 1, torch.Generator().manual_seed(10**6))
        return float((model(inputs)[0][:, -1].argmax(-1) == symbols).double().mean())


def _compare(found: Results, name: str, model: Network, ids: Tensor, size: Sizes, seed: int) -> None:
    """Gradients of one batch under every scheme, against the full gradient of the same batch."""
    draw = torch.Generator().manual_seed(seed + 2)
    inputs, targets = stretches(ids, ROWS // 2, size.steps, draw)
    full = full_gradient(model, inputs, targets)
    for scheme in CUT:
        draws = 1 if scheme == "regular" else size.draws
        cuts = [factors(scheme, size.steps, length, draw) for length in size.lengths for _ in range(draws)]
        drawn = gradients(model, inputs, targets, torch.stack(cuts)).split(draws)
        table = np.array([against(full, part) for part in drawn])
        found.estimates.setdefault((name, scheme), []).append(table)
    others = [stretches(ids, ROWS // 2, size.steps, draw) for _ in range(BATCHES)]
    spread = torch.stack([full_gradient(model, *other) for other in others])
    found.batches.setdefault(name, []).append(float(spread.var(dim=0).sum().sqrt() / full.norm()))
    inputs, targets = stretches(ids, ROWS // 2, size.patterns, draw)
    full = full_gradient(model, inputs, targets)
    patterns, chances = every_pattern(size.patterns)
    for scheme, given in (("random", patterns), ("reweighted", patterns / KEEP)):
        mean = chances @ gradients(model, inputs, targets, given)
        found.enumerated.setdefault(scheme, []).append(float((mean - full).norm() / full.norm()))


def superior(loss: list[Measured], accuracy: list[Measured]) -> tuple[list[str], list[str]]:
    """The random schemes that are better than regular truncation, by the whole interval: on text, and in recall."""
    on_text = [scheme for scheme, one in zip(RANDOM, loss, strict=True) if (one.high or 0.0) < 0]
    return on_text, [scheme for scheme, one in zip(RANDOM, accuracy, strict=True) if (one.low or 0.0) > 0]


def verdict(loss: list[Measured], accuracy: list[Measured]) -> Verdict:
    """From the differences to regular truncation, of the random schemes: loss on text, accuracy of recall."""
    better = superior(loss, accuracy)
    if any(better):
        return "fails" if all(better) else "conditions"
    unsure = any((one.low or 0.0) < -WORSE for one in loss) or any((one.high or 0.0) > LESS for one in accuracy)
    return "untold" if unsure else "holds"


def _finding(size: Sizes, found: Results, digest: str) -> Finding:
    middle = size.lengths.index(MIDDLE)
    tables = {key: np.stack(values, axis=-1) for key, values in found.estimates.items()}  # (lengths, 4, seeds)
    numbers: list[Measured] = []
    for name, title in MODELS.items():
        for scheme in CUT:
            numbers += _quoted(title, scheme, tables[name, scheme][middle])
        spread = (
            f"standard deviation between batches, full BPTT, {title[0]}",
            f"各批之间的标准差，完整 BPTT，{title[1]}",
        )
        numbers.append(measured(spread, found.batches[name], bounds=(0.0, None)))
    for scheme, claimed in (("random", ("", "")), ("reweighted", ("0", "0"))):
        said = (
            f"largest bias over all cuts of {size.patterns} steps, enumerated, {SCHEMES[scheme][0]}",
            f"枚举 {size.patterns} 步的所有截断方式得到的最大偏差，{SCHEMES[scheme][1]}",
        )
        numbers.append(exact(said, max(found.enumerated[scheme]), claimed, seeds=len(found.enumerated[scheme])))
    recalled = []
    for scheme, title in SCHEMES.items():
        numbers.append(measured((f"loss on text, {title[0]}", f"文本上的损失，{title[1]}"), found.loss[scheme]))
        said = (f"symbols recalled, {title[0]}", f"记住的符号比例，{title[1]}")
        recalled.append(measured(said, found.recalled[scheme], bounds=(0.0, 1.0)))
    loss, accuracy = (
        _differences("loss on text", "文本上的损失", found.loss),
        _differences("symbols recalled", "记住的符号比例", found.recalled),
    )
    unbiased = [measured(SCHEMES["reweighted"], row) for name in MODELS for row in tables[name, "reweighted"][:, 0]]
    return Finding(
        verdict=verdict(loss, accuracy),
        summary=_summary(tables, middle, unbiased, loss, found, ending(superior(loss, accuracy))),
        protocol=_protocol(size),
        numbers=[*numbers, *recalled, *loss, *accuracy],
        figure=[*_figure(size, tables, float(np.mean(found.batches["lstm"]))), recall_bars(recalled)],
        caption=(
            "Gradients of an LSTM on text under three truncations, and what it recalls after training with them; 95 % "
            "intervals over seeds",
            "文本上 LSTM 在三种截断方式下的梯度，以及用它们训练之后的记忆准确率；各种子的 95 % 置信区间",
        ),
        tables=[_errors(size, tables), _costs(found)],
        data={"sample:python-docs": digest},
    )


def _quoted(title: tuple[str, str], scheme: str, rows: np.ndarray) -> list[Measured]:
    """`rows`: (4, seeds), in the order of `against`."""
    where = (f"{title[0]}, {SCHEMES[scheme][0]}", f"{title[1]}，{SCHEMES[scheme][1]}")
    none = ("unbiased: 1", "无偏：1"), ("unbiased: 0", "无偏：0")
    claimed = none if scheme == "reweighted" else (("", ""), ("", ""))
    found = [
        measured(
            (f"mean along the full gradient, {where[0]}", f"均值在完整梯度上的投影，{where[1]}"), rows[0], claimed[0]
        ),
        measured((f"squared bias, {where[0]}", f"偏差的平方，{where[1]}"), rows[1], claimed[1]),
    ]
    if scheme != "regular":
        found.append(measured((f"variance, {where[0]}", f"方差，{where[1]}"), rows[2], bounds=(0.0, None)))
    return found


def _differences(english: str, chinese: str, found: dict[str, list[float]]) -> list[Measured]:
    no = ("no better", "并不更好")
    regular = np.array(found["regular"])
    return [
        measured(
            (f"{english}, {SCHEMES[s][0]} less regular", f"{chinese}，{SCHEMES[s][1]}减常规"),
            np.array(found[s]) - regular,
            no,
        )
        for s in RANDOM
    ]


def _figure(size: Sizes, tables: dict[tuple[str, str], np.ndarray], batches: float) -> list[Lines]:
    x = ("mean length of a piece, in tokens", "每段的平均长度（词元）")
    ticks = [float(length) for length in size.lengths]
    along = [curve(SCHEMES[scheme], ticks, tables["lstm", scheme][:, 0]) for scheme in CUT]
    error = [curve(SCHEMES[scheme], ticks, np.sqrt(tables["lstm", scheme][:, 3]), bounds=(0.0, None)) for scheme in CUT]
    unbiased, between = Level(("unbiased", "无偏"), 1.0), Level(("between batches", "各批之间"), batches)
    return [
        Lines(
            x, ("mean along the full gradient", "均值在完整梯度上的投影"), along, title=("Bias", "偏差"),
            log_x=True, ticks=ticks, levels=[unbiased],
        ),
        Lines(
            x, ("error, of the full gradient", "误差（相对完整梯度）"), error,
            title=("Error: bias and variance together", "误差：偏差与方差之和"),
            log_x=True, log_y=True, ticks=ticks, levels=[between],
        ),
    ]  # fmt: skip


def recall_bars(found: list[Measured]) -> Bars:
    """Symbols recalled after training, full BPTT and the three truncations."""
    low, high = [one.low or 0.0 for one in found], [one.high or 1.0 for one in found]
    share = ("share of symbols recalled", "记住的符号比例")
    title = (f"Recall over {FAR - 1} tokens, pieces of {SHORT}", f"相隔 {FAR - 1} 个词元的记忆，每段平均 {SHORT} 个")
    series = BarSeries(("LSTM", "LSTM"), [one.value for one in found], low, high)
    return Bars(share, list(SCHEMES.values()), [series], title=title, levels=[Level(("chance", "随机"), 1 / SYMBOLS)])


def ending(better: tuple[list[str], list[str]]) -> tuple[str, str]:
    """Where random truncation was better, in words."""
    names = [[", ".join(SCHEMES[scheme][n] for scheme in found) for found in better] for n in (0, 1)]
    english, chinese = ([name or none for name in row] for row, none in zip(names, ("neither", "无"), strict=True))
    return (
        f"Better than regular by the whole interval: on text {english[0]}; in recall {english[1]}.",
        f"整个置信区间都优于常规截断的：文本上{chinese[0]}；记忆任务上{chinese[1]}。",
    )


def _errors(size: Sizes, tables: dict[tuple[str, str], np.ndarray]) -> Rows:
    rows: list[list[tuple[str, str] | float | str]] = []
    for name, title in MODELS.items():
        for n, length in enumerate(size.lengths):
            for scheme in CUT:
                means = tables[name, scheme][n].mean(axis=-1)
                rows.append([title, str(length), SCHEMES[scheme], *(float(value) for value in means)])
    heads = [("model", "模型"), ("length", "长度"), ("truncation", "截断方式"), ("along", "投影")]
    heads += [("squared bias", "偏差平方"), ("variance", "方差"), ("mean squared error", "均方误差")]
    return Rows(("Relative to the full gradient, means over seeds", "相对于完整梯度，各种子的均值"), heads, rows)


def _costs(found: Results) -> Rows:
    rows: list[list[tuple[str, str] | float | str]] = []
    for scheme, title in SCHEMES.items():
        tables = (found.loss, found.recalled, found.seconds, found.held)
        loss, recalled, seconds, held = (float(np.mean(table[scheme])) for table in tables)
        rows.append([title, loss, recalled, 1e3 * seconds, held / 1e3])
    heads = [("truncation", "截断方式"), ("loss on text", "文本上的损失"), ("symbols recalled", "记住的符号比例")]
    heads += [("CPU ms per update", "每次更新的 CPU 毫秒"), ("kB of activations held", "保留的激活值（kB）")]
    return Rows(
        (
            "LSTM in training; time and memory on text, memory of the largest piece of a sequence",
            "训练中的 LSTM；时间与内存在文本上测得，内存为一个序列中最大的一段",
        ),
        heads,
        rows,
    )


def _summary(
    tables: dict[tuple[str, str], np.ndarray],
    middle: int,
    unbiased: list[Measured],
    loss: list[Measured],
    found: Results,
    end: tuple[str, str],
) -> tuple[str, str]:
    inside = sum((one.low or 0.0) <= 1 <= (one.high or 0.0) for one in unbiased)
    along = " / ".join(short(tables["lstm", s][middle, 0].mean(), 3) for s in CUT)
    error = " / ".join(short(tables["lstm", s][middle, 3].mean(), 3) for s in CUT)
    text_loss, right = (
        " / ".join(short(float(np.mean(table[s])), 3) for s in SCHEMES) for table in (found.loss, found.recalled)
    )
    bias = short(max(found.enumerated["reweighted"]), 2)
    gaps = " and ".join(f"{short(one.value, 2)} [{short(one.low, 2)}, {short(one.high, 2)}]" for one in loss)
    return (
        f"LSTM, pieces of {MIDDLE} tokens, regular / random / re-weighted random: the mean gradient has {along} of the "
        f"full one, the mean squared error is {error}. Re-weighted, {inside} of {len(unbiased)} intervals of "
        f"the mean contain 1, and with all cuts enumerated the bias is {bias}. Loss on text, full BPTT first: "
        f"{text_loss} (random less regular, without and with weights: {gaps}). Symbols recalled over {FAR - 1} "
        f"tokens, further than a piece: {right}.",
        f"LSTM，每段平均 {MIDDLE} 个词元，常规 / 随机 / 加权随机：平均梯度占完整梯度的 {along}，均方误差为 "
        f"{error}。重新加权后，均值的 {len(unbiased)} 个置信区间中有 {inside} 个包含 1，枚举所有截断方式时偏差为 "
        f"{bias}。文本上的损失（首个为完整 BPTT）：{text_loss}（随机减常规，不加权与加权："
        f"{gaps.replace(' and ', '，')}）。相隔 {FAR - 1} 个词元（超过一段）时记住的符号比例：{right}。{end[1]}",
    )


def _protocol(size: Sizes) -> tuple[str, str]:
    lengths = ", ".join(map(str, size.lengths))
    return (
        f"Width {WIDTH}, {size.seeds} seeds (weights, data and cuts). Text: characters of sample:python-docs, "
        f"sequences of {size.steps}, {ROWS} per update, {size.updates} updates of Adam at {RATE:g}, clipped at norm "
        f"{CLIP:g}; loss on the last tenth of the text. Recall: one of {SYMBOLS} symbols, noise, and a question after "
        f"{FAR - 1} tokens; {size.recalls} updates of {4 * ROWS} sequences. There is one update per sequence under "
        f"every scheme, so only gradients differ; pieces of {MIDDLE} on average on text and of {SHORT} in recall. "
        f"Gradients: of the recurrent layer's parameters, after training with full BPTT, on one batch of {ROWS // 2} "
        f"sequences per seed, in double precision; lengths {lengths}; {size.draws} draws of cuts each. Random pieces "
        "consist of chunks of a quarter of the mean length, with a cut after each with probability 1/4, as in "
        "task.truncation=random. Squared bias: without the variance of the mean over draws, so it may be negative. "
        "Memory: bytes that the graph keeps for the backward pass, without parameters. Time: CPU time of this process.",
        f"宽度 {WIDTH}，{size.seeds} 个种子（权重、数据和截断）。文本：sample:python-docs 的字符，序列长 "
        f"{size.steps}，每次更新 {ROWS} 条，用 Adam（学习率 {RATE:g}）更新 {size.updates} 次，梯度范数裁剪到 "
        f"{CLIP:g}；损失在文本的最后十分之一上计算。记忆任务：{SYMBOLS} 个符号之一，随后是噪声，{FAR - 1} 个词元之后提"
        f"问；{size.recalls} 次更新，每次 {4 * ROWS} 条序列。无论哪种截断方式，每个序列只更新一次，因此只有梯度不同；"
        f"文本上每段平均 {MIDDLE} 个词元，记忆任务上平均 {SHORT} 个。梯度：循环层参数的梯度，在完整 BPTT 训练之后，每"
        f"个种子取一批 {ROWS // 2} 条序列，双精度；长度为 {lengths}；每种长度抽取 {size.draws} 次截断。随机的段由平均"
        "长度四分之一的小块组成，每块之后以 1/4 的概率截断，与 task.truncation=random 相同。偏差的平方已扣除均值因抽样"
        "次数有限而带来的方差，因此可能为负。内存：计算图为反向传播保留的字节数，不含参数。时间：本进程的 CPU 时间。",
    )


STUDY = Study(
    number=6,
    title=(
        "Random truncation of back-propagation through time is no better than regular truncation",
        "随机截断的 BPTT 并不比常规截断更好",
    ),
    claim=(
        "Gradients of long sequences can be computed in full, truncated after a fixed number of steps, or truncated at "
        "random. Random truncation is attractive in theory, but no better in practice: a few steps suffice to capture "
        "the dependencies, and its variance offsets what it gains in accuracy.",
        "长序列的梯度可以完整计算、按固定步数截断或随机截断。随机截断在理论上具有吸引力，但在实践中并不比常规截断更好："
        "若干个时间步足以捕获实际的依赖关系，增加的方差抵消了时间步数越多梯度越精确的事实。",
    ),
    sources=(("002", "循环神经网络"), ("Dive into Deep Learning", "Backpropagation Through Time")),
    rule=(
        "Random truncation, re-weighted or not, is better than regular if the whole interval of the paired difference "
        "in training results says so. The claim holds if it is better on neither task, under conditions if on one of "
        f"them, and fails if on both; it cannot be told if an advantage of {WORSE:g} nats on text or {LESS:g} in "
        "recall is not excluded.",
        "若配对差值的整个置信区间都表明随机截断（无论是否加权）的训练结果优于常规截断，则视为更好。在两个任务上都不更"
        f"好则论断成立，只在其中一个上更好则为有条件成立，两个上都更好则不成立；若不能排除文本上 {WORSE:g} 奈特或记忆"
        f"任务上 {LESS:g} 的优势，则无法判断。",
    ),
    remarks=(
        (
            "Length of the pieces, distance of recall and learning rate were chosen with a trial on the first "
            "seed, so that full back-propagation learns the recall and regular truncation learns it slowly. No "
            "correction for several comparisons was made.",
            "片段长度、回忆距离和学习率是在第一个种子上试验后选定的，使完整的反向传播能学会回忆，而固定截断学得慢"
            "。没有对多重比较做校正。",
        ),
        (
            "Pieces of equal mean length are not equally long for the gradient: most tokens lie in pieces longer than "
            "the mean, so random truncation sees further back, and its largest piece needs more memory.",
            "平均长度相同的段对梯度来说并不一样长：大多数词元位于比平均更长的段中，所以随机截断能看得更远，而最长的一"
            "段也需要更多内存。",
        ),
        (
            "Regular truncation always cuts at the same places of a sequence. No gradient reaches what lies before a "
            "cut from what comes after it; a model can only learn to read what its state happens to keep.",
            "常规截断总是在序列的相同位置截断，截断点之后的梯度永远到不了之前的内容；模型只能学会读取状态中恰好留下的"
            "痕迹。",
        ),
        (
            "In practice the parameters are also updated after every piece. Shorter pieces then mean more updates for "
            "the same text, which is no property of the gradient and is left out here.",
            "实践中还会在每一段之后更新参数。段越短，同样的文本更新次数就越多；这不是梯度的性质，此处不予考虑。",
        ),
    ),
    measure=measure,
)
