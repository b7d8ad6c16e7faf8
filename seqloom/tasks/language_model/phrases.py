"""The phrases of the protocol, in English and Chinese; {} stands for a number or a name."""

from __future__ import annotations

from seqloom.core.score import Text

PHRASES: tuple[Text, ...] = (
    ("nats per token", "奈特/词元"),
    ("state carried through the whole stream", "状态贯穿整个词元流"),
    ("state carried within each of {} streams", "分 {} 条词元流，各自传递状态"),
    ("context {}", "上下文 {}"),
    ("stride {}", "步幅 {}"),
    ("{} tokens", "{} 个词元"),
    ("(out of {}, from the start)", "（共 {} 个，取开头部分）"),
    ("{} of them unknown (bits per byte omitted: too low)", "其中 {} 为未登录词元（每字节比特数会偏低，故不给出）"),
)
