"""Question answering from end to end: fit, evaluate, predict, in Python and on the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
import torch

from seqloom import cli
from seqloom.data.samples.facts import facts
from seqloom.runs.fit import fit
from seqloom.runs.run import load

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A few hundred questions of the sample, on the disk, with some faults."""
    folder = tmp_path_factory.mktemp("facts")
    rows = list(islice(facts("en"), 160))
    rows[0]["answers"] = {"text": ["nowhere to be found"], "answer_start": [3]}
    moved = next(row for row in rows[1:] if row["context"].count(row["answers"]["text"][0]) == 1)
    moved["answers"]["answer_start"] = [-1]
    rows[-1]["answers"] = {"text": [], "answer_start": []}
    (folder / "facts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    yield folder / "facts.jsonl"


QUICK = ["model.width=16", "train.steps=3", "train.threads=1", "tokenizer.kind=words", "task.batch_tokens=600"]


@pytest.mark.parametrize("model", ["gru", "transformer"])
def test_a_run_saved_and_loaded_answers_the_same(data: Path, tmp_path: Path, model: str) -> None:
    run = fit(
        None, task="question_answering", data=str(data), model=model, out=tmp_path / "run", overrides=QUICK, quiet=True
    )
    again = load(tmp_path / "run")
    assert list(run.predict(str(data))) == list(again.predict(str(data)))
    scores = run.summary["scores"]["valid"]
    assert 0 <= scores["exact"] <= scores["f1"] <= 1 and "best sentence" in scores["baselines"]
    assert again.evaluate(str(data))["questions"] == 160
    assert run.summary["tokens"] > 1000, "tokens that were read, not windows"


@pytest.mark.parametrize("model", ["bert", "lstm"])
def test_a_run_begins_with_the_encoder_of_another(data: Path, tmp_path: Path, model: str) -> None:
    """The table, the backbone, the tokenizer and what can be read are those of the first."""
    (tmp_path / "book.txt").write_text("\n".join(row["context"] for row in islice(facts("en"), 40)))
    words = ["tokenizer.kind=words", "train.steps=2", "train.threads=1"]
    both = ["model.bidirectional=true"] if model == "lstm" else ["model.context=112", "model.depth=1"]
    first = [*words, *both, "model.width=16", "task.length=32"]
    fit(None, task="masked_lm", data=str(tmp_path / "book.txt"), model=model, out=tmp_path / "first",
        overrides=first, quiet=True)  # fmt: skip
    run = fit(None, task="question_answering", data=str(data), start=str(tmp_path / "first"), out=tmp_path / "second",
              overrides=[*words, "train.rate=1e-30", "train.matrix_rate=1e-30"], quiet=True)  # fmt: skip
    before = load(tmp_path / "first")
    assert run.tokenizer.hash == before.tokenizer.hash and run.config.model["name"] == model
    assert model == "lstm" or run.config.task["window"] == 112
    then, now = before.model.state_dict(), run.model.state_dict()
    taken = [name for name in now if name in then and not name.startswith("head.")]
    assert "embed.weight" in taken and all(torch.allclose(now[name], then[name]) for name in taken)


def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, *words: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["seqloom", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    said = capsys.readouterr()
    return int(end.value.code or 0), said.out, said.err


def test_the_command_line_from_fit_to_predict(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    run = str(tmp_path / "run")
    settings = [
        word for setting in [*QUICK, "task.no_answer=true", "model.bidirectional=true"] for word in ("-o", setting)
    ]
    words = ["--task", "question_answering", "--data", str(data), "--model", "lstm", "--out", run, *settings]
    code, out, err = call(monkeypatch, capsys, "fit", *words)
    assert code == 0, err
    assert "best sentence baseline" in out and "exact" in out
    assert "1 answers moved to the only occurrence" in err and "1 unanswerable questions" in err
    code, out, err = call(monkeypatch, capsys, "eval", run, "--data", str(data), "--json")
    assert code == 0 and json.loads(out)["questions"] == 160, err
    code, out, err = call(
        monkeypatch, capsys, "predict", run, "--data", str(data), "--out", str(tmp_path / "out.jsonl")
    )
    assert code == 0 and "160 predictions" in out, err
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["line"] for row in found] == list(range(1, 161))
    own = {"line", "question", "context", "answers"}
    assert own | {"answer", "start", "end", "score", "n_best"} == set(found[0])
    passage = "The currency of Samoa is the Samoan Tala."
    ask = ("predict", run, "--text", "What is the currency of Samoa?", "--n-best", "2")
    code, out, err = call(monkeypatch, capsys, *ask, "--passage", passage)
    answer = json.loads(out)
    assert code == 0 and all(passage[one["start"] : one["end"]] == one["answer"] for one in answer["n_best"]), err
    code, _, err = call(monkeypatch, capsys, *ask)
    assert code == 2 and "give --passage TEXT" in err
    code, _, err = call(monkeypatch, capsys, "predict", run, "--data", str(data), "--passage", passage)
    assert code == 2 and "--passage: belongs to the question in --text" in err
