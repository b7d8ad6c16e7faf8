"""Packages that are callable, because they share their name with their function: `seqloom.compare(...)`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any


def make_callable(package: str, module: str) -> None:
    """Let `package` stand for the function of the same name in its module, which is imported on first use."""

    def function() -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(import_module(f"{package}.{module}"), package.rpartition(".")[2])
        return found

    class Verb(ModuleType):
        def __call__(self, *arguments: Any, **options: Any) -> Any:
            return function()(*arguments, **options)

        @property
        def __signature__(self) -> inspect.Signature:
            return inspect.signature(function())

    sys.modules[package].__class__ = Verb
