"""Masking (Devlin et al. 2019): which tokens a model must predict, and what it reads in their place.

Of the tokens to predict, 80 % are replaced by the mask token, 10 % by a random token, and 10 % are left as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from seqloom.core.batch import IGNORE
from seqloom.core.words import CJK

OWN = range(4)  # ids of the special tokens of our own tokenizers
_LONGEST_RUN = 3  # tokens masked together in scripts without spaces
MASKED, REPLACED = 0.8, 0.1


@dataclass(frozen=True)
class Joints:
    """Which tokens are joined to their neighbours, by id: a word is a run of joined tokens."""

    left: np.ndarray  # may continue a word
    right: np.ndarray  # may be continued
    dense: np.ndarray  # written without spaces between words

    @classmethod
    def of(cls, size: int, text: Callable[[int], str], specials: Collection[int] = OWN) -> Joints:
        """`text`: the text of a token; part of a character has none, and joins on both sides."""
        texts = ["" if id in specials else text(id) for id in range(size)]
        dense = np.array([bool(t) and all(map(_is_dense, t.strip())) and bool(t.strip()) for t in texts])
        inside = [(not t or _in_word(t[0]), not t or _in_word(t[-1])) for t in texts]
        left, right = (np.array(side) & ~dense for side in zip(*inside, strict=True))
        left[sorted(specials)] = right[sorted(specials)] = False
        return cls(left, right, dense)

    def groups(self, ids: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """(..., T) word numbers, ascending; in scripts without spaces, runs of one to three tokens count as words."""
        fresh = np.ones(ids.shape, bool)
        fresh[..., 1:] = ~(self.right[ids[..., :-1]] & self.left[ids[..., 1:]])
        dense = self.dense[ids]
        dense_pair = np.zeros(ids.shape, bool)
        dense_pair[..., 1:] = dense[..., 1:] & dense[..., :-1]
        run = np.zeros(ids.shape[:-1], np.int64)
        sizes = rng.integers(1, _LONGEST_RUN + 1, ids.shape)
        longest = sizes[..., 0].copy()
        for t in range(ids.shape[-1] if dense_pair.any() else 0):
            continues = dense_pair[..., t] & (run < longest)
            fresh[..., t] = np.where(dense_pair[..., t], ~continues, fresh[..., t])
            longest = np.where(continues, longest, sizes[..., t])
            run = np.where(continues, run + 1, 1)
        return fresh.cumsum(-1) - 1


def hide(
    ids: np.ndarray,
    share: float,
    mask: int,
    rng: np.random.Generator,
    joints: Joints | None = None,
    specials: Collection[int] = OWN,
) -> tuple[np.ndarray, np.ndarray]:
    """The inputs that a model reads instead of `ids` (rows, T), and the targets: masked tokens, IGNORE elsewhere.

    `mask`: id of the mask token, which is also the vocabulary size; `joints`: mask whole words, not single tokens;
    `specials`: ids that are never masked.
    """
    ordinary = np.setdiff1d(np.arange(mask), sorted(specials))
    groups = np.broadcast_to(np.arange(ids.shape[-1]), ids.shape) if joints is None else joints.groups(ids, rng)
    draws = rng.random(ids.shape)
    masked = (np.take_along_axis(draws, groups, -1) < share) & np.isin(ids, ordinary)
    kind = rng.random(ids.shape)
    replacements = ordinary[rng.integers(0, len(ordinary), ids.shape)]
    inputs = np.where(masked & (kind < MASKED), mask, ids)
    inputs = np.where(masked & (kind >= MASKED) & (kind < MASKED + REPLACED), replacements, inputs)
    return inputs, np.where(masked, ids, IGNORE)


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "\N{REPLACEMENT CHARACTER}"


def _is_dense(character: str) -> bool:
    return bool(re.match(f"[{CJK}]", character))
