"""Comparisons that are killed, and comparisons on a cluster, come to the same result as any other."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from support import text

from seqloom.compare.comparing import compare

ASKED = ["--models", "lstm,gpt", "--params", "20k", "--budget", "tokens=20k", "--trials", "3", "--seeds", "2"]
SMALL = ["task.length=32", "task.stretch=128", "task.validation=500", "train.log_every=1"]
TIMED = {"seconds", "wall_seconds", "tokens_per_second", "peak_bytes", "cost", "throughput", "timing", "started"}
TIMED |= {"command", "folder", "recommendation", "jobs", "on"}  # its sentences quote the timings


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "book.txt"
    path.write_text(text(20_000))
    return path


def untimed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: untimed(inner) for key, inner in value.items() if key not in TIMED}
    return [untimed(inner) for inner in value] if isinstance(value, list) else value


def result(folder: Path) -> Any:
    return untimed(json.loads((folder / "result.json").read_bytes()))


def start(book: Path, out: Path) -> subprocess.Popen[bytes]:
    options = [part for setting in SMALL for part in ("-o", setting)]
    command = [sys.executable, "-m", "seqloom", "compare", "--data", str(book), "--out", str(out), "--jobs", "2"]
    return subprocess.Popen([*command, *ASKED, *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


@pytest.fixture(scope="module")
def whole(book: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    out, started = tmp_path_factory.mktemp("whole") / "compare", time.monotonic()
    process = start(book, out)
    assert process.wait() == 0, process.stderr and process.stderr.read().decode()
    return out, time.monotonic() - started


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda n: n.name)
def test_stopped_again_and_again_it_ends_with_the_same_result(
    book: Path, tmp_path: Path, whole: tuple[Path, float], number: signal.Signals
) -> None:
    reference, seconds = whole
    rng, out = random.Random(number), tmp_path / "compare"
    for _ in range(4):
        process = start(book, out)
        try:
            process.wait(rng.uniform(0.2, 0.6) * seconds)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, number)
        code = process.wait()
        assert code in (0, -number, 128 + number), process.stderr and process.stderr.read().decode()
    process = start(book, out)
    assert process.wait() == 0, process.stderr and process.stderr.read().decode()
    assert result(out) == result(reference)


def test_a_cluster_of_two_machines_gives_the_same_scores(
    book: Path, tmp_path: Path, whole: tuple[Path, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    try:
        flags = dict(zip((name.lstrip("-") for name in ASKED[::2]), ASKED[1::2], strict=True))
        numbers = {name: int(flags.pop(name)) for name in ("trials", "seeds")}
        compare(data=str(book), out=tmp_path / "ray", jobs=2, on="ray", overrides=SMALL, quiet=True, **flags, **numbers)  # type: ignore[arg-type]
        assert len({node["NodeID"] for node in ray.nodes() if node["Alive"]}) == 2
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert result(tmp_path / "ray") == result(whole[0])
