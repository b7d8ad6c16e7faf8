"""The CRF against all paths, counted one by one: loss, gradient, best path; and padding that changes nothing."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor
from toys import alive, close, each

from seqloom.core.batch import IGNORE
from seqloom.tasks.tagging.crf import CRF, may_follow
from seqloom.tasks.tagging.head import TagHead, words_only

BIO = ["O", "B-A", "I-A", "B-B", "I-B"]
PLAIN = ["noun", "verb", "other"]
LENGTHS = (4, 1, 3, 2)


def crf_of(tags: list[str]) -> CRF:
    return alive(CRF(tags), std=1.0)


def emissions(tags: list[str], *shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, len(tags), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def legal(tags: list[str], path: tuple[int, ...]) -> bool:
    names = ["O", *(tags[n] for n in path)]
    return all(may_follow(before, tag) for before, tag in itertools.pairwise(names))


def score(crf: CRF, row: Tensor, path: tuple[int, ...]) -> Tensor:
    """By the definition."""
    total = crf.first[path[0]] + crf.last[path[-1]]
    total = total + sum(row[t, tag] for t, tag in enumerate(path))
    return total + sum(crf.moves[a, b] for a, b in itertools.pairwise(path))


def all_paths(crf: CRF, tags: list[str], row: Tensor) -> dict[tuple[int, ...], Tensor]:
    """The scores of all legal paths through (W, K) emissions."""
    paths = itertools.product(range(len(tags)), repeat=len(row))
    return {path: score(crf, row, path) for path in paths if legal(tags, path)}


def padded(tags: list[str], seed: int = 0) -> tuple[Tensor, Tensor]:
    """Rows of several lengths, and their mask."""
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    return emissions(tags, len(LENGTHS), max(LENGTHS), seed=seed), mask


@pytest.mark.parametrize("tags", [BIO, PLAIN], ids=["BIO", "plain"])
@each(seed=range(4))
def test_loss_and_gradient_equal_those_over_all_paths(tags: list[str], seed: int) -> None:
    crf = crf_of(tags)
    given, mask = padded(tags, seed)
    given.requires_grad_()
    chosen, losses = torch.full(mask.shape, IGNORE), []
    for row, length in enumerate(LENGTHS):
        paths = all_paths(crf, tags, given[row, :length])
        path = list(paths)[(7 * seed + 3 * row) % len(paths)]
        chosen[row, :length] = torch.tensor(path)
        losses.append(torch.stack(list(paths.values())).logsumexp(0) - paths[path])
    wanted = torch.stack(losses)
    got = crf.loss(given, chosen, mask)
    close(got, wanted)
    leaves = [given, *crf.parameters()]
    weights = torch.arange(1.0, len(LENGTHS) + 1, dtype=torch.float64)
    for ours, theirs in zip(
        torch.autograd.grad((got * weights).sum(), leaves), torch.autograd.grad((wanted * weights).sum(), leaves),
        strict=True,
    ):  # fmt: skip
        close(ours, theirs)


@pytest.mark.parametrize("tags", [BIO, PLAIN], ids=["BIO", "plain"])
@each(seed=range(4))
def test_the_best_path_is_the_best_of_all(tags: list[str], seed: int) -> None:
    crf = crf_of(tags)
    given, mask = padded(tags, seed)
    found = crf.decode(given, mask)
    for row, length in enumerate(LENGTHS):
        paths = all_paths(crf, tags, given[row, :length])
        assert tuple(found[row, :length].tolist()) == max(paths, key=lambda path: paths[path].item())
        assert not found[row, length:].any()


def test_the_chances_of_all_legal_paths_make_one() -> None:
    crf, given = crf_of(BIO), emissions(BIO, 1, 4)
    paths = [path for path in itertools.product(range(len(BIO)), repeat=4) if legal(BIO, path)]
    rows = given.expand(len(paths), -1, -1)
    chances = crf.loss(rows, torch.tensor(paths), torch.ones(len(paths), 4, dtype=torch.bool)).neg().exp()
    close(chances.sum(), torch.ones((), dtype=torch.float64))


def test_gradients_pass_gradcheck() -> None:
    crf = crf_of(BIO)
    given, mask = padded(BIO)
    tags = torch.tensor([[1, 2, 0, 3], [0, 0, 0, 0], [3, 4, 4, 0], [1, 3, 0, 0]])
    leaves = [given.requires_grad_(), crf.moves, crf.first, crf.last]

    def loss(given: Tensor, moves: Tensor, first: Tensor, last: Tensor) -> Tensor:
        return torch.func.functional_call(  # type: ignore[no-any-return]
            _Loss(crf), {"crf.moves": moves, "crf.first": first, "crf.last": last}, (given, tags, mask)
        )

    assert torch.autograd.gradcheck(loss, leaves)


class _Loss(torch.nn.Module):
    def __init__(self, crf: CRF) -> None:
        super().__init__()
        self.crf = crf

    def forward(self, *arguments: Tensor) -> Tensor:
        return self.crf.loss(*arguments)


def test_what_stands_in_padding_changes_nothing() -> None:
    crf = crf_of(BIO)
    given, mask = padded(BIO)
    tags = torch.zeros(mask.shape, dtype=torch.long)
    before = crf.loss(given, tags, mask), crf.decode(given, mask)
    wild = given.masked_fill(~mask[..., None], 1e3)
    after = crf.loss(wild, tags.masked_fill(~mask, 4), mask), crf.decode(wild, mask)
    close(after[0], before[0])
    assert torch.equal(after[1], before[1])
    for row, length in enumerate(LENGTHS):
        alone = torch.ones(1, length, dtype=torch.bool)
        close(crf.loss(given[row : row + 1, :length], tags[row : row + 1, :length], alone), before[0][row : row + 1])
        assert torch.equal(crf.decode(given[row : row + 1, :length], alone)[0], before[1][row, :length])


@pytest.mark.parametrize("width", [0, 3])
def test_rows_of_nothing_have_no_loss_and_every_weight_takes_part(width: int) -> None:
    crf = crf_of(BIO)
    given, mask = emissions(BIO, 2, width).requires_grad_(), torch.zeros(2, width, dtype=torch.bool)
    loss = crf.loss(given, torch.zeros(2, width, dtype=torch.long), mask)
    assert loss.tolist() == [0.0, 0.0] and crf.decode(given, mask).shape == (2, width)
    loss.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in crf.parameters())


@each(seed=range(20))
def test_no_best_path_breaks_bio(seed: int) -> None:
    crf = CRF(BIO)
    given = 30 * emissions(BIO, 5, 9, seed=seed).float()
    for row in crf.decode(given, torch.ones(5, 9, dtype=torch.bool)).tolist():
        assert legal(BIO, tuple(row))


def test_which_tags_may_follow_which() -> None:
    assert not may_follow("O", "I-A") and not may_follow("B-B", "I-A") and not may_follow("I-B", "I-A")
    assert may_follow("B-A", "I-A") and may_follow("I-A", "I-A") and may_follow("I-A", "B-B") and may_follow("I-A", "O")
    assert may_follow("noun", "verb") and not may_follow("B-I-A", "I-A") and may_follow("B-X-Y", "I-X-Y")


def test_a_confident_model_keeps_a_finite_gradient() -> None:
    """Paths whose chance is too small for a number: the sum of all is still taken in log space."""
    crf = CRF(BIO)
    given = torch.zeros(1, 30, len(BIO))
    given[..., 0] = 300.0
    given.requires_grad_()
    loss = crf.loss(given, torch.full((1, 30), 1), torch.ones(1, 30, dtype=torch.bool))
    loss.sum().backward()
    assert math.isclose(loss.item(), 9000, rel_tol=1e-4) and given.grad is not None and given.grad.isfinite().all()


def test_words_are_gathered_from_among_marks_and_further_parts() -> None:
    scores = torch.arange(2 * 6 * 3.0).view(2, 6, 3)
    targets = torch.tensor([[IGNORE, 1, IGNORE, 0, 2, IGNORE], [IGNORE, 2, IGNORE, IGNORE, IGNORE, IGNORE]])
    words, tags, mask = words_only(scores, targets)
    assert words[0].tolist() == scores[0, [1, 3, 4]].tolist() and words[1, 0].tolist() == scores[1, 1].tolist()
    assert tags[0].tolist() == [1, 0, 2] and tags[1, 0] == 2 and mask.tolist() == [[True] * 3, [True, False, False]]
    nothing = words_only(scores, torch.full((2, 6), IGNORE))
    assert [tuple(part.shape) for part in nothing] == [(2, 0, 3), (2, 0), (2, 0)]


@pytest.mark.parametrize("crf", [False, True])
def test_a_head_scores_every_position(crf: bool) -> None:
    head = TagHead(4, BIO, dropout=0.5, crf=crf)
    x = torch.randn(2, 3, 4)
    assert head(x).shape == (2, 3, 5) and (head.crf is not None) == crf
    assert not torch.equal(head(x), head(x)) and torch.equal(head.eval()(x), head(x))
