"""A few kills of each kind of command, on every day; `make kills` has all of them (see docs/durability.md)."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pytest
from kill_cases import cases
from kill_rounds import Killed

from seqloom.runs import durable, outputs
from seqloom.runs.folder import RunFolder

pytestmark = pytest.mark.long
CASES = {case.name: case for case in cases()}
SAMPLE = [
    "fit masked_lm gru",
    "fit classification tfidf",
    "predict .csv classification gru",
    "prompt classification llama",
    "index none",
    "study",
]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kills")


@pytest.fixture
def killed(shelf: Path) -> Iterator[Callable[..., Killed]]:
    opened: list[Killed] = []

    def begin(name: str, tweak: Callable[[], None] | None = None) -> Killed:
        case = CASES[name]
        opened.append(Killed(replace(case, tweak=tweak) if tweak else case, shelf))
        return opened[-1]

    yield begin
    for one in opened:
        one.close()


@pytest.mark.parametrize("name", SAMPLE)
def test_a_killed_command_issued_again_ends_with_the_same_bits(name: str, killed: Callable[..., Killed]) -> None:
    command = killed(name)
    command.often(random.Random(name))
    command.at(command.whole.operations // 2 or 1)
    assert command.tally.kills + command.tally.stops > 0
    assert (command.tally.differing, command.tally.lost, command.tally.left) == ([], [], [])


def _repeats() -> None:
    RunFolder.trim_metrics = lambda *arguments: None  # type: ignore[method-assign]


def _tears() -> None:
    outputs.new_file = _careless  # type: ignore[assignment]


@contextmanager
def _careless(path: Path) -> Iterator[BinaryIO]:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    yield durable._Hashed(fd)  # type: ignore[misc]
    os.close(fd)


@pytest.mark.parametrize(
    ("name", "mutant"), [("fit masked_lm gru", _repeats), ("predict .csv classification gru", _tears)]
)
def test_the_check_notices_what_is_repeated_or_torn(
    name: str, mutant: Callable[[], None], killed: Callable[..., Killed]
) -> None:
    command = killed(name, mutant)
    command.at(command.whole.operations // 2)
    assert command.tally.differing or command.tally.lost
