"""What continuous batching (batcher.py) is asked, what it answers, and the rows that it works on."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from seqloom.core.errors import UserError
from seqloom.decode.drawing import Noise, Scored
from seqloom.decode.pick import Choice

End = Literal["stop", "length"]

_GREEDY = Choice(temperature=0)


@dataclass(frozen=True, kw_only=True)
class Request:
    """A prompt to continue."""

    prompt: Sequence[int]
    max_new: int = 200
    choose: Choice = _GREEDY
    seed: int | None = None  # None: different every time
    count: int = 1  # continuations
    ends: frozenset[int] = frozenset()  # tokens after which a continuation ends
    logprobs: int | None = None  # alternatives to give the log-probabilities of; None: none, not even of the token
    echo: bool = False  # log-probabilities of the prompt as well

    def __post_init__(self) -> None:
        if not self.prompt:
            raise UserError("prompt: must have at least one token")
        if self.max_new < 0:
            raise UserError(f"max_new={self.max_new}: must be 0 or more")
        if self.count < 1:
            raise UserError(f"n={self.count}: must be 1 or more")


@dataclass(frozen=True)
class Prompted:
    """A prompt has been read. `scored`: of its tokens, if asked for; None for those without anything before them."""

    key: Hashable
    scored: list[Scored | None] | None = None


@dataclass(frozen=True)
class Token:
    """One more token of a continuation."""

    key: Hashable
    index: int
    id: int
    end: End | None  # "stop": the token is one of `ends`
    scored: Scored | None


@dataclass(frozen=True)
class Failed:
    """The model could not read or continue this one."""

    key: Hashable
    error: Exception


Event = Prompted | Token | Failed


class Row:
    """One continuation: its text so far, and how much of that the model has in its context."""

    def __init__(self, key: Hashable, request: Request, index: int, noise: Noise, limit: int | None) -> None:
        self.key, self.request, self.index, self.noise, self.limit = key, request, index, noise, limit
        self.choose, self.logprobs = request.choose, request.logprobs
        self.ids = list(request.prompt)
        self.skipped = max(0, len(self.ids) - limit) if limit is not None else 0
        self.over = False

    @property
    def step(self) -> int:
        return len(self.ids) - len(self.request.prompt)

    @property
    def context(self) -> list[int]:
        return self.ids[self.skipped :]

    def full(self) -> bool:
        """Whether the last token no longer fits; the context is then the last half (see prompts.py)."""
        if self.limit is None or len(self.ids) - self.skipped <= self.limit:
            return False
        self.skipped = len(self.ids) - max(1, self.limit // 2)
        return True

    def take(self, token: int) -> End | None:
        self.ids.append(token)
        end: End | None = "stop" if token in self.request.ends else None
        end = end or ("length" if self.step >= self.request.max_new else None)
        if end:
            self.close()
        return end

    def close(self) -> None:
        if not self.over:
            self.over = True
            self.noise.end(self.index)


def rows_of(key: Hashable, request: Request, limit: int | None, device: torch.device) -> list[Row]:
    noise = Noise(request.seed, request.count, device)
    return [Row(key, request, index, noise, limit) for index in range(request.count)]
