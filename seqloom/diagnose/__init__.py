"""What a kind of memory can and cannot do: `seqloom.diagnose(models=..., out=...)`.

The package itself is callable, because it shares its name with the function.
"""

import sys
from types import ModuleType
from typing import Any


class _Verb(ModuleType):
    def __call__(self, models: Any = None, **options: Any) -> Any:
        from seqloom.diagnose.diagnosing import diagnose

        return diagnose(models, **options)

    @property
    def __signature__(self) -> Any:
        import inspect

        from seqloom.diagnose.diagnosing import diagnose

        return inspect.signature(diagnose)


sys.modules[__name__].__class__ = _Verb
