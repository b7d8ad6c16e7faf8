"""Patching: a place of one text put into another moves its prediction, and nothing else does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from looked import EVERY, language, pair
from toys import network, title, translator

from seqloom.core.errors import UserError
from seqloom.explain.views.patching import patching


@pytest.mark.parametrize("build, look, case", EVERY, ids=lambda x: title(x) if isinstance(x, tuple) else "")
def test_putting_in_what_was_there_changes_nothing(build: Any, look: Any, case: Any) -> None:
    view = patching(build(*case).float(), look(), look())
    assert not np.nan_to_num(view.tensors["moved"]).any()


@pytest.mark.parametrize("name", ["rnn", "gru", "lstm"])
def test_the_final_state_of_a_recurrent_model_moves_its_prediction_to_that_of_the_other_text(name: str) -> None:
    view = patching(network(name, {"depth": 1}), language(1), language(2))
    memory, layer = (view.facts["places"].index(place) for place in ("memory 1", "layer 1"))
    assert view.tensors["effect"][memory, -1] == view.tensors["effect"][layer, -1] == 1.0


@pytest.mark.parametrize("name", ["rnn", "gru", "lstm"])
def test_a_memory_is_read_by_all_steps_after_it(name: str) -> None:
    """B is A with another beginning: with B's memory after it, A goes on as B does."""
    view = patching(network(name, {"depth": 2}), language(1), language(1, beginning=3), output=-1)
    rows = dict(zip(view.facts["places"], view.tensors["effect"], strict=True))
    np.testing.assert_allclose(rows["memory, all layers"][2:], 1.0, atol=1e-9)
    assert not np.allclose(rows["memory 1"][2:], 1.0)


@pytest.mark.parametrize("name", ["gpt", "ttt", "linear_attention", "mamba2", "xlstm", "lstm", "mingru"])
def test_the_last_layer_at_the_last_position_decides_the_prediction(name: str) -> None:
    view = patching(network(name, {"depth": 2}), language(1), language(2))
    effect = view.tensors["effect"][view.facts["places"].index("layer 2")]
    assert effect[-1] == pytest.approx(1.0, abs=1e-9)
    assert np.abs(effect[:-1]).max() < 1e-9


def test_layers_whose_memory_is_a_matrix_are_not_offered_as_places() -> None:
    places = patching(network("xlstm", {"depth": 3, "cells": "msm"}), language(1), language(2)).facts["places"]
    assert [place for place in places if "memory" in place] == ["memory 2"]


def test_texts_of_other_lengths_are_matched_from_the_end_and_it_says_so() -> None:
    view = patching(network("gpt", {}), language(1, length=7), language(2, length=4))
    effect = view.tensors["effect"]
    assert np.isnan(effect[:, :3]).all()
    assert not np.isnan(effect[:, 3:]).any()
    assert "matched from the end" in view.facts["remarks"][0]


def test_source_and_target_are_matched_each_from_its_end() -> None:
    view = patching(translator("transformer", {"depth": 2}), pair(1, source=5), pair(2, source=3))
    rows = dict(zip(view.facts["places"], np.isnan(view.tensors["effect"]), strict=True))
    assert rows["embedding"].tolist() == [True] * 2 + [False] * 10
    assert rows["encoder layer 1"].tolist() == [True] * 2 + [False] * 3 + [True] * 7
    assert rows["decoder layer 1"].tolist() == [True] * 5 + [False] * 7


def test_patching_takes_one_output_and_refuses_one_that_is_not_there() -> None:
    model = network("gru", {})
    assert patching(model, language(1), language(2), output=2).facts["output"] == 2
    with pytest.raises(UserError, match="output 7: there are 7, from 0 to 6"):
        patching(model, language(1), language(2), output=7)
    with pytest.raises(UserError, match="text B has only 3 outputs"):
        patching(model, language(1), language(2, length=3), output=0)
