"""minGRU and minLSTM are what the paper writes, and stay so where numbers are extreme."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from toys import alive, close, network, tokens

from seqloom.core.state import flatten_state
from seqloom.core.taps import record
from seqloom.models.mingru import MinGRUCell, ParallelCell
from seqloom.models.minlstm import MinLSTMCell

CELLS = {"mingru": MinGRUCell, "minlstm": MinLSTMCell}
ROWS, STEPS, INPUTS, HIDDEN = 3, 50, 4, 6

each_cell = pytest.mark.parametrize("name", CELLS)


def vectors(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def paper(name: str, cell: Any, x: Tensor, h: Tensor) -> Tensor:
    """Sections 3.1 and 3.2, one step after the other."""
    hs = []
    for x_t in x.unbind(1):
        parts = (cell.into.weight @ x_t[..., None])[..., 0] + cell.into.bias
        if name == "mingru":
            z, candidate = parts[:, :HIDDEN].sigmoid(), parts[:, HIDDEN:]
            h = (1 - z) * h + z * candidate
        else:
            f, i, candidate = parts[:, :HIDDEN].sigmoid(), parts[:, HIDDEN:-HIDDEN].sigmoid(), parts[:, -HIDDEN:]
            h = f / (f + i) * h + i / (f + i) * candidate
        hs.append(h)
    return torch.stack(hs, dim=1)


@each_cell
@pytest.mark.parametrize("steps", [1, STEPS])
def test_a_cell_is_the_papers(name: str, steps: int) -> None:
    cell: ParallelCell = alive(CELLS[name](INPUTS, HIDDEN), std=2.0)
    x, start = vectors(ROWS, steps, INPUTS).requires_grad_(), vectors(ROWS, HIDDEN, seed=1).requires_grad_()
    hs, wanted = cell(x, start, None), paper(name, cell, x, start)
    close(hs, wanted)
    close(cell.step(x[:, 0], start), wanted[:, 0])
    factors, given = vectors(*hs.shape, seed=2), (x, start, *cell.parameters())
    found = torch.autograd.grad((hs * factors).sum(), given)
    for ours, theirs in zip(found, torch.autograd.grad((wanted * factors).sum(), given), strict=True):
        close(ours, theirs)


@each_cell
@pytest.mark.parametrize("size", [1e2, 1e5])
@pytest.mark.parametrize("sign", [-1, 1])
def test_gates_shut_or_open_beyond_single_precision_stay_an_average(name: str, size: float, sign: int) -> None:
    """Both gates of a minLSTM may be zero in single precision; their shares of one whole are not."""
    cell = CELLS[name](INPUTS, HIDDEN)
    x, start = vectors(ROWS, STEPS, INPUTS).float(), vectors(ROWS, HIDDEN, seed=1).float()
    with torch.no_grad():
        cell.into.bias[:-HIDDEN] = sign * size
    x.requires_grad_()
    hs = cell(x, start, None)
    candidates = cell.into(x)[..., -HIDDEN:]
    largest = torch.maximum(candidates.amax(1), start), torch.minimum(candidates.amin(1), start)
    assert ((hs <= largest[0][:, None] + 1e-4) & (hs >= largest[1][:, None] - 1e-4)).all()
    assert all(g.isfinite().all() for g in torch.autograd.grad(hs.sum(), (x, *cell.parameters())))


@each_cell
def test_an_untrained_memory_forgets_at_many_paces(name: str) -> None:
    cell = CELLS[name](INPUTS, 100)
    gate = cell.gate(cell.into.bias.detach().chunk(len(cell.signs))[:-1])
    assert float(gate[0]) == pytest.approx(1 / 1.5) and float(gate[-1]) == pytest.approx(1 / 64)
    assert (gate.diff() < 0).all()


@each_cell
def test_what_is_watched_is_the_memory_itself(name: str) -> None:
    model = network(name, {"depth": 2})
    with record(model, "*.state") as trace:
        _, state = model(tokens(ROWS, 9))
    for (hs,), (h, recent) in zip(trace.values(), state, strict=True):
        close(hs[:, -1], h)
        assert recent.shape == (ROWS, 3, 16)


@each_cell
@pytest.mark.parametrize("rows", [1, 3])
def test_a_token_in_plain_calls_equals_the_readable_block(name: str, rows: int) -> None:
    model, ids = network(name, {}), tokens(rows, 9)
    with torch.inference_mode():
        for context in (ids[:, :0], ids[:, :-1]):
            state = model.begin(context) if context.size(1) else None
            quick, end = model(ids[:, -1:], state)
            with record(model):  # a watched model takes the readable path
                readable, wanted = model(ids[:, -1:], state)
            close(quick, readable)
            for ours, theirs in zip(flatten_state(end).values(), flatten_state(wanted).values(), strict=True):
                close(ours, theirs)


@each_cell
def test_a_memory_keeps_its_precision_where_products_are_rounded(name: str) -> None:
    model = network(name, {}).float()
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        _, state = model(tokens(ROWS, 9))
        outputs, state = model(tokens(ROWS, 1, seed=1), state)
    assert outputs.isfinite().all()
    assert {t.dtype for t in flatten_state(state).values()} == {torch.float32}
