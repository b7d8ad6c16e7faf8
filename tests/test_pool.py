"""Worker processes of a comparison: what becomes of a job whose process ends."""

from __future__ import annotations

import signal
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import pytest

from seqloom.lab.pool import _Slot


class Dead:
    """An executor whose process has ended."""

    _processes: dict[int, Any] = {}

    def submit(self, *_: Any) -> Future:
        future: Future = Future()
        future.set_exception(BrokenProcessPool())
        return future

    def shutdown(self, **_: Any) -> None: ...


@pytest.mark.parametrize(("asked", "state"), [(True, "interrupted"), (False, "failed")])
def test_a_worker_that_was_told_to_stop_has_not_failed(asked: bool, state: str) -> None:
    slot: Any = _Slot()
    slot.executor = Dead()
    if asked:
        slot.signal(signal.SIGINT)
    assert slot.run({"kind": "fit"})["state"] == state
