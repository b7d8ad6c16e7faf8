"""Kill every command that writes, again and again, and compare what it leaves with an uninterrupted one: bit for bit.

    python tests/slow/kills.py                                       every case, at least 3 kills each
    python tests/slow/kills.py --only "fit tagging" --kills 10       some cases, more often
    python tests/slow/kills.py --only "merge" --each                 at each of its file operations

One line per case, then a table by command and task. Exit code 1 if a bit differed or anything was lost.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

import torch
from kill_cases import Case, cases
from kill_rounds import Killed, Tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=3, help="at least, of each case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="cases whose name begins so")
    parser.add_argument("--each", action="store_true", help="instead, one kill at each file operation")
    given = parser.parse_args()
    torch.set_num_threads(1)
    started, rows = time.monotonic(), dict[tuple[str, str], Tally]()
    with tempfile.TemporaryDirectory(prefix="kills-") as place:
        for case in cases():
            if case.name.startswith(given.only) and (tally := one(case, Path(place), given)):
                rows.setdefault((case.command, case.task), Tally()).add(tally)
    total = Tally()
    print("\n| command | task | kills | signals | compared | differing | lost |\n|---|---|---|---|---|---|---|")
    for (command, task), tally in rows.items():
        print(f"| {command} | {task.replace('_', ' ')} | {row(tally)} |")
        total.add(tally)
    print(f"| all | | {row(total)} |\n\n{time.monotonic() - started:.0f} s")
    return int(bool(total.differing or total.lost))


def row(tally: Tally) -> str:
    return f"{tally.kills} | {tally.stops} | {tally.ends} | {len(tally.differing)} | {len(tally.lost)}"


def one(case: Case, shelf: Path, given: argparse.Namespace) -> Tally | None:
    """The tally of a case; None if the task refuses the model."""
    killed = Killed(case, shelf)
    try:
        whole, tally = killed.whole, killed.tally
        if whole.code == 2:
            print(f"{case.name}: refused: {whole.said.strip().splitlines()[-1]}", flush=True)
            return None
        assert whole.code == 0, f"{case.name}: {whole.said}"
        rng = random.Random(f"{given.seed} {case.name}")
        for operation in range(1, whole.operations + 1) if given.each else ():
            killed.at(operation)
        while not given.each and tally.kills < given.kills:
            killed.often(rng)
    finally:
        killed.close()
    facts = f"{tally.kills} kills, {tally.stops} signals; {len(tally.differing)} differ, {len(tally.lost)} lost"
    print(f"{case.name}: {whole.seconds:.1f} s, {whole.operations} operations; {facts}", flush=True)
    for line in dict.fromkeys([*tally.differing, *tally.lost, *(f"left over: {name}" for name in tally.left)]):
        print(f"    {line}", flush=True)
    return tally


if __name__ == "__main__":
    sys.exit(main())
