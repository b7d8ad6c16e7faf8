"""Ours against the reference, with copied weights: torch's recurrent layers and attention,
transformers' GPT-2, Llama and Mistral."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from toys import alive, language_model, tokens

from seqloom.core.taps import record
from seqloom.decode.pick import Choice
from seqloom.decode.stream import stream
from seqloom.layers.attention import SelfAttention
from seqloom.layers.cache import Cache
from seqloom.layers.recurrent import Cell
from seqloom.models import gpt, gru, lstm, rnn

WIDTH, ROWS, LENGTH = 8, 3, 7

# name: our configuration, torch's layer, and torch's order of the gates in ours
CELLS: dict[str, tuple[Callable[..., Any], Callable[..., nn.RNNBase], list[int]]] = {
    "rnn tanh": (rnn.Config, nn.RNN, [0]),
    "rnn relu": (
        lambda **o: rnn.Config(activation="relu", **o),
        lambda *a, **o: nn.RNN(*a, nonlinearity="relu", **o),
        [0],
    ),
    "lstm": (lstm.Config, nn.LSTM, [0, 1, 2, 3]),
    "gru": (gru.Config, nn.GRU, [0, 1, 2]),
}

each_cell = pytest.mark.parametrize("name", CELLS)
each_depth = pytest.mark.parametrize("depth", [1, 2])
each_path = pytest.mark.parametrize("path", ["fused", "watched loop", "masked loop"])


def vectors(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def copy_cell(ours: Cell, theirs: Any, suffix: str, order: list[int]) -> None:
    """Torch's gates in our order; torch's two biases as one, but for the one inside the GRU's reset gate."""

    def ordered(kind: str) -> Tensor:
        return torch.cat([getattr(theirs, kind + suffix).detach().chunk(len(order))[gate] for gate in order])

    ours.weight_x.data, ours.weight_h.data = ordered("weight_ih"), ordered("weight_hh")
    bias, recurrent = ordered("bias_ih"), ordered("bias_hh")
    if isinstance(ours, gru.GRUCell):
        ours.bias_new.data = recurrent[-ours.hidden :].clone()
        recurrent[-ours.hidden :] = 0
    ours.bias.data = bias + recurrent


def pair(name: str, depth: int, bidirectional: bool = False) -> tuple[Any, Any]:
    config, layer, order = CELLS[name]
    torch.manual_seed(0)
    directions = 2 if bidirectional else 1
    theirs = layer(WIDTH, WIDTH // directions, depth, batch_first=True, bidirectional=bidirectional).double()
    ours = config(width=WIDTH, depth=depth, bidirectional=bidirectional).build().double()
    for n, cells in enumerate(ours.layers):
        for cell, direction in zip(cells, ["", "_reverse"], strict=False):
            copy_cell(cell, theirs, f"_l{n}{direction}", order)
    return ours, theirs


def run(model: Any, path: str, x: Tensor, state: Any = None) -> Any:
    """Through the fused sequence, or through the readable loop, which watching and masks ask for."""
    mask = torch.ones(x.shape[:2], dtype=torch.bool) if path == "masked loop" else None
    watching: AbstractContextManager[Any] = record(model) if path == "watched loop" else nullcontext()
    with watching:
        return model(x, state, mask)


@each_cell
@each_depth
@each_path
def test_a_recurrent_model_equals_torch_in_outputs_states_and_gradients(name: str, depth: int, path: str) -> None:
    ours, theirs = pair(name, depth)
    x, memory = vectors(ROWS, LENGTH, WIDTH), vectors(2, depth, ROWS, WIDTH, seed=1)
    x_ours, x_theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    start_ours, start_theirs = memory.clone().requires_grad_(), memory.clone().requires_grad_()
    memories = ours.layers[0][0].memories
    state = tuple(tuple(start_ours[k, n] for k in range(memories)) for n in range(depth))
    outputs, end = run(ours, path, x_ours, state)
    wanted, wanted_end = theirs(x_theirs, tuple(start_theirs) if memories == 2 else start_theirs[0])
    torch.testing.assert_close(outputs, wanted, rtol=1e-10, atol=1e-10)
    last = torch.stack([torch.stack(layer) for layer in end], dim=1)  # (memories, depth, B, H)
    wanted_last = torch.stack(wanted_end) if memories == 2 else wanted_end[None]
    torch.testing.assert_close(last, wanted_last, rtol=1e-10, atol=1e-10)

    factors, last_factors = vectors(*outputs.shape, seed=2), vectors(*last.shape, seed=3)
    ((outputs * factors).sum() + (last * last_factors).sum()).backward()
    ((wanted * factors).sum() + (wanted_last * last_factors).sum()).backward()
    torch.testing.assert_close(x_ours.grad, x_theirs.grad, rtol=1e-9, atol=1e-9)
    assert start_ours.grad is not None and start_theirs.grad is not None
    torch.testing.assert_close(start_ours.grad[:memories], start_theirs.grad[:memories], rtol=1e-9, atol=1e-9)
    check_gradients(ours, theirs, CELLS[name][2])


@each_cell
@each_depth
@each_path
def test_a_bidirectional_model_equals_torch(name: str, depth: int, path: str) -> None:
    ours, theirs = pair(name, depth, bidirectional=True)
    x = vectors(ROWS, LENGTH, WIDTH)
    outputs, wanted = run(ours, path, x)[0], theirs(x)[0]
    torch.testing.assert_close(outputs, wanted, rtol=1e-10, atol=1e-10)
    factors = vectors(*outputs.shape, seed=2)
    (outputs * factors).sum().backward()
    (wanted * factors).sum().backward()
    check_gradients(ours, theirs, CELLS[name][2])


@each_cell
def test_padded_rows_in_both_directions_equal_torch_on_packed_sequences(name: str) -> None:
    ours, theirs = pair(name, 2, bidirectional=True)
    x, lengths = vectors(ROWS, LENGTH, WIDTH), torch.tensor([LENGTH, 4, 1])
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
    wanted, _ = nn.utils.rnn.pad_packed_sequence(theirs(packed)[0], batch_first=True)
    mask = torch.arange(LENGTH) < lengths[:, None]
    outputs = ours.encode(x, mask)
    torch.testing.assert_close(outputs[mask], wanted[mask], rtol=1e-10, atol=1e-10)


def check_gradients(ours: Any, theirs: Any, order: list[int]) -> None:
    for n, cells in enumerate(ours.layers):
        for cell, direction in zip(cells, ["", "_reverse"], strict=False):

            def wanted(kind: str, suffix: str = f"_l{n}{direction}") -> Tensor:
                return torch.cat([getattr(theirs, kind + suffix).grad.chunk(len(order))[gate] for gate in order])

            found = {"weight_ih": cell.weight_x, "weight_hh": cell.weight_h, "bias_ih": cell.bias}
            for kind, weight in found.items():
                torch.testing.assert_close(weight.grad, wanted(kind), rtol=1e-9, atol=1e-9)
            if isinstance(cell, gru.GRUCell):
                torch.testing.assert_close(cell.bias_new.grad, wanted("bias_hh")[-cell.hidden :], rtol=1e-9, atol=1e-9)


@each_cell
def test_the_fused_sequence_has_the_gradient_that_differences_show(name: str) -> None:
    cell = CELLS[name][0](width=3).build().double().layers[0][0]
    alive(cell)
    memory = tuple(vectors(2, 3, seed=n).requires_grad_() for n in range(cell.memories))
    x = vectors(4, 2, 3, seed=5).requires_grad_()

    def outputs(x: Tensor, weight: Tensor, *memory: Tensor) -> tuple[Tensor, ...]:
        hidden, end = cell.sequence(x, memory)
        return hidden, *end

    assert torch.autograd.gradcheck(outputs, (x, cell.weight_h, *memory))


@pytest.mark.parametrize("watched", [False, True], ids=["fused", "watched"])
def test_self_attention_equals_torch_with_a_causal_mask(watched: bool) -> None:
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(WIDTH, 2, batch_first=True).double()
    nn.init.normal_(theirs.in_proj_bias)
    ours = SelfAttention(WIDTH, 2, dropout=0.0, bias=True, qk_norm=False).double()
    ours.qkv.weight.data, ours.qkv.bias.data = theirs.in_proj_weight.data, theirs.in_proj_bias.data
    ours.out.weight.data, ours.out.bias.data = theirs.out_proj.weight.data, theirs.out_proj.bias.data
    x = vectors(ROWS, LENGTH, WIDTH)
    hidden = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
    wanted, weights = theirs(x, x, x, attn_mask=hidden, average_attn_weights=False)
    cache = Cache(None, x, None)
    watching: AbstractContextManager[dict[str, list[Tensor]]] = record(ours) if watched else nullcontext({})
    with watching as trace:
        outputs = ours(x, cache, 0, cache.views(x.device), None)
    torch.testing.assert_close(outputs, wanted, rtol=1e-10, atol=1e-10)
    for seen in trace.get("weights", []):
        torch.testing.assert_close(seen, weights, rtol=1e-10, atol=1e-10)


def gpt2_pair(dtype: torch.dtype) -> tuple[Any, Any]:
    """Our `gpt2` preset and transformers' GPT-2, small, with the same random weights."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    sizes = {"vocab_size": 31, "n_positions": 48, "n_embd": 16, "n_layer": 2, "n_head": 4}
    options: dict[str, Any] = {**sizes, "attn_implementation": "eager", "bos_token_id": None, "eos_token_id": None}
    theirs: Any = GPT2LMHeadModel(GPT2Config(**options))
    theirs = theirs.to(dtype).eval()
    for weight in theirs.parameters():
        nn.init.normal_(weight, std=0.3)
    config = gpt.Config.model_validate({"preset": "gpt2", "width": 16, "depth": 2, "heads": 4, "context": 48})
    ours: Any = config.assemble(language_model(31)).to(dtype).eval()
    nn.init.zeros_(ours.head.bias)
    body, their_body = ours.backbone, theirs.transformer
    ours.embed.weight.data.copy_(their_body.wte.weight)
    body.positions.table.weight.data.copy_(their_body.wpe.weight)
    body.norm.load_state_dict(their_body.ln_f.state_dict())
    for block, h in zip(body.blocks, their_body.h, strict=True):
        block.norm_1.load_state_dict(h.ln_1.state_dict())
        block.norm_2.load_state_dict(h.ln_2.state_dict())
        linears = [(block.attention.qkv, h.attn.c_attn), (block.attention.out, h.attn.c_proj)]
        linears += [(block.feed.up, h.mlp.c_fc), (block.feed.out, h.mlp.c_proj)]
        for linear, conv in linears:
            linear.weight.data.copy_(conv.weight.t())  # their Conv1D is a linear map, transposed
            linear.bias.data.copy_(conv.bias)
    return ours, theirs


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)], ids=str)
def test_the_gpt2_preset_equals_transformers_gpt2(dtype: torch.dtype, tolerance: float) -> None:
    ours, theirs = gpt2_pair(dtype)
    ids = tokens(3, 40, vocabulary=31)
    with torch.no_grad():
        wanted = theirs(ids).logits
        torch.testing.assert_close(ours(ids)[0], wanted, rtol=tolerance, atol=tolerance * wanted.abs().max().item())
        cached = ours(ids[:, 20:], ours.begin(ids[:, :20]))[0]
        torch.testing.assert_close(cached, wanted[:, 20:], rtol=tolerance, atol=tolerance * wanted.abs().max().item())


def test_the_gpt2_preset_has_the_gradients_of_transformers_gpt2() -> None:
    ours, theirs = gpt2_pair(torch.float64)
    ids = tokens(3, 20, vocabulary=31)
    for logits in (ours(ids)[0], theirs(ids).logits):
        nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).backward()
    table, their_table = ours.embed.weight.grad, theirs.transformer.wte.weight.grad
    torch.testing.assert_close(table, their_table, rtol=1e-9, atol=1e-9)
    for block, h in zip(ours.backbone.blocks, theirs.transformer.h, strict=True):
        torch.testing.assert_close(block.attention.qkv.weight.grad, h.attn.c_attn.weight.grad.t(), rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(block.feed.out.weight.grad, h.mlp.c_proj.weight.grad.t(), rtol=1e-9, atol=1e-9)


def test_cached_greedy_decoding_writes_the_tokens_that_transformers_writes() -> None:
    ours, theirs = gpt2_pair(torch.float64)
    prompts = tokens(4, 6, vocabulary=31)
    wanted = theirs.generate(prompts, max_new_tokens=30, do_sample=False, attention_mask=torch.ones_like(prompts))
    written = torch.stack(list(stream(ours, prompts.tolist(), max_new=30, choose=Choice(temperature=0))), dim=1)
    assert torch.equal(written, wanted[:, 6:])


FAMILIES: dict[str, dict[str, Any]] = {  # our options beside the preset
    "llama": {},
    "llama grouped": {"kv_heads": 2, "rotary_base": 500.0},
    "llama multi-query": {"kv_heads": 1, "eps": 1e-3},
    "mistral": {"window": 7},
    "mistral grouped": {"window": 7, "kv_heads": 2},
}
each_family = pytest.mark.parametrize("family", FAMILIES)


def llama_pair(family: str, dtype: torch.dtype) -> tuple[Any, Any]:
    """Our `llama` preset and transformers' Llama or Mistral, small, with the same random weights."""
    from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

    torch.manual_seed(0)
    options = {"preset": "llama", "width": 16, "depth": 2, "heads": 4, "feed": 24, "context": 128, **FAMILIES[family]}
    c = gpt.Config.model_validate(options)
    sizes: dict[str, Any] = {"vocab_size": 31, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2}
    sizes |= {"num_attention_heads": 4, "num_key_value_heads": c.kv_heads or 4, "rope_theta": c.rotary_base}
    sizes |= {"rms_norm_eps": c.eps, "attn_implementation": "eager", "bos_token_id": None, "eos_token_id": None}
    theirs: Any = (
        MistralForCausalLM(MistralConfig(**sizes, sliding_window=c.window))
        if c.window
        else LlamaForCausalLM(LlamaConfig(**sizes))
    )
    theirs = theirs.to(dtype).eval()
    for weight in theirs.parameters():
        nn.init.normal_(weight, std=0.3)
    ours: Any = c.assemble(language_model(31)).to(dtype).eval()
    nn.init.zeros_(ours.head.bias)
    for weight, wanted in zip(llama_weights(ours), llama_weights_of(theirs), strict=True):
        weight.data.copy_(wanted)
    return ours, theirs


def llama_weights(ours: Any) -> list[Any]:
    modules = [ours.embed, ours.backbone.norm, ours.head]
    for b in ours.backbone.blocks:
        modules += [b.norm_1, b.norm_2, b.attention.qkv, b.attention.out, b.feed.up, b.feed.out]
    return [module.weight for module in modules]


def llama_weights_of(theirs: Any, part: str = "data") -> list[Tensor]:
    """Transformers' weights (or their gradients) in our order; q, k and v are one matrix here, and gate and up."""

    def read(*linears: Any) -> Tensor:
        return torch.cat([getattr(linear.weight, part) for linear in linears])

    body = theirs.model
    found = [read(body.embed_tokens), read(body.norm), read(theirs.lm_head)]
    for h in body.layers:
        a, mlp = h.self_attn, h.mlp
        found += [read(h.input_layernorm), read(h.post_attention_layernorm), read(a.q_proj, a.k_proj, a.v_proj)]
        found += [read(a.o_proj), read(mlp.gate_proj, mlp.up_proj), read(mlp.down_proj)]
    return found


def near(ours: Tensor, theirs: Tensor) -> None:
    """Transformers computes angles and norms in single precision, whatever the model's."""
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5 * theirs.abs().max().item())


@each_family
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_the_llama_preset_equals_transformers_llama_and_with_a_window_mistral(family: str, dtype: torch.dtype) -> None:
    ours, theirs = llama_pair(family, dtype)
    ids = tokens(3, 100, vocabulary=31)
    with torch.no_grad():
        wanted = theirs(ids).logits
        near(ours(ids)[0], wanted)
        near(ours(ids[:, 20:], ours.begin(ids[:, :20]))[0], wanted[:, 20:])
        state = ours.begin(ids[:, :60])
        for n in range(60, 80):
            logits, state = ours(ids[:, n : n + 1], state)
            near(logits[:, 0], wanted[:, n])


@each_family
def test_the_llama_preset_has_the_gradients_of_transformers(family: str) -> None:
    ours, theirs = llama_pair(family, torch.float64)
    ids = tokens(3, 80, vocabulary=31)
    for logits in (ours(ids)[0], theirs(ids).logits):
        nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).backward()
    for weight, wanted in zip(llama_weights(ours), llama_weights_of(theirs, "grad"), strict=True):
        near(weight.grad, wanted)


@each_family
def test_cached_greedy_decoding_writes_what_transformers_llama_writes(family: str) -> None:
    ours, theirs = llama_pair(family, torch.float64)
    prompts = tokens(4, 6, vocabulary=31)
    wanted = theirs.generate(prompts, max_new_tokens=30, do_sample=False, attention_mask=torch.ones_like(prompts))
    written = torch.stack(list(stream(ours, prompts.tolist(), max_new=30, choose=Choice(temperature=0))), dim=1)
    assert torch.equal(written, wanted[:, 6:])
