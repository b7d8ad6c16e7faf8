"""Large inputs from end to end: python benchmarks/large.py [--scale S] [--only CASE,...] [--json FILE].

Makes a text of 1 GB, 3 million labelled rows, 10,000 series, and a document of 100,000 words, and gives them to the
commands, each in a process of its own; then compares twelve models to the end. Prints the seconds, the peak memory of
the largest process and the exit code of every command. A command may refuse an input, in one line and
with exit code 1 or 2; anything else fails the benchmark. --scale 0.001 makes everything a thousand times smaller.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from prepare import make_text

ROWS, SERIES, WORDS = 3_000_000, 10_000, 100_000
POINTS = 200  # of each series
TOPICS = {"sport": ["ball", "goal", "team", "match"], "food": ["soup", "bread", "salt", "pan"]}
FILLERS = [f"word{n}" for n in range(5000)]
TWELVE = "ngram,window,rnn,lstm,gru,mingru,minlstm,gpt,linear_attention,deltanet,mamba2,xlstm"
SMALL = ["-o", "model.width=32", "-o", "train.steps=20"]

Command = tuple[str, list[str | Path]]  # a name for it, and its arguments


def of_text(folder: Path, scale: float) -> Iterator[Command]:
    text = folder / "text.txt"
    make_text(text, max(1, round(1000 * scale)))
    yield "doctor", ["doctor", "--data", text, "--task", "language_model"]
    for model in ("lstm", "ngram"):
        out = folder / model
        yield (
            f"fit {model}",
            ["fit", "--task", "language_model", "--model", model, "--data", text, "--out", out, *SMALL[2:]],
        )
    yield "generate", ["generate", folder / "lstm", "--prompt", "The", "--max-new", "20"]


def of_labelled(folder: Path, scale: float) -> Iterator[Command]:
    table = folder / "labelled.csv"
    rng = random.Random(0)
    with open(table, "w", encoding="utf-8") as file:
        file.write("text,label\n")
        for _ in range(max(2000, round(ROWS * scale))):
            label = rng.choice(list(TOPICS))
            file.write(f"{' '.join([*rng.choices(FILLERS, k=10), rng.choice(TOPICS[label])])},{label}\n")
    yield "doctor", ["doctor", "--data", table, "--task", "classification"]
    for model in ("bag", "gru"):
        out = folder / model
        yield (
            f"fit {model}",
            ["fit", "--task", "classification", "--model", model, "--data", table, "--out", out, *SMALL],
        )
    yield "predict", ["predict", folder / "gru", "--data", table, "--out", folder / "predicted.csv"]


def of_series(folder: Path, scale: float) -> Iterator[Command]:
    rng, table = random.Random(0), folder / "series.csv"
    days = [(datetime(2024, 1, 1) + timedelta(n)).strftime("%Y-%m-%d") for n in range(POINTS)]
    with open(table, "w", encoding="utf-8") as file:
        file.write("series,date,value\n")
        for n in range(max(10, round(SERIES * scale))):
            level = rng.uniform(1, 100)
            file.writelines(f"s{n},{day},{level + rng.gauss(0, 1):.3f}\n" for day in days)
    yield "doctor", ["doctor", "--data", table, "--task", "forecasting"]
    for model in ("linear", "naive"):
        out = folder / model
        yield (
            f"fit {model}",
            ["fit", "--task", "forecasting", "--model", model, "--data", table, "--out", out, *SMALL[2:]],
        )
    yield "predict", ["predict", folder / "linear", "--data", table, "--out", folder / "predicted.csv"]


def of_document(folder: Path, scale: float) -> Iterator[Command]:
    """Trained on short texts; then comes one that is a thousand times longer."""
    rng, table, document = random.Random(0), folder / "short.csv", folder / "long.txt"
    rows = [(label, [*rng.choices(FILLERS, k=8), rng.choice(TOPICS[label])]) for label in list(TOPICS) * 300]
    table.write_text("text,label\n" + "".join(f"{' '.join(words)},{label}\n" for label, words in rows), "utf-8")
    document.write_text(" ".join(rng.choices(FILLERS, k=max(100, round(WORDS * scale)))), "utf-8")
    lines = folder / "one.csv"
    lines.write_text(f"text\n{document.read_text('utf-8')}\n", "utf-8")
    for model in ("gru", "bert"):
        out = folder / model
        yield (
            f"fit {model}",
            ["fit", "--task", "classification", "--model", model, "--data", table, "--out", out, *SMALL],
        )
        yield f"predict {model}", ["predict", out, "--data", lines]
        yield f"explain {model}", ["explain", out, "--data", lines, "--out", folder / f"{model}.html"]
    language = folder / "language"
    yield (
        "fit gpt",
        ["fit", "--task", "language_model", "--model", "gpt", "--data", document, "--out", language, *SMALL],
    )
    yield "eval gpt", ["eval", language, "--data", document]
    yield "generate gpt", ["generate", language, "--prompt", document.read_text("utf-8")[:100_000], "--max-new", "5"]
    yield "explain gpt", ["explain", language, "--data", document, "--out", folder / "gpt.html"]


def of_comparison(folder: Path, scale: float) -> Iterator[Command]:
    budget = f"tokens={max(60, round(400 * scale))}k"
    limits: list[str | Path] = ["--params", "50k", "--budget", budget, "--trials", "1", "--seeds", "2"]
    yield (
        "compare",
        ["compare", "--data", "sample:python-docs", "--models", TWELVE, *limits, "--out", folder / "twelve"],
    )


CASES: dict[str, Callable[[Path, float], Iterator[Command]]] = {
    "text": of_text,
    "labelled": of_labelled,
    "series": of_series,
    "document": of_document,
    "comparison": of_comparison,
}


def measure(arguments: list[str | Path]) -> dict[str, Any]:
    started = time.perf_counter()
    command = [sys.executable, "-m", "seqloom", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = process.stderr.read().splitlines()
    _, status, usage = os.wait4(process.pid, 0)  # the peak of the command itself, or of the largest of its workers
    process.returncode = os.waitstatus_to_exitcode(status)
    return {
        "seconds": time.perf_counter() - started,
        "peak": usage.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10),
        "code": process.returncode,
        "said": said[-1] if said else "",
    }


def acceptable(row: dict[str, Any]) -> bool:
    return row["code"] == 0 or (row["code"] in (1, 2) and "internal error" not in row["said"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="of the sizes (default: 1)")
    parser.add_argument("--only", default=",".join(CASES), help=f"cases (default: {','.join(CASES)})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results to this file")
    options = parser.parse_args()
    rows = []
    print(f"{'input':<12}{'command':<18}{'seconds':>9}{'peak MB':>9}{'exit':>6}")
    for case in options.only.split(","):
        with tempfile.TemporaryDirectory() as name:
            for command, arguments in CASES[case](Path(name), options.scale):
                row = {"case": case, "command": command, **measure(arguments)}
                refusal = "" if row["code"] == 0 else f"  {row['said'][:160]}"
                print(
                    f"{case:<12}{command:<18}{row['seconds']:9.1f}{row['peak']:9.0f}{row['code']:6}{refusal}",
                    flush=True,
                )
                rows.append(row)
    if options.json:
        import common  # imports torch, whose memory must not count in the measurements above

        common.write_json(options.json, {"machine": common.describe_machine(), "scale": options.scale, "rows": rows})
    if not all(map(acceptable, rows)):
        sys.exit("a command failed otherwise than with one line")


if __name__ == "__main__":
    main()
