"""Looking inside: attention, memory, gradients and the walk through a head show what the model computes."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import golden
import numpy as np
import pytest
import torch
from torch import Tensor, nn
from toys import VOCABULARY, alive, close, network, tokens, translation, translator

import seqloom
from seqloom.core.errors import UserError
from seqloom.core.instance import Instance, Output, repeat
from seqloom.core.network import Network, SequenceModel
from seqloom.core.taps import find_taps, record, replace
from seqloom.explain.views.attention import attention
from seqloom.explain.views.gradients import eigenvalues, gradients, microscope
from seqloom.explain.views.memory import memory
from seqloom.explain.walk import walk
from seqloom.layers.general_attention import GeneralAttention, plain_self_attention
from seqloom.layers.recurrent import Cell, Memory, Recurrent
from seqloom.runs.registry import find_config
from seqloom.tasks.language_model.instance import instance as of_text
from seqloom.tasks.translation.instance import instance as of_pair

LENGTH = 9
NAMES = SimpleNamespace(name=lambda id: f"t{id}", specials=frozenset(), opening=(), unk=None, encode=lambda _: IDS)
IDS = tokens(LENGTH, seed=2)


def text(model: SequenceModel) -> Instance:
    return of_text(model, {"source": ""}, NAMES)


def whole(model: SequenceModel) -> Instance:
    """One prediction at each position of a sequence that is seen whole."""
    inputs = IDS[None]

    def read(model: SequenceModel, copies: int) -> Tensor:
        return model.encode(repeat(inputs, copies)).log_softmax(-1)

    outputs = tuple(Output(f"t{n}", 0, True, n) for n in range(LENGTH))
    return Instance("toy", tuple(f"t{id}" for id in IDS.tolist()), outputs, read, lambda kind: f"t{kind}")


def pair(model: SequenceModel) -> Instance:
    task = translation(joint=True)
    return of_pair(model, [4, 5, 6, 2], [7, 8, 9, 6, 5], task.tokenizers, given=True, cut=False)


def bidirectional(name: str, **options: Any) -> SequenceModel:
    config = find_config("models", name).model_validate({"width": 16, **options})
    return alive(Network(nn.Embedding(VOCABULARY, 16), config.build(), nn.Linear(16, VOCABULARY)))


CAUSAL = [("gpt", {}), ("gpt", {"kv_heads": 2, "window": 5}), ("self_attention", {"depth": 2})]
GENERAL = [
    {"query": "each", "heads": 2, "score": "scaled_dot"},
    {"hops": 2},
    {"query": "last", "score": "general"},
    {"query": "each", "align": "sparsemax"},
]
PAIRS = [
    ("transformer", {"depth": 2}),
    ("seq2seq", {"query": "before", "hops": 2}),
    ("seq2seq", {"heads": 2, "score": "scaled_dot"}),
    ("gpt", {}),
]
SEEN = (
    [(network(*case), text) for case in CAUSAL]
    + [(bidirectional("general_attention", **options), whole) for options in GENERAL]
    + [(bidirectional("bert", depth=2), whole), (bidirectional("self_attention", bidirectional=True), whole)]
    + [(translator(*case), pair) for case in PAIRS]
)


# attention


@pytest.mark.parametrize("number", range(len(SEEN)))
def test_rows_of_attention_and_rollout_sum_to_one(number: int) -> None:
    model, made = SEEN[number]
    view = attention(model, made(model))
    assert view.rows and len(view.facts["layers"]) == len(view.tensors)
    for name, weights in view.tensors.items():
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
        about = view.facts["layers"][name]
        assert (len(about["rows"]), len(about["columns"])) == weights.shape[-2:]


def test_a_source_read_first_and_what_follows_are_one_map_of_a_causal_model() -> None:
    model = translator("gpt", {})
    shown = attention(model, pair(model))
    with record(model, "*.attention.weights") as trace:
        model(torch.tensor([[4, 5, 6, 2, translation(joint=True).tokenizers.target.bos, 7, 8, 9, 6, 5]]))
    for weights, (wanted,) in zip(list(shown.tensors.values())[:4], trace.values(), strict=True):
        np.testing.assert_allclose(weights, wanted[0].detach().numpy(), atol=1e-6)
    assert not np.triu(shown.tensors["rollout"], 1).any()


def test_sides_of_an_encoder_decoder_are_told_apart() -> None:
    model = translator("transformer", {"depth": 1})
    layers = attention(model, pair(model)).facts["layers"]
    assert {name: about["sides"] for name, about in layers.items()} == {
        "encoder layer 1": ["source", "source"],
        "decoder layer 1": ["target", "target"],
        "decoder layer 1, source": ["target", "source"],
        "rollout, source": ["source", "source"],
        "rollout, target": ["target", "target"],
    }


def test_attention_that_equals_the_influence_correlates_with_it() -> None:
    model = network("gpt", {"depth": 1, "heads": 1})
    instance = text(model)
    weights = attention(model, instance).tensors["layer 1"][0]
    view = attention(model, instance, influence=-weights)
    assert view.rows[0]["correlation"] == pytest.approx(1) == view.facts["correlation"]["layer 1"]
    assert "not attribution" in view.facts["remark"]


def test_rollout_is_the_product_of_the_layers() -> None:
    view = attention(*((model := network("gpt", {"depth": 2})), text(model)))
    first, second = ((view.tensors[f"layer {n}"].mean(0) + np.eye(LENGTH)) / 2 for n in (1, 2))
    np.testing.assert_allclose(view.tensors["rollout"], second @ first, atol=1e-6)


def test_what_a_model_does_not_have_is_said_in_one_line() -> None:
    model = network("gru", {})
    with pytest.raises(UserError, match="no attention weights"):
        attention(model, text(model))
    with pytest.raises(UserError, match="no attention to walk through"):
        walk(model, text(model))
    with pytest.raises(UserError, match="no recurrent memory"):
        memory(*((other := network("gpt", {})), text(other)))
    with pytest.raises(UserError, match="counting or in closed form"):
        memory(*((counted := network("ngram", {})), text(counted)))
    with pytest.raises(UserError, match="not trained by gradient descent"):
        microscope(counted, text(counted))


def test_weights_of_general_attention_can_be_replaced() -> None:
    for options in ({}, {"heads": 2}, {"multi": True}, {"hops": 2}):
        model = alive(GeneralAttention(6, 6, 6, **options))
        source, query = model.read(torch.randn(2, 5, 6, dtype=torch.float64)), torch.randn(2, 3, 6, dtype=torch.float64)
        before = model(query, source)
        with replace(model, {"alignment": lambda x: x}):
            close(model(query, source), before)
        with replace(model, {"alignment": torch.zeros_like}):
            none = model(query, source)
        close(none, (torch.zeros_like(none) if model.out is None else model.out.bias.expand_as(none)))


# memory


def test_gates_are_shown_over_the_text_and_what_they_write_and_keep() -> None:
    model = network("lstm", {})
    view = memory(model, text(model))
    with record(model, "*_gate") as trace:
        model(IDS[None])
    forget = torch.cat(trace["backbone.layers.0.0.forget_gate"]).detach().numpy()
    np.testing.assert_allclose(view.tensors["layer 1, forget gate"], forget.mean(1), rtol=1e-6)
    np.testing.assert_allclose(view.tensors["layer 1, keep"], forget.mean(1), rtol=1e-6)
    np.testing.assert_allclose(view.tensors["layer 1, forget gate, open"], (forget > 0.9).mean(1))
    units = view.facts["layers"]["layer 1"]["units"]["forget gate"]
    assert units[0] == forget.var(0).argmax()
    np.testing.assert_allclose(view.tensors["layer 1, forget gate units"], forget[:, units].T, rtol=1e-6)


def test_the_nearest_token_of_a_last_state_is_the_prediction() -> None:
    model = network("gru", {"depth": 2})
    instance = text(model)
    last = [row["nearest"] for row in memory(model, instance).rows if row["layer"] == "layer 2"]
    assert last == [instance.name(int(kind)) for kind in instance.read(model, 1)[0].argmax(-1)]


@pytest.mark.parametrize(
    "name, gate, does", [("gru", "update", "keep"), ("mingru", "update", "write"), ("minlstm", "input", "write")]
)
def test_a_cell_with_one_gate_keeps_what_it_does_not_write(name: str, gate: str, does: str) -> None:
    model = network(name, {})
    view = memory(model, text(model)).tensors
    np.testing.assert_allclose(view["layer 1, keep"] + view["layer 1, write"], 1, rtol=1e-6)
    np.testing.assert_allclose(view[f"layer 1, {does}"], view[f"layer 1, {gate} gate"])


def test_a_cell_that_reads_backwards_is_in_the_order_of_the_text() -> None:
    model = bidirectional("gru", inputs=16, bidirectional=True)
    view = memory(model, whole(model))
    with record(model, "*.state") as trace:
        model.encode(IDS[None])
    wanted = torch.cat(trace["backbone.layers.0.1.state"]).norm(dim=1).flip(0).detach().numpy()
    np.testing.assert_allclose(view.tensors["layer 1, backwards, state, norm"], wanted, rtol=1e-6)


def test_a_memory_that_learns_shows_its_loss_before_and_after_and_how_far_it_moves() -> None:
    model = network("ttt", {"mini_batch": 1, "base_rate": 0.5, "kernel": 1, "depth": 1})
    view = memory(model, text(model)).tensors
    assert (view["layer 1, loss after"] < view["layer 1, loss before"]).mean() > 0.8
    states = []
    state = None
    for token in IDS:
        state = model(token.view(1, 1), state)[1]
        states.append(state[1][0][1][0][0][0])  # what the first layer learned, (H, D + 1, D)
    moved = [new - old for old, new in zip([torch.zeros_like(states[0]), *states], states, strict=False)]
    wanted = torch.stack([step.flatten(1).norm(dim=1).mean() for step in moved]).detach().numpy()
    np.testing.assert_allclose(view["layer 1, weight change"], wanted, rtol=1e-5)


def test_a_matrix_memory_shows_how_much_a_token_adds() -> None:
    model = network("linear_attention", {"kernel": 1, "depth": 1})
    states, state = [], None
    for token in IDS:
        state = model(token.view(1, 1), state)[1]
        states.append(state[1][0][1][0])  # (H, D, D)
    added = [new - old for old, new in zip([torch.zeros_like(states[0]), *states], states, strict=False)]
    wanted = torch.stack([step.flatten(1).norm(dim=1).mean() for step in added]).detach().numpy()
    np.testing.assert_allclose(memory(model, text(model)).tensors["layer 1, write"], wanted, rtol=1e-5)


@pytest.mark.parametrize("name, options", [("mamba2", {}), ("xlstm", {"cells": "m"})])
def test_a_memory_that_decays_shows_what_it_keeps(name: str, options: dict[str, Any]) -> None:
    model = network(name, options)
    view = memory(model, text(model)).tensors
    with record(model, "*.forget_gate") as trace:
        model(IDS[None])
    kept = next(iter(trace.values()))[0][0].mean(-1).detach().numpy()
    np.testing.assert_allclose(view["layer 1, keep"], kept, rtol=1e-6)
    assert (view["layer 1, write"] > 0).all()


# gradients


class LinearCell(Cell):
    """h_t = W_x x_t + W_h h_{t-1}"""

    gates = 1

    def step(self, x: Tensor, memory: Memory) -> Memory:
        return (x + self.of_hidden(memory[0]),)

    def sequence(self, x: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        raise NotImplementedError


def linear(radius: float, width: int = 12) -> SequenceModel:
    """One number from the last of a linear recurrence whose matrix has this spectral radius."""
    model = alive(
        Network(nn.Linear(1, width), Recurrent(LinearCell, width, width, 1.0, 1, 0.0, False), nn.Linear(width, 1))
    )
    cell: Any = model.backbone.layers[0][0]
    with torch.no_grad():
        cell.weight_h *= radius / torch.linalg.eigvals(cell.weight_h).abs().max()
    return model


def series(length: int, dtype: torch.dtype = torch.float64) -> Instance:
    values = torch.randn(1, length, 1, dtype=dtype, generator=torch.Generator().manual_seed(3))

    def read(model: SequenceModel, copies: int) -> Tensor:
        return model(repeat(values, copies))[0]

    outputs = tuple(Output(str(n), 0, False, n) for n in range(length))
    return Instance("toy", tuple(map(str, range(length))), outputs, read, str, unit="value")


@pytest.mark.parametrize("radius", [0.5, 0.9, 1.0, 1.1, 1.5])
def test_the_slope_of_a_linear_rnn_is_the_logarithm_of_its_spectral_radius(radius: float) -> None:
    view = microscope(linear(radius), series(200))
    tolerance = 0.05 * abs(math.log(radius)) or 0.005
    for slope in (view.facts["slopes"]["layer 1, memory"], view.facts["jacobians"]["layer 1, memory"]):
        assert slope == pytest.approx(math.log(radius), abs=tolerance)
    assert view.facts["radii"]["layer 1"] == {"block 1": pytest.approx(radius)}


def test_the_product_of_jacobians_of_a_linear_rnn_is_a_power_of_its_matrix() -> None:
    model = linear(0.9)
    matrix = model.backbone.layers[0][0].weight_h.detach()
    found = microscope(model, series(6)).tensors["layer 1, memory, Jacobian"]
    wanted = [torch.linalg.matrix_norm(torch.linalg.matrix_power(matrix, n), 2) for n in range(6)]
    np.testing.assert_allclose(found, torch.stack(wanted).numpy(), rtol=1e-9)


def test_the_gradient_at_a_parallel_memory_is_that_of_its_recurrence() -> None:
    """Of minGRU dh_T/dh_t is the product of 1 - z, so its spectral norm that of the largest."""
    model = network("mingru", {"depth": 1})
    with record(model, "*.update_gate") as trace:
        model(IDS[None])
    keeps = 1 - next(iter(trace.values()))[0][0].detach()  # (T, H)
    wanted = [keeps[LENGTH - n :].prod(0).max() for n in range(LENGTH)]
    found = microscope(model, text(model)).tensors["layer 1, memory, Jacobian"]
    np.testing.assert_allclose(found, torch.stack(wanted).numpy(), rtol=1e-9)


@pytest.mark.parametrize(
    "name", ["rnn", "lstm", "gru", "gpt", "mingru", "ttt", "linear_attention", "mamba2", "xlstm", "self_attention"]
)
def test_gradients_at_the_embedding_are_those_of_the_loss(name: str) -> None:
    model = network(name, {})
    vectors = model.embed(IDS[None]).detach().requires_grad_()
    loss = -model.head(model.backbone(vectors)[0])[0, -1].log_softmax(-1).max()
    (wanted,) = torch.autograd.grad(loss, vectors)
    found = microscope(model, text(model))
    np.testing.assert_allclose(found.tensors["embedding"], wanted[0].norm(dim=-1).flip(0).numpy(), rtol=1e-6)
    assert [row["lag"] for row in found.rows if row["layer"] == "embedding"] == list(range(LENGTH))


def test_lags_of_a_source_follow_those_of_the_target() -> None:
    model = translator("seq2seq", {})
    facts = microscope(model, pair(model)).facts
    assert facts["first_lags"]["decoder layer 1, memory"] == 0
    assert facts["first_lags"]["encoder layer 1, memory"] == 6


def test_a_gradient_that_grows_beyond_all_numbers_is_shown_up_to_there() -> None:
    model = linear(3.0).float()
    found = microscope(model, series(120, torch.float32))
    for name in ("embedding", "layer 1, memory", "layer 1, memory, Jacobian"):
        assert np.isfinite(found.tensors[name]).all() and 60 < len(found.tensors[name]) < 120
    assert found.facts["slopes"]["layer 1, memory"] == pytest.approx(math.log(3), rel=0.05)


def test_a_large_memory_has_its_product_of_jacobians_too_and_a_long_text_says_why_not() -> None:
    model = linear(0.9, width=160)
    matrix = model.backbone.layers[0][0].weight_h.detach()
    found = microscope(model, series(5)).tensors["layer 1, memory, Jacobian"]
    wanted = [torch.linalg.matrix_norm(torch.linalg.matrix_power(matrix, n), 2) for n in range(5)]
    np.testing.assert_allclose(found, torch.stack(wanted).numpy(), rtol=1e-2)
    facts = microscope(model, series(1000)).facts
    assert not facts["jacobians"] and "too long" in facts["left_out"]


def test_blocks_of_a_recurrent_matrix_have_names() -> None:
    model = network("lstm", {})
    ((names, values),) = eigenvalues(model).values()
    assert names == ["input", "forget", "candidate", "output"] and values.shape == (4, 16, 2)


def test_a_block_diagonal_matrix_has_the_eigenvalues_of_its_parts() -> None:
    model = network("xlstm", {"cells": "s", "depth": 1, "heads": 2})
    ((names, values),) = eigenvalues(model).values()
    cell: Any = model.backbone.blocks[0].mixer.cell
    whole = torch.block_diag(*cell.weight_h[:16].detach().unflatten(0, (2, 8)))
    assert names == ["input", "forget", "candidate", "output"]
    np.testing.assert_allclose(
        np.sort(np.linalg.norm(values[0], axis=-1)), torch.linalg.eigvals(whole).abs().sort().values, rtol=1e-9
    )


def test_several_runs_show_what_they_recorded_in_training() -> None:
    runs = [seqloom.load(golden.RUNS / name) for name in ("language_model", "language_model")]
    first, second = gradients(runs, {"line": 1, "source": "The time machine"}, loss="mean")
    for name, values in first.tensors.items():
        np.testing.assert_array_equal(values, second.tensors[name])
    norms = [entry["train"]["norm"] for entry in runs[0].history if "train" in entry]
    assert first.tensors["training, norm"].tolist() == norms
    assert first.tensors["training, clipped norm"].max() <= first.facts["clip"] == 1.0
    assert first.tensors["layer 1, radius, step"].tolist() == [10]
    np.testing.assert_allclose(first.tensors["layer 1, radius"][0], list(first.facts["radii"]["layer 1"].values()))


# walk


@pytest.mark.parametrize("number", range(len(SEEN)))
def test_a_walk_adds_up_and_shows_what_the_model_computes(number: int) -> None:
    model, made = SEEN[number]
    instance = made(model)
    shown = attention(model, instance)
    maps = [name for name in shown.tensors if "rollout" not in name]
    for layer, name in enumerate(maps):
        for head in range(len(shown.tensors[name])):
            for position in (-1, 0):
                view = walk(model, instance, layer, head, position)
                found = view.tensors
                row = shown.tensors[name][head, position]
                np.testing.assert_allclose(found["weights"] @ found["values"], found["context"], rtol=1e-6, atol=1e-9)
                if view.facts["align"] == "softmax":
                    soft = np.exp(found["scores"] - found["scores"].max())
                    np.testing.assert_allclose(soft / soft.sum(), found["weights"], rtol=1e-6, atol=1e-9)
                places = np.array([each["position"] for each in view.rows]) - shown.facts["layers"][name]["column"]
                np.testing.assert_allclose(row[places], found["weights"], rtol=1e-5, atol=1e-7)
                assert found["keys"].shape[0] == len(places) == len(found["scores"])


def test_a_walk_through_causal_attention_sees_the_past_only_and_scales_its_scores() -> None:
    model = network("gpt", {"kv_heads": 2})
    view = walk(model, text(model), layer=1, head=3, position=4)
    assert [row["position"] for row in view.rows] == [0, 1, 2, 3, 4]
    assert view.facts["score"] == "q k / sqrt(D)" and view.facts["align"] == "softmax"


def test_a_walk_says_what_is_not_there() -> None:
    model = network("gpt", {"depth": 2})
    with pytest.raises(UserError, match="layer=2: there are 2, numbered 0 to 1"):
        walk(model, text(model), layer=2)
    with pytest.raises(UserError, match="head=9: there are 4"):
        walk(model, text(model), head=9)
    with pytest.raises(UserError, match="position=9: there are 9"):
        walk(model, text(model), position=9)
    many = bidirectional("general_attention", multi=True)
    with pytest.raises(UserError, match="weights for every dimension"):
        walk(many, whole(many))


# models


def test_self_attention_without_parameters_has_none_and_is_the_formula() -> None:
    model = find_config("models", "self_attention").model_validate({"width": 8, "bidirectional": True}).build()
    x, mask = torch.randn(2, 5, 8), torch.arange(5) < torch.tensor([[5], [3]])
    assert not list(model.parameters())
    torch.testing.assert_close(model.encode(x, mask)[mask], plain_self_attention(x, mask)[mask])
    order = torch.tensor([3, 0, 4, 1, 2])
    torch.testing.assert_close(model.encode(x[:, order]), model.encode(x)[:, order])


def test_one_query_gives_every_position_the_same_context() -> None:
    options = {"width": 8, "features": "embedding", "output": "context"}
    model = alive(find_config("models", "general_attention").model_validate(options).build())
    outputs = model.encode(torch.randn(2, 5, 8, dtype=torch.float64))
    close(outputs, outputs[:, :1].expand_as(outputs))
    assert "attention.alignment" in find_taps(model)


def test_choices_of_the_general_attention_model_are_checked() -> None:
    config = find_config("models", "general_attention")
    for options, problem in [
        ({"score": "cosine"}, "score='cosine': choose"),
        ({"multi": True, "score": "dot"}, "multi=true needs score=additive"),
        ({"heads": 3, "width": 16}, "multiple of heads=3"),
        ({"width": 15}, "must be even"),
        ({"features": "convolution", "kernel": 4}, "must be odd"),
    ]:
        with pytest.raises(ValueError, match=problem):
            config.model_validate(options)
