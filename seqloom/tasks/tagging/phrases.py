"""The phrases of the protocol, in English and Chinese; {} stands for a number or a name."""

from __future__ import annotations

from seqloom.core.score import Text

PHRASES: tuple[Text, ...] = (
    (
        "entity F1 by seqeval (micro-averaged; first word, last word and label must match)",
        "用 seqeval 计算实体 F1（微平均；首词、末词和类型都须一致）",
    ),
    ("share of words with the correct tag", "标签正确的词所占比例"),
    ("the first {} of {} sentences", "{1} 个句子中的前 {0} 个"),
    ("{} sentences", "{} 个句子"),
    ("best path of a CRF", "CRF 的最优路径"),
    ("best tag of each word", "每个词取最优标签"),
    (
        "{} words with tags unknown to training count as wrong, but not in the loss",
        "{} 个词的标签在训练集中没有，计为错误，但不计入损失",
    ),
    (
        "sentences of more than {} tokens split between words ({} splits)",
        "超过 {0} 个词元的句子在词间切开（共切 {1} 处）",
    ),
    ("loss in nats per word", "损失单位为奈特/词"),
)
