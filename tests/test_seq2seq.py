"""Sequence to sequence, against loops written by hand around torch's cells, with copied weights."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence
from toys import alive, close

from seqloom.core.errors import UserError
from seqloom.models.seq2seq import Config, Seq2Seq
from seqloom.runs.configure import configure

WIDTH, ROWS, SOURCE, LENGTH = 8, 3, 6, 5
LENGTHS = torch.tensor([6, 2, 4])
MASK = torch.arange(SOURCE) < LENGTHS[:, None]
LAYERS: dict[str, Any] = {"rnn": (nn.RNN, nn.RNNCell), "gru": (nn.GRU, nn.GRUCell), "lstm": (nn.LSTM, nn.LSTMCell)}
each_cell = pytest.mark.parametrize("cell", LAYERS)


def vectors(length: int, seed: int) -> Tensor:
    return torch.randn(ROWS, length, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


X, Y = vectors(SOURCE, 0), vectors(LENGTH, 1)


def build(**options: Any) -> Any:
    return alive(Config.model_validate({"width": WIDTH, **options}).build())


def copy_cell(ours: Any, theirs: nn.Module, suffix: str = "") -> None:
    """Our one bias is torch's first; the second is zero, but for the one inside the GRU's reset gate."""
    own = {"weight_ih": ours.weight_x, "weight_hh": ours.weight_h, "bias_ih": ours.bias}
    own["bias_hh"] = torch.zeros_like(ours.bias)
    if hasattr(ours, "bias_new"):
        own["bias_hh"][-ours.hidden :] = ours.bias_new.detach()
    for name, value in own.items():
        getattr(theirs, name + suffix).data = value.detach().clone()


def encoded(ours: Seq2Seq, cell: str) -> tuple[Tensor, Tensor]:
    """All source vectors, and the last of both directions, by torch's layer on packed sequences."""
    theirs = LAYERS[cell][0](WIDTH, WIDTH // 2, batch_first=True, bidirectional=True).double()
    for direction, suffix in zip(ours.encoder.layers[0], ("_l0", "_l0_reverse"), strict=True):  # type: ignore[arg-type]
        copy_cell(direction, theirs, suffix)
    packed, last = theirs(pack_padded_sequence(X, LENGTHS, batch_first=True, enforce_sorted=False))
    hidden = nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)[0]
    last = last[0] if cell == "lstm" else last
    return hidden, torch.cat((last[0], last[1]), dim=-1)


class ByHand:
    """The decoder's cell as torch has it."""

    def __init__(self, ours: Any, cell: str, summary: Tensor) -> None:
        own = ours.decoder.layers[0][0]
        self.cell = LAYERS[cell][1](own.weight_x.size(1), WIDTH).double()
        copy_cell(own, self.cell)
        first = F.linear(summary, ours.bridge.weight, ours.bridge.bias).tanh()
        self.memory: Any = tuple(first.chunk(2, dim=-1)) if cell == "lstm" else first

    @property
    def h(self) -> Tensor:
        return self.memory[0] if isinstance(self.memory, tuple) else self.memory

    def step(self, *inputs: Tensor) -> Tensor:
        self.memory = self.cell(torch.cat(inputs, dim=-1), self.memory)
        return self.h


def mixed(weights: Tensor, scores: Tensor, hidden: Tensor) -> Tensor:
    """softmax over what is no padding, of the values"""
    chances = scores.masked_fill(~MASK, -torch.inf).softmax(-1)  # (B, S)
    return (chances[..., None] * (hidden @ weights.mT)).sum(1)


def joined(ours: Any, h: Tensor, context: Tensor) -> Tensor:
    return ours.join(torch.cat((h, context), dim=-1)).tanh()


@each_cell
def test_the_summary_is_that_of_each_rows_true_last_step(cell: str) -> None:
    ours = build(context="first", cell=cell)
    hidden, summary = encoded(ours, cell)
    close(ours.encode(X, MASK)[MASK], hidden[MASK])
    memories = ours.begin(X, MASK)[0][0]
    close(torch.cat(memories, dim=-1), ours.bridge(summary).tanh())


@each_cell
def test_the_summary_can_be_the_mean_of_the_real_steps(cell: str) -> None:
    ours = build(context="first", cell=cell, summary="mean")
    hidden, _ = encoded(ours, cell)
    means = torch.stack([row[:length].mean(0) for row, length in zip(hidden, LENGTHS, strict=True)])
    close(torch.cat(ours.begin(X, MASK)[0][0], dim=-1), ours.bridge(means).tanh())


@each_cell
def test_first_knows_the_source_by_its_first_state_alone(cell: str) -> None:
    ours = build(context="first", cell=cell)
    hand = ByHand(ours, cell, encoded(ours, cell)[1])
    outputs, (_, fed, _, source) = ours(Y, ours.begin(X, MASK))
    assert fed is None and source is None, "nothing of the source is kept"
    close(outputs, torch.stack([hand.step(y) for y in Y.unbind(1)], dim=1))


@each_cell
def test_every_step_is_given_the_summary_again(cell: str) -> None:
    ours = build(context="every_step", cell=cell)
    summary = encoded(ours, cell)[1]
    hand = ByHand(ours, cell, summary)
    wanted = [joined(ours, hand.step(y, summary), summary) for y in Y.unbind(1)]
    close(ours(Y, ours.begin(X, MASK))[0], torch.stack(wanted, dim=1))


@each_cell
def test_attention_asked_before_a_step_is_bahdanaus(cell: str) -> None:
    ours = build(query="before", score="additive", cell=cell)
    hidden, summary = encoded(ours, cell)
    hand, head, outputs = ByHand(ours, cell, summary), ours.attention.heads[0], []
    w_query, w_key, w = head.score.of_query.weight, head.score.of_key, head.score.weigh.weight[0]
    for y in Y.unbind(1):
        scores = (hand.h @ w_query.mT)[:, None] + hidden @ w_key.weight.mT + w_key.bias
        context = mixed(head.values.weight, scores.tanh() @ w, hidden)
        outputs.append(joined(ours, hand.step(y, context), context))
    close(ours(Y, ours.begin(X, MASK))[0], torch.stack(outputs, dim=1))


@each_cell
@pytest.mark.parametrize("feeding", [False, True])
@pytest.mark.parametrize("score", ["dot", "general"])
def test_attention_asked_after_a_step_is_luongs(cell: str, feeding: bool, score: str) -> None:
    ours = build(query="after", score=score, feeding=feeding, cell=cell)
    hidden, summary = encoded(ours, cell)
    hand, head, outputs = ByHand(ours, cell, summary), ours.attention.heads[0], []
    matrix = head.score.matrix.weight if score == "general" else torch.eye(WIDTH, dtype=torch.float64)
    output = torch.zeros(ROWS, WIDTH, dtype=torch.float64)
    for y in Y.unbind(1):
        h = hand.step(y, output) if feeding else hand.step(y)
        scores = torch.einsum("bsk,qk,bq->bs", hidden, matrix, h)
        output = joined(ours, h, mixed(head.values.weight, scores, hidden))
        outputs.append(output)
    close(ours(Y, ours.begin(X, MASK))[0], torch.stack(outputs, dim=1))


def test_a_tied_table_is_read_larger_on_both_sides() -> None:
    tied, free = build(tie=True), build()
    close(tied(Y, tied.begin(X))[0], free(Y * WIDTH**0.5, free.begin(X * WIDTH**0.5))[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["model.feeding=true", "model.query=before"], "feeding=true requires context=attention and query=after"),
        (["model.feeding=true", "model.context=first"], "feeding=true requires context=attention and query=after"),
        (["model.width=33"], "width=33 must be even"),
        (["model.score=cosine"], "score='cosine': choose additive, dot"),
        (["model.align=firm"], "align='firm': choose soft, sparsemax"),
        (["model.width=32", "model.heads=3"], "width=32 must be a multiple of heads=3"),
        (["model.multi=true"], "multi=true needs score=additive"),
        (["model.cell=elman"], "cell"),
    ],
)
def test_wrong_options_are_refused_in_one_line(options: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message) as refusal:
        configure(None, {"task.name": "translation", "model.name": "seq2seq", "data.train": "x"}, options)
    assert "\n" not in str(refusal.value)
