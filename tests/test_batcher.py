"""Continuous batching: whatever joins and leaves beside it, a row is continued as if it were alone.

The models are found by listing the folder, as in test_contract.py.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from toys import VOCABULARY, Case, accepted, alive, close, every_case, kept, network, title, tokens

from seqloom.core.network import SequenceModel
from seqloom.core.state import State
from seqloom.decode.batcher import Batcher
from seqloom.decode.pick import Choice
from seqloom.decode.rows import Failed, Prompted, Request, Token
from seqloom.decode.stream import stream
from seqloom.layers import packed
from seqloom.layers.int8 import to_int8
from seqloom.layers.lora import adapt
from seqloom.layers.packed import pack

CAUSAL = [case for case in every_case() if accepted(network, *case)]
each_model = pytest.mark.parametrize("case", CAUSAL, ids=title)
same_network = kept(network)
SAMPLED = Choice(temperature=0.8)


def prompt(length: int, seed: int = 0) -> list[int]:
    return tokens(length, seed=seed).tolist()


def alone(model: SequenceModel, request: Request) -> list[list[int]]:
    """What `stream` writes, for each continuation, up to where it is to end."""
    how: dict[str, Any] = {"max_new": request.max_new, "choose": request.choose, "seed": request.seed}
    steps = stream(model, [list(request.prompt)] * request.count, **how)
    found = [list(row) for row in zip(*(step.tolist() for step in steps), strict=True)]
    return [ended(row, request.ends) for row in found]


def ended(row: list[int], ends: frozenset[int]) -> list[int]:
    last = next((n for n, token in enumerate(row) if token in ends), len(row))
    return row[: last + 1]


def events(batcher: Batcher) -> Iterator[Any]:
    while batcher.busy:
        yield from batcher.step()


def written(found: Any, keys: Any) -> dict[Any, list[list[int]]]:
    rows: dict[Any, dict[int, list[int]]] = {key: {} for key in keys}
    for event in found:
        if isinstance(event, Token):
            rows[event.key].setdefault(event.index, []).append(event.id)
    return {key: [own[n] for n in sorted(own)] for key, own in rows.items()}


def some_requests(count: int, limit: int | None) -> list[Request]:
    """Of all kinds: short and long prompts, greedy and sampled, several continuations, own ends."""
    chance = random.Random(3)
    found = []
    for n in range(count):
        length = chance.choice([1, 2, 3, 7, 12, (limit or 30) - 1, (limit or 30) + 4])
        choose = chance.choice([Choice(temperature=0), SAMPLED, Choice(temperature=1.2, top_k=4, top_p=0.9)])
        ends = frozenset(chance.sample(range(VOCABULARY), chance.choice([0, 0, 1])))
        how: dict[str, Any] = {"seed": n, "count": chance.choice([1, 1, 1, 3]), "ends": ends}
        found.append(Request(prompt=prompt(length, n), max_new=chance.choice([1, 4, 9, 20]), choose=choose, **how))
    return found


@each_model
def test_rows_that_join_and_leave_at_random_are_continued_as_if_alone(case: Case) -> None:
    model, chance = same_network(*case), random.Random(1)
    requests = dict(enumerate(some_requests(14, model.limit)))
    batcher, waiting, found = Batcher(model, rows=5, piece=8), list(requests), []
    while waiting or batcher.busy:
        for _ in range(chance.choice([0, 0, 1, 3])):
            if waiting:
                batcher.add(waiting[0], requests[waiting.pop(0)])
        found += batcher.step()
    for key, rows in written(found, requests).items():
        assert rows == alone(model, requests[key]), (key, requests[key])
    assert not any(isinstance(event, Failed) for event in found)
    assert not batcher.slots and batcher.state is None and not batcher.active


@each_model
def test_a_cancelled_row_ends_without_a_word_and_leaves_the_others_alone(case: Case) -> None:
    model = same_network(*case)
    requests = {n: Request(prompt=prompt(5 + n, n), max_new=12, choose=SAMPLED, seed=n) for n in range(5)}
    batcher, found, after = Batcher(model, rows=4, piece=6), list[Any](), list[Any]()
    for key, request in requests.items():
        batcher.add(key, request)
    for turn in range(8):
        found += batcher.step()
        if turn in (0, 5):
            batcher.cancel((3, 1)[turn // 5])
            after += [len(found)]
    found += events(batcher)
    for key, rows in written(found, requests).items():
        whole = alone(model, requests[key])
        if key in (1, 3):
            assert all(row == whole[0][: len(row)] for row in rows)
        else:
            assert rows == whole
    for key, place in zip((3, 1), after, strict=True):
        assert not [event for event in found[place:] if event.key == key]


@each_model
def test_log_probabilities_are_those_of_the_model_whatever_the_choice(case: Case) -> None:
    model = same_network(*case)
    given = prompt(6)
    choose = Choice(temperature=0.5, top_k=3)
    batcher = Batcher(model, rows=4, piece=4)
    for key, echo in ((0, True), (1, False)):
        batcher.add(key, Request(prompt=given, max_new=5, choose=choose, seed=7, logprobs=3, echo=echo))
    found = list(events(batcher))
    drawn = [event for event in found if isinstance(event, Token) and event.key == 0]
    ids = given + [event.id for event in drawn]
    with torch.inference_mode():
        logs = model(torch.tensor([ids]))[0][0].float().log_softmax(-1)
    echoed = next(event.scored for event in found if isinstance(event, Prompted) and event.key == 0)
    assert echoed is not None and echoed[0] is None
    for place, scored in enumerate([*echoed, *(event.scored for event in drawn)][1:]):
        assert scored is not None
        torch.testing.assert_close(scored.logprob, float(logs[place, ids[place + 1]]), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(
            [log for _, log in scored.top], logs[place].topk(3).values.tolist(), rtol=1e-4, atol=1e-4
        )
    assert next(event.scored for event in found if isinstance(event, Prompted) and event.key == 1) is None


@each_model
def test_rows_at_different_places_take_the_same_step_as_each_alone(case: Case) -> None:
    """Without gradients as in generation, where a single token has a path of its own in some models."""
    model = same_network(*case)
    texts = [tokens(n, seed=n) for n in (3, 9, 5)]
    after = tokens(3, 70, seed=2)  # longer than a first buffer
    with torch.inference_mode():
        state: State = None
        for slot, text in enumerate(texts):
            state = model.slots.join(state, [slot], model(text[None])[1])
        together = []
        for piece in after.split(1, dim=1):
            logits, state = model(piece, state)
            together.append(logits)
        for row, text in enumerate(texts):
            whole = model(torch.cat((text, after[row]))[None])[0][0, len(text) :]
            close(torch.cat(together, dim=1)[row], whole)


@each_model
def test_packed_weights_multiply_like_the_weights_themselves(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "_LARGE", 1)
    model, ids = network(*case).float(), tokens(6, 9)
    with torch.inference_mode():
        wanted = model(ids)[0]
        pack(model)
        pieces, state = [], None
        for piece in ids.split(4, dim=1):
            output, state = model(piece, state)
            pieces.append(output)
        torch.testing.assert_close(torch.cat(pieces, dim=1), wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["gpt", "lstm"])
def test_models_with_adapters_are_batched_too(name: str) -> None:
    model = network(name, {})
    adapt(model, {path: tensor.clone() for path, tensor in model.state_dict().items()}, rank=2, alpha=4)
    alive(model)
    requests = dict(enumerate(some_requests(6, 30)))
    batcher = Batcher(model, rows=4, piece=8)
    for key, request in requests.items():
        batcher.add(key, request)
    found = written(events(batcher), requests)
    assert all(rows == alone(model, requests[key]) for key, rows in found.items())


def test_a_batch_without_rows_has_nothing_to_say() -> None:
    batcher = Batcher(network("gru", {}))
    assert not batcher.busy and batcher.step() == [] and batcher.active == 0
    batcher.cancel("nobody")
    batcher.add(0, Request(prompt=[1], max_new=0))
    assert list(events(batcher)) == [Prompted(0)]


def test_a_prompt_that_cannot_be_read_fails_alone() -> None:
    model = network("lstm", {})
    batcher = Batcher(model)
    requests = {n: Request(prompt=[1, 2, VOCABULARY + 5 if n == 1 else 3], max_new=4) for n in range(4)}
    for key, request in requests.items():
        batcher.add(key, request)
    found = list(events(batcher))
    assert [event.key for event in found if isinstance(event, Failed)] == [1]
    rows = written(found, requests)
    assert all(rows[key] == alone(model, requests[key]) for key in (0, 2, 3))


def test_a_step_that_fails_is_repeated_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    model = network("gpt", {})
    batcher, own, failures = Batcher(model), model.forward, iter([True])
    requests = {n: Request(prompt=prompt(4, n), max_new=6, choose=SAMPLED, seed=n) for n in range(3)}
    for key, request in requests.items():
        batcher.add(key, request)
    found = batcher.step()

    def failing(inputs: Any, state: Any = None, mask: Any = None) -> Any:
        if next(failures, False):
            raise RuntimeError("no memory")
        return own(inputs, state, mask)

    monkeypatch.setattr(model, "forward", failing)
    found += events(batcher)
    assert all(rows == alone(model, requests[key]) for key, rows in written(found, requests).items())


def test_a_long_prompt_is_read_between_the_steps_of_others() -> None:
    model = network("gru", {})
    batcher = Batcher(model, piece=8)
    batcher.add("short", Request(prompt=[1], max_new=20))
    batcher.step()
    batcher.add("long", Request(prompt=prompt(80), max_new=2))
    turns = [batcher.step() for _ in range(9)]
    assert all([event.key for event in turn] == ["short"] for turn in turns)


def test_continuations_of_one_prompt_read_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, read = network("gpt", {}), list[int]()
    follow = model.follow
    monkeypatch.setattr(model, "follow", lambda *given: read.append(given[0].numel()) or follow(*given))
    batcher = Batcher(model)
    batcher.add(0, Request(prompt=prompt(9), max_new=3, count=5, choose=SAMPLED, seed=1))
    assert len(written(events(batcher), [0])[0]) == 5 and read == [9]


def test_a_row_that_joins_or_leaves_copies_no_other_row() -> None:
    model = network("gpt", {})
    batcher = Batcher(model, rows=8)
    for n in range(6):
        batcher.add(n, Request(prompt=prompt(3, n), max_new=30))
    batcher.step()
    batcher.add(6, Request(prompt=prompt(3, 6), max_new=30))
    batcher.step()
    state: Any = batcher.state
    buffers = [t.data_ptr() for pair in state[3] for t in pair]
    batcher.cancel(2)
    batcher.add(7, Request(prompt=prompt(5, 7), max_new=30))
    batcher.step()
    state = batcher.state
    assert [t.data_ptr() for pair in state[3] for t in pair] == buffers and len(batcher.slots) == 7


@pytest.mark.parametrize("name", ["gpt", "lstm"])
def test_quantised_models_are_batched_too(name: str) -> None:
    model = network(name, {"width": 32}).float()
    if name == "gpt":
        model = to_int8(model)
    requests = {n: Request(prompt=prompt(3 + n, n), max_new=12) for n in range(4)}
    batcher = Batcher(model)
    for key, request in requests.items():
        batcher.add(key, request)
    for key, rows in written(events(batcher), requests).items():
        assert follows(model, list(requests[key].prompt), rows[0], margin=0.05)


def follows(model: SequenceModel, ids: list[int], rest: list[int], margin: float) -> bool:
    """Whether every token is the most likely one, or nearly."""
    with torch.inference_mode():
        logits = model(torch.tensor([ids + rest]))[0][0, len(ids) - 1 : -1]
    return bool((logits.amax(-1) - logits[torch.arange(len(rest)), torch.tensor(rest)] < margin).all())
