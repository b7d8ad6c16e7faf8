"""Tokens of one row, or of several, by a compiled program are those of the readable modules; states stay values."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor
from toys import alive, each, network, tokens

from seqloom.core.network import SequenceModel
from seqloom.core.state import map_state, select_rows
from seqloom.core.taps import record
from seqloom.decode.beam import beam_search
from seqloom.decode.prompts import start
from seqloom.decode.stream import stream
from seqloom.layers.int8 import Int8Linear, to_int8
from seqloom.layers.kernels import engine, fields
from seqloom.layers.kernels.engine import without_kernels
from seqloom.layers.linear import Linear, TiedLinear
from seqloom.layers.packed import pack
from seqloom.models import gpt

CELLS: list[tuple[str, dict[str, Any]]] = [
    (name, options) for name in ("lstm", "gru", "rnn") for options in ({}, {"depth": 2, "inputs": 5}, {"tie": True})
]
CELLS.append(("rnn", {"activation": "relu"}))


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def model_of(name: str, options: dict[str, Any], width: int = 64) -> SequenceModel:
    own = {"context": 64} if name == "gpt" else {}
    return alive(network(name, {"width": width, **own, **options}), std=0.12).float()  # larger ones are chaotic


def one_by_one(model: SequenceModel, ids: Tensor, read: int) -> Tensor:
    """The logits of every token after the first `read`, each read by itself."""
    found, state = [], model.begin(ids[:, :read])
    for place in range(read, ids.size(1)):
        logits, state = model(ids[:, place : place + 1], state)
        found.append(logits)
    return torch.cat(found, dim=1)


def near(found: Tensor, exact: Tensor, share: float = 1e-5) -> None:
    assert (found - exact).abs().max() <= share * exact.abs().max()


def uses_a_program(model: Any) -> bool:
    return any(program is not None for program in model.backbone.programs.values())


@torch.inference_mode()
@pytest.mark.parametrize("options", gpt.Config.variants, ids=str)
def test_every_layout_of_a_gpt_equals_its_blocks(options: dict[str, Any]) -> None:
    model, ids = model_of("gpt", options), tokens(1, 40)
    near(one_by_one(model, ids, 9), model(ids)[0][:, 9:])
    assert uses_a_program(model)


@torch.inference_mode()
@pytest.mark.parametrize(("name", "options"), [("gpt", {}), ("gpt", {"kv_heads": 2}), ("lstm", {})], ids=str)
def test_threads_share_a_token(two_threads: None, name: str, options: dict[str, Any]) -> None:
    model, ids = model_of(name, options, width=160), tokens(1, 12)
    near(one_by_one(model, ids, 6), model(ids)[0][:, 6:])
    (program,) = model.backbone.programs.values()
    assert max(program.program.table[:, fields.PARTS]) > 1


@torch.inference_mode()
@pytest.mark.parametrize(("name", "options"), CELLS, ids=str)
def test_every_recurrent_cell_equals_its_steps(name: str, options: dict[str, Any]) -> None:
    model, ids = model_of(name, options), tokens(1, 20)
    near(one_by_one(model, ids, 3), model(ids)[0][:, 3:])
    assert uses_a_program(model)


@torch.inference_mode()
@pytest.mark.parametrize(("name", "options"), [("gpt", each_) for each_ in gpt.Config.variants[:5]] + CELLS, ids=str)
def test_int8_equals_the_weights_that_it_stands_for(name: str, options: dict[str, Any]) -> None:
    """The exact reference: a float model that has every rounded weight times its scale."""
    model, ids = model_of(name, options), tokens(1, 20)
    exact, small = deepcopy(model), to_int8(deepcopy(model))
    for path, part in small.named_modules():
        if isinstance(part, Int8Linear):
            layer: Any = exact.get_submodule(path)
            if isinstance(layer, TiedLinear):
                layer.owner._parameters[layer.names[0]].data = part.whole()
            elif layer is not exact.head:
                layer.weight.data = part.whole()
    with torch.no_grad():
        small.head, exact.head = Linear(64, 11), Linear(64, 11)  # the same for both, so that only the stack differs
        exact.head.load_state_dict(small.head.state_dict())
    near(one_by_one(small, ids, 3), one_by_one(exact, ids, 3), 2e-2)  # the prompt is read with inputs in bfloat16
    state = exact.begin(ids[:, :3])
    near(small(ids[:, 3:4], state)[0], exact(ids[:, 3:4], exact.begin(ids[:, :3]))[0])


def padded_rows(count: int, read: int) -> tuple[Tensor, Tensor]:
    """Prompts of lengths from 1 to `read`, and which of their tokens are real."""
    lengths = (torch.arange(count) * 7) % read + 1
    return tokens(count, read), torch.arange(read) < lengths[:, None]


def goes_on(model: SequenceModel, rows: int, share: float = 1e-5) -> None:
    """Rows of different lengths, read together and continued by six tokens each, are what they are alone."""
    ids, real = padded_rows(rows, 15)
    _, state = model(ids, None, real)
    new, found = tokens(rows, 6, seed=1), []
    for place in range(6):
        logits, state = model(new[:, place : place + 1], state)
        found.append(logits)
    for row, text in enumerate(new):
        whole = torch.cat((ids[row, real[row]], text))
        near(torch.cat(found, dim=1)[row], model(whole[None])[0][0, -6:], share)


@torch.inference_mode()
@pytest.mark.parametrize("options", gpt.Config.variants, ids=str)
def test_rows_of_any_length_equal_the_blocks_of_a_gpt(options: dict[str, Any]) -> None:
    model = model_of("gpt", options)
    for rows in (2, 19):
        goes_on(model, rows)
    assert {room for _, room in model.backbone.programs} == {16, 32} and uses_a_program(model)


@torch.inference_mode()
@pytest.mark.parametrize(("name", "options"), CELLS, ids=str)
def test_rows_of_any_length_equal_the_steps_of_a_cell(name: str, options: dict[str, Any]) -> None:
    for model in (model_of(name, options), model_of(name, options, width=256)):
        goes_on(model, rows=3)
        if pack(model):  # then prompts are read by the program as well
            goes_on(model, rows=17)
        assert uses_a_program(model)


@torch.inference_mode()
@pytest.mark.parametrize(
    ("name", "options"), [("gpt", {}), ("gpt", {"preset": "gpt2"}), ("lstm", {}), ("gru", {})], ids=str
)
def test_threads_share_rows(two_threads: None, name: str, options: dict[str, Any]) -> None:
    model = model_of(name, options, width=160)
    goes_on(model, rows=33)
    (program,) = model.backbone.programs.values()
    assert program.program.room == 48 and max(program.program.table[:, fields.PARTS]) > 1


@torch.inference_mode()
@pytest.mark.parametrize(
    ("name", "options"), [("gpt", {}), ("gpt", {"bias": True}), ("lstm", {}), ("gru", {})], ids=str
)
def test_int8_rows_equal_an_int8_row(name: str, options: dict[str, Any]) -> None:
    model, ids = to_int8(model_of(name, options)), tokens(5, 6)
    model.head = Linear(64, 11)  # torch's int8 product rounds inputs
    state = model.begin(ids)
    found, _ = model(tokens(5, 1), state)
    for row in range(5):
        one, _ = model(tokens(5, 1)[row : row + 1], select_rows(state, torch.tensor([row])))
        near(found[row], one[0])


@each(size=[(400, 257), (1001, 128), (130, 1000)])
def test_one_row_through_a_large_matrix(size: tuple[int, int]) -> None:
    torch.manual_seed(0)
    for bias in (True, False):
        linear, x = Linear(*size, bias=bias), torch.randn(1, size[0])
        small = Int8Linear(linear)
        with torch.inference_mode():
            near(linear(x), torch.nn.functional.linear(x, linear.weight, linear.bias))
            near(small(x), torch.nn.functional.linear(x, small.whole(), linear.bias))


@torch.inference_mode()
@pytest.mark.parametrize(("name", "options"), [("gpt", {}), ("gpt", {"window": 5}), ("lstm", {}), ("gru", {})], ids=str)
def test_one_state_has_many_continuations(name: str, options: dict[str, Any]) -> None:
    model, ids = model_of(name, options), tokens(1, 12)
    state = model.begin(ids[:, :5])
    for place in (5, 6):
        _, state = model(ids[:, place : place + 1], state)
    before = map_state(torch.clone, state)
    others = [torch.cat((ids[:, :7], tokens(1, 3, seed=seed)), dim=1) for seed in range(3)]
    for text in others:
        found, after = model(text[:, 7:8], state)
        again, _ = model(text[:, 8:9], after)
        near(torch.cat((found, again), 1), model(text)[0][:, 7:9])
    near(model(ids[:, 7:8], before)[0], model(ids[:, 7:8], state)[0])


@torch.inference_mode()
def test_rows_taken_from_a_batch_go_on_alone() -> None:
    model, ids = model_of("gpt", {}), tokens(3, 12)
    state = model.begin(ids[:, :6])
    for place in (6, 7):
        _, state = model(ids[:, place : place + 1], state)
    alone = select_rows(state, torch.tensor([1]))
    near(model(ids[1:2, 8:9], alone)[0], model(ids[1:2])[0][:, 8:9])
    padded = torch.tensor([[True] * 6 + [False] * 4])  # slots after the last real token are there already
    _, state = model(tokens(1, 10), None, padded)
    text = torch.cat((tokens(1, 10)[:, :6], ids[:1, :3]), dim=1)
    for place in (6, 7, 8):
        found, state = model(text[:, place : place + 1], state)
    near(found, model(text)[0][:, 8:])


@pytest.mark.parametrize(
    ("name", "options"), [("gpt", {"context": 8}), ("gpt", {"window": 4}), ("lstm", {}), ("gru", {})], ids=str
)
def test_greedy_texts_are_the_same_past_the_limit_and_in_beams(name: str, options: dict[str, Any]) -> None:
    model, prompt = model_of(name, options), tokens(1, 5)[0].tolist()

    def texts() -> list[Any]:
        greedy = [int(token) for token in stream(model, [prompt], max_new=40)]
        found = [greedy]
        for beams in (1, 3):
            with torch.inference_mode():
                state, last, refill = start(model, [prompt])
            best = beam_search(model, state, last, beams=beams, max_new=20, refill=refill)[0]
            found.append([hypothesis.tokens for hypothesis in best])
        return found

    with_kernels = texts()
    assert uses_a_program(model)
    with without_kernels():
        assert texts() == with_kernels


@torch.inference_mode()
def test_what_is_recorded_or_changed_is_seen() -> None:
    for name in ("gpt", "lstm"):
        model, ids = model_of(name, {}), tokens(1, 6)
        _, state = model(ids[:, 4:5], model.begin(ids[:, :4]))
        with record(model) as trace:
            watched, _ = model(ids[:, 5:], state)
        assert all(trace[path] for path in trace if path.endswith("output"))
        near(model(ids[:, 5:], state)[0], watched)
        for weight in model.backbone.parameters():
            weight.mul_(1.5)
        near(one_by_one(model, ids, 3), model(ids)[0][:, 3:])
        copy = deepcopy(model)
        assert not copy.backbone.programs and pickle.dumps(model)
        model.load_state_dict(alive(copy, std=0.2).float().state_dict())
        near(one_by_one(model, ids, 3), model(ids)[0][:, 3:])


def test_a_slower_path_is_named_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(engine, "has_kernels", lambda: False)
    monkeypatch.setattr(engine, "_said", set())
    engine._found.cache_clear()
    try:
        with caplog.at_level(logging.WARNING), torch.inference_mode():
            for _ in range(2):
                model, ids = model_of("gpt", {}), tokens(1, 6)
                near(one_by_one(model, ids, 3), model(ids)[0][:, 3:])
        assert [record.getMessage() for record in caplog.records] == [
            "tokens are decoded without compiled kernels, which is slower: needs the numba package: "
            "pip install 'seqloom[fast]'"
        ]
    finally:
        engine._found.cache_clear()


def test_a_compiler_that_fails_is_no_fault(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> None:
        raise OSError("no space left\non this disk")

    monkeypatch.setattr(engine, "_runner", broken)
    monkeypatch.setattr(engine, "_said", set())
    engine._found.cache_clear()
    try:
        with caplog.at_level(logging.WARNING):
            assert engine.runner() is None and engine.runner() is None
        (said,) = caplog.records
        assert said.getMessage().endswith("the kernels could not be compiled (OSError: no space left)")
    finally:
        engine._found.cache_clear()
