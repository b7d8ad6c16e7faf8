"""`seqloom diagnose`: the answers of its problems are right, models are trained under equal rules, and the page says
what the figures say."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

import seqloom
from seqloom import cli
from seqloom.core.batch import IGNORE
from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.diagnose import diagnosing, results
from seqloom.diagnose.diagnosis import Diagnosis, agreements, sentence
from seqloom.diagnose.field import field
from seqloom.diagnose.problems import KEYS, MANY_KEYS, MODULUS, PROBLEMS, SYMBOLS, Rows
from seqloom.diagnose.published import FIGURES, SOURCES
from seqloom.diagnose.rules import Rules
from seqloom.diagnose.task import ProblemTask
from seqloom.diagnose.words import WORDS
from seqloom.lab.drawn import Drawn, generator
from seqloom.lab.entries import Entry
from seqloom.pages.words import Speaker

pytestmark = pytest.mark.usefixtures("jobs_here")
MODELS = "rnn,wide=gpt:heads=2"
TINY: dict[str, Any] = {"steps": 2, "params": 4000, "seeds": 2, "quick": True, "quiet": True}


def drawn(name: str, size: int, rows: int = 20) -> Rows:
    return PROBLEMS[name].draw(rows, size, generator(3, 4))


def answers(name: str, tokens: Sequence[int]) -> list[int]:
    """The answers of one row by brute force, IGNORE where nothing is asked."""
    found = [IGNORE] * len(tokens)
    if name == "parity":
        return [sum(tokens[: n + 1]) % 2 for n in range(len(tokens))]
    if name == "arithmetic":
        written = [str(token) if token < MODULUS else "+-"[token - MODULUS] for token in tokens]
        return [eval("".join(written[: n + 1])) % MODULUS if n % 2 == 0 else IGNORE for n in range(len(tokens))]
    if name == "recall":
        known: dict[int, int] = {}
        for n in range(0, len(tokens), 2):
            found[n] = known.get(tokens[n], IGNORE)
            known[tokens[n]] = tokens[n + 1] - KEYS
        return found
    if name == "many_pairs":
        pairs = 2 * (len(tokens) // 3)
        values = {tokens[n]: tokens[n + 1] - MANY_KEYS for n in range(0, pairs, 2)}
        return [*found[:pairs], *(values[key] for key in tokens[pairs:])]
    if name == "induction":
        return [*found[:-1], tokens[tokens.index(SYMBOLS) + 1]]
    string = list(tokens[: tokens.index(2)])
    return [*found[: len(string)], *(string if name == "duplicate" else string[::-1])]


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_answer_is_right(name: str) -> None:
    for size in {*PROBLEMS[name].sizes[-3:], *PROBLEMS[name].tested[:2]}:
        rows = drawn(name, size)
        for tokens, targets in zip(rows.inputs.tolist(), rows.targets.tolist(), strict=True):
            assert targets == answers(name, tokens)


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_size_has_its_turn_before_one_comes_again(name: str) -> None:
    """Otherwise some easy sizes in a row could end training while the others are unsolved."""
    problem = PROBLEMS[name]
    task, count = ProblemTask(problem), len(problem.sizes)
    lengths = sorted(problem.draw(1, size, generator(0, 0)).inputs.size(1) for size in problem.sizes)
    orders = []
    for start in (0, count):
        found = [task.draw_batch(2, 7, start + n).inputs.size(1) for n in range(count)]
        assert sorted(found) == lengths
        orders.append(found)
    assert count < 8 or orders[0] != orders[1]


@pytest.mark.parametrize("name", PROBLEMS)
def test_tokens_and_answers_are_within_their_vocabularies(name: str) -> None:
    problem = PROBLEMS[name]
    rows = drawn(name, problem.tested[-1], 200)
    asked = rows.targets[rows.targets != IGNORE]
    assert rows.inputs.unique().tolist() == list(range(problem.vocabulary))
    assert asked.unique().tolist() == list(range(problem.answers))
    assert int(rows.measure[rows.targets != IGNORE].max()) <= problem.scored[1]


def test_pairs_are_not_given_away_by_a_repeated_key_or_a_mark_that_is_read() -> None:
    for tokens in drawn("many_pairs", 32).inputs.tolist():
        assert set(Counter(tokens[:64:2]).values()) == {1}
    assert (drawn("induction", 40).inputs == SYMBOLS).sum(1).tolist() == [2] * 20


def test_a_guess_without_pairing_knows_only_what_came_before() -> None:
    rows = drawn("recall", 40)
    assert rows.guess is not None
    for tokens, guesses in zip(rows.inputs.tolist(), rows.guess.tolist(), strict=True):
        for n in range(2, len(tokens), 2):
            seen = Counter(token - KEYS for token in tokens[1:n:2])
            assert seen[guesses[n]] == max(seen.values())


class Knows(SequenceModel):
    """Answers parity right up to a length, and says zero after it."""

    kind = "causal"
    limit = None

    def __init__(self, until: int, reach: int | None = None) -> None:
        super().__init__()
        self.until, self.reach = until, reach

    def forward(self, inputs: torch.Tensor, state: Any = None, mask: Any = None) -> tuple[torch.Tensor, Any]:
        right = inputs.cumsum(1) % 2 * (torch.arange(inputs.size(1)) < self.until)
        return torch.nn.functional.one_hot(right, 2).float(), None

    encode = begin = None  # type: ignore[assignment]


def test_accuracy_at_trained_lengths_and_beyond_are_told_apart() -> None:
    found = ProblemTask(PROBLEMS["parity"], 64).evaluate(Knows(until=40), Drawn(0, 1, 1, 1))
    assert found["trained"] == 1.0
    assert found["accuracy"] == pytest.approx(0.5, abs=0.03)
    assert [point["accuracy"] == 1 for point in found["ranges"]] == [point["to"] <= 40 for point in found["ranges"]]


def test_a_model_that_cannot_read_the_longer_rows_has_no_score_there() -> None:
    found = ProblemTask(PROBLEMS["parity"], 8).evaluate(Knows(until=40, reach=30), Drawn(0, 1, 1, 1))
    assert (found["trained"], found["accuracy"], found["guess"]) == (1.0, None, None)
    course = results.Course(Entry("a", "a"), "parity", 0.1, {}, [{"state": "done", **found}])
    assert results.outcome(course)["verdict"] == "failed"


def run(accuracy: float, trained: float = 1.0, **more: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "state": "done",
        "guess": 0.5,
        "ranges": [],
        "parameters": 1,
        "memory": 1,
        "steps": 1,
        "seconds": 1.0,
    }
    return facts | {"accuracy": accuracy, "trained": trained, "loss": 0.1} | more


@pytest.mark.parametrize(
    ("best", "trained", "verdict"),
    [(0.995, 1.0, "solved"), (0.7, 0.995, "trained"), (0.7, 0.9, "part"), (0.52, 0.9, "guess")],
)
def test_a_figure_counts_as_what_it_says(best: float, trained: float, verdict: str) -> None:
    course = results.Course(Entry("a", "rnn"), "parity", 0.1, {}, [run(best, trained), run(0.5, 0.5), run(0.51, 0.5)])
    found = results.outcome(course)
    assert (found["verdict"], found["best"], found["median"]) == (verdict, best, 0.51)


def test_agreement_with_published_figures_is_said_in_words() -> None:
    courses = [
        results.Course(Entry("mine", "lstm"), "parity", 0.1, {}, [run(1.0)]),
        results.Course(Entry("other", "gpt"), "parity", 0.1, {}, [run(0.9)]),
        results.Course(Entry("own", "decay"), "parity", 0.1, {}, [run(0.51, 0.6)]),
    ]
    result = results.assemble(courses, Rules(problems=("parity",)), {})
    say = Speaker("en", WORDS)
    assert agreements(result, say, agree=True) == [
        "Parity, mine: 100.0 % here, 100.0 % published (LSTM, A).",
        "Parity, mine: 100.0 % here, 100.0 % published (LSTM, B).",
    ]
    assert [text[:58] for text in agreements(result, say, agree=False)] == [
        "Disagrees with what is published: Parity, other: 90.0 % he"
    ] * 2
    assert sentence(result["models"][2], result, say) == "own: is near guessing on parity (51.0 %)."


def test_a_model_with_options_is_not_the_one_that_was_published() -> None:
    entry = Entry("negative", "deltanet", ("model.negative=true",))
    assert results.outcome(results.Course(entry, "parity", 0.1, {}, [run(0.8)]))["published"] == []


def test_published_figures_belong_to_problems_and_sources_that_exist() -> None:
    assert {figure.problem for figure in FIGURES} <= set(PROBLEMS)
    assert {figure.source for figure in FIGURES} == set(SOURCES)


def test_all_causal_models_that_descend_take_part_at_one_size_and_the_others_are_named() -> None:
    entries, left_out = field(None, Rules(problems=("parity",)))
    assert {"rnn", "lstm", "gru", "gpt", "mingru", "minlstm", "ttt", "linear_attention"} <= {e.name for e in entries}
    assert "causal" in left_out["bert"]
    assert "ngram" in left_out


def test_a_size_that_no_model_can_have_is_refused() -> None:
    with pytest.raises(UserError, match=r"no model can take part; the last one: .* more than --params 5; raise"):
        field(None, Rules(problems=("parity",), parameters=5))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, jobs_here: None) -> Diagnosis:
    return seqloom.diagnose(
        "rnn,wide=gpt:heads=2", out=tmp_path_factory.mktemp("diagnose"), command="seqloom it", **TINY
    )


def test_models_of_equal_size_see_equally_many_examples(done: Diagnosis) -> None:
    found = [problem for model in done.result["models"] for problem in model["problems"].values()]
    assert all(abs(problem["parameters"] / 4000 - 1) <= 0.02 for problem in found)
    assert {len(problem["runs"]) for problem in found} == {2}
    assert {run["steps"] for problem in found for run in problem["runs"]} == {2}


def test_running_it_again_trains_nothing_and_an_edited_model_is_trained_again(
    done: Diagnosis, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[str] = []
    real = diagnosing.Crew._note
    monkeypatch.setattr(diagnosing.Crew, "_note", lambda self, job, future: trained.append(job["entry"]))
    again = seqloom.diagnose(MODELS, out=done.folder, **TINY)
    assert not trained
    assert again.result["models"] == done.result["models"]

    def noted(crew: Any, job: Any, future: Any) -> None:
        trained.append(job["entry"])
        real(crew, job, future)

    monkeypatch.setattr(diagnosing.Crew, "_note", noted)
    hashes = {"rnn": "edited", "gpt": diagnosing.code_of(Entry("gpt", "gpt"))}
    monkeypatch.setattr(diagnosing, "code_of", lambda entry: hashes[entry.model])
    seqloom.diagnose(MODELS, out=done.folder, **TINY)
    assert set(trained) == {"rnn"}


def test_it_prints_itself_and_is_written_in_both_languages(done: Diagnosis) -> None:
    text = repr(done)
    assert "wide" in text and "parity" in text and str(done.report) in text
    page = done.report.read_text(encoding="utf-8")
    assert "What these memories can and cannot do" in page and "这些记忆能做什么，不能做什么" in page
    assert "http://" not in page.split("<script>")[0] and "https://" not in page.split("<script>")[0]
    chinese = (done.folder / "report.zh-CN.md").read_text(encoding="utf-8")
    for language, document in (("en", page.replace("\xa0", " ")), ("zh", chinese)):
        for model in done.result["models"]:
            told = sentence(model, done.result, Speaker(language, WORDS))
            assert told.split(" (")[0] in document


def command(words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["seqloom", *words.split()])
    with pytest.raises(SystemExit) as end:
        cli.main()
    said = capsys.readouterr()
    return int(end.value.code or 0), said.out, said.err


def test_the_command_prints_a_table_or_one_json_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    words = f"diagnose --models gru --quick --problems parity --steps 2 --params 3000 --out {tmp_path / 'found'}"
    code, out, _ = command(words, monkeypatch, capsys)
    assert code == 0
    assert "parity" in out and "gru: " in out
    code, out, _ = command(f"{words} --json", monkeypatch, capsys)
    found = json.loads(out)
    assert (code, found["models"][0]["name"], Path(found["report"]).exists()) == (0, "gru", True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--models lsmt", "did you mean 'lstm'?"),
        ("--models ngram", "ngram: "),
        ("--models tfidf", "tfidf: many_pairs needs a model that is causal; this one is bidirectional"),
        ("--models bert", "bert: many_pairs needs a model that is causal; this one is bidirectional"),
        ("--models rnn,rnn", "listed twice"),
        ("--models gpt:widht=3", "did you mean model.width?"),
        ("--models gpt:train.rate=3", "only options of the model"),
        ("--models rnn --problems party", "did you mean 'parity'?"),
        ("--models rnn --params 10", "more than --params 10"),
        ("--models rnn --seeds 0", "--seeds"),
        ("--models rnn --jobs 0", "--jobs"),
    ],
)
def test_wrong_input_is_one_line(
    words: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    code, _, error = command(f"diagnose {words} --out {tmp_path / 'none'}", monkeypatch, capsys)
    assert code == 2
    assert said in error
    assert error.strip().count("\n") <= 1  # what is being prepared, and the mistake
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("wrong", [{"jobs": 0}, {"seeds": 0}, {"steps": 0}, {"problems": ["party"]}])
def test_wrong_arguments_in_python_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"must be 1 to|did you mean"):
        seqloom.diagnose("rnn", **wrong)


def test_a_model_without_weights_of_its_own_is_not_as_wide_as_its_parameters_allow(tmp_path: Path) -> None:
    found = seqloom.diagnose("self_attention", problems="parity", out=tmp_path, **(TINY | {"params": 10_000}))
    parameters = found.result["models"][0]["problems"]["parity"]["parameters"]
    assert parameters < 5_000
    page = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert f"self_attention ({parameters:,} to {parameters:,}, by problem)" in page
