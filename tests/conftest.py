"""What every test stands on: one thread, so that small models are quick and a busy machine changes nothing."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from seqloom.compare import comparing
from seqloom.lab import jobs, pool, worker

torch.set_num_threads(1)
os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # for the processes that tests start


def pytest_collection_finish() -> None:
    """What is loaded by now stays: looking for garbage in it again and again would take its time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def one_core() -> Iterator[None]:
    """A comparison gives each of its processes one thread: with more, small models wait for each other's threads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparing, "_cores", lambda: 1)
        yield


@pytest.fixture(scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Prepared texts of a module stay in a folder of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEQLOOM_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def short_probes() -> Iterator[None]:
    """Comparisons of a module do not wait for what models recall."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "PROBE_STEPS", 5)
        yield


@pytest.fixture(scope="module")
def jobs_here() -> Iterator[None]:
    """Comparisons of a module do their jobs in this process, one at a time, so that torch is not loaded again.

    test_compare.py and test_compare_pairs.py have the processes that a comparison starts."""
    turn = threading.Lock()

    def run(slot: Any, job: worker.Job) -> worker.Result:
        with turn:
            return worker.work(job)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool._Slot, "run", run)
        yield
