"""Standard error holds what seqloom says, and nothing of the libraries: of their imports, of C++, of workers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

GOLDEN = Path(__file__).parent / "golden"
DATA, RUNS = GOLDEN / "data", GOLDEN / "runs"
FOREIGN = re.compile(
    r"site-packages|\w+Warning\b|warnings\.warn|^\[?[WEIF]\d{4}|Traceback|leaked|ignored in|_tracker|/lib/python"
)
SMALL = ["-o", "train.steps=2", "-o", "train.batch=4", "-o", "train.threads=1"]
TINY = [*SMALL, "-o", "model.width=16", "-o", "model.heads=2", "-o", "model.depth=1"]
COMPARED = ["--budget", "tokens=2k", "--seeds", "1", "--trials", "0", "--params", "2k"]

TALKING = [  # say what they do
    ["doctor", "--task", "classification", "--data", f"{DATA}/labelled.csv"],
    ["fit", "--task", "classification", "--data", f"{DATA}/labelled.csv", "--model", "tfidf", "--out", "tfidf"],
    ["fit", "--task", "masked_lm", "--data", f"{DATA}/text.txt", "--model", "bert", "--out", "bert", *TINY],
    ["fit", "--task", "classification", "--data", f"{DATA}/labelled.csv", "--model", "bert", "--from", "bert",
     "--out", "lora", "-o", "lora.rank=2", *TINY],
    ["compare", "--task", "forecasting", "--data", f"{DATA}/series.csv", "--models", "window", "--out", "compared",
     *COMPARED, "-o", "task.horizon=4", "-o", "task.context=12"],
    ["diagnose", "--models", "rnn", "--problems", "parity", "--steps", "2", "--seeds", "1", "--params", "1000",
     "--out", "diagnosis"],
    ["index", "notes.md", "--out", "index"],
]  # fmt: skip
SILENT = [  # but for a word on data that a run has seen
    ["list", "models"],
    ["list", "runs", str(RUNS)],
    ["eval", f"{RUNS}/classification", "--data", f"{DATA}/labelled.csv"],
    ["eval", f"{RUNS}/tagging", "--data", f"{DATA}/tagged.conll"],
    ["eval", f"{RUNS}/forecasting", "--data", f"{DATA}/series.csv"],
    ["predict", f"{RUNS}/question_answering", "--data", f"{DATA}/questions.jsonl"],
    ["predict", f"{RUNS}/classification", "--data", f"{DATA}/labelled.csv", "--out", "answers.parquet"],
    ["predict", f"{RUNS}/forecasting", "--data", f"{DATA}/series.csv", "--out", "f.csv", "--chart", "f.html"],
    ["predict", f"{RUNS}/translation", "--text", "the cat"],
    ["generate", f"{RUNS}/language_model", "--max-new", "3"],
    ["generate", f"{RUNS}/counting", "--max-new", "3"],
    ["explain", f"{RUNS}/classification", "--text", "the cat is old", "--out", "why.html"],
    ["merge", "lora", "--out", "merged"],
    ["export", f"{RUNS}/classification", "--to", "onnx", "--out", "exported"],
    ["ask", "index", "how long is the guarantee?"],
    ["weights"],
]
RUN = """
import json, os, sys
from seqloom.cli import main
for number, words in enumerate(json.loads(sys.argv[1])):
    file = os.open(f"{number}.err", os.O_WRONLY | os.O_CREAT)
    os.dup2(file, 2)
    sys.argv = ["seqloom", *words]
    try:
        main()
    except SystemExit as end:
        print(number, end.code or 0, file=sys.__stdout__, flush=True)
"""


def test_no_library_says_a_word(tmp_path):
    (tmp_path / "notes.md").write_text("# Terms\n\nThe guarantee lasts two years.\n")
    commands = [*TALKING, *SILENT]
    env = os.environ | {"SEQLOOM_CACHE": str(tmp_path / "cache")}
    env.pop("PYTHONWARNINGS", None)
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(commands)], cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True
    )
    codes = dict(line.split() for line in done.stdout.splitlines() if re.fullmatch(r"\d+ \d+", line))
    for number, words in enumerate(commands):
        said = (tmp_path / f"{number}.err").read_text().splitlines()
        assert codes.get(str(number)) == "0", (words, said)
        assert not [line for line in said if FOREIGN.search(line)], words
        if words in SILENT:
            assert all(line.startswith("warning: this run was trained on") for line in said), (words, said)
