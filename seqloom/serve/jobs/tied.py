"""`python -m seqloom.serve.jobs.tied PARENT COMMAND ...`: become this command, which ends when its parent does.

On Linux the kernel sees to that; elsewhere a child that outlives a killed server ends by itself, and the job, which is
started again, waits for it. Training leaves the processor to the server when both want it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress

_PDEATHSIG = 1  # PR_SET_PDEATHSIG of prctl, see linux/prctl.h
_NICER = 5


def tie(parent: int) -> None:
    """The kernel kills this process when its parent ends; if it has ended already, this process ends now."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(1)


if __name__ == "__main__":
    tie(int(sys.argv[1]))
    with suppress(OSError):
        os.nice(_NICER)
    os.execv(sys.argv[2], sys.argv[2:])
