"""The lens: what each layer would predict if it were the last."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from looked import encoder, language, pair, sight
from toys import network, translator

from seqloom.core.errors import UserError
from seqloom.core.taps import find_taps, record
from seqloom.explain.views.lens import lens
from seqloom.explain.views.predictions import predictions

LAYERED = {
    "lstm": (network, language, {"depth": 2}),
    "gpt": (network, language, {}),
    "gpt, norms after": (network, language, {"positions": "sinusoidal", "pre_norm": False, "norm": "layer"}),
    "ttt": (network, language, {"depth": 2}),
    "mingru": (network, language, {}),
    "linear_attention": (network, language, {"depth": 2}),
    "bert": (encoder, sight, {"depth": 2}),
    "gru": (encoder, sight, {"depth": 2, "bidirectional": True}),
    "transformer": (translator, pair, {"depth": 2}),
    "pretrained": (network, language, {}),
}


@pytest.mark.parametrize("title", LAYERED)
def test_the_last_layer_predicts_what_the_model_predicts(title: str) -> None:
    build, look, options = LAYERED[title]
    model, looked = build(title.split(",")[0], options), look()
    view, whole = lens(model, looked), predictions(model, looked)
    np.testing.assert_allclose(view.tensors["probability"][-1], whole.tensors["probability"], rtol=1e-5)
    assert view.tensors["rank"][-1].tolist() == whole.tensors["rank"].tolist()
    assert len(view.facts["layers"]) == len(view.tensors["probability"])


@pytest.mark.parametrize("name", ["gpt", "mingru", "ttt"])
def test_a_lower_layer_is_read_through_the_final_norm_and_the_head(name: str) -> None:
    model: Any = network(name, {"depth": 2})
    looked = language()
    (first, _) = (path for path in find_taps(model, "backbone.blocks.*.output"))
    with torch.no_grad(), record(model, first) as trace:
        looked.read(model, 1)
        wanted = model.head(model.backbone.finish(trace[first][0])).log_softmax(-1)[0].exp()
    view = lens(model, looked)
    assert view.facts["layers"] == ["embedding", "layer 1", "layer 2"]
    np.testing.assert_allclose(
        view.tensors["probability"][1], wanted[torch.arange(len(wanted)), looked.chosen], rtol=1e-5
    )


def test_embeddings_of_another_width_are_left_out() -> None:
    view = lens(network("lstm", {"depth": 2, "inputs": 5}), language())
    assert view.facts["layers"] == ["layer 1", "layer 2"]


def test_a_model_that_attends_after_its_last_layer_has_no_lens() -> None:
    with pytest.raises(UserError, match="between the last layer and the head this model does more than normalise"):
        lens(translator("seq2seq", {}), pair())


def test_a_model_without_layers_has_no_lens() -> None:
    with pytest.raises(UserError, match="no layers one after another"):
        lens(network("window", {"form": "linear"}), language())
