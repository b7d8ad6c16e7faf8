"""Floating-point operations by formula are those that torch counts, for every model and every variant."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode
from toys import Case, accepted, each, every_case, language_model, title, tokens

from seqloom.core.backbone import Backbone
from seqloom.core.network import SequenceModel
from seqloom.core.taps import find_taps, replace
from seqloom.layers.general_attention import GeneralAttention
from seqloom.layers.scores import SCORES
from seqloom.runs.registry import find_config

pytestmark = pytest.mark.long

VOCABULARY, ROWS, WIDTH = 50, 2, 64


def network(case: Case) -> SequenceModel:
    name, options = case
    config = find_config("models", name).model_validate({"width": WIDTH, **options})
    return config.assemble(language_model(VOCABULARY))


EVERY = every_case()
CAUSAL = [case for case in EVERY if accepted(network, case)]
OTHER = [case for case in EVERY if case not in CAUSAL]

each_model = pytest.mark.parametrize("case", CAUSAL, ids=title)


def _same(x: Tensor) -> Tensor:
    return x


def counted(model: SequenceModel | Backbone, inputs: Tensor) -> float:
    """Per token, of the target where there is a source, which is as long. With replaced states and weights, so that
    nothing is hidden in a fused kernel."""
    edits = {path: _same for path in find_taps(model) if path.endswith((".state", ".weights", ".alignment"))}
    with FlopCounterMode(display=False) as counter, replace(model, edits):
        model(inputs, model.begin(inputs) if model.kind == "encoder-decoder" else None)
    return counter.get_total_flops() / (inputs.size(0) * inputs.size(1))


@each_model
@each(length=[24, 96])
def test_the_formula_counts_what_torch_counts(case: Case, length: int) -> None:
    model = network(case)
    found = counted(model, tokens(ROWS, length, vocabulary=VOCABULARY))
    assert model.flops(length) == pytest.approx(found, rel=0.01)


@pytest.mark.parametrize("case", OTHER, ids=title)
@each(length=[24, 48])
def test_models_that_the_task_refuses_are_counted_as_backbones(case: Case, length: int) -> None:
    backbone = find_config("models", case[0]).model_validate({"width": WIDTH, **case[1]}).build()
    length = min(length, backbone.reach or length)
    found = counted(backbone, torch.randn(ROWS, length, backbone.inputs or WIDTH))
    assert backbone.flops(length) == pytest.approx(found, rel=0.01)


@pytest.mark.parametrize("options", [{}, {"heads": 2}, {"hops": 3}, {"align": "local_predictive", "hops": 2}], ids=str)
@pytest.mark.parametrize("score", SCORES)
def test_every_kind_of_attention_to_a_source_is_counted(score: str, options: dict[str, Any]) -> None:
    for multi in (False, True) if SCORES[score].multi else (False,):
        attention = GeneralAttention(WIDTH, WIDTH, WIDTH, score=score, multi=multi, **options)
        queries, source = torch.randn(ROWS, 24, WIDTH), torch.randn(ROWS, 24, WIDTH)
        with FlopCounterMode(display=False) as counter:
            attention(queries, attention.read(source))
        assert attention.flops(24) == pytest.approx(counter.get_total_flops() / (ROWS * 24), rel=0.01)


@each_model
def test_a_blueprint_without_weights_says_the_same(case: Case) -> None:
    with torch.device("meta"):
        blueprint = network(case)
    assert blueprint.flops(96) == network(case).flops(96)


@each_model
def test_a_tied_table_still_multiplies_when_it_writes(case: Case) -> None:
    name, options = case
    vectors = {"inputs": WIDTH} if "inputs" in find_config("models", name).model_fields else {}
    tied, untied = (network((name, {**options, **vectors, "tie": tie})) for tie in (True, False))
    assert tied.flops(24) == untied.flops(24)
