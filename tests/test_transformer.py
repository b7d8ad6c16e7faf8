"""The Transformer is torch's, with copied weights: both layouts, with padding, all at once and token by token."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from toys import alive, close, translation

from seqloom.core.errors import UserError
from seqloom.core.taps import record
from seqloom.models.transformer import Config, Transformer
from seqloom.runs.configure import configure

WIDTH, HEADS, ROWS, SOURCE, LENGTH = 16, 4, 3, 7, 5
PADDED = torch.arange(SOURCE) < torch.tensor([SOURCE, 3, 1])[:, None]
LAYOUTS: dict[str, Any] = {  # torch's options
    "pre_norm": {"norm_first": True, "activation": partial(F.gelu, approximate="tanh")},
    "published": {"norm_first": False, "activation": "relu"},
}
pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")
each_layout = pytest.mark.parametrize("preset", LAYOUTS)
each_mask = pytest.mark.parametrize("mask", [None, PADDED], ids=["whole", "padded"])


def vectors(length: int, seed: int) -> Tensor:
    return torch.randn(ROWS, length, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


X, Y = vectors(SOURCE, 0), vectors(LENGTH, 1)


def pair(preset: str) -> tuple[Any, Any]:
    """Ours and torch's. In the layout of the paper there is no norm after the last block; torch adds one."""
    config = Config.model_validate(
        {"preset": preset, "width": WIDTH, "heads": HEADS, "depth": 2, "decoder_depth": 3, "feed": 24}
    )
    ours = alive(config.build())
    sizes = {"num_encoder_layers": 2, "num_decoder_layers": 3, "dim_feedforward": 24}
    theirs = nn.Transformer(WIDTH, HEADS, **sizes, dropout=0.0, batch_first=True, **LAYOUTS[preset]).double()
    for side in ("encoder", "decoder"):
        for block, layer in zip(getattr(ours, side), getattr(theirs, side).layers, strict=True):
            copy_block(block, layer)
        if preset == "pre_norm":
            getattr(theirs, side).norm.load_state_dict(getattr(ours, f"{side}_norm").state_dict())
        else:
            getattr(theirs, side).norm = None
    return ours, theirs


def copy_block(ours: Any, theirs: Any) -> None:
    copy_attention(ours.attention, theirs.self_attn)
    if hasattr(ours, "source"):
        copy_attention(ours.source, theirs.multihead_attn)
        theirs.norm3.load_state_dict(ours.norm_3.state_dict())
    theirs.linear1.load_state_dict(ours.feed.up.state_dict())
    theirs.linear2.load_state_dict(ours.feed.out.state_dict())
    theirs.norm1.load_state_dict(ours.norm_1.state_dict())
    theirs.norm2.load_state_dict(ours.norm_2.state_dict())


def copy_attention(ours: Any, theirs: nn.MultiheadAttention) -> None:
    parts = [ours.qkv] if hasattr(ours, "qkv") else [ours.q, ours.kv]
    theirs.in_proj_weight.data = torch.cat([part.weight for part in parts])
    theirs.in_proj_bias.data = torch.cat([part.bias for part in parts])
    theirs.out_proj.load_state_dict(ours.out.state_dict())


def placed(ours: Transformer, x: Tensor) -> Tensor:
    return x + ours.positions(torch.arange(x.size(1)))


@each_layout
@each_mask
def test_it_is_torchs_transformer(preset: str, mask: Tensor | None) -> None:
    ours, theirs = pair(preset)
    hidden = None if mask is None else ~mask
    future = nn.Transformer.generate_square_subsequent_mask(LENGTH, dtype=torch.float64)
    wanted = theirs(
        placed(ours, X), placed(ours, Y), tgt_mask=future, src_key_padding_mask=hidden, memory_key_padding_mask=hidden
    )
    outputs, _ = ours(Y, ours.begin(X, mask))
    close(outputs, wanted)
    state, steps = ours.begin(X, mask), []
    with torch.inference_mode():
        for one in Y.split(1, dim=1):
            output, state = ours(one, state)
            steps.append(output)
    close(torch.cat(steps, dim=1), wanted)


@each_layout
@each_mask
def test_its_encoder_is_torchs_encoder(preset: str, mask: Tensor | None) -> None:
    ours, theirs = pair(preset)
    wanted = theirs.encoder(placed(ours, X), src_key_padding_mask=None if mask is None else ~mask)
    real = PADDED if mask is not None else torch.ones_like(PADDED)
    close(ours.encode(X, mask)[real], wanted[real])


@each_mask
def test_the_weights_of_each_look_at_the_source_sum_to_one_and_ignore_padding(mask: Tensor | None) -> None:
    ours, _ = pair("pre_norm")
    with record(ours, "*.alignment") as trace:
        ours(Y, ours.begin(X, mask))
    assert len(trace) == 5
    for path, (weights,) in trace.items():
        assert weights.shape == (ROWS, HEADS, LENGTH if path.startswith("decoder") else SOURCE, SOURCE)
        close(weights.sum(-1), torch.ones_like(weights[..., 0]))
        if mask is not None:
            assert weights.masked_select(~mask[:, None, None]).eq(0).all()


def test_a_tied_table_is_read_larger() -> None:
    """Its vectors are small, because they also write; times sqrt(width) they have the size of the positions."""
    task = translation(joint=True)
    tied, free = (Config(width=WIDTH, tie=tie, dropout=0.0).assemble(task) for tie in (True, False))
    assert tied.head.weight is tied.embed.weight and tied.backbone.scale == WIDTH**0.5  # type: ignore[union-attr]
    assert free.backbone.scale == 1.0  # type: ignore[union-attr]


def test_learned_positions_end_and_say_so() -> None:
    model = Config(width=WIDTH, positions="learned", context=8).build()
    assert model.limit == model.reach == 8
    with pytest.raises(UserError, match="9 tokens long, the model's learned positions end at 8; shorten it, or train"):
        model.begin(torch.zeros(1, 9, WIDTH))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["model.width=20", "model.heads=4"], "width=20 must be a multiple of 2 x heads"),
        (["model.preset=modern"], "preset"),
        (["model.bend=swish"], "bend"),
    ],
)
def test_wrong_options_are_refused_in_one_line(options: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message) as refusal:
        configure(None, {"task.name": "translation", "model.name": "transformer", "data.train": "x"}, options)
    assert "\n" not in str(refusal.value)
