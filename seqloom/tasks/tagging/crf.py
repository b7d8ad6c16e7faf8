"""A linear-chain conditional random field (Lafferty et al. 2001; on a BiLSTM: Huang et al. 2015).

score(y) = first(y_1) + sum_t emission_t(y_t) + sum_t move(y_{t-1}, y_t) + last(y_T),   p(y) = exp(score(y)) / Z

Z sums over all paths by the forward algorithm, in log space; Viterbi finds the best path. Transitions that BIO does not
allow (O to I-X, B-X to I-Y, a sentence that starts with I-X) are forbidden in both.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_FORBIDDEN = -1e4  # its exponential is exactly zero but, unlike that of -inf, has a gradient


class CRF(nn.Module):
    """B sentences, W words in the longest, K tags. Masks are True where a word is real."""

    def __init__(self, tags: Sequence[str]) -> None:
        super().__init__()
        count = len(tags)
        self.moves = nn.Parameter(torch.zeros(count, count))  # (from, to)
        self.first, self.last = nn.Parameter(torch.zeros(count)), nn.Parameter(torch.zeros(count))
        allowed = [[may_follow(before, tag) for tag in tags] for before in tags]
        self.allowed: Tensor
        self.may_begin: Tensor
        self.register_buffer("allowed", torch.tensor(allowed), persistent=False)
        self.register_buffer("may_begin", torch.tensor([may_follow("O", tag) for tag in tags]), persistent=False)

    def loss(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """-log p of the tags (B, W) for each row; zero for a row that is all padding."""
        emissions, mask = self._ready(emissions, mask)
        tags = F.pad(tags, (0, emissions.size(1) - tags.size(1))) * mask  # padding may hold values that are no tags
        return (self._all_paths(emissions, mask) - self._one_path(emissions, tags, mask)) * mask[:, 0]

    @torch.no_grad()
    def decode(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """Tags (B, W) of the best path; zeros in padding."""
        width = emissions.size(1)
        emissions, mask = self._ready(emissions, mask)
        first, moves = self._allowed_scores()
        best, back = first + emissions[:, 0], []
        stay = torch.arange(best.size(1), device=best.device).expand_as(best)
        for emission, real in zip(emissions.unbind(1)[1:], mask.unbind(1)[1:], strict=True):
            score, pointers = (best[:, :, None] + moves).max(1)
            best = torch.where(real[:, None], score + emission, best)
            back.append(torch.where(real[:, None], pointers, stay))
        tags = [(best + self.last).argmax(1)]
        for pointers in reversed(back):
            tags.append(pointers.gather(1, tags[-1][:, None])[:, 0])
        return (torch.stack(tags[::-1], 1) * mask)[:, :width]

    def _ready(self, emissions: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Pad to at least one word, in at least single precision: sums over many words need it."""
        room = max(0, 1 - emissions.size(1))
        if emissions.dtype in (torch.bfloat16, torch.float16):
            emissions = emissions.float()
        return F.pad(emissions, (0, 0, 0, room)), F.pad(mask, (0, room))

    def _allowed_scores(self) -> tuple[Tensor, Tensor]:
        first = self.first.masked_fill(~self.may_begin, _FORBIDDEN)
        return first, self.moves.masked_fill(~self.allowed, _FORBIDDEN)

    def _all_paths(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """log Z: alpha_t(y) is the log-sum-exp of the scores of all paths that end in y at word t."""
        first, moves = self._allowed_scores()
        alpha = first + emissions[:, 0]  # (B, K)
        for emission, real in zip(emissions.unbind(1)[1:], mask.unbind(1)[1:], strict=True):
            longer = (alpha[:, :, None] + moves).logsumexp(1) + emission
            alpha = torch.where(real[:, None], longer, alpha)
        return (alpha + self.last).logsumexp(1)

    def _one_path(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        first, moves = self._allowed_scores()
        end = (mask.sum(1, keepdim=True) - 1).clamp(min=0)
        seen = emissions.gather(2, tags[..., None])[..., 0] * mask
        moved = moves[tags[:, :-1], tags[:, 1:]] * mask[:, 1:]
        return first[tags[:, 0]] + seen.sum(1) + moved.sum(1) + self.last[tags.gather(1, end)[:, 0]]


def may_follow(before: str, tag: str) -> bool:
    """Whether BIO allows a tag after another; tags without a BIO prefix may follow any."""
    return not tag.startswith("I-") or before in (tag, f"B-{tag[2:]}")
