"""Whether compiled kernels can be used, and running them on torch's own threads.

A second set of threads beside torch's would compete with it for the same cores, because both spin for a while after
their work; so a program runs in a parallel region of the OpenMP library that torch has loaded.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import torch

_log = logging.getLogger("seqloom.decoding")
_said: set[str] = set()
_off = False
_HERE = Path(__file__).parent

Run = Callable[[int, int], None]  # the address of a program's control block, the number of threads


def say_slower(reason: str) -> None:
    """Once for every reason: why tokens take the path without kernels."""
    if reason not in _said:
        _said.add(reason)
        _log.warning("tokens are decoded without compiled kernels, which is slower: %s", reason)


def has_kernels() -> bool:
    """Whether what compiles kernels is installed."""
    return find_spec("numba") is not None


@contextmanager
def without_kernels() -> Iterator[None]:
    """Everything takes the path without kernels, for comparison."""
    global _off
    before, _off = _off, True
    try:
        yield
    finally:
        _off = before


def runner() -> Run | None:
    """None: not here, which is said once. The first call compiles, or loads what an earlier process compiled."""
    return None if _off else _found()


@cache
def _found() -> Run | None:
    if not has_kernels():
        say_slower("needs the numba package: pip install 'seqloom[fast]'")
        return None
    try:
        return _runner()
    except Exception as error:  # whatever a compiler, a processor or a disk may do: tokens come anyway
        say_slower(f"the kernels could not be compiled ({type(error).__name__}: {str(error).splitlines()[0][:120]})")
        return None


def _runner() -> Run:
    from seqloom.layers.kernels.machine import compiled

    sources = [path.read_bytes() for path in sorted(_HERE.glob("*.py"))]
    code = compiled(hashlib.sha256(b"".join(sources)).hexdigest())
    alone = ctypes.CFUNCTYPE(None, ctypes.c_int64)(code.address)
    alone.code = code  # type: ignore[attr-defined]
    together = _openmp()
    if together is None:
        return lambda control, threads: alone(control)
    place = ctypes.c_void_p(code.address)

    def run(control: int, threads: int) -> None:
        if threads == 1:
            alone(control)
        else:
            together(place, control, threads, 0)

    return run


def _openmp() -> Callable[..., None] | None:
    """The parallel region of the OpenMP library in this process; None: there is none, so programs use one thread."""
    try:
        region = ctypes.CDLL(None).GOMP_parallel
    except (OSError, AttributeError):
        if torch.get_num_threads() > 1:
            say_slower("torch's threads cannot be shared on this system, so kernels use one thread")
        return None
    region.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
    region.restype = None
    return region
