"""The texts about the search for settings, in English and Chinese side by side."""

from __future__ import annotations

TUNING: dict[str, tuple[str, str]] = {
    # the search
    "search remark": (
        "Every model got {trials} trials, each with {share} of the training budget, scored on the validation set only.",
        "每个模型各有 {trials} 次试验，每次使用训练预算的 {share}，只在验证集上评分。",
    ),
    "search order": (
        "First came the model's own settings, then quasi-random points, the same for every model. In the last third of "
        "the trials, a best trial with the highest or lowest learning-rate multiplier tried with its optimizer was "
        "followed by one beyond it. Options set by the user were not varied.",
        "首先是模型自身的设置，然后是准随机点，各模型相同。在最后三分之一的试验中，若目前最佳试验的学习率倍数"
        "是其优化器下已试的最高或最低值，就接着尝试范围之外的倍数。用户指定的选项保持不变。",
    ),
    "order unknown": (
        "Whether more tuning would change the order cannot be told: fewer than {count} trials finished ({names}).",
        "无法判断更多调参是否会改变名次：完成的试验不足 {count} 次（{names}）。",
    ),
    "order may change": (
        "More tuning may change the order. {items}.",
        "更多调参可能改变名次。{items}。",
    ),
    "order stays": (
        "More tuning is not expected to change which model comes first. Closest to it: {items}.",
        "预计更多调参不会改变排在首位的模型。最接近的情况：{items}。",
    ),
    "order item": (
        "{name} is {distance} behind {best} on the validation set, and twice as many trials are expected to gain it "
        "about {gain}, as much as the step from half of its trials to all of them did on average",
        "{name} 在验证集上落后 {best} {distance}，试验次数加倍预计可使它提升约 {gain}"
        "（与从一半试验增至全部试验的平均提升相同）",
    ),
    "edge told high": (
        "The best trial of {name} has the highest learning-rate multiplier that was tried with {optimizer} ({scale}): "
        "a higher one may be better.",
        "{name} 的最佳试验用的是 {optimizer} 下试过的最高学习率倍数（{scale}），更高的倍数也许更好。",
    ),
    "edge told low": (
        "The best trial of {name} has the lowest learning-rate multiplier that was tried with {optimizer} ({scale}): a "
        "lower one may be better.",
        "{name} 的最佳试验用的是 {optimizer} 下试过的最低学习率倍数（{scale}），更低的倍数也许更好。",
    ),
    "edge told both": (
        "The best trial of {name} has the only learning-rate multiplier that was tried with {optimizer} ({scale}): "
        "others may be better.",
        "{name} 的最佳试验所用的 {optimizer} 只试过一个学习率倍数（{scale}），其他倍数也许更好。",
    ),
    "edge.high": ("highest tried with its optimizer", "该优化器下已试的最高值"),
    "edge.low": ("lowest tried with its optimizer", "该优化器下已试的最低值"),
    "edge.both": ("the only one tried with its optimizer", "该优化器下只试过这一个"),
    "edge.inside": ("inside what was tried", "在已试范围之内"),
    "tried caption": ("What each model tried", "各模型试过的设置"),
    "tried": ("tried", "已试"),
    "best scale": ("Multiplier of the best trial", "最佳试验的学习率倍数"),
    "number of trials": ("Trials", "试验次数"),
    "search chart": ("Validation scores of the trials", "各次试验的验证分数"),
    "search by scale": ("Validation score by learning-rate multiplier", "验证分数随学习率倍数的变化"),
    "search chart remark": (
        "Hollow: stopped early, at the last score before that.",
        "空心：提前终止的试验，取终止前的最后一次分数。",
    ),
    "expected best": ("Expected best score by number of trials", "预期最佳分数随试验次数的变化"),
    "expected remark": (
        "Expected best: the mean best score of that many of the trials, chosen at random. Thin lines: {share} interval "
        "over resampled trials.",
        "预期最佳：从全部试验中随机取这么多次时最佳分数的均值。细线：对试验重采样得到的 {share} 区间。",
    ),
    "expected interval": ("{share} interval", "{share} 区间"),
    "when stopped": ("when stopped", "终止时"),
    "scale": ("Learning-rate multiplier", "学习率倍数"),
    "trials": ("All trials", "全部试验"),
    "trial": ("Trial", "试验"),
    "state": ("Status", "状态"),
    "score": ("Score", "分数"),
    "share": ("Budget used", "已用预算"),
    "state.done": ("done", "完成"),
    "state.pruned": ("stopped early", "提前终止"),
    "state.failed": ("failed", "失败"),
    "kept": ("selected", "选用"),
    "setting.scale": ("learning-rate multiplier", "学习率倍数"),
    "setting.optimizer": ("optimizer", "优化器"),
    "setting.dropout": ("dropout", "丢弃率"),
    "setting.weight_decay": ("weight decay", "权重衰减"),
    "setting.depth": ("layers", "层数"),
    # the protocol
    "space": ("Search: {name}", "搜索：{name}"),
    "proposed and tried": ("proposed: {proposed}; tried: {tried}", "提议：{proposed}；已试：{tried}"),
    "depths": ("half, own, twice", "一半、自身、两倍"),
}
