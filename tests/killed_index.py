"""A process for `test_retrieve_kill.py` to kill: indexes a folder, in small batches so that there are many moments."""

from __future__ import annotations

import sys
from types import SimpleNamespace

from retrieve_toys import ToyEncoder

from seqloom.retrieve import catalogue, writing
from seqloom.retrieve.index import index
from seqloom.retrieve.stores import edge


def main(folder: str, out: str) -> None:
    writing._READ, writing._ENCODED, writing._DELETED = 3, 4, 4
    catalogue._TOGETHER = 0.01
    edge._THRESHOLD = 1  # so that the store reorganises, too
    sys.modules["seqloom.retrieve.encoder"] = SimpleNamespace(load_encoder=lambda name: ToyEncoder())  # without torch
    print("begun", flush=True)
    index(folder, out, encoder="toy", size=24).close()
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
