"""Errors in the documents that claims are taken from, each with a few lines of code that show what is right.

A test runs the code.
"""

from __future__ import annotations

from dataclasses import dataclass

from seqloom.pages.words import Pair


@dataclass(frozen=True)
class Error:
    document: str
    text: Pair  # what it says, and what is right
    code: str  # self-contained


ERRORS = (
    Error(
        "000",
        (
            "says that GPT consists of an encoder and a decoder. It is a decoder only, as document 004 says: one "
            "stack, in which a token sees those before it.",
            "称 GPT 由编码器和解码器组成。实际上它只有解码器（文档 004 的说法正确）：只有一叠块，每个词元只看到它之前"
            "的词元。",
        ),
        """
import torch
from seqloom.models import gpt, transformer

model = gpt.Config(width=16, depth=2, heads=2, zero_init=False).build()
assert model.kind == "causal" and transformer.Config().build().kind == "encoder-decoder"

x = torch.randn(1, 6, 16)
changed = x.clone()
changed[:, 4:] = 0  # the end of the text
before, after = model(x)[0], model(changed)[0]
assert torch.allclose(before[:, :4], after[:, :4], atol=1e-6)  # no encoder has read it
assert not torch.allclose(before[:, 4:], after[:, 4:])
""",
    ),
    Error(
        "002",
        (
            "takes output[-1] with batch_first=True for the last output. It is every step of the last example; the "
            "last step of every example is output[:, -1]. With padding on the right neither is, since rows end at "
            "different steps.",
            "称 batch_first=True 时 output[-1] 取出最后一个输出。实际上它是最后一个样本的所有时间步；每个样本的最后一步"
            "是 output[:, -1]。若右侧有填充，两者都不是，因为各行结束于不同的步。",
        ),
        """
import torch
from torch.nn.utils.rnn import pack_padded_sequence

rnn = torch.nn.RNN(input_size=3, hidden_size=5, batch_first=True)
x = torch.randn(4, 7, 3)  # 4 examples, 7 steps
output, h_n = rnn(x)
assert output[-1].shape == (7, 5)  # the last example
assert torch.equal(output[:, -1], h_n[-1])  # the last step

lengths = torch.tensor([7, 4, 6, 2])  # real steps of each row, the rest is padding
packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
last = rnn(packed)[1][-1]
assert torch.allclose(output[torch.arange(4), lengths - 1], last, atol=1e-6)
assert not torch.allclose(output[:, -1], last)  # this has read padding
""",
    ),
    Error(
        "004",
        (
            "calls h_n the hidden state of the last layer. It is the final state of every layer, (layers, batch, "
            "hidden); that of the last layer is h_n[-1].",
            "称 h_n 是最后一层的隐藏状态。实际上它是每一层的最终状态，形状为 (层数, 批量, 隐藏维度)；最后一层的是 "
            "h_n[-1]。",
        ),
        """
import torch

rnn = torch.nn.RNN(input_size=128, hidden_size=256, num_layers=2, batch_first=True)
output, h_n = rnn(torch.randn(4, 10, 128))
assert h_n.shape == (2, 4, 256)
assert torch.equal(h_n[-1], output[:, -1])  # the last layer
assert not torch.allclose(h_n[0], output[:, -1])  # the first layer
""",
    ),
)
