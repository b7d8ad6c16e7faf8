"""An RNN cannot use far context, an LSTM can, and attention reaches it in one step

One symbol in a sequence of noise has to be recalled at the end. The distance between symbol and question is drawn anew
for every sequence; accuracy is measured by distance. All models have the same number of parameters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from seqloom.core.model import ModelConfig
from seqloom.core.network import Network
from seqloom.core.progress import Reporter
from seqloom.lab.matching import match_size
from seqloom.pages.formats import short
from seqloom.pages.plots import Level, Lines
from seqloom.runs.registry import section
from seqloom.studies._models import parameters
from seqloom.studies._study import Finding, Measured, Rows, Study, Verdict, curve, measured
from seqloom.studies._training import NOISE, RECALL_TOKENS, SYMBOLS, clipped, network, recall

LENGTH, ROWS, CLIP, SIZE = 66, 32, 1.0, 12_000
DISTANCES = (1, 2, 4, 8, 16, 32, 64)
NEAR, FAR = 2, 64
GOOD, POOR = 0.9, 0.5  # accuracies that count as recalled, and as not
RATES = (1e-2, 3e-3)
MODELS: dict[str, tuple[tuple[str, str], dict[str, Any]]] = {
    "rnn": (("RNN", "RNN"), {}),
    "lstm": (("LSTM", "LSTM"), {}),
    "gpt": (
        ("attention, one layer", "注意力，一层"),
        {"width": 32, "depth": 1, "heads": 2, "context": LENGTH, "preset": "llama"},
    ),
}


def measure(quick: bool, progress: Reporter) -> Finding:
    seeds, updates, rows = (2, 2, 32) if quick else (4, 300, 256)
    sizes = {name: _matched(name) for name in MODELS}
    found: dict[str, np.ndarray] = {}  # by model: (distances, seeds)
    pilots: dict[
        str, dict[float, float]
    ] = {}  # by model and rate: mean accuracy of the first seed, which is not reported
    for n, name in enumerate(MODELS):

        def run(seed: int, rate: float, name: str = name, n: int = n) -> list[float]:
            progress.update((n + seed / (seeds + 1)) / len(MODELS), {"doing": f"{name}, rate {rate:g}, seed {seed}"})
            model = network(name, RECALL_TOKENS, seed, outputs=SYMBOLS, **sizes[name])
            _train(model, rate, updates, seed)
            return [_accuracy(model, distance, rows) for distance in DISTANCES]

        pilots[name] = {rate: float(np.mean(run(0, rate))) for rate in RATES}
        rate = max(pilots[name], key=pilots[name].__getitem__)
        found[name] = np.array([run(seed, rate) for seed in range(1, seeds + 1)]).T
    counts = {name: parameters(network(name, RECALL_TOKENS, 0, outputs=SYMBOLS, **sizes[name])) for name in MODELS}
    return _finding((seeds, updates, rows), found, pilots, counts)


def _matched(name: str) -> dict[str, Any]:
    """Options with which a model has SIZE parameters, embedding and output layer included."""

    def count(config: ModelConfig) -> int:
        return parameters(network(name, RECALL_TOKENS, 0, outputs=SYMBOLS, **_options(config)))

    return _options(match_size(section("models", {"name": name, **MODELS[name][1]}), SIZE, count, name))


def _options(config: ModelConfig) -> dict[str, Any]:
    return config.model_dump(exclude={"dropout"})


def _train(model: Network, rate: float, updates: int, seed: int) -> None:
    draw, weights = torch.Generator().manual_seed(seed), list(model.parameters())
    optimizer = torch.optim.Adam(weights, lr=rate)
    for _ in range(updates):
        distances = torch.tensor(DISTANCES)[torch.randint(len(DISTANCES), (ROWS,), generator=draw)]
        inputs, symbols = recall(ROWS, LENGTH, distances, draw)
        optimizer.zero_grad()
        cross_entropy(model.final(inputs), symbols).backward()
        clipped(weights, CLIP)
        optimizer.step()


@torch.inference_mode()
def _accuracy(model: Network, distance: int, rows: int) -> float:
    inputs, symbols = recall(rows, LENGTH, distance, torch.Generator().manual_seed(10**6 + distance))
    return float((model.final(inputs).argmax(-1) == symbols).double().mean())


def verdict(near: dict[str, Measured], far: dict[str, Measured]) -> Verdict:
    """By model, the accuracy at a small and at the largest distance."""
    if (far["rnn"].low or 0.0) > GOOD:
        return "fails"
    if (near["rnn"].low or 0.0) < GOOD or (far["rnn"].high or 1.0) > POOR:
        return "untold"
    others = [(far[name].low or 0.0) > GOOD for name in ("lstm", "gpt")]
    return "holds" if all(others) else "conditions"


def _finding(
    sizes: tuple[int, int, int],
    found: dict[str, np.ndarray],
    pilots: dict[str, dict[float, float]],
    counts: dict[str, int],
) -> Finding:
    numbers: list[Measured] = []
    near, far = {}, {}
    for name, (title, _) in MODELS.items():
        said = {distance: ("recalled", "能记住") for distance in DISTANCES if name != "rnn" or distance <= NEAR}
        table = {}
        for distance, row in zip(DISTANCES, found[name], strict=True):
            label = (f"recalled over {distance} tokens, {title[0]}", f"相隔 {distance} 个词元的准确率，{title[1]}")
            claimed = said.get(distance, ("not recalled", "记不住") if distance == FAR else ("", ""))
            table[distance] = measured(label, row, claimed, bounds=(0.0, 1.0))
        near[name], far[name] = table[NEAR], table[FAR]
        numbers += table.values()
    rows: list[list[tuple[str, str] | float | str]] = [
        [title, counts[name], *pilots[name].values()] for name, (title, _) in MODELS.items()
    ]
    heads = [("model", "模型"), ("parameters", "参数量")]
    heads += [(f"accuracy at rate {rate:g}", f"学习率 {rate:g} 时的准确率") for rate in RATES]
    return Finding(
        verdict=verdict(near, far),
        summary=_summary(near, far, sizes[1]),
        protocol=_protocol(*sizes, counts),
        numbers=numbers,
        figure=[
            Lines(
                x=("tokens between symbol and question", "符号与问题之间的词元数"),
                y=("share recalled", "记住的比例"),
                curves=[curve(title, DISTANCES, found[name], bounds=(0, 1)) for name, (title, _) in MODELS.items()],
                log_x=True,
                ticks=[float(distance) for distance in DISTANCES],
                levels=[Level(("chance", "随机"), 1 / SYMBOLS)],
                from_zero=True,
            )
        ],
        caption=(
            "Symbols recalled against distance, equal numbers of parameters; bands are 95 % intervals over seeds",
            "记住的符号比例随距离的变化，参数量相同；色带为各种子的 95 % 置信区间",
        ),
        tables=[Rows(("Sizes, and mean accuracy of the pilot runs", "参数量与试验运行的平均准确率"), heads, rows)],
    )


def _summary(near: dict[str, Measured], far: dict[str, Measured], updates: int) -> tuple[str, str]:
    close, distant = (" / ".join(short(table[name].value, 3) for name in MODELS) for table in (near, far))
    english, chinese = (" / ".join(title[n] for title, _ in MODELS.values()) for n in (0, 1))
    return (
        f"After {updates} updates, {english} recall {close} of symbols over {NEAR} tokens and {distant} over {FAR} "
        f"(chance: {1 / SYMBOLS:g}).",
        f"{updates} 次更新之后，{chinese} 相隔 {NEAR} 个词元的准确率为 {close}，相隔 {FAR} 个为 {distant}（随机："
        f"{1 / SYMBOLS:g}）。",
    )


def _protocol(seeds: int, updates: int, rows: int, counts: dict[str, int]) -> tuple[str, str]:
    english, chinese = (", ".join(f"{MODELS[name][0][n]} {count:,}" for name, count in counts.items()) for n in (0, 1))
    distances, rates = (", ".join(f"{value:g}" for value in values) for values in (DISTANCES, RATES))
    return (
        f"Sequences of {LENGTH} tokens: one of {SYMBOLS} symbols, {NOISE} kinds of noise, a question at the end; "
        f"distances drawn from {distances}. Parameters: {english}, one layer each, attention with rotary positions. "
        f"{updates} updates of {ROWS} sequences, Adam, norm clipped at {CLIP:g}, {seeds} seeds. The learning rate of "
        f"each model is the better of {rates} on one more seed. Accuracy on {rows} new sequences per distance.",
        f"长 {LENGTH} 个词元的序列：{SYMBOLS} 个符号之一，{NOISE} 种噪声，末尾提问；距离从 {distances} 中抽取。参数量："
        f"{chinese}，各为一层，注意力用旋转位置编码。{updates} 次更新，每次 {ROWS} 条序列，Adam，范数裁剪到 {CLIP:g}，"
        f"{seeds} 个种子。每个模型的学习率取 {rates} 中在另一个种子上较好者。每种距离用 {rows} 条新序列测准确率。",
    )


STUDY = Study(
    number=5,
    title=(
        "An RNN cannot use far context, an LSTM can, and attention reaches it in one step",
        "RNN 用不上远处的上下文，LSTM 可以，注意力一步即达",
    ),
    claim=(
        "Because gradients vanish, an RNN cannot handle long-range dependencies; LSTMs capture them through memory "
        "cells and gates, and Transformers model dependencies regardless of position.",
        "由于梯度消失，RNN 无法处理长期依赖关系；LSTM 利用存储单元和门有效捕捉长期依赖，变换器对依赖关系的建模与元素在"
        "序列中的位置无关。",
    ),
    sources=(("000", "什么是 RNN 和 LSTM？"), ("001", "梯度消失 / 梯度爆炸")),
    rule=(
        f"It holds if, by whole intervals, the RNN recalls at least {GOOD:.0%} over {NEAR} tokens but at most "
        f"{POOR:.0%} over {FAR}, and LSTM and attention at least {GOOD:.0%} over {FAR}; under conditions, if these "
        f"two do not both do so; it fails if the RNN recalls {GOOD:.0%} over {FAR}. Otherwise it cannot be told.",
        f"若以整个置信区间计，RNN 相隔 {NEAR} 个词元的准确率至少为 {GOOD:.0%}，相隔 {FAR} 个至多为 {POOR:.0%}，而 "
        f"LSTM 和注意力相隔 {FAR} 个至少为 {GOOD:.0%}，则成立；若后两者并非都如此，则为有条件成立；若 RNN 相隔 {FAR} "
        f"个也达到 {GOOD:.0%}，则不成立。其余情形无法判断。",
    ),
    remarks=(
        (
            "What is measured is what a model learns within a budget, not what it could represent: an RNN with "
            "suitable weights can keep a symbol for ever.",
            "测量的是模型在给定预算内学到的，而不是它能表示的：权重合适的 RNN 可以一直记住一个符号。",
        ),
        (
            "Small and large distances are mixed in training. What a model learns from the largest distance alone is "
            "not measured here.",
            "训练时大小距离混合。只用最大距离训练时模型能学到什么，此处没有测量。",
        ),
    ),
    measure=measure,
)
