"""What a command line parser lets pass, and nobody means: a value that was left out, two files where one is read, a
path without a name."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

from typer.core import TyperCommand

from seqloom.core.errors import UserError

_TEXTS = {"text", "second", "passage", "target", "patch_with", "against", "prompt", "system", "question"}  # or empty
_INPUTS = {"data", "valid", "test"}  # of other options given twice, the last one holds, as everywhere
_END = "--"  # of the options


class Command(TyperCommand):
    def parse_args(self, context: Any, args: list[str]) -> list[str]:
        self._check_values(args[: args.index(_END) + 1] if _END in args else args)
        values, _, given = self.make_parser(context).parse_args(args=list(args))
        for option in given:
            if option.name in _INPUTS and given.count(option) > 1 and not option.multiple:
                raise UserError(f"{_name(option)}: given more than once, but only one is read; leave the others out")
            value, positional = values.get(option.name), option.param_type_name != "option"
            if option.name in self._paths():
                _check_path(_name(option), value)
            elif isinstance(value, str) and not value.strip() and not positional and option.name not in _TEXTS:
                raise UserError(f"{_name(option)}: is empty; give a value, or leave the option out")
        left: list[str] = super().parse_args(context, args)
        return left

    def _check_values(self, words: Sequence[str]) -> None:
        """An option that stands where the value of another one belongs."""
        options = [option for option in self.params if option.param_type_name == "option"]
        names = {name for option in options for name in (*option.opts, *option.secondary_opts)} | {"--help", _END}
        valued = {name for option in options if not getattr(option, "is_flag", True) for name in option.opts}
        for word, following in pairwise(words):
            if word in valued and following in names:
                raise UserError(f"{word}: has no value, {following} follows; if it is meant, write {word}={following}")

    def _paths(self) -> set[str]:
        """The options and arguments that are paths."""
        parameters = inspect.signature(self.callback).parameters if self.callback else {}
        return {name for name, parameter in parameters.items() if _is_path(parameter.annotation)}


def _is_path(annotation: Any) -> bool:
    """Also a list of paths, or a path or nothing."""
    return annotation is Path or any(map(_is_path, get_args(annotation)))


def _check_path(name: str, given: object) -> None:
    for text in given if isinstance(given, list | tuple) else [given]:
        if isinstance(text, str) and not text.strip():
            raise UserError(f"{name}: is empty; give a path")
        if text == "-":
            raise UserError(f"{name} -: not standard input or output here; give a name, ./- for a file named so")


def _name(option: Any) -> str:
    if option.param_type_name != "option":
        return str(option.metavar or option.name)
    return next((name for name in option.opts if name.startswith("--")), option.opts[0])
