"""A comparison's folder stands for the run that it recommends: predict, generate, eval, load."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from support import small_fit, text

import seqloom
from seqloom import cli
from seqloom.compare.comparison import Comparison, use_command
from seqloom.core.errors import UserError
from seqloom.runs.fit import fit
from seqloom.runs.winner import winner

Result = dict[str, Any]


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "book.txt"
    path.write_text(text(3000))
    return path


@pytest.fixture(scope="module")
def finished(book: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a comparison of an LSTM, of which the second seed is the better one, and an n-gram."""
    folder = tmp_path_factory.mktemp("runs") / "compare-book"
    small_fit(book, folder / "runs/lstm/seed-1", "lstm", ["train.steps=2"])
    shutil.copytree(folder / "runs/lstm/seed-1", folder / "runs/lstm/seed-2")
    fit(data=str(book), model="ngram", out=folder / "runs/ngram/seed-1", quiet=True)
    (folder / "comparison.json").write_text("{}")
    return folder


def entry(name: str, *valid: float) -> Result:
    folders = [f"runs/{name}/seed-{n}" for n in range(1, len(valid) + 1)]
    runs = [{"state": "done", "valid": v, "folder": f} for v, f in zip(valid, folders, strict=True)]
    return {"name": name, "state": "done", "runs": runs}


def recommend(folder: Path, use: str | None, choice: str | None = None, **more: Any) -> Result:
    result: Result = {
        "protocol": {"higher_is_better": False},
        "entries": [entry("lstm", 2.0, 1.9)],
        "baselines": [{"name": "uniform"}, {"name": "ngram", "model": "ngram", "folder": "runs/ngram/seed-1"}],
        "best": "lstm",
        "recommendation": {"choice": choice, "use": use, "among": []},
    } | more
    (folder / "result.json").write_text(json.dumps(result))
    return result


def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["seqloom", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    said = capsys.readouterr()
    return int(end.value.code or 0), said.out, said.err


def test_the_recommended_model_is_loaded_with_its_best_seed_on_the_validation_set(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recommend(finished, "lstm", "lstm")
    run = seqloom.load(finished)
    assert run.folder.path == finished / "runs/lstm/seed-2"
    assert capsys.readouterr().err == f"{finished}: using runs/lstm/seed-2, the recommended model (lstm)\n"


def test_where_higher_is_better_the_best_seed_is_the_highest(finished: Path) -> None:
    recommend(finished, "lstm", "lstm", protocol={"higher_is_better": True})
    assert winner(finished).run.name == "seed-1"


def test_commands_use_a_model_that_needed_no_training_and_won(
    finished: Path, book: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recommend(finished, "ngram", "ngram", entries=[entry("lstm", 2.0, 1.9), entry("ngram", 1.8) | {"fixed": True}])
    code, out, err = call(monkeypatch, capsys, "generate", str(finished), "--prompt", "the ", "--max-new", "9")
    assert code == 0 and out.startswith("the ") and "the recommended model (ngram)" in err
    code, out, err = call(monkeypatch, capsys, "eval", str(finished), "--data", str(book), "--json")
    assert code == 0 and json.loads(out)["loss"] > 0 and err.count("runs/ngram/seed-1") == 1


def test_a_recommendation_that_is_not_certain_says_so(finished: Path) -> None:
    advice = {"choice": "lstm", "use": "lstm", "certain": False, "among": ["lstm", "gru", "rnn"]}
    recommend(finished, "lstm", recommendation=advice)
    found = winner(finished)
    assert found.entry == "lstm" and found.why.startswith("the recommended model (lstm); there is not enough evidence")
    assert found.why.endswith("to tell it from gru and rnn")


def test_without_a_recommendation_the_best_score_is_used_and_this_is_said(finished: Path) -> None:
    recommend(finished, "lstm", recommendation={"choice": None, "use": "lstm", "certain": False, "among": []})
    found = winner(finished)
    assert found.entry == "lstm"
    assert "the model with the best score (lstm); none is recommended: see report.md" in found.why


def test_a_baseline_that_is_only_listed_is_loaded_from_its_folder(finished: Path) -> None:
    recommend(finished, "ngram", "ngram")
    assert winner(finished).run == finished / "runs/ngram/seed-1"


def test_a_result_of_an_older_version_is_understood(finished: Path) -> None:
    old = {"recommendation": {"choice": None}, "tied": ["gru"], "baselines": [{"name": "ngram", "model": "ngram"}]}
    recommend(finished, None, **old)
    assert winner(finished).entry == "lstm" and "none is recommended" in winner(finished).why
    recommend(finished, None, **(old | {"recommendation": {"choice": "ngram"}}))
    assert winner(finished).run == finished / "runs/ngram/seed-1"


REFUSED = {
    "nothing finished": ({"best": None, "use": None}, "no model finished"),
    "no model fits": ({"use": None}, "no model meets its constraints"),
    "a run that is gone": ({"use": "gone"}, "the run of gone is missing"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_one_line_says_why_there_is_no_run_for(case: str, finished: Path) -> None:
    more, message = REFUSED[case]
    recommend(finished, **more)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=message):
        seqloom.load(finished)


def test_an_unfinished_comparison_and_a_damaged_one_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "comparison.json").write_text("{}")
    code, _, err = call(monkeypatch, capsys, "predict", str(tmp_path), "--text", "x")
    assert code == 2 and "the comparison is unfinished; run its command again" in err and err.count("\n") == 1
    (tmp_path / "result.json").write_text('{"entries": ')
    code, _, err = call(monkeypatch, capsys, "predict", str(tmp_path), "--text", "x")
    assert code == 1 and "result.json: not valid JSON; run the comparison's command" in err and err.count("\n") == 1


def test_the_command_to_use_it_suits_the_task_and_the_data() -> None:
    assert use_command("generate", Path("runs/c"), "book.txt") == "seqloom generate runs/c --prompt TEXT"
    assert use_command("predict", Path("runs/c"), "rows.csv") == "seqloom predict runs/c --data NEW.csv"
    assert use_command("predict", Path("runs/c"), "a.en,a.de") == "seqloom predict runs/c --data NEW.en"


SMALL = {"params": "9k", "budget": "tokens=6k", "trials": 0, "seeds": 1, "quiet": True}


@pytest.mark.long
@pytest.mark.usefixtures("short_probes", "jobs_here")
@pytest.mark.parametrize("kind", ["labels", "series"])
def test_every_model_that_needs_no_training_can_be_loaded_from_a_comparison(kind: str, tmp_path: Path) -> None:
    rows = [f"{word} film {n},{word}" for n, word in enumerate(["good", "bad"] * 40)]
    series = [f"{n},{n % 12 + n % 5 / 9}" for n in range(400)]
    head, lines, model, task = {
        "labels": ("text,label", rows, "tfidf", "classification"),
        "series": ("time,value", series, "naive", "forecasting"),
    }[kind]
    (tmp_path / "a.csv").write_text("\n".join([head, *lines]) + "\n")
    small = {
        "labels": ["tokenizer.min_count=1", "train.batch=8"],
        "series": ["task.context=24", "task.horizon=4", "train.batch=8"],
    }[kind]
    found: Comparison = seqloom.compare(
        data=str(tmp_path / "a.csv"), task=task, models="lstm", out=tmp_path / "c", overrides=small, **SMALL
    )
    fitted = [entry for entry in found.result["entries"] if entry.get("fixed")]
    assert model in [entry["model"] for entry in fitted]
    for entry in fitted:
        assert seqloom.load(found.folder / entry["runs"][0]["folder"]).task.name == task
    found.result["recommendation"] |= {"choice": model, "use": model}
    (found.folder / "result.json").write_text(json.dumps(found.result))
    assert found.best == model and found.run.config.model["name"] == model
    assert list(found.run.predict(str(tmp_path / "a.csv")))
    assert f"seqloom predict {tmp_path / 'c'} --data NEW.csv" in (found.folder / "report.zh-CN.md").read_text()
