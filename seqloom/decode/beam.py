"""Beam search from a state: the best few continuations of every row, all rows at once.

A beam of one is greedy decoding; with `pick`, it is sampling.
N rows are unfinished, each with W <= beams active hypotheses: N * W rows of the model's state. Of the V tokens that
could extend each of them, K are candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.core.state import State, select_rows
from seqloom.decode.pick import forbid_repeats, forbid_token
from seqloom.decode.prompts import Refill

MOST_BEAMS = 100  # more take much memory and time, and find hardly anything better
Pick = Callable[[Tensor], Tensor]  # (B, V) -> (B,)


class Hypothesis(NamedTuple):
    tokens: list[int]  # generated tokens, without the end token
    score: float  # log-probability / length ** length_penalty


def check_beams(beams: int) -> None:
    if not 1 <= beams <= MOST_BEAMS:
        raise UserError(f"beams={beams}: must be from 1 (greedy) to {MOST_BEAMS:,}")


@torch.inference_mode()
def beam_search(
    model: SequenceModel,
    state: State,
    last: Tensor,
    *,
    beams: int,
    max_new: int | Sequence[int],
    end: int | None = None,
    length_penalty: float = 1.0,
    min_new: int = 0,
    no_repeat: int = 0,
    early: bool = True,
    pick: Pick | None = None,
    refill: Refill | None = None,
) -> list[list[Hypothesis]]:
    """For every row, up to `beams` hypotheses, best first, from a state and the tokens (N,) it has yet to read.

    score = log-probability / length ** length_penalty. The length includes the `end` token, if it was generated.
    max_new: maximum new tokens, for all rows or per row. When they are used up, or when no token can follow, active
        hypotheses are returned as they are, unless `beams` hypotheses have already ended.
    min_new: minimum number of tokens before `end`. no_repeat: no n-gram of this size is generated twice. Forbidding a
        token does not renormalise the log-probabilities of the others.
    early: a row is finished once `beams` hypotheses have ended and the best active one, at its current length, scores
        below them all; otherwise only once no active one could overtake them within `max_new`.
    pick: chooses the single candidate per row, instead of the most likely ones.
    refill: for models with a limit (see prompts.py).
    Finished rows are removed from the batch.
    """
    search = _Search(last, max_new, beams, end, length_penalty, early)
    while search.continues():
        if refill is not None and search.step >= refill.due:
            state, last = refill(search.numbers.tolist(), search.tokens)
        else:
            state, last = _follow(state, search.origin.flatten(), last.size(0)), search.last.flatten()
        logits, state = model(last[:, None], state)
        logits = logits[:, -1].to(torch.promote_types(logits.dtype, torch.float32))
        total = logits.logsumexp(-1, keepdim=True)
        if end is not None and search.step < min_new:
            logits = forbid_token(logits, end)
        if no_repeat:
            logits = forbid_repeats(logits, search.tokens.flatten(0, 1), no_repeat)
        values, token = _candidates(logits, 2 * beams, pick)
        impossible = -torch.inf  # nan: all logits are -inf, or the model is broken
        search.extend((values - total).nan_to_num(nan=impossible, neginf=impossible), token)
    return search.results()


def _follow(state: State, origin: Tensor, count: int) -> State:
    """Select the rows `origin` of a state of `count` rows; no copy if that is all of them, as in greedy decoding."""
    if len(origin) == count and bool((origin == torch.arange(count, device=origin.device)).all()):
        return state
    return select_rows(state, origin)


def _candidates(logits: Tensor, most: int, pick: Pick | None) -> tuple[Tensor, Tensor]:
    """Candidate next tokens and their logits, (B, V) -> (B, K) each."""
    if pick is None:
        values, token = logits.topk(min(most, logits.size(1)))
        return values, token
    stuck = ~(logits.amax(-1, keepdim=True) > -torch.inf)  # whatever is drawn here, its logit stays -inf
    token = pick(logits.masked_fill(stuck, 0.0))[:, None]
    return logits.gather(1, token), token


class _Search:
    """The unfinished rows, and the hypotheses found for every row.

    Values that are inspected row by row stay on the CPU.
    """

    def __init__(
        self,
        last: Tensor,
        max_new: int | Sequence[int],
        beams: int,
        end: int | None,
        length_penalty: float,
        early: bool,
    ) -> None:
        count = last.size(0)
        self.beams, self.end, self.length_penalty, self.early = beams, end, length_penalty, early
        self.found: list[list[Hypothesis]] = [[] for _ in range(count)]
        self.numbers = torch.arange(count)  # (N,)
        self.until = torch.as_tensor(max_new).expand(count).double()  # (N,)
        self.bar = torch.full((count,), -torch.inf, dtype=torch.double)  # (N,) the score to beat
        self.scores = torch.zeros(count, 1, device=last.device)  # (N, W) log-probabilities
        self.tokens = last.new_empty(count, 1, 0)  # (N, W, step)
        self.last = last[:, None]  # (N, W) not read yet
        rows = torch.arange(count, device=last.device)
        self.origin = rows[:, None]  # (N, W) rows of the state behind these hypotheses

    @property
    def step(self) -> int:
        return self.tokens.size(-1)

    def continues(self) -> bool:
        """Remove finished rows; returns whether any are left."""
        length = torch.full_like(self.until, self.step) if self.early else self.until
        potential = self.scores[:, 0].cpu().double() / length.clamp(min=1) ** self.length_penalty
        over = (self.until <= self.step) | (potential <= self.bar)
        if over.any():
            self._take_active(over)
            self._keep((~over).nonzero()[:, 0])
        return len(self.numbers) > 0

    def extend(self, log_probabilities: Tensor, token: Tensor) -> None:
        """Append one token, given candidates (N * W, K) and their log-probabilities."""
        count, width = self.scores.shape
        total = (self.scores[..., None] + log_probabilities.view(count, width, -1)).flatten(1)  # (N, W * K)
        best, place = total.topk(min(2 * self.beams, total.size(1)))  # twice as many, because half may be end tokens
        parent, token = place // log_probabilities.size(1), token.view(count, -1).gather(1, place)
        stuck = (best[:, 0] == -torch.inf).cpu()
        if stuck.any():
            self._take_active(stuck)
        if self.end is not None:
            ended = token == self.end
            self._take_ended(ended & (best > -torch.inf), parent, best)
            best = best.masked_fill(ended, -torch.inf)
        self.scores, kept = best.topk(min(self.beams, best.size(1)))
        parent, self.last = parent.gather(1, kept), token.gather(1, kept)
        written = self.tokens.gather(1, parent[..., None].expand(-1, -1, self.step))
        self.tokens = torch.cat((written, self.last[..., None]), dim=-1)
        self.origin = torch.arange(count, device=parent.device)[:, None] * width + parent

    def results(self) -> list[list[Hypothesis]]:
        return [sorted(found, key=lambda h: -h.score)[: self.beams] for found in self.found]

    def _take_ended(self, ended: Tensor, parent: Tensor, best: Tensor) -> None:
        """Keep hypotheses that end now and are among the best `beams` of their row."""
        for row, place in ended[:, : self.beams].nonzero().tolist():
            found = self.found[int(self.numbers[row])]
            score = float(best[row, place]) / (self.step + 1) ** self.length_penalty
            found.append(Hypothesis(self.tokens[row, parent[row, place]].tolist(), score))
            if len(found) >= self.beams:
                self.bar[row] = sorted((h.score for h in found), reverse=True)[self.beams - 1]

    def _take_active(self, rows: Tensor) -> None:
        """Keep the active hypotheses of these rows as they are, if fewer than `beams` have ended."""
        divisor = max(1, self.step) ** self.length_penalty
        for row in rows.nonzero()[:, 0].tolist():
            found = self.found[int(self.numbers[row])]
            if len(found) < self.beams:
                active = zip(self.tokens[row].tolist(), self.scores[row].tolist(), strict=True)
                found += [Hypothesis(tokens, score / divisor) for tokens, score in active if score > -torch.inf]

    def _keep(self, rows: Tensor) -> None:
        self.numbers, self.until, self.bar = self.numbers[rows], self.until[rows], self.bar[rows]
        rows = rows.to(self.last.device)
        self.scores, self.tokens = self.scores[rows], self.tokens[rows]
        self.last, self.origin = self.last[rows], self.origin[rows]
