"""The longest chain of tensor operations in which each needs the result of the one before: what no number of processors
can do at the same time. Views cost nothing, and every other operation counts as one, however large it is.

Run on the meta device, where nothing is computed: there, operations that a processor fuses appear one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Chain(TorchDispatchMode):
    """Watches a block; `length` is the longest chain so far. Parts of one storage are not told apart."""

    def __init__(self) -> None:
        super().__init__()
        self.length = 0
        self.depths: dict[int, int] = {}  # by storage: operations in a row that led to what is in it
        self.kept: list[Any] = []  # storages, so that no address is used twice

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        found = func(*args, **(kwargs or {}))
        read = {_storage(x) for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)}
        if read:
            depth = 1 + max(self.depths.get(key, 0) for key in read)
            for x in tree_leaves(found):
                if isinstance(x, Tensor) and (_storage(x) not in read or func._schema.is_mutable):
                    self.depths[_storage(x)] = depth
                    self.kept.append(x.untyped_storage())
                    self.length = max(self.length, depth)
        return found


def longest(run: Callable[[], Tensor]) -> int:
    """Of what computes a loss, and of its backward pass."""
    with Chain() as chain:
        run().backward()
    return chain.length


def _storage(x: Tensor) -> int:
    return int(x.untyped_storage()._cdata)
