"""The benchmarks run, and say what they promise to say. What they measure is not judged here."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def test_the_language_model_benchmark_writes_every_figure_it_prints(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    command = [sys.executable, str(BENCHMARKS / "language_model.py"), "--quick", "--threads", "1", "--json", str(file)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    report = json.loads(file.read_text())
    sections = {section["name"]: section for section in report["sections"]}
    assert report["quick"] and report["machine"]["threads"] == 1
    assert [name.split()[:2] for name in sections] == [
        ["train", "gpt"],
        ["train", "lstm"],
        ["train", "gru"],
        ["train", "rnn"],
        ["decode"],
    ]
    for section in sections.values():
        assert section["title"] in printed
        assert section["limit"] > 0 and section["per_token"] > 0
        ours, *others = section["rows"]
        assert ours["name"] == "seqloom" and ours["ratio"] == ours["median_ratio"] == 1 and others
        for row in section["rows"]:
            assert row["name"] in printed
            assert len(row["seconds"]) == report["size"]["rounds"]
            figures = (row["tokens_per_second"], row["ratio"], row["median_ratio"], row["share"])
            assert all(math.isfinite(figure) and figure > 0 for figure in figures)
    assert sections["decode"]["notes"]["same_tokens"] is True
