"""`compare` from a text file to a report: is it fair, does it go on, what does it refuse?"""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from support import text
from toys import language_models

import seqloom
from seqloom.compare.comparing import compare
from seqloom.compare.comparison import Comparison
from seqloom.compare.field import Field
from seqloom.compare.plan import Plan
from seqloom.compare.report import table
from seqloom.core.errors import UserError
from seqloom.core.progress import Silent
from seqloom.core.task import Order
from seqloom.data.stream import prepare
from seqloom.lab.entries import Entry, parse_entries
from seqloom.lab.rules import Budget, parse_amount
from seqloom.lab.spending import level_at
from seqloom.pages.formats import short
from seqloom.runs.build import blueprint, count_parameters
from seqloom.runs.folder import RunFolder
from seqloom.runs.material import Material
from seqloom.runs.registry import task_config
from seqloom.tokenizers import Tokenizer

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("short_probes")]

SMALL = ["task.length=16", "task.stretch=64", "train.batch=4", "task.validation=300", "train.warmup=5"]
ASKED: dict[str, Any] = {
    "models": "rnn,gpt:heads=2,broken=rnn:train.rate=1e38:train.optimizer=sgd:train.clip=0",
    "params": "12k",
    "budget": "tokens=2k",
    "trials": 3,
    "seeds": 2,
    "overrides": SMALL,
    "quiet": True,
}


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "book.txt"
    path.write_text(text(6000))
    return path


@pytest.fixture(scope="module")
def done(book: Path, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    return seqloom.compare(data=str(book), out=tmp_path_factory.mktemp("out") / "compare", **ASKED)


def entry(done: Comparison, name: str) -> dict[str, Any]:
    return next(e for e in done.result["entries"] if e["name"] == name)


def finished(done: Comparison) -> list[dict[str, Any]]:
    return [e for e in done.result["entries"] if e["state"] == "done"]


def trained(done: Comparison) -> list[dict[str, Any]]:
    return [e for e in finished(done) if not e.get("fixed")]


def plan(book: Path, **more: Any) -> Plan:
    usual: dict[str, Any] = {
        "task": "language_model",
        "data": {"train": str(book)},
        "models": ("rnn", "lstm", "gpt"),
        "params": 20_000,
        "count": "all",
        "budget": Budget.parse("tokens=4k"),
        "trials": 0,
        "trial_share": 1.0,
        "seeds": 1,
        "seed": 0,
        "overrides": tuple(SMALL),
        "threads": 1,
    }
    return Plan(**(usual | more))


def test_all_have_the_same_size_budget_trials_and_seeds(done: Comparison) -> None:
    for e in trained(done):
        assert e["parameters"] == pytest.approx(12_000, rel=0.02)
        assert 0 < e["backbone_parameters"] < e["parameters"] and e["flops_per_token"] > 0
        assert len(e["search"]) == 3
        assert [run["seed"] for run in e["runs"]] == [1, 2]
        assert {run["tokens"] for run in e["runs"]} == {2048}  # whole steps of 64 tokens


def test_a_search_never_sees_the_test_part(done: Comparison) -> None:
    for trial in done.folder.glob("runs/*/trial-*/summary.json"):
        assert json.loads(trial.read_bytes())["scores"].keys() == {"valid"}


def test_what_diverges_is_shown_as_such_and_the_rest_goes_on(done: Comparison) -> None:
    broken = entry(done, "broken")
    assert broken["state"] == "failed" and "not finite" in broken["error"]
    assert {e["name"] for e in finished(done)} == {"rnn", "gpt heads=2", "ngram"}
    assert done.result["best"] in {"rnn", "gpt heads=2", "ngram"}


def test_naive_baselines_are_always_there_and_one_that_is_a_model_is_ranked_with_its_costs_and_its_command(
    done: Comparison,
) -> None:
    assert [b["name"] for b in done.result["baselines"]] == ["uniform", "unigram"]
    ngram = entry(done, "ngram")
    assert ngram["fixed"] and ngram["search"] == [] and len(ngram["runs"]) == 1
    assert ngram["score"]["low"] < ngram["score"]["mean"] < ngram["score"]["high"]
    assert ngram["cost"]["latency"] and ngram["cost"]["seconds"] > 0 and ngram["cost"]["tokens_per_second"] > 0
    assert "--model ngram" in ngram["command"] and (done.folder / ngram["runs"][0]["folder"]).is_dir()
    ranks = {row["model"]: row[""] for row in table.rows(done.result)}
    assert sorted(ranks[e["name"]] for e in finished(done)) == ["1", "2", "3"] and ranks["uniform"] == ""


def test_what_read_everything_wins_beside_models_that_were_hardly_trained_and_this_is_said(done: Comparison) -> None:
    found = done.result["recommendation"]
    assert done.result["best"] == found["choice"] == found["use"] == "ngram"
    epochs = 2048 / done.result["protocol"]["epoch_tokens"]
    assert any(f"read 2,048 tokens, {short(epochs, 2)} epochs of the" in said for said in found["reasons"]["en"])
    assert any("did not read the training set once" in said for said in found["would_change"]["en"])


def test_every_verdict_agrees_with_its_interval_and_the_best_has_the_best_mean(done: Comparison) -> None:
    margin = 0.01 * min(e["score"]["mean"] for e in finished(done))
    for e in finished(done):
        against, verdict = e["against_best"], e["against_best"]["verdict"]
        assert against["low"] <= against["difference"] <= against["high"] and 0 <= against["p"] <= 1
        assert verdict == "best" or (verdict == "equivalent") == (against["high"] < margin)
        assert verdict == "best" or (verdict == "worse") == (against["low"] > 0 and against["high"] >= margin)
        assert e["tuning_variance"] >= 0
    best = min(finished(done), key=lambda e: e["score"]["mean"])
    assert best["name"] == done.result["best"] and best["against_best"]["verdict"] == "best"


def test_the_plan_is_fixed_before_the_first_run_and_seeds_that_are_added_are_another_look(done: Comparison) -> None:
    protocol, recorded = done.result["protocol"], json.loads((done.folder / "plan.json").read_bytes())
    assert protocol["level"] == level_at(1) and protocol["margin"] == "1%"
    assert protocol["plan"] == {"sha256": recorded["sha256"], "look": 1, "amendments": 0}
    assert recorded["fixed"]["judged"]["equivalence margin"] == "1%" and len(recorded["looks"]) == 1


def test_scores_cost_and_aspects_are_all_measured(done: Comparison) -> None:
    for e in trained(done):
        assert e["score"]["low"] < e["score"]["mean"] < e["score"]["high"]
        assert len(e["runs"][0]["pieces"]) == 100 and e["runs"][0]["curve"]
        assert e["cost"]["latency"] and e["cost"]["state"] and e["cost"]["tokens_per_second"] > 0
        assert e["aspects"]["positions"] and e["aspects"]["recall"] and e["aspects"]["throughput"]
        assert e["aspects"]["taps"]["count"] > 0
        assert e["sample"]["text"]


def test_the_state_of_a_recurrence_stays_and_that_of_attention_grows(done: Comparison) -> None:
    rnn, gpt = ([p["bytes"] for p in entry(done, name)["cost"]["state"]] for name in ("rnn", "gpt heads=2"))
    assert len(set(rnn)) == 1 and len(rnn) == 8
    assert gpt == sorted(set(gpt))


def test_reports_are_written(done: Comparison) -> None:
    for name in ("report.html", "report.md", "report.zh-CN.md", "result.json"):
        assert (done.folder / name).stat().st_size > 1000


def test_issued_again_it_keeps_everything(done: Comparison, book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqloom.lab.pool._Slot.run", lambda slot, job: pytest.fail("nothing is left to do"))
    again = compare(data=str(book), out=done.folder, **ASKED)
    assert without_timing(again.result) == without_timing(done.result)


def test_more_seeds_may_be_added(done: Comparison, book: Path) -> None:
    more = compare(data=str(book), out=done.folder, **(ASKED | {"seeds": 3}))
    assert more.result["protocol"]["plan"] | {"sha256": ""} == {"sha256": "", "look": 2, "amendments": 0}
    assert more.result["protocol"]["level"] == level_at(2) < done.result["protocol"]["level"]
    assert [run["seed"] for run in finished(more)[0]["runs"]] == [1, 2, 3]
    assert finished(more)[0]["runs"][:2] == finished(done)[0]["runs"]


def without_timing(result: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in result.items() if key not in ("timing", "recommendation")}
    kept["protocol"] = {key: value for key, value in result["protocol"].items() if key != "started"}
    return kept


def test_a_text_that_has_changed_is_refused(done: Comparison, book: Path) -> None:
    before = book.read_text()
    try:
        book.write_text(before + "one more line\n")
        with pytest.raises(UserError, match="data has changed since the comparison"):
            compare(data=str(book), out=done.folder, **(ASKED | {"seeds": 3}))
    finally:
        book.write_text(before)


def test_what_another_version_left_in_a_folder_is_done_anew(done: Comparison, book: Path) -> None:
    place = done.folder / "runs" / "rnn" / "seed-1"
    kept = json.loads((place / "result.json").read_bytes())
    record = RunFolder(place).record()
    record["config"]["train"]["rate"] = 0.5
    RunFolder(place).write_record(record)
    (place / "result.json").unlink()
    again = compare(data=str(book), out=done.folder, **(ASKED | {"seeds": 3}))
    score = entry(again, "rnn")["runs"][0]["score"]
    assert score == kept["result"]["summary"]["scores"]["test"]["loss"]


def test_a_script_may_call_it_without_ceremony(book: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import seqloom\n"
        "from seqloom.compare import comparing\n"
        "from seqloom.lab import jobs\n"
        "jobs.PROBE_STEPS, comparing._cores = 2, lambda: 1\n"
        f"found = seqloom.compare(data={str(book)!r}, models='rnn', params='5k', budget='tokens=1k', trials=0,\n"
        f"    seeds=1, overrides={SMALL!r}, quiet=True, out={str(tmp_path / 'out')!r})\n"
        "print('best:', found.result['best'])\n"
    )
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert run.stdout == "best: ngram\n" and not run.stderr, run.stderr


def test_every_command_in_the_report_repeats_its_run(done: Comparison, tmp_path: Path) -> None:
    import shlex

    from seqloom.runs.fit import fit

    e = finished(done)[0]
    words = [word for word in shlex.split(e["command"]) if word != "--no-choose"]
    flags = {word.lstrip("-"): value for word, value in zip(words[2::2], words[3::2], strict=True) if word != "-o"}
    options = [value for word, value in zip(words[2::2], words[3::2], strict=True) if word == "-o"]
    flags.pop("out")
    run = fit(None, out=tmp_path / "again", overrides=options, choose=False, quiet=True, **flags)
    assert run.summary["scores"]["test"]["loss"] == e["runs"][0]["score"]


def test_the_same_seed_gives_all_models_the_same_batches(book: Path, tmp_path: Path) -> None:
    field = Field(plan(book), RunFolder(tmp_path / "out"), Silent())
    config = field.entries[0].config
    tokenizer = Tokenizer.load(RunFolder(tmp_path / "out").published("tokenizer"))
    train = prepare(Material(config).parts["train"], tokenizer)
    seen = []
    for sized in field.entries:
        task = task_config(sized.config).build(tokenizer)
        carry = sized.blueprint.limit is None
        batches = islice(task.batches(train, Order(sized.config.train.batch, seed=5), carry), 40)
        seen.append([batch.inputs.tolist() for pieces in batches for batch in pieces])
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize(
    ("count", "target"), [("all", 5_000), ("backbone", 20_000), ("backbone", 123_456), ("all", 2_000_000)]
)
def test_sizes_match_within_two_per_cent(book: Path, tmp_path: Path, target: int, count: str) -> None:
    trained = [n for n in language_models() if n not in ("ngram", "pretrained")]  # whose size is given
    if count == "backbone":
        trained.remove("self_attention")  # it has no weights there
    field = Field(plan(book, models=tuple(trained), params=target, count=count), RunFolder(tmp_path / "out"), Silent())
    for sized in field.entries:
        assert sized.parameters[count == "backbone"] == pytest.approx(target, rel=0.02)


@pytest.mark.parametrize("options", ["heads=3", "heads=5:kv_heads=1", "window=8", "preset=llama:heads=6:kv_heads=3"])
def test_the_width_follows_the_heads_that_an_entry_asks_for(book: Path, tmp_path: Path, options: str) -> None:
    field = Field(plan(book, models=("rnn", f"gpt:{options}"), params=60_000), RunFolder(tmp_path / "out"), Silent())
    assert field.entries[1].parameters[0] == pytest.approx(60_000, rel=0.02)
    for setting in options.split(":"):
        option, _, value = setting.partition("=")
        assert str(field.entries[1].config.model[option]) == value


def test_without_a_target_all_are_as_large_as_the_largest(book: Path, tmp_path: Path) -> None:
    field = Field(plan(book, params=None), RunFolder(tmp_path / "out"), Silent())
    assert field.target == max(count_parameters(blueprint(field._config(Entry(n, n)), field.task))
                               for n in ("rnn", "lstm"))  # fmt: skip


def test_equal_flops_are_equal_flops(book: Path, tmp_path: Path) -> None:
    field = Field(plan(book, budget=Budget.parse("flops=1e10")), RunFolder(tmp_path / "out"), Silent())
    for sized in field.entries:
        assert 3 * sized.flops_per_token * sized.budget(Budget.parse("flops=1e10"))["tokens"] == pytest.approx(
            1e10, rel=0.01
        )


def test_amounts_and_entries_are_understood() -> None:
    assert [parse_amount(t, "x") for t in ("800k", "2M", "1e13", "1.5G", "1_000")] == [8e5, 2e6, 1e13, 1.5e9, 1e3]
    first, second = parse_entries(["lstm", "old=gpt:preset=gpt2:train.optimizer=adamw"])
    assert first == Entry("lstm", "lstm")
    assert second == Entry("old", "gpt", ("model.preset=gpt2", "train.optimizer=adamw"))


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"models": "rnn,self_attention", "count": "backbone"}, "self_attention has no parameters of its own to match"),
    ({"models": "rnn,lsmt"}, "unknown model 'lsmt'; did you mean 'lstm'"),
    ({"models": "rnn,lstm:bidirectional=true"}, "needs a model that is causal.*usable models: .*gpt, gru, .*lstm"),
    ({"models": "rnn,rnn"}, "'rnn' is listed twice"),
    ({"models": "ngram"}, "name at least one that is trained"),
    ({"models": ""}, "name at least one"),
    ({"models": "rnn:task.length=8"}, "must be the same for all models"),
    ({"models": "rnn:widht=8"}, "did you mean model.width"),
    ({"params": "20"}, "rnn has at least .* parameters with this vocabulary"),
    ({"params": "30G"}, "rnn: training needs about 840.0 GB .*; lower --params or train.batch"),
    ({"params": "many"}, "--params many: not a positive number"),
    ({"budget": "tokens=100"}, "too few for one evaluation.*use at least tokens="),
    ({"budget": "seconds=0.1"}, "too little for one evaluation"),
    ({"models": "rnn,a=lstm:train.batch=32"}, "a: train.batch must be the same for all"),
    ({"models": "rnn:width=8"}, "model.width is used to match the size of the other models; use --params"),
    ({"overrides": ["model.width=8"]}, "-o model.width: used to match the sizes of the models; use --params"),
    ({"models": "ngram=rnn"}, "'ngram' is not a valid name for rnn"),
    ({"models": "..=rnn"}, "is not a valid name for rnn"),
    ({"overrides": ["train.tokens=5"]}, "-o train.tokens: set by the comparison; use --budget"),
    (
        {"overrides": ["model.heads=2"], "models": "rnn,lstm,gpt,a=gpt:depth=1"},
        "-o model.heads=2: not an option of rnn, lstm; .* write gpt:heads=2 in --models",
    ),
    ({"overrides": ["model.inputs=2"]}, "-o model.inputs=2: not an option of gpt; .* write rnn:inputs=2 in --models"),
    ({"models": "rnn,gpt:heads=3:kv_heads=2"}, "heads=3 must be a multiple of kv_heads=2"),
    ({"overrides": ["data.valid_fraction=0"]}, "needs a validation set"),
    ({"params": "1e400"}, "not a positive number"),
    ({"budget": "steps=10"}, "write tokens=2M, bytes=8M, seconds=60 or flops=1e13"),
    ({"on": "moon"}, "choose one of local, ray"),
    ({"prefer": "beauty"}, "choose one of quality"),
    ({"trial_share": 0.0}, "a share of the budget"),
    ({"data": "nowhere.txt"}, "nowhere.txt"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_cannot_be_compared_is_refused_in_one_line(
    book: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message) as refusal:
        compare(**({"data": str(book), "out": tmp_path / "out", **ASKED, "models": "rnn,gpt"} | change))
    assert "\n" not in str(refusal.value)


def test_the_folder_of_another_comparison_or_run_is_refused(done: Comparison, book: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holds another comparison \(params=13000 \(was 12000\)\)"):
        compare(data=str(book), out=done.folder, **(ASKED | {"params": "13k"}))
    with pytest.raises(UserError, match="is the folder of a run"):
        compare(data=str(book), out=done.folder / "runs" / "rnn" / "seed-1", **ASKED)
