"""`seqloom prompt`: accuracy against the number of examples, with intervals, and resumed where it stopped."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import foreign
import numpy as np
import pytest
from scipy import stats
from test_prompting import SMALL, rows_file

import seqloom
from seqloom import cli
from seqloom.adapt import prompting
from seqloom.adapt.prompting import OVER_DRAWS, OVER_ROWS, binomial_interval, t_interval
from seqloom.core.errors import UserError
from seqloom.runs.fit import fit

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("own_cache")]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("models") / "llama"
    foreign.save(folder, "Llama", SMALL)
    (folder / "tokenizer_config.json").write_text(json.dumps({**foreign.MARKS, "chat_template": CHATML}))
    return f"hf:{folder}"


CHATML = "{% for m in messages %}<s>{{ m.role }}\n{{ m.content }}</s>{% endfor %}<s>assistant\n"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rows_file(tmp_path_factory.mktemp("data"))


def command(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["seqloom", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    said = capsys.readouterr()
    return int(end.value.code or 0), said.out, said.err


def test_intervals_are_those_of_the_books() -> None:
    values = np.array([0.5, 0.6, 0.8])
    wanted = stats.t.interval(0.95, 2, values.mean(), stats.sem(values))
    assert t_interval(values) == pytest.approx((max(0, wanted[0]), min(1, wanted[1])))
    for hits in (0, 3, 20):
        exact = stats.binomtest(hits, 20).proportion_ci(method="exact")
        assert binomial_interval(hits / 20, 20) == pytest.approx((exact.low, exact.high))


def test_a_curve_has_points_with_intervals_and_goes_on_where_it_stopped(
    source: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    how: dict[str, Any] = {"test": str(data), "draws": 2, "rows": 10, "out": tmp_path / "curve", "quiet": True}
    first = seqloom.prompt(source, str(data), shots=[0, 1], **how)
    assert [(p["shots"], p["draws"], p["interval"]) for p in first.points] == [(0, 1, OVER_ROWS), (1, 2, OVER_DRAWS)]
    assert all(p["low"] <= p["accuracy"] <= p["high"] for p in first.points)
    assert first.facts["rows"] == 10 and 0 < first.facts["majority"] <= 1
    assert json.loads((tmp_path / "curve" / "curve.json").read_text()) == first.facts
    scored: list[tuple[int, int]] = []
    real = prompting._Local.score
    monkeypatch.setattr(prompting._Local, "score", lambda self, k, s: (scored.append((k, s)), real(self, k, s))[1])
    again = seqloom.prompt(source, str(data), shots=[0, 1, 2], **how)
    assert scored == [(2, 0), (2, 1)] and again.points[:2] == first.points
    with pytest.raises(UserError, match=r"holds another curve \(different: template\); choose another --out"):
        template = tmp_path / "my.toml"
        template.write_text('example = "{text} {label}"')
        seqloom.prompt(source, str(data), shots=[0], template=template, **how)
    (tmp_path / "curve" / "curve.json").write_text("[]")
    with pytest.raises(UserError, match="damaged, or not written by seqloom prompt"):
        seqloom.prompt(source, str(data), shots=[0], **how)


def test_a_point_is_what_a_run_with_that_seed_scores(source: str, data: Path, tmp_path: Path) -> None:
    curve = seqloom.prompt(source, data, test=data, shots=[2], draws=1, seed=4, out=tmp_path / "curve", quiet=True)
    options = {"train.method": "prompt", "task.shots": 2, "train.seed": 4, "task.calibrate": False}
    run = fit(
        data=data, test=data, task="classification", start=source, out=tmp_path / "run", options=options, quiet=True
    )
    scores = run.summary["scores"]["test"]
    found = curve.facts["scores"]["2/4"]
    assert (found["accuracy"], found["loss"]) == pytest.approx((scores["accuracy"], scores["loss"]))


def test_a_chat_is_prompted_by_its_template(source: str, data: Path, tmp_path: Path) -> None:
    (tmp_path / "chat.toml").write_text('chat = true\ninstruction = "One of {labels}"\n')
    options = {"train.method": "prompt", "task.shots": 1, "task.prompt": str(tmp_path / "chat.toml"), "task.scored": 4}
    run = fit(data=data, task="classification", start=source, out=tmp_path / "run", options=options, quiet=True)
    shown = run.task.prompt(run.model, "the row </s>")
    assert shown.startswith("<s>system\nOne of bad, good</s><s>user\nText: ")
    assert shown.endswith("<s>user\nText: the row </s>\nCategory:</s><s>assistant")
    head = run.model.head
    assert (head.prefix == run.tokenizer.eos).sum() == 5 and head.suffix[0] == run.tokenizer.eos


def test_a_chat_template_that_repeats_the_row_is_refused(data: Path, tmp_path: Path) -> None:
    foreign.save(tmp_path / "echo", "Llama", SMALL)
    twice = {**foreign.MARKS, "chat_template": CHATML.replace("{{ m.content }}", "{{ m.content }}{{ m.content }}")}
    (tmp_path / "echo" / "tokenizer_config.json").write_text(json.dumps(twice))
    (tmp_path / "chat.toml").write_text("chat = true\n")
    options = {"train.method": "prompt", "task.prompt": str(tmp_path / "chat.toml")}
    how: dict[str, Any] = {"start": f"hf:{tmp_path / 'echo'}", "out": tmp_path / "run", "quiet": True}
    with pytest.raises(UserError, match="writes the row 2 times instead of once; leave chat out"):
        fit(data=data, task="classification", options=options, **how)


def test_the_command_prints_a_table(
    source: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    words = ["prompt", source, "--data", str(data), "--shots", "0,1", "--draws", "2", "--out", str(tmp_path / "curve")]
    code, out, _ = command(words, monkeypatch, capsys)
    assert code == 0 and "examples per label" in out and OVER_DRAWS in out and OVER_ROWS in out
    assert "most frequent label" in out
    code, out, err = command([*words, "--json"], monkeypatch, capsys)
    assert code == 0 and json.loads(out)["points"][0]["shots"] == 0
    code, out, err = command(["prompt", "x", "--data", "d", "--out", "o", "--shots", "a"], monkeypatch, capsys)
    assert (code, err) == (2, "seqloom: --shots a: give whole numbers, for example 0,1,2,4,8\n")
    code, out, err = command(["prompt", "--help"], monkeypatch, capsys)
    assert code == 0 and "--template" in out
