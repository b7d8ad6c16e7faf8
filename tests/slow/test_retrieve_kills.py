"""Fifty kills at random moments of indexing and updating (see tests/test_retrieve_kill.py)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))

from test_retrieve_kill import rounds, toy  # noqa: F401


@pytest.mark.usefixtures("toy")
def test_fifty_kills_lose_nothing(tmp_path: Path) -> None:
    hits, seed = 0, 1
    while hits < 50:
        hits += rounds(tmp_path / str(seed), seed, 40, 6)
        seed += 1
    print(f"{hits} kills in {seed - 1} rounds")
