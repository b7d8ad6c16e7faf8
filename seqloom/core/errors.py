"""Errors a person can mend. The command line prints them as one line, without a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Wrong usage or wrong input: says where, what is wrong, and the way out. Exit code 2."""

    exit_code = 2


class RunError(UserError):
    """The input was fine and the work failed: disk full, memory, a loss that is not a number. Exit code 1."""

    exit_code = 1


def unknown(what: str, name: str, known: Iterable[str]) -> UserError:
    """`unknown model 'lsmt'; did you mean 'lstm'?`, or the whole list when nothing is near."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
    return UserError(f"unknown {what} {name!r}; {hint}")
