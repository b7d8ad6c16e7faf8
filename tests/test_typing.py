"""The public functions have real signatures, for people and editors; `make check` checks a script that uses them."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import seqloom

VERBS = ["compare", "compare_all", "doctor", "fit", "load"]
ESTIMATORS = ["Forecaster", "SequenceClassifier", "SequenceTagger"]


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_listed_and_every_parameter_has_a_type(verb: str) -> None:
    assert verb in dir(seqloom)
    signature = inspect.signature(getattr(seqloom, verb))
    assert signature.return_annotation not in (inspect.Signature.empty, "Any")
    for name, parameter in signature.parameters.items():
        assert parameter.annotation not in (inspect.Parameter.empty, "Any"), name


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_is_listed_and_its_methods_are_typed(name: str) -> None:
    assert name in dir(seqloom)
    estimator = getattr(seqloom, name)
    for method in (estimator.__init__, estimator.fit, estimator.predict):
        signature = inspect.signature(method)
        assert signature.return_annotation is not inspect.Signature.empty
        assert all(p.annotation is not p.empty for p in signature.parameters.values() if p.name != "self")


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(seqloom.__file__).parent / "py.typed").exists()
