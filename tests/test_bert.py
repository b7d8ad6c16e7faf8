"""BERT: ours against transformers' BertModel with copied weights, and what pooling and parts promise."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from toys import alive, close

from seqloom.core.taps import record
from seqloom.layers.inputs import PartedEmbedding
from seqloom.models.bert import Config
from seqloom.tasks.classification.pooling import PooledHead, Pooling

VOCABULARY, WIDTH, CONTEXT, MARK = 13, 16, 12, 2
ROWS = torch.tensor([[1, 5, 6, 2, 7, 8, 2], [1, 9, 2, 4, 2, 0, 0]])
REAL = torch.tensor([[True] * 7, [True] * 5 + [False] * 2])
RULES = ("mean", "max", "last", "first", "attention")


def pair() -> tuple[Any, Any, Any]:
    """Our table and encoder, and transformers' BertModel with the same weights; their GELU in its tanh form."""
    from transformers import BertConfig, BertModel

    sizes = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24}
    theirs: Any = BertModel(
        BertConfig(
            vocab_size=VOCABULARY, max_position_embeddings=CONTEXT, hidden_act="gelu_pytorch_tanh", **sizes
        ),
        add_pooling_layer=False,
    )  # fmt: skip
    theirs = alive(theirs)
    config = Config(preset="published", width=WIDTH, depth=2, heads=4, feed=24, context=CONTEXT, eps=1e-12)
    ours, table = config.build().double().eval(), PartedEmbedding(VOCABULARY, WIDTH, MARK).double()
    table.load_state_dict(
        {
            "weight": theirs.embeddings.word_embeddings.weight,
            "parts.weight": theirs.embeddings.token_type_embeddings.weight,
        }
    )
    ours.positions.table.load_state_dict(theirs.embeddings.position_embeddings.state_dict())
    ours.norm.load_state_dict(theirs.embeddings.LayerNorm.state_dict())
    for block, layer in zip(ours.blocks, theirs.encoder.layer, strict=True):
        attention = layer.attention.self
        block.attention.q.load_state_dict(attention.query.state_dict())
        for name in ("weight", "bias"):
            both = torch.cat([getattr(attention.key, name), getattr(attention.value, name)])
            getattr(block.attention.kv, name).data = both.detach()
        block.attention.out.load_state_dict(layer.attention.output.dense.state_dict())
        block.norm_1.load_state_dict(layer.attention.output.LayerNorm.state_dict())
        block.feed.up.load_state_dict(layer.intermediate.dense.state_dict())
        block.feed.out.load_state_dict(layer.output.dense.state_dict())
        block.norm_2.load_state_dict(layer.output.LayerNorm.state_dict())
    return table, ours, theirs


@pytest.mark.parametrize("watched", [False, True], ids=["fused", "watched"])
def test_it_equals_transformers_with_parts_and_padding(watched: bool) -> None:
    table, ours, theirs = pair()
    marks = (ROWS == MARK).int()
    parts = (marks.cumsum(1) - marks > 0).long()
    with torch.no_grad():
        wanted = theirs(input_ids=ROWS, attention_mask=REAL.long(), token_type_ids=parts).last_hidden_state
        if watched:
            with record(ours):
                got = ours.encode(table(ROWS), REAL)
        else:
            got = ours.encode(table(ROWS), REAL)
    close(got[REAL], wanted[REAL])


def test_the_first_mark_still_belongs_to_the_first_part() -> None:
    table = PartedEmbedding(VOCABULARY, WIDTH, MARK)
    parts = table(ROWS) - torch.nn.functional.embedding(ROWS, table.weight)
    for row, after in enumerate((4, 3)):
        torch.testing.assert_close(parts[row, :after], table.parts.weight[0].expand(after, -1))
        torch.testing.assert_close(parts[row, after:], table.parts.weight[1].expand(7 - after, -1))


@pytest.mark.parametrize("rule", RULES)
def test_pooling_takes_no_notice_of_padding(rule: Any) -> None:
    pooling = alive(Pooling(4, rule))
    hidden = torch.randn(2, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    mask = torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
    both = pooling(hidden, mask)
    close(both[0], pooling(hidden[:1])[0])
    close(both[1], pooling(hidden[1:, :2])[0])


@pytest.mark.parametrize("rule", RULES)
def test_a_row_of_padding_is_a_number_and_so_is_its_gradient(rule: Any) -> None:
    head = alive(PooledHead(4, 3, rule))
    hidden = torch.randn(2, 5, 4, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True] * 5, [False] * 5])
    out = head(hidden, mask)
    out.sum().backward()
    assert out.isfinite().all()
    assert hidden.grad is not None and hidden.grad.isfinite().all()


def test_pooling_by_hand() -> None:
    hidden = torch.tensor([[[1.0, 8.0], [3.0, 2.0], [9.0, 9.0]]])
    mask = torch.tensor([[True, True, False]])
    wanted = {"mean": [2.0, 5.0], "max": [3.0, 8.0], "last": [3.0, 2.0], "first": [1.0, 8.0], "attention": [2.0, 5.0]}
    for rule, vector in wanted.items():  # a query of zeros, as it begins, asks nothing: the mean
        assert Pooling(2, rule)(hidden, mask).tolist() == [vector]  # type: ignore[arg-type]


def test_a_longer_text_than_there_are_positions_is_refused_with_the_way_out() -> None:
    with pytest.raises(Exception, match="learned positions end at 4"):
        Config(width=8, heads=2, context=4).build().encode(torch.zeros(1, 5, 8))
