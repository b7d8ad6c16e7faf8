"""Influence: what it adds up to, where it can and cannot fall, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from looked import EVERY, LENGTH, language, pair
from toys import network, title, tokens, translator

from seqloom.core.errors import UserError
from seqloom.core.instance import Instance, Output, repeat
from seqloom.explain.baseline import baseline
from seqloom.explain.path import TOLERANCE
from seqloom.explain.views.influence import influence
from seqloom.explain.views.predictions import predictions
from seqloom.runs.run import load

GOLDEN = Path(__file__).parent / "golden" / "runs"


@pytest.mark.parametrize("build, look, case", EVERY, ids=lambda x: title(x) if isinstance(x, tuple) else "")
def test_integrated_gradients_add_up_to_the_difference_of_scores(build: Any, look: Any, case: Any) -> None:
    view = influence(build(*case), look(), outputs=[1, LENGTH - 1], methods=["gradients"])
    assert np.abs(1 - np.array(view.facts["accounted"])).max() < TOLERANCE


@pytest.mark.parametrize("name", ["lstm", "gpt", "ttt", "mingru", "linear_attention"])
def test_what_comes_after_an_output_has_no_influence_on_it(name: str) -> None:
    view = influence(network(name, {}), language(), nodes=64)
    for map in view.tensors.values():
        assert np.abs(np.triu(map, 1)).max() < 1e-9


def test_occlusion_is_the_fall_of_the_score_with_the_baseline_in_one_place() -> None:
    model, ids = network("window", {"form": "linear"}), tokens(1, 3)
    with torch.no_grad():
        model.embed.weight[ids[0, 1]] = model.embed.weight[[n for n in range(11) if n != ids[0, 1]]].mean(0)
    found = influence(model, language(length=3), methods=["occlusion"]).tensors["occlusion"]
    assert np.abs(found[:, 1]).max() < 1e-9 < np.abs(found[:, 0]).max()


def test_special_tokens_stay_in_the_baseline_and_have_no_influence() -> None:
    looked = pair()
    marked = Instance(**{**vars(looked), "marks": frozenset({2})})
    view = influence(translator("seq2seq", {}), marked)
    assert not view.tensors["occlusion"][:, 2].any()
    assert not view.tensors["gradients"][:, 2].any()


def test_special_tokens_are_left_out_of_the_mean_of_the_vocabulary() -> None:
    model, looked = network("lstm", {}), language()
    special = Instance(**{**vars(looked), "special": frozenset({0, 5})})
    others = [n for n in range(11) if n not in (0, 5)]
    torch.testing.assert_close(baseline(model, special)[1][0], model.embed.weight[others].mean(0))


def test_a_contrast_is_the_influence_on_one_class_minus_that_on_the_other() -> None:
    model, looked = network("gru", {}), language()
    other = Instance(**{**vars(looked), "outputs": tuple(Output("3", 3, True, o.at) for o in looked.outputs)})
    both, own, rival = (
        influence(model, text, against=name).tensors["occlusion"]
        for text, name in ((looked, "3"), (looked, None), (other, None))
    )
    np.testing.assert_allclose(both, own - rival, atol=1e-9)


def test_asking_why_not_the_same_class_is_refused() -> None:
    same = Instance(**{**vars(language()), "outputs": (Output("3", 3, True, 0),) * LENGTH})
    with pytest.raises(UserError, match="against '3': this is what is explained; choose another"):
        influence(network("gru", {}), same, against="3")


def test_an_output_that_is_not_there_is_refused() -> None:
    with pytest.raises(UserError, match="output 9: there are 7, from 0 to 6"):
        influence(network("gru", {}), language(), outputs=[9])


def test_the_last_outputs_are_explained_unless_others_are_asked_for() -> None:
    looked = language(length=40)
    assert influence(network("rnn", {}), looked, methods=["gradients"]).facts["explained"] == list(range(16, 40))


def test_positions_that_are_fed_back_pass_as_they_are() -> None:
    """A forecast reads more positions than the input has."""
    model, ids = network("gru", {}), tokens(1, 5)

    def read(model: Any, copies: int) -> torch.Tensor:
        first, state = model(repeat(ids, copies))
        return model(first[:, -1:].argmax(-1), state)[0].log_softmax(-1)

    view = influence(model, Instance("forecasting", tuple("abcde"), (Output("x", 1, False),), read, str))
    assert view.tensors["occlusion"].shape == view.tensors["gradients"].shape == (1, 5)


def test_a_model_that_counts_says_what_can_be_shown_instead() -> None:
    run = load(GOLDEN / "counting")
    looked = run.task.instance(run.model, {"line": 1, "source": "the cat"}, run.tokenizer)
    with pytest.raises(UserError, match=r"no embedding .* predictions"):
        influence(run.model, looked)
    assert len(predictions(run.model, looked).rows) == 7


@pytest.mark.parametrize("name", ["classification", "language_model", "question_answering", "tagging", "translation"])
def test_the_table_holds_every_cell_of_the_maps(name: str) -> None:
    run = load(GOLDEN / name)
    row = {"line": 1, "source": "the cat sat", "question": "who sat", "context": "the cat sat"}
    looked = run.task.instance(run.model, row, run.tokenizer)
    view = influence(run.model, looked)
    assert [row["occlusion"] for row in view.rows] == view.tensors["occlusion"].ravel().tolist()
    assert [row["gradients"] for row in view.rows if "gradients" in row] == view.tensors["gradients"].ravel().tolist()


def test_predictions_are_probability_rank_and_loss_with_the_likeliest_classes() -> None:
    model, looked = network("lstm", {}), language()
    view = predictions(model, looked)
    found = looked.read(model, 1)[0].detach().exp()
    chosen = found[torch.arange(LENGTH), looked.chosen]
    np.testing.assert_allclose(view.tensors["probability"], chosen, rtol=1e-5)
    np.testing.assert_allclose(view.tensors["loss"], -chosen.log(), rtol=1e-5)
    assert view.tensors["rank"].tolist() == [1 + int((row > own).sum()) for row, own in zip(found, chosen, strict=True)]
    assert [row["choice_1"] for row in view.rows] == [str(n) for n in found.argmax(-1).tolist()]
