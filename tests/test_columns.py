"""Columns by their roles: one way to name them in every command and every task, and files with other names."""

from __future__ import annotations

import csv
import io
import json
import random
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from test_cli import call

import seqloom
from seqloom import cli
from seqloom.compare import comparing
from seqloom.compare.comparing import Comparison
from seqloom.compare.plan import Plan
from seqloom.core.config import as_overrides, parse_overrides
from seqloom.core.errors import UserError
from seqloom.data.shapes import find_shape, shape_names
from seqloom.data.shapes.columns import column_options, parse_columns
from seqloom.runs.configure import read_request
from seqloom.runs.folder import RunFolder
from seqloom.runs.registry import find_config
from seqloom.runs.run import load

pytestmark = [pytest.mark.usefixtures("own_cache", "jobs_here", "short_probes")]

WORDS = ["small", "fine", "old", "machine", "lever", "cat", "house", "river", "green", "quick"]


class Case(NamedTuple):
    """A task, the roles of columns in a file of unusual names, and a model that is quick."""

    model: str
    ending: str
    roles: dict[str, str]
    others: dict[str, str]  # names of the same columns in another file
    inputs: tuple[str, ...] = ()  # roles that the other file has when there is something to predict


CASES = {
    "language_model": Case("gru", ".csv", {"text": "b1"}, {"text": "body"}),
    "masked_lm": Case("gru", ".csv", {"text": "b1"}, {"text": "body"}, ("text",)),
    "classification": Case(
        "tfidf", ".csv", {"text": "b1", "label": "b2"}, {"text": "body", "label": "verdict"}, ("text",)
    ),
    "translation": Case(
        "nearest", ".csv", {"source": "b1", "target": "b2"}, {"source": "en", "target": "fr"}, ("source",)
    ),
    "tagging": Case(
        "frequent", ".jsonl", {"words": "b1", "tags": "b2"}, {"words": "tokens", "tags": "labels"}, ("words",)
    ),
    "question_answering": Case(
        "gru",
        ".jsonl",
        {"question": "b1", "passage": "b2", "answers": "b3"},
        {"question": "query", "passage": "paragraph", "answers": "answer_text"},
        ("question", "passage"),
    ),
    "forecasting": Case(
        "naive",
        ".csv",
        {"time": "b1", "series": "b2", "targets": "b3"},
        {"time": "date", "series": "shop", "targets": "sold"},
        ("time", "series", "targets"),
    ),
}


def cell(role: str, n: int) -> Any:
    rng = random.Random(n)
    words = rng.sample(WORDS, 4)
    made: dict[str, Any] = {
        "text": f"the {' '.join(words)} is {'good' if n % 2 else 'bad'} <mask>",
        "label": "yes" if n % 2 else "no",
        "source": " ".join(words),
        "target": " ".join(words).upper(),
        "words": ["the", f"{words[0]}{n}", "sees", "Rome"],
        "tags": ["O", "O", "O", "B-LOC"],
        "question": f"Where is the {words[0]} {n}?",
        "passage": f"The {words[0]} {n} is in the {words[1]}.",
        "answers": {"text": ["The"], "answer_start": [0]},
        "time": f"2024-{1 + n // 28 % 12:02}-{1 + n % 28:02}",
        "series": "ab"[n // 56],
        "targets": 10 + n % 7,
    }
    return made[role]


def file(path: Path, columns: dict[str, str], rows: int = 112) -> str:
    """These columns (role: name), between two others that have no role."""
    first, last = ({}, {}) if "time" in columns else ({"key": "k{n}"}, {"remark": "none"})
    made = [
        {name: text.format(n=n) for name, text in first.items()}
        | {name: cell(role, n % 56 if role == "time" else n) for role, name in columns.items()}
        | last
        for n in range(rows)
    ]
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in made))
        return str(path)
    with path.open("w", newline="") as out:
        writer = csv.DictWriter(out, list(made[0]))
        writer.writeheader()
        writer.writerows(made)
    return str(path)


def tiny(task: str) -> list[str]:
    settings = ["train.steps=2", "train.batch=4", "train.threads=1"]
    settings += ["model.width=8"] if CASES[task].model == "gru" else []
    own = {"language_model": ["task.length=8"], "masked_lm": ["task.length=8"], "forecasting": ["task.horizon=3"]}
    return [*settings, *own.get(task, [])]


def flags(settings: list[str]) -> list[str]:
    return [word for setting in settings for word in ("-o", setting)]


def said(roles: dict[str, str]) -> str:
    return ",".join(f"{role}={name}" for role, name in roles.items())


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("columns")


@pytest.fixture(scope="module", params=CASES)
def task(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def data(task: str, desk: Path) -> str:
    return file(desk / f"{task}{CASES[task].ending}", CASES[task].roles)


@pytest.fixture(scope="module")
def trained(task: str, data: str, desk: Path) -> Path:
    """By the command, with --columns."""
    out, case = desk / f"{task}-run", CASES[task]
    words = ["fit", "--task", task, "--data", data, "--model", case.model, "--out", str(out), "--columns"]
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as end:
        patch.setattr(sys, "argv", ["seqloom", *words, said(case.roles), *flags(tiny(task))])
        cli.main()
    assert not end.value.code
    return out


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    return lambda *words: call(monkeypatch, capsys, *map(str, words))


def test_fit_takes_columns_by_their_roles(task: str, trained: Path) -> None:
    settings = RunFolder(trained).config().data
    options = column_options(find_shape(find_config("tasks", task).shapes[0]), CASES[task].roles)
    assert options.items() <= settings.items()


def test_doctor_takes_the_same_columns(task: str, data: str, run: Any) -> None:
    code, out, err = run("doctor", "--task", task, "--data", data, "--columns", said(CASES[task].roles))
    assert code == 0 and "columns:" not in out, err
    assert not [f for f in seqloom.doctor(data, task=task, columns=CASES[task].roles) if f.level == "error"]


def test_eval_takes_the_same_columns(task: str, data: str, trained: Path, run: Any) -> None:
    code, out, err = run("eval", trained, "--data", data, "--columns", said(CASES[task].roles), "--json")
    assert code == 0 and "columns:" not in err and "protocol" in json.loads(out)


def test_eval_finds_columns_of_other_names(task: str, trained: Path, desk: Path, run: Any) -> None:
    case = CASES[task]
    other = file(desk / f"{task}-other{case.ending}", case.others)
    code, out, err = run("eval", trained, "--data", other, "--json")
    assert code == 0 and err.startswith("columns: ") and len(err.splitlines()) == 1, err
    assert all(f"{role} = {name}" in err for role, name in case.others.items() if role != "answers")
    assert json.loads(out) == load(trained).evaluate(other, columns=case.others)


def test_predict_needs_only_its_inputs_whatever_they_are_called(task: str, trained: Path, desk: Path, run: Any) -> None:
    case = CASES[task]
    other = file(desk / f"{task}-inputs{case.ending}", {role: case.others[role] for role in case.inputs} or case.others)
    code, out, err = run("predict", trained, "--data", other)
    if task == "language_model":
        assert code == 2 and "use seqloom generate" in err
        return
    assert code == 0 and err.startswith("columns: ") and len(err.splitlines()) == 1, err
    found = [json.loads(line) for line in out.splitlines()]
    given = {role: case.others[role] for role in case.inputs}
    assert list(load(trained).predict(other, columns=given)) == found
    code, again, err = run("predict", trained, "--data", other, "--columns", said(given))
    assert code == 0 and again == out and not err


def test_compare_plans_with_the_same_columns(
    task: str, data: str, run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plans: list[Plan] = []

    def planned(plan: Plan, *_: Any, **__: Any) -> Comparison:
        plans.append(plan)
        return Comparison(tmp_path, {"best": "none"})

    monkeypatch.setattr(comparing, "conduct", planned)
    roles = CASES[task].roles
    code, _, err = run("compare", "--task", task, "--data", data, "--columns", said(roles), "--json")
    seqloom.compare(task=task, data=data, columns=roles, quiet=True)
    assert code == 0 and plans[0] == plans[1], err
    options = column_options(find_shape(find_config("tasks", task).shapes[0]), roles)
    wanted = read_request(None, {"task.name": task, "data.train": data}, plans[0].overrides).given["data"]
    assert options.items() <= wanted.items()


@pytest.mark.long
def test_a_comparison_by_columns_is_resumed(tmp_path: Path, run: Any) -> None:
    data = file(tmp_path / "a.csv", {"text": "b1", "label": "b2", "source": "b3"})
    words = ["compare", "--data", data, "--models", "gru", "--columns", "text=b1,label=b2", "--out", tmp_path / "c"]
    words += ["--budget", "tokens=6k", "--trials", "0", "--seeds", "1", "--params", "9k", "--json"]
    code, out, err = run(*words)
    assert code == 0 and "task: classification" in err, err
    (entry,) = [entry for entry in json.loads(out)["entries"] if entry["name"] == "gru"]
    assert "data.column=b1" in entry["command"] and "data.label=b2" in entry["command"]
    assert run(*words)[0] == 0
    code, _, err = run(*words, "--columns", "second=b3")
    assert code == 2 and "holds another comparison" in err


def test_commas_separate_only_before_a_role() -> None:
    assert parse_columns(["text=review,label=stars"]) == {"text": "review", "label": "stars"}
    assert parse_columns(["time=date,targets=load,temp,series=town"]) == {
        "time": "date",
        "targets": "load,temp",
        "series": "town",
    }
    assert parse_columns(["text=Dear Sir, or Madam", "label=2"]) == {"text": "Dear Sir, or Madam", "label": "2"}
    assert parse_columns(["text=a=b, label = stars"]) == {"text": "a=b", "label": "stars"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("review", "--columns review: write ROLE=NAME, for example"),
        ("text=", "text= names no column"),
        ("text=a,text=b", "text is given twice, a and b"),
        ("text=a,lable=b", "unknown role 'lable'; did you mean 'label'? this task has text, second, label"),
        ("source=a", "unknown role 'source'; this task has text, second, label"),
    ],
)
def test_a_mistake_in_columns_is_one_line(tmp_path: Path, run: Any, given: str, message: str) -> None:
    words = ["fit", "--task", "classification", "--data", "x.csv", "--out", tmp_path / "r", "--columns", given]
    code, _, err = run(*words)
    assert code == 2 and message in err and len(err.splitlines()) == 1


def test_words_and_tags_may_be_named_or_numbered_in_the_singular_too() -> None:
    shape = find_shape("tagged")
    assert column_options(shape, {"words": "1", "tags": -1}) == {"word": 1, "tag": -1}
    assert column_options(shape, {"word": "tokens", "tag": "ner"}) == {"words": "tokens", "tags": "ner"}


def test_a_name_where_there_are_numbers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text("Ada B-PER\nruns O\n\n" * 9)
    (only,) = seqloom.doctor(str(tmp_path / "a.conll"), task="tagging", columns={"words": "form"})
    assert only.level == "error" and "have numbers, not names: --columns words=1,tags=-1" in only.message
    lists = file(tmp_path / "a.jsonl", {"words": "words", "tags": "tags"}, 9)
    (only,) = seqloom.doctor(lists, task="tagging", columns={"tags": 2})
    assert only.level == "error" and "names, not numbers" in only.message


def test_every_role_sets_an_option_of_its_shape() -> None:
    for name in shape_names():
        shape = find_shape(name)
        options = {*shape.columns.values(), *shape.numbered, *shape.numbered.values(), *shape.inputs}
        assert shape.columns and options <= shape.options.model_fields.keys(), name


@pytest.mark.parametrize("value", ["stars", "2", "true", "a b", '"x"', "1, 2", " x", "评分", 3, -1])
def test_a_name_survives_as_an_override(value: str | int) -> None:
    found = parse_overrides(as_overrides({"data.label": value}))["data.label"]
    assert found == value


@pytest.mark.parametrize(
    ("option", "now"),
    [
        ("--label", "--columns label=NAME"),
        ("--column", "--columns text=NAME"),
        ("--tag", "--columns tags=NAME"),
        ("--separator", "-o data.separator=TEXT"),
    ],
)
def test_an_old_option_names_the_new_one(run: Any, option: str, now: str) -> None:
    code, _, err = run("doctor", "--data", "x.csv", option, "y")
    assert code == 2 and f"No such option: {option}; use {now}" in err and len(err.splitlines()) == 1


def test_a_second_text_that_is_not_there_is_asked_for(tmp_path: Path) -> None:
    rows = [{"a": cell("text", n), "b": cell("source", n), "label": cell("label", n)} for n in range(60)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = seqloom.fit(task="classification", data=str(tmp_path / "a.jsonl"), model="tfidf", out=tmp_path / "r",
                      columns={"text": "a", "second": "b"}, quiet=True)  # fmt: skip
    (tmp_path / "b.jsonl").write_text("".join(json.dumps({"a": row["a"], "c": row["b"]}) + "\n" for row in rows))
    with pytest.raises(UserError, match=r"no column 'b', which the run reads; say which: --columns second=NAME"):
        run.predict(str(tmp_path / "b.jsonl"))
    assert len(list(run.predict(str(tmp_path / "b.jsonl"), columns={"second": "c"}))) == 60


def test_covariates_of_other_names_are_asked_for_and_taken_in_order(tmp_path: Path) -> None:
    lines = [f"2024-01-{1 + n % 28:02},{10 + n % 5},{n % 3},{n % 4}" for n in range(28)]
    for name, header in (("a.csv", "date,load,wind,rain"), ("b.csv", "day,use,gust,wet")):
        (tmp_path / name).write_text("\n".join([header, *lines]) + "\n")
    run = seqloom.fit(task="forecasting", data=str(tmp_path / "a.csv"), model="naive", out=tmp_path / "r", quiet=True,
                      columns={"targets": "load", "past": "wind,rain"}, overrides=["task.horizon=2"])  # fmt: skip
    with pytest.raises(UserError, match=r"no column 'load', one of the targets .*say which, .*--columns targets=use"):
        run.predict(str(tmp_path / "b.csv"))
    given = {"targets": "use", "past": "gust,wet"}
    rows = list(run.predict(str(tmp_path / "b.csv"), columns=given))
    assert rows == list(run.predict(str(tmp_path / "a.csv"))) and "load" in rows[0]
    with pytest.raises(UserError, match=r"the past in training were wind, rain; give as many"):
        list(run.predict(str(tmp_path / "b.csv"), columns=given | {"past": "gust"}))


def test_text_from_standard_input_is_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    from seqloom.data.piped import spooled

    def kind(text: str, numbered: bool = False) -> str:
        with spooled(io.BytesIO(text.encode()), numbered) as path:
            assert path.read_text() == text
            return path.suffix

    assert kind('{"text": "a"}\n{"text": "b"}\n') == ".jsonl"
    assert kind('{"data": [], "version": "1.1"}') == kind('{\n "data": []\n}\n') == ".json"
    assert kind("text\tlabel\na\tb\n") == ".tsv" and kind("text,label\na b,1\nc d,2\n") == ".csv"
    assert kind("Hello, you.\nGood morning, Sir.\n") == kind("one\ntwo\n") == ".txt"
    assert kind("a,the cat\nb,a dog\n", numbered=True) == ".csv"
    with pytest.raises(UserError, match="standard input is empty"):
        kind("")


def test_a_tagger_reads_other_forms_of_the_same_data(tmp_path: Path) -> None:
    pairs = [[("Ada", "N"), (f"runs{n}", "V"), ("far", "A")] for n in range(40)]
    lists = [{"tokens": [word for word, _ in row], "pos": [tag for _, tag in row]} for row in pairs]

    def conllu(n: int, word: str, tag: str) -> str:
        return f"{n}\t{word}\t_\t{tag}\t_\t_\t0\t_\t_\t_"

    texts = {
        "a.jsonl": "".join(json.dumps(row) + "\n" for row in lists),
        "b.conll": "\n\n".join("\n".join(f"{word} {tag}" for word, tag in row) for row in pairs) + "\n",
        "c.conllu": "\n\n".join("\n".join(conllu(n, *pair) for n, pair in enumerate(row, 1)) for row in pairs) + "\n",
        "d.txt": "Ada runs far\nAda runs away\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    for name in ("a.jsonl", "c.conllu"):
        out = tmp_path / f"{name}-run"
        run = seqloom.fit(task="tagging", data=str(tmp_path / name), model="frequent", out=out, quiet=True)
        scores = [run.evaluate(str(tmp_path / other))["accuracy"] for other in ("a.jsonl", "b.conll", "c.conllu")]
        assert scores[0] == scores[1] == scores[2]
        words = [[row["words"] for row in run.predict(str(tmp_path / other))] for other in ("b.conll", "c.conllu")]
        assert words[0] == words[1] == [row["tokens"] for row in lists]
        assert len(list(run.predict(str(tmp_path / "d.txt")))) == 2


def test_measurements_of_other_names_are_found(tmp_path: Path) -> None:
    def steps(header: str) -> str:
        lines = [f"{n // 4},{'ab'[n // 4 % 2]},{n / 7:.3f},{n % 5}.5" for n in range(160)]
        return "\n".join([header, *lines]) + "\n"

    (tmp_path / "a.csv").write_text(steps("id,label,x,z"))
    (tmp_path / "b.csv").write_text(steps("trial,gesture,x,z"))
    settings = ["task.input=measurements", "train.steps=1", "train.batch=4", "model.width=8"]
    run = seqloom.fit(task="classification", data=str(tmp_path / "a.csv"), model="gru", out=tmp_path / "r",
                      overrides=settings, quiet=True)  # fmt: skip
    said: list[str] = []
    run.say = said.append
    scores = [run.evaluate(str(tmp_path / name))["loss"] for name in ("b.csv", "a.csv")]
    assert scores[0] == scores[1]
    assert said[0] == "columns: label = gesture, row = trial"
