"""What every test stands on: one thread, so that small models are quick and a busy machine changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

torch.set_num_threads(1)


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
        patch.setattr("seqloom.lab.jobs.PROBE_STEPS", 5)
        yield
