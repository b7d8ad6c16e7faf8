"""The phrases of the protocol, in English and Chinese; {} stands for a number or a name."""

from __future__ import annotations

from seqloom.core.score import Text

PHRASES: tuple[Text, ...] = (
    ("{} of {} tokens masked", "{1} 个词元中掩盖 {0} 个"),
    ("(share {}, by token)", "（比例 {}，按词元）"),
    ("(share {}, by word)", "（比例 {}，按词）"),
    ("windows of {} tokens", "每个窗口 {} 个词元"),
    ("loss in nats per masked token", "损失单位为奈特/被掩词元"),
    ("not a perplexity", "不是困惑度"),
)
