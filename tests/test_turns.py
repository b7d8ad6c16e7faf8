"""Timing by turns, with times that are given instead of measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain, repeat

import pytest

from seqloom.lab.turns import AGREEING, LEAST, LONG, MOST, Times, take_turns

SHORT = LONG / 1000  # seconds


def turns(*times: float, then: float, unit: float = SHORT) -> Callable[[], float]:
    """These times, then always the same."""
    given: Iterable[float] = chain(times, repeat(then))
    return (time * unit for time in given).__next__


def test_a_time_is_stable_when_several_turns_come_close_to_the_fastest() -> None:
    assert Times([1.0, 9.0, 1.04, 1.05]).stable
    assert not Times([1.0, 1.04, 1.2, 1.2, 1.2]).stable, "one fast turn may be luck"
    assert not Times([1.0, 1.0]).stable


def test_all_have_the_least_turns_and_only_those_that_disagree_have_more() -> None:
    noisy = turns(*(1.0 + n for n in range(LEAST + 3)), then=1.0)
    found = take_turns({"even": turns(then=2.0), "noisy": noisy}, seconds=1e9)
    assert len(found["even"].taken) == LEAST
    assert len(found["noisy"].taken) == LEAST + 5 and found["noisy"].stable and found["noisy"].fastest == SHORT


@pytest.mark.parametrize(("unit", "least"), [(LONG / LEAST, LEAST), (LONG / 5, 5), (LONG, AGREEING), (9.0, AGREEING)])
def test_long_turns_are_fewer_but_as_many_as_have_to_agree(unit: float, least: int) -> None:
    noisy = turns(*(1.5**n for n in range(least)), then=1.0, unit=unit)
    found = take_turns({"even": turns(then=1.0, unit=unit), "noisy": noisy}, seconds=1e9)
    assert len(found["even"].taken) == least and found["even"].stable
    assert len(found["noisy"].taken) > least and found["noisy"].stable


def test_what_never_agrees_ends_at_the_limits_and_is_not_stable() -> None:
    def worse() -> Callable[[], float]:
        times = iter([SHORT * 1.5**n for n in range(MOST)])
        return lambda: next(times)

    for seconds, most in ((1e30, MOST), (0.0, LEAST)):
        found = take_turns({"noisy": worse()}, seconds=seconds)["noisy"]
        assert len(found.taken) == most and not found.stable


def test_time_that_is_left_limits_the_further_turns() -> None:
    found = take_turns({"slow": turns(*(1.5**n for n in range(LEAST)), then=1.0)}, seconds=60 * SHORT)["slow"]
    assert len(found.taken) < LEAST + 30


def test_more_work_that_seems_cheaper_is_measured_again_until_it_is_not() -> None:
    both = {"short": turns(*[3.0] * LEAST, then=1.0), "long": turns(then=2.0)}
    found = take_turns(both, 1e9, chains=[["short", "long"]])
    assert found["short"].fastest == SHORT < found["long"].fastest
    assert all(len(each.taken) > LEAST for each in found.values())


@pytest.mark.parametrize(("long", "turns_taken"), [(0.97, LEAST), (0.5, MOST)])
def test_less_within_the_tolerance_is_noise_and_beyond_it_stays_unsettled(long: float, turns_taken: int) -> None:
    found = take_turns({"short": turns(then=1.0), "long": turns(then=long)}, 1e9, chains=[["short", "long"]])
    assert [len(each.taken) for each in found.values()] == [turns_taken] * 2
