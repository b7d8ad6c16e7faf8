"""Loss by position, taps, and the probe of memory."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from toys import VOCABULARY, language_model, language_models, network, stream

from seqloom.core.batch import IGNORE
from seqloom.core.model import ModelConfig
from seqloom.core.network import SequenceModel
from seqloom.core.state import State
from seqloom.core.taps import record
from seqloom.core.task import Order, Task
from seqloom.lab import measure
from seqloom.lab import recall as probe
from seqloom.lab.entries import Entry, Sized
from seqloom.lab.jobs import Jobs
from seqloom.lab.measure import taps
from seqloom.lab.reading import Reading
from seqloom.lab.recall import ASKED, CHANCE, CONTROL, DISTANCES, Drawn, RecallTask, draw, over_seeds, recall
from seqloom.lab.rules import Budget, Rules
from seqloom.runs.registry import find_config
from seqloom.runs.settings import RunConfig

pytestmark = pytest.mark.long

each_model = pytest.mark.parametrize("name", language_models())
MARK, QUERY = 16, 17


class Toy(SequenceModel):
    """Predictions by rule, and how many tokens it was asked to read."""

    kind = "causal"
    limit = None

    def __init__(self, reach: int | None = None) -> None:
        super().__init__()
        self.reach, self.most = reach, 0

    def encode(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        return self(inputs, None, mask)[0]

    def begin(self, context: Tensor, mask: Tensor | None = None) -> State:
        return self(context, None, mask)[1]


class Learner(Toy):
    """Says every token with probability 1/V; from the fifth it has read on, zero with certainty."""

    def forward(self, inputs: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        start = 0 if state is None else int(state[0, 0])  # type: ignore[index, arg-type, call-overload]
        places = start + 1 + torch.arange(inputs.size(1))
        self.most = max(self.most, int(places.max()))
        logits = torch.zeros(*inputs.shape, VOCABULARY)
        logits[:, places >= 5, 1:] = -100.0
        return logits, torch.full((inputs.size(0), 1), start + inputs.size(1))


class Recaller(Toy):
    """Says the token after the mark."""

    def forward(self, inputs: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        self.most = max(self.most, inputs.size(1))
        item = inputs.gather(1, (inputs == MARK).int().argmax(1, keepdim=True) + 1)
        return torch.nn.functional.one_hot(item, 18).float().expand(-1, inputs.size(1), -1), None


def test_loss_is_given_for_positions_from_nothing_to_beyond_the_trained_length() -> None:
    model = Learner()
    found: Any = language_model().by_position(model, stream(np.zeros(500, int)), 8)
    spans = [(bucket["from"], bucket["to"]) for bucket in found]
    assert spans == [(1, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, 64)]
    losses = [bucket["loss"] for bucket in found]
    assert losses == pytest.approx([math.log(VOCABULARY)] * 2 + [0.0] * 4, abs=1e-5)


@pytest.mark.parametrize("length", [1, 2, 3, 48, 100])
def test_some_bucket_ends_at_the_trained_length_and_all_follow_each_other(length: int) -> None:
    found: Any = language_model().by_position(Learner(), stream(np.zeros(3000, int)), length)
    ends = [bucket["to"] for bucket in found]
    assert [bucket["from"] for bucket in found] == [1, *(end + 1 for end in ends[:-1])]
    assert ends[-1] == 8 * length
    assert length in ends or length == 1


@pytest.mark.parametrize(("tokens", "reach", "most"), [(500, 20, 20), (31, None, 30), (2, None, 1)])
def test_a_model_reads_no_more_than_it_can_and_no_more_than_there_is(tokens: int, reach: int | None, most: int) -> None:
    model = Learner(reach)
    found: Any = language_model().by_position(model, stream(np.zeros(tokens, int)), 8)
    assert model.most == most == found[-1]["to"]


@each_model
def test_loss_by_position_is_what_reading_the_windows_at_once_gives(name: str) -> None:
    model, text = network(name, {}), stream(np.random.default_rng(3).integers(VOCABULARY, size=17))
    found: Any = language_model().by_position(model, text, 2)
    ids = torch.from_numpy(text[:]).long()
    with torch.no_grad():
        logits, _ = model(ids[None, :-1])
    losses = torch.nn.functional.cross_entropy(logits[0].float(), ids[1:], reduction="none")
    for bucket in found:
        assert bucket["loss"] == pytest.approx(float(losses[bucket["from"] - 1 : bucket["to"]].mean()), rel=1e-4)


@each_model
def test_taps_are_counted_and_named_as_they_are_recorded(name: str) -> None:
    model = network(name, {})
    found = taps(model)
    if found["count"]:
        with record(model) as traces:
            assert found["count"] == len(traces)
            assert found["names"] == list(traces)[: len(found["names"])]
    else:
        assert found["names"] == []


def test_the_answer_to_every_query_is_the_item_after_the_mark() -> None:
    asked = torch.rand(50, len(ASKED), generator=torch.Generator().manual_seed(0)) < 0.5
    batch = draw(asked, torch.Generator().manual_seed(1))
    for inputs, targets, distances in zip(batch.inputs, batch.targets, asked, strict=True):
        (mark,) = (inputs == MARK).nonzero().flatten().tolist()
        queries = (inputs == QUERY).nonzero().flatten().tolist()
        assert [q - mark - 1 for q in queries] == [d for d, yes in zip(ASKED, distances, strict=True) if yes]
        assert all(targets[q] == inputs[mark + 1] for q in queries)
        assert int((targets != IGNORE).sum()) == len(queries)


def test_every_architecture_gets_the_same_batches_and_steps_can_be_skipped() -> None:
    def first(start: int) -> Tensor:
        return next(RecallTask().batches(None, Order(4, seed=3, start=start), carry=False))[0].inputs

    assert torch.equal(first(0), first(0))
    assert not torch.equal(first(0), first(1))


def test_perfect_memory_recalls_everything_and_guessing_gives_chance() -> None:
    found = RecallTask().evaluate(Recaller(), Drawn(0, 0, 1, 1))["recall"]
    assert found == [{"distance": distance, "accuracy": 1.0} for distance in ASKED]
    fixed = RecallTask().evaluate(Fixed(), Drawn(0, 0, 1, 1))["recall"]
    assert all(point["accuracy"] == pytest.approx(CHANCE, abs=0.06) for point in fixed)


class Fixed(Toy):
    def forward(self, inputs: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        return torch.nn.functional.one_hot(torch.full_like(inputs, 3), 18).float(), None


def test_distances_beyond_what_a_model_can_read_have_no_figure() -> None:
    model = Recaller(reach=30)
    found = RecallTask().evaluate(model, Drawn(0, 0, 1, 1))["recall"]
    assert [point["distance"] for point in found] == [1, 2, 4, 8, 16]
    assert model.most <= 30


@each_model
def test_the_probe_takes_any_model(name: str) -> None:
    asked = []

    def resize(config: ModelConfig, task: Task, parameters: int) -> ModelConfig:
        asked.append(parameters)
        return config.model_copy(update={"width": 16})

    before = torch.get_rng_state()
    found = recall(find_config("models", name)(), seed=1, steps=2, resize=resize)
    assert [point["distance"] for point in found] == [CONTROL, *DISTANCES]
    assert all(0 <= point["accuracy"] <= 1 for point in found)
    assert asked in ([], [probe.PARAMETERS])
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(("learned", "steps"), [(0.0, 12), (math.inf, probe._RECENT)])
def test_the_probe_ends_early_only_when_nothing_is_left_to_learn(
    monkeypatch: pytest.MonkeyPatch, learned: float, steps: int
) -> None:
    plain, taken = RecallTask.loss, []

    def counted(self: RecallTask, *args: Any) -> Any:
        taken.append(1)
        return plain(self, *args)

    monkeypatch.setattr(RecallTask, "loss", counted)
    monkeypatch.setattr(probe, "_LEARNED", learned)
    recall(find_config("models", "rnn")(), 1, 12, lambda config, task, size: config.model_copy(update={"width": 16}))
    assert len(taken) == steps


def test_figures_of_the_probe_are_means_and_ranges_over_seeds() -> None:
    once = [(1.0, 0.9), (0.8, 0.6), (0.9, 0.0)]
    points = [[{"distance": d, "accuracy": a} for d, a in zip((CONTROL, 2), seed, strict=True)] for seed in once]
    found = over_seeds(points)
    assert found["control"] == {"distance": 1, "accuracy": pytest.approx(0.9), "low": 0.8, "high": 1.0}
    assert found["recall"] == [{"distance": 2, "accuracy": 0.5, "low": 0.0, "high": 0.9}]


def test_the_probe_has_the_shape_of_the_architecture_and_not_that_of_the_comparison(tmp_path: Path) -> None:
    rules = Rules(
        task="language_model", data={"train": "book.txt"}, overrides=("model.depth=3", "train.batch=4"),
        budget=Budget.parse("tokens=1k"), trials=0, trial_share=0.5, seeds=1, seed=4, threads=1,
    )  # fmt: skip
    entry = Entry.parse("gpt:preset=gpt2")
    model = find_config("models", "gpt")(preset="gpt2", depth=3, width=24, feed=777)
    bare: Any = {"task": {"name": "language_model"}, "model": {"name": "gpt"}, "data": {}, "tokenizer": {}, "train": {}}
    task: Any = language_model()
    reading = Reading(task, None, {}, 8, 1, 1, "tokenizer")  # type: ignore[arg-type]
    sized = Sized(entry, RunConfig.model_validate(bare), model, reading, set())
    jobs = Jobs(rules, tmp_path, task.main_score, {}, 1).probes(sized)
    assert all(job["model"] == {"name": "gpt", "preset": "gpt2", "depth": 3} for job in jobs)
    assert [job["seed"] for job in jobs] == [4, 5, 6] and len({job["folder"] for job in jobs}) == 3
    small: Any = measure.resized(find_config("models", "gpt")(preset="gpt2", depth=3), RecallTask(), probe.PARAMETERS)
    assert small.feed in range(2 * small.width, 6 * small.width) or small.feed == 0, "near its own proportions"
