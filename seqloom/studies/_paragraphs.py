"""A text by characters, and the beginnings of its paragraphs with what stands open after each character.

N rows, T positions.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from seqloom.data.samples import find_sample
from seqloom.studies._training import text


@dataclass(frozen=True)
class Texts:
    train: Tensor
    held: Tensor
    tokens: int
    characters: str  # by id
    digest: str

    @property
    def unigrams(self) -> Tensor:
        return torch.bincount(self.train, minlength=self.tokens).double()

    def ids(self, written: str) -> Tensor:
        return torch.tensor([self.characters.index(letter) for letter in written])


@dataclass(frozen=True)
class Rows:
    """Beginnings of paragraphs, and what stands open after each character."""

    ids: Tensor  # (N, T)
    facts: Tensor  # (N, T, 3): in a quotation, in brackets, column of the line


def read(sample: str, share: float) -> Texts:
    """A built-in text, of which this share at the end is held out."""
    ids, tokens, digest = text(sample)
    cut = round(len(ids) * (1 - share))
    characters = "".join(sorted(set("".join(find_sample(f"sample:{sample}", "text").read()))))
    return Texts(ids[:cut], ids[cut:], tokens, characters, digest)


def paragraphs(texts: Texts, most: int, length: int) -> tuple[Rows, Rows]:
    """At most so many beginnings, of this length, from held-out text: half of them to fit probes on, half to test.

    After a short paragraph the row goes on with the next, which may have a row of its own: rows may overlap.
    """
    blank, found = texts.characters.index("\n"), []
    for part in texts.held.chunk(2):
        starts = ((part[1:-length] == blank) & (part[: -length - 1] == blank)).nonzero()[:, 0] + 2
        ids = part[starts[: most // 2, None] + torch.arange(length)]
        found.append(Rows(ids, torch.stack([_facts(row, texts.characters) for row in ids.tolist()])))
    return found[0], found[1]


def _facts(ids: list[int], characters: str) -> Tensor:
    """(T, 3); a blank line closes everything."""
    quoted, depth, column, before, found = False, 0, -1, "", []
    for letter in (characters[one] for one in ids):
        column = 0 if before == "\n" else column + 1
        if letter == before == "\n":
            quoted, depth = False, 0
        quoted ^= letter == '"'
        depth = max(0, depth + (letter in "([{") - (letter in ")]}"))
        found.append([float(quoted), float(depth > 0), float(column)])
        before = letter
    return torch.tensor(found)
