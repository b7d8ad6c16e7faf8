"""Floating-point operations by formula are those that torch counts, for every model and every variant."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode
from toys import language_model, tokens

from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.core.taps import Tap, record
from seqloom.runs import find_config, names

Case = tuple[str, dict[str, Any]]
VOCABULARY, ROWS, WIDTH = 50, 2, 64


def network(case: Case) -> SequenceModel:
    name, options = case
    config = find_config("models", name).model_validate({"width": WIDTH, **options})
    return config.assemble(language_model(VOCABULARY))


def accepted(case: Case) -> bool:
    try:
        network(case)
    except UserError:
        return False
    return True


EVERY: list[Case] = [(name, options) for name in names("models") for options in find_config("models", name).variants]
CAUSAL = [case for case in EVERY if accepted(case)]
OTHER = [case for case in EVERY if case not in CAUSAL]

each_model = pytest.mark.parametrize("case", CAUSAL, ids=str)


def counted(model: nn.Module, inputs: Tensor) -> float:
    """Per token. Watched, so that no fused kernel hides its products from the counter."""
    watched = any(isinstance(module, Tap) for module in model.modules())
    with FlopCounterMode(display=False) as counter, record(model) if watched else nullcontext():
        model(inputs)
    return counter.get_total_flops() / (inputs.size(0) * inputs.size(1))


@each_model
@pytest.mark.parametrize("length", [24, 96])
def test_the_formula_counts_what_torch_counts(case: Case, length: int) -> None:
    model = network(case)
    found = counted(model, tokens(ROWS, length, vocabulary=VOCABULARY))
    assert model.flops(length) == pytest.approx(found, rel=0.01)


@pytest.mark.parametrize("case", OTHER, ids=str)
def test_models_that_the_task_refuses_are_counted_as_backbones(case: Case) -> None:
    backbone = find_config("models", case[0]).model_validate({"width": WIDTH, **case[1]}).build()
    found = counted(backbone, torch.randn(ROWS, 24, backbone.inputs or WIDTH))
    assert backbone.flops(24) == pytest.approx(found, rel=0.01)


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
