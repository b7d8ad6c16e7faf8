"""`python -m seqloom.serve.worker FD`: serve one run, or one index, over an inherited socket until that ends."""

from __future__ import annotations

import os
import socket
import sys

from seqloom.core.rows import Json
from seqloom.serve.children import frames


def main() -> None:
    wire = socket.socket(fileno=int(sys.argv[1]))
    opening = frames.receive(wire)
    if opening is None:
        return
    threads = opening.get("threads")
    if threads:
        os.environ |= {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    try:
        _limit(opening.get("memory"))
        from seqloom.serve.worker.opening import open_served

        served = open_served(opening)
    except Exception as error:
        frames.send(wire, {"failed": {"message": _message(error)}})
        return
    from seqloom.serve.worker.process import Worker

    frames.send(wire, {"ready": served.facts})
    Worker(wire, served, rows=int(opening.get("rows") or 32)).run()


def _limit(memory: int | None) -> None:
    """Of what the process writes to (RLIMIT_DATA): libraries and files that are only mapped do not count."""
    if memory and sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))


def _message(error: Exception) -> Json:
    from seqloom.serve.worker.faults import told

    return told(error)["message"]


if __name__ == "__main__":
    main()
