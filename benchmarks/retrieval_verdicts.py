"""How often is one of several equal retrievers called worse? python benchmarks/retrieval_verdicts.py

Simulated scores: for six tenths of the queries a retriever scores like all others, for the rest as luck has it, by a
beta distribution with most of its mass near 0 and 1, as nDCG has it where few documents are relevant.
"""

from __future__ import annotations

import argparse

import numpy as np

from seqloom.retrieve.standings import verdicts

CASES = [(20, 2), (20, 4), (50, 3), (200, 4)]  # queries, retrievers
SHARED = 0.6


def false_alarm(rng: np.random.Generator, queries: int, retrievers: int) -> bool:
    common = rng.beta(0.5, 0.5, size=queries)
    scores = {
        str(n): np.where(rng.random(queries) < SHARED, common, rng.beta(0.5, 0.5, size=queries))
        for n in range(retrievers)
    }
    return any(found.verdict == "worse" for found in verdicts(scores, margin=0.0).values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=400, help="per case")
    given = parser.parse_args()
    rng = np.random.default_rng(1)
    for queries, retrievers in CASES:
        share = np.mean([false_alarm(rng, queries, retrievers) for _ in range(given.comparisons)])
        print(f"{queries} queries, {retrievers} retrievers: {share:.1%} false alarms", flush=True)


if __name__ == "__main__":
    main()
