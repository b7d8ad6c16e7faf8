"""One token at a time on several cores gives what the readable block gives."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from copy import deepcopy

import pytest
import torch
from torch import nn
from toys import alive, close, each, network, tokens

from seqloom.core.errors import UserError
from seqloom.core.taps import record
from seqloom.layers.int8 import Int8Linear, to_int8
from seqloom.layers.linear import Linear, by_columns

pytestmark = pytest.mark.long

OPTIONS = [
    {"preset": "modern"},
    {"preset": "gpt2"},
    {"preset": "gpt2", "pre_norm": False},
    {"preset": "llama", "kv_heads": 2},
    {"kv_heads": 1, "window": 4},
]


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_token_in_blocks_equals_the_whole_block(two_threads: None, options: dict, rows: int) -> None:
    model, ids = alive(network("gpt", {**options, "context": 32})), tokens(rows, 9)
    with torch.inference_mode():
        state = model.begin(ids[:, :-1])
        quick, _ = model(ids[:, -1:], state)
        with record(model):  # a watched model takes the readable path
            readable, _ = model(ids[:, -1:], model.begin(ids[:, :-1]))
    close(quick, readable)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("size", "bias"), [((400, 300), True), ((400, 300), False), ((7, 5), True), ((7, 5), False)])
def test_one_row_through_a_linear_map_equals_the_same_row_among_others(
    two_threads: None, size: tuple[int, int], bias: bool, threads: int
) -> None:
    torch.set_num_threads(threads)
    out, inputs = size
    linear, x = Linear(inputs, out, bias=bias).double(), torch.randn(3, inputs, dtype=torch.float64)
    with torch.inference_mode():
        close(torch.cat([linear(row[None]) for row in x]), linear(x))
        close(linear(x[:1, None]), linear(x)[:1, None])


def test_steps_made_once_follow_the_weights_wherever_they_go() -> None:
    model, ids = network("gpt", {"context": 32}), tokens(1, 4)
    with torch.inference_mode():
        before = model(ids[:, -1:], model.begin(ids[:, :-1]))[0]
        model.float()
        after = model(ids[:, -1:], model.begin(ids[:, :-1]))[0]
        torch.testing.assert_close(after.double(), before, rtol=1e-4, atol=1e-4)
        model.backbone.blocks[0].feed.up.weight.mul_(2)
        close(model(ids[:, -1:], model.begin(ids[:, :-1]))[0], model(ids)[0][:, -1:])


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_int8_is_near_and_its_single_tokens_equal_its_whole_text(options: dict) -> None:
    model, ids = network("gpt", {**options, "context": 32}).float(), tokens(2, 9)
    with torch.inference_mode():
        exact = model(ids)[0]
        model = to_int8(model)
        whole = model(ids)[0]
        one, _ = model(ids[:, -1:], model.begin(ids[:, :-1]))
    assert 0 < (whole - exact).norm() / exact.norm() < 0.05
    torch.testing.assert_close(one, whole[:, -1:], rtol=0.02, atol=0.02)


@each(inputs=[1, 5, 16, 20, 48, 257])
@pytest.mark.parametrize(("rows", "out"), [(1, 1), (3, 27), (8, 65)])
def test_int8_takes_matrices_of_any_size(inputs: int, rows: int, out: int) -> None:
    torch.manual_seed(0)
    for bias in (True, False):
        linear, x = Linear(inputs, out, bias=bias), torch.randn(rows, inputs)
        with torch.inference_mode():
            assert (Int8Linear(linear)(x) - linear(x)).norm() < 0.05 * max(0.1, float(linear(x).norm()))


@pytest.mark.parametrize("name", ["linear_attention", "ttt", "mingru", "minlstm", "window"])
def test_int8_is_near_for_every_model_of_linear_maps(name: str) -> None:
    model, ids = network(name, {}).float(), tokens(2, 9)
    with torch.inference_mode():
        exact = model(ids)[0]
        model = to_int8(model)
        assert 0 < (model(ids)[0] - exact).norm() / exact.norm() < 0.1
        assert model(ids[:, :0])[0].shape == (2, 0, exact.size(-1))


def test_a_copy_made_after_decoding_answers_with_its_own_weights() -> None:
    model, ids = network("gpt", {"context": 32}), tokens(1, 4)
    with torch.inference_mode():
        model(ids[:, -1:], model.begin(ids[:, :-1]))
        copy = deepcopy(model)
        copy.backbone.blocks[0].feed.up.weight.mul_(2)
        close(copy(ids[:, -1:], copy.begin(ids[:, :-1]))[0], copy(ids)[0][:, -1:])
        pickle.dumps(model)


def test_a_state_made_in_inference_mode_can_be_continued_outside_of_it() -> None:
    model, ids = network("gpt", {"context": 32}), tokens(2, 5)
    with torch.inference_mode():
        _, state = model(ids[:, 3:4], model.begin(ids[:, :3]))
    with torch.no_grad():
        close(model(ids[:, 4:], state)[0], model(ids)[0][:, 4:])


@pytest.mark.parametrize("rows", [1, 3])
def test_a_single_token_may_be_read_under_autocast(rows: int) -> None:
    model, ids = network("gpt", {"context": 32}).float(), tokens(rows, 5)
    with torch.no_grad():
        with torch.autocast("cpu", torch.bfloat16):
            one, state = model(ids[:, 3:4], model.begin(ids[:, :3]))
        after, _ = model(ids[:, 4:], state)
        whole, _ = model(ids)
    for ours, exact in ((one.float(), whole[:, 3:4]), (after, whole[:, 4:])):
        assert (ours - exact).norm() / exact.norm() < 0.1


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("bias", [False, True])
def test_a_matrix_stored_by_columns_gives_the_same_products(threads: int, bias: bool) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        plain, small = Linear(320, 640, bias=bias), Linear(16, 8, bias=bias)
        turned = deepcopy(nn.ModuleList([plain, small]))
        by_columns(turned)
        assert turned[0].weight.stride() == (1, 640) and turned[1].weight.is_contiguous()
        for rows in (1, 3):
            x = torch.randn(rows, 320)
            with torch.inference_mode():
                for found in (turned[0](x), turned[0].map_of(rows)(x)):
                    torch.testing.assert_close(found, plain(x), rtol=1e-4, atol=1e-5)
    finally:
        torch.set_num_threads(before)


def test_int8_is_refused_where_only_the_head_has_a_matrix() -> None:
    with pytest.raises(UserError, match="this model has none but its head"):
        to_int8(network("ngram", {}))
