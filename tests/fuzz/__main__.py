"""`python -m fuzz`: run the command line on generated inputs for some minutes; exit code 1 if a promise was broken.

--minutes 10      how long
--first 0         the number of the first batch; other numbers, other cases
--most 3000       stop after so many cases
--commands a,b    only these
--out runs/fuzz   for messages.txt, summary.txt and the cases that failed
--replay FILE...  run kept cases and say what happened
--keep            put the cases that failed among those that `make test` replays
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from fuzz.campaign import KEPT, run
from fuzz.case import Case
from fuzz.more_commands import CASES
from fuzz.oracle import violations
from fuzz.server import Server


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m fuzz", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--most", type=int, default=0)
    parser.add_argument("--commands", default=",".join(CASES))
    parser.add_argument("--out", type=Path, default=Path("runs/fuzz"))
    parser.add_argument("--replay", type=Path, nargs="+")
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    if given.replay:
        return replay(given.replay)
    found = run(given.minutes, given.first, given.commands.split(","), given.out, given.most)
    print(f"\n{found.summary()}\nall messages: {given.out / 'messages.txt'}")
    if given.keep:
        for path in (given.out / "found").glob("*.json"):
            shutil.copy(path, KEPT)
    return int(bool(found.found))


def replay(paths: list[Path]) -> int:
    broken = 0
    with Server() as server:
        for path in paths:
            case = Case.from_json(path.read_text())
            outcome = server.run(case)
            wrong = violations(case, outcome)
            broken += bool(wrong)
            print(f"{path}: {case.made}\n  seqloom {' '.join(map(repr, case.argv))[:400]}")
            print(f"  {case.wanted}: {outcome.code}, {outcome.seconds:.1f} s: {outcome.err.strip()[-1500:]}")
            print("".join(f"  VIOLATION {one}\n" for one in wrong), end="")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
