"""Texts of the pages of studies, in English and Chinese."""

from __future__ import annotations

from seqloom.pages.words import Pair

WORDS: dict[str, Pair] = {
    "gallery": ("Claims, measured", "实测的论断"),
    "gallery lead": (
        "Introductions to sequence models repeat many claims that are seldom measured. Each of these is measured "
        "here: the number beside the claim, the conditions under which it held, one figure, and the command that "
        "repeats it.",
        "序列模型的入门文章反复引用许多很少有人测量的论断。这里逐条测量：把测得的数值与论断并列，说明在什么条件下成立"
        "，配一幅图，并给出可重复的命令。",
    ),
    "documents": ("The documents that claims are taken from", "论断出自的文档"),
    "document": ("document {name}", "文档 {name}"),
    "section": (", section “{name}”", "，“{name}”一节"),
    "all": ("All claims", "全部论断"),
    "own": ("your own", "自定义"),
    "claim": ("Claim", "论断"),
    "claim says": ("claim", "论断"),
    "source": ("Source", "出处"),
    "verdict": ("Verdict", "结论"),
    "found": ("Measured", "测得"),
    "figure": ("Figure", "图"),
    "beside": ("The numbers, beside the claim", "数值与论断对照"),
    "caption": (
        "Means over seeds with 95 % intervals (Student's t). Without an interval: a count, the largest value over all "
        "seeds, or a single run.",
        "各种子的均值及 95 % 置信区间（学生 t 分布）。没有区间的是计数、所有种子中的最大值，或单次运行的结果。",
    ),
    "quantity": ("quantity", "量"),
    "measured": ("measured", "测得"),
    "interval": ("95 % interval", "95 % 置信区间"),
    "seeds": ("seeds", "种子数"),
    "how": ("How it was measured", "测量方法"),
    "rule": ("When does the claim hold? {rule}", "何时算成立？{rule}"),
    "beware": ("To beware of", "注意"),
    "weights": ("Pretrained weights that it reads", "所用的预训练权重"),
    "repeat": ("Repeat it", "重复测量"),
    "took": (
        "{seconds}, {threads} threads, {system}, torch {torch}",
        "{seconds}，{threads} 个线程，{system}，torch {torch}",
    ),
    "data": ("Data {name}: SHA-256 {digest}", "数据 {name}：SHA-256 {digest}"),
    "quick": (
        "A quick run, which only shows that the study works: too small to judge by.",
        "这是快速运行，只说明该研究可以运行：规模太小，不足以下结论。",
    ),
}
