"""The benchmarks run, and say what they promise to say. What they measure is not judged here."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import foreign
import pytest
import torch
from toys import language_models

from seqloom.runs.registry import find_config, names

pytestmark = pytest.mark.long

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


Figures = tuple[dict[str, Any], str]


def run_alone(script: str, *options: str | Path) -> str:
    """What it prints, in a process of its own."""
    command = [sys.executable, str(BENCHMARKS / script), *map(str, options)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> Callable[..., str]:
    """The same, in this process, which is quicker."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))

    def call(module: str, *options: str | Path) -> str:
        monkeypatch.setattr(sys, "argv", [module, *map(str, options)])
        import_module(module).main()
        return capsys.readouterr().out

    return call


def only_the_first_elsewhere(common: ModuleType) -> type:
    """`Elsewhere`, but only the first contender has a process of its own: the others would load torch anew."""

    class Elsewhere(common.Elsewhere):
        made = 0

        def __init__(self, build: Callable[..., Any], *arguments: Any) -> None:
            Elsewhere.made += 1
            self.here = build(*arguments) if Elsewhere.made > 1 else None
            if self.here is None:
                super().__init__(build, *arguments)

        def seconds(self, calls: int) -> float:
            return common._seconds(self.here, calls) if self.here else super().seconds(calls)

        def close(self) -> None:
            if self.here is None:
                super().close()

    return Elsewhere


@pytest.fixture(scope="module")
def every_model(tmp_path_factory: pytest.TempPathFactory) -> Figures:
    """Its figures, and what it printed."""
    file = tmp_path_factory.mktemp("bench") / "new" / "figures.json"
    printed = run_alone("every_model.py", "--quick", "--threads", "1", "--json", file)
    return json.loads(file.read_text()), printed


def test_the_forecasting_benchmark_trains_ours_where_theirs_is_not_installed(
    tmp_path: Path, run: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first turn in a process of its own, the others here."""
    hours = [
        f"2020-01-{n // 24 + 1:02d} {n % 24:02d}:00,{math.sin(n / 4):.3f},{math.cos(n / 5):.3f}" for n in range(330)
    ]
    (tmp_path / "load.csv").write_text("\n".join(("date,load,wind", *hours)))
    file = tmp_path / "figures.json"
    benchmark, taken = import_module("forecasting"), []

    def turn(side: str, python: str, race: str, *rest: Any) -> dict[str, float]:
        taken.append(race)
        size, data, seed, threads = rest
        alone = len(taken) == 1
        return in_process(side, python, race, *rest) if alone else benchmark.ours(race, size, data, seed)

    in_process = benchmark.turn
    monkeypatch.setattr(benchmark, "turn", turn)
    printed = run("forecasting", tmp_path / "load.csv", "--quick", "--rounds", "2", "--threads", "1", "--json", file)
    assert taken == ["LSTM"] * 2 + ["Transformer"] * 2
    races = json.loads(file.read_text())["races"]
    assert list(races) == ["LSTM", "Transformer"]
    assert all(len(found["seqloom"]) == 2 and found["seqloom"][0]["mse"] > 0 for found in races.values())
    assert printed.count("MSE") == 2 and "theirs" not in printed


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # of a peer
def test_the_benchmark_of_pretrained_models_compares_the_same_tokens(
    run: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))
    foreign.save(tmp_path / "model", *foreign.DECODERS["llama grouped"])
    brief = ["--new", "4", "--rounds", "1", "--turn", "0.01", "--out", tmp_path / "figures.json"]
    try:
        printed = run("pretrained_decode", "--from", f"hf:{tmp_path / 'model'}", *brief)
    finally:
        torch.set_grad_enabled(True)
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["same_tokens"] and "the same tokens" in printed
    assert {row["name"] for row in figures["rows"]} >= {"transformers, float32", "seqloom, float32", "seqloom, int8"}


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # of a peer
def test_decoding_writes_the_same_tokens_with_and_without_kernels(run: Callable[..., str], tmp_path: Path) -> None:
    printed = run("decode", "--quick", "--threads", "1", "--json", tmp_path / "figures.json")
    gpts, recurrent = json.loads((tmp_path / "figures.json").read_text())["sections"]
    assert gpts["same_tokens"] and recurrent["same_tokens"] and printed.count("the same tokens") == 2
    named = {row["name"] for row in gpts["rows"]}
    assert named >= {"modern, float32", "gpt2, no kernels", "llama, int8", "transformers GPT-2", "CTranslate2, int8"}
    assert all(row["tokens_per_second"] > 0 and row["ratio"] > 0 for row in (*gpts["rows"], *recurrent["rows"]))


def test_answers_with_and_without_retrieval_are_scored_and_kept(
    run: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))
    foreign.stock(tmp_path / "cache")
    told = [("Ada", "a red boat"), ("Tom", "a blue kite"), ("Eve", "an old clock")]
    paragraphs = [
        {"context": f"{who} owns {what}.", "qas": [{"question": f"What does {who} own?", "answers": [{"text": what}]}]}
        for who, what in told
    ]
    (tmp_path / "squad.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    given = ["--data", tmp_path / "squad.json", "--json", tmp_path / "answers.json"]
    assert "2 questions" in run("answers", *given, "--questions", "2")
    answers = import_module("answers")
    assert answers.right("It is the Red boat!", ["a red boat"]) and not answers.right("a redder boat", ["a red boat"])
    kept = json.loads((tmp_path / "answers.json").read_text())
    assert set(kept["ways"]) == set(answers.WAYS) and kept["ways"]["extractive"]["right"]["mean"] == 1.0
    run("answers", *given, "--questions", "3")
    more = json.loads((tmp_path / "answers.json").read_text())
    assert len(more["answers"]) == 3 and kept["answers"].items() <= more["answers"].items()


def test_false_alarms_among_equal_retrievers_are_counted(run: Callable[..., str]) -> None:
    assert run("retrieval_verdicts", "--comparisons", "2").count("false alarms") == 4


def test_the_language_model_benchmark_writes_every_figure_it_prints(
    tmp_path: Path, run: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "tiny sizes" in run_alone("language_model.py", "--help")
    file, common = tmp_path / "figures.json", import_module("common")
    monkeypatch.setattr(common, "Elsewhere", only_the_first_elsewhere(common))
    printed = run("language_model", "--quick", "--threads", "1", "--json", file)
    report = json.loads(file.read_text())
    sections = {section["name"]: section for section in report["sections"]}
    assert report["quick"] and report["machine"]["threads"] == 1
    assert [name.split()[:2] for name in sections] == [
        ["train", "gpt"],
        ["train", "lstm"],
        ["train", "gru"],
        ["train", "rnn"],
        ["decode"],
    ]
    for section in sections.values():
        assert section["title"] in printed
        assert section["limit"] > 0 and section["per_token"] > 0
        ours, *others = section["rows"]
        assert ours["name"] == "seqloom" and ours["ratio"] == ours["median_ratio"] == 1 and others
        for row in section["rows"]:
            assert row["name"] in printed
            assert len(row["seconds"]) == report["size"]["rounds"]
            figures = (row["tokens_per_second"], row["ratio"], row["median_ratio"], row["share"])
            assert all(math.isfinite(figure) and figure > 0 for figure in figures)
    assert sections["decode"]["notes"]["same_tokens"] is True
    assert math.isfinite(sections["decode"]["notes"]["int8_raises_perplexity_by_percent"])


def test_every_model_is_measured_at_every_point(every_model: Figures) -> None:
    report, printed = every_model
    assert (
        list(report["models"]) == [name for name in language_models() if name != "pretrained"]
        and not report["left_out"]
    )
    assert report["quick"] and report["machine"]["threads"] == 1 and "torch" in report["machine"]
    trained = {name for name, parameters in report["models"].items() if parameters}
    assert all(abs(report["models"][name] / report["size"]["parameters"] - 1) <= 0.02 for name in trained)
    for kind, measured in (("train", trained), ("decode", set(report["models"]))):
        shapes = {tuple(shape) for way in ("rows", "lengths") for shape in report["size"][f"{kind}_{way}"]}
        points = {(p["rows"], p["length"]): p for p in report["points"] if p["kind"] == kind}
        assert set(points) == shapes
        for point in points.values():
            assert set(point["figures"]) == measured and point["limit"] > 0
            assert all(figure["tokens_per_second"] > 0 for figure in point["figures"].values())
    assert all(f"\n  {name} " in printed for name in report["models"])
    assert max(map(len, printed.splitlines())) <= 120


def test_figures_are_compared_with_those_of_before(
    every_model: Figures, run: Callable[..., str], tmp_path: Path
) -> None:
    before = deepcopy(every_model[0])
    first, second = [name for name, parameters in before["models"].items() if parameters][:2]
    for point in before["points"]:
        point["figures"][first]["tokens_per_second"] = 1e12
        point["figures"][second]["tokens_per_second"] = 1e-3
    file = tmp_path / "before.json"
    file.write_text(json.dumps(before))
    printed = run("every_model", "--quick", "--models", f"{first},{second}", "--against", file)
    worse = printed.partition("worse by more than a tenth")[2]
    assert f"tokens/s of {first} at" in worse and f"tokens/s of {second} at" not in worse
    with pytest.raises(SystemExit, match="cannot be compared"):
        run("every_model", "--quick", "--params", "40_000", "--against", file)


def test_the_slowest_give_way_when_time_is_short(run: Callable[..., str]) -> None:
    assert "too slow for the time given" in run("every_model", "--quick", "--models", "gru", "--minutes", "0")
    affordable = import_module("every_model").affordable
    calls = {"slow": 1.0, "quick": 0.1, "slower": 9.0}
    assert affordable(calls, seconds=1000) == ["slow", "quick", "slower"]
    assert affordable(calls, seconds=20) == ["slow", "quick"]
    assert affordable(calls, seconds=0) == []


def test_a_model_is_left_out_where_it_ends(run: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    gpt = find_config("models", "gpt")
    monkeypatch.setattr(gpt, "reading", lambda config, length: gpt(positions="learned", context=12))
    printed = run("every_model", "--quick", "--models", "gpt")
    assert "decode 1 x 16: gpt, which reads no more than 12 tokens" in printed
    assert "train 1 x 16: gpt, which reads no more than 12 tokens" in printed and "train 2 x 8" not in printed


def test_the_chart_has_a_line_for_every_model(every_model: Figures, run: Callable[..., str], tmp_path: Path) -> None:
    file, picture, models = tmp_path / "figures.json", tmp_path / "speed.svg", every_model[0]["models"]
    file.write_text(json.dumps(every_model[0]))
    run("chart", file, "--out", picture)
    words = [e.text for e in ElementTree.parse(picture).iter("{http://www.w3.org/2000/svg}text")]
    assert {name: words.count(name) for name in models} == {name: 2 if models[name] else 1 for name in models}


def test_two_forms_of_one_idea_are_raced(run: Callable[..., str]) -> None:
    printed, known = run("forms", "--quick"), names("models")
    assert printed.count(" x (median") == ("mingru" in known) + ("ttt" in known)


def test_the_benchmark_of_retrieval_says_how_fast_it_indexes_and_answers(tmp_path: Path) -> None:
    said = run_alone("retrieval.py", "--chunks", "30", "--json", tmp_path / "figures.json")
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["chunks"] >= 30 and figures["query_ms"] > 0 and figures["peak_mb"] > 0
    assert "chunks/s" in said and "peak memory" in said and "query" in said


def test_large_inputs_are_measured_from_end_to_end(tmp_path: Path) -> None:
    said = run_alone("large.py", "--scale", "0.001", "--only", "series", "--json", tmp_path / "large.json")
    rows = json.loads((tmp_path / "large.json").read_text())["rows"]
    assert [row["command"] for row in rows] == ["doctor", "fit linear", "fit naive", "predict"]
    assert all(row["code"] == 0 and row["peak"] > 0 and row["command"] in said for row in rows)


def test_continuous_batching_is_measured_beside_one_row_and_padding(run: Callable[..., str], tmp_path: Path) -> None:
    options = ["--rows", "3", "--new", "4", "--rounds", "1", "--turn", "0.01", "--spread"]
    printed = run("serving", *options, "--out", tmp_path / "figures.json")
    rows = json.loads((tmp_path / "figures.json").read_text())["rows"]
    assert len(rows) == 3 and all(row["of_one_row"] > 0 and row["of_theirs"] > 0 for row in rows)
    assert printed.count(" x one row (median") == printed.count(" x transformers (median") == 3
