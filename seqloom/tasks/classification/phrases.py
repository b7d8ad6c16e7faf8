"""The phrases of the protocol, in English and Chinese; {} stands for a number or a name."""

from __future__ import annotations

from seqloom.core.score import Text

PHRASES: tuple[Text, ...] = (
    ("{} of {} rows, evenly spaced", "从 {1} 条样本中等间隔选取 {0} 条"),
    ("{} rows", "{} 条样本"),
    ("loss in nats per row", "损失单位为奈特/样本"),
    ("{} longer than {} tokens: only the start is read", "{0} 条长于 {1} 个词元，只读开头"),
    ("{} longer than {} tokens: only the end is read", "{0} 条长于 {1} 个词元，只读结尾"),
    ("{} longer than {} tokens: only the start and the end are read", "{0} 条长于 {1} 个词元，只读开头和结尾"),
    ("{} with a label unknown to training, counted as wrong", "{} 条样本的类别在训练集中没有，计为错误"),
    ("prompted with {} examples per label", "提示中每个类别有 {} 个示例"),
    ("prompted with 1 example per label", "提示中每个类别有 1 个示例"),
    ("calibrated with an input without content", "用无内容的输入校准"),
)
