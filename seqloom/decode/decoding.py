"""Decode from a state: greedily, by beam search, or by sampling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from torch import Tensor

from seqloom.core.errors import UserError
from seqloom.core.network import SequenceModel
from seqloom.core.state import State
from seqloom.decode.beam import Hypothesis, beam_search, check_beams
from seqloom.decode.pick import Choice, seeded

_MOST_PENALTY = 10  # a length to this power is still a number


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """Decoding options."""

    beams: int = 1  # beam width; 1: greedy
    length_penalty: float = 1.0  # scores are divided by length ** this; larger prefers longer outputs
    min_new: int = 0  # minimum number of new tokens
    no_repeat: int = 0  # no n-gram of this size is generated twice; 0: no restriction
    temperature: float = 0.0  # above 0: sample instead of searching
    top_k: int = 0  # sample from the k most likely tokens; 0: all
    top_p: float = 1.0  # sample from the smallest set of tokens with this much probability

    def __post_init__(self) -> None:
        check_beams(self.beams)
        if not 0 <= self.length_penalty <= _MOST_PENALTY:
            raise UserError(f"length_penalty={self.length_penalty}: must be from 0 (none) to {_MOST_PENALTY}")
        if self.min_new < 0:
            raise UserError(f"min_new={self.min_new}: must be 0 (no minimum) or more")
        if self.no_repeat < 0:
            raise UserError(f"no_repeat={self.no_repeat}: must be 0 (repeats are allowed) or more")
        if self.choice.temperature == 0 and (self.top_k, self.top_p) != (0, 1):
            raise UserError(f"top_k={self.top_k}, top_p={self.top_p}: only apply to sampling; set temperature above 0")
        if self.temperature > 0 and self.beams > 1:
            raise UserError(
                f"beams={self.beams} searches for the most likely output, but temperature={self.temperature} samples; "
                "set beams=1 or temperature=0"
            )

    def __str__(self) -> str:
        """As shown in a protocol."""
        if self.temperature > 0:
            return f"sampling with temperature {self.temperature:g}, top-k {self.top_k}, top-p {self.top_p:g}"
        how = f"beam search with {self.beams} beams" if self.beams > 1 else "greedy decoding"
        rules = {
            "length penalty": self.length_penalty,
            "minimum length": self.min_new,
            "no repeated n-gram of size": self.no_repeat,
        }
        usual = {"length penalty": 1.0}
        return ", ".join([how, *(f"{name} {value:g}" for name, value in rules.items() if value != usual.get(name, 0))])

    @property
    def choice(self) -> Choice:
        return Choice(temperature=self.temperature, top_k=self.top_k, top_p=self.top_p)


def decode(
    model: SequenceModel,
    state: State,
    last: Tensor,
    how: Decoding,
    *,
    max_new: int | Sequence[int],
    end: int | None,
    seed: int | None = None,
) -> list[list[Hypothesis]]:
    """For every row, up to `how.beams` hypotheses, best first, from a state and the tokens (N,) it has yet to read."""
    return beam_search(
        model,
        state,
        last,
        beams=how.beams,
        max_new=max_new,
        end=end,
        length_penalty=how.length_penalty,
        min_new=how.min_new,
        no_repeat=how.no_repeat,
        pick=partial(how.choice, generator=seeded(seed, last.device)) if how.temperature > 0 else None,
    )
