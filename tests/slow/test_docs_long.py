"""Commands of the pages that read much data, at a small size."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from test_docs import PAGES, commands, desk, run_command, shortened, title, weights

__all__ = ["desk", "weights"]  # fixtures


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page, "bash slow")], ids=title)
def test_every_slow_command_runs(
    page: Path, desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    for command in commands(page, "bash slow"):
        monkeypatch.setattr(sys, "argv", shortened(command))
        run_command(command, capsys)
