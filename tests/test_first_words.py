"""What a command says first, and while it is silent."""

from __future__ import annotations

import io
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import small_fit, text

from seqloom.cli.predict import _progress
from seqloom.core import waiting
from seqloom.runs.predicting import Predictions, Sources


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_command_speaks_before_it_loads_torch(tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text(text(2000))
    small_fit(tmp_path / "book.txt", tmp_path / "run", "gru", ["train.steps=2"])
    script = (
        "import sys, builtins; real = builtins.__import__\n"
        "def load(name, *more):\n"
        "    if name == 'torch': print('LOADING TORCH', file=sys.stderr); builtins.__import__ = real\n"
        "    return real(name, *more)\n"
        "builtins.__import__ = load\n"
        "from seqloom.cli import main; main()\n"
    )
    words = ["generate", str(tmp_path / "run"), "--max-new", "3", "--json"]
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, timeout=120)
    assert done.stderr.splitlines() == ["loading the model ...", "LOADING TORCH"] and done.stdout.count("\n") == 1


def test_in_a_terminal_the_line_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    waiting.announce("loading the model")
    assert screen.getvalue().endswith("loading the model ...")
    waiting.clear()
    waiting.clear()
    assert screen.getvalue().endswith("...\r\x1b[K") and screen.getvalue().count("\r") == 2


def test_a_log_mentions_only_what_takes_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(waiting, "_PATIENCE", 0.05)
    with waiting.during("scoring a.txt"):
        pass
    assert capsys.readouterr().err == ""
    with waiting.during("scoring a.txt"):
        time.sleep(0.2)
    assert capsys.readouterr().err == "scoring a.txt ...\n"


def test_predictions_that_take_long_tell_the_time_left() -> None:
    rows = [{"line": n} for n in range(300)]
    sources = Sources(lambda: iter(rows))
    predictions = Predictions(sources, sources)
    for _ in range(100):
        next(predictions)
    assert _progress(predictions, 100, 10.0) == "100 predictions, 10.0 per second, about 20 s left"
    assert _progress(Predictions(iter([])), 5, 1.0) == "5 predictions, 5.0 per second"
