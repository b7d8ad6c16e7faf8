"""The rules of a diagnosis, the same for every model: size, examples, learning rates and seeds."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from seqloom.core.errors import UserError, unknown
from seqloom.core.rows import Json
from seqloom.diagnose.problems import PROBLEMS
from seqloom.lab.rules import MOST_SEEDS

SOLVED = 0.99  # accuracy from which a problem counts as solved
NEAR = 0.1  # share of the way from guessing to perfect, up to which an accuracy counts as near guessing
CLOSE = 0.1  # accuracies that differ by at most this agree, whatever they count as
_MOST = {"parameters": 10**9, "steps": 10**7, "seeds": MOST_SEEDS}
_OF_A_RUN = ("parameters", "depth", "widest", "steps", "batch", "tested", "enough")


@dataclass(frozen=True)
class Rules:
    problems: tuple[str, ...] = tuple(PROBLEMS)
    parameters: int = 40_000
    depth: int = 2  # most layers; an architecture with fewer by default keeps them
    widest: int = 512  # a model without weights of its own would otherwise put all parameters into its embedding
    steps: int = 1000  # at most: training ends when the loss shows that nothing is left to learn
    batch: int = 16
    rates: tuple[float, ...] = (2e-3, 6e-3)  # each tried with the first seed; the best is used for the others
    seeds: int = 3
    tested: int = 128  # test rows of each size
    enough: float = 0.002  # loss at which nothing is left to learn, in nats per answer

    @classmethod
    def given(cls, quick: bool, problems: str | tuple[str, ...] | None, **numbers: int | None) -> Rules:
        """The usual rules or those for a quick look, with what the user set."""
        chosen = {name: number for name, number in numbers.items() if number is not None}
        for name, number in chosen.items():
            if not 1 <= number <= _MOST[name]:
                raise UserError(f"--{name.replace('parameters', 'params')} {number}: must be 1 to {_MOST[name]:,}")
        found = replace(QUICK if quick else cls(), **chosen)  # type: ignore[arg-type]
        if problems is None:
            return found
        names = problems.split(",") if isinstance(problems, str) else problems
        named = tuple(dict.fromkeys(name.strip() for name in names))
        for name in named:
            if name not in PROBLEMS:
                raise unknown("problem", name, PROBLEMS)
        return replace(found, problems=named)

    def of_a_run(self) -> Json:
        """What one run depends on."""
        return {name: getattr(self, name) for name in _OF_A_RUN}

    def plain(self) -> Json:
        return asdict(self) | {"problems": list(self.problems), "rates": list(self.rates)}


QUICK = Rules(problems=("parity", "recall"), steps=450, rates=(2e-3,), seeds=1, tested=64)
