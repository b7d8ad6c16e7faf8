"""A fair comparison of several models on one dataset: `seqloom.compare(data=..., models=..., out=...)`.

The package itself is callable, because it shares its name with the function.
"""

import sys
from types import ModuleType
from typing import Any


class _Verb(ModuleType):
    def __call__(self, **options: Any) -> Any:
        from seqloom.compare.comparing import compare

        return compare(**options)

    @property
    def __signature__(self) -> Any:
        import inspect

        from seqloom.compare.comparing import compare

        return inspect.signature(compare)


sys.modules[__name__].__class__ = _Verb
