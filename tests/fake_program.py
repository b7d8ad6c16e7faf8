"""In place of seqloom, for tests of jobs: does its work exactly once, quickly, and says so on standard error.

The number of seeds says what happens: 13 fails, 14 is ended by a signal, 15 lasts until it is stopped, 16 says a lot.
`--seed=1` becomes the real seqloom.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path


def option(name: str) -> str:
    return next((word.partition("=")[2] for word in sys.argv if word.startswith(f"--{name}=")), "")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if "train.seed=1" in sys.argv:
    os.execv(sys.executable, [sys.executable, "-m", "seqloom", *sys.argv[1:], "-o", "train.threads=1"])
seeds = option("seeds")
say(" 50%  step 1  loss 2.0")
if seeds == "13":
    say(f"seqloom: {option('data')}: nothing can be learned from it; choose other data")
    sys.exit(2)
if seeds == "14":
    os.kill(os.getpid(), signal.SIGKILL)
if seeds == "15":
    time.sleep(600)
if seeds == "16":
    for number in range(430):
        say(f"line {number} \x1b[31mred")
time.sleep(float(os.environ.get("FAKE_SECONDS", "0.02")))
out = Path(option("out"))
out.mkdir(exist_ok=True)
try:
    os.close(os.open(out / "finished", os.O_CREAT | os.O_EXCL))
except FileExistsError:
    sys.exit(0)
(out / "words.txt").write_text("\n".join(sys.argv[1:]))
