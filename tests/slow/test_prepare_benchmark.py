"""The benchmark of preparing text runs, and writes what it prints."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parent.parent.parent / "benchmarks" / "prepare.py"


def test_it_writes_a_row_for_every_tokenizer_it_prints(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    command = [sys.executable, str(BENCHMARK), "--mb", "1", "--json", str(file)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    report = json.loads(file.read_text())
    assert report["mb"] == 1 and report["rows"] and "torch" in report["machine"]
    assert all(row["tokenizer"] in printed and row["speed"] > 0 and row["peak"] > 0 for row in report["rows"])
