"""The n-gram against a slow dictionary that follows the paper, and its laws: it sums to one, it keeps its state."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from seqloom.core import memory
from seqloom.core.errors import RunError, UserError
from seqloom.core.task import Task
from seqloom.models import ngram
from seqloom.models.ngram import Config, NGram

ORDERS = [1, 2, 3, 5, 7]


class Words(Task):
    name, metric, accepts, binned = "words", "loss", frozenset({"causal"}), None
    embed = head = batches = loss = evaluate = None  # type: ignore[assignment]

    def __init__(self, vocabulary: int) -> None:
        self.vocabulary = vocabulary

    def stream(self, rows: Any) -> Any:
        return rows


def text(length: int, vocabulary: int, seed: int = 0) -> Tensor:
    """Tokens with the habits of words: a few frequent ones, and pairs that like each other."""
    generator = torch.Generator().manual_seed(seed)
    frequency = 1 / torch.arange(1.0, vocabulary + 1)
    drawn = torch.multinomial(frequency, length + 1, replacement=True, generator=generator)[:length]
    follows = torch.rand(length, generator=generator) < 0.5
    for i in range(1, length):
        drawn[i] = (drawn[i - 1] * 3 + 1) % vocabulary if follows[i] else drawn[i]
    return drawn


def model(order: int, vocabulary: int, tokens: Tensor) -> NGram:
    built = Config(order=order).assemble(Words(vocabulary))
    built.observe(tokens.split(100))
    return built


class Dictionary:
    """Interpolated modified Kneser-Ney, one Python dictionary per length."""

    def __init__(self, tokens: list[int], vocabulary: int, order: int) -> None:
        self.vocabulary, self.order = vocabulary, order
        self.counts: dict[int, Counter] = {}
        for n in range(1, order + 1):
            if n == order:
                self.counts[n] = Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))
                continue
            before = defaultdict(set)
            for i in range(len(tokens) - n + 1):
                before[tuple(tokens[i : i + n])].add(tokens[i - 1] if i else "beginning")
            self.counts[n] = Counter({gram: len(seen) for gram, seen in before.items()})
        self.following: dict[tuple[int, ...], Counter] = defaultdict(Counter)
        for n, counts in self.counts.items():
            for gram, count in counts.items():
                assert len(gram) == n
                self.following[gram[:-1]][gram[-1]] = count

    def discount(self, n: int, count: int) -> float:
        if count == 0:
            return 0.0
        n1, n2, n3, n4 = (sum(c == k for c in self.counts[n].values()) for k in (1, 2, 3, 4))
        y = n1 / (n1 + 2 * n2) if n1 and n2 else None
        k = min(count, 3)
        here, above = ((n1, n2), (n2, n3), (n3, n4))[k - 1]
        estimate = k - (k + 1) * y * above / here if y is not None and here and above else 0
        return estimate if estimate > 0 else k / 2

    def probability(self, history: tuple[int, ...], token: int) -> float:
        history = history[len(history) - min(len(history), self.order - 1) :]
        shorter = self.probability(history[1:], token) if history else 1 / self.vocabulary
        following = self.following.get(history)
        if not following:
            return shorter
        n, total = len(history) + 1, sum(following.values())
        left = sum(self.discount(n, c) for c in following.values()) / total
        count = following.get(token, 0)
        return (count - self.discount(n, count)) / total + left * shorter


@pytest.mark.parametrize("order", ORDERS)
def test_equals_the_dictionary(order: int) -> None:
    tokens, unseen = text(400, 12), text(40, 12, seed=1)
    slow = Dictionary(tokens.tolist(), 12, order)
    found, _ = model(order, 12, tokens)(unseen[None])
    wanted = torch.tensor(
        [[slow.probability(tuple(unseen[: i + 1].tolist()), w) for w in range(12)] for i in range(40)],
        dtype=torch.float64,
    )
    torch.testing.assert_close(found[0].double().exp(), wanted, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("length", [0, 1, 2, 3, 6, 3000])
@pytest.mark.parametrize("order", ORDERS)
def test_sums_to_one_and_excludes_nothing(order: int, length: int) -> None:
    tokens = text(length, 40)
    predictions, _ = model(order, 50, tokens)(torch.cat([tokens[:200], torch.arange(50)])[None])  # 40-49: never seen
    assert predictions.dtype == torch.float32
    assert predictions.isfinite().all()
    total = predictions.double().exp().sum(-1)
    torch.testing.assert_close(total, torch.ones_like(total), atol=1e-6, rtol=0)


@pytest.mark.parametrize("order", ORDERS)
def test_a_vocabulary_of_one_token_is_certain(order: int) -> None:
    predictions, _ = model(order, 1, torch.zeros(9, dtype=torch.int64))(torch.zeros(1, 4, dtype=torch.int64))
    torch.testing.assert_close(predictions, torch.zeros(1, 4, 1))


def test_a_text_whose_counts_do_not_fit_into_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 30_000)
    with pytest.raises(RunError, match=r"ngram: counting 5-grams of 1,000 tokens needs about .* lower model.order"):
        model(5, 9, text(1000, 9))


def test_is_uniform_before_it_has_counted() -> None:
    predictions, _ = NGram(8, 4)(torch.arange(8)[None])
    torch.testing.assert_close(predictions.exp(), torch.full((1, 8, 8), 1 / 8))


def test_learns_what_always_follows() -> None:
    cycle = torch.arange(5).repeat(200)
    predictions, _ = model(3, 5, cycle)(cycle[None, :20])
    assert torch.equal(predictions[0, 1:].argmax(-1), cycle[2:21])


@pytest.mark.parametrize("order", ORDERS)
def test_in_pieces_equals_at_once_exactly(order: int) -> None:
    built, inputs = model(order, 12, text(500, 12)), text(60, 12, seed=2).view(3, 20)
    whole, end = built(inputs)
    for sizes in ([1] * 20, [7, 1, 12], [2, 18]):
        state: Any = None
        parts = []
        for piece in inputs.split(sizes, dim=1):
            part, state = built(piece, state)
            parts.append(part)
        assert torch.equal(torch.cat(parts, dim=1), whole)
        assert torch.equal(state, end)


def test_small_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    built, inputs = model(4, 12, text(500, 12)), text(60, 12, seed=2).view(3, 20)
    whole, _ = built(inputs)
    monkeypatch.setattr(ngram, "CHUNK", 30)
    assert torch.equal(built(inputs)[0], whole)


@pytest.mark.parametrize("order", ORDERS)
def test_padding_never_enters_the_state(order: int) -> None:
    built, inputs = model(order, 12, text(500, 12)), text(60, 12, seed=2).view(3, 20)
    mask = torch.arange(20)[None] < torch.tensor([20, 2, 0])[:, None]
    before: Any = built.begin(text(9, 12, seed=3).view(3, 3))
    predictions, state = built(inputs, before, mask)
    for row, length in enumerate([20, 2, 0]):
        alone, after = built(inputs[row : row + 1, :length], before[row : row + 1])
        assert torch.equal(predictions[row, :length], alone[0])
        assert torch.equal(state[row], after[0])
    assert torch.equal(state[2], before[2])


def test_begin_honours_the_mask_and_encode_sees_the_same() -> None:
    built, context = model(3, 12, text(500, 12)), torch.tensor([[1, 2, 3, 4], [5, 0, 0, 0]])
    mask = torch.tensor([[True] * 4, [True, False, False, False]])
    assert torch.equal(built.begin(context, mask), torch.tensor([[3, 4], [-1, 5]]))
    assert torch.equal(built.encode(context, mask), built(context, None, mask)[0])


def test_pieces_of_the_stream_follow_each_other() -> None:
    tokens, inputs = text(300, 12), text(30, 12, seed=2)[None]
    together, apart = NGram(12, 3), NGram(12, 3)
    together.observe([tokens])
    apart.observe(tokens.split([1, 120, 179]))
    assert torch.equal(together(inputs)[0], apart(inputs)[0])


@pytest.mark.parametrize("order", [1, 4])
def test_saves_and_loads(order: int, tmp_path: Path) -> None:
    built, inputs = model(order, 12, text(500, 12)), text(30, 12, seed=2)[None]
    save_file(built.state_dict(), tmp_path / "model.safetensors")
    fresh = nn.Sequential(NGram(12, order))
    fresh.load_state_dict({f"0.{k}": v for k, v in load_file(tmp_path / "model.safetensors").items()})
    assert torch.equal(fresh[0](inputs)[0], built(inputs)[0])
    fresh.to("meta")
    assert all(buffer.is_meta for buffer in fresh.buffers())


def test_another_vocabulary_is_refused() -> None:
    with pytest.raises(RuntimeError, match="unigram"):
        NGram(13, 2).load_state_dict(model(2, 12, text(50, 12)).state_dict())
    with pytest.raises(ValueError, match="between 0 and 4"):
        NGram(5, 2).observe([torch.tensor([1, 5])])


def test_a_task_without_tokens_is_refused() -> None:
    with pytest.raises(UserError, match="counts the tokens of running text"):
        Config().assemble(SimpleNamespace(name="reading", check_kind=lambda kind: None))  # type: ignore[arg-type]
