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
    "left out": ("Left out, not measured", "未测量而略去"),
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
    "aspects": ("RNN and Transformer, aspect by aspect", "RNN 与 Transformer 逐项对照"),
    "aspects short": (
        "Document 000 compares the two on seven aspects: what it says of each, the numbers measured here, and three "
        "errors in the documents.",
        "文档 000 从七个方面比较两者：它怎么说，这里测得多少，以及文档中的三处错误。",
    ),
    "aspects lead": (
        "Document 000 compares RNN and Transformer on seven aspects. Below, what it says of each, and the numbers "
        "that studies measured, with the verdict of each study on its own claim. Sizes are small and the machine has "
        "no GPU: the page of each study says under which conditions its numbers were measured.",
        "文档 000 从七个方面比较 RNN 与 Transformer。下面逐项列出它的说法，以及各项研究测得的数值和该研究对自身论断的结"
        "论。模型规模很小，机器没有 GPU：各数值在什么条件下测得，见相应研究的页面。",
    ),
    "overview": ("Overview", "概览"),
    "aspect": ("aspect", "方面"),
    "verdicts": ("studies and their verdicts", "研究及其结论"),
    "said": ("Document 000 on the {model}", "文档 000 对 {model} 的说法"),
    "quoted": (
        "Measured here: means over seeds with 95 % intervals, and the verdict of the study on its claim",
        "这里测得：各种子的均值及 95 % 置信区间，以及该研究对其论断的结论",
    ),
    "error": ("Document {name} {text}", "文档 {name} {text}"),
    "errors": ("Errors in the documents", "文档中的错误"),
    "errors lead": (
        "Three statements of the documents are wrong. Each is followed by code that shows what is right; it runs as it "
        "stands.",
        "文档中有三处说法是错的。每处之后的代码说明正确的情形，可以直接运行。",
    ),
    "data": ("Data {name}: SHA-256 {digest}", "数据 {name}：SHA-256 {digest}"),
    "quick": (
        "A quick run, which only shows that the study works: too small to judge by.",
        "这是快速运行，只说明该研究可以运行：规模太小，不足以下结论。",
    ),
}
