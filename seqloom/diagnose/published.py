"""Published figures to read the measured ones against; what is measured depends on none of them."""

from __future__ import annotations

from typing import NamedTuple

from seqloom.core.score import Text


class Source(NamedTuple):
    name: Text
    protocol: Text  # what differs from ours


class Figure(NamedTuple):
    problem: str
    model: str
    called: str  # the model's name in the source
    accuracy: float
    source: str
    guess: float  # accuracy of guessing there


SOURCES = {
    "A": Source(
        ("Delétang et al. 2023 (arXiv 2207.02098), from a secondary copy of the table",
         "Delétang et al. 2023（arXiv 2207.02098），数值取自转录的表格"),
        ("trained at lengths 1 to 40, tested at 41 to 500, one answer per string, arithmetic with products, best of 10 "
         "seeds and 3 learning rates",
         "训练长度 1–40，测试长度 41–500，每串只有一个答案，算术题含乘法，取 10 个种子和 3 种学习率中的最好结果"),
    ),
    "B": Source(
        ("a second paper on the same problems", "另一篇研究相同问题的论文"),
        ("tested at lengths 40 to 256, 5 seeds", "测试长度 40–256，5 个种子"),
    ),
    "C": Source(
        ("berlino/seq_icl", "berlino/seq_icl"),
        ("vocabulary 20, length 40, 5,000 rows read 200 times, sizes not matched",
         "词表 20，长度 40，5,000 行读 200 遍，模型大小未对齐"),
    ),
    "D": Source(
        ("HazyResearch/zoology, read off a figure", "HazyResearch/zoology，从图中读出"),
        ("vocabulary 8,192, 100,000 rows, width 64, length 256",
         "词表 8,192，100,000 行，宽度 64，长度 256"),
    ),
}  # fmt: skip

FIGURES = [
    Figure("parity", "rnn", "RNN", 1.0, "A", 0.5),
    Figure("parity", "lstm", "LSTM", 1.0, "A", 0.5),
    Figure("parity", "gpt", "Transformer", 0.520, "A", 0.5),
    Figure("parity", "lstm", "LSTM", 1.0, "B", 0.5),
    Figure("parity", "gpt", "Transformer", 0.522, "B", 0.5),
    Figure("parity", "mamba2", "Mamba", 0.542, "B", 0.5),
    Figure("parity", "deltanet", "DeltaNet", 0.578, "B", 0.5),
    Figure("arithmetic", "rnn", "RNN", 1.0, "A", 0.2),
    Figure("arithmetic", "lstm", "LSTM", 1.0, "A", 0.2),
    Figure("arithmetic", "gpt", "Transformer", 0.242, "A", 0.2),
    Figure("arithmetic", "lstm", "LSTM", 0.999, "B", 0.2),
    Figure("arithmetic", "gpt", "Transformer", 0.236, "B", 0.2),
    Figure("arithmetic", "mamba2", "Mamba", 0.331, "B", 0.2),
    Figure("arithmetic", "deltanet", "DeltaNet", 0.422, "B", 0.2),
    Figure("reverse", "rnn", "RNN", 0.620, "A", 0.5),
    Figure("reverse", "lstm", "LSTM", 0.609, "A", 0.5),
    Figure("reverse", "gpt", "Transformer", 0.623, "A", 0.5),
    Figure("duplicate", "rnn", "RNN", 0.503, "A", 0.5),
    Figure("duplicate", "lstm", "LSTM", 0.576, "A", 0.5),
    Figure("duplicate", "gpt", "Transformer", 0.528, "A", 0.5),
    Figure("recall", "gpt", "Transformer", 1.0, "C", 0.25),
    Figure("recall", "lstm", "LSTM", 0.362, "C", 0.25),
    Figure("induction", "gpt", "Transformer", 0.972, "C", 0.05),
    Figure("induction", "lstm", "LSTM", 0.048, "C", 0.05),
    Figure("many_pairs", "gpt", "attention", 1.0, "D", 0.0),
]


def figures(problem: str, model: str) -> list[Figure]:
    return [figure for figure in FIGURES if (figure.problem, figure.model) == (problem, model)]
