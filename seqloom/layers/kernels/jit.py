"""What compiles the kernels: numba, imported only here and only once a kernel is needed; no compiler on the machine.

`kernel` and `exactly` mark functions to compile; `pointer`, `load`, `store` and `add` are what numba lacks: memory at
an address, and atomic access to 64-bit counters that several threads share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_FAST = {"reassoc", "contract", "nsz"}  # sums in any order, as vector units need; NaN stays NaN


def kernel(function: Callable[..., Any]) -> Any:
    """Compiled where it is called; sums may be taken in any order."""
    return _compiled(function, _FAST)


def exactly(function: Callable[..., Any]) -> Any:
    """The same with every operation as written."""
    return _compiled(function, False)


def _compiled(function: Callable[..., Any], fastmath: Any) -> Any:
    import numba

    return numba.njit(fastmath=fastmath, nogil=True, error_model="numpy")(function)


def entry(function: Callable[..., Any]) -> Any:
    """A C function of one address, kept on disk if there is a place to keep it; has `.ctypes`."""
    import numba

    signature = numba.types.void(numba.types.intp)
    try:
        return numba.cfunc(signature, cache=True)(function)
    except RuntimeError:  # neither the package nor the user's cache folder can be written
        return numba.cfunc(signature)(function)


def instructions() -> Any:
    """`llvmlite.ir`, as numba has it."""
    from numba.core import cgutils

    return cgutils.ir


def pointer() -> Any:
    """address -> pointer, for `carray`."""
    from numba import types
    from numba.extending import intrinsic

    def as_pointer(context: Any, address: Any) -> Any:
        def code(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], target.get_value_type(types.voidptr))

        return types.voidptr(types.intp), code

    return intrinsic(as_pointer)


def prefetch() -> Any:
    """address: what is there will be read soon."""
    from numba import types
    from numba.extending import intrinsic

    ir = instructions()

    def fetch(context: Any, address: Any) -> Any:
        def code(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            place, int32 = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer()), ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [place.type, int32, int32, int32])
            function = builder.module.declare_intrinsic("llvm.prefetch", (place.type,), kind)
            builder.call(function, [place, int32(0), int32(3), int32(1)])  # to read, to keep, data
            return target.get_dummy_value()

        return types.void(types.intp), code

    return intrinsic(fetch)


def _word(builder: Any, address: Any) -> Any:
    ir = instructions()
    return builder.inttoptr(address, ir.IntType(64).as_pointer())


def load() -> Any:
    """address -> the counter there."""
    from numba import types
    from numba.extending import intrinsic

    def atomic_load(context: Any, address: Any) -> Any:
        def code(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.load_atomic(_word(builder, arguments[0]), "acquire", 8)

        return types.int64(types.intp), code

    return intrinsic(atomic_load)


def store() -> Any:
    """(address, value): set the counter there."""
    from numba import types
    from numba.extending import intrinsic

    def atomic_store(context: Any, address: Any, value: Any) -> Any:
        def code(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            builder.store_atomic(arguments[1], _word(builder, arguments[0]), "release", 8)
            return target.get_dummy_value()

        return types.void(types.intp, types.int64), code

    return intrinsic(atomic_store)


def add() -> Any:
    """(address, value) -> the counter before the addition."""
    from numba import types
    from numba.extending import intrinsic

    def atomic_add(context: Any, address: Any, value: Any) -> Any:
        def code(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.atomic_rmw("add", _word(builder, arguments[0]), arguments[1], "seq_cst")

        return types.int64(types.intp, types.int64), code

    return intrinsic(atomic_add)


def carray() -> Any:
    import numba

    return numba.carray
