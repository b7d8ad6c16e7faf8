"""The shares that the study of LoRA counts are those of real adapters, and of real models."""

from __future__ import annotations

import pytest

from seqloom.studies.lora import OURS, RANK, SHAPES, share


@pytest.mark.parametrize(("name", "wanted"), [("SmolLM2", 134_515_008), ("Llama 7B", 6_738_415_616)])
def test_a_shape_has_the_parameters_of_the_published_model(name: str, wanted: int) -> None:
    assert share(*SHAPES[name]).parameters == wanted


def test_adapters_are_counted_over_all_layers() -> None:
    one, three = (share(50, {**OURS, "width": 16, "depth": depth}) for depth in (1, 3))
    assert three.everywhere == 3 * one.everywhere and three.claim == 3 * one.claim
    assert one.claim == RANK * 2 * (16 + 16)
