"""Beam search: keep the best few continuations of every prompt, all prompts at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from seqloom.core.network import SequenceModel
from seqloom.core.state import select_rows
from seqloom.generate.stream import after_full, begin


class Hypothesis(NamedTuple):
    tokens: list[int]  # without the prompt and without the end
    score: float  # log probability, divided by length ** length_penalty


@torch.inference_mode()
def beam_search(
    model: SequenceModel,
    prompts: Sequence[Sequence[int]],
    *,
    beams: int,
    max_new: int,
    end: int | None = None,
    length_penalty: float = 1.0,
) -> list[list[Hypothesis]]:
    """For every prompt, up to `beams` finished continuations, best first.

    Every prompt keeps `beams` rows in one batch; rows that reach `end` are set aside as finished.
    A model that is full goes on as in `stream`.
    """
    device, limit, count = model.device, model.limit, len(prompts)
    skipped = [0 if limit is None else max(0, len(prompt) - limit) for prompt in prompts]
    state, last = begin(model, [prompt[skip:] for prompt, skip in zip(prompts, skipped, strict=True)], device)
    rows = torch.arange(count, device=device).repeat_interleave(beams)
    state, last = select_rows(state, rows), last[rows]
    scores = torch.full((count, beams), -torch.inf, device=device)
    scores[:, 0] = 0.0  # all beams begin alike: only the first may branch
    tokens = torch.empty(count, beams, 0, dtype=torch.long, device=device)
    finished: list[list[Hypothesis]] = [[] for _ in range(count)]
    for step in range(max_new):
        if limit is not None and _skip(skipped, prompts, step, limit):
            state, last = begin(model, _histories(prompts, tokens, skipped), device)
        logits, state = model(last[:, None], state)
        total = scores[..., None] + logits[:, -1].log_softmax(-1).view(count, beams, -1)  # (N, beams, V)
        size = total.size(-1)
        best, place = total.flatten(1).topk(min(2 * beams, beams * size))  # twice as many: half of them may be ends
        parent, token = place // size, place % size
        if end is not None:
            _set_aside(finished, tokens, parent, token == end, best, (step + 1) ** length_penalty, beams)
            best = best.masked_fill(token == end, -torch.inf)
        scores, kept = best.topk(beams)
        parent, token = parent.gather(1, kept), token.gather(1, kept)
        tokens = torch.cat((tokens.gather(1, parent[..., None].expand(-1, -1, step)), token[..., None]), dim=-1)
        rows = (torch.arange(count, device=device)[:, None] * beams + parent).flatten()
        state, last = select_rows(state, rows), token.flatten()
        if end is not None and _decided(finished, scores, max_new**length_penalty, beams):
            break
    for row, alive in enumerate(finished):
        if len(alive) < beams:
            divisor = max(1, tokens.size(-1)) ** length_penalty
            alive += [
                Hypothesis(t, s / divisor)
                for t, s in zip(tokens[row].tolist(), scores[row].tolist(), strict=True)
                if s > -torch.inf
            ]
        alive.sort(key=lambda h: h.score, reverse=True)
    return [alive[:beams] for alive in finished]


def _skip(skipped: list[int], prompts: Sequence[Sequence[int]], step: int, limit: int) -> bool:
    """Let prompts whose rows are full go on from their last half; whether there were any."""
    lengths = [len(prompt) + step for prompt in prompts]
    full = [row for row, length in enumerate(lengths) if length - skipped[row] > limit]
    for row in full:
        skipped[row] = lengths[row] - after_full(limit)
    return bool(full)


def _histories(prompts: Sequence[Sequence[int]], tokens: Tensor, skipped: Sequence[int]) -> list[list[int]]:
    """What each beam of each prompt has read, without what is skipped."""
    return [
        [*prompt, *beam][skip:]
        for prompt, found, skip in zip(prompts, tokens.tolist(), skipped, strict=True)
        for beam in found
    ]


def _set_aside(
    finished: list[list[Hypothesis]],
    tokens: Tensor,
    parent: Tensor,
    ended: Tensor,
    best: Tensor,
    divisor: float,
    beams: int,
) -> None:
    """Continuations that end now, if they are among the best `beams` of their prompt."""
    for row, place in ended[:, :beams].nonzero().tolist():
        score = float(best[row, place])
        if score > -torch.inf:
            finished[row].append(Hypothesis(tokens[row, int(parent[row, place])].tolist(), score / divisor))


def _decided(finished: list[list[Hypothesis]], scores: Tensor, divisor: float, beams: int) -> bool:
    """Whether no living continuation can still overtake the finished ones."""
    for row, done in enumerate(finished):
        if len(done) < beams:
            return False
        worst = sorted((h.score for h in done), reverse=True)[beams - 1]
        if float(scores[row, 0]) / divisor > worst:
            return False
    return True
