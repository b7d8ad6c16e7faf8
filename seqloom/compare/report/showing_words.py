"""The texts about predictions on the test set, in English and Chinese side by side."""

from __future__ import annotations

SHOWING: dict[str, tuple[str, str]] = {
    "first seed": ("From one run of each model (seed {seed}).", "取自每个模型的一次训练（随机种子 {seed}）。"),
    "first run": ("From the first run of each model.", "取自每个模型的首次训练。"),
    "showing confusion": (
        "Which labels are confused with which, and the wrong predictions that the model was most sure of.",
        "哪些类别被相互混淆，以及模型最有把握的错误预测。",
    ),
    "showing forecasts": (
        "Forecasts of evenly spaced windows of the test set beside the actual values.",
        "测试集中等间隔选取的窗口：预测值与真实值。",
    ),
    "showing tags": (
        "Evenly spaced sentences of the test set, only those with tags other than O. Errors are underlined.",
        "从测试集中等间隔选取的句子（只取含有 O 以外标签的句子）。错误处加下划线。",
    ),
    "showing answers": (
        "Evenly spaced questions of the test set. The gold answer is highlighted in the passage.",
        "从测试集中等间隔选取的问题。段落中的标准答案已突出显示。",
    ),
    "showing pairs": (
        "Evenly spaced pairs of the test set. What differs from the reference is underlined; a different text may also "
        "be correct.",
        "从测试集中等间隔选取的文本对。与参考文本不同之处加下划线；不同的文本也可能是正确的。",
    ),
    "showing gaps": (
        "Evenly spaced tokens of the test text (highlighted), each hidden from the models: their most likely tokens "
        "with probabilities.",
        "从测试文本中等间隔选取的词元（突出显示），对模型隐藏：各模型给出的最可能的词元及其概率。",
    ),
    "all rows read": ("All {rows} rows of the test set.", "测试集的全部 {rows} 条样本。"),
    "rows read": (
        "{rows} of {of} rows of the test set, evenly spaced.",
        "从测试集的 {of} 条样本中等间隔选取 {rows} 条。",
    ),
    "merged labels": (
        "The {count} rarest labels are not shown one by one.",
        "最少见的 {count} 个类别没有单独列出。",
    ),
    "unknown labels": (
        "Rows with a label unknown to training are left out: {count}.",
        "训练集中没有的类别对应的样本未列入：{count} 条。",
    ),
    "other labels": ("other labels", "其他类别"),
    "actual and predicted": ("Actual ↓, predicted →", "真实 ↓，预测 →"),
    "actual to predicted": ("Actual → predicted", "真实 → 预测"),
    "label": ("Label", "类别"),
    "label wanted": ("Rows with the label", "真实样本数"),
    "label found": ("Predicted", "预测样本数"),
    "label right": ("Correct", "正确数"),
    "test rows": ("Rows", "样本数"),
    "right share": ("Correct", "正确率"),
    "probability": ("probability", "概率"),
    "text": ("Text", "文本"),
    "row number": ("Row of the test set", "测试集中的序号"),
    "confusion caption": (
        "{name}: confusion matrix, test rows by actual label (rows) and predicted label (columns); shaded by share of "
        "the row",
        "{name}：混淆矩阵，按真实类别（行）和预测类别（列）统计的测试样本数；底色深浅表示占该行的比例",
    ),
    "classes caption": ("{name}: test rows per label", "{name}：各类别的测试样本数"),
    "errors caption": (
        "{name}: the {shown} most confident errors, of {wrong}",
        "{name}：最有把握的 {shown} 个错误（共 {wrong} 个）",
    ),
    "forecasts chart": ("Forecasts and actual values", "预测值与真实值"),
    "actual values": ("actual values", "真实值"),
    "forecast window": ("{where}, from {time}", "{where}，自 {time} 起"),
    "forecast begins": ("forecast begins", "预测开始"),
    "steps from origin": ("Step, counted from the last known value (0)", "步（最后一个已知值为 0）"),
    "forecast band": ("Shaded: {share} prediction interval of {name}.", "阴影：{name} 的 {share} 预测区间。"),
    "gold": ("Gold", "标准答案"),
    "question": ("Question", "问题"),
    "passage": ("Passage", "段落"),
    "no answer": ("(no answer)", "（无答案）"),
    "source": ("Source", "源文本"),
    "reference": ("Reference", "参考文本"),
    "empty output": ("(empty)", "（空）"),
}
