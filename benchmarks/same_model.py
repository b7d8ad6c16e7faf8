"""Real comparisons of a model with itself: how often is it called different?

    python benchmarks/same_model.py --data book.txt [--studies 10] [--models lstm,gpt]

Every study tunes and trains each model twice, with other seeds for the search and for the final runs, and judges the
two as if they were different models.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from seqloom.compare import judging
from seqloom.compare.comparing import compare
from seqloom.core.rows import Json
from seqloom.lab import jobs
from seqloom.lab.rules import Margin
from seqloom.lab.spending import level_at


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="text file")
    parser.add_argument("--models", default="lstm,gpt")
    parser.add_argument("--studies", type=int, default=10)
    parser.add_argument("--params", default="50k")
    parser.add_argument("--budget", default="tokens=100k")
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/same-model"))
    options = parser.parse_args()
    jobs.PROBE_STEPS = 1  # the recall probe plays no part here
    different = verdicts = 0
    for study in range(options.studies):
        first, second = (_entries(options, 1000 * (2 * study + half)) for half in range(2))
        for name in options.models.split(","):
            twice = [first[name] | {"name": "a"}, second[name] | {"name": "b"}]
            found = judging.verdicts(
                judging.samples(twice, higher_is_better=False), False, level_at(1), Margin(amount=0.0), (0.0, None)
            )
            worse = next((v for v in found.values() if v.verdict == "worse"), None)
            different, verdicts = different + (worse is not None), verdicts + 1
            scores = ", ".join(f"{entry['score']['mean']:.4f}" for entry in twice)
            print(f"study {study + 1}, {name}: {scores}; {'different' if worse else 'not different'}", flush=True)
    print(f"called different: {different} of {verdicts}")


def _entries(options: argparse.Namespace, seed: int) -> dict[str, Json]:
    """The finished entries of one comparison."""
    found = compare(
        data=options.data,
        models=options.models,
        params=options.params,
        budget=options.budget,
        trials=options.trials,
        seeds=options.seeds,
        seed=seed,
        jobs=options.jobs,
        out=options.out / f"seed-{seed}",
        quiet=True,
    )
    return {entry["name"]: entry for entry in found.result["entries"] if entry["state"] == "done"}


if __name__ == "__main__":
    sys.exit(main())
