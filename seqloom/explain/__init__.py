"""Look inside any run: `seqloom.explain(run, text)`.

The package itself is callable, because it shares its name with the function.
"""

import sys
from types import ModuleType
from typing import Any


class _Verb(ModuleType):
    def __call__(self, run: Any, text: Any = None, **options: Any) -> Any:
        from seqloom.explain.explaining import explain

        return explain(run, text, **options)

    @property
    def __signature__(self) -> Any:
        import inspect

        from seqloom.explain.explaining import explain

        return inspect.signature(explain)


sys.modules[__name__].__class__ = _Verb
