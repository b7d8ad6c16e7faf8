"""The texts about what changes with scale, in English and Chinese side by side."""

from __future__ import annotations

LADDER: dict[str, tuple[str, str]] = {
    "ladder crosses": (
        "{ahead} is expected to pass {behind} near {at} (between {low} and {high}).",
        "预计 {ahead} 将在约 {at} 处超过 {behind}（介于 {low} 与 {high} 之间）。",
    ),
    "ladder passed": (
        "{ahead} passed {behind} near {at} (between {low} and {high}) and is expected to stay ahead up to {end}.",
        "{ahead} 在约 {at} 处（介于 {low} 与 {high} 之间）超过了 {behind}，预计到 {end} 时仍然领先。",
    ),
    "ladder stays": (
        "{ahead} is expected to be ahead of {behind} from the present budget up to {end}.",
        "从当前预算到 {end}，预计 {ahead} 一直领先于 {behind}。",
    ),
    "ladder unclear": (
        "Whether {first} or {second} would be ahead at {end} cannot be told.",
        "到 {end} 时 {first} 与 {second} 谁领先，无法判断。",
    ),
    "ladder reached": (
        "With {times} times the budget ({end}), one run of {name} is expected to reach {middle} (between {low} and "
        "{high}).",
        "预算增至 {times} 倍（{end}）时，{name} 的一次训练预计达到 {middle}（介于 {low} 与 {high} 之间）。",
    ),
    "ladder problem few": (
        "No curve is fitted to {name}: too few of its runs finished.",
        "未对 {name} 拟合曲线：完成的训练太少。",
    ),
    "ladder problem worse": (
        "No curve is fitted to {name}: its score does not improve up to the full budget.",
        "未对 {name} 拟合曲线：直到全部预算，其分数并未持续改善。",
    ),
    "ladder problem perfect": (
        "No curve is fitted to {name}: its score has reached its limit.",
        "未对 {name} 拟合曲线：其分数已达极限。",
    ),
    "ladder chart": ("Test score by training budget", "测试分数随训练预算的变化"),
    "ladder remark": (
        "Points: mean over seeds with its confidence interval; each is a run of its own budget, whose learning rate "
        "decays at its end. Lines: fitted power laws with an offset. Bands: {share} prediction intervals for one more "
        "run beyond the budget, if the curve goes on as it has begun.",
        "点：各随机种子的均值及其置信区间，每个点都是一次按自身预算在末尾衰减学习率的训练。线：拟合的带偏移幂律。"
        "色带：若曲线照此延续，超出预算时单次训练的 {share} 预测区间。",
    ),
    "ladder full": ("budget of this comparison", "本次比较的预算"),
    "ladder axis.tokens": ("Training tokens", "训练词元数"),
    "ladder axis.flops": ("Training FLOPs", "训练 FLOPs"),
    "ladder kind": ("Source", "来源"),
    "ladder measured": ("measured", "实测"),
    "ladder predicted": ("predicted, one run", "预测（单次训练）"),
}
