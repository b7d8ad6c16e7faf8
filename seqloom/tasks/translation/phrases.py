"""The phrases of the protocol, in English and Chinese; {} stands for a number or a name."""

from __future__ import annotations

from seqloom.core.score import Text

PHRASES: tuple[Text, ...] = (
    ("corpus BLEU by sacrebleu ({})", "语料级 BLEU，由 sacrebleu 计算（{}）"),
    ("case-sensitive", "区分大小写"),
    ("tokens: {}", "分词：{}"),
    ("chrF by sacrebleu ({})", "chrF 由 sacrebleu 计算（{}）"),
    (
        "exact: share of rows equal to a reference, ignoring whitespace at the ends",
        "完全匹配：与某个参考相同的比例，忽略首尾空白",
    ),
    (
        "ROUGE F1 x 100 by rouge-score, best reference of each row, mean over rows",
        "ROUGE F1 × 100，由 rouge-score 计算，每条取最好的参考，再取平均",
    ),
    (
        "tokens: lower-case words without punctuation, single characters in Chinese and Japanese",
        "分词：小写的词，去标点，中文和日文按单字",
    ),
    ("no stemming, no stop-word removal", "不做词干化，不去停用词"),
    (
        "error rate in percent by jiwer: substitutions, deletions and insertions per reference token",
        "错误率（%）由 jiwer 计算：每个参考词元的替换、删除和插入数",
    ),
    ("tokens are separated by spaces, case and punctuation count", "词元以空格分隔，区分大小写，计入标点"),
    ("of several references, the one with the fewest edits", "有多个参考时，取编辑次数最少的一个"),
    ("{} sources", "{} 条源文本"),
    ("(of {} of {} pairs, evenly spaced)", "（从 {1} 对中等间隔选取 {0} 对）"),
    ("({} truncated to the model's context)", "（{} 条截断到模型的上下文长度）"),
    ("beam search with {} beams", "束搜索，束宽 {}"),
    ("greedy decoding", "贪心解码"),
    ("length penalty {}", "长度惩罚 {}"),
    ("minimum length {}", "最小长度 {}"),
    ("no repeated n-gram of size {}", "不重复 {} 元组"),
    ("loss in nats per target token", "损失单位为奈特/目标词元"),
    ("nats per target token", "奈特/目标词元"),
    ("{} pairs", "{} 对"),
)
