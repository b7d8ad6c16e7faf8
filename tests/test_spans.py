"""Windows of a long sequence, the best span in one, and marks on what a passage has in common with a question."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from seqloom.layers.inputs import MatchedEmbedding
from seqloom.tasks.question_answering.spans import best_spans
from seqloom.tasks.question_answering.task import Config
from seqloom.tasks.question_answering.windows import cut_windows
from seqloom.tokenizers import train_tokenizer


@pytest.mark.parametrize(
    ("lengths", "room", "overlap"), [((0, 1, 9, 10, 11, 37), 10, 3), ((50,), 7, 6), ((8, 80), 5, 0)]
)
def test_windows_cover_all_in_order_and_overlap_as_asked(lengths: tuple[int, ...], room: int, overlap: int) -> None:
    windows = cut_windows(np.array(lengths), np.full(len(lengths), room), overlap)
    for row, length in enumerate(lengths):
        own = windows[windows[:, 0] == row, 1:].tolist()
        assert own[0][0] == 0 and own[-1][1] == length and all(end - begin <= room for begin, end in own)
        assert all(before[1] - after[0] == overlap for before, after in pairwise(own))
        assert len(own) == 1 or length > room
        for size in range(1, overlap + 2):
            for first in range(length - size + 1):
                assert any(begin <= first and first + size <= end for begin, end in own)


@pytest.mark.parametrize("seed", range(20))
def test_the_best_spans_are_those_of_brute_force(seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    length, longest, count = (int(torch.randint(1, 9, (), generator=draw)) for _ in range(3))
    starts, ends = torch.randn(2, 3, length, generator=draw, dtype=torch.float64)
    allowed = torch.rand(3, length, generator=draw) < 0.7
    scores, first, last = best_spans(starts, ends, allowed, longest, count)
    for row in range(3):
        wanted = sorted(
            (
                (float(starts[row, s] + ends[row, e]), s, e)
                for s in range(length)
                for e in range(s, min(length, s + longest))
                if allowed[row, s] and allowed[row, e]
            ),
            reverse=True,
        )[:count]
        found = list(zip(scores[row].tolist(), first[row].tolist(), last[row].tolist(), strict=True))
        assert len(found) == count and found[: len(wanted)] == wanted
        assert all(score == -math.inf for score, _, _ in found[len(wanted) :])


def test_the_match_marks_what_stands_in_the_question_alone_or_with_its_neighbour() -> None:
    table = MatchedEmbedding(10, 4, mark=2, keys=[0, 0, 0, 0, 1, 2, 3, 1, 4, 0])
    inputs = torch.tensor(
        [
            [1, 4, 5, 9, 2, 6, 5, 8, 7, 5, 9, 4, 2],  # 7 counts as 4; 9 never counts
            [1, 6, 2, 6, 6, 4, 2, 0, 0, 0, 0, 0, 0],
            [2, 4, 4, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ]
    )
    assert table.matches(inputs).tolist() == [
        [0, 0, 0, 0, 0, 0, 1, 0, 2, 2, 0, 1, 0],
        [0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0],
        [0] * 13,
    ]
    assert table(inputs).shape == (3, 13, 4) and "keys" not in table.state_dict()
    bpe = train_tokenizer("bpe", ["the cat The CAT, the. " * 9], size=300)
    task = Config().build(bpe)
    embed = task.embed(4)
    assert embed.weight.shape == (bpe.size + 1, 4)
    ids = {bpe.name(id): id for id in range(bpe.size)}
    assert embed.keys[ids["the"]] == embed.keys[ids[" the"]] == embed.keys[ids[" The"]] != 0
    assert embed.keys[ids[","]] == embed.keys[0] == embed.keys[bpe.size] == 0
    assert not isinstance(Config(match=False).build(bpe).embed(4), MatchedEmbedding)
