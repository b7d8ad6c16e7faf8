"""Clipping tames exploding gradients, and does nothing for vanishing ones

The same RNN is trained twice from the same seed, with and without clipping the norm of its gradient. Exploding: text,
with a recurrent matrix whose gradients grow. Vanishing: recall of a symbol read long ago, with usual initial weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from seqloom.core.network import Network
from seqloom.core.progress import Reporter
from seqloom.pages.formats import short
from seqloom.pages.plots import Bars, BarSeries
from seqloom.studies._gradients import set_radius
from seqloom.studies._study import Finding, Measured, Study, Verdict, measured
from seqloom.studies._training import ASK, RECALL_TOKENS, SYMBOLS, clipped, network, recall, stretches, text

WIDTH, STEPS, LENGTH, CLIP = 32, 64, 24, 1.0  # STEPS of a sequence of text, LENGTH of one of recall
RATES = {"sgd": 0.3, "adam": 1e-2}
LOST = 10.0  # nats per character: more, or no number, is a run that diverged, and counts as this
LAST = 20  # updates over which the loss is averaged
NEAR, FAR = 2, 20  # tokens between symbol and question
SMALL = 0.05  # of accuracy: a difference that does not matter
CASES = {  # activation, spectral radius, optimiser
    ("relu", 1.3, "sgd"): ("ReLU, SGD", "ReLU，SGD"),
    ("relu", 1.3, "adam"): ("ReLU, Adam", "ReLU，Adam"),
    ("tanh", 2.5, "sgd"): ("tanh, SGD", "tanh，SGD"),
    ("tanh", 2.5, "adam"): ("tanh, Adam", "tanh，Adam"),
}
HOW = {0.0: ("without clipping", "不裁剪"), CLIP: ("with clipping", "裁剪")}
Case = tuple[str, float, str]


def measure(quick: bool, progress: Reporter) -> Finding:
    seeds, updates, recalls = (2, 4, 4) if quick else (5, 120, 150)
    ids, tokens, digest = text()
    losses = {(case, clip): [] for case in CASES for clip in HOW}  # type: ignore[var-annotated]
    norms = {(case, clip): [] for case in CASES for clip in HOW}  # type: ignore[var-annotated]
    right = {(distance, clip): [] for distance in (NEAR, FAR) for clip in HOW}  # type: ignore[var-annotated]
    shares: dict[float, list[float]] = {clip: [] for clip in HOW}
    for seed in range(seeds):
        for n, case in enumerate(CASES):
            progress.update((seed + n / 6) / seeds, {"doing": f"seed {seed}, {CASES[case][0]}"})
            for clip in HOW:
                loss, norm = _explode(case, clip, ids, tokens, updates, seed)
                losses[case, clip].append(loss)
                norms[case, clip].append(norm)
        progress.update((seed + 4 / 6) / seeds, {"doing": f"seed {seed}, recall"})
        for distance, clip in right:
            right[distance, clip].append(_recalled(distance, clip, recalls, seed))
        for clip in HOW:
            shares[clip].append(_share(clip, seed))
    sizes = (seeds, updates, recalls)
    return _finding(sizes, losses, norms, right, shares, digest)


def _train(
    model: Network, loss: Callable[[torch.Generator], Tensor], optimizer: str, clip: float, updates: int, seed: int
) -> tuple[list[float], list[float]]:
    """Losses and gradient norms before clipping; ends where a loss or a norm is no number any more."""
    draw = torch.Generator().manual_seed(seed)
    parameters = list(model.parameters())
    kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
    descent = kinds[optimizer](parameters, lr=RATES[optimizer])
    losses, norms = [], []
    for _ in range(updates):
        descent.zero_grad()
        value = loss(draw)
        value.backward()
        norm = clipped(parameters, clip)
        if not (math.isfinite(norm) and math.isfinite(float(value.detach()))):
            losses.append(LOST)
            break
        losses.append(float(value.detach()))
        norms.append(norm)
        descent.step()
    return losses, norms


def _explode(case: Case, clip: float, ids: Tensor, tokens: int, updates: int, seed: int) -> tuple[float, float]:
    """The loss at the end, and the largest gradient norm that an update was made with."""
    activation, radius, optimizer = case
    model = network("rnn", tokens, seed, width=WIDTH, activation=activation)
    set_radius(model, radius)

    def loss(draw: torch.Generator) -> Tensor:
        inputs, targets = stretches(ids, 8, STEPS, draw)
        return cross_entropy(model(inputs)[0].flatten(0, 1), targets.flatten())

    losses, norms = _train(model, loss, optimizer, clip, updates, seed)
    ended = losses[-1:] if len(losses) < updates or losses[-1] == LOST else losses[-LAST:]
    largest = max(norms, default=0.0)
    return min(LOST, float(np.mean(ended))), min(clip, largest) if clip else largest


def _recalled(distance: int, clip: float, updates: int, seed: int) -> float:
    model = network("rnn", RECALL_TOKENS, seed, outputs=SYMBOLS, width=WIDTH)

    def loss(draw: torch.Generator) -> Tensor:
        inputs, symbols = recall(32, LENGTH, distance, draw)
        return cross_entropy(model.final(inputs), symbols)

    _train(model, loss, "adam", clip, updates, seed)
    with torch.inference_mode():
        inputs, symbols = recall(1024, LENGTH, distance, torch.Generator().manual_seed(10**6))
        return float((model.final(inputs).argmax(-1) == symbols).double().mean())


def _share(clip: float, seed: int) -> float:
    """Gradient at the vectors of the symbols, relative to that at the vector of the question, FAR tokens later. If
    clipped, a hundredth of the norm is left, so that clipping does something."""
    model = network("rnn", RECALL_TOKENS, seed, outputs=SYMBOLS, width=WIDTH).double()
    inputs, symbols = recall(32, LENGTH, FAR, torch.Generator().manual_seed(seed))
    cross_entropy(model.final(inputs), symbols).backward()
    parameters = list(model.parameters())
    clipped(parameters, clipped(parameters, 0.0) / 100 if clip else 0.0)
    table = next(model.embed.parameters()).grad
    assert table is not None
    return float(table[:SYMBOLS].norm() / table[ASK].norm())


def verdict(explosion: list[Measured], vanishing: Measured) -> Verdict:
    """From differences with less without clipping: of the loss in every case, and of far recall."""
    if (vanishing.low or 0.0) > SMALL:
        return "fails"
    helped = [(one.high or 0.0) < 0 for one in explosion]
    if (vanishing.high or 0.0) > SMALL:
        return "untold"
    return "holds" if all(helped) else "conditions" if any(helped) else "fails"


def _finding(
    sizes: tuple[int, int, int],
    losses: dict[tuple[Case, float], list[float]],
    norms: dict[tuple[Case, float], list[float]],
    right: dict[tuple[int, float], list[float]],
    shares: dict[float, list[float]],
    digest: str,
) -> Finding:
    numbers, explosion = [], []
    for case, title in CASES.items():
        for clip, how in HOW.items():
            numbers.append(measured((f"loss, {title[0]}, {how[0]}", f"损失，{title[1]}，{how[1]}"), losses[case, clip]))
            said = (
                f"largest norm used, {title[0]}, {how[0]} (log10)",
                f"所用的最大范数，{title[1]}，{how[1]}（log10）",
            )
            numbers.append(measured(said, np.log10(norms[case, clip])))
        gap = np.array(losses[case, CLIP]) - np.array(losses[case, 0.0])
        said = (f"loss, {title[0]}, with less without clipping", f"损失，{title[1]}，裁剪减不裁剪")
        explosion.append(measured(said, gap, ("below 0", "低于 0")))
    for (distance, clip), values in right.items():
        said = (
            f"symbols recalled over {distance} tokens, {HOW[clip][0]}",
            f"相隔 {distance} 个词元记住的符号，{HOW[clip][1]}",
        )
        numbers.append(measured(said, values, bounds=(0.0, 1.0)))
    gap = np.array(right[FAR, CLIP]) - np.array(right[FAR, 0.0])
    said = (f"symbols recalled over {FAR} tokens, with less without", f"相隔 {FAR} 个词元记住的符号，裁剪减不裁剪")
    vanishing = measured(said, gap, ("0", "0"))
    for clip, how in HOW.items():
        said = (
            f"gradient {FAR} tokens before the question, relative, {how[0]}",
            f"问题之前 {FAR} 个词元处的相对梯度，{how[1]}",
        )
        numbers.append(measured(said, shares[clip], bounds=(0.0, None)))
    return Finding(
        verdict=verdict(explosion, vanishing),
        summary=_summary(losses, norms, explosion, right, shares),
        protocol=_protocol(*sizes),
        numbers=[*explosion, vanishing, *numbers],
        figure=[_loss_bars(losses), _recall_bars(right)],
        caption=(
            "Loss where gradients explode, and recall where they vanish, with and without clipping; spans are 95 % "
            "intervals over seeds",
            "梯度爆炸时的损失与梯度消失时的记忆准确率，裁剪与不裁剪；误差线为各种子的 95 % 置信区间",
        ),
        data={"sample:python-docs": digest},
    )


def _series(how: tuple[str, str], found: list[Measured]) -> BarSeries:
    low = [one.value if one.low is None else one.low for one in found]
    high = [one.value if one.high is None else one.high for one in found]
    return BarSeries(how, [one.value for one in found], low, high)


def _loss_bars(losses: dict[tuple[Case, float], list[float]]) -> Bars:
    return Bars(
        ("nats per character at the end", "最终每字符的奈特数"),
        list(CASES.values()),
        [_series(how, [measured(how, losses[c, clip], bounds=(0, None)) for c in CASES]) for clip, how in HOW.items()],
        title=(f"Exploding: loss on text ({LOST:g}: diverged)", f"爆炸：文本上的损失（{LOST:g}：发散）"),
    )


def _recall_bars(right: dict[tuple[int, float], list[float]]) -> Bars:
    groups = [(f"over {distance} tokens", f"相隔 {distance} 个词元") for distance in (NEAR, FAR)]
    series = [
        _series(how, [measured(how, right[distance, clip], bounds=(0, 1)) for distance in (NEAR, FAR)])
        for clip, how in HOW.items()
    ]
    title = (f"Vanishing: symbols recalled (chance: {1 / SYMBOLS:g})", f"消失：记住的符号比例（随机：{1 / SYMBOLS:g}）")
    return Bars(("share", "比例"), groups, series, title=title)


def _summary(
    losses: dict[tuple[Case, float], list[float]],
    norms: dict[tuple[Case, float], list[float]],
    explosion: list[Measured],
    right: dict[tuple[int, float], list[float]],
    shares: dict[float, list[float]],
) -> tuple[str, str]:
    pairs = [" → ".join(short(float(np.mean(losses[case, clip])), 3) for clip in HOW) for case in CASES]
    told = ["; ".join(f"{title[n]} {pair}" for title, pair in zip(CASES.values(), pairs, strict=True)) for n in (0, 1)]
    helped = [title for title, one in zip(CASES.values(), explosion, strict=True) if (one.high or 0.0) < 0]
    english = "; ".join(title[0] for title in helped) or "none"
    chinese = "；".join(title[1] for title in helped) or "无"
    largest = f"{max(max(norms[case, 0.0]) for case in CASES):.1e}"
    lost = sum(value == LOST for case in CASES for value in losses[case, 0.0])
    kept = sum(value == LOST for case in CASES for value in losses[case, CLIP])
    far, near = (
        " → ".join(short(float(np.mean(right[distance, clip])), 3) for clip in HOW) for distance in (FAR, NEAR)
    )
    share = " → ".join(short(float(np.mean(shares[clip])), 2) for clip in HOW)
    return (
        f"Without clipping, updates used gradients of norm up to {largest}. Loss without → with clipping: {told[0]}. "
        f"It is lower by the whole interval for: {english}. {lost} → {kept} runs diverged. "
        f"Where gradients vanish, recall over {FAR} tokens is {far} (over {NEAR}: {near}), and the far gradient "
        f"relative to the near one {share}.",
        f"不裁剪时，更新所用梯度的范数最大达 {largest}。不裁剪 → 裁剪的损失：{told[1].replace('; ', '；')}。整个"
        f"置信区间都更低的情形：{chinese}。发散的训练有 {lost} → {kept} 次。在梯度消失时，相隔 "
        f"{FAR} 个词元的记忆准确率为 {far}（相隔 {NEAR} 个：{near}），远处与近处梯度之比为 {share}。",
    )


def _protocol(seeds: int, updates: int, recalls: int) -> tuple[str, str]:
    return (
        f"seqloom's rnn, width {WIDTH}, {seeds} seeds, the same with and without clipping; norm of the whole gradient "
        f"clipped at {CLIP:g}. Exploding: characters of sample:python-docs, sequences of {STEPS}, 8 per update, "
        f"{updates} updates of SGD at {RATES['sgd']:g} or Adam at {RATES['adam']:g}; spectral radius at first 1.3 "
        f"(ReLU) or 2.5 (tanh); mean training loss of the last {LAST} updates. Vanishing: tanh, usual initial "
        f"weights, one of {SYMBOLS} symbols in {LENGTH} tokens of noise, asked for at the end; {recalls} updates of "
        "32 sequences, Adam. Relative gradient: at the embeddings of symbols, divided by that at the embedding of the "
        "question, before training; here clipping leaves a hundredth of the norm.",
        f"seqloom 的 rnn，宽度 {WIDTH}，{seeds} 个种子，裁剪与不裁剪时相同；整个梯度的范数裁剪到 {CLIP:g}。爆炸："
        f"sample:python-docs 的字符，序列长 {STEPS}，每次更新 8 条，更新 {updates} 次，SGD（{RATES['sgd']:g}）或 Adam（"
        f"{RATES['adam']:g}）；初始谱半径为 1.3（ReLU）或 2.5（tanh）；取最后 {LAST} 次更新的平均训练损失。消失：tanh，"
        f"通常的初始权重，{LENGTH} 个噪声词元中有 {SYMBOLS} 个符号之一，在末尾提问；{recalls} 次更新，每次 32 条序列，"
        "Adam。相对梯度：训练之前符号嵌入处的梯度除以问题嵌入处的梯度；此处裁剪只保留范数的百分之一。",
    )


STUDY = Study(
    number=4,
    title=(
        "Clipping tames exploding gradients, and does nothing for vanishing ones",
        "梯度裁剪能抑制梯度爆炸，对梯度消失不起作用",
    ),
    claim=("Exploding gradients can be solved by clipping.", "梯度爆炸：可采用梯度截断（裁剪）解决。"),
    sources=(("001", "梯度消失 / 梯度爆炸"),),
    rule=(
        "It holds if clipping lowers the loss by the whole interval of the paired difference in all four cases of "
        "explosion, under conditions if in some, and fails if in none. It also fails if clipping improves far recall "
        f"by more than {SMALL:g}, and cannot be told if that is not excluded.",
        "若在四种爆炸情形中，裁剪都使损失下降（以配对差值的整个置信区间为准），则成立；若只在部分情形中如此，则为有条"
        f"件成立；若都不如此，则不成立。若裁剪使远距离记忆提高超过 {SMALL:g}，也不成立；若不能排除这一点，则无法判断。",
    ),
    remarks=(
        (
            "Activation and spectral radius were chosen with a trial on the first seed, so that gradients do explode.",
            "激活函数和谱半径是在第一个种子上试验后选定的，使梯度确实爆炸。",
        ),
        (
            "Clipping multiplies the whole gradient by one number. It bounds an update, but does not change its "
            "direction: what vanished relative to the rest stays so, and so does a direction that is mostly noise.",
            "裁剪把整个梯度乘以同一个数。它限制更新的大小，但不改变方向：相对于其余部分已经消失的仍然消失，大部分是噪"
            "声的方向也仍然如此。",
        ),
        (
            "Adam divides by the recent size of gradients and so limits updates by itself.",
            "Adam 会除以最近梯度的大小，因而自身就限制了更新的幅度。",
        ),
    ),
    measure=measure,
)
