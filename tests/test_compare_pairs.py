"""`compare` on pairs of texts: the same protocol, what is written scored too, and baselines that learn nothing."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from compare_example import example, titles
from test_compare_report import Page
from toys import translation

import seqloom
from seqloom.compare.advice.recommend import recommend
from seqloom.compare.comparison import Comparison
from seqloom.compare.field import Field
from seqloom.compare.plan import Plan
from seqloom.compare.report.content import document
from seqloom.compare.report.table import lines
from seqloom.core.progress import Silent
from seqloom.core.task import Order
from seqloom.lab.cost import measure_costs, throughput
from seqloom.lab.entries import Budget
from seqloom.runs.build import blueprint, count_parameters
from seqloom.runs.fit import fit
from seqloom.runs.folder import RunFolder
from seqloom.runs.material import Material
from seqloom.runs.registry import task_config
from seqloom.runs.settings import RunConfig
from seqloom.tasks.translation.forgetting import forgetting
from seqloom.tasks.translation.nearest import nearest, searched

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("short_probes")]

SMALL = ["tokenizer.kind=words", "task.batch_tokens=100", "train.warmup=5", "task.beams=1", "task.longest=20"]
ASKED: dict[str, Any] = {
    "task": "translation",
    "models": "seq2seq,gpt:heads=2:depth=1",
    "params": "12k",
    "budget": "tokens=2k",
    "trials": 1,
    "seeds": 2,
    "jobs": 2,
    "overrides": SMALL,
    "quiet": True,
}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Letters and the same letters backwards."""
    rng, rows = random.Random(0), set()
    while len(rows) < 300:
        rows.add(tuple(rng.choices("abcdefgh", k=rng.randint(2, 7))))
    path = tmp_path_factory.mktemp("data") / "pairs.tsv"
    lines = (f"{' '.join(row)}\t{' '.join(reversed(row))}\n" for row in sorted(rows))
    path.write_text("source\ttarget\n" + "".join(lines))
    return path


@pytest.fixture(scope="module")
def done(pairs: Path, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    return seqloom.compare(data=str(pairs), out=tmp_path_factory.mktemp("out") / "compare", **ASKED)


@pytest.fixture(scope="module")
def field(pairs: Path, tmp_path_factory: pytest.TempPathFactory) -> Field:
    plan = Plan(
        task="translation", data={"train": str(pairs)},
        models=("seq2seq", "transformer:heads=2", "lstm", "gpt:heads=2"),
        params=40_000, count="all", budget=Budget.parse("tokens=4k"), trials=0, trial_share=1.0, seeds=1, seed=0,
        overrides=tuple(SMALL), threads=1,
    )  # fmt: skip
    return Field(plan, RunFolder(tmp_path_factory.mktemp("field")), Silent())


def test_without_a_target_the_common_size_is_what_fit_would_choose_for_the_data(field: Field, tmp_path: Path) -> None:
    plan = field.plan.model_copy(update={"params": None, "models": ("transformer", "transformer:heads=2")})
    sized = Field(plan, RunFolder(tmp_path / "out"), Silent()).entries[0]
    width = 128  # chosen for pairs; the listed default is 256
    chosen = sized.config.model_copy(update={"model": sized.config.model | {"width": width, "feed": 2 * width}})
    assert sized.parameters[0] == pytest.approx(count_parameters(blueprint(chosen, field.task)), rel=0.02)


def rows(config: RunConfig, field: Field, part: str) -> Any:
    material = Material(config)
    return material.shape.prepare(material.parts[part], field.task.tokenizers)  # type: ignore[attr-defined]


def trained(done: Comparison) -> list[dict[str, Any]]:
    return [entry for entry in done.result["entries"] if not entry.get("fixed")]


def test_size_budget_and_seeds_are_equal_and_scores_are_those_of_the_runs(done: Comparison) -> None:
    assert [entry["state"] for entry in done.result["entries"]] == ["done"] * 3
    for entry in trained(done):
        assert entry["parameters"] == pytest.approx(12_000, rel=0.02)
        assert all(2000 <= run["tokens"] < 2100 for run in entry["runs"])
        assert len(entry["search"]) == 1 and [run["seed"] for run in entry["runs"]] == [1, 2]
        for run in entry["runs"]:
            summary = json.loads((done.folder / run["folder"] / "summary.json").read_bytes())["scores"]
            assert run["scores"] == {name: summary["test"][name] for name in ("bleu", "chrf", "exact")}
            assert np.mean(run["pieces"]) == pytest.approx(run["score"])
            assert "bleu" not in summary["valid"]  # nobody asks for it, and searching takes time
        assert entry["scores"]["bleu"]["mean"] == pytest.approx(np.mean([r["scores"]["bleu"] for r in entry["runs"]]))


def test_copying_and_the_frequent_are_always_there_and_the_nearest_which_has_a_loss_is_ranked(done: Comparison) -> None:
    assert sorted(row["name"] for row in done.result["baselines"]) == ["copy", "frequent"]
    assert all(row["scores"]["chrf"] > 0 and row["score"] is None for row in done.result["baselines"])
    (nearest,) = [entry for entry in done.result["entries"] if entry.get("fixed")]
    assert nearest["name"] == nearest["model"] == "nearest" and nearest["score"]["mean"] > 0
    assert nearest["scores"]["bleu"]["mean"] > 0 and "--model nearest" in nearest["command"]


def test_the_nearest_pair_is_a_full_member_and_a_bar_for_the_texts_of_the_others(done: Comparison) -> None:
    """After so few tokens no trained model writes better, whatever its loss."""
    result, found = done.result, done.result["recommendation"]
    nearest = next(entry for entry in result["entries"] if entry["name"] == "nearest")
    assert nearest["parameters"] == 0 and nearest["stored"] > 1000
    model = done.folder / nearest["runs"][0]["folder"] / "model" / "model.safetensors"
    assert nearest["bytes"] == model.stat().st_size
    assert nearest["cost"]["latency"] and nearest["cost"]["state"] and len(nearest["showcase"]["rows"]) == 5
    for holder in (*(run for entry in result["entries"] for run in entry["runs"]), *result["baselines"]):
        assert len(holder["score_pieces"]["bleu"]) == 10
    assert all(entry["scores"]["bleu"]["mean"] < nearest["scores"]["bleu"]["mean"] for entry in trained(done))
    assert (
        found["choice"] == found["use"] == "nearest"
        and "No other model beats the baseline nearest" in (found["reasons"]["en"][0])
    )


def test_when_a_baseline_writes_better_than_all_models_the_recommendation_says_so(done: Comparison) -> None:
    rows = [{"name": "copy", "score": None, "scores": {"bleu": 99.0, "chrf": 99.0, "exact": 0.9}}]
    result = done.result | {"baselines": rows}
    found = recommend(result)
    assert found["choice"] == found["use"] == "nearest", "it writes best of the models, and needs no training"
    assert "No model beats the baseline copy" in found["reasons"]["en"][0]
    assert "BLEU 99" in found["reasons"]["en"][0] and "BLEU 99" in found["reasons"]["zh"][0]
    untrained = recommend(result | {"entries": trained(done)})
    assert untrained["choice"] is None and untrained["use"] in [entry["name"] for entry in trained(done)]
    known = recommend(result | {"baselines": [rows[0] | {"model": "copy"}]})
    assert known["choice"] == known["use"] == "copy"


def test_forgetting_and_costs_are_measured_and_a_source_is_shown_with_its_reference(done: Comparison) -> None:
    for entry in trained(done):
        forgotten = entry["aspects"]["forgetting"]
        assert forgotten.keys() == {"by_step", "by_place", "by_length"}
        assert all(0 <= point["accuracy"] <= 1 for points in forgotten.values() for point in points)
        assert entry["aspects"]["positions"] is None
        assert entry["cost"]["latency"][0]["context"] == 8 and entry["aspects"]["throughput"]
        rows = entry["showcase"]["rows"]
        assert entry["sample"] is None and len(rows) == 5
        assert all(row["reference"].split() == row["source"].split()[::-1] for row in rows)
    recall = {entry["model"]: entry["aspects"]["recall"] for entry in trained(done)}
    assert recall["gpt"] and recall["seq2seq"] is None  # it has no text of its own to recall from


def test_the_report_opens_and_draws_what_is_forgotten(done: Comparison) -> None:
    page = Page((done.folder / "report.html").read_text(encoding="utf-8"))
    panels = json.loads(page.scripts[0])["panels"]
    assert {f"{language}-forgetting-{n}" for language in ("en", "zh") for n in range(3)} <= panels.keys()
    text = (done.folder / "report.md").read_text(encoding="utf-8")
    for said in ("BLEU", "Exact match", "nearest", "Latency per source", "Reference: "):
        assert said in text
    assert "Bits per byte" not in text and "Loss by position" not in text


def test_the_terminal_shows_what_is_read_beside_the_score(done: Comparison) -> None:
    head, *shown = lines(done.result, 120)
    assert head.split()[:5] == ["model", "loss", "bleu", "chrf", "exact"]
    assert any("nearest" in line.split()[:2] for line in shown) and any(line.split()[0] == "copy" for line in shown)


def test_everyone_reads_the_same_batches(field: Field) -> None:
    seen = set()
    for sized in field.entries:
        order = Order(sized.config.train.batch, seed=3)
        train = rows(sized.config, field, "train")
        task = task_config(sized.config).build(field.task.tokenizers)  # type: ignore[attr-defined]
        batches = task.batches(train, order, carry=sized.blueprint.limit is None)
        found = [next(batches)[0] for _ in range(5)]
        seen.add(str([(batch.inputs.tolist(), batch.context.tolist()) for batch in found]))  # type: ignore[union-attr]
    assert len(seen) == 1


def test_a_model_with_a_context_is_made_for_source_and_target(field: Field) -> None:
    gpt = field.entries[-1]
    assert gpt.model.context == 40  # type: ignore[attr-defined]
    field.task.check_rows(gpt.blueprint, {part: rows(gpt.config, field, part) for part in ("train", "valid", "test")})


def test_work_is_counted_per_target_token_also_for_those_that_read_the_source_as_a_beginning(field: Field) -> None:
    lstm = field.entries[2]
    head = 2 * sum(p.numel() for p in lstm.blueprint.head.parameters() if p.dim() == 2)  # type: ignore[operator, union-attr]
    assert lstm.flops_per_token == 2 * lstm.blueprint.flops(2 * lstm.reading.length) - head
    assert 4 < lstm.reading.length < 8  # what rows have, not what they may have


def test_time_is_that_of_a_whole_output_and_a_model_that_ends_is_not_asked_for_more(field: Field) -> None:
    torch.manual_seed(0)
    short = field.entries[3].model.model_copy(update={"positions": "learned", "context": 40})
    models = {s.entry.name: s.model.assemble(field.task) for s in field.entries[:3]} | {
        "short": short.assemble(field.task)
    }
    found = measure_costs(models, dict.fromkeys(models, field.task), (8, 32), seconds=1e9)
    speeds = throughput(models, dict.fromkeys(models, field.task), (8, 32), tokens=64, seconds=0.0)
    for name in models:
        expected = [8] if name == "short" else [8, 32]  # source and target together
        assert [point["context"] for point in found[name]["latency"]] == expected
        assert [point["length"] for point in speeds[name]] == expected
    state = {name: [point["bytes"] for point in costs["state"]] for name, costs in found.items()}
    assert state["lstm"][0] == state["lstm"][1] and state["seq2seq"][0] < state["seq2seq"][1]


def test_a_single_run_has_the_baselines_too(pairs: Path, tmp_path: Path) -> None:
    overrides = [*SMALL, "train.steps=2", "model.width=8", "data.test_fraction=0.1"]
    run = fit(
        task="translation", data=str(pairs), model="seq2seq", out=tmp_path / "run", overrides=overrides, quiet=True
    )
    for part in ("valid", "test"):
        assert run.summary["scores"][part]["baselines"].keys() == {"copy", "frequent", "nearest"}


def test_the_nearest_text_shares_the_rarest_trigrams_and_of_equals_the_first_is_taken() -> None:
    known = ["the red house", "the blue house", "a green tree", "the blue house"]
    assert nearest(["blue houses", "green trees", "the red house", "xyz"], known) == [1, 2, 0, 0]


def test_the_nearest_is_the_same_in_one_block_and_in_many(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(1)
    known = ["".join(rng.choices("abcd", k=6)) for _ in range(60)]
    asked = ["".join(rng.choices("abcd", k=6)) for _ in range(20)]
    whole = nearest(asked, known)
    monkeypatch.setattr("seqloom.tasks.translation.nearest._BLOCK", 7)
    assert nearest(asked, known) == whole


def test_many_questions_search_fewer_texts() -> None:
    assert searched(1000, 50) == 50
    assert searched(1000, 10**7) == 200_000
    assert searched(100_000, 10**7) == 10_000


def test_accuracy_by_place_is_relative_to_the_length_of_the_target() -> None:
    found = forgetting(["x y", "x y z w"], ["a b", "a b c d"], ["a c", "a b x x"])["by_place"]
    assert [(point["from"], point["accuracy"]) for point in found] == [(0, 1.0), (20, 1.0), (50, 0.0), (70, 0.0)]


def of_texts(bleu: dict[str, float], exact: dict[str, float]) -> dict[str, Any]:
    """The example as a comparison of texts; `nearest` has a BLEU of 20 and 0.2 exact."""
    result = example()
    result["protocol"] |= {"shown": ["bleu", "exact"], "latency_unit": "source", "titles": titles(translation())}
    for entry in result["entries"]:
        means = {"bleu": bleu.get(entry["name"], 10.0), "exact": exact.get(entry["name"], 0.1)}
        entry["scores"] = {k: {"mean": v, "low": v * 0.9, "high": v * 1.1, "seeds": 3} for k, v in means.items()}
    result["baselines"] = [{"name": "nearest", "score": None, "scores": {"bleu": 20.0, "exact": 0.2}}]
    return result


def test_the_best_by_loss_that_writes_worse_than_a_baseline_is_not_praised() -> None:
    result = of_texts({"gpt": 30.0}, {})
    result["entries"] = [entry for entry in result["entries"] if entry["name"] in ("lstm", "gpt")]
    said = " ".join(recommend(result)["reasons"]["en"])
    assert "does not beat the best baseline, nearest training pair (BLEU 20.00)" in said
    assert "On exact match, every candidate is worse than the baseline nearest training pair" in said


def test_who_waits_for_a_whole_output_is_told_so_in_both_languages() -> None:
    result = of_texts({"lstm": 30.0}, {"lstm": 0.5})
    found = recommend(result, prefer="latency", max_latency_ms=0.001)
    assert any("ms for a source of" in said for said in found["reasons"]["en"])
    for language in ("en", "zh"):
        assert document(result | {"recommendation": found}, language).sections
    assert "per token" not in " ".join(recommend(result)["reasons"]["en"])
