"""Classification: the same for every model, padded or not, alone or among others; from a file to a prediction."""

from __future__ import annotations

import json
import random
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score, log_loss
from support import foreign, in_chinese
from toys import Case, accepted, alive, close, each, every_case, title

from seqloom import cli
from seqloom.core.batch import IGNORE, cut
from seqloom.core.errors import UserError
from seqloom.core.order import plan_epoch
from seqloom.core.task import Order
from seqloom.data.shapes.labelled.vocabulary import LabelledTokenizer
from seqloom.runs.fit import fit
from seqloom.runs.registry import find_config
from seqloom.runs.run import Run, load
from seqloom.tasks.classification import showing
from seqloom.tasks.classification.scores import calibration_error, fit_temperature, judge
from seqloom.tasks.classification.task import Classification, Config
from seqloom.tokenizers import train_tokenizer

pytestmark = pytest.mark.long

LABELS = ["a", "b", "c"]


def task(multi: bool = False, **options: Any) -> Classification:
    known = LabelledTokenizer(train_tokenizer("characters", ["abcdefgh"]), LABELS, multi)
    return Config.model_validate({"longest": 24, **options}).build(known)


def model_of(name: str, options: dict[str, Any], **task_options: Any) -> Any:
    config = find_config("models", name).model_validate({"width": 16, **options})
    return alive(config.reading(24).assemble(task(**task_options)))


CASES = [case for case in every_case() if accepted(model_of, *case)]
each_model = pytest.mark.parametrize("case", CASES, ids=title)


def rows(count: int, longest: int = 20, multi: bool = False, parts: int = 1, seed: int = 0) -> Any:
    chance = random.Random(seed)
    ids = [[np.array([*chance.choices(range(4, 12), k=chance.randint(1, longest)), 2]) for _ in range(parts)]
           for _ in range(count)]  # fmt: skip
    labels = [sorted(chance.sample(range(3), chance.randint(0, 3))) if multi else [chance.randrange(3)] for _ in ids]
    lengths = np.array([1 + sum(map(len, row)) for row in ids])
    texts = [tuple("x" * len(part) for part in row) for row in ids]
    return _Rows(lengths=lengths, labels=labels, parts=ids.__getitem__, unknown={}, texts=lambda: iter(texts))


class _Rows(SimpleNamespace):
    def __len__(self) -> int:
        return len(self.labels)


def test_every_kind_of_model_takes_part() -> None:
    names = {name for name, _ in CASES}
    assert {"bert", "gpt", "lstm", "gru", "rnn", "seq2seq", "transformer", "mingru", "ttt", "window"} <= names
    assert "ngram" not in names


@each_model
@each(pooling=["mean", "max", "last", "first", "attention"])
def test_padding_and_company_change_nothing(case: Case, pooling: str) -> None:
    model, own = model_of(*case, pooling=pooling), task(pooling=pooling)
    some = rows(5)
    batch = own.collate(some, np.arange(5))
    with torch.no_grad():
        together = model.encode(batch.inputs, batch.mask)
        for n in range(5):
            alone = own.collate(some, np.array([n]))
            close(together[n], model.encode(alone.inputs, None)[0])


@pytest.mark.parametrize("case", [case for case in CASES if model_of(*case).descends], ids=title)
def test_every_weight_learns_that_is_there(case: Case) -> None:
    """Decoders that nobody asks are not even built; one step changes all the rest that the rows touch."""
    model, own = model_of(*case), task()
    own.loss(model, own.collate(rows(6), np.arange(6))).loss.backward()
    still = [name for name, p in model.named_parameters() if p.grad is None and "parts" not in name]
    assert not [name for name in still if "query" not in name], still


@each(multi=[False, True])
def test_pieces_of_nothing_cost_nothing_and_gradients_add_up(multi: bool) -> None:
    own, some = task(multi), rows(7, multi=multi)
    model = model_of("gru", {}, multi=multi)
    whole = own.loss(model, own.collate(some, np.arange(7)))
    parts = [own.loss(model, own.collate(some, chosen)) for chosen in (np.arange(3), np.arange(3, 7), np.arange(0))]
    close(whole.loss, torch.stack([part.loss for part in parts]).sum())
    assert [part.count for part in parts] == [3, 4, 0] and whole.count == 7
    assert whole.tokens == int(some.lengths.sum())


def test_every_row_comes_once_in_an_epoch_whatever_the_processes() -> None:
    own, some = task(batch_tokens=60), rows(40)
    orders = [Order(8, world=2, rank=rank) for rank in (0, 1)]
    plan = plan_epoch(np.arange(40), np.minimum(some.lengths, 24), 0, 0, 8, 60)
    assert sorted(np.concatenate(plan)) == list(range(40))
    first = [step[0] for step in islice(own.batches(some, Order(8), False), len(plan))]
    assert [len(batch.targets) for batch in first] == [len(batch) for batch in plan]
    one = [b for step in islice(own.batches(some, Order(8), False), 12) for b in step]
    two = [b for steps in zip(*(islice(own.batches(some, o, False), 12) for o in orders), strict=True) for s in steps for b in s]  # fmt: skip  # noqa: E501
    count = [sum(int((b.targets != IGNORE).sum()) for b in batches) for batches in (one, two)]
    assert count[0] == count[1]
    later = next(own.batches(some, Order(8, start=5), False))[0]
    again = list(islice(own.batches(some, Order(8), False), 6))[5][0]
    assert torch.equal(later.inputs, again.inputs)


@pytest.mark.parametrize(("keep", "wanted"), [("start", [0, 1, 2]), ("end", [7, 8, 9]), ("both", [0, 1, 9])])
def test_what_is_cut(keep: str, wanted: list[int]) -> None:
    assert cut(np.arange(10), 3, keep).tolist() == wanted
    assert cut(np.arange(3), 3, keep).tolist() == [0, 1, 2]


def test_long_texts_keep_their_marks_and_the_longer_is_cut_first() -> None:
    own = task(longest=10)
    long, short = np.array([*range(4, 12), 4, 5, 2]), np.array([7, 2])
    assert own.sequence([long]).tolist() == [1, 4, 5, 6, 7, 8, 9, 10, 11, 2]
    assert own.sequence([long, short]).tolist() == [1, 4, 5, 6, 7, 8, 9, 2, 7, 2]
    both = own.sequence([long, long]).tolist()
    assert len(both) == 10 and both.count(2) == 2 and both[-1] == 2
    assert own.sequence([short]).tolist() == [1, 7, 2]


def test_scores_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    chances = rng.dirichlet(np.ones(3), 200)
    wanted = rng.integers(0, 3, 200)
    scores, right = judge(chances, wanted, LABELS)
    assert scores["accuracy"] == pytest.approx(accuracy_score(wanted, chances.argmax(1))) == right.mean()
    assert scores["macro_f1"] == pytest.approx(f1_score(wanted, chances.argmax(1), average="macro"))
    assert scores["loss"] == pytest.approx(log_loss(wanted, chances))
    assert np.array(scores["confusion"]).sum() == 200
    several = rng.random((100, 3))
    truth = (rng.random((100, 3)) < 0.4).astype(float)
    found, _ = judge(several, truth, LABELS)
    assert found["micro_f1"] == pytest.approx(f1_score(truth, several >= 0.5, average="micro"))
    assert found["macro_f1"] == pytest.approx(f1_score(truth, several >= 0.5, average="macro"))
    assert found["accuracy"] == pytest.approx(accuracy_score(truth, several >= 0.5))


def test_a_label_that_training_never_saw_is_wrong_and_has_no_loss() -> None:
    chances = np.array([[0.9, 0.1], [0.2, 0.8]])
    scores, right = judge(chances, np.array([0, IGNORE]), ["a", "b"])
    assert right.tolist() == [True, False] and scores["accuracy"] == 0.5
    assert scores["loss"] == pytest.approx(-np.log(0.9)) and scores["classes"]["b"]["precision"] == 0


def test_calibration() -> None:
    assert calibration_error(np.array([0.75] * 4), np.array([True, True, True, False])) == pytest.approx(0.0)
    assert calibration_error(np.array([1.0] * 4), np.array([True, False, False, False])) == pytest.approx(0.75)
    true = torch.distributions.Categorical(logits=torch.randn(4000, 3, generator=torch.manual_seed(0)))
    wanted = true.sample()
    assert fit_temperature(true.logits * 4, wanted) == pytest.approx(4.0, rel=0.1)
    assert fit_temperature(torch.randn(3, 2), torch.full((3,), IGNORE)) == 1.0


def write(path: Path, count: int = 80, second: bool = False, multi: bool = False) -> Path:
    """Texts whose label is whether a word stands in them."""
    chance = random.Random(1)
    lines = []
    for _ in range(count):
        words = chance.choices(["one", "two", "three", "four"], k=chance.randint(2, 8))
        label: Any = "yes" if "two" in words else "no"
        if multi:
            label = sorted(set(words) & {"one", "two"})
        lines.append({"text": " ".join(words), "label": label} | ({"other": words[0]} if second else {}))
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


QUICK = ["train.steps=3", "train.threads=1", "model.width=16", "tokenizer.min_count=1", "task.longest=16"]


def small(folder: Path, data: Path | str, model: str = "gru", *extra: str, **flags: Any) -> Run:
    options = [*QUICK, *extra]
    return fit(None, task="classification", data=str(data), model=model, out=folder / "run", overrides=options,
               quiet=True, **flags)  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [
        ["task.pooling=attention", "task.weights=balanced"],
        ["task.pooling=max", "task.smoothing=0.1", "task.head_dropout=0"],
        ["task.pooling=last", "task.word_dropout=0.3", "task.keep=end", "task.longest=4"],
        ["task.pooling=first", "task.calibrate=false", "task.keep=both", "task.longest=5"],
        ["tokenizer.kind=characters", "task.batch_tokens=0", "train.batch=8", "train.accumulate=2"],
        ["tokenizer.kind=bpe", "tokenizer.vocabulary=300", "task.scored=4", "task.validation=3"],
        ["tokenizer.kind=bytes", "task.batch_tokens=100"],
        ["tokenizer.split=space", "tokenizer.min_count=2", "tokenizer.vocabulary=50"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("model", ["gru", "bert"])
def test_every_option_works_and_comes_back_from_the_folder(tmp_path: Path, model: str, options: list[str]) -> None:
    run = small(tmp_path, write(tmp_path / "a.jsonl"), model, *options)
    scores = run.summary["scores"]["valid"]
    assert 0 <= scores["accuracy"] <= 1 and scores["baselines"].keys() == {"majority", "tf-idf"}
    assert np.mean(scores["pieces"]) == pytest.approx(scores["accuracy"])
    again = load(tmp_path / "run")
    (answer,) = again.predict(texts=["one two"])
    assert sum(answer["probabilities"].values()) == pytest.approx(1, abs=1e-4)
    assert answer["label"] in ("yes", "no") and answer["probability"] == answer["probabilities"][answer["label"]]


@pytest.mark.long
def test_it_learns_whether_a_word_is_there_and_says_how_sure_it_is(tmp_path: Path) -> None:
    data = write(tmp_path / "a.jsonl", 400)
    run = small(tmp_path, data, "gru", "train.steps=250", "model.bidirectional=true", "task.batch_tokens=256",
                "train.rate=1e-2")  # fmt: skip
    assert run.summary["scores"]["valid"]["accuracy"] > 0.95
    assert float(run.model.get_submodule("head").temperature) != 1.0  # type: ignore[arg-type]
    labels = [answer["label"] for answer in run.predict(texts=["one two", "three four", ""])]
    assert labels == ["yes", "no", None]


def test_two_texts_and_several_labels(tmp_path: Path) -> None:
    data = write(tmp_path / "a.jsonl", second=True)
    run = small(tmp_path / "two", data, "bert", "data.second=other")
    rows_of = list(run.predict(str(data)))
    assert len(rows_of) == 80 and {"text", "other", "label"} <= rows_of[0].keys()
    many = small(tmp_path / "many", write(tmp_path / "b.jsonl", multi=True), "gru", "data.separator=|")
    scores = many.summary["scores"]["valid"]
    assert {"micro_f1", "macro_f1", "accuracy"} <= scores.keys() and "tf-idf" in scores["baselines"]
    (answer,) = many.predict(texts=["one two"])
    assert isinstance(answer["labels"], list) and answer["probabilities"].keys() == {"one", "two"}


@pytest.mark.long
def test_measurements(tmp_path: Path) -> None:
    run = small(tmp_path, "sample:waves", "gru", "task.longest=20")
    assert run.summary["scores"]["valid"]["baselines"].keys() == {"majority", "mean and deviation"}
    assert [row["line"] for row in islice(run.predict("sample:waves"), 3)] == [1, 2, 3]
    np.savez(tmp_path / "b.npz", frames=np.ones((2, 5, 3)), label=[1, 2])
    with pytest.raises(UserError, match="3 features, but training had 2"):
        run.evaluate(str(tmp_path / "b.npz"))


@pytest.mark.parametrize(
    ("lines", "options", "wanted"),
    [
        (['{"text": "x y", "label": "a"}'] * 40, [], "only the label 'a'; there is nothing to classify"),
        ([], [], "no rows to learn from"),
        (
            None,
            ["model.context=8"],
            r"task.longest=16 is longer than the model's context 8; set task.longest=8, or, .*, model.context=16",
        ),
    ],
)
def test_what_cannot_be_learned_is_one_clear_line(
    tmp_path: Path, lines: list[str] | None, options: list[str], wanted: str
) -> None:
    path = write(tmp_path / "a.jsonl")
    if lines is not None:
        path.write_text("\n".join(f'{line[:-1]}, "n": {n}}}' for n, line in enumerate(lines)))
    with pytest.raises(UserError, match=wanted):
        small(tmp_path, path, "gpt" if options else "gru", "data.valid_fraction=0", *options)


def test_labels_only_in_the_validation_part_are_said_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    valid = tmp_path / "valid.jsonl"
    valid.write_text('{"text": "one", "label": "no"}\n{"text": "two", "label": "perhaps"}\n')
    options = [*QUICK, "task.longest=4"]
    data = write(tmp_path / "a.jsonl")
    run = fit(None, task="classification", data=str(data), valid=str(valid), model="gru", out=tmp_path / "run",
              overrides=options)  # fmt: skip
    told = capsys.readouterr()
    assert "labels unknown to training: 'perhaps' (1); counted as wrong" in told.err + told.out
    assert "rows are longer than 4 tokens: only the start is read" in told.err + told.out
    scores = run.summary["scores"]["valid"]
    assert "1 with a label unknown to training, counted as wrong" in scores["protocol"] and scores["accuracy"] <= 0.5


def test_the_command_line_from_a_file_to_a_prediction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> str:
        monkeypatch.setattr("sys.argv", ["seqloom", *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        told = capsys.readouterr()
        assert end.value.code == 0, told.err
        return told.out

    options = ["-o", "train.steps=2", "-o", "model.width=16", "-o", "tokenizer.kind=characters", "-o", "task.scored=50"]
    data = str(write(tmp_path / "a.jsonl"))
    run("fit", "--task", "classification", "--data", data, "--model", "bert", "--out", "r", *options)
    assert "macro f1" in run("eval", "r", "--data", data)
    assert json.loads(run("predict", "r", "--text", "Bonjour"))["label"]
    monkeypatch.setattr("sys.argv", ["seqloom", "predict", "r", "--text", "Bonjour", "--beams", "2"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2 and "a classification run has no such option" in capsys.readouterr().err


def test_a_part_of_a_sorted_file_has_every_label_in_its_share() -> None:
    asked, known = task(scored=30, validation=12), rows(300)
    known.labels = [[n // 100] for n in range(300)]
    model = model_of("gru", {}).eval()
    whole, quick = asked.evaluate(model, known), asked.evaluate(model, known, quick=True)
    assert [row["count"] for row in whole["classes"].values()] == [10, 10, 10]
    assert "30 of 300 rows, evenly spaced" in whole["protocol"] and "12 of 300 rows" in quick["protocol"]
    found = asked.baselines(known, {"test": known})["test"]["tf-idf"]
    assert [row["count"] for row in found["classes"].values()] == [10, 10, 10]


def test_a_report_shows_the_confusion_matrix_and_the_most_confident_errors() -> None:
    own, some = task(), rows(30)
    some.labels[3] = [-1]
    found = own.showcase(model_of("gru", {}), some)
    assert not foreign(in_chinese(own, own.evaluate(model_of("gru", {}), some)["protocol"]))
    counts = np.array(found["counts"])
    assert found["labels"] == LABELS and counts.sum() == found["rows"] == 29 and found["unknown"] == 1
    assert counts.sum(1).tolist() == np.bincount([n for (n,) in some.labels if n >= 0], minlength=3).tolist()
    assert counts.sum() - counts.trace() == found["wrong"] and len(found["errors"]) == min(5, found["wrong"])
    sure = [error["probability"] for error in found["errors"]]
    assert sure == sorted(sure, reverse=True) and all(e["gold"] != e["predicted"] for e in found["errors"])
    assert all(set(error["text"]) == {"x"} for error in found["errors"])


def test_where_a_row_has_several_labels_each_is_counted() -> None:
    own, some = task(multi=True), rows(30, multi=True)
    found = own.showcase(model_of("gru", {}, multi=True), some)
    wanted = {one["label"]: one["wanted"] for one in found["classes"]}
    assert wanted == {label: sum(n in row for row in some.labels) for n, label in enumerate(LABELS)}
    assert all(one["right"] <= min(one["found"], one["wanted"]) for one in found["classes"])


def test_of_many_labels_the_rarest_share_a_row_of_the_matrix() -> None:
    targets = np.array([n for n in range(30) for _ in range(30 - n)])
    sure = np.eye(30)[targets]
    sure[0] = np.eye(30)[29]  # one of the most frequent label is taken for the rarest
    found = showing.single(sure, targets, [f"label {n}" for n in range(30)], np.arange(len(targets)))
    assert found["labels"] == [f"label {n}" for n in range(19)] and found["merged"] == 11
    assert np.shape(found["counts"]) == (20, 20) and found["counts"][0][19] == 1 and found["wrong"] == 1
    (error,) = showing.with_texts(found, lambda some: ["t"] * len(some))["errors"]
    assert error == {"gold": "label 0", "predicted": "label 29", "probability": 1.0, "row": 1, "text": "t"}
