"""Conditions of a rule: each asks that a number lies above a limit, and is met, or missed, by its whole interval."""

from __future__ import annotations

from seqloom.pages.words import Pair
from seqloom.studies._study import Measured, Verdict

Conditions = list[tuple[Measured, float]]  # a number, and what it has to exceed


def verdict(asked: Conditions) -> Verdict:
    """Holds if all are met, under conditions if some are, fails if all are missed."""
    met, missed, _ = _sorted(asked)
    if len(asked) in (len(met), len(missed)):
        return "holds" if met else "fails"
    return "conditions" if met else "untold"


def told(asked: Conditions) -> Pair:
    """Which are met, missed and undecided."""
    words = (("Met", "满足"), ("Missed", "不满足"), ("Undecided", "未定"))
    kinds = [(word, names) for word, names in zip(words, _sorted(asked), strict=True) if names]
    english = " ".join(f"{word[0]}: {'; '.join(name[0] for name in names)}." for word, names in kinds)
    chinese = "".join(f"{word[1]}：{'；'.join(name[1] for name in names)}。" for word, names in kinds)
    return f"The conditions of the rule, by whole intervals. {english}", f"规则的各条件，按整个置信区间。{chinese}"


def _sorted(asked: Conditions) -> tuple[list[Pair], list[Pair], list[Pair]]:
    met = [one.name for one, least in asked if (one.low or 0.0) > least]
    missed = [one.name for one, least in asked if (one.high or 0.0) <= least]
    return met, missed, [one.name for one, _ in asked if one.name not in (*met, *missed)]
