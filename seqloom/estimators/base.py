"""What all estimators share: parameters, training a run, and being copied and pickled together with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from seqloom.core.errors import RunError, UserError
from seqloom.data.memory import Data
from seqloom.estimators import kept

if TYPE_CHECKING:
    from seqloom.runs.run import Run

Options = Mapping[str, object] | None


class InputError(UserError, ValueError):
    """A user's mistake, as scikit-learn's tools expect it."""


@contextmanager
def as_value_error() -> Iterator[None]:
    try:
        yield
    except RunError:
        raise  # a full disk is no wrong value
    except UserError as error:
        raise InputError(str(error)) from None


class SequenceEstimator(BaseEstimator):
    """Trains a run of one task. `run_` is the run; without `out`, its folder is temporary and lives as long as it."""

    _task: ClassVar[str]
    run_: Run

    def __init__(
        self,
        model: str | Mapping[str, object] = "lstm",
        *,
        train: Options = None,
        tokenizer: Options = None,
        options: Options = None,
        valid_fraction: float = 0.1,
        random_state: int | np.random.RandomState | None = None,
        out: str | Path | None = None,
        verbose: bool = False,
    ) -> None:
        self.model = model
        self.train = train
        self.tokenizer = tokenizer
        self.options = options
        self.valid_fraction = valid_fraction
        self.random_state = random_state
        self.out = out
        self.verbose = verbose

    def _learn(self, data: Data, valid: Data, seed: int, **options: object) -> None:
        """Train on this data; `options`: of the data and task sections, with `__` for the dot; the user's win."""
        from seqloom.runs.fit import fit

        own = {name.replace("__", "."): value for name, value in options.items() if value is not None}
        with as_value_error(), kept.folder(self.out) as folder:
            self.run_ = fit(
                data=data,
                valid=valid,
                task=self._task,
                model=self.model,
                train={**(self.train or {}), "seed": seed},
                tokenizer=self.tokenizer,
                options={**own, **(self.options or {})},
                out=folder,
                quiet=not self.verbose,
            )
        if self.out is None:
            kept.until_unused(self.run_)

    def _seed(self) -> int:
        """Of held-out rows and training; without a random state that of the train section."""
        self._check_parameters()
        given: Any = (self.train or {}).get("seed", 0) if self.random_state is None else self.random_state
        drawn = check_random_state(given)
        return int(given if isinstance(given, int | np.integer) else drawn.randint(2**31 - 1))

    def _check_parameters(self) -> None:
        for name in ("train", "tokenizer", "options"):
            given = getattr(self, name, None)
            if given is not None and not isinstance(given, Mapping):
                raise InputError(f"{name}={given!r}: give a dict of options")
        if not isinstance(self.model, str | Mapping):
            raise InputError(f"model={self.model!r}: give a name, or a dict with a name and options")

    def _held_out(self, groups: np.ndarray, seed: int) -> np.ndarray:
        """True for rows to validate on: about `valid_fraction` of every group, and never all of it."""
        if not 0 <= self.valid_fraction < 1:
            raise InputError(f"valid_fraction={self.valid_fraction}: must be at least 0 and below 1")
        draw = np.random.default_rng(seed)
        chosen = np.zeros(len(groups), bool)
        for group in np.unique(groups):
            rows = draw.permutation(np.flatnonzero(groups == group))
            chosen[rows[: min(len(rows) - 1, round(len(rows) * self.valid_fraction))]] = True
        return chosen

    def _fitted(self) -> Run:
        check_is_fitted(self)
        return self.run_

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        run = state.pop("run_", None)
        return state if run is None else state | {"_packed": kept.pack(run.folder.path)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        packed = state.get("_packed")
        super().__setstate__({name: value for name, value in state.items() if name != "_packed"})
        if packed is not None:
            self.run_ = kept.unpack(packed)

    def __sklearn_is_fitted__(self) -> bool:
        return "run_" in vars(self)


def rows_of(values: Any, chosen: np.ndarray) -> list[Any]:
    return [values[n] for n in np.flatnonzero(chosen)]
