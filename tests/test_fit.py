"""`fit` from a text file to a finished run: every model, every option that training has, and what it refuses."""

from __future__ import annotations

import json
import math
import shutil
from functools import partial

import pytest
import torch
from support import small_fit, text
from toys import language_models

import seqloom
from seqloom.core.backbone import stack_of
from seqloom.core.errors import RunError, UserError
from seqloom.runs.configure import configure
from seqloom.runs.folder import RunFolder
from seqloom.runs.run import load
from seqloom.train.loop import Interrupted, Trainer
from seqloom.train.optimizers import SCHEDULES, Muon, Optimizers, orthogonal
from seqloom.train.settings import TrainConfig

pytestmark = pytest.mark.long

QUICK = ["train.steps=6", "train.evaluate_every=3"]


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "book.txt"
    path.write_text(text(4000))
    return path


@pytest.fixture
def out(tmp_path):
    return tmp_path / "run"


@pytest.mark.parametrize("model", language_models())
def test_every_model_trains_scores_and_generates(book, out, model):
    run = small_fit(book, out, model, QUICK)
    scores = run.summary["scores"]["valid"]
    assert 0 < scores["loss"] < 6
    assert scores["perplexity"] == pytest.approx(math.exp(scores["loss"]))
    assert scores["baselines"].keys() == {"uniform", "unigram"}
    assert "nats per token" in scores["protocol"]
    assert len(run.generate("the cat", max_new=20, seed=1)) > 0
    assert load(out).generate("the", max_new=8, seed=3) == run.generate("the", max_new=8, seed=3)


def test_training_lowers_the_loss_below_the_unigram_guess(book, out):
    scores = small_fit(book, out, "gru", ["train.steps=150"]).summary["scores"]["valid"]
    assert scores["loss"] < scores["baselines"]["unigram"]["loss"]


@pytest.mark.parametrize(
    "options",
    [
        ["task.truncation=random"],
        ["task.truncation=random", "task.reweight=true"],
        ["task.truncation=full"],
        ["train.optimizer=adamw", "train.weight_decay=0.1"],
        ["train.optimizer=sgd", "train.rate=0.1"],
        ["train.schedule=constant"],
        ["train.schedule=inverse_sqrt"],
        ["train.schedule=stable", "train.decay=0.5"],
        ["train.clip_by=value"],
        ["train.clip=0"],
        ["train.accumulate=2"],
        ["train.tokens=600"],
        ["train.seconds=0.2"],
        ["train.patience=1", "train.steps=12"],
        ["train.device=cpu", "train.precision=float32"],
        ["model.tie=true"],
        ["model.depth=2", "model.dropout=0.3"],
        ["tokenizer.kind=bytes"],
        ["tokenizer.kind=words", "tokenizer.min_count=2"],
        ["tokenizer.kind=words", "tokenizer.split=space"],
        ["tokenizer.kind=bpe", "tokenizer.vocabulary=300"],
        ["task.context=32", "task.stride=8"],
        ["task.validation=64"],
        ["data.valid_fraction=0.2", "data.test_fraction=0.1"],
    ],
    ids=lambda options: " ".join(options),
)
def test_every_option_is_understood(book, out, options):
    budget = [] if any("tokens" in o or "seconds" in o for o in options) else QUICK
    summary = small_fit(book, out, "lstm", [*budget, *options]).summary
    assert math.isfinite(summary["scores"]["valid"]["loss"])


def test_training_ends_when_the_loss_has_been_low_enough_for_five_steps(book, out, tmp_path):
    assert small_fit(book, out, "lstm", ["train.steps=30", "train.enough=100"]).summary["steps"] == 5
    assert small_fit(book, tmp_path / "never", "lstm", ["train.steps=8", "train.enough=1e-9"]).summary["steps"] == 8
    options = ["train.steps=30", "train.enough=100", "train.enough_steps=7"]
    assert small_fit(book, tmp_path / "seven", "lstm", options).summary["steps"] == 7


def test_tensorboard_events_are_written_when_asked(book, out):
    small_fit(book, out, extra=[*QUICK, "train.tensorboard=true"])
    assert list((out / "tensorboard").glob("events*"))


def test_validation_and_test_may_be_files_of_their_own(book, out, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text(text(500, seed=1))
    run = small_fit(book, out, extra=QUICK, valid=str(other), test=str(other))
    assert run.summary["scores"]["valid"] == run.summary["scores"]["test"]


def test_to_test_on_the_training_data_is_said(book, out, tmp_path, capsys):
    shutil.copy(book, tmp_path / "copy.txt")
    seqloom.fit(None, data=str(book), test=str(tmp_path / "copy.txt"), model="ngram", out=out)
    assert "test: the same data as --data, so that its scores say nothing about new data" in capsys.readouterr().err


def test_a_recipe_gives_settings_and_flags_win(book, out, tmp_path):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('[model]\nname = "gru"\nwidth = 8\n[train]\nsteps = 4\n[data]\ntrain = "nowhere.txt"\n')
    run = seqloom.fit(recipe, data=str(book), out=out, overrides=["model.width=12"], quiet=True)
    assert run.config.model["name"] == "gru" and run.config.model["width"] == 12 and run.summary["steps"] == 4


def test_the_record_says_what_was_run(book, out):
    small_fit(book, out, extra=QUICK, command="seqloom fit ...")
    record = RunFolder(out).record()
    assert record["command"] == "seqloom fit ..."
    assert record["config"]["train"]["seed"] == 0 and record["config"]["train"]["threads"] == 1
    assert len(record["data"]["train"]["hash"]) == 64 and record["versions"]["torch"] == torch.__version__


def test_without_a_folder_each_fit_gets_a_new_one(book, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    paths = [small_fit(book, None, extra=QUICK).folder.path for _ in range(2)]
    assert [p.name for p in paths] == ["language_model-lstm-0001", "language_model-lstm-0002"]


def test_going_on_with_a_larger_budget_validates_on_the_way(book, out):
    small_fit(book, out, extra=["train.steps=10"])
    run = small_fit(book, out, extra=["train.steps=40"])
    assert run.summary["steps"] == 40
    assert len([entry for entry in run.folder.metrics() if "valid" in entry and 10 < entry["step"] < 40]) >= 5


def test_a_finished_run_that_goes_on_is_not_finished_until_it_ends(book, out, monkeypatch):
    small_fit(book, out, extra=["train.steps=4"])
    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "fit", lambda *_: (_ for _ in ()).throw(Interrupted(2)))
        with pytest.raises(Interrupted):
            small_fit(book, out, extra=["train.steps=8"])
    assert RunFolder(out).summary() is None
    assert small_fit(book, out, extra=["train.steps=8"]).summary["steps"] == 8


def test_a_document_ends_where_the_model_says_so(out, tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"text": "ab"}\n' * 200)
    run = small_fit(rows, out, "ngram")
    assert run.generate("a", max_new=9, temperature=0) == "b"
    assert "".join(run.write("a", max_new=9, temperature=0)) == "b"
    assert run.generate("a", max_new=9, beams=2) == "b"


def test_bits_per_byte_are_withheld_when_words_are_unknown(book, out):
    scores = small_fit(book, out, "ngram", ["tokenizer.kind=words", "tokenizer.vocabulary=8"]).summary["scores"][
        "valid"
    ]
    assert scores["bits_per_byte"] is None and "unknown" in scores["protocol"]


def test_a_part_of_one_token_is_refused_before_training(book, out, tmp_path):
    (tmp_path / "one.txt").write_text("a")
    with pytest.raises(UserError, match="the test split has 1 token"):
        small_fit(book, out, extra=QUICK, test=str(tmp_path / "one.txt"))


def test_a_large_seed_is_a_seed(book, out):
    assert small_fit(book, out, extra=[*QUICK, f"train.seed={2**62}"]).summary["steps"] == 6


@pytest.mark.parametrize("change", [["model.width=32"], ["train.batch=8"], ["train.seed=5"], ["task.length=20"]])
def test_another_model_or_batch_is_another_run(book, out, change):
    small_fit(book, out, extra=QUICK)
    with pytest.raises(UserError, match=r"is a different run.*choose another --out"):
        small_fit(book, out, extra=[*QUICK, *change])


def test_changed_data_is_refused_with_both_hashes(out, tmp_path):
    book = tmp_path / "b.txt"
    book.write_text(text(2000))
    small_fit(book, out, extra=["train.steps=4"])
    book.write_text(text(2000).replace("cat", "dog", 1))
    with pytest.raises(
        UserError, match=r"train split has changed since the run began \(was [0-9a-f]{12}, is [0-9a-f]{12}\)"
    ):
        small_fit(book, out, extra=["train.steps=8"])


def test_a_finished_run_is_not_taken_for_that_of_changed_data(out, tmp_path):
    book = tmp_path / "b.txt"
    book.write_text(text(2000))
    trained = small_fit(book, out, extra=["train.steps=4"]).summary
    book.touch()
    assert small_fit(book, out, extra=["train.steps=4"]).summary == trained
    book.write_text(text(2000).replace("cat", "dog", 1))
    with pytest.raises(
        UserError, match=r"b.txt.*: the train split has changed since .*; restore it, or choose another"
    ):
        small_fit(book, out, extra=["train.steps=4"])
    book.unlink()  # a finished run needs it no more
    assert small_fit(book, out, extra=["train.steps=4"]).summary == trained


def test_a_file_that_is_not_read_does_not_change_the_data_of_a_finished_run(out, tmp_path):
    book = tmp_path / "books"
    book.mkdir()
    (book / "b.txt").write_text(text(2000))
    trained = small_fit(book, out, extra=["train.steps=4"]).summary
    (book / ".b.txt.swp").write_bytes(b"\0\1")
    assert small_fit(book, out, extra=["train.steps=4"]).summary == trained


def test_a_changed_tokenizer_is_refused(book, out):
    small_fit(book, out, extra=["train.steps=4"])
    record = RunFolder(out).record()
    record["tokenizer"]["hash"] = "0" * 64
    RunFolder(out).write_record(record)
    with pytest.raises(UserError, match="the tokenizer has changed"):
        small_fit(book, out, extra=["train.steps=8"])


@pytest.mark.parametrize("seed", range(5))
def test_a_loss_that_is_not_finite_stops_before_the_update(book, out, seed):
    wild = ["train.optimizer=sgd", "train.rate=1e20", "train.steps=50", "train.clip=0", "train.warmup=0"]
    with pytest.raises(RunError, match=r"step \d+: .* is not finite .* checkpoints are intact; lower train.rate"):
        small_fit(book, out, "rnn", [*wild, f"train.seed={seed}", "train.save_every=1", "model.activation=relu"])
    for step, _ in RunFolder(out).checkpoints():
        from safetensors.torch import load_file

        weights = load_file(RunFolder(out).checkpoint(step) / "model.safetensors")
        assert all(t.isfinite().all() for t in weights.values())


def test_a_model_that_cannot_fit_in_memory_is_refused_before_it_is_made(book, out):
    with pytest.raises(RunError, match=r"needs about .* GB .* available; lower model.width"):
        small_fit(book, out, "lstm", ["model.width=2000000", *QUICK])


def test_a_number_of_heads_needs_no_width(book, out):
    options = ["model.heads=3", "model.depth=1", "train.batch=4", "task.length=16", "train.threads=1", *QUICK]
    run = seqloom.fit(data=str(book), model="gpt", out=out, overrides=options, quiet=True)
    assert (run.config.model["heads"], run.config.model["width"]) == (3, 126)


def test_a_window_longer_than_the_context_is_refused(book, out):
    with pytest.raises(UserError, match=r"task.length=64 is longer than the model's context 16"):
        small_fit(book, out, "gpt", ["task.length=64", *QUICK])


def test_a_bidirectional_model_is_refused_for_language_modelling(book, out):
    with pytest.raises(UserError, match="language_model needs a model that is causal; this one is bidirectional"):
        small_fit(book, out, "lstm", ["model.bidirectional=true", *QUICK])


def test_a_compiled_run_learns_what_a_plain_one_learns(book, out, monkeypatch):
    plain = small_fit(book, out / "plain", "window", QUICK).summary
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))  # needs no C++ compiler
    compiled = small_fit(book, out / "compiled", "window", [*QUICK, "train.compile=true"]).summary
    assert compiled["scores"]["valid"]["loss"] == pytest.approx(plain["scores"]["valid"]["loss"], abs=1e-4)


def test_compiling_without_a_compiler_or_with_shards_is_refused_at_once(book, out, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(UserError, match=r"train.compile=true needs a C\+\+ compiler"):
        small_fit(book, out, extra=["train.compile=true", *QUICK])
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UserError, match=r"train.compile=true cannot be combined with train.shard=true"):
        small_fit(book, out, extra=["train.compile=true", "train.shard=true", "train.optimizer=adamw", *QUICK])


def test_a_batch_that_cannot_be_divided_is_refused(book, out):
    with pytest.raises(UserError, match=r"train.batch=4 must be a multiple"):
        small_fit(book, out, extra=["train.accumulate=3", *QUICK])


def test_all_mistakes_are_reported_at_once_with_what_was_meant():
    wrong = ["model.widht=3", "train.steps=many", "trian.seed=1"]
    with pytest.raises(UserError) as error:
        configure(None, {"data.train": "x"}, wrong)
    said = str(error.value)
    assert "did you mean model.width?" in said and "train.steps='many'" in said and "trian" in said


def test_muon_agrees_with_the_library_on_plain_matrices():
    torch.manual_seed(0)
    ours, theirs = (torch.nn.Parameter(torch.ones(12, 40)) for _ in range(2))
    first = Muon([ours], lr=0.1, momentum=0.9, weight_decay=0.0)
    second = torch.optim.Muon([theirs], lr=0.1, momentum=0.9, weight_decay=0.0)
    for _ in range(3):
        ours.grad = torch.randn(12, 40)
        theirs.grad = ours.grad.clone()
        first.step()
        second.step()
    assert (ours - theirs).abs().max() < 0.02 * (ours - 1).abs().max() + 0.01  # the library computes in bfloat16


@pytest.mark.parametrize("shape", [(3, 20, 20), (2, 16, 64), (2, 64, 16)])
def test_orthogonal_matrices_have_singular_values_near_one(shape):
    torch.manual_seed(0)
    values = torch.linalg.svdvals(orthogonal(torch.randn(shape)))
    assert values.min() > 0.6 and values.max() < 1.3


def test_stacked_matrices_are_made_orthogonal_one_by_one():
    torch.manual_seed(0)
    stacked, single = torch.nn.Parameter(torch.zeros(16, 8)), torch.nn.Parameter(torch.zeros(8, 8))
    stacked.blocks = 2
    optimizer = Muon([stacked, single], lr=1.0, momentum=0.0, weight_decay=0.0)
    gradient = torch.randn(8, 8)
    stacked.grad, single.grad = torch.cat((gradient, 2 * gradient)), gradient
    optimizer.step()
    torch.testing.assert_close(stacked[:8], single)
    torch.testing.assert_close(stacked[8:], single)


def test_stacked_matrices_of_unequal_size_are_made_orthogonal_one_by_one():
    torch.manual_seed(0)
    stacked = torch.nn.Parameter(torch.zeros(16, 8))
    alone = [torch.nn.Parameter(torch.zeros(rows, 8)) for rows in (8, 4, 4)]
    stack_of([8, 4, 4], stacked)
    stacked.grad = torch.randn(16, 8)
    for single, gradient in zip(alone, stacked.grad.split([8, 4, 4]), strict=True):
        single.grad = gradient.clone()
    Muon([stacked, *alone], lr=1.0, momentum=0.5, weight_decay=0.1).step()
    torch.testing.assert_close(stacked, torch.cat(alone))


def test_schedules_warm_up_and_come_down():
    config = TrainConfig(warmup=10, floor=0.1)
    cosine = [SCHEDULES["cosine"](step / 1000, step, config) for step in range(1001)]
    assert cosine[0] < 0.2 and max(cosine) <= 1 and cosine[-1] == pytest.approx(0.1)
    assert SCHEDULES["constant"](0.5, 500, config) == 1
    assert SCHEDULES["inverse_sqrt"](0.5, 39, config) == pytest.approx(0.5)
    stable = [SCHEDULES["stable"](step / 1000, step, config) for step in range(1001)]
    assert stable[0] < 0.2 and stable[10:801] == [1.0] * 791 and stable[-1] == pytest.approx(0.1)
    assert stable[850] == pytest.approx(0.1 + 0.9 * (1 - 0.5)) and stable[800:] == sorted(stable[800:], reverse=True)


def test_optimizer_state_survives_a_file(book):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 3))
    first = Optimizers(model, TrainConfig(optimizer="adamw"))
    model(torch.randn(2, 3)).sum().backward()
    first.step(0.5, 500)
    saved = dict(first.tensors())
    second = Optimizers(model, TrainConfig(optimizer="adamw"))
    second.load(saved, lambda tensor, like: tensor)
    assert saved.keys() == dict(second.tensors()).keys()


def test_metrics_carry_their_protocol(book, out):
    small_fit(book, out, extra=QUICK)
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert any("protocol" in line.get("valid", {}) for line in lines)
