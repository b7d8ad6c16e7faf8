"""Become a model process: `python -m seqloom.serve.children.born PARENT MODULE ARGUMENT ...`.

Ends with its parent: the kernel kills it, also when the parent is killed. This is set here, between fork and the work,
because code that runs in a forked child of a process with threads may hang.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys

_PR_SET_PDEATHSIG = 1


def tie_to(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)  # it has ended meanwhile


if __name__ == "__main__":
    tie_to(int(sys.argv[1]))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    module = sys.argv[2]
    sys.argv = sys.argv[2:]
    if module.endswith(".py"):
        runpy.run_path(module, run_name="__main__")
    else:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
