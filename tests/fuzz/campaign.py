"""Draw cases and run them: counts, violations, and every message for reading by eye."""

from __future__ import annotations

import hashlib
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS

from fuzz.case import Case, Outcome
from fuzz.more_commands import CASES, SHARES
from fuzz.oracle import kind, violations
from fuzz.server import Server

BATCH = 12  # cases drawn at a time for a command
AVAILABLE_PROVIDERS["plain"] = AVAILABLE_PROVIDERS["hypothesis"]  # all at random: else ten simple ones, then variations
KEPT = Path(__file__).parent / "cases"


def strategy(command: str) -> st.SearchStrategy[Case]:
    return st.composite(lambda draw: CASES[command](draw))()


def drawn(command: str, number: int, count: int = BATCH) -> list[Case]:
    """Always the same ones for the same number."""
    found: list[Case] = []

    @seed(number)
    @settings(
        backend="plain", max_examples=count + 1, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(strategy(command))
    def collect(case: Case) -> None:
        found.append(case)

    collect()
    return found[1:]  # the first is always the simplest one


def stream(first: int, commands: list[str]) -> Iterator[tuple[int, Case]]:
    """Cases without end, the commands in turns by their shares; each with the number that its batch was drawn by."""
    turns = [command for command in commands for _ in range(SHARES.get(command, 1))]
    number = first
    while True:
        random.Random(number).shuffle(turns)
        for command in turns:
            yield from ((number, case) for case in drawn(command, number))
            number += 1


@dataclass
class Campaign:
    folder: Path
    counts: Counter[str] = field(default_factory=Counter)  # by command
    codes: Counter[str] = field(default_factory=Counter)  # by what was wanted and how it ended
    slowest: float = 0.0
    found: Counter[str] = field(default_factory=Counter)  # violations by command and kind

    def __post_init__(self) -> None:
        (self.folder / "found").mkdir(parents=True, exist_ok=True)
        (self.folder / "messages.txt").write_text("")

    def take(self, number: int, case: Case, outcome: Outcome) -> list[str]:
        wrong = violations(case, outcome)
        self.counts[case.command] += 1
        self.codes[f"{case.wanted}: {-outcome.signal or outcome.code}"] += 1
        self.slowest = max(self.slowest, outcome.seconds)
        with (self.folder / "messages.txt").open("a", encoding="utf-8", errors="backslashreplace") as file:
            words = " ".join(word if len(word) < 80 else word[:80] + "..." for word in case.argv)
            said = outcome.err.strip().splitlines()[-1:] or [f"({len(outcome.out)} characters of output)"]
            file.write(f"{number} {case.made}\n  seqloom {words!r}\n  {case.wanted}: {outcome.code}: {said[0]}\n")
        for one in wrong:
            self._keep(number, case, one)
        return wrong

    def _keep(self, number: int, case: Case, violation: str) -> None:
        """The first case of each kind of violation, as a file."""
        name = f"{case.command}: {kind(violation)}"
        self.found[name] += 1
        if self.found[name] == 1:
            path = self.folder / "found" / file_name(case)
            path.write_text(case.to_json() + "\n")
            words = " ".join(map(repr, case.argv))
            print(f"\n{violation}\n  {case.made} (batch {number})\n  seqloom {words[:600]}\n  {path}", flush=True)

    def summary(self) -> str:
        commands = ", ".join(f"{command} {count}" for command, count in sorted(self.counts.items()))
        ends = ", ".join(f"{end} x {count}" for end, count in sorted(self.codes.items()))
        lines = [
            f"{self.counts.total():,} cases: {commands}",
            f"wanted and exit code: {ends}",
            f"slowest: {self.slowest:.1f} s",
        ]
        lines += [f"{count:5} {name}" for name, count in self.found.most_common()] or ["no violations"]
        return "\n".join(lines)


def file_name(case: Case) -> str:
    return f"{case.command}-{hashlib.sha1(case.to_json().encode()).hexdigest()[:8]}.json"


def run(minutes: float, first: int, commands: list[str], folder: Path, most: int = 0) -> Campaign:
    campaign, started, told = Campaign(folder), time.monotonic(), time.monotonic()
    with Server() as server:
        for number, case in stream(first, commands):
            if time.monotonic() - started > 60 * minutes or (most and campaign.counts.total() >= most):
                break
            campaign.take(number, case, server.run(case))
            if time.monotonic() - told > 30:
                told = time.monotonic()
                done = f"{campaign.counts.total()} cases, {campaign.found.total()} violations"
                print(f"{(told - started) / 60:.1f} min, {done}", flush=True)
    (folder / "summary.txt").write_text(campaign.summary() + "\n")
    return campaign


def kept() -> list[Path]:
    return sorted(KEPT.glob("*.json"))
