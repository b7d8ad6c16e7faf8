"""Small folders of documents, and an encoder that needs no weights, for the tests of retrieval."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.retrieve.index import Index
from seqloom.retrieve.stores.edge import EdgeStore

WORDS = [
    "river", "bank", "water", "stone", "tree", "bird", "cloud", "rain", "wind", "grass", "leaf", "root", "branch",
    "flower", "seed", "soil", "hill", "lake", "fish", "frog",
]  # fmt: skip


class ToyEncoder:
    """Counts letters: texts with the same letters are near."""

    name, sha256, width = "toy", "0" * 64, 26

    def encode(self, texts: Sequence[str], progress: Any = None) -> np.ndarray:
        found = np.zeros((len(texts), self.width), np.float32)
        for n, text in enumerate(texts):
            for letter in text.lower():
                if "a" <= letter <= "z":
                    found[n, ord(letter) - ord("a")] += 1
        return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)


def write_folder(folder: Path, files: int, seed: int = 0) -> None:
    """Texts of a few paragraphs of random words."""
    folder.mkdir(parents=True, exist_ok=True)
    for n in range(files):
        write_text(folder / f"{n:03d}.txt", f"{seed}-{n}")


def write_text(path: Path, seed: str) -> None:
    rng = random.Random(seed)
    paragraphs = [" ".join(rng.choices(WORDS, k=rng.randint(5, 30))) for _ in range(rng.randint(1, 6))]
    path.write_text("\n\n".join(paragraphs) + "\n")


def change_folder(folder: Path, seed: int) -> None:
    """Some files change, some go, some come."""
    rng = random.Random(seed)
    present = sorted(folder.glob("*.txt"))
    for path in rng.sample(present, len(present) // 4):
        path.unlink()
    for path in rng.sample(sorted(folder.glob("*.txt")), len(present) // 4):
        write_text(path, f"changed-{seed}-{path.name}")
    for n in range(len(present) // 4):
        write_text(folder / f"new-{seed}-{n:03d}.txt", f"new-{seed}-{n}")


def content(index: Index) -> dict[str, Any]:
    """Everything that a search could see, and what of the store no search should see."""
    catalogue, store = index._catalogue, index._store
    rows = catalogue._rows("SELECT path, hex(sha256), state, counted FROM documents ORDER BY path")
    chunks = catalogue._rows("SELECT id, start, end, length, headings, hidden FROM chunks ORDER BY id")
    assert isinstance(store, EdgeStore)
    return {
        "documents": rows,
        "chunks": chunks,
        "terms": catalogue._rows("SELECT id, chunks FROM terms ORDER BY id"),
        "facts": catalogue._rows("SELECT name, value FROM facts ORDER BY name"),
        "files": sorted((f.name, f.sha256) for f in catalogue.files().values()),
        "points": sorted(store.ids()),
        "found": [
            [(p.chunk.path, p.chunk.start, round(p.score, 5)) for p in index.search(f"{a} {b}", 5)]
            for a, b in zip(WORDS[::2], WORDS[1::2], strict=True)
        ],
    }
