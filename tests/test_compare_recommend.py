"""What is recommended, and what is said about it: results made up here, nothing trained."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import asdict
from string import Formatter
from typing import Any

import numpy as np
import pytest
from compare_example import titles

from seqloom.compare import judging
from seqloom.compare.advice.recommend import PREFERENCES, recommend
from seqloom.compare.advice.sentences import SENTENCES
from seqloom.core.errors import UserError
from seqloom.lab import statistics
from seqloom.lab.rules import Margin
from seqloom.pages.formats import duration
from seqloom.tasks.language_model import LanguageModel

CONTEXTS = (64, 2048)
Result = dict[str, Any]


def entry(
    name: str,
    score: float,
    *,
    seeds: int = 5,
    spread: float = 0.004,
    parameters: int = 800_000,
    latency: tuple[float, float] = (2e-4, 2e-4),  # seconds at the two contexts
    state: tuple[int, int] = (3000, 3000),
    speed: float = 10_000.0,
    peak: int = 100_000_000,
    fixed: bool = False,
    tokens: int = 500_000,
) -> Result:
    seeds = 1 if fixed else seeds
    rng = np.random.default_rng(abs(hash((round(score * 1e4), seeds))) % 2**32)
    offsets = np.linspace(-spread, spread, seeds) if seeds > 1 else np.zeros(1)
    pieces = score + offsets[:, None] + np.linspace(-0.1, 0.1, 20) + rng.normal(0, 1e-4, (seeds, 20))
    runs = [
        {"seed": s, "state": "done", "score": float(row.mean()), "pieces": row.tolist(), "valid": float(row.mean())}
        | {"seconds": tokens / speed, "tokens": tokens}
        for s, row in enumerate(pieces)
    ]
    return {
        "name": name,
        "model": name,
        "state": "done",
        "error": None,
        "parameters": parameters,
        "runs": runs,
        "score": asdict(statistics.score_interval(statistics.Sample.of(pieces, fixed=fixed))),
        "fixed": fixed,
        "cost": {
            "tokens_per_second": speed,
            "peak_bytes": peak,
            "latency": [{"context": c, "seconds": s} for c, s in zip(CONTEXTS, latency, strict=True)],
            "state": [{"context": c, "bytes": b} for c, b in zip(CONTEXTS, state, strict=True)],
        },
    }


def compared(
    *entries: Result, baseline: float | None = 3.0, higher: bool = False, margin: str = "1%", epoch: int = 100_000
) -> Result:
    entries = copy.deepcopy(entries)
    samples = judging.samples([e for e in entries if e["state"] == "done"], higher)
    found = judging.verdicts(samples, higher, 0.04, Margin.parse(margin), (0.0, None))
    for name, verdict in found.items():
        next(e for e in entries if e["name"] == name)["against_best"] = asdict(verdict)
    return {
        "protocol": {
            "metric": "loss",
            "titles": titles(LanguageModel),
            "higher_is_better": higher,
            "level": 0.04,
            "margin": margin,
            "confidence": 0.95,
            "epoch_tokens": epoch,
            "plan": {"look": 1},
        },
        "entries": list(entries),
        "best": next((name for name, each in found.items() if each.verdict == "best"), None),
        "baselines": [{"name": "unigram", "score": baseline}, {"name": "uniform", "score": 4.3}] if baseline else [],
    }


GPT = entry("gpt", 1.50, latency=(0.9e-4, 8e-4), state=(64_000, 2_000_000), speed=30_000)
LSTM = entry("lstm", 1.55, latency=(3e-4, 3e-4), state=(3000, 3000), speed=20_000)
RNN = entry("rnn", 1.70, latency=(1.1e-4, 1.1e-4), state=(1500, 1500), speed=25_000, parameters=500_000)
THREE = compared(GPT, LSTM, RNN)


def said(found: Result, part: str = "reasons", language: str = "en") -> str:
    return "\n".join(found[part][language])


def test_the_best_that_is_separated_from_all_is_chosen_with_its_numbers() -> None:
    found = recommend(THREE)
    assert (found["choice"], found["certain"], found["among"], found["use"]) == ("gpt", True, [], "gpt")
    (headline,) = found["headline"]["en"]
    assert headline.startswith("gpt has the best score, 1.50") and headline.endswith(
        "5 seeds), and every other model is significantly worse."
    )
    text = said(found)
    assert re.search(r"gpt has the best score: 1\.500\d* nats per token \(95 % CI 1\.4\d+ to 1\.5\d+, 5 seeds\)", text)
    numbers = r"behind \(96 % CI [\d.]+ to [\d.]+, p [<=] [\d.]+\)"
    assert re.search(rf"Significantly worse: lstm is 0\.050\d* {numbers}; rnn is 0\.200\d* {numbers}\.", text)
    assert "800,000 parameters, 0.8 ms per token and 2 MB of state at context length 2,048" in text
    assert "30,000 tokens/s in training, 100 MB peak memory in training" in text
    assert "It beats the best baseline, unigram frequencies, which scores 3.0" in text


def test_chinese_says_the_same() -> None:
    text = said(recommend(THREE), language="zh")
    assert re.search(r"gpt 的分数最好：1\.500\d* 奈特/词元（95 % 置信区间 1\.4\d+ 至 1\.5\d+，5 个随机种子）。", text)
    assert "上下文长度 2,048 时每词元 0.8 毫秒" in text
    assert "它胜过最好的基线“一元词频”（3.0" in text
    assert recommend(THREE)["headline"]["zh"][0].endswith("5 个随机种子）；其他模型都显著较差。")


def test_what_others_would_choose_is_said_with_both_numbers() -> None:
    text = said(recommend(THREE), "would_change")
    assert "latency matters most: rnn, 0.11 ms per token at context length 2,048, compared with 0.8 ms for gpt." in text
    assert "If memory matters most: rnn, 1.5 kB of state at context length 2,048, compared with 2 MB for gpt." in text
    assert "training" not in text  # gpt trains fastest anyway


def test_a_ranking_that_changes_with_the_context_is_said() -> None:
    text = said(recommend(THREE), "would_change")
    assert (
        "at 64 tokens, gpt has the lowest latency (0.09 ms, compared with 0.11 ms for rnn); at 2,048, rnn does (0.11 ms"
        in text
    )
    assert "The state of gpt grows with the context, from 64 kB at 64 tokens to 2 MB at 2,048" in text
    assert "consider lstm, whose state stays at 3 kB" in text


def test_the_best_of_two_that_cannot_be_told_apart_is_recommended_and_said_to_be_uncertain() -> None:
    gru = entry("gru", 1.552, spread=0.01, latency=(2e-4, 2e-4), speed=22_000)
    found = recommend(compared(LSTM, gru, RNN, margin="0.1%"))
    assert (found["choice"], found["certain"], found["among"]) == ("lstm", False, ["lstm", "gru"])
    assert found["headline"]["en"][0].endswith("but there is not enough evidence to tell it from gru.")
    assert found["headline"]["zh"][0].endswith("但现有证据不足以区分它与 gru。")
    text = said(found)
    assert re.search(r"to tell it from gru: gru is 0\.00\d+ behind \(96 % CI −0\.\d+ to 0\.\d+, p = 0\.\d+\)\.", text)
    assert re.search(r"about \d+ seeds are needed to show it \(5 were run; about [\d, hmins]+ more training\)", text)
    cheap = "0.2 ms per token at context length 2,048, 22,000 tokens/s in training"
    assert f"Of lstm and gru, gru is the cheapest: {cheap}" in text
    assert "Significantly worse: rnn is 0.15" in text
    wanted = "If latency matters most: rnn, 0.11 ms per token at context length 2,048, compared with 0.3 ms for lstm."
    assert wanted in said(found, "would_change")


def test_what_lies_within_the_margin_is_equivalent_and_the_choice_certain() -> None:
    gru = entry("gru", 1.552, latency=(2e-4, 2e-4))
    found = recommend(compared(LSTM, gru, RNN, margin="5%"))
    assert (found["choice"], found["certain"], found["among"]) == ("lstm", True, [])
    assert found["headline"]["en"][0].endswith("5 seeds); equivalent, within the margin of 5%: gru.")
    assert found["headline"]["zh"][0].endswith("在 5% 的容差内与之等价的有 gru。")
    assert re.search(r"Equivalent, within the margin of 5%: gru is 0\.00\d+ behind", said(found))
    cheap = recommend(compared(LSTM, gru, margin="5%"), "latency")
    assert "equivalent to that of lstm, the best alternative, within the margin of 5%: 1.55" in said(cheap)


def test_the_seeds_a_tie_would_need_are_named() -> None:
    near = entry("gru", 1.558, spread=0.008)
    text = said(recommend(compared(entry("lstm", 1.55, spread=0.008), near)))
    count = re.search(r"about (\d+) seeds are needed to show it \(5 were run; about ([\w. ]+) more training\)", text)
    assert count and 5 < int(count[1]) < 50
    assert count[2] == duration((int(count[1]) - 5) * 2 * 50)  # two models, 50 s each


def test_when_the_pieces_leave_it_open_more_text_is_asked_for() -> None:
    one, other = entry("lstm", 1.55), entry("gru", 1.55)
    for run in other["runs"]:
        wave = 0.2 * np.sin(np.arange(20)) + 0.03
        run["pieces"] = (np.asarray(run["pieces"]) + wave).tolist()
        run["score"] = float(np.mean(run["pieces"]))
    found = recommend(compared(one, other))
    assert (found["choice"], found["certain"]) == ("lstm", False)
    assert "More seeds alone would not separate gru from lstm" in said(found) and "test data" in said(found)


def test_when_the_luck_of_tuning_leaves_it_open_more_trials_are_asked_for() -> None:
    def tuned(each: Result) -> Result:
        return each | {"search": [{"state": "done", "score": each["runs"][0]["score"] + n / 500} for n in range(8)]}

    result = compared(tuned(entry("lstm", 1.55)), tuned(entry("gru", 1.556)))
    for each in result["entries"]:
        each["tuning_variance"] = 1e-3
    result["entries"][1]["against_best"] |= {"low": -0.1, "high": 0.1, "verdict": "unclear"}
    assert "compared with the luck of tuning. More trials might." in said(recommend(result))


def test_one_model_under_two_names_is_equivalent_to_itself_or_said_to_have_the_same_score() -> None:
    twice = compared(LSTM, {**LSTM, "name": "again"})
    assert (recommend(twice)["choice"], recommend(twice)["certain"]) == ("lstm", True)
    assert "Equivalent, within the margin of 1%: again is 0.0" in said(recommend(twice))
    strict = recommend(compared(LSTM, {**LSTM, "name": "again"}, margin="0"))
    assert strict["among"] == ["lstm", "again"]
    assert "have the same mean score: there is no difference for more seeds to confirm" in said(strict)


def test_two_models_that_depend_on_no_seed_are_told_apart_by_more_test_data_only() -> None:
    one, other = entry("ngram", 1.55, fixed=True), entry("bigram", 1.56, fixed=True)
    wave = 0.2 * np.sin(np.arange(20))
    other["runs"][0]["pieces"] = (np.asarray(other["runs"][0]["pieces"]) + wave).tolist()
    found = recommend(compared(one, other, RNN))
    assert "bigram and ngram depend on no seed: only more test data could separate them." in said(found)


def test_one_seed_chooses_the_best_and_says_that_it_may_be_chance() -> None:
    result = compared(entry("lstm", 1.5, seeds=1), entry("rnn", 1.7, seeds=1, latency=(1e-4, 1e-4)))
    found = recommend(result)
    assert (found["choice"], found["certain"], found["among"]) == ("lstm", False, ["lstm", "rnn"])
    assert "lstm (1.5" in said(found) and "at least 2 seeds, preferably 5" in said(found)
    assert "(one seed)" in said(found) and "1 seeds" not in said(found)
    assert "but a single run cannot tell whether this is chance" in said(found)
    cheap = recommend(result, "latency")
    assert cheap["choice"] == "rnn"
    assert "Whether its score is worse than that of lstm, the best alternative, cannot be told: 1.7" in said(cheap)


def test_a_model_that_needs_no_training_is_chosen_when_it_is_best_and_no_seeds_are_said_of_it() -> None:
    ngram = entry("ngram", 1.4, fixed=True, speed=1e6)
    found = recommend(compared(ngram, LSTM, RNN, epoch=2_000_000))
    assert (found["choice"], found["certain"], found["use"]) == ("ngram", True, "ngram")
    best = re.search(r"ngram has the best score: 1\.400\d* nats per token \(95 % CI [\d.]+ to [\d.]+\)\.", said(found))
    assert best and "1 seeds" not in said(found) and "1 个随机种子" not in said(found, language="zh")
    budget = "Every trained model read 500,000 tokens, 0.25 epochs of the training set; fitted to all of it: ngram."
    assert budget in said(found)
    assert "lstm and rnn did not read the training set once" in said(found, "would_change")
    trained = recommend(compared(ngram, LSTM, RNN, epoch=100_000))
    assert "did not read" not in said(trained, "would_change")


@pytest.mark.parametrize("baseline", [None, 3.0])
def test_a_cheap_model_that_is_worse_than_one_without_training_is_left_out(baseline: float | None) -> None:
    ngram = entry("ngram", 1.6, fixed=True, latency=(5e-4, 5e-4))
    found = recommend(compared(LSTM, ngram, RNN, baseline=baseline), "latency")
    assert found["choice"] == "lstm"
    assert re.search(
        r"rnn is excluded: ngram, which needs no training, has a better mean score \(1\.6\d+,", said(found)
    )


@pytest.mark.parametrize(("prefer", "choice"), [("latency", "rnn"), ("memory", "rnn"), ("training", "gpt")])
def test_a_preferred_cost_decides(prefer: str, choice: str) -> None:
    assert recommend(THREE, prefer)["choice"] == choice


def test_a_cost_says_what_it_gives_up_in_quality() -> None:
    found = recommend(THREE, "latency")
    text = said(found)
    assert "rnn has the lowest latency: 0.11 ms per token at context length 2,048; next is lstm with 0.3 ms." in text
    assert re.search(r"worse than that of gpt, the best alternative: 1\.700.*, 0\.200\d* behind \(96 % CI", text)
    assert re.search(r"matters most: gpt, 1\.500.* compared with 1\.700\d* for rnn", said(found, "would_change"))


def test_costs_within_five_percent_are_decided_by_quality() -> None:
    close = entry("gru", 1.60, latency=(1.12e-4, 1.14e-4))
    found = recommend(compared(GPT, LSTM, RNN, close), "latency")
    assert found["choice"] == "gru"
    assert "gru and rnn are within 5 % of each other in latency (0.114 ms, 0.11 ms); none of them has a" in said(found)


def test_equal_states_are_decided_by_the_peak_of_training() -> None:
    lean = entry("lean", 1.9, state=(3000, 3000), peak=50_000_000)
    assert recommend(compared(LSTM, lean), "memory")["choice"] == "lean"


def test_a_cost_that_nobody_measured_chooses_nothing() -> None:
    result = compared(LSTM, RNN)
    for each in result["entries"]:
        each["cost"] = None
    found = recommend(result, "latency")
    assert found["choice"] is None and "No latency was measured by which" in said(found)
    assert recommend(result)["choice"] == "lstm"


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({"max_params": 600_000}, "gpt is excluded: 800,000 parameters, above the limit of 600,000."),
        (
            {"max_latency_ms": 0.2},
            "gpt is excluded: 0.8 ms per token at context length 2,048, above the limit of 0.2 ms.",
        ),
        ({"streaming": True}, "gpt is excluded: its state grows with the context, from 64 kB at 64 tokens to 2 MB"),
    ],
    ids=str,
)
def test_who_breaks_a_constraint_is_left_out_with_the_number(limits: Result, why: str) -> None:
    found = recommend(THREE, **limits)
    assert found["choice"] == ("lstm" if "streaming" in limits else "rnn")
    assert why in said(found)
    assert "exclude the model with the best score: gpt, 1.500" in said(found, "would_change")


def test_when_the_best_is_left_out_the_rest_are_judged_against_each_other() -> None:
    text = said(recommend(THREE, streaming=True))
    assert "lstm has the best score of the models that meet the constraints" in text
    assert "Significantly worse: rnn is 0.15" in text
    headline = recommend(THREE, streaming=True)["headline"]
    assert headline["en"][0].startswith("Of the models that meet the constraints, lstm has the best score, 1.55")
    assert headline["en"][0].endswith("and rnn is significantly worse.")
    assert headline["zh"][0].startswith("在满足约束条件的模型中，lstm 的分数最好：1.55")


def test_who_is_worse_than_an_excluded_model_only_is_not_called_worse() -> None:
    """The first varies so much that nothing can be told from it; the second is sure, and excluded."""
    shaky, sure = entry("shaky", 1.50, spread=0.05), entry("sure", 1.505, spread=0.001, parameters=900_000)
    result = compared(shaky, sure, entry("last", 1.52, spread=0.001), margin="0.1%")
    assert result["entries"][2]["against_best"]["verdict"] == "worse"
    found = recommend(result, max_params=800_000)
    assert found["among"] == ["shaky", "last"] and "Significantly worse" not in said(found)


def test_when_nothing_fits_the_nearest_value_is_named() -> None:
    found = recommend(THREE, max_latency_ms=0.05)
    assert found["choice"] is None
    assert "No model meets the constraints." in said(found)
    assert said(found, "would_change").startswith("With --max-latency-ms 0.11, rnn would qualify: 1.70")
    assert recommend(THREE, max_latency_ms=0.11)["choice"] == "rnn"


def test_when_nothing_fits_as_few_constraints_as_possible_are_relaxed() -> None:
    found = recommend(compared(GPT, LSTM), max_params=700_000, streaming=True)
    assert found["would_change"]["en"][0].startswith("With --max-params 800000, lstm would qualify")
    assert len(found["would_change"]["en"]) == 1
    both = recommend(compared(GPT), max_params=700_000, streaming=True)
    assert both["would_change"]["en"][0].startswith("With --max-params 800000 and no --streaming, gpt would qualify")


def test_a_cost_that_was_not_measured_fits_no_constraint_on_it() -> None:
    unmeasured = {**GPT, "cost": {"latency": [], "state": []}}
    found = recommend(compared(unmeasured, LSTM), max_latency_ms=1.0, streaming=True)
    assert found["choice"] == "lstm"
    assert "its latency was not measured, so --max-latency-ms cannot be checked" in said(found)


@pytest.mark.parametrize("prefer", PREFERENCES)
def test_nothing_is_recommended_that_does_not_beat_a_baseline(prefer: str) -> None:
    found = recommend(compared(GPT, LSTM, RNN, baseline=1.4), prefer)
    assert found["choice"] is None
    assert "No model beats the baseline unigram frequencies, which scores 1.4" in said(found)
    assert "worth its cost" not in said(found)
    assert "larger training budget" in said(found, "would_change")


def test_a_baseline_that_is_a_model_and_beats_all_is_the_choice() -> None:
    result = compared(GPT, LSTM, baseline=1.4)
    result["baselines"][0]["model"] = "unigram"
    assert (recommend(result)["choice"], recommend(result)["certain"]) == ("unigram", True)
    assert "The cost of unigram" not in said(recommend(result))
    assert "The cost of unigram was not measured" in said(recommend(result, max_params=10**9))
    near = compared(entry("gpt", 1.5), LSTM, baseline=1.499)
    near["baselines"][0]["model"] = "unigram"
    assert (recommend(near)["choice"], recommend(near)["among"]) == ("unigram", ["unigram", "gpt"])


def test_behind_a_baseline_that_is_only_a_line_the_best_saved_model_is_the_choice() -> None:
    result = compared(GPT, LSTM, baseline=1.4)
    result["baselines"].append({"name": "counted", "score": 1.45, "model": "counted"})
    found = recommend(result)
    assert found["choice"] == "counted"
    assert "Of the baselines that are saved as a model, counted is the best: 1.45" in said(found)
    result["baselines"][-1]["score"] = 2.9
    assert recommend(result)["choice"] is None


def test_behind_a_line_the_best_model_is_the_choice_if_it_needs_no_training() -> None:
    result = compared(entry("ngram", 1.4, fixed=True), LSTM, baseline=1.4)
    result["baselines"][0]["score"] = result["entries"][0]["score"]["mean"]  # the same, under another name
    found = recommend(result)
    assert found["choice"] == found["use"] == "ngram"
    assert "No model beats the baseline unigram frequencies" in said(found)


def test_a_cheap_model_below_the_baseline_is_left_out() -> None:
    found = recommend(compared(GPT, LSTM, RNN, baseline=1.6), "latency")
    assert found["choice"] == "lstm"
    assert "rnn is excluded: it does not beat the baseline unigram frequencies (1.700" in said(found)


def test_a_baseline_within_the_interval_is_not_called_beaten() -> None:
    found = recommend(compared(GPT, LSTM, baseline=1.501))
    assert found["choice"] == "gpt" and "is not certain" in said(found)


def test_a_baseline_that_was_entered_competes_instead() -> None:
    found = recommend(compared(entry("unigram", 1.4, fixed=True), LSTM, baseline=1.4))
    assert found["choice"] == "unigram"


def test_a_higher_metric_turns_everything_round() -> None:
    result = compared(entry("good", 0.9), entry("bad", 0.7), baseline=0.5, higher=True)
    result["baselines"] = [{"name": "majority", "score": 0.5}]
    found = recommend(result)
    assert found["choice"] == "good"
    assert "Significantly worse: bad is 0.200" in said(found) and "beats the best baseline, majority" in said(found)
    assert recommend({**result, "baselines": [{"name": "majority", "score": 0.95}]})["choice"] is None


def test_an_entry_that_failed_is_named_with_its_error() -> None:
    failed = {"name": "gru", "model": "gru", "state": "failed", "error": "seed 2: out of memory"}
    found = recommend({**THREE, "entries": [*THREE["entries"], failed]})
    assert found["choice"] == "gpt" and "gru is excluded: it did not finish (seed 2: out of memory)." in said(found)
    none = recommend({**THREE, "entries": [failed]})
    assert none["choice"] is None and "No model finished" in said(none)


def test_an_entry_whose_score_is_no_number_is_left_out() -> None:
    broken = {**RNN, "score": {"mean": None, "low": None, "high": None, "seeds": 5}}
    result = {**THREE, "entries": [*THREE["entries"][:2], broken]}
    assert "rnn is excluded: its score is not a finite number." in said(recommend(result))


def test_one_entry_alone_is_what_there_is() -> None:
    found = recommend(compared(LSTM))
    assert found["choice"] == "lstm" and "only model to choose from" in said(found)
    assert "the only model that meets the constraints" in said(recommend(compared(GPT, LSTM), streaming=True))


def test_costs_that_hardly_differ_are_no_reason_to_change() -> None:
    like = entry("like", 1.7, latency=(2.02e-4, 1.98e-4), speed=10_100)
    assert recommend(compared(entry("lstm", 1.5), like))["would_change"]["en"] == [
        "The choice is lstm whether quality, latency, memory or training speed matters most."
    ]


def test_tied_models_with_different_advantages_are_named_with_them() -> None:
    first = entry("lstm", 1.55, spread=0.02, latency=(3e-4, 3e-4), speed=20_000)
    second = entry("gru", 1.56, spread=0.02, latency=(2e-4, 2e-4), speed=10_000)
    text = said(recommend(compared(first, second)))
    assert "Of lstm and gru, the cheapest: gru (0.2 ms per token at context length 2,048), lstm (20,000" in text


def test_a_choice_that_every_preference_shares_is_said_to_be_so() -> None:
    swift = entry("swift", 1.4, latency=(5e-5, 5e-5), state=(100, 100), speed=90_000)
    assert "The choice is swift whether" in said(recommend(compared(swift, LSTM, RNN)), "would_change")


@pytest.mark.parametrize("prefer", PREFERENCES)
@pytest.mark.parametrize("limits", [{}, {"streaming": True}, {"max_params": 1}, {"max_latency_ms": 0.2}], ids=str)
def test_the_object_is_plain_json_with_as_many_sentences_in_both_languages(prefer: str, limits: Result) -> None:
    found = recommend(THREE, prefer, **limits)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    kept = {"prefer", "constraints", "choice", "certain", "among", "headline", "use", "reasons", "would_change"}
    assert set(found) == kept
    assert set(found["constraints"]) == {"max_params", "max_latency_ms", "streaming"}
    for part in ("headline", "reasons", "would_change"):
        assert len(found[part]["en"]) == len(found[part]["zh"])
        assert not any(word in text for text in found[part]["en"] for word in ("None", "nan", "–"))
        numbers = [[sorted(re.findall(r"\d[\d,.]*\d", text)) for text in found[part][lang]] for lang in ("en", "zh")]
        assert numbers[0] == numbers[1]


@pytest.mark.parametrize("key", SENTENCES)
def test_a_sentence_has_the_same_values_in_both_languages(key: str) -> None:
    english, chinese = ({name for _, name, _, _ in Formatter().parse(text) if name} for text in SENTENCES[key])
    assert english == chinese


def test_an_unknown_preference_is_refused() -> None:
    with pytest.raises(UserError, match="did you mean 'latency'"):
        recommend(THREE, "latencies")


def test_a_baseline_that_is_only_a_line_comes_with_the_command_that_fits_it() -> None:
    result = compared(GPT, LSTM, baseline=1.4)
    result["protocol"]["fit"] = {"unigram": "seqloom fit --model ngram --data book.txt"}
    assert "can be fitted as a model of its own: seqloom fit --model ngram --data book.txt" in said(recommend(result))


def test_there_is_a_model_to_use_even_without_a_choice() -> None:
    gru = entry("gru", 1.552, spread=0.01)
    assert recommend(compared(LSTM, gru, RNN))["use"] == "lstm"
    assert recommend(compared(LSTM, RNN, baseline=1.4))["use"] == "lstm"  # behind a baseline that is no model
    assert recommend(THREE, max_latency_ms=0.11)["use"] == "rnn"
    assert recommend(THREE, max_latency_ms=0.05)["use"] is None  # nothing fits
