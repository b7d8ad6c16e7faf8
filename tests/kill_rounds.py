"""A command in its rounds: prepared, run in peace, then killed and issued again until its end, and compared."""

from __future__ import annotations

import random
import re
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from kill_cases import Case, desk
from kill_content import content, difference, faults, lasting, litter
from killing import NEVER, End, Moment, draw, run

MOST = 3  # kills of one command, before it is left in peace
_STEP = re.compile(r"checkpoints/step-(\d+)/")


@dataclass
class Tally:
    kills: int = 0  # at work
    stops: int = 0  # by SIGTERM, SIGINT or SIGHUP
    ends: int = 0  # issued again until the end, and compared
    differing: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)  # temporary files, which hinder nothing

    def add(self, other: Tally) -> None:
        self.kills, self.stops, self.ends = self.kills + other.kills, self.stops + other.stops, self.ends + other.ends
        self.differing, self.lost = self.differing + other.differing, self.lost + other.lost
        self.left = self.left + other.left


class Killed:
    """A case and how it ends if nothing interrupts it. `shelf`: a folder for all cases, which share preparations."""

    def __init__(self, case: Case, shelf: Path) -> None:
        self.case, self.shelf, self.tally = case, shelf, Tally()
        self.place = Path(tempfile.mkdtemp(dir=shelf))
        self.before = self._prepared()
        self._new()
        self.whole = self._run(NEVER)
        self.wanted = content(self.work) if self.whole.code == 0 else {}

    @property
    def work(self) -> Path:
        return self.place / "work"

    def close(self) -> None:
        shutil.rmtree(self.place, ignore_errors=True)

    def often(self, rng: random.Random) -> None:
        """Kill it at random moments, at most MOST times, each time a little earlier, and let it end."""
        work, left = self._new(), 1.0
        for _ in range(MOST):
            if not self._once(draw(rng, self.whole, left)):
                break
            left *= 0.7
        self._end(work)

    def at(self, *operations: int) -> None:
        """Kill it at these of its file operations, one after another, and let it end."""
        work = self._new()
        for operation in operations:
            self._once(Moment(operation=operation))
        self._end(work)

    def _once(self, moment: Moment) -> bool:
        """Whether it was killed before its end."""
        before = lasting(self.work)
        end = self._run(moment)
        polite = moment.number != NEVER.number
        self.tally.stops += end.stopped and polite
        self.tally.kills += end.stopped and not polite
        found = faults(self.work, self.before, self.wanted)
        found += [f"{name} is gone" for name in sorted(before - lasting(self.work))]
        found += [] if end.stopped or end.code == 0 else [f"exit code {end.code}: {end.said[-400:]}"]
        self.tally.lost += [f"{moment}: {fault}" for fault in found]
        return end.stopped

    def _end(self, work: Path) -> None:
        polite, end = self.tally.stops > 0, self._run(NEVER)
        self.tally.ends += 1
        if end.code != 0:
            self.tally.lost.append(f"exit code {end.code}: {end.said[-400:]}")
            return
        found = content(work)
        wanted, found = (_without_old(files) if polite else files for files in (self.wanted, found))
        self.tally.lost += [f"{name} is missing" for name in sorted(wanted.keys() - found.keys())]
        self.tally.differing += [f"{name} is new" for name in sorted(found.keys() - wanted.keys())]
        for name in sorted(found.keys() & wanted.keys()):
            if found[name] != wanted[name]:
                self.tally.differing.append(f"{name} differs: {difference(wanted[name], found[name])}")
        self.tally.left += litter(work)

    def _run(self, moment: Moment) -> End:
        return run(self.work, self.case.words, moment, self.case.tweak)

    def _new(self) -> Path:
        """The folder as it is before the command."""
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.before, self.work)
        return self.work

    def _prepared(self) -> Path:
        """The folder before the command; made once for all cases that begin with the same commands."""
        place = self.shelf / "data"
        if not place.exists():
            place.mkdir()
            desk(place)
        for n in range(len(self.case.before)):
            place = self._after(n + 1, place)
        if self.case.change is None:
            return place
        changed = self.place / "changed"
        shutil.copytree(place, changed)
        self.case.change(changed)
        return changed

    def _after(self, count: int, place: Path) -> Path:
        made = self.shelf / f"{hash(self.case.before[:count]):x}" / "work"
        if not made.exists():
            shutil.copytree(place, made)
            end = run(made, self.case.before[count - 1], tweak=self.case.tweak)
            assert end.code == 0, f"{self.case.name}: {' '.join(self.case.before[count - 1])}: {end.said}"
        return made


def _without_old(files: dict[str, str]) -> dict[str, str]:
    """Without all checkpoints but the newest: a signal saves one more, and so others are the latest."""
    newest = max((int(match[1]) for name in files if (match := _STEP.search(name))), default=0)
    return {
        name: digest for name, digest in files.items() if not (match := _STEP.search(name)) or int(match[1]) == newest
    }
