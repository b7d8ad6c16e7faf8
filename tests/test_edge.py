"""The edge of the command line: what nobody foresaw is one line and a file with the details, never a traceback."""

from __future__ import annotations

import logging
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from seqloom import cli
from seqloom.core.errors import UserError
from seqloom.lab import worker


class PanicException(BaseException):
    """What a library in Rust raises."""


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """Run `seqloom list` with something else in its place: exit code, standard output, standard error."""

    def run(instead, *words: str) -> tuple[int, str, str]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["seqloom", "list", *words])
        monkeypatch.setattr("seqloom.cli.list.command", lambda: instead())
        with pytest.raises(SystemExit) as end:
            cli.main()
        said = capsys.readouterr()
        return int(end.value.code or 0), said.out, said.err

    return run


def fail(error: BaseException):
    def command() -> None:
        raise error

    return command


def listed(what: str, *options: str, **kwargs) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "seqloom", "list", what, *options], capture_output=True, **kwargs)


def test_an_unexpected_error_is_one_line_and_a_file_with_the_details(call, tmp_path):
    code, out, said = call(fail(KeyError("seen\nnowhere")))
    assert code == 1 and not out and said.count("\n") == 1 and "Traceback" not in said
    assert "internal error" in said and "KeyError" in said and "--debug" in said
    (report,) = tmp_path.glob("seqloom-error-*.txt")
    assert report.name in said
    found = report.read_text()
    assert "Traceback" in found and "seqloom list" in found and "torch " in found


def test_debug_shows_the_traceback_too(call):
    code, _, said = call(fail(ZeroDivisionError("by nothing")), "--debug")
    assert code == 1 and "Traceback" in said and said.splitlines()[-1].startswith("seqloom: internal error")


def test_debug_is_taken_before_a_command_too():
    done = subprocess.run([sys.executable, "-m", "seqloom", "--debug", "list", "tasks"], capture_output=True)
    assert done.returncode == 0 and not done.stderr


def test_where_no_file_can_be_written_the_line_is_all(call, monkeypatch):
    monkeypatch.setattr("tempfile.mkstemp", lambda *_: (_ for _ in ()).throw(OSError(30, "Read-only file system")))
    code, _, said = call(fail(KeyError("x")))
    assert code == 1 and "internal error" in said and "details" not in said


@pytest.mark.parametrize(
    "error, code, part",
    [
        (UserError("x.csv:3: no label"), 2, "x.csv:3: no label"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 1, "out of memory"),
        (OSError(28, "No space left on device", "runs/a"), 1, "runs/a: No space left on device"),
        (PanicException("PyObject pointer is null"), 1, "out of memory"),
        (PanicException("index out of bounds"), 1, "internal error"),
        (RecursionError("maximum recursion depth exceeded"), 1, "internal error"),
    ],
)
def test_each_kind_of_error_has_its_code_and_one_line(call, error, code, part):
    got, out, said = call(fail(error))
    assert (got, out) == (code, "") and said.count("\n") == 1 and part in said


def test_warnings_and_log_lines_of_libraries_stay_from_the_terminal(call):
    def command() -> None:
        warnings.warn("something is deprecated", stacklevel=1)
        logging.getLogger("a.library").warning("look here")

    assert call(command) == (0, "", "")
    assert logging.root.manager.disable == 0


def test_a_full_disk_behind_standard_output_is_one_line():
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([sys.executable, "-m", "seqloom", "list", "models"], stdout=full, stderr=-1)
    assert done.returncode == 1 and done.stderr.count(b"\n") == 1 and b"No space left" in done.stderr


def test_a_reader_that_has_seen_enough_is_no_error():
    command = f"{sys.executable} -m seqloom list models | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True)
    assert done.returncode == 0 and not done.stderr


def test_a_terminal_that_knows_ascii_only_shows_the_rest_escaped():
    done = listed("samples", env={"PATH": "", "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0 and not done.stderr


def test_an_argument_that_is_no_text_is_refused_in_one_line():
    done = listed(b"\xff\xfe".decode("utf-8", "surrogateescape"))
    assert done.returncode == 2 and done.stderr.count(b"\n") == 1 and b"Traceback" not in done.stderr


def test_a_message_cannot_paint_the_terminal_nor_fill_it(call):
    code, _, said = call(fail(UserError("\x1b[2J\u202ea\ud800.csv: " + "x" * 5000)))
    assert code == 2 and said.startswith("seqloom: \\x1b[2J\\u202ea\\ud800.csv: xxx") and len(said) < 2100


@pytest.mark.parametrize(
    "error, said, kept",
    [
        (KeyError("nowhere"), "internal error, KeyError: 'nowhere' (details in", True),
        (UserError("a.csv:3: no label"), "a.csv:3: no label", False),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "out of memory; lower", False),
        (OSError(28, "No space left on device"), "[Errno 28] No space left", False),
    ],
)
def test_a_job_of_a_comparison_that_fails_says_why_and_keeps_details_of_what_nobody_foresaw(
    tmp_path, monkeypatch, error, said, kept
):
    monkeypatch.setitem(worker.JOBS, "fit", lambda job: fail(error)())
    result = worker.work({"kind": "fit", "folder": str(tmp_path / "job")})
    assert result["state"] == "failed" and result["error"].startswith(said)
    assert (tmp_path / "job/error.txt").exists() == kept
