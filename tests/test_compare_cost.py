"""What a model costs: figures for every model, of the right shape and size. Nothing here asks how fast a machine is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from toys import VOCABULARY, accepted, every_case, language_model, network, title

from seqloom.core.backbone import Backbone
from seqloom.core.network import Network, SequenceModel
from seqloom.core.state import State
from seqloom.lab import cost
from seqloom.lab.alike import alike
from seqloom.lab.cost import TURNS, measure_costs, state_bytes, throughput
from seqloom.lab.peak import peak_memory
from seqloom.train.settings import LoraConfig, TrainConfig

pytestmark = pytest.mark.long

TASK = language_model()


def every() -> dict[str, SequenceModel]:
    """Every model in every variant that the task accepts."""
    return {title(case): network(*case).float() for case in every_case() if accepted(network, *case)}


class Notebook(Backbone):
    """It remembers every vector it has read, up to its reach."""

    def __init__(self, width: int, reach: int | None = None) -> None:
        super().__init__()
        self.width, self.reach, self.limit = width, reach, reach
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor, state: State = None, mask: Tensor | None = None) -> tuple[Tensor, State]:
        read = x if state is None else torch.cat([state, x], dim=1)  # type: ignore[list-item]
        assert self.reach is None or read.size(1) <= self.reach
        return x * self.gain, read


def notebook(reach: int | None = None) -> Network:
    return Network(nn.Embedding(VOCABULARY, 4), Notebook(4, reach), nn.Linear(4, VOCABULARY))


def test_every_model_has_a_figure_at_every_context_it_can_read() -> None:
    models, contexts = every(), (32, 64, 256)
    found = measure_costs(models, dict.fromkeys(models, TASK), contexts)
    for name, model in models.items():
        readable = [c for c in contexts if model.reach is None or c <= model.reach]
        assert [point["context"] for point in found[name]["latency"]] == readable
        assert [point["context"] for point in found[name]["state"]] == readable
        assert all(point["seconds"] > 0 and point["stable"] in (True, False) for point in found[name]["latency"])


def test_a_state_that_never_grows_has_one_size_and_one_that_grows_follows_the_context() -> None:
    models = every()
    for name, costs in measure_costs(models, dict.fromkeys(models, TASK), (32, 64)).items():
        short, long = (point["bytes"] for point in costs["state"])
        assert long == short if models[name].limit is None else 1.9 < long / short < 2.1


def test_only_what_a_state_holds_is_counted() -> None:
    assert state_bytes(None) == 0
    assert state_bytes((torch.zeros(2, 3), (torch.zeros(5, dtype=torch.int64), None))) == 24 + 40
    found = measure_costs({"notebook": notebook()}, {"notebook": TASK}, (32, 100))["notebook"]
    assert [point["bytes"] for point in found["state"]] == [32 * 4 * 4, 100 * 4 * 4]


def test_a_model_that_ends_is_measured_up_to_its_end_and_no_further() -> None:
    found = measure_costs(
        {"short": notebook(64), "none": notebook(8)}, {"short": TASK, "none": TASK}, (32, 64, 65, 128)
    )
    assert [point["context"] for point in found["short"]["latency"]] == [32, 64]
    assert found["none"] == {"latency": [], "state": []}


def test_the_shortest_context_is_always_measured_and_longer_ones_while_there_is_time() -> None:
    found = measure_costs({"notebook": notebook()}, {"notebook": TASK}, (32, 64), seconds=0.0)["notebook"]
    assert [point["context"] for point in found["latency"]] == [32]


def test_training_is_measured_for_models_that_train_at_lengths_they_can_read() -> None:
    models, lengths = every(), (8, 256)
    found = throughput(models, dict.fromkeys(models, TASK), lengths, tokens=256, seconds=0.0)
    for name, model in models.items():
        trains = model.descends
        readable = [n for n in lengths if trains and (model.reach is None or n <= model.reach)]
        assert [point["length"] for point in found[name]] == readable
        assert all(point["tokens_per_second"] > 0 for point in found[name])


def test_turns_are_taken_until_they_agree_or_no_longer_fit_and_at_least_one() -> None:
    for seconds, turns in ((0.0, [1]), (1000.0, range(2, TURNS + 1))):
        model, taken = notebook(), []
        model.register_forward_hook(lambda *_, taken=taken: taken.append(1))
        throughput({"notebook": model}, {"notebook": TASK}, (4,), tokens=8, seconds=seconds)
        assert len(taken) - 2 in turns, "after a warm-up and a step that shows how long one takes"


@pytest.mark.parametrize(
    ("per_token", "tokens", "lengths"),
    [(1e-6, 2048, [8, 64, 256]), (1e-3, 512, [8, 64, 256]), (2.5e-3, 512, [8, 64]), (1.0, 512, [8])],
)
def test_a_slow_model_trains_in_smaller_batches_and_then_at_fewer_lengths(
    monkeypatch: pytest.MonkeyPatch, per_token: float, tokens: int, lengths: list[int]
) -> None:
    monkeypatch.setattr(cost, "_training_step", lambda model, task, rows, length: rows * length * per_token)
    found = throughput({"notebook": notebook()}, {"notebook": TASK}, (8, 64, 256), seconds=0.0)["notebook"]
    assert [point["length"] for point in found] == lengths
    assert all(point["tokens"] == tokens for point in found)
    assert all(point["tokens_per_second"] == pytest.approx(1 / per_token) for point in found)


def test_a_speed_from_a_single_turn_is_not_stable() -> None:
    (point,) = throughput({"notebook": notebook()}, {"notebook": TASK}, (4,), tokens=8, seconds=0.0)["notebook"]
    assert point["stable"] is False


def run(model: dict[str, Any], freeze: int = 0, rank: int = 0, tokenizer: str = "a") -> Any:
    """What is asked of a run."""
    lora, train = LoraConfig(rank=rank), TrainConfig(freeze=freeze)
    config = SimpleNamespace(model=model, lora=lora, train=train, task={"name": "classification"})
    return SimpleNamespace(config=config, tokenizer=SimpleNamespace(hash=tokenizer))


def test_runs_with_other_weights_compute_the_same_and_dropout_counts_only_in_training() -> None:
    runs = {
        "first": run({"width": 8, "dropout": 0.0}),
        "dropout": run({"width": 8, "dropout": 0.1}),
        "frozen": run({"width": 8, "dropout": 0.0}, freeze=1),
        "again": run({"width": 8, "dropout": 0.0}),
        "wider": run({"width": 9, "dropout": 0.0}),
        "adapted": run({"width": 8, "dropout": 0.0}, rank=2),
        "other tokens": run({"width": 8, "dropout": 0.0}, tokenizer="b"),
    }
    own = {name: name for name in ("first", "wider", "adapted", "other tokens")}
    assert alike(runs) == own | dict.fromkeys(("dropout", "frozen", "again"), "first")
    assert alike(runs, training=True) == own | {"dropout": "dropout", "frozen": "frozen", "again": "first"}


def test_measuring_leaves_a_model_as_it_was() -> None:
    model = notebook().train()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    measure_costs({"notebook": model}, {"notebook": TASK}, (32,))
    assert model.training
    throughput({"notebook": model.eval()}, {"notebook": TASK}, (4,), tokens=8)
    assert not model.training
    assert all(weight.grad is None for weight in model.parameters())
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())


def test_a_task_without_examples_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    task: Any = language_model()
    monkeypatch.delattr(type(task), "example")
    assert measure_costs({"notebook": notebook()}, {"notebook": task}) == {"notebook": {"latency": [], "state": []}}
    assert throughput({"notebook": notebook()}, {"notebook": task}) == {"notebook": []}


def test_examples_are_of_the_size_asked_for_and_always_the_same() -> None:
    first, second = TASK.example(3, 20), TASK.example(3, 20)
    assert first.inputs.shape == first.targets.shape == (3, 20)
    assert torch.equal(first.inputs, second.inputs)
    assert torch.equal(first.inputs[:, 1:], first.targets[:, :-1])
    assert 0 <= first.inputs.min() <= first.inputs.max() < VOCABULARY


def test_the_peak_is_of_the_block_and_not_of_what_came_before() -> None:
    size = 64_000_000
    torch.ones(4 * size // 4)  # a higher peak, before
    for _ in range(2):
        with peak_memory() as peak:
            torch.ones(size // 4)
        if peak.bytes is not None:  # this system tells
            assert 0.9 * size < peak.bytes < 1.5 * size
