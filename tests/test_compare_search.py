"""The search of a comparison: the same for all, under any name, and told as it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from compare_example import example
from support import text
from test_cli import call

from seqloom.compare import comparing, record
from seqloom.compare.comparing import compare
from seqloom.compare.comparison import Comparison
from seqloom.compare.plan import Plan
from seqloom.compare.report import html, markdown, tuning
from seqloom.compare.report.words import speaker
from seqloom.core.errors import UserError
from seqloom.lab import search
from seqloom.lab.search import Score, Settings
from seqloom.lab.tuning import expected_best
from seqloom.lab.tuning import tuning as summary

FIRST = {"scale": 1.0, "optimizer": "muon", "dropout": 0.0, "weight_decay": 0.0}
RATES = {"train.optimizer", "model.dropout", "train.weight_decay"}  # fixed: the learning rate alone is searched


def by_scale(optimum: float) -> Callable[[Settings], Score]:
    return lambda settings: abs(settings["scale"] / optimum - 1)


def searched(
    trials: int,
    judge: Callable[[Settings], Score],
    pinned: set[str] | None = None,
    *,
    lower: bool = True,
    first: Settings = FIRST,
    depths: tuple[int, ...] = (),
) -> list[list[Settings]]:
    """The rounds of a search whose trials get these scores."""
    proposals = search.rounds(trials, first, pinned or set(), lower, depths)
    found = [next(proposals)]
    while True:
        try:
            found.append(proposals.send([judge(settings) for settings in found[-1]]))
        except StopIteration:
            return found


def flat(rounds: list[list[Settings]]) -> Iterator[Settings]:
    return (settings for asked in rounds for settings in asked)


# what is proposed


@pytest.mark.parametrize("trials", [1, 2, 3, 4, 6, 12, 40])
def test_every_search_has_its_number_of_trials_and_begins_with_the_models_own_settings(trials: int) -> None:
    rounds = searched(trials, by_scale(1))
    assert rounds[0] == [FIRST] and len(list(flat(rounds))) == trials
    assert all(len(asked) == 1 for asked in rounds[2:]) and len(rounds[2:]) == trials // 3


def test_no_settings_are_proposed_twice() -> None:
    for pinned in (set(), {"train.optimizer"}, RATES, {"train.rate"}):
        tried = list(flat(searched(60, by_scale(3), pinned)))
        assert all(settings not in tried[:n] for n, settings in enumerate(tried))


def test_a_search_with_nothing_new_left_to_try_ends() -> None:
    only = searched(9, by_scale(1), {"train.rate", "model.dropout", "train.weight_decay"})
    assert [settings["optimizer"] for settings in flat(only)] == ["muon", "adamw"]
    assert searched(9, by_scale(1), {"train.rate", *RATES}) == [[FIRST]]


def test_four_trials_already_vary_rate_optimizer_dropout_and_weight_decay() -> None:
    for optimum in (0.3, 1.0, 5.0):
        tried = list(flat(searched(4, by_scale(optimum))))
        for name in FIRST:
            assert len({settings[name] for settings in tried}) > 1, (optimum, name)


def test_the_points_are_the_same_whatever_the_model_and_the_number_of_trials() -> None:
    points = searched(30, by_scale(1))[1]
    other = {"scale": 1.0, "optimizer": "adamw", "dropout": 0.4, "weight_decay": 0.1}
    assert searched(12, by_scale(1), first=other)[1] == points[:7]
    fixed = searched(12, by_scale(1), {"model.dropout"}, first=other)[1]
    assert fixed == [point | {"dropout": 0.4} for point in points[:7]]


def test_points_stay_in_the_space_that_is_told_and_fill_it() -> None:
    space, points = search.space(False), searched(100, by_scale(1))[1]
    for name in ("scale", "dropout", "weight_decay"):
        low, high = space[name]
        values = [point[name] for point in points]
        assert min(values) >= low and max(values) <= high
        assert max(values) > 0.85 * high and min(values) <= 1.1 * low
    assert {point["optimizer"] for point in points} == set(space["optimizer"])


def test_what_the_user_set_is_not_searched() -> None:
    tried = list(flat(searched(12, by_scale(1), {"train.optimizer", "model.dropout", "train.matrix_rate"})))
    assert len(tried) == 12 and all(settings | {"weight_decay": 0.0} == FIRST for settings in tried)


def test_depth_is_varied_among_those_that_reach_the_size() -> None:
    own = FIRST | {"depth": 4}
    tried = list(flat(searched(30, by_scale(1), first=own, depths=(2, 4, 8))))
    assert {settings["depth"] for settings in tried} == {2, 4, 8}
    assert all(settings["depth"] == 4 for settings in flat(searched(30, by_scale(1), {"model.depth"}, first=own)))


# beyond the edge


def test_the_range_extends_while_the_best_is_at_its_edge() -> None:
    rounds = searched(12, by_scale(40), RATES)
    last = [asked[0]["scale"] for asked in rounds[2:]]
    highest = max(settings["scale"] for settings in flat(rounds[:2]))
    assert last[0] == pytest.approx(2.5 * highest, rel=0.05) and last[1] == pytest.approx(2.5 * last[0], rel=0.05)
    low = [asked[0]["scale"] for asked in searched(12, lambda s: s["scale"], RATES)[2:]]
    assert low == sorted(low, reverse=True) and low[-1] < 0.25 / 2.5**3
    assert searched(12, lambda s: -s["scale"], RATES, lower=True) == searched(
        12, lambda s: s["scale"], RATES, lower=False
    )


def test_an_optimum_beyond_the_first_range_is_found() -> None:
    tried = list(flat(searched(6, by_scale(8), RATES)))
    assert min(abs(settings["scale"] / 8 - 1) for settings in tried) < 0.5  # the range of the points ends at 4


def test_once_the_best_is_inside_the_points_go_on() -> None:
    rounds = searched(12, by_scale(1), RATES)
    more = searched(40, by_scale(1), RATES)[1]
    assert [asked[0] for asked in rounds[2:]] == more[7:11]


def test_edges_are_those_of_the_optimizer_of_the_best() -> None:
    tried: list[tuple[Settings, Score]] = [
        (FIRST, 1.0), (FIRST | {"scale": 0.5}, 2.0), (FIRST | {"scale": 3.0, "optimizer": "adamw"}, 3.0),
    ]  # fmt: skip
    assert search.edge(tried, set(), lower=True) == "high"
    assert search.edge(tried, set(), lower=False) == "both"
    assert search.edge(tried, {"train.rate"}, lower=True) is None
    assert search.edge(tried[:2], set(), lower=False) == "low"
    assert search.edge([*tried, (FIRST | {"scale": 2.5}, None)], set(), lower=True) is None  # it diverged: it was tried
    assert search.edge([(FIRST, None)], set(), lower=True) is None


def test_a_pruned_trial_is_never_the_best() -> None:
    def judge(settings: Settings) -> Score:
        return None if settings["scale"] != 1.0 else 1.0

    assert [asked[0] for asked in searched(12, judge, RATES)[2:]] == searched(40, judge, RATES)[1][7:11]
    trials = [
        {"settings": FIRST, "state": "done", "score": 2.0, "last": None},
        {"settings": FIRST | {"scale": 2.0}, "state": "pruned", "score": None, "last": 1.0},
    ]
    found = summary(trials, set(), higher=False, confidence=0.95)
    assert found["finished"] == 1 and found["expected"][-1]["mean"] == 2.0 and found["at_edge"] == "low"


def test_a_trial_is_given_up_when_it_is_behind_half_of_the_best() -> None:
    best = [(n / 10, 3.0 - n / 10) for n in range(1, 11)]
    assert search.hopeful(0.2, 9.0, best, lower=True)  # too early to say
    assert search.hopeful(0.8, 2.6, best, lower=True)
    assert not search.hopeful(0.8, 2.7, best, lower=True)
    assert search.hopeful(0.8, 9.0, [], lower=True)


# the expected best


def test_the_expected_best_is_the_mean_best_of_all_choices_of_trials() -> None:
    found = expected_best([3.0, 1.0, 2.0], higher=False, confidence=0.95)
    assert [point["trials"] for point in found] == [1, 2, 3]
    assert [point["mean"] for point in found] == pytest.approx([2.0, (1 + 1 + 2) / 3, 1.0])
    up = expected_best([3.0, 1.0, 2.0], higher=True, confidence=0.95)
    assert [point["mean"] for point in up] == pytest.approx([2.0, (3 + 3 + 2) / 3, 3.0])
    for point in found + up:
        assert point["low"] + 1e-9 >= 1.0 and point["high"] <= 3.0 + 1e-9
        assert point["low"] - 1e-9 <= point["mean"] <= point["high"] + 1e-9
    assert found == expected_best([3.0, 1.0, 2.0], higher=False, confidence=0.95)


def test_a_single_trial_has_no_interval_and_none_no_curve() -> None:
    assert expected_best([2.0], False, 0.95) == [{"trials": 1, "mean": 2.0, "low": None, "high": None}]
    assert expected_best([], False, 0.95) == []


def test_a_failed_trial_counts_as_the_worst() -> None:
    trials = [
        {"settings": FIRST | {"scale": scale}, "state": state, "score": score, "last": last}
        for scale, state, score, last in (
            (1.0, "done", 0.8, None), (2.0, "failed", None, None), (0.5, "pruned", None, 0.2), (4.0, "done", 0.6, None),
        )
    ]  # fmt: skip
    found = summary(trials, set(), higher=True, confidence=0.95)
    assert found["expected"][0]["mean"] == pytest.approx((0.8 + 0.2 + 0.2 + 0.6) / 4)
    assert found["finished"] == 2 and found["at_edge"] is None
    nothing = summary([trials[1]], set(), higher=True, confidence=0.95)
    assert nothing == {"finished": 0, "expected": [], "at_edge": None}


# what the report says


def with_scores(**scores: list[float]) -> dict[str, Any]:
    """A result of models whose trials, at growing multipliers, got these scores; lower is better."""
    entries = []
    for name, each in scores.items():
        trials = [
            {"trial": n + 1, "settings": FIRST | {"scale": 1.0 + n}, "state": "done", "score": score, "last": None}
            for n, score in enumerate(each)
        ]
        told = summary(trials, set(), higher=False, confidence=0.95)
        entries.append({"name": name, "state": "done", "search": trials, "tuning": told})
    return {"protocol": {"trials": 4, "trial_share": 0.5, "confidence": 0.95}, "entries": entries}


def test_the_report_says_when_more_tuning_may_change_the_order() -> None:
    result = with_scores(a=[1.0] * 4, b=[1.05, 1.4, 1.3, 1.2], c=[1.5] * 4)
    (told,) = tuning.outlook(result, speaker("en"))
    assert told.startswith("More tuning may change the order. b is 0.05 behind a on the validation set")
    assert "expected to gain it about 0.0917," in told  # the best of two of b's trials is 1.1417 on average
    assert "c is" not in told
    (chinese,) = tuning.outlook(result, speaker("zh"))
    assert "更多调参可能改变名次" in chinese and "落后 a 0.05" in chinese and "0.0917" in chinese


def test_and_when_it_is_not_expected_to() -> None:
    result = with_scores(a=[1.0] * 4, c=[1.6] * 4, b=[1.1, 1.4, 1.3, 1.2])
    (told,) = tuning.outlook(result, speaker("en"))
    assert "not expected to change which model comes first" in told
    assert "b is 0.1 behind a" in told and "gain it about 0.0667," in told and "c is" not in told


def test_with_few_trials_it_says_that_this_cannot_be_told() -> None:
    (told,) = tuning.outlook(with_scores(a=[1.0] * 4, b=[1.5, 1.6, 1.7]), speaker("en"))
    assert "cannot be told: fewer than 4 trials finished (b)" in told
    assert tuning.outlook(with_scores(a=[1.0] * 4), speaker("en")) == []


def test_an_edge_that_is_left_is_flagged() -> None:
    result = with_scores(a=[1.0, 0.9, 0.8], b=[1.0, 1.1, 1.2], c=[1.0, 0.9, 1.2], d=[1.0])
    told = tuning.edges(result, speaker("en"))
    assert len(told) == 3
    assert "best trial of a has the highest learning-rate multiplier that was tried with muon (3)" in told[0]
    assert "best trial of b has the lowest" in told[1] and "of d has the only" in told[2]
    page = markdown(result, "en")
    assert all(sentence in page for sentence in ("highest tried with", "lowest tried with", "only one tried with"))
    assert "已试的最高值" in markdown(result, "zh")


def test_the_report_claims_only_what_was_tried() -> None:
    result = example()
    for entry in (entry for entry in result["entries"] if entry["search"]):
        entry["search"] = entry["search"][:2]
        entry["search"][1]["settings"] |= {"optimizer": "muon", "dropout": 0.0}
    page = markdown(result, "en")
    assert "proposed: 0.25 to 4; tried: 0.41 to 1" in page
    assert "proposed: muon, adamw; tried: muon" in page and "| proposed: 0 to 0.3; tried: 0 |" in page
    result["protocol"] |= {"space": {}, "trials": 0}
    assert "proposed" not in markdown(result, "en")


def test_pruned_trials_are_hollow_at_their_last_score() -> None:
    chart = tuning.chart(example(), speaker("en"))
    assert chart is not None and len(chart.panels) == 2
    lstm = chart.panels[0].series[0]
    assert lstm.open == [False] * 5 + [True] and len(lstm.y) == 6
    assert "when stopped" in markdown(example(), "en")


def test_expected_best_curves_are_drawn_with_their_intervals() -> None:
    chart = tuning.chart(example(), speaker("en"))
    assert chart is not None
    drawn = [line.draw for line in chart.panels[1].series]
    assert drawn.count("thin") == 8 and drawn.count("both") == 4
    page = markdown(example(), "en")
    assert "| Trials | lstm (95 % interval) | gru (95 % interval) |" in page
    point = example()["entries"][0]["tuning"]["expected"][1]
    assert f"| 2 | {point['mean']:.3f} ({point['low']:.3f}–{point['high']:.3f}) |" in page


def test_an_older_result_is_shown_without_what_it_does_not_have() -> None:
    result = example()
    result["protocol"]["space"] = {"scale of the learning rates": [0.25, 4.0], "optimizer": ["muon", "adamw"]}
    for entry in (entry for entry in result["entries"] if entry["search"]):
        del entry["tuning"]
        for trial in entry["search"]:
            del trial["last"], trial["settings"]["weight_decay"]
    page = markdown(result, "en")
    assert "quasi-random" not in page and "Expected best" not in page and "More tuning" not in page
    assert "| Search: learning-rate multiplier | proposed: 0.25 to 4; tried: 0.41 to 3.9 |" in page
    assert html(result)


# a real comparison

SMALL = ["task.length=16", "task.stretch=64", "train.batch=4", "task.validation=300", "train.warmup=5"]


@pytest.mark.long
@pytest.mark.usefixtures("short_probes", "jobs_here")
def test_an_entry_under_another_name_gives_the_same_result_bit_for_bit(tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text(text(6000))
    found = compare(
        data=str(tmp_path / "book.txt"), models="a=rnn,other=rnn", params="8k", budget="tokens=2k", trials=4, seeds=2,
        tune_depth=True, overrides=SMALL, quiet=True, out=tmp_path / "out",
    )  # fmt: skip
    a, other = (entry for entry in found.result["entries"] if entry["search"])
    for key in ("search", "tuning", "tuned", "config", "score"):
        assert a[key] == other[key], key
    assert [run["pieces"] for run in a["runs"]] == [run["pieces"] for run in other["runs"]]
    assert len(a["search"]) == 4 and a["tuning"]["expected"][-1]["trials"] == 4
    assert {trial["settings"]["depth"] for trial in a["search"]} == {1, 2}
    for trial in a["search"]:
        place = tmp_path / "out" / "runs" / "a" / f"trial-{trial['trial']:02d}"
        record = json.loads((place / "run.json").read_bytes())
        assert record["config"]["model"]["depth"] == trial["settings"]["depth"]
        assert record["config"]["train"]["weight_decay"] == trial["settings"]["weight_decay"]
    assert a["parameters"] == pytest.approx(8000, rel=0.02) and a["config"]["depth"] == a["tuned"]["model.depth"]


def test_depth_is_part_of_the_plan_and_an_older_plan_had_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "book.txt").write_text(text(600))
    plans: list[Plan] = []

    def planned(plan: Plan, *_: Any, **__: Any) -> Comparison:
        plans.append(plan)
        return Comparison(tmp_path, {"best": "none"})

    monkeypatch.setattr(comparing, "conduct", planned)
    words = ["compare", "--task", "language_model", "--data", str(tmp_path / "book.txt"), "--json"]
    assert [call(monkeypatch, capsys, *words, *more)[0] for more in ([], ["--tune-depth"])] == [0, 0]
    assert [plan.tune_depth for plan in plans] == [False, True]
    older = {"plan": {key: value for key, value in record.plain(plans[0]).items() if key != "tune_depth"}}
    assert record.agreed(plans[0], older, tmp_path) == (plans[0], [])
    with pytest.raises(UserError, match=r"another comparison \(tune_depth=True \(was False\)\)"):
        record.agreed(plans[1], older, tmp_path)
