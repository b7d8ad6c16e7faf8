"""Models against baselines that write text: compared by that text, on the same blocks of the test set, over seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compare_example import example, judged, titles
from toys import translation

from seqloom.compare import judging
from seqloom.compare.report import facts, markdown
from seqloom.compare.report.table import lines, notes
from seqloom.lab.statistics import score_interval

HARD = 8 * np.sin(np.arange(10)) - 8 * np.sin(np.arange(10)).mean()  # some blocks are hard for everyone


def of_texts(bleu: dict[str, float], noise: float = 0.2, copy: float = 5.0) -> dict[str, Any]:
    """The example as a comparison of texts: LSTM, GPT and an n-gram that plays the nearest pair, with a lower loss in
    this order; with the BLEU given, in pieces that share what is hard."""
    result, rng = example(), np.random.default_rng(0)
    result["protocol"] |= {"shown": ["bleu"], "latency_unit": "source", "titles": titles(translation())}
    result["entries"] = [entry for entry in result["entries"] if entry["name"] in ("lstm", "gpt", "ngram")]
    result["entries"][-1] |= {"name": "nearest", "model": "nearest", "parameters": 0, "stored": 412_960}
    for entry in result["entries"]:
        for run, luck in zip(entry["runs"], (-0.1, 0.0, 0.1) if len(entry["runs"]) > 1 else (0.0,), strict=True):
            moved = rng.normal(0, noise, 10)
            pieces = bleu[entry["name"]] + luck + HARD + moved - moved.mean()
            run |= {"scores": {"bleu": float(pieces.mean())}, "score_pieces": {"bleu": pieces.tolist()}}
        sample = judging.beside(entry["runs"], "bleu", bool(entry.get("fixed")))
        assert sample is not None
        found = score_interval(sample, 0.95, (0.0, 100.0))
        entry["scores"] = {"bleu": {"mean": found.mean, "low": found.low, "high": found.high, "seeds": found.seeds}}
    pieces = copy + HARD / 4
    result["baselines"] = [{"name": "copy", "score": None, "scores": {"bleu": float(pieces.mean())},
                            "score_pieces": {"bleu": pieces.tolist()}}]  # fmt: skip
    return result


def reasons(result: dict[str, Any], **wishes: Any) -> str:
    return " ".join(judged(result, **wishes)["recommendation"]["reasons"]["en"])


def test_a_small_lead_over_the_nearest_pair_is_certain_where_both_find_the_same_blocks_hard() -> None:
    result = of_texts({"lstm": 22.0, "gpt": 12.0, "nearest": 20.0})
    said = reasons(result)
    mine = result["entries"][0]["scores"]["bleu"]
    assert mine["low"] < 20 < mine["high"], "each score alone could not tell"
    assert "It beats the best baseline, nearest (BLEU 20." in said and "on the same test segments" in said
    assert result["recommendation"]["choice"] == "lstm"
    (gap,) = [text for text in result["recommendation"]["reasons"]["zh"] if "按相同的测试片段比较" in text]
    assert gap.startswith("它胜过最好的基线“nearest”")


def test_a_lead_that_varies_over_blocks_is_not_certain_however_well_the_seeds_agree() -> None:
    result = of_texts({"lstm": 22.0, "gpt": 12.0, "nearest": 20.0})
    rng = np.random.default_rng(1)
    moved = rng.normal(0, 9.0, 10)
    for run in result["entries"][0]["runs"]:
        pieces = np.array(run["score_pieces"]["bleu"]) + moved - moved.mean()
        run["score_pieces"] = {"bleu": pieces.tolist()}
    assert "It is not certain that it beats the best baseline, nearest" in reasons(result)


def test_the_nearest_pair_is_recommended_where_no_other_model_writes_better_whatever_its_loss() -> None:
    result = of_texts({"lstm": 15.0, "gpt": 12.0, "nearest": 20.0})
    said = reasons(result)
    found = result["recommendation"]
    assert result["best"] == "lstm" and found["choice"] == found["use"] == "nearest" and found["certain"]
    assert said.startswith("No other model beats the baseline nearest, which scores BLEU 20.")
    assert "the best is lstm: BLEU 15." in said and "epochs of the training set; fitted to all of it: nearest" in said
    assert "满" not in found["reasons"]["zh"][0] and found["reasons"]["zh"][0].startswith(
        "没有其他模型胜过基线“nearest”"
    )


def test_where_a_model_might_write_better_the_nearest_pair_is_not_certain() -> None:
    result = of_texts({"lstm": 19.9, "gpt": 12.0, "nearest": 20.0}, noise=3.0)
    reasons(result)
    assert result["recommendation"]["choice"] == "nearest" and not result["recommendation"]["certain"]
    assert result["recommendation"]["among"] == ["nearest", "lstm"]


def test_the_best_by_loss_that_writes_worse_than_the_nearest_pair_is_told_so() -> None:
    result = of_texts({"lstm": 15.0, "gpt": 25.0, "nearest": 20.0})
    said = reasons(result)
    assert result["recommendation"]["choice"] == "lstm"
    assert "It does not beat the best baseline, nearest (BLEU 20." in said and "its own result is BLEU 15." in said


def test_a_nearest_pair_that_does_not_meet_the_constraints_is_no_bar() -> None:
    result = of_texts({"lstm": 15.0, "gpt": 12.0, "nearest": 20.0})
    result["entries"][0]["parameters"] = result["entries"][1]["parameters"] = 300_000
    said = reasons(result, max_params=400_000)
    assert result["recommendation"]["choice"] == "lstm"
    assert "nearest is excluded: 412,960 stored values, above the limit of 400,000." in said
    assert "It beats the best baseline, copy of the source (BLEU 5.0" in said


def test_by_cost_the_nearest_pair_may_be_chosen_and_models_that_write_worse_may_not() -> None:
    result = of_texts({"lstm": 25.0, "gpt": 12.0, "nearest": 20.0})
    result["entries"][-1]["cost"]["latency"] = [{"context": c, "seconds": 1e-6} for c in (64, 512)]
    found = judged(result, prefer="latency")["recommendation"]
    assert "gpt is excluded: it does not beat the baseline nearest (BLEU 12." in " ".join(found["reasons"]["en"])


def test_without_pieces_a_baseline_is_compared_by_the_interval_of_the_score() -> None:
    result = of_texts({"lstm": 22.0, "gpt": 12.0, "nearest": 1.0}, copy=20.0)
    del result["baselines"][0]["score_pieces"]
    said = reasons(result)
    assert "It is not certain that it beats the best baseline, copy of the source (BLEU 20." in said
    assert "that score lies within its confidence interval" in said


@pytest.mark.parametrize(("language", "stored"), [("en", "stored values"), ("zh", "存储数值")])
def test_what_counts_has_a_size_that_is_not_called_parameters(language: str, stored: str) -> None:
    result = judged(of_texts({"lstm": 15.0, "gpt": 12.0, "nearest": 20.0}))
    result["entries"][-1]["bytes"] = 3_303_680
    text = markdown(result, language)
    (row,) = [line for line in text.splitlines() if "412,960" in line and line.count("|") > 8]
    assert stored in row and "3.3 MB" in row
    assert facts.size(result["entries"][-1]) == (412_960, True) and facts.size(result["entries"][0])[1] is False
    assert any("413 k *" in line for line in lines(result, 200))
    assert any("stored values of a model that has none" in line for line in notes(result, 200))


def test_old_results_without_a_size_say_nothing_about_it() -> None:
    result = judged(of_texts({"lstm": 15.0, "gpt": 12.0, "nearest": 20.0}))
    del result["entries"][-1]["stored"]
    assert facts.size(result["entries"][-1]) == (None, False)
    assert "stored values" not in markdown(result, "en") and not any("*" in line for line in lines(result, 200))
