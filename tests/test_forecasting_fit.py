"""Forecasting from a file to a page: fit, resume, eval, predict, solve, compare; mistakes are one line."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import digest
from test_cli import call

import seqloom
from seqloom.core.errors import UserError
from seqloom.runs.fit import fit
from seqloom.runs.registry import find_config
from seqloom.runs.run import Run, load

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("own_cache")]

SMALL = [
    "task.horizon=6",
    "task.context=12",
    "train.batch=8",
    "train.threads=1",
    "train.steps=4",
    "data.test_fraction=0.2",
]


def table(path: Path, series: int = 2, points: int = 120, holes: bool = True) -> Path:
    """Hours with two variables, one covariate, and values that are missing now and then."""
    rng, lines = np.random.default_rng(0), ["when,shop,sold,spent,price"]
    for n in range(series):
        for t in range(points):
            stamp = np.datetime64("2024-01-01T00") + np.timedelta64(t, "h")
            sold = "" if holes and rng.random() < 0.05 else f"{10 + 3 * np.sin(t / 4 + n) + rng.normal(0, 0.3):.3f}"
            lines.append(f"{stamp},s{n},{sold},{100 + t % 24 + rng.normal():.3f},{rng.random():.3f}")
    path.write_text("\n".join(lines) + "\n")
    return path


COLUMNS = ["data.time=when", "data.series=shop", "data.targets=sold,spent", "data.past=price", "data.calendar=hour"]


def small(folder: Path, model: str = "gru", *extra: str, data: Any = None) -> Run:
    size = [] if model == "window" else ["model.width=16"]
    given = data or str(table(folder / "t.csv"))
    columns = COLUMNS if data is None else []
    return fit(None, task="forecasting", data=given, model=model, out=folder / "run",
               overrides=[*SMALL, *size, *columns, *extra], quiet=True)  # fmt: skip


@pytest.mark.parametrize(
    ("model", "extra"),
    [
        ("gru", ["task.strategy=recursive", "task.output=gauss"]),
        ("window", ["task.channels=apart", "task.window_scale=last", "model.form=linear", "model.span=12"]),
        ("transformer", ["task.strategy=direct", "task.direct=steps", "task.output=quantiles"]),
        ("gpt", ["task.strategy=combined", "task.block=4", "task.training=mixed"]),
        ("bert", ["task.window_scale=standard", "task.output=student"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_from_a_file_to_forecasts(tmp_path: Path, model: str, extra: list[str]) -> None:
    run = small(tmp_path, model, *extra, "task.paths=5")
    test = run.summary["scores"]["test"]
    assert np.isfinite(test["mse"]) and set(test["raw"]) == {"sold", "spent"} and 0 <= test["coverage"] <= 1
    assert {"last value", "drift", "seasonal naive", "moving average", "autoregression"} <= set(test["baselines"])
    again = load(run.folder.path).evaluate(str(tmp_path / "t.csv"))
    assert np.isfinite(again["mse"]) and "autoregression" in again["baselines"]
    rows = list(load(run.folder.path).predict(str(tmp_path / "t.csv")))
    assert [(row["series"], row["step"]) for row in rows] == [(s, n) for s in ("s0", "s1") for n in range(1, 7)]
    assert rows[0]["time"] == "2024-01-06 00:00:00" and rows[5]["time"] == "2024-01-06 05:00:00"
    for row in rows:
        lines = [row[f"sold_{level:g}"] for level in (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)]
        assert lines == sorted(lines) and all(np.isfinite([row["sold"], row["spent"]])) and "sold_actual" not in row
    back = list(load(run.folder.path).predict(str(tmp_path / "t.csv"), back=8))
    assert back[0]["time"] == "2024-01-05 16:00:00" and back[0]["spent_actual"] == pytest.approx(116, abs=5)


def test_what_is_known_ahead_must_reach_as_far_as_the_forecast(tmp_path: Path) -> None:
    data = table(tmp_path / "t.csv", 1)
    columns = ["data.time=when", "data.series=shop", "data.targets=sold", "data.known=price"]
    run = small(tmp_path, "gru", *columns, "task.strategy=recursive", data=str(data))
    with pytest.raises(UserError, match="has price for 0 steps after its last value, but 6 are needed"):
        list(run.predict(str(data)))
    assert len(list(run.predict(str(data), back=6))) == 6
    ahead = [f"2024-01-06T{hour:02}:00,s0,,,0.{hour}" for hour in range(6)]
    data.write_text(data.read_text() + "\n".join(ahead) + "\n")
    first = list(run.predict(str(data)))
    data.write_text(data.read_text().replace("s0,,,0.0", "s0,,,5"))
    other = list(run.predict(str(data)))
    assert len(first) == 6 and first[0]["time"] == "2024-01-06 00:00:00" and first[0]["sold"] != other[0]["sold"]


def test_a_resumed_run_is_the_uninterrupted_one(tmp_path: Path) -> None:
    """Also what is drawn on the way, in mixed training and by dropout."""
    extra = ["task.strategy=recursive", "task.training=mixed", "model.dropout=0.1", "train.keep=9"]
    extra += ["train.evaluate_every=2", "train.schedule=constant", "train.warmup=0"]
    for name in ("whole", "halves"):
        (tmp_path / name).mkdir()
    whole = small(tmp_path / "whole", "lstm", *extra, "train.steps=6")
    small(tmp_path / "halves", "lstm", *extra, "train.steps=4")
    halves = small(tmp_path / "halves", "lstm", *extra, "train.steps=6")
    assert digest(halves.folder.path) == digest(whole.folder.path)


RULES = [["recursive"], ["direct"], ["combined", "task.block=3"], ["recursive", "task.window_scale=last"]]


@pytest.mark.parametrize(("strategy", "extra"), [(first, rest) for first, *rest in RULES])
def test_least_squares_on_a_line_that_follows_a_rule(tmp_path: Path, strategy: str, extra: list[str]) -> None:
    """Waves follow a linear rule exactly: solved once, forecast without error, by any strategy."""
    lines = ["value", *(f"{np.sin(t / 3) + 0.5 * np.cos(t / 7):.9f}" for t in range(200))]
    (tmp_path / "w.csv").write_text("\n".join(lines) + "\n")
    solving = ["model.form=linear", "model.solve=true", "model.span=12", "data.time=line", f"task.strategy={strategy}"]
    run = small(tmp_path, "window", *solving, *extra, data=str(tmp_path / "w.csv"))
    assert run.summary["scores"]["test"]["rmse"] < 0.02
    assert load(run.folder.path).evaluate(str(tmp_path / "w.csv"))["rmse"] < 0.02
    size = {"direct": 6, "combined": 3}.get(strategy, 1)
    assert run.summary["parameters"] == 13 * size, "nothing but the map itself"


def test_solving_needs_numbers(tmp_path: Path) -> None:
    from toys import language_model

    config = find_config("models", "window")
    with pytest.raises(ValueError, match="requires form=linear"):
        config.model_validate({"solve": True})
    with pytest.raises(UserError, match="needs numeric inputs"):
        config.model_validate({"solve": True, "form": "linear"}).assemble(language_model())
    solving = ["model.form=linear", "model.solve=true"]
    for option, message in (("direct=steps", "predicts at empty positions"), ("output=gauss", "point forecasts only")):
        (tmp_path / option).mkdir()
        with pytest.raises(UserError, match=message):
            small(tmp_path / option, "window", *solving, f"task.{option}")


def test_predictions_as_a_table_and_as_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    run = small(tmp_path, "gru", "task.output=gauss").folder.path

    def told(*words: Any) -> tuple[int, str, str]:
        return call(monkeypatch, capsys, *map(str, words))

    data, page = tmp_path / "t.csv", tmp_path / "deep" / "page.html"
    code, _, _ = told("predict", run, "--data", data, "--out", tmp_path / "f.csv", "--chart", page, "--back", 6)
    rows = list(csv.DictReader((tmp_path / "f.csv").open()))
    assert code == 0 and len(rows) == 12 and rows[0]["series"] == "s0" and float(rows[0]["spent_actual"]) > 90
    text = page.read_text()
    assert text.count("<figure>") == 4 and "actual values" in text and "90%, 80%, 50% prediction intervals" in text
    assert (
        "default-src 'none'" in text and not re.search(r"<script|https?://", text) and "NaN" not in text.upper()[:20000]
    )
    code, out, _ = told("predict", run, "--data", data)
    assert code == 0 and len([json.loads(line) for line in out.splitlines()]) == 12
    code, _, error = told("predict", run, "--data", data, "--beams", 2)
    assert code == 2 and "beams: a forecasting run has no such option" in error
    code, _, error = told("predict", run, "--text", "12", "--chart", page)
    assert code == 2 and "--chart" in error


def test_names_from_users_are_escaped_on_the_page(tmp_path: Path) -> None:
    from seqloom.explain.forecasts import page

    data = table(tmp_path / "t.csv", 1)
    data.write_text(data.read_text().replace("s0", "<b>&").replace("sold", "a<i>"))
    columns = ["data.time=when", "data.series=shop", "data.targets=a<i>"]
    run = small(tmp_path, "gru", *columns, data=str(data))
    text = page(load(run.folder.path).pictures(str(data)), run)
    assert "&lt;b&gt;&amp;" in text and "a&lt;i&gt;" in text and "<b>" not in text and "a<i>" not in text


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["task.horizon=60"], "fewer than task.horizon=60"),
        (["task.horizon=500"], "no series of the training set has more than task.horizon=500 points"),
        (["task.output=middle"], "task.output"),
        (["task.levels=[]"], "at least one"),
        (["task.levels=[0.9,0.95]", "task.output=quantiles"], "must enclose 0.5, the quantile used as point forecast"),
        (["task.output=bins", "data.scale=none", "task.strategy=recursive"], "assume scaled values"),
        (["task.levels=[0.5]", "data.targets=sold,sold_0.5", "data.train=twice.csv"], "two columns .* 'sold_0.5'"),
        (["model.name=bert", "task.strategy=recursive"], "needs a model that is causal or encoder-decoder"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extra: list[str], message: str) -> None:
    monkeypatch.chdir(tmp_path)
    named = table(tmp_path / "t.csv").read_text().replace("spent", "sold_0.5", 1)
    (tmp_path / "twice.csv").write_text(named)
    with pytest.raises(UserError, match=message) as told:
        small(tmp_path, "gru", *extra)
    assert "\n" not in str(told.value)


LINEAR = [
    "model.form=linear",
    "model.solve=true",
    "model.span=8",
    "task.context=8",
    "data.series=who",
    "task.horizon=4",
]


def solved(folder: Path, lines: list[str], *extra: str) -> Run:
    (folder / "s.csv").write_text("\n".join(("day,who,y", *lines)))
    return small(folder, "window", *LINEAR, *extra, data=str(folder / "s.csv"))


def days(name: str, values: Any) -> list[str]:
    first = np.datetime64("2024-01-01")
    return [f"{first + n},{name},{value:.14g}" for n, value in enumerate(values)]


def test_small_numbers_beside_large_ones_are_not_lost(tmp_path: Path) -> None:
    t = np.arange(120)
    large, tiny = 5e9 + 1e9 * np.sin(t / 3), 1.2 + 0.03 * np.sin(t / 5)
    run = solved(tmp_path, days("large", large) + days("tiny", tiny), "task.window_scale=standard")
    rows = [row for row in run.predict(str(tmp_path / "s.csv"), back=4) if row["series"] == "tiny"]
    np.testing.assert_allclose([row["y_actual"] for row in rows], tiny[-4:], rtol=1e-6)
    np.testing.assert_allclose([row["y"] for row in rows], tiny[-4:], atol=3e-3)


def test_numbers_that_vary_little_keep_their_digits(tmp_path: Path) -> None:
    wave = 1.7e9 + 3 * np.sin(np.arange(120) / 3)
    run = solved(tmp_path, days("high", wave))
    rows = list(run.predict(str(tmp_path / "s.csv"), back=4))
    np.testing.assert_allclose([row["y"] for row in rows], wave[-4:], atol=0.1, rtol=0)
    np.testing.assert_allclose([row["y_actual"] for row in rows], wave[-4:], atol=0.01, rtol=0)


def test_what_lies_beyond_the_horizon_is_read_by_nobody(tmp_path: Path) -> None:
    """A horizon that ends within a block: the end of the file is no other place than its middle."""
    values = np.tile([1.0, 5, 2, 8, 3, 9, 4], 18)
    every = days("one", values)
    how = ["task.strategy=combined", "task.block=4", "data.calendar=weekday", "task.horizon=6", "model.span=2"]
    run = solved(tmp_path, every, *how)
    back = [row["y"] for row in run.predict(str(tmp_path / "s.csv"), back=20)]
    (tmp_path / "short.csv").write_text("\n".join(("day,who,y", *every[:-20])))
    assert [row["y"] for row in run.predict(str(tmp_path / "short.csv"))] == pytest.approx(back)


def test_the_intervals_of_a_series_do_not_depend_on_its_company(tmp_path: Path) -> None:
    both = days("a", np.arange(60) % 7) + days("b", np.arange(60) % 5)
    (tmp_path / "both.csv").write_text("\n".join(("day,who,y", *both)))
    (tmp_path / "alone.csv").write_text("\n".join(("day,who,y", *both[60:])))
    how = ["task.strategy=recursive", "task.output=gauss", "task.paths=5", "data.series=who"]
    run = small(tmp_path, "gru", *how, data=str(tmp_path / "both.csv"))
    found = [row for row in run.predict(str(tmp_path / "both.csv")) if row["series"] == "b"]
    for row, alone in zip(found, run.predict(str(tmp_path / "alone.csv")), strict=True):
        for level in ("y_0.05", "y_0.95"):
            assert row[level] == pytest.approx(alone[level], rel=1e-4)


def test_times_are_written_as_finely_as_they_stand_in_the_file(tmp_path: Path) -> None:
    ends = np.arange(np.datetime64("2014-02"), np.datetime64("2024-02")).astype("datetime64[D]") - 1
    lines = [f"{end},one,{n % 12}" for n, end in enumerate(ends)]
    run = solved(tmp_path, lines)
    assert next(run.predict(str(tmp_path / "s.csv")))["time"] == "2024-01-31"
    (tmp_path / "two.csv").write_text("day,who,y\n2024-07-31,one,3\n2024-08-31,one,4")  # not sure to be month ends
    assert next(run.predict(str(tmp_path / "two.csv")))["time"] == "2024-09-30"


@pytest.mark.usefixtures("short_probes", "jobs_here")
def test_a_comparison_shows_the_error_against_the_horizon(tmp_path: Path) -> None:
    own = ("steps", "threads", "fraction")  # a comparison sets them itself
    found = seqloom.compare(
        task="forecasting", data=str(table(tmp_path / "t.csv")), models="gru,line=window:form=linear:solve=true,window",
        out=tmp_path / "c", params="4k", budget="tokens=4k", trials=0, seeds=1, jobs=2, quiet=True,
        overrides=[*(o for o in SMALL if not any(name in o for name in own)), *COLUMNS],
    )  # fmt: skip
    result = found.result
    entry = result["entries"][0]
    assert entry["state"] == "done", entry["error"]
    assert len(entry["aspects"]["horizon"]["rmse"]) == 6 == len(entry["aspects"]["horizon"]["inside"])
    names = {row["name"] for row in result["baselines"]}
    assert {"last value", "drift", "seasonal naive", "moving average", "autoregression"} <= names
    assert "line" in {each["name"] for each in result["entries"] if each.get("fixed")}
    report = (tmp_path / "c" / "report.md").read_text()
    assert "Error by forecast step" in report and "| Steps ahead |" in report and "linear autoregression" in report
    assert "Error by forecast step" in found.report.read_text()
    assert entry["cost"]["latency"] and entry["aspects"]["throughput"] and len(entry["showcase"]["series"]) == 4
    assert "Forecasts and actual values" in report and "| Step, counted from the last known value (0) |" in report
