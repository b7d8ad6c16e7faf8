"""What the report says of figures that were measured: reach with its control, and costs that did not settle."""

from __future__ import annotations

import time
from typing import Any

import pytest
from compare_example import example

from seqloom.compare.report import facts, report_files
from seqloom.compare.report.table import lines, notes
from seqloom.lab.watch import Watch


def pages(result: dict[str, Any]) -> tuple[str, str]:
    files = report_files(result)
    return files["report.md"].decode(), files["report.zh-CN.md"].decode()


def probed(control: float, *recalled: tuple[int, float, float, float]) -> dict[str, Any]:
    """The example, with another probe of its first model."""
    result = example()
    result["entries"][0]["aspects"] |= {
        "recall": [{"distance": d, "accuracy": a, "low": low, "high": high} for d, a, low, high in recalled],
        "control": {"distance": 1, "accuracy": control, "low": control, "high": control},
        "chance": 0.0625,
        "probe": {"steps": 240, "seeds": [0, 1, 2]},
    }
    return result


def test_a_probe_whose_control_fails_says_that_it_was_not_learned_and_nothing_of_reach() -> None:
    result = probed(0.2, (2, 0.1, 0.0, 0.2), (4, 0.1, 0.0, 0.2))
    assert facts.unlearned(result["entries"][0]) == 240
    english, chinese = pages(result)
    assert "not learned in the 240 steps given" in english and "none of the tested distances" not in english
    assert "在给定的 240 步内未学会" in chinese


def test_a_probe_that_learned_its_control_may_reach_nothing() -> None:
    result = probed(0.9, (2, 0.1, 0.0, 0.2), (4, 0.1, 0.0, 0.2))
    assert facts.unlearned(result["entries"][0]) is None
    assert "none of the tested distances" in pages(result)[0]


def test_reach_is_told_with_the_range_over_seeds() -> None:
    result = probed(1.0, (2, 1.0, 1.0, 1.0), (4, 0.75, 0.6, 0.9), (8, 0.1, 0.0, 0.2))
    english, chinese = pages(result)
    assert "4 tokens" in english and "recall there 60 % to 90 % over seeds" in english
    assert "60 % 至 90 %" in chinese


def test_a_result_of_an_older_version_without_a_control_is_told_as_before() -> None:
    entry = example()["entries"][0]
    assert facts.unlearned(entry) is None and facts.recalled_at(entry, 2) is None
    assert "recall there" not in pages(example())[0]


def test_a_cost_that_did_not_settle_is_marked_wherever_it_is_shown() -> None:
    result = example()
    context = facts.common_context(result)
    assert "≈" not in "".join([*pages(result), *lines(result, 200)])
    point = next(p for p in result["entries"][0]["cost"]["latency"] if p["context"] == context)
    point["stable"] = False
    shown = facts.latency(result["entries"][0], context)
    assert shown.startswith("≈ ")
    assert shown in "".join(lines(result, 200)) and "did not settle" in "".join(notes(result, 1000))
    assert all(shown in page for page in pages(result))


@pytest.mark.parametrize("language", [0, 1])
def test_a_training_speed_that_did_not_settle_is_marked(language: int) -> None:
    result = example()
    result["entries"][0]["aspects"]["throughput"][0]["stable"] = False
    assert "≈ " in pages(result)[language]


def test_time_outside_of_training_runs_is_told_by_what_it_was_spent_on() -> None:
    english, chinese = pages(example())
    assert "Worker time outside of training runs" in english and "工作进程在训练之外的用时" in chinese
    spent = "recall probes 52 s, measuring costs 31 s, starting 8 s, waiting 37 s"
    assert f"3.95 % of the time spent in training runs; {spent}" in english
    assert "相当于训练用时的 3.95 %；回忆测试 52 s，测量开销 31 s，启动 8 s，等待 37 s" in chinese
    older = example()
    del older["timing"]["outside"]
    assert "3.95 % of the time spent in training runs |" in pages(older)[0]


def test_the_time_of_workers_is_training_or_something_that_has_a_name() -> None:
    watch, now = Watch(), time.perf_counter()
    watch.plan(["lstm"], 3, 2.0, jobs=2)
    for kind, seconds, wall in (("fit", 50.0, 49.0), ("fit", 40.0, 40.0), ("probe", 5.0, 5.0), ("measure", 3.0, 3.0)):
        job = {"folder": kind, "entry": "lstm", "title": kind, "kind": kind, "size": 1.0}
        watch.running[kind] = job, now - seconds
        watch.end(job, {"state": "done", "wall": wall}, kept=False)
    found = watch.timing(wall=50.0)
    assert found["training"] == 89 and found["overhead"] == pytest.approx(100 / 89 - 1)
    rounded = {name: round(seconds, 1) for name, seconds in found["outside"].items()}
    assert rounded == {"probes": 5.0, "measuring": 3.0, "starting": 1.0, "idle": 2.0}
    assert found["training"] + sum(found["outside"].values()) == pytest.approx(found["jobs"] * found["wall"])
    watch.end(job, {"state": "done", "wall": 1.0}, kept=True)
    assert watch.timing(50.0)["overhead"] is None, "what was kept took no time now"
