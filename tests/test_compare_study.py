"""A study: the same comparison on several data sets, its ranks and its report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from compare_example import titles
from support import text

import seqloom
from seqloom import cli
from seqloom.compare.comparing import compare
from seqloom.compare.report.study import conclusion, document, lines, report_files
from seqloom.compare.report.study_words import WORDS, speaker
from seqloom.compare.standings import assemble
from seqloom.compare.study import compare_all, data_sets
from seqloom.core.errors import UserError
from seqloom.lab import pool, worker
from seqloom.runs.past import listed
from seqloom.runs.run import load
from seqloom.tasks.language_model import LanguageModel

SMALL = ["task.length=16", "task.stretch=64", "train.batch=4", "task.validation=300", "train.warmup=5"]
ASKED: dict[str, Any] = {
    "models": "rnn,gru", "params": "8k", "budget": "tokens=1k", "trials": 0, "seeds": 1, "overrides": SMALL,
}  # fmt: skip


def result(scores: dict[str, float | None], ngram: float | None = 3.0) -> dict[str, Any]:
    """Of one comparison, as far as a study reads it; None: the entry failed."""
    entries = [
        {"name": name, "model": name, "state": "failed" if score is None else "done",
         "error": "seed 1: diverged" if score is None else None, "score": {"mean": score}}
        for name, score in scores.items()
    ]  # fmt: skip
    protocol = {"task": "language_model", "metric": "loss", "higher_is_better": False, "titles": titles(LanguageModel),
                "seeds": [1, 2, 3], "size": {"target": 9000}}  # fmt: skip
    baselines = [{"name": "uniform", "score": 5.0}, {"name": "ngram", "model": "ngram", "score": ngram}]
    return {"protocol": protocol, "entries": entries, "baselines": baselines, "recommendation": {"choice": "lstm"}}


def study(*rows: dict[str, float | None], ngram: float | None = 3.0) -> dict[str, Any]:
    results = {f"data{n}": result(row, ngram) for n, row in enumerate(rows)}
    return assemble(results, {name: f"{name}-folder" for name in results}, {"command": "seqloom compare"})


def clear(count: int) -> dict[str, Any]:
    """On every data set the LSTM is best, GPT follows, and the n-gram is last."""
    rows = [{"gpt": 2.0 + n / 100, "lstm": 1.0 + n / 90} for n in range(count)]
    return study(*rows)


def sentences(found: dict[str, Any], language: str = "en") -> str:
    return " ".join(conclusion(found, speaker(language)))


def test_ranks_means_and_differences_are_those_of_the_scores() -> None:
    found = study(
        {"lstm": 1.0, "gpt": 2.0}, {"lstm": 2.0, "gpt": 1.0}, {"lstm": 1.0, "gpt": 1.0}, {"lstm": 1, "gpt": 4}
    )
    lstm, gpt, ngram = found["entries"]
    assert [lstm["name"], gpt["name"], ngram["name"]] == ["lstm", "gpt", "ngram"]
    assert lstm["ranks"] == [1, 2, 1.5, 1] and lstm["mean_rank"] == pytest.approx(1.375) and lstm["first_on"] == 3
    assert gpt["ranks"] == [2, 1, 1.5, 3] and gpt["first_on"] == 2
    assert gpt["relative"]["mean"] == pytest.approx((2 * 0.5 * 1 * 4) ** 0.25 - 1)
    assert lstm["relative"] is None


def test_with_few_data_sets_no_test_is_made_and_the_number_that_is_needed_is_named() -> None:
    found = clear(4)
    assert not found["tests"]["possible"] and found["tests"]["groups"] == []
    assert all(entry["p"] is None for entry in found["entries"])
    said = sentences(found)
    assert "lstm has the best mean rank, 1, among 3 entries over 4 data sets; it comes first on 4 of them." in said
    assert "No test is possible with 4 data sets" in said and "p would be 0.38" in said
    assert "at least 7 data sets are needed" in said and "better than" not in said.replace("called better than", "")
    assert clear(7)["tests"]["possible"] and not clear(6)["tests"]["possible"]


def test_a_lead_on_every_data_set_is_found_when_there_are_enough() -> None:
    found = clear(8)
    assert found["tests"]["groups"] == [] and all(pair["different"] for pair in found["tests"]["pairs"])
    said = sentences(found)
    assert "The Friedman test finds that the entries differ (p = 0.00034)." in said
    assert "lstm is better than gpt (p = 0.023)." in said and "lstm is better than ngram (p = 0.023)." in said
    assert "lstm 优于 gpt（p = 0.023）" in sentences(found, "zh")


def test_entries_without_a_difference_are_not_called_better() -> None:
    rows = [{"lstm": 1 + 0.01 * (n % 2), "gpt": 1 + 0.01 * ((n + 1) % 2)} for n in range(8)]
    found = study(*rows)
    assert found["tests"]["groups"] == [["lstm", "gpt"]]
    said = sentences(found)
    assert "share the best mean rank, 1.5" in said and "No difference was found between lstm and gpt." in said
    same = study(*({"lstm": 1.0, "gpt": 1.0} for _ in range(8)), ngram=1.0)
    assert "finds no difference between the entries (p = 1), so none is called better" in sentences(same)
    assert [sorted(group) for group in same["tests"]["groups"]] == [["gpt", "lstm", "ngram"]]


def test_an_entry_without_a_score_on_every_data_set_is_listed_with_the_reason() -> None:
    found = study({"lstm": 1.0, "gpt": 2.0, "rnn": 3.0}, {"lstm": 1.0, "gpt": None}, ngram=None)
    assert [entry["name"] for entry in found["entries"]] == ["lstm"]
    why = {row["name"]: (row["why"], row["data"]) for row in found["left_out"]}
    assert why == {"gpt": ("failed", "data1"), "rnn": ("missing", "data1"), "ngram": ("unscored", "data0")}
    assert "Only lstm finished on all 2 data sets" in sentences(found)
    assert "failed on data1: seed 1: diverged" in report_files(found)["report.md"].decode()
    nothing = study({"lstm": None}, {"lstm": 1.0}, ngram=None)
    assert sentences(nothing) == "No entry finished on all data sets." and report_files(nothing)


def test_scores_that_are_not_positive_have_no_ratio() -> None:
    found = study({"lstm": -1.0, "gpt": 2.0}, {"lstm": 0.0, "gpt": 1.0})
    assert not found["ratios"] and all(entry["relative"] is None for entry in found["entries"])
    assert "differences of scores" in report_files(found)["report.md"].decode()


@pytest.mark.parametrize("count", [2, 4, 8])
def test_the_report_has_ranks_scores_links_and_a_diagram_in_both_languages(count: int) -> None:
    found = clear(count)
    files = report_files(found)
    page, english, chinese = (files[name].decode() for name in ("report.html", "report.md", "report.zh-CN.md"))
    assert '<a href="data0-folder/report.html">data0</a>' in page and 'id="en-diagram-0"' in page
    assert "[data1](data1-folder/report.html)" in english and "平均名次" in chinese
    assert json.dumps(conclusion(found, speaker("zh"))[0], ensure_ascii=False)[1:20] in chinese
    for language in ("en", "zh"):
        keys = [section.key for section in document(found, language).sections]
        assert ("pairs" in keys) == found["tests"]["possible"]
    assert "lstm" in "\n".join(lines(found))


def test_every_text_exists_in_both_languages() -> None:
    import re

    for english, chinese in WORDS.values():
        assert sorted(re.findall(r"{\w+}", english)) == sorted(re.findall(r"{\w+}", chinese))
        assert re.search(r"[\u4e00-\u9fff]", chinese)


def test_names_come_from_the_files_or_from_the_user(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.csv").write_text("text\na\n")
    one, two = str(tmp_path / "one" / "train.csv"), str(tmp_path / "two" / "train.csv")
    with pytest.raises(UserError, match="are both named 'train'; name them, for example --data first="):
        data_sets([one, two], None)
    assert data_sets([f"a={one}", two, "sample:sine"], None) == {"a": one, "train": two, "sine": "sample:sine"}
    (tmp_path / "one" / ".hidden").write_text("")
    assert data_sets([], str(tmp_path / "one")) == {"train": one}
    with pytest.raises(UserError, match="not a folder"):
        data_sets([], one)
    with pytest.raises(UserError, match="has no files"):
        data_sets([], str(tmp_path))


@pytest.fixture
def books(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "books"
    folder.mkdir()
    for number, name in enumerate(("first", "second", "third")):
        (folder / f"{name}.txt").write_text(text(3000 + 500 * number))
    return {name: str(folder / f"{name}.txt") for name in ("first", "second", "third")}


def test_what_is_no_study_is_refused_in_one_line(books: dict[str, str], tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("text,label\n" + "".join(f"good {n},1\nbad {n},0\n" for n in range(30)))
    first, second = {"first": books["first"]}, {"second": books["second"]}
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "comparison.json").write_text("{}")
    refused: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        (first, {}, "needs two data sets or more"),
        (first | {"gone": "gone.txt"}, {}, "data set gone: gone.txt"),
        (first | {"rows": str(rows)}, {}, "data set rows: looks like classification, not like language_model as first"),
        (first | {"rows": str(rows)}, {"task": "classification"}, "data set first: "),
        (first | {"First": books["second"]}, {}, "'first': another one has the same name"),
        (first | {"..": books["second"]}, {}, "not a valid name"),
        (first | second, {"valid": "more.txt"}, "--valid: belongs to one data set, and there are 2"),
        (first | second, {"out": plain}, "is the folder of a comparison of one data set, not of a study"),
    ]
    for data, options, message in refused:
        with pytest.raises(UserError, match=message) as refusal:
            compare_all(data, **({"out": tmp_path / "out", "quiet": True, **ASKED} | options))
        assert "\n" not in str(refusal.value)
    assert not list(tmp_path.glob("out/*/runs"))


@pytest.mark.long
@pytest.mark.usefixtures("short_probes")
def test_a_study_is_several_comparisons_that_go_on_and_grow(
    books: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    trained: list[str] = []

    def run(slot: object, job: worker.Job) -> worker.Result:
        if job["kind"] == "fit" and job["size"]:
            trained.append(f"{Path(job['folder']).relative_to(tmp_path / 'out').parts[0]} {job['entry']}")
        return worker.work(job)

    monkeypatch.setattr(pool._Slot, "run", run)
    options = ["--models", "rnn,gru", "--params", "8k", "--budget", "tokens=1k", "--trials", "0", "--seeds", "1"]
    options += [word for setting in SMALL for word in ("-o", setting)]
    words = ["--data", books["first"], "--data", books["second"], "--out", str(tmp_path / "out"), *options]
    monkeypatch.setattr("sys.argv", ["seqloom", "compare", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    out = capsys.readouterr().out
    assert end.value.code == 0 and sorted(trained) == ["first gru", "first rnn", "second gru", "second rnn"]
    assert "mean rank" in out and "No test is possible with 2 data sets" in out and "report.html" in out

    trained.clear()
    monkeypatch.setattr("sys.argv", [
        "seqloom", "compare", "--each", str(tmp_path / "books"), "--out", str(tmp_path / "out"), "--json", *options,
    ])  # fmt: skip
    with pytest.raises(SystemExit) as end:
        cli.main()
    said = capsys.readouterr()
    shown = json.loads(said.out)
    assert end.value.code == 0 and sorted(trained) == ["third gru", "third rnn"]
    assert "adds third" in said.err
    assert {entry["name"] for entry in shown["entries"]} == {"rnn", "gru", "ngram"}
    assert [row["name"] for row in shown["data"]] == ["first", "second", "third"]
    assert all((tmp_path / "out" / name).exists() for name in ("study.json", "report.html", "report.zh-CN.md"))
    assert (tmp_path / "out" / "third" / "report.html").exists()

    trained.clear()
    less = seqloom.compare_all({"first": books["first"], "third": books["third"]}, out=tmp_path / "out", **ASKED)
    assert not trained and "leaves out second (kept on disk)" in capsys.readouterr().err
    assert less.best and set(less.comparisons) == {"first", "third"} and "mean rank" in repr(less)
    with pytest.raises(UserError, match="is the folder of a study of several data sets"):
        compare(data=books["first"], out=tmp_path / "out", quiet=True, **ASKED)
    with pytest.raises(UserError, match="is a study of several data sets; name the folder of one of them"):
        load(tmp_path / "out")
    assert any("second/runs/rnn/seed-1" in row["run"] for row in listed(tmp_path))
