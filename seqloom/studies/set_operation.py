"""Self-attention without positions is a set operation

Reorder the inputs of self-attention: without positions, the outputs are reordered in the same way and do not otherwise
change. Measured on the parameter-free self-attention of the document, and on a BERT whose positions are set to zero.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqloom.core.backbone import Backbone
from seqloom.core.progress import Reporter
from seqloom.pages.formats import short
from seqloom.pages.plots import Level, Lines
from seqloom.studies._models import backbone
from seqloom.studies._study import Finding, Study, Verdict, curve, exact, measured

SAME, OTHER = 1e-6, 1e-2  # relative changes that count as none, and as clearly different
WIDTH, STD = 64, 0.3  # with a standard deviation of 1, a vector is so much like itself that it attends to little else
NAMES = {  # what is compared, in the order of the figure
    "plain": ("no positions", "无位置编码"),
    "bert": ("BERT, positions set to zero", "位置置零的 BERT"),
    "placed": ("with positions", "有位置编码"),
    "causal": ("no positions, causal mask", "无位置编码，因果掩码"),
}


def measure(quick: bool, progress: Reporter) -> Finding:
    lengths = [4, 32] if quick else [4, 8, 16, 32, 64, 128, 256]
    seeds = 3 if quick else 20
    changes: dict[str, list[list[float]]] = {name: [] for name in NAMES}  # by length, then seed
    exactly: list[float] = []  # without positions, in double precision
    for n, length in enumerate(lengths):
        progress.update(n / len(lengths), {"doing": f"{length} tokens"})
        models = {seed: _models(seed) for seed in range(seeds)}
        for name in NAMES:
            changes[name].append([_change(models[seed][name], length, seed) for seed in range(seeds)])
        for name in ("plain", "bert"):
            exactly += [_change(models[seed][name].double(), length, seed, torch.float64) for seed in range(seeds)]
    return _finding(lengths, seeds, changes, max(exactly))


def _models(seed: int) -> dict[str, Backbone]:
    bert = backbone("bert", seed, width=WIDTH, depth=2, heads=4, positions="learned")
    torch.nn.init.zeros_(next(bert.positions.parameters()))  # type: ignore[union-attr]
    return {
        "plain": backbone("self_attention", seed, width=WIDTH, bidirectional=True),
        "bert": bert,
        "placed": backbone("self_attention", seed, width=WIDTH, bidirectional=True, positions="sinusoidal"),
        "causal": backbone("self_attention", seed, width=WIDTH, context=256),
    }


@torch.inference_mode()
def _change(model: Backbone, length: int, seed: int, dtype: torch.dtype = torch.float32) -> float:
    """Outputs for reordered inputs, less the reordered outputs: the largest difference, relative to the largest "
    "output."""
    draw = torch.Generator().manual_seed(1000 * length + seed)
    x = STD * torch.randn(1, length, WIDTH, generator=draw).to(dtype)
    order = torch.randperm(length, generator=draw)
    if (order == torch.arange(length)).all():
        order = order.roll(1)
    straight, reordered = (_outputs(model, inputs) for inputs in (x, x[:, order]))
    return float((reordered - straight[:, order]).abs().max() / straight.abs().max())


def _outputs(model: Backbone, x: Tensor) -> Tensor:
    return model.encode(x).double()


def verdict(without: float, positions: float, causal: float) -> Verdict:
    """From the largest change without positions, and the smallest with positions and under a causal mask."""
    if without > SAME or positions < OTHER:
        return "fails"
    return "holds" if causal <= SAME else "conditions"


def _finding(lengths: list[int], seeds: int, changes: dict[str, list[list[float]]], exactly: float) -> Finding:
    most = {name: max(map(max, table)) for name, table in changes.items()}
    least = {name: min(map(min, table)) for name, table in changes.items()}
    without = max(most["plain"], most["bert"])
    none = ("0", "0")
    largest = {
        most["plain"]: ("largest change without positions", "无位置编码时的最大变化"),
        most["bert"]: ("the same, BERT with positions set to zero", "同上，位置置零的 BERT"),
        exactly: ("the same, both in double precision", "同上，两者均为双精度"),
    }
    numbers = [exact(name, value, none, seeds=seeds) for value, name in largest.items()]
    said = {"placed": ("not 0", "不为 0"), "causal": ("", "")}
    for name, claimed in said.items():
        means = [sum(column) / len(column) for column in zip(*changes[name], strict=True)]
        title = (f"mean change, {NAMES[name][0]}", f"平均变化，{NAMES[name][1]}")
        numbers.append(measured(title, means, claimed, bounds=(0.0, None)))
    found = short(without, 2), short(least["placed"], 2), short(least["causal"], 2)
    decided = verdict(without, least["placed"], least["causal"])
    where = (" So it holds where every position sees all others.", "因此，它在每个位置都能看到所有其他位置时成立。")
    where = where if decided == "conditions" else ("", "")
    figure = Lines(
        x=("tokens", "词元数"),
        y=("relative change of the outputs", "输出的相对变化"),
        curves=[curve(NAMES[name], lengths, changes[name], bounds=(0.0, None)) for name in NAMES],
        log_x=True,
        log_y=True,
        ticks=[float(n) for n in lengths],
        levels=[Level(("counts as unchanged", "视为未变"), SAME)],
    )
    return Finding(
        verdict=decided,
        summary=(
            f"Reordering the inputs reorders the outputs and changes them by at most {found[0]} of the largest output. "
            f"With positions they change by at least {found[1]}; a causal mask alone, without any positions, changes "
            f"them by at least {found[2]}.{where[0]}",
            f"打乱输入只会以同样的方式打乱输出，输出自身的变化不超过最大输出的 {found[0]}。加上位置编码后变化至少为 "
            f"{found[1]}；没有位置编码、只有因果掩码时，变化也至少为 {found[2]}。{where[1]}",
        ),
        protocol=(
            f"Random vectors of width {WIDTH} (standard deviation {STD:g}), sequences of {lengths[0]} to "
            f"{lengths[-1]} tokens, {seeds} seeds (weights, inputs and order), float32. The models are seqloom's "
            "self_attention (one layer, without parameters) and bert (2 layers, 4 heads, random weights). Change: the "
            "largest absolute difference between the outputs for reordered inputs and the reordered outputs, divided "
            "by the largest absolute output.",
            f"宽度为 {WIDTH} 的随机向量（标准差 {STD:g}），序列长 {lengths[0]} 到 {lengths[-1]} 个词元，{seeds} 个种子"
            "（权重、输入和顺序），float32。模型为 seqloom 的 self_attention（一层，无参数）和 bert（2 层，4 头，随机"
            "权重）。变化：打乱输入后的输出与打乱后的原输出之间的最大绝对差，除以最大的绝对输出值。",
        ),
        numbers=numbers,
        figure=[figure],
        caption=(
            "How much outputs change, beyond being reordered, when inputs are reordered; bands are 95 % intervals",
            "打乱输入时，输出除了相应地重新排列之外还变化了多少；色带为 95 % 置信区间",
        ),
    )


STUDY = Study(
    number=10,
    title=("Self-attention without positions is a set operation", "没有位置编码的自注意力是集合运算"),
    claim=(
        "Basic self-attention does not see the order of its inputs: reorder them, and the outputs are reordered in the "
        "same way and do not otherwise change. It is a set operation; positions have to be added.",
        "基础的自注意力不关心输入的顺序：重新排列输入，输出也以相同的方式重新排列，内容不变。它本质上是集合运算，顺序"
        "信息要靠位置编码。",
    ),
    sources=(("003", "Self-Attention"),),
    rule=(
        f"It holds if no output changes by more than {SAME:g} without positions, with or without a causal mask, and "
        f"each changes by more than {OTHER:g} with positions; under conditions, if a causal mask alone makes order "
        "visible.",
        f"若没有位置编码时（无论有无因果掩码）输出变化都不超过 {SAME:g}，有位置编码时变化都超过 {OTHER:g}，则成立；"
        "若仅因果掩码就能让模型看到顺序，则为有条件成立。",
    ),
    remarks=(
        (
            "The spread of the inputs was lowered from 1 to 0.3 after a first run, at which the causal mask "
            "changed outputs by little (0.00057 at least); the verdict was the same.",
            "第一次运行后，输入的标准差从 1 降到 0.3：原先因果掩码对输出的改变很小（最少 0.00057）；结论相同。",
        ),
        (
            "A GPT without position encodings is therefore not blind to order: what a token can see tells how far it "
            "is from the beginning.",
            "因此，没有位置编码的 GPT 并非看不到顺序：一个词元能看到多少内容，就说明了它离开头有多远。",
        ),
        (
            "Sums of floating-point numbers depend on their order; in double precision the change is that much "
            "smaller.",
            "浮点数求和的结果与顺序有关；用双精度时变化相应地小得多。",
        ),
    ),
    measure=measure,
)
