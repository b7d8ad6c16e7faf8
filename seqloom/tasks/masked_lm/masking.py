"""Masking: which tokens are hidden from a model that must guess them, and what it sees instead (Devlin et al. 2019).

Of the tokens asked for, eight in ten are read as a mask, one as any other token, and one as itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from seqloom.core.batch import IGNORE
from seqloom.core.words import CJK

_SPECIALS = 4  # ids that are marks, never asked for
_LONGEST_RUN = 3  # characters of a script without blanks that are hidden together
MASKED, REPLACED = 0.8, 0.1


@dataclass(frozen=True)
class Joints:
    """Which tokens stick to their neighbours, by id: a word is a run of tokens that stick together."""

    left: np.ndarray  # begins inside a word
    right: np.ndarray  # ends inside a word
    dense: np.ndarray  # of a script that is written without blanks

    @classmethod
    def of(cls, size: int, text: Callable[[int], str]) -> Joints:
        """`text`: what a token reads; a part of a character reads as nothing, and sticks to both sides."""
        texts = ["" if id < _SPECIALS else text(id) for id in range(size)]
        dense = np.array([bool(t) and all(map(_is_dense, t.strip())) and bool(t.strip()) for t in texts])
        inside = [(not t or _in_word(t[0]), not t or _in_word(t[-1])) for t in texts]
        left, right = (np.array(side) & ~dense for side in zip(*inside, strict=True))
        left[:_SPECIALS] = right[:_SPECIALS] = False
        return cls(left, right, dense)

    def groups(self, ids: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """(..., T) numbers that rise with every new word; of a script without blanks, runs of one to three tokens."""
        fresh = np.ones(ids.shape, bool)
        fresh[..., 1:] = ~(self.right[ids[..., :-1]] & self.left[ids[..., 1:]])
        dense = self.dense[ids]
        both = np.zeros(ids.shape, bool)
        both[..., 1:] = dense[..., 1:] & dense[..., :-1]
        run = np.zeros(ids.shape[:-1], np.int64)
        sizes = rng.integers(1, _LONGEST_RUN + 1, ids.shape)
        wanted = sizes[..., 0].copy()
        for t in range(ids.shape[-1] if both.any() else 0):
            goes_on = both[..., t] & (run < wanted)
            fresh[..., t] = np.where(both[..., t], ~goes_on, fresh[..., t])
            wanted = np.where(goes_on, wanted, sizes[..., t])
            run = np.where(goes_on, run + 1, 1)
        return fresh.cumsum(-1) - 1


def hide(
    ids: np.ndarray, share: float, mask: int, rng: np.random.Generator, joints: Joints | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """What a model reads instead of ids (rows, T), and what it is asked: the tokens hidden, IGNORE elsewhere.

    `mask`: id of the mask, and how many tokens there are; `joints`: whole words are hidden, not single tokens.
    """
    groups = np.broadcast_to(np.arange(ids.shape[-1]), ids.shape) if joints is None else joints.groups(ids, rng)
    drawn = rng.random(ids.shape)
    asked = (np.take_along_axis(drawn, groups, -1) < share) & (ids >= _SPECIALS)
    how = rng.random(ids.shape)
    others = rng.integers(_SPECIALS, mask, ids.shape)
    seen = np.where(asked & (how < MASKED), mask, ids)
    seen = np.where(asked & (how >= MASKED) & (how < MASKED + REPLACED), others, seen)
    return seen, np.where(asked, ids, IGNORE)


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "\N{REPLACEMENT CHARACTER}"


def _is_dense(character: str) -> bool:
    return bool(re.match(f"[{CJK}]", character))
