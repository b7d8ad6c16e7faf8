"""The gated delta rule against its definition, written out step by step, and against transformers' layer."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from toys import alive, close
from transformers import Qwen3NextConfig
from transformers.models.qwen3_next import modeling_qwen3_next as theirs

from seqloom.core.taps import record, replace
from seqloom.layers.delta_rule import Inputs, chunked, step
from seqloom.models.deltanet import Config, DeltaMemory

ROWS, HEADS, LENGTH, SIZE = 2, 3, 11, 4
WIDTH = HEADS * SIZE

each_chunk = pytest.mark.parametrize("chunk", [1, 4, LENGTH, 64])
each_kind = pytest.mark.parametrize("options", [{}, {"decay": False}, {"negative": True}, {"kernel": 1}], ids=str)


def vectors(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def parts(length: int = LENGTH, size: int = SIZE, largest: float = 1.0, strength: float = 1.0) -> Inputs:
    """`strength`: of the decay."""
    q, k, v = (vectors(ROWS, HEADS, length, size, seed=n) for n in range(3))
    write, keep = (vectors(ROWS, HEADS, length, seed=n) for n in (3, 4))
    unit = [F.normalize(x, dim=-1) for x in (q, k)]
    return Inputs(*unit, v, largest * write.sigmoid(), -strength * keep.exp())


def matrix(size: int = SIZE) -> Tensor:
    return vectors(ROWS, HEADS, size, size, seed=5)


def written_out(inputs: Inputs, past: Tensor) -> tuple[Tensor, Tensor]:
    """S_t = a_t (I - b_t k_t^T k_t) S_{t-1} + b_t k_t^T v_t, y_t = q_t S_t"""
    answers, unit = [], torch.eye(past.size(-1), dtype=past.dtype)
    for t in range(inputs.q.size(2)):
        q, k, v = (x[:, :, t, :, None] for x in inputs[:3])
        b, a = inputs.write[:, :, t, None, None], inputs.keep[:, :, t, None, None].exp()
        past = a * (unit - b * k @ k.mT) @ past + b * k @ v.mT
        answers.append((q.mT @ past)[:, :, 0])
    return torch.stack(answers, dim=2), past


def mixer(**options: Any) -> DeltaMemory:
    return alive(DeltaMemory(Config.model_validate({"width": WIDTH, "heads": HEADS, **options})))


@each_chunk
@pytest.mark.parametrize("largest", [1.0, 2.0])
@pytest.mark.parametrize("strength", [0.0, 0.1, 10.0])
def test_chunks_give_what_the_recurrence_gives(chunk: int, largest: float, strength: float) -> None:
    inputs = parts(largest=largest, strength=strength)
    answers, _, after = chunked(inputs, matrix(), chunk)
    for ours, wanted in zip((answers, after), written_out(inputs, matrix()), strict=True):
        torch.testing.assert_close(ours, wanted, rtol=1e-10, atol=1e-10)


@each_chunk
def test_gradients_of_chunks_are_those_of_the_recurrence(chunk: int) -> None:
    found = []
    for form in (lambda *x: chunked(*x, chunk), written_out):
        leaves = [x.requires_grad_() for x in (*parts(strength=0.3), matrix())]
        answers, *_, after = form(Inputs(*leaves[:5]), leaves[5])
        loss = (answers * vectors(*answers.shape, seed=6)).sum() + (after * vectors(*after.shape, seed=7)).sum()
        found.append(torch.autograd.grad(loss, leaves))
    for ours, wanted in zip(*found, strict=True):
        torch.testing.assert_close(ours, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("largest", [1.0, 2.0])
def test_in_single_precision_over_many_chunks_it_stays_within_1e_5(largest: float) -> None:
    inputs = parts(length=600, size=16, largest=largest, strength=0.05)
    wanted, end = written_out(inputs, matrix(16))
    answers, _, after = chunked(Inputs(*(x.float() for x in inputs)), matrix(16).float(), 32)
    torch.testing.assert_close(answers.double(), wanted, rtol=0, atol=1e-5)
    torch.testing.assert_close(after.double(), end, rtol=0, atol=1e-5)


def test_weak_decay_after_a_token_that_forgets_everything_is_exact_in_single_precision() -> None:
    """A difference of two sums of logarithms would have lost it."""
    inputs = parts(length=40, strength=0.01)
    inputs.keep[:, :, 10] = -1e6
    single = Inputs(*(x.float().requires_grad_() for x in inputs))
    answers, _, after = chunked(single, matrix().float(), 32)
    wanted, end = written_out(inputs, matrix())
    torch.testing.assert_close(answers.double(), wanted, rtol=0, atol=1e-6)
    torch.testing.assert_close(after.double(), end, rtol=0, atol=1e-6)
    assert all(g.isfinite().all() for g in torch.autograd.grad(answers.sum(), single))


def test_the_same_key_many_times_does_not_blow_up_in_single_precision() -> None:
    """The powers of such a triangular matrix are huge, its inverse is not."""
    inputs = parts(length=64, largest=2.0, strength=0.0)
    inputs = inputs._replace(k=inputs.k[:, :, :1].expand_as(inputs.k), write=torch.full_like(inputs.write, 1.99))
    answers, _, _ = chunked(Inputs(*(x.float() for x in inputs)), matrix().float(), 64)
    torch.testing.assert_close(answers.double(), written_out(inputs, matrix())[0], rtol=1e-4, atol=1e-3)


def test_one_token_at_a_time_gives_the_same_answers_writes_and_matrix() -> None:
    inputs, past, found = parts(), matrix(), []
    whole = chunked(inputs, past, 4)
    for t in range(LENGTH):
        answer, write, past = step(Inputs(*(x[:, :, t : t + 1] for x in inputs)), past)
        found.append((answer, write))
    for ours, wanted in zip((*(torch.cat(x, dim=2) for x in zip(*found, strict=True)), past), whole, strict=True):
        close(ours, wanted)


def test_what_is_written_under_a_key_is_what_the_key_then_gives() -> None:
    """With b = 1 and no decay the old value under a key is replaced; linear attention would add."""
    inputs = parts(size=WIDTH)
    inputs = inputs._replace(q=inputs.k, write=torch.ones_like(inputs.write), keep=torch.zeros_like(inputs.keep))
    answers, _, _ = chunked(inputs, matrix(WIDTH), 4)
    close(answers, inputs.v)


@pytest.mark.parametrize("form", ["chunk", "recurrent"])
def test_it_equals_the_functions_of_transformers(form: str) -> None:
    inputs, past = parts(length=70, size=8, strength=0.2), matrix(8)
    q, k, v, write, keep = (x.transpose(1, 2).float() for x in inputs)
    rule = getattr(theirs, f"torch_{form}_gated_delta_rule")
    wanted, end = rule(q * 8**0.5, k, v, g=keep, beta=write, initial_state=past.float(), output_final_state=True)
    answers, _, after = chunked(inputs, past, 32)
    torch.testing.assert_close(answers.transpose(1, 2).float(), wanted, rtol=0, atol=1e-5)
    torch.testing.assert_close(after.float(), end, rtol=0, atol=1e-5)


def test_with_copied_weights_it_is_the_layer_of_transformers() -> None:
    ours = mixer().float()
    config = Qwen3NextConfig(
        hidden_size=WIDTH, num_hidden_layers=1, layer_types=["linear_attention"], rms_norm_eps=1e-6 / SIZE,
        linear_num_value_heads=HEADS, linear_num_key_heads=HEADS, linear_key_head_dim=SIZE, linear_value_head_dim=SIZE,
        linear_conv_kernel_dim=4, num_experts=1, num_attention_heads=1, num_key_value_heads=1, vocab_size=8,
    )  # fmt: skip
    other = theirs.Qwen3NextGatedDeltaNet(config, 0).eval()
    by_head = [w.unflatten(0, (HEADS, SIZE)) for w in (*ours.qkv.weight.chunk(3), ours.gate.weight)]
    gates = ours.to_write.weight, ours.to_decay.weight
    copied = {
        "in_proj_qkvz.weight": torch.cat(by_head, dim=1).flatten(0, 1),
        "in_proj_ba.weight": torch.stack(gates, dim=1).flatten(0, 1),
        "conv1d.weight": ours.near.permute(2, 1, 0),
        "A_log": ours.rate,
        "dt_bias": ours.bias,
        "norm.weight": ours.norm.weight,
        "out_proj.weight": ours.out.weight,
    }
    assert sorted(copied) == sorted(other.state_dict())
    other.load_state_dict(copied)
    torch.nn.init.zeros_(ours.to_write.bias)
    x = vectors(ROWS, 70, WIDTH).float()
    torch.testing.assert_close(ours(x, None, None)[0], other(x), rtol=0, atol=1e-5)


@each_kind
def test_padding_leaves_the_memory_as_it_was(options: dict[str, Any]) -> None:
    memory, x = mixer(chunk=4, **options), vectors(ROWS, LENGTH, WIDTH)
    mask = torch.arange(LENGTH) < torch.tensor([[7], [0]])
    outputs, (recent, after) = memory(x, None, mask)
    alone, (alone_recent, end) = memory(x[:1, :7], None, None)
    close(outputs[:1, :7], alone)
    close(after[:1], end)
    assert after[1].eq(0).all() and outputs.isfinite().all()
    if recent is not None:
        close(recent[:1], alone_recent)
        assert recent[1].eq(0).all()


@each_kind
def test_a_replaced_matrix_is_what_its_answer_and_the_next_token_read(options: dict[str, Any]) -> None:
    memory, x = mixer(**options), vectors(ROWS, LENGTH, WIDTH)
    with record(memory, "matrix") as trace:
        outputs, (recent, end) = memory(x, None, None)
    states = trace["matrix"]
    close(states[-1].view_as(end), end)
    passed = iter(range(LENGTH))
    with replace(memory, {"matrix": lambda s: states[next(passed)]}):
        close(memory(x, None, None)[0], outputs)
    passed = iter(range(LENGTH))
    with replace(memory, {"matrix": lambda s: 0 * s if next(passed) == 5 else s}):
        emptied, (_, after) = memory(x, None, None)
    assert emptied[:, 5].eq(0).all() and not torch.allclose(after, end)
    close(emptied[:, :5], outputs[:, :5])


@each_kind
def test_what_is_recorded_of_a_token_is_how_far_it_moves_the_memory(options: dict[str, Any]) -> None:
    memory, x = mixer(**options), vectors(ROWS, LENGTH, WIDTH)
    with record(memory) as trace:
        memory(x, None, None)
    states = torch.stack(trace["matrix"], dim=1).view(ROWS, LENGTH, HEADS, SIZE, SIZE)
    before = F.pad(states, (0, 0) * 3 + (1, 0))[:, :-1]
    kept = trace["keep_gate"][0] if memory.to_decay is not None else torch.ones(ROWS, LENGTH, HEADS)
    close(trace["change"][0], (states - kept[..., None, None] * before).norm(dim=(-1, -2)))


def test_its_memory_has_a_constant_size() -> None:
    model = alive(Config.model_validate({"width": 16, "depth": 1}).build())
    for length in (1, 5, 200):
        _, (read, ((_, (recent, matrix)),)) = model(vectors(ROWS, length, 16))
        assert read.tolist() == [length] * ROWS
        assert recent.shape == (ROWS, 3, 48) and matrix.shape == (ROWS, 4, 4, 4)


def test_the_memory_starts_with_time_constants_from_short_to_long() -> None:
    memory = DeltaMemory(Config.model_validate({"width": 16}))
    with record(memory, "keep_gate") as trace:
        memory(torch.zeros(1, 1, 16), None, None)
    found = -1 / trace["keep_gate"][0][0, 0].log()
    torch.testing.assert_close(found, torch.tensor([16.0, 64.0, 256.0, 1024.0]), rtol=1e-3, atol=0)
