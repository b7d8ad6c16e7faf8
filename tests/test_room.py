"""What cannot fit into memory is refused in one line, before the system kills the process."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqloom.core import memory
from seqloom.core.errors import RunError


def test_too_large_a_need_says_how_much_is_missing_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 2_000_000_000)
    memory.require(2_000_000_000, "training", "lower model.width")
    with pytest.raises(RunError) as caught:
        memory.require(3_000_000_000, "training", "lower model.width", "750 M parameters")
    wanted = "training needs about 3.0 GB (750 M parameters), but only 2.0 GB are available; lower model.width"
    assert str(caught.value) == wanted


def test_where_nothing_is_known_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: None)
    memory.require(10**18, "training", "")


def test_the_limit_of_a_container_counts_without_the_cached_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_GROUP", tmp_path)
    free = memory.available()
    (tmp_path / "memory.stat").write_text("anon 300\nfile 700\n")
    (tmp_path / "memory.current").write_text("1000\n")
    (tmp_path / "memory.max").write_text("1500\n")
    assert memory.available() == 1500 - 300
    (tmp_path / "memory.max").write_text("max\n")
    assert (memory.available() is None) == (free is None)
