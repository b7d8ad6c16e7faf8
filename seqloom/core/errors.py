"""Errors a user can fix. The command line prints them on one line, without a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Wrong usage or invalid input: the message gives the place, the problem and the fix. Exit code 2."""

    exit_code = 2


class RunError(UserError):
    """Valid input, but the run failed: disk full, out of memory, a non-finite loss. Exit code 1."""

    exit_code = 1


def unknown(what: str, name: str, known: Iterable[str]) -> UserError:
    """`unknown model 'lsmt'; did you mean 'lstm'?`, or the whole list if there is no close match."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
    return UserError(f"unknown {what} {name!r}; {hint}")
