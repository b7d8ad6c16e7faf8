"""`fit` on pairs of texts: every model that translates, from a table to a finished run, interrupted or not."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support import digest
from toys import accepted, translator

from seqloom.core.errors import UserError
from seqloom.data.portions import part_of
from seqloom.runs.fit import fit
from seqloom.runs.folder import RunFolder
from seqloom.runs.registry import names
from seqloom.runs.run import Run, load
from seqloom.tasks.translation import lengths
from seqloom.tasks.translation.task import Translation

pytestmark = pytest.mark.long

TRANSLATORS = [name for name in names("models") if accepted(translator, name, {})]
QUICK = ["train.steps=6", "train.evaluate_every=3"]


def table(path: Path, count: int, longest: int = 6) -> Path:
    """Words of small letters, and the same backwards in capitals."""
    chance = random.Random(count)
    words = ["".join(chance.choices("abcdef", k=chance.randint(1, longest))) for _ in range(count)]
    path.write_text("source\ttarget\n" + "".join(f"{word}\t{word[::-1].upper()}\n" for word in words))
    return path


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return table(tmp_path_factory.mktemp("data") / "pairs.tsv", 80)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "run"


def small_fit(data: Path, out: Path, model: str, extra: Sequence[str] = (), **flags: Any) -> Run:
    settings = ["model.width=16", "tokenizer.kind=characters", "task.batch_tokens=64", "task.beams=2"]
    settings += ["task.max_new=8", "train.threads=1", "train.warmup=2", *extra]
    how: Any = {"task": "translation", "model": model, "choose": False, "quiet": True, **flags}
    return fit(None, data=str(data), out=out, overrides=settings, **how)


def touched(folder: Path) -> dict[Path, tuple[int, int]]:
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*")}


@pytest.mark.parametrize("model", TRANSLATORS)
def test_every_model_that_translates_trains_scores_and_translates(pairs: Path, out: Path, model: str) -> None:
    run = small_fit(pairs, out, model, QUICK)
    scores = run.summary["scores"]["valid"]
    assert 0 < scores["loss"] < 6 and {"bleu", "chrf", "exact"} <= scores.keys()
    assert "beam search with 2 beams" in scores["protocol"] and "nats per target token" in scores["protocol"]
    task: Any = run.task
    again = load(out)
    texts = ["abc", "f"]
    written = [task.text(found[0]) for found in task.translate(run.model, texts)]
    assert written == [task.text(found[0]) for found in task.translate(again.model, texts)]
    assert again.evaluate(str(pairs))["tokens"] > scores["tokens"]
    before = touched(out)
    small_fit(pairs, out, model, QUICK)
    assert touched(out) == before, "a finished run is left alone"


def test_what_was_learned_is_written(tmp_path: Path, out: Path) -> None:
    """Letters into capitals, one by one: a task that attention learns in seconds."""
    data = tmp_path / "capitals.csv"
    words = {"".join(random.Random(n).choices("abcd", k=1 + n % 5)) for n in range(500)}
    data.write_text("source,target\n" + "".join(f"{word},{word.upper()}\n" for word in sorted(words)))
    run = small_fit(
        data, out, "seq2seq", ["model.width=32", "task.batch_tokens=256", "train.steps=250", "task.smoothing=0"]
    )
    assert run.summary["scores"]["valid"]["exact"] > 0.8


@pytest.mark.parametrize(
    "options",
    [
        ["tokenizer.joint=true", "model.tie=true"],
        ["model.tie=true"],  # of separate vocabularies, the target's is tied
        ["tokenizer.kind=bytes", "task.reverse=true"],  # bytes are the same on both sides
        ["tokenizer.kind=words", "tokenizer.target_kind=characters"],
        ["tokenizer.kind=bpe", "tokenizer.vocabulary=270", "tokenizer.target_vocabulary=280"],
        ["task.sampling=0.3", "task.smoothing=0"],
        ["task.batch_tokens=0", "train.batch=8", "train.accumulate=4"],
        ["task.metric=transcription", "task.scored=3"],
        ["task.select=accuracy", "task.validation=5"],
        ["task.tune_length=true"],
        ["task.metric=summary", "task.longest=5"],
        ["model.dropout=0.3", "train.optimizer=adamw"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("model", ["seq2seq", "transformer"])
def test_every_option_of_the_task_works(pairs: Path, out: Path, model: str, options: list[str]) -> None:
    run = small_fit(pairs, out, model, [*QUICK, *options])
    assert run.summary["scores"]["valid"]["loss"] > 0
    named = {"copy", "frequent", "nearest"} | ({"lead-3"} if "task.metric=summary" in options else set())
    assert run.summary["scores"]["valid"]["baselines"].keys() == named
    task: Any = load(out).task
    assert task.tokenizers.joint == (not {"tokenizer.joint=true", "tokenizer.kind=bytes"}.isdisjoint(options))


def test_the_checkpoint_is_the_one_with_the_highest_accuracy(pairs: Path, out: Path) -> None:
    options = ["task.select=accuracy", "train.steps=40", "train.evaluate_every=5", "train.rate=0.05"]
    run = small_fit(pairs, out, "gru", options)
    logged = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    found = {entry["step"]: entry["valid"]["accuracy"] for entry in logged if "valid" in entry}
    assert run.summary["best_step"] == max(found, key=lambda step: (found[step], -step))
    assert all(0 <= accuracy <= 1 for accuracy in found.values()) and len(found) == 8


def test_some_of_a_file_sorted_by_length_are_scored_all_over_it(pairs: Path, out: Path) -> None:
    run = small_fit(pairs, out, "gru", [*QUICK, "task.scored=3"])
    assert "evenly spaced" in run.summary["scores"]["valid"]["protocol"]
    assert run.summary["scores"]["valid"]["count"] <= 3


@pytest.mark.parametrize("model", ["seq2seq", "transformer", "gpt"])
def test_an_interrupted_run_issued_again_ends_as_the_uninterrupted_one(
    pairs: Path, tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["train.steps=24", "train.save_every=5", "train.evaluate_every=8", "train.log_every=1"]
    options += ["model.dropout=0.2", "task.sampling=0.2", "train.batch=8", "train.accumulate=2"]
    small_fit(pairs, tmp_path / "whole", model, options)
    loss, broken = Translation.loss, tmp_path / "broken"
    for stop in (9, 14, 29):  # in the middle of an update, of the next attempt
        calls = iter(range(stop))

        def failing(self: Translation, *arguments: Any, calls: Any = calls) -> Any:
            if next(calls, None) is None:
                raise MemoryError
            return loss(self, *arguments)

        monkeypatch.setattr(Translation, "loss", failing)
        with pytest.raises(MemoryError):
            small_fit(pairs, broken, model, options)
    monkeypatch.setattr(Translation, "loss", loss)
    small_fit(pairs, broken, model, options)
    assert digest(broken) == digest(tmp_path / "whole")


def test_pairs_with_an_empty_side_are_left_out_and_long_ones_not_learned_from(
    tmp_path: Path, out: Path, capfd: pytest.CaptureFixture
) -> None:
    data = table(tmp_path / "pairs.tsv", 60)
    with data.open("a") as file:  # all of them in the training set, by their sources
        file.write("cab\t\nfed\t \n" + "a" * 40 + "\t" + "A" * 40 + "\n")
    assert {part_of(source, 0.1, 0.0) for source in ("cab", "fed", "a" * 40)} == {"train"}
    settings = ["model.width=16", "tokenizer.kind=characters", "task.longest=20", "task.beams=1", *QUICK]
    fit(None, task="translation", data=str(data), model="gru", out=out, overrides=settings)
    told = capfd.readouterr().err
    assert "(2 with an empty side left out)" in told and re.search(r"1 of \d+ pairs have more than 20 tokens", told)


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("ngram", [], "model ngram: counts the tokens of running text, which translation does not have"),
        ("gru", ["model.bidirectional=true"], "translation needs a model that is causal or encoder-decoder; this one"),
        ("gpt", ["model.context=8"], r"the train split has a pair of 1\d tokens.*context 8; set model.context=1\d, or"),
        ("gru", ["model.tie=true", "model.inputs=8"], "with tie=true, embeddings have the width of the output"),
        ("transformer", ["model.width=18"], "must be a multiple of 2 x heads"),
        ("transformer", ["task.length=8"], "length"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(
    pairs: Path, out: Path, model: str, options: list[str], message: str
) -> None:
    with pytest.raises(UserError, match=message) as refusal:
        small_fit(pairs, out, model, [*QUICK, *options])
    assert "\n" not in str(refusal.value) and not RunFolder(out).summary()


@pytest.mark.parametrize("model", ["seq2seq", "transformer"])
def test_a_language_model_is_no_task_for_an_encoder_decoder(pairs: Path, out: Path, model: str) -> None:
    from seqloom.compare.comparing import compare

    message = "language_model needs a model that is causal; this one is encoder-decoder"
    with pytest.raises(UserError, match=message) as refusal:
        fit(None, data=str(pairs), model=model, out=out, overrides=["model.width=16", "data.column=source"], quiet=True)
    assert "\n" not in str(refusal.value)
    with pytest.raises(UserError, match=f"{model}: {message}; usable models: .*gpt, gru") as refusal:
        compare(
            data=str(pairs), task="language_model", models=f"lstm,{model}", out=out, overrides=["data.column=source"]
        )
    assert "\n" not in str(refusal.value)


def test_the_length_penalty_is_chosen_on_the_validation_set_and_stays_with_the_run(
    pairs: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lengths, "best_penalty", lambda score: (2.0, {1.0: score(1.0), 2.0: score(2.0)}))
    options = [*QUICK, "task.tune_length=true"]
    run = small_fit(pairs, out, "gru", options)
    assert "length penalty 2" in run.summary["scores"]["valid"]["protocol"]
    assert load(out).config.task["length_penalty"] == 2.0
    assert RunFolder(out).record()["settled"] == {"task.length_penalty": 2.0}
    before = touched(out)
    small_fit(pairs, out, "gru", options)
    assert touched(out) == before, "the same command again is a no-op"
    small_fit(pairs, out, "gru", [*options, "train.steps=9"])
    assert RunFolder(out).summary()["steps"] == 9


def test_the_length_penalty_climbs_from_one_in_the_direction_that_helps() -> None:
    for best, tried in ((1.0, [0.7, 1.0, 1.4]), (2.0, [1.0, 1.4, 2.0, 2.8]), (0.4, [0.4, 0.7, 1.0, 1.4])):
        found, seen = lengths.best_penalty(lambda value, best=best: -abs(value - best))
        assert found == best
        assert sorted(seen) == tried
    assert lengths.best_penalty(lambda value: 0.0)[0] == 1.0, "a tie changes nothing"
