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


def out_of_memory(error: BaseException) -> bool:
    """Also torch's, which is a RuntimeError like any other, and that of a library in Rust, which is a panic."""
    text, panic = str(error).lower(), type(error).__name__ == "PanicException"
    known = any(said in text for said in ("allocate memory", "out of memory", "bad_alloc"))
    return isinstance(error, MemoryError) or known or (panic and "pointer is null" in text)


def check_encodable(name: str, text: str) -> None:
    """Raise on a text that is none: half a character, such as a stray byte of a terminal."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        at = error.start
        raise UserError(
            f"{name}: not valid text: a lone surrogate (U+{ord(text[at]):04X}) at character {at + 1}; use UTF-8"
        ) from None


def unknown(what: str, name: str, known: Iterable[str]) -> UserError:
    """`unknown model 'lsmt'; did you mean 'lstm'?`, or the whole list if there is no close match."""
    known = sorted(known)
    near = difflib.get_close_matches(name[:200], known, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
    shown = name if len(name) <= 60 else name[:60] + "..."
    return UserError(f"unknown {what} {shown!r}; {hint}")
