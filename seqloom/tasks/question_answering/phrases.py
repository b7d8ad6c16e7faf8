"""The phrases of the protocol, in English and Chinese; {} stands for a number or a name."""

from __future__ import annotations

from seqloom.core.score import Text

PHRASES: tuple[Text, ...] = (
    ("exact match and F1 (0 to 1)", "完全匹配与 F1（0 到 1）"),
    (
        "by SQuAD's rules (lower case, no punctuation, no articles; F1 of shared words)",
        "按 SQuAD 规则（小写，去标点和冠词；按共有的词计算 F1）",
    ),
    (
        "by CMRC 2018's rules (lower case, no punctuation; F1 of the longest shared run of characters and words)",
        "按 CMRC 2018 规则（小写，去标点；按最长的共有连续片段计算 F1）",
    ),
    ("({} questions)", "（{} 个问题）"),
    ("{} of {} questions, evenly spaced", "从 {1} 个问题中等间隔选取 {0} 个"),
    ("{} questions", "{} 个问题"),
    ("{} of them without an answer", "其中 {} 个没有答案"),
    ("windows of {} tokens", "每个窗口 {} 个词元"),
    ("overlapping by {}", "重叠 {} 个"),
    ("answers of at most {} tokens", "答案至多 {} 个词元"),
    ("loss in nats", "损失单位为奈特"),
    ("mean of start and end", "取起点与终点的平均"),
    ("over windows with the answer or none", "对含答案或不含答案的窗口计算"),
    ("over windows with the answer", "对含答案的窗口计算"),
)
