"""Measure speed and memory of preparing a large text file: python benchmarks/prepare.py [--mb N] [--json FILE].

Generates a text of the given size from shuffled lines of the built-in samples and prepares it with each tokenizer in a
separate process (hashing, tokenising, writing, then 20,000 random reads). Prints the preparation speed in MB/s and the
peak memory of the process. For comparison, our preparation and encode_batch from the tokenizers library are timed in
turns on the same part of the file.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from seqloom.data.stream import prepare
from seqloom.data.text import Source, open_text
from seqloom.tokenizers import Tokenizer, train_tokenizer
from seqloom.tokenizers.subwords import BATCH, cut

KINDS = {
    "characters": 4,
    "bytes": 4,
    "bpe": 20,
}  # MB to compare with the library, which is slow at the first two
ROUNDS = 3
COLUMNS = {"tokenizer": 12, "MB/s": 8, "tokens": 15, "peak MB": 9, "MB/s on a part: ours": 22, "library": 9, "ratio": 8}


def make_text(path: Path, megabytes: int) -> None:
    samples = ("sample:python-docs", "sample:python-source")
    lines = [line for name in samples for line in "".join(open_text(name).pieces()).splitlines(keepends=True)]
    rng = random.Random(0)
    left = megabytes * 1_000_000
    with open(path, "w", encoding="utf-8") as file:
        while left > 0:
            block = "".join(rng.choices(lines, k=20_000))
            left -= file.write(block)


def part_of(whole: Source, megabytes: int) -> list[str]:
    """About this many megabytes of the text, cut into the pieces that are tokenised."""
    return list(islice((piece for text in whole.pieces() for piece in cut(text)), megabytes * 250))


def race(tokenizer: Tokenizer, pieces: list[str], folder: Path) -> tuple[float, float]:
    """MB/s of our complete preparation and of the library's encode_batch alone: the best of ROUNDS interleaved runs."""
    text = "".join(pieces)
    source = Source("part", lambda: ((text[i : i + 262_144], False) for i in range(0, len(text), 262_144)))
    size = source.bytes / 1e6
    batches = [pieces[i : i + BATCH] for i in range(0, len(pieces), BATCH)]

    def ours(round: int) -> None:
        prepare(source, tokenizer, folder / f"{tokenizer.kind}-{round}")

    def theirs(round: int) -> None:
        for batch in batches:
            tokenizer.hf.encode_batch(batch, add_special_tokens=False)

    seconds: dict[Callable[[int], None], float] = {ours: 1e9, theirs: 1e9}
    for round in range(ROUNDS):
        for run in seconds:
            started = time.perf_counter()
            run(round)
            seconds[run] = min(seconds[run], time.perf_counter() - started)
    return size / seconds[ours], size / seconds[theirs]


def prepare_alone(path: str, folder: Path) -> None:
    """Runs in a separate process and prints its time, token count and peak memory as JSON."""
    started = time.perf_counter()
    source = open_text(path)
    stream = prepare(source, Tokenizer.load(folder), folder / "cache")
    seconds = time.perf_counter() - started
    rng = random.Random(0)
    for _ in range(20_000):
        start = rng.randrange(len(stream))
        stream[start : start + 256]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "tokens": len(stream), "peak": peak}))


def measure(path: Path, folder: Path) -> Iterator[dict[str, Any]]:
    whole = open_text(str(path))
    for kind, megabytes in KINDS.items():
        home = folder / kind
        home.mkdir()
        tokenizer = train_tokenizer(kind, islice(whole.pieces(), 80))
        for name, data in tokenizer.files().items():
            (home / name).write_bytes(data)
        command = [sys.executable, __file__, "--alone", str(path), str(home)]
        alone = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        ours, theirs = race(tokenizer, part_of(whole, megabytes), folder)
        speed = whole.bytes / 1e6 / alone["seconds"]
        yield {"tokenizer": kind, "speed": speed, **alone, "ours": ours, "library": theirs}


def format_row(row: dict[str, Any]) -> str:
    whole = f"{row['tokenizer']:>12}{row['speed']:8.1f}{row['tokens']:15,}{row['peak']:9.0f}"
    return f"{whole}{row['ours']:22.2f}{row['library']:9.2f}{row['ours'] / row['library']:8.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=1000, help="size of the text in MB (default: 1000)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results to this file")
    parser.add_argument("--alone", nargs=2, metavar=("TEXT", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        prepare_alone(options.alone[0], Path(options.alone[1]))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "text.txt"
        make_text(path, options.mb)
        print(f"{path.stat().st_size / 1e6:,.0f} MB of text")
        print("".join(f"{name:>{width}}" for name, width in COLUMNS.items()))
        rows = []
        for row in measure(path, folder):
            print(format_row(row), flush=True)
            rows.append(row)
    if options.json:
        import common  # imports torch, whose memory must not count in the measurements above

        machine = common.describe_machine("tokenizers")
        common.write_json(options.json, {"machine": machine, "mb": options.mb, "rows": rows})


if __name__ == "__main__":
    main()
