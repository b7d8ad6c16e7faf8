"""Linear attention against its definition, one weight for every pair of positions, in double precision."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from toys import alive, close

from seqloom.core.taps import record
from seqloom.models.linear_attention import Config, MatrixMemory, attend

ROWS, HEADS, LENGTH, SIZE = 2, 3, 11, 4
WIDTH = HEADS * SIZE

each_chunk = pytest.mark.parametrize("chunk", [1, 4, LENGTH, 64])


def vectors(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def parts() -> list[Tensor]:
    return [vectors(ROWS, HEADS, LENGTH, SIZE, seed=n) for n in range(3)]


def mixer(**options: Any) -> MatrixMemory:
    return alive(MatrixMemory(Config.model_validate({"width": WIDTH, "heads": HEADS, **options})))


@each_chunk
def test_chunks_give_what_all_pairs_of_positions_give(chunk: int) -> None:
    q, k, v = parts()
    past = vectors(ROWS, HEADS, SIZE, SIZE, seed=5)
    answers, after = attend(q, k, v, past, chunk)
    close(answers, (q @ k.mT).tril() @ v + q @ past)
    close(after, past + k.mT @ v)


@each_chunk
def test_one_token_at_a_time_gives_the_same_answers_and_the_same_matrix(chunk: int) -> None:
    q, k, v = parts()
    whole, end = attend(q, k, v, torch.zeros(ROWS, HEADS, SIZE, SIZE, dtype=torch.float64), chunk)
    past, answers = torch.zeros_like(end), []
    for q_t, k_t, v_t in zip(*(x.split(1, dim=2) for x in (q, k, v)), strict=True):
        answer, past = attend(q_t, k_t, v_t, past, chunk)
        answers.append(answer)
    close(torch.cat(answers, dim=2), whole)
    close(past, end)


@each_chunk
def test_as_published_every_answer_is_an_average_of_values(chunk: int) -> None:
    memory, x = mixer(average=True, chunk=chunk), vectors(ROWS, LENGTH, WIDTH)
    with record(memory) as trace:
        memory(x, None, None)
    q, k, v = memory.qkv(x).view(ROWS, LENGTH, 3, HEADS, SIZE).permute(2, 0, 3, 1, 4)
    weights = ((F.elu(q) + 1) @ (F.elu(k) + 1).mT).tril()
    weights = weights / weights.sum(-1, keepdim=True)
    close(trace["answers"][0], (weights @ v).transpose(1, 2).flatten(2))


def test_padding_leaves_nothing_behind() -> None:
    for average in (False, True):
        memory, x = mixer(average=average), vectors(ROWS, LENGTH, WIDTH)
        mask = torch.arange(LENGTH) < torch.tensor([[7], [0]])
        outputs, after = memory(x, None, mask)
        alone, end = memory(x[:1, :7], None, None)
        close(outputs[:1, :7], alone)
        close(after[:1], end)
        assert after[1].eq(0).all() and outputs.isfinite().all()


def test_its_memory_is_one_matrix_per_head_and_never_grows() -> None:
    model = alive(Config.model_validate({"width": 16, "depth": 1}).build())
    for length in (1, 5, 200):
        _, (read, ((_, matrix),)) = model(vectors(ROWS, length, 16))
        assert read.tolist() == [length] * ROWS and matrix.shape == (ROWS, 4, 4, 4)


def test_widths_that_do_not_divide_are_refused() -> None:
    with pytest.raises(ValueError, match="width=20 must be a multiple of 2 x heads"):
        Config.model_validate({"width": 20})
