"""The benchmark of the server under load runs, every case of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parent.parent.parent / "benchmarks" / "serve_load.py"


@pytest.mark.parametrize("case", ["streams", "overload", "leaving", "killed", "stopped"])
def test_a_case_is_measured(case: str, tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    command = [sys.executable, str(BENCHMARK), "--quick", "--cases", case, "--out", str(file)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = json.loads(file.read_text())["cases"][case]
    assert found and all(name in printed for name in found)
    if case == "streams":
        assert all(value == 8 for name, value in found.items() if name.endswith(("complete", "alone")))
