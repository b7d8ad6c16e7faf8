"""xLSTM's cells against the paper's equations, and a stack of mLSTM against transformers' with copied weights."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from toys import alive, close, network, tokens
from transformers import xLSTMConfig, xLSTMModel

from seqloom.core.state import flatten_state
from seqloom.core.taps import record, replace
from seqloom.models.xlstm import MLSTM, SLSTM, Config, stabiliser

ROWS, LENGTH, WIDTH, HEADS = 2, 19, 12, 3
SIZE = WIDTH // HEADS

each_chunk = pytest.mark.parametrize("chunk", [1, 4, 64])
each_cell = pytest.mark.parametrize("kind", [MLSTM, SLSTM])


def vectors(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def mixer(kind: type[Any], std: float = 0.5, **options: Any) -> Any:
    given = {"width": WIDTH, "heads": HEADS, "chunk": 4, "cap": 0.0, **options}
    return alive(kind(Config.model_validate(given)), std)


def normalised(own: Any, h: Tensor) -> Tensor:
    """(B, T, H, D) -> (B, T, width)"""
    h = (h - h.mean(-1, keepdim=True)) / (h.var(-1, keepdim=True, unbiased=False) + 1e-6).sqrt()
    return h.flatten(2) * own.norm.weight


def paper_mlstm(own: MLSTM, x: Tensor) -> Tensor:
    """Section 2.3, equations 19 to 27, without a stabiliser."""
    q, k, v, o, gates = (x @ own.into.weight.T).split([*[WIDTH] * 4, 2 * HEADS], dim=-1)
    q, k, v = (part.unflatten(-1, (HEADS, SIZE)) for part in (q, k / SIZE**0.5, v))
    i, f = (gates + own.bias).chunk(2, dim=-1)
    i, f = i.exp()[..., None], f.sigmoid()[..., None]
    c, n = x.new_zeros(ROWS, HEADS, SIZE, SIZE), x.new_zeros(ROWS, HEADS, SIZE)
    hs = []
    for t in range(x.size(1)):
        c = f[:, t, ..., None] * c + i[:, t, ..., None] * v[:, t, :, :, None] * k[:, t, :, None]
        n = f[:, t] * n + i[:, t] * k[:, t]
        below = (n * q[:, t]).sum(-1, keepdim=True).abs().clamp_min(1)
        hs.append((c @ q[:, t, ..., None])[..., 0] / below)
    return (o.sigmoid() * normalised(own, torch.stack(hs, dim=1))) @ own.out.weight.T


def paper_slstm(own: SLSTM, x: Tensor) -> Tensor:
    """Section 2.2, equations 8 to 17, with the stabiliser m; R is block-diagonal."""
    cell = own.cell
    recurrent = [torch.block_diag(*gate.unflatten(0, (HEADS, SIZE))) for gate in cell.weight_h.chunk(4)]
    h = c = n = m = x.new_zeros(ROWS, WIDTH)
    hs = []
    for t, x_t in enumerate(x.unbind(1)):
        inputs = (x_t @ cell.weight_x.T + cell.bias).chunk(4, dim=-1)
        i, f, z, o = (part + h @ matrix.T for part, matrix in zip(inputs, recurrent, strict=True))
        log_f = f.sigmoid().log()
        new = torch.maximum(log_f + m, i) if t else i
        i_, f_, m = torch.exp(i - new), torch.exp(log_f + m - new), new
        c, n = f_ * c + i_ * z.tanh(), f_ * n + i_
        h = o.sigmoid() * c / n
        hs.append(h)
    return normalised(own, torch.stack(hs, dim=1).unflatten(-1, (HEADS, SIZE))) @ own.out.weight.T


PAPERS = {MLSTM: paper_mlstm, SLSTM: paper_slstm}


@each_cell
@each_chunk
def test_a_cell_is_the_papers_and_so_are_its_gradients(kind: type[Any], chunk: int) -> None:
    own, x = mixer(kind, chunk=chunk), vectors(ROWS, LENGTH, WIDTH).requires_grad_()
    wanted, found = PAPERS[kind](own, x), own(x, None, None)[0]
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)
    memory, outputs = None, []
    for x_t in x.split(1, dim=1):
        y_t, memory = own(x_t, memory, None)
        outputs.append(y_t)
    torch.testing.assert_close(torch.cat(outputs, dim=1), wanted, rtol=1e-10, atol=1e-10)
    given, factors = (x, *own.parameters()), vectors(*found.shape, seed=2)
    for ours, theirs in zip(
        torch.autograd.grad((found * factors).sum(), given),
        torch.autograd.grad((wanted * factors).sum(), given),
        strict=True,
    ):
        close(ours, theirs)


@each_cell
def test_single_precision_is_near_it_over_many_steps(kind: type[Any]) -> None:
    own, x = mixer(kind, std=0.3), vectors(ROWS, 300, WIDTH)
    wanted = own(x, None, None)[0]
    found = own.float()(x.float(), None, None)[0]
    assert (found - wanted).abs().max() < 1e-5 * wanted.abs().max()


@each_cell
@pytest.mark.parametrize("input_gate, forget_gate", [(200, 0), (-200, 0), (0, -1e4), (200, -1e4), (80, 100)])
def test_gates_beyond_single_precision_give_numbers(kind: type[Any], input_gate: float, forget_gate: float) -> None:
    own, x = mixer(kind).float(), vectors(ROWS, 200, WIDTH).float().requires_grad_()
    bias = own.bias if kind is MLSTM else own.cell.bias
    units = HEADS if kind is MLSTM else WIDTH
    bias.data[:units], bias.data[units : 2 * units] = input_gate, forget_gate
    outputs, _ = own(x, None, None)
    assert outputs.isfinite().all()
    assert all(g.isfinite().all() for g in torch.autograd.grad(outputs.sum(), (x, *own.parameters())))


def test_the_stabiliser_is_the_largest_log_weight_and_never_negative() -> None:
    i, f, m = 3 * vectors(1, 2, 9), -vectors(1, 2, 9, seed=1).exp(), vectors(1, 2, 1, seed=2).abs()
    found, wanted = stabiliser(i, f, m), []
    for t in range(9):
        m = torch.maximum(f[..., t, None] + m, i[..., t, None].clamp_min(0))
        wanted.append(m)
    close(found, torch.cat(wanted, dim=-1))


def test_a_stack_of_mlstm_equals_transformers_with_copied_weights() -> None:
    width, heads = 64, 2
    config = Config(width=width, heads=heads, depth=2, kernel=1, cells="m", chunk=8, feed=64)
    ours: Any = alive(config.build(), std=0.1).float()
    eps = torch.finfo(torch.float32).eps
    theirs: Any = xLSTMModel(
        xLSTMConfig(
            hidden_size=width, num_hidden_layers=2, num_heads=heads, qk_dim_factor=1.0, vocab_size=11, chunk_size=8,
            ffn_proj_factor=1.0, norm_eps=eps, eps=0.0, autocast_kernel_dtype="float32",
        )
    ).eval()  # fmt: skip
    with torch.no_grad():
        theirs.out_norm.weight.copy_(ours.norm.weight)
        for block, other in zip(ours.blocks, theirs.blocks, strict=True):
            own, layer = block.mixer, other.mlstm_layer
            *linear, gates = own.into.weight.split(own.sizes)
            for name, weight in zip(("q", "k", "v", "ogate_preact"), linear, strict=True):
                getattr(layer, name).weight.copy_(weight)
            for name, weight, bias in zip(
                ("igate_preact", "fgate_preact"), gates.chunk(2), own.bias.chunk(2), strict=True
            ):
                getattr(layer, name).weight.copy_(weight)
                getattr(layer, name).bias.copy_(bias)
            layer.multihead_norm.weight.copy_(own.norm.weight)
            layer.multihead_norm.eps = own.norm.eps
            layer.out_proj.weight.copy_(own.out.weight)
            other.norm_mlstm.weight.copy_(block.norm_1.weight)
            other.norm_ffn.weight.copy_(block.norm_2.weight)
            other.ffn.proj_up_gate.weight.copy_(block.feed.up.weight[:64])
            other.ffn.proj_up.weight.copy_(block.feed.up.weight[64:])
            other.ffn.proj_down.weight.copy_(block.feed.out.weight)
        x = vectors(ROWS, LENGTH, width).float()
        torch.testing.assert_close(ours(x)[0], theirs(inputs_embeds=x).last_hidden_state, rtol=1e-4, atol=2e-5)


@each_cell
def test_padding_leaves_the_state_unchanged(kind: type[Any]) -> None:
    own, x = mixer(kind), vectors(ROWS, LENGTH, WIDTH)
    mask = torch.arange(LENGTH) < torch.tensor([[7], [0]])
    outputs, after = own(x, None, mask)
    alone, end = own(x[:1, :7], None, None)
    close(outputs[:1, :7], alone)
    for ours, theirs in zip(after, end, strict=True):
        close(ours[:1], theirs)
    assert outputs.isfinite().all()
    unread = tuple(part[1:] for part in after)
    for ours, theirs in zip(own(x[1:, :3], unread, None)[1], own(x[1:, :3], None, None)[1], strict=True):
        close(ours, theirs)


def test_the_state_never_grows() -> None:
    model = alive(Config(width=16, depth=2).build())
    for length in (1, 5, 200):
        _, (read, ((_, (matrix, m)), (_, cell))) = model(vectors(ROWS, length, 16))
        assert read.tolist() == [length] * ROWS
        assert matrix.shape == (ROWS, 4, 4, 5) and m.shape == (ROWS, 4, 1)
        assert [part.shape for part in cell] == [(ROWS, 16)] * 3


@pytest.mark.parametrize("cells, kinds", [("m", "mmm"), ("ms", "msm"), ("ssm", "ssm")])
def test_the_pattern_of_cells_is_repeated(cells: str, kinds: str) -> None:
    model: Any = Config(width=16, depth=3, cells=cells).build()
    assert "".join("m" if isinstance(block.mixer, MLSTM) else "s" for block in model.blocks) == kinds


def test_other_letters_are_refused() -> None:
    with pytest.raises(ValueError, match="cells"):
        Config(cells="lstm")


def test_the_memory_of_an_slstm_can_be_seen_and_replaced() -> None:
    own, x = mixer(SLSTM), vectors(ROWS, LENGTH, WIDTH)
    with record(own) as trace:
        outputs, (h, average, mass) = own(x, None, None)
    for tap, part in (("state", h), ("carry", average), ("mass", mass)):
        close(trace[f"cell.{tap}"][-1], part)
    averages = torch.stack([torch.zeros_like(average), *trace["cell.carry"]])
    share = torch.stack(trace["cell.write"])
    candidates = (averages[1:] - (1 - share) * averages[:-1]) / share
    assert candidates.abs().max() < 1, "an average of tanh"
    with replace(own, {"cell.carry": torch.zeros_like}):
        replaced, (h, _, _) = own(x, None, None)
    assert h.eq(0).all() and not torch.allclose(replaced, outputs)


def test_what_an_mlstm_forgets_and_writes_is_what_happens_to_its_memory() -> None:
    own, x = mixer(MLSTM, heads=1), vectors(ROWS, 2, WIDTH)
    _, memory = own(x[:, :1], None, None)
    with record(own) as trace:
        _, (matrix, m) = own(x[:, 1:], memory, None)
    keep, write = trace["forget_gate"][0][:, 0], trace["write"][0][:, 0]  # (B, 1)
    added = matrix - (keep * (memory[1] - m)[:, 0].exp())[..., None, None] * memory[0]
    close(added[..., :-1].flatten(1).norm(dim=1, keepdim=True), write)


def test_a_memory_keeps_its_precision_where_products_are_rounded() -> None:
    model = network("xlstm", {"depth": 2}).float()
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        outputs, state = model(tokens(ROWS, 9))
    assert outputs.isfinite().all()
    assert {t.dtype for t in flatten_state(state).values()} == {torch.float32, torch.int64}
