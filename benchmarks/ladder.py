"""How often the predictions of a ladder hold, on simulated curves whose continuation is known.

    python benchmarks/ladder.py --curves 300

Each curve has four rungs (1/8, 1/4, 1/2 and 1 of the budget); seeds vary by 0.1 to 1.5 % of the loss, half of it shared
by the rungs of a seed. Families: power laws with an offset; power laws whose exponent changes (broken), between the
first rung and four times the budget; and curves that saturate faster than any power law. Counted is one more run at 2,
4 and 10 times the budget inside its 95 % interval, and, for pairs of curves of one family, how often the statement
about who is ahead at ten times the budget is true when one is made.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np

from seqloom.lab.ladder import TIMES, Curve, Rung, crossing

SHARES = (1 / 8, 1 / 4, 1 / 2, 1.0)
Loss = Callable[[float], float]  # of the budget, in full budgets


def power(draw: np.random.Generator) -> Loss:
    """E + A n^-alpha, where the offset is 20 to 95 % of the loss at the full budget."""
    alpha, offset = draw.uniform(0.05, 0.9), draw.uniform(0.2, 0.95)
    return lambda n: 2.0 * (offset + (1 - offset) * n**-alpha)


def broken(draw: np.random.Generator) -> Loss:
    """The exponent turns smoothly into 0.4 to 1.3 times itself (Caballero et al. 2023)."""
    alpha, offset, where = (
        draw.uniform(0.05, 0.7),
        draw.uniform(0.2, 0.9),
        np.exp(draw.uniform(np.log(1 / 8), np.log(4))),
    )
    turn, sharp = alpha * (draw.uniform(0.4, 1.3) - 1), draw.uniform(0.5, 1.5)
    scale = (1 + where ** (-1 / sharp)) ** (turn * sharp)
    return lambda n: (
        2.0 * (offset + (1 - offset) * n**-alpha * (1 + (n / where) ** (1 / sharp)) ** (-turn * sharp) * scale)
    )


def saturating(draw: np.random.Generator) -> Loss:
    """E + A exp(-(n / n0)^b): nothing more to be gained after some budget."""
    offset, scale, shape = draw.uniform(0.4, 0.95), draw.uniform(0.3, 3.0), draw.uniform(0.3, 0.8)
    return lambda n: 2.0 * (offset + (1 - offset) * float(np.exp(1 - (n / scale) ** shape)))


FAMILIES = {"power law": power, "broken power law": broken, "saturating": saturating}


def ladder(loss: Loss, noise: float, seeds: int, draw: np.random.Generator) -> list[Rung]:
    common = draw.standard_normal(seeds) * np.sqrt(0.5)
    own = draw.standard_normal((len(SHARES), seeds)) * np.sqrt(0.5)
    return [Rung(n, loss(n) * (1 + noise * (common + each))) for n, each in zip(SHARES, own, strict=True)]


def coverage(family: str, curves: int, seeds: int, seed: int = 0) -> Iterator[tuple[list[bool], list[float]]]:
    """For each curve: whether one more run is inside its interval, and the widths of the intervals, by multiple."""
    draw = np.random.default_rng(seed)
    for number in range(curves):
        loss, noise = FAMILIES[family](draw), float(np.exp(draw.uniform(np.log(0.001), np.log(0.015))))
        curve = Curve(ladder(loss, noise, seeds, draw), seed=number)
        if curve.problem:
            continue
        found = curve.predict()
        actual = [loss(factor) * (1 + noise * draw.standard_normal()) for factor in TIMES]
        yield (
            [p.low <= value <= p.high for p, value in zip(found, actual, strict=True)],
            [(p.high - p.low) / value for p, value in zip(found, actual, strict=True)],
        )


def orders(family: str, pairs: int, seeds: int, seed: int = 1) -> Iterator[bool | None]:
    """For each pair of curves: whether the leader named for ten times the budget leads there; None: none was named."""
    draw = np.random.default_rng(seed)
    for number in range(pairs):
        losses = [FAMILIES[family](draw), FAMILIES[family](draw)]
        noise, gap = float(np.exp(draw.uniform(np.log(0.001), np.log(0.015)))), 0.1 * draw.standard_normal()
        close = [losses[0], _scaled(losses[1], (1 + gap) * losses[0](1.0) / losses[1](1.0))]
        curves = [Curve(ladder(loss, noise, seeds, draw), seed=2 * number + k) for k, loss in enumerate(close)]
        if any(curve.problem for curve in curves):
            continue
        found = crossing(*curves)
        truth = "first" if close[0](TIMES[-1]) < close[1](TIMES[-1]) else "second"
        yield None if found.ahead is None else found.ahead == truth


def _scaled(loss: Loss, by: float) -> Loss:
    return lambda n: by * loss(n)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--curves", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    print(f"{asked.curves} curves each, {asked.seeds} seeds")
    head = " | ".join(f"inside, {n}x | width, {n}x" for n in TIMES)
    print(f"| curves | {head} | order at {TIMES[-1]}x named | of these right |")
    print("|---|" + "---:|" * (2 * len(TIMES) + 2))
    for family in FAMILIES:
        inside, widths = (
            np.array(part, float) for part in zip(*coverage(family, asked.curves, asked.seeds), strict=True)
        )
        named = list(orders(family, asked.curves, asked.seeds))
        told = [right for right in named if right is not None]
        cells = [
            f"{100 * inside[:, k].mean():.0f} % | {100 * np.median(widths[:, k]):.0f} %" for k in range(len(TIMES))
        ]
        right = f"{100 * np.mean(told):.0f} %" if told else "–"
        print(f"| {family} | {' | '.join(cells)} | {100 * len(told) / len(named):.0f} % | {right} |")


if __name__ == "__main__":
    main()
