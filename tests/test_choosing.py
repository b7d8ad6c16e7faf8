"""What is not given is chosen from the data, said, recorded, and the same when the command is run again."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

import pytest

import seqloom
from seqloom.core.choice import Choice, part_to_score
from seqloom.runs.choosing import choose, recorded, told
from seqloom.runs.configure import read_request
from seqloom.runs.material import Material
from seqloom.runs.run import Run
from seqloom.train.pace import Estimate, told_time

pytestmark = pytest.mark.usefixtures("own_cache")

GOOD, BAD = ("fine", "lovely", "warm"), ("dull", "cold", "poor")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labelled texts of about eight words."""
    rng, path = random.Random(0), tmp_path_factory.mktemp("rows") / "rows.csv"
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["text", "label"])
        for n in range(200):
            words = rng.choices(GOOD if n % 2 else BAD, k=rng.randint(4, 12))
            table.writerow([" ".join([*words, str(n)]), "good" if n % 2 else "bad"])
    return path


def chosen(task: str, data: object, model: str = "lstm", *overrides: str) -> dict[str, Any]:
    flags = {"task.name": task, "model.name": model, "data.train": str(data)}
    return {choice.path: choice.value for choice in choose(read_request(None, flags, overrides))}


def test_lengths_batches_budget_and_size_follow_the_data(rows: Path) -> None:
    found = chosen("classification", rows)
    assert found["task.longest"] == 13 + 2 and found["tokenizer.min_count"] == 1
    assert found["train.epochs"] > 1 and found["train.patience"] and found["model.bidirectional"]
    assert found["task.select"] == "loss"


@pytest.mark.parametrize(
    ("size", "scored"),
    [
        (1000, []),
        (1001, [Choice("task.scored", 100, "1,001 rows; task.scored=0 scores all of each split, which takes long")]),
    ],
)
def test_of_large_sets_a_part_is_scored(size: int, scored: list[Choice]) -> None:
    assert part_to_score(size, 100, "rows") == scored


@pytest.mark.parametrize("task", ["language_model", "masked_lm"])
def test_of_a_large_text_a_part_is_scored_unless_the_user_says_how_much(task: str, tmp_path: Path) -> None:
    text = tmp_path / "large.txt"
    text.write_text("a line of a text\n" * 1_500_000)
    assert chosen(task, text, "gpt")["task.scored"] == 2_000_000
    assert "task.scored" not in chosen(task, text, "gpt", "task.scored=0")


def test_the_user_wins_and_a_given_budget_leaves_no_epochs_to_choose(rows: Path) -> None:
    found = chosen("classification", rows, "lstm", "task.longest=9", "model.width=10", "train.steps=3")
    assert not {"task.longest", "model.width", "train.epochs"} & found.keys()
    assert "train.epochs" in chosen("classification", rows, "lstm", "train.seconds=5"), "seconds only limit them"


def test_what_suits_an_architecture_elsewhere_does_not_keep_it_from_being_suited_here(rows: Path) -> None:
    assert chosen("classification", rows, "gpt")["task.longest"] == 15, "its task.length is for language models"
    assert "task.longest" not in chosen("classification", rows, "tfidf"), "it reads much longer texts by itself"


def test_an_architecture_may_ask_for_another_rate_than_the_task_but_not_than_the_user(rows: Path) -> None:
    rates = {model: chosen("classification", rows, model)["train.rate"] for model in ("lstm", "bert")}
    assert rates["bert"] < rates["lstm"]
    assert "train.rate" not in chosen("classification", rows, "bert", "train.rate=0.01")


@pytest.mark.parametrize("model", ["transformer", "gpt", "seq2seq", "gru"])
def test_pairs_tie_their_embeddings_and_small_sets_are_read_more_often(model: str, tmp_path: Path) -> None:
    few, many = tmp_path / "few.tsv", tmp_path / "many.tsv"
    for path, count in ((few, 300), (many, 30_000)):
        path.write_text(
            "source\ttarget\n" + "".join(f"good morning to you {n}\tguten Morgen {n}\n" for n in range(count))
        )
    found = chosen("translation", few, model)
    others = chosen("translation", many, model)
    wide = chosen("translation", few, model, "model.width=512")
    assert wide["train.rate"] == (0.001 if model in ("transformer", "gpt") else found["train.rate"])
    assert found["model.tie"] and found["train.epochs"] > others["train.epochs"]
    assert "data.valid_fraction" not in found and others["data.valid_fraction"] == 0.037
    assert "data.valid_fraction" not in chosen("translation", many, model, f"data.valid={few}")
    assert found["task.tune_length"] is True
    assert "task.tune_length" not in chosen("translation", few, model, "task.length_penalty=0.8")


def test_nothing_is_chosen_that_the_given_options_exclude(tmp_path: Path) -> None:
    tagged = tmp_path / "names.conll"
    tagged.write_text("".join(f"Ann{n} B-PER\nsleeps O\n\n" for n in range(60)))
    assert chosen("tagging", tagged)["task.crf"] is True
    assert "task.crf" not in chosen("tagging", tagged, "lstm", "task.smoothing=0.1")


def test_scripts_without_spaces_are_read_by_character(tmp_path: Path) -> None:
    texts = tmp_path / "texts.csv"
    lines = (f"这部电影真好看{n},好\n太无聊了浪费时间{n},差\n" for n in range(40))
    texts.write_text("text,label\n" + "".join(lines))
    found = chosen("classification", texts)
    assert found["tokenizer.kind"] == "characters" and found["train.epochs"] >= 10
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("source\ttarget\n" + "".join(f"good morning {n}\t早上好{n}\n" for n in range(50)))
    found = chosen("translation", pairs, "transformer")
    assert (found["tokenizer.kind"], found["tokenizer.target_kind"]) == ("bpe", "characters")
    assert "tokenizer.joint" not in found
    names = tmp_path / "names.conll"
    names.write_text("".join(f"王 B-PER\n明 I-PER\n{chr(0x4E00 + n)} O\n\n" for n in range(60)))
    assert chosen("tagging", names)["tokenizer.kind"] == "characters"


def test_every_task_can_be_fitted_without_options(rows: Path, tmp_path: Path) -> None:
    """A model that is small only because the data is."""
    run = fit(rows, tmp_path / "run", "train.minutes=0.02")
    assert run.summary["scores"]["valid"]["accuracy"] > 0.8


def fit(rows: Path, out: Path, *overrides: str, **flags: Any) -> Run:
    overrides = ("train.threads=1", "model.width=16", *overrides)
    return seqloom.fit(task="classification", data=str(rows), model="gru", out=out, overrides=overrides, **flags)


def test_choices_are_said_and_recorded_and_stand_when_the_command_is_run_again(
    rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = fit(rows, tmp_path / "run", "train.minutes=0.01")
    said = capsys.readouterr().err
    assert "chosen for you (-o NAME=VALUE to change):" in said and "task.longest=15: 99 % of" in said
    assert "on this machine, from 20 measured steps" in said
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["given"]["model.width"] == 16 and "model.width" not in recorded(record)
    assert recorded(record)["train.epochs"] == run.config.train.epochs, "cut to the time, and kept"
    again = fit(rows, tmp_path / "run", "train.minutes=0.01")
    assert "already finished" in capsys.readouterr().err and again.summary == run.summary


def test_without_choosing_the_listed_defaults_hold(rows: Path, tmp_path: Path) -> None:
    run = fit(rows, tmp_path / "run", "train.steps=2", choose=False, quiet=True)
    assert (run.config.task["longest"], run.config.task["select"]) == (256, "accuracy")


def test_a_recipe_says_how_to_train_and_only_columns_are_chosen(rows: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('[task]\nname = "classification"\n[model]\nname = "gru"\nwidth = 16\n[train]\nsteps = 2\n')
    run = seqloom.fit(recipe, data=str(rows), out=tmp_path / "run", quiet=True)
    assert run.config.task["longest"] == 256 and run.config.train.epochs is None


def test_a_budget_in_epochs_reads_the_data_that_often(rows: Path, tmp_path: Path) -> None:
    run = fit(rows, tmp_path / "run", "train.epochs=3", quiet=True)
    once = run.task.epoch_tokens(run.material.rows(run.tokenizer)["train"])
    assert run.summary["tokens"] == pytest.approx(3 * once, rel=0.05)


def test_epochs_are_cut_to_the_time_and_never_below_half_of_it() -> None:
    assert Estimate(10, 100, 20).within(300) == (10, 120)
    epochs, seconds = Estimate(10, 1000, 20).within(120)
    assert epochs == 1 and seconds == 120
    assert Estimate(10, 1000, 500).within(100)[0] == 0.5, "validations may not take more than half of the time"
    assert [told_time(n) for n in (0.2, 80, 200, 7200)] == ["1 s", "80 s", "3 min", "2.0 h"]


def test_choices_with_one_reason_share_a_line_and_a_counted_model_has_no_training_lines() -> None:
    choices = [Choice("task.longest", 9, "short"), Choice("train.rate", 0.004, "few"), Choice("train.batch", 8, "few")]
    assert told(choices)[1:] == ["  task.longest=9: short", "  train.rate=0.004, train.batch=8: few"]
    assert told(choices, trained=False)[1:] == ["  task.longest=9: short"]


PLACES = [("张三", "北京"), ("李小明", "上海市"), ("王芳", "广州")]
WHEN = ("昨天", "今年", "上周", "去年", "前天", "早上", "晚上", "春天", "夏天", "秋天")
SAID = [f"{who}{when}去了{place}，住得很好" for who, place in PLACES for when in WHEN]


def chinese(folder: Path) -> dict[str, Path]:
    """Data of every task in Chinese, without spaces."""
    spans = [{"text": text, "spans": [{"start": 0, "end": 2, "label": "PER"}]} for text in SAID]
    asked = [{"context": t, "question": "谁去了？", "answers": {"text": [t[:2]], "answer_start": [0]}} for t in SAID]
    content = {
        "language_model": ("a.txt", "\n".join(SAID * 9)),
        "masked_lm": ("a.txt", "\n".join(SAID * 9)),
        "classification": ("a.csv", "text,label\n" + "".join(f"{t},{'好差'[n % 2]}\n" for n, t in enumerate(SAID * 4))),
        "tagging": ("a.jsonl", "\n".join(json.dumps(row) for row in spans)),
        "translation": ("a.tsv", "zh\ten\n" + "".join(f"{text}\tthey went home {n}\n" for n, text in enumerate(SAID))),
        "question_answering": ("a.jsonl", "\n".join(json.dumps(row) for row in asked)),
    }  # fmt: skip
    paths = {task: folder / f"{task}-{name}" for task, (name, _) in content.items()}
    for task, path in paths.items():
        path.write_text(content[task][1], encoding="utf-8")
    return paths


@pytest.mark.parametrize(
    "task", ["language_model", "masked_lm", "classification", "tagging", "translation", "question_answering"]
)
def test_chinese_without_spaces_is_read_by_characters_or_sub_words_in_every_task(tmp_path: Path, task: str) -> None:
    request = read_request(None, {"task.name": task, "data.train": str(chinese(tmp_path)[task])})
    config = request.settle({choice.path: choice.value for choice in choose(request)})
    assert config.tokenizer["kind"] == ("bpe" if task == "masked_lm" else "characters")
    material = Material(config)
    material.rows(material.new_vocabulary())  # no shape refuses it, and few tokens are unknown
