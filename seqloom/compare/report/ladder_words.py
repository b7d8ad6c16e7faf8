"""The texts about what changes with scale, in English and Chinese side by side. A ladder is over the budget, over the
training data, or over the size of the models; where the texts differ, their keys end with that."""

from __future__ import annotations

LADDER: dict[str, tuple[str, str]] = {
    "ladder crosses": (
        "{ahead} is expected to pass {behind} near {at} (between {low} and {high}).",
        "预计 {ahead} 将在约 {at}处超过 {behind}（介于 {low}与 {high}之间）。",
    ),
    "ladder passed": (
        "{ahead} passed {behind} near {at} (between {low} and {high}) and is expected to stay ahead up to {end}.",
        "{ahead} 在约 {at}处（介于 {low}与 {high}之间）超过了 {behind}，预计到 {end}时仍然领先。",
    ),
    "ladder stays.budget": (
        "{ahead} is expected to be ahead of {behind} from the present budget up to {end}.",
        "从当前预算到 {end}，预计 {ahead} 一直领先于 {behind}。",
    ),
    "ladder stays.data": (
        "{ahead} is expected to be ahead of {behind} from the present training set up to {end}.",
        "从当前训练集到 {end}，预计 {ahead} 一直领先于 {behind}。",
    ),
    "ladder stays.size": (
        "{ahead} is expected to be ahead of {behind} from the present size up to {end}.",
        "从当前规模到 {end}，预计 {ahead} 一直领先于 {behind}。",
    ),
    "ladder unclear": (
        "Whether {first} or {second} would be ahead at {end} cannot be told.",
        "到 {end}时 {first} 与 {second} 谁领先，无法判断。",
    ),
    "ladder reached.budget": (
        "With {times} times the budget ({end}), one run of {name} is expected to reach {middle} (between {low} and "
        "{high}).",
        "预算增至 {times} 倍（{end}）时，{name} 的一次训练预计达到 {middle}（介于 {low} 与 {high} 之间）。",
    ),
    "ladder reached.data": (
        "With {times} times the training data ({end}), one run of {name} is expected to reach {middle} (between {low} "
        "and {high}).",
        "训练数据增至 {times} 倍（{end}）时，{name} 的一次训练预计达到 {middle}（介于 {low} 与 {high} 之间）。",
    ),
    "ladder reached without training": (
        "With {times} times the training data ({end}), {name} is expected to reach {middle} (between {low} and "
        "{high}).",
        "训练数据增至 {times} 倍（{end}）时，{name} 预计达到 {middle}（介于 {low} 与 {high} 之间）。",
    ),
    "ladder reached.size": (
        "With {times} times the size ({end}), one run of {name} on as many tokens is expected to reach {middle} "
        "(between {low} and {high}).",
        "规模增至 {times} 倍（{end}）、训练词元数不变时，{name} 的一次训练预计达到 {middle}（介于 {low} 与 {high} "
        "之间）。",
    ),
    "ladder problem few": (
        "No curve is fitted to {name}: too few of its runs finished.",
        "未对 {name} 拟合曲线：完成的训练太少。",
    ),
    "ladder problem worse.budget": (
        "No curve is fitted to {name}: its score does not improve up to the full budget.",
        "未对 {name} 拟合曲线：直到全部预算，其分数并未持续改善。",
    ),
    "ladder problem worse.data": (
        "No curve is fitted to {name}: its score does not improve up to the whole training set.",
        "未对 {name} 拟合曲线：直到用上全部训练数据，其分数并未持续改善。",
    ),
    "ladder problem worse.size": (
        "No curve is fitted to {name}: its score does not improve up to its full size.",
        "未对 {name} 拟合曲线：直到全部规模，其分数并未持续改善。",
    ),
    "ladder problem perfect": (
        "No curve is fitted to {name}: its score has reached its limit.",
        "未对 {name} 拟合曲线：其分数已达极限。",
    ),
    "ladder part": (
        "{name} read {epochs} of the training set within its budget: its curve shows what a larger budget would bring, "
        "not more data.",
        "{name} 在其预算内只读取了训练集的 {epochs}：其曲线反映的是增加预算的效果，而不是增加数据的效果。",
    ),
    "ladder chart.budget": ("Test score by training budget", "测试分数随训练预算的变化"),
    "ladder chart.data": ("Test score by amount of training data", "测试分数随训练数据量的变化"),
    "ladder chart.size": ("Test score by model size", "测试分数随模型规模的变化"),
    "ladder remark.budget": (
        "Points: mean over seeds with its confidence interval; each is a run of its own budget, whose learning rate "
        "decays at its end. Lines: fitted power laws with an offset. Bands: {share} prediction intervals for one more "
        "run beyond the budget, if the curve goes on as it has begun.",
        "点：各随机种子的均值及其置信区间，每个点都是一次按自身预算在末尾衰减学习率的训练。线：拟合的带偏移幂律。"
        "色带：若曲线照此延续，超出预算时单次训练的 {share} 预测区间。",
    ),
    "ladder remark.data": (
        "Points: mean over seeds with its confidence interval (number of seeds below the whole training set: {seeds}); "
        "each is trained on that much of it for the same number of epochs. Lines: fitted power laws with an offset. "
        "Bands: {share} prediction intervals for one more run on more data, if the curve goes on as it has begun.",
        "点：各随机种子的均值及其置信区间（不足全部训练数据时的种子数：{seeds}），每个点用相应数量的训练数据、以相同的轮数"
        "训练。线：拟合的带偏移幂律。色带：若曲线照此延续，数据更多时单次训练的 {share} 预测区间。",
    ),
    "ladder remark.size": (
        "Points: mean over seeds with its confidence interval (number of seeds below the full size: {seeds}); each is "
        "a model of that size, within 2 %, trained on as many tokens with the settings tuned at full size. Lines: "
        "fitted power laws with an offset. Bands: {share} prediction intervals for one more run of a larger model, if "
        "the curve goes on as it has begun.",
        "点：各随机种子的均值及其置信区间（较小规模的种子数：{seeds}），每个点是相应规模（误差 2 % 以内）的模型，训练词"
        "元数相同，沿用在全部规模下调好的设置。线：拟合的带偏移幂律。色带：若曲线照此延续，模型更大时单次训练的 "
        "{share} 预测区间。",
    ),
    "ladder memorising": (
        "Where training data is read again, bands also allow for overfitting: the gap between test and training loss "
        "may go on growing.",
        "重复读取训练数据之处，色带也考虑了过拟合：测试损失与训练损失之间的差距可能继续扩大。",
    ),
    "ladder full.budget": ("budget of this comparison", "本次比较的预算"),
    "ladder full.data": ("training set of this comparison", "本次比较的训练集"),
    "ladder full.size": ("size in this comparison", "本次比较的规模"),
    "ladder axis.budget.tokens": ("Training tokens", "训练词元数"),
    "ladder axis.budget.flops": ("Training FLOPs", "训练 FLOPs"),
    "ladder axis.data.tokens": ("Tokens in the training set", "训练集词元数"),
    "ladder axis.data.points": ("Points in the training set", "训练集数据点数"),
    "ladder axis.data.examples": ("Training examples", "训练样本数"),
    "ladder axis.size.parameters": ("Parameters", "参数量"),
    "ladder axis.size.backbone": ("Parameters of the backbone", "主干参数量"),
    "ladder amount.tokens": ("{amount} tokens", "{amount} 词元"),
    "ladder amount.points": ("{amount} points", "{amount} 个数据点"),
    "ladder amount.examples": ("{amount} examples", "{amount} 个样本"),
    "ladder amount.parameters": ("{amount} parameters", "{amount} 个参数"),
    "ladder amount.backbone": ("{amount} backbone parameters", "{amount} 个主干参数"),
    "ladder kind": ("Source", "来源"),
    "ladder measured": ("measured", "实测"),
    "ladder predicted": ("predicted, one run", "预测（单次训练）"),
}
