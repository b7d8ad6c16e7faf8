"""Measure an index without an encoder: python benchmarks/retrieval.py [--chunks N] [--json FILE].

Makes text files of invented words, as frequent as words are (Zipf), in paragraphs of one or two chunks. Indexes them in
one process, then opens the index and asks questions in another. Prints chunks per second, peak memory, the time to
open and the time of a query, each also in processor seconds, which a busy machine does not change.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

WORDS = 50_000  # different ones
LENGTH = 120  # words of a paragraph
FILE = 100  # paragraphs of a file
QUERIES = 100
SYLLABLES = ["ka", "to", "mi", "ren", "sol", "bra", "ne", "vis", "dor", "el", "um", "sta", "ri", "gen", "pho", "lex"]


def vocabulary() -> np.ndarray:
    """Words of two to five syllables, the frequent ones shorter."""
    rng, found = np.random.default_rng(0), {}
    while len(found) < WORDS:
        size = 2 + int(len(found) > 200) + int(len(found) > 3000) + int(len(found) > 40_000)
        found["".join(rng.choice(SYLLABLES, size))] = None
    return np.array(list(found))


def make_folder(folder: Path, chunks: int) -> None:
    rng, words = np.random.default_rng(1), vocabulary()
    share = 1 / np.arange(1, WORDS + 1)
    steps = (share / share.sum()).cumsum()
    for number, first in enumerate(range(0, chunks, FILE)):
        size = min(FILE, chunks - first)
        drawn = words[np.searchsorted(steps, rng.random((size, LENGTH))).clip(0, WORDS - 1)]
        paragraphs = [". ".join(" ".join(row[n : n + 15]).capitalize() for n in range(0, LENGTH, 15)) for row in drawn]
        (folder / f"{number:05d}.txt").write_text(".\n\n".join(paragraphs) + ".\n", encoding="utf-8")


def measure_index(folder: str, out: str) -> dict[str, Any]:
    from seqloom.retrieve.index import index

    started, cpu = time.perf_counter(), time.process_time()
    with index(folder, out) as found:
        seconds, busy, chunks = time.perf_counter() - started, time.process_time() - cpu, found.changes.chunks
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {"chunks": chunks, "seconds": seconds, "cpu_seconds": busy, "peak_mb": peak / 1e6}


def measure_queries(out: str) -> dict[str, Any]:
    from seqloom.retrieve.index import Index

    rng, words = np.random.default_rng(2), vocabulary()
    started, cpu = time.perf_counter(), time.process_time()
    with Index.open(out) as found:
        opened = {"open_seconds": time.perf_counter() - started, "open_cpu_seconds": time.process_time() - cpu}
        wall, busy = [], []
        for _ in range(QUERIES):
            question = " ".join(words[rng.integers(0, 20_000, 6)]) + " " + " ".join(words[rng.integers(0, 200, 6)])
            started, cpu = time.perf_counter(), time.process_time()
            assert found.search(question, 10)
            wall.append(time.perf_counter() - started)
            busy.append(time.process_time() - cpu)
    return {**opened, "query_ms": 1000 * statistics.median(wall), "query_cpu_ms": 1000 * statistics.median(busy)}


def alone(part: str, *arguments: str) -> dict[str, Any]:
    """In a process of its own, so that the peak of memory is its own."""
    command = [sys.executable, __file__, "--part", part, *arguments]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--part", choices=["index", "queries"], help=argparse.SUPPRESS)
    parser.add_argument("paths", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        measure = {"index": measure_index, "queries": measure_queries}[given.part]
        print(json.dumps(measure(*given.paths)))
        return
    with tempfile.TemporaryDirectory() as place:
        folder, out = Path(place) / "texts", Path(place) / "index"
        folder.mkdir()
        make_folder(folder, given.chunks)
        found = alone("index", str(folder), str(out)) | alone("queries", str(out))
    rate, busy = found["chunks"] / found["seconds"], found["chunks"] / found["cpu_seconds"]
    print(f"{found['chunks']:,} chunks: {rate:,.0f} chunks/s ({busy:,.0f} per processor second)", end=", ")
    print(f"peak memory {found['peak_mb']:,.0f} MB")
    print(f"open {found['open_seconds']:.2f} s (processor {found['open_cpu_seconds']:.2f} s)", end=", ")
    print(f"query {found['query_ms']:.1f} ms (processor {found['query_cpu_ms']:.1f} ms)")
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
