"""A renderer for templates of strangers: jinja2's sandbox, with bounds on loops, calls, sizes and output.

The sandbox keeps a template away from Python's internals, but does not stop it from using up all time and memory. So
every turn of a loop and every call takes a step of a budget, texts, lists and numbers have a largest size, and filters
and methods are those of a short list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

MOST_SOURCE, MOST_TEXT, MOST_STEPS, MOST_ITEMS = 50_000, 200_000, 20_000, 10_000
_FILTERS = ("capitalize", "default", "first", "int", "items", "last", "length", "list", "lower", "map", "reject",
            "rejectattr", "select", "selectattr", "title", "trim", "upper")  # fmt: skip
_METHODS = {
    str: {"capitalize", "endswith", "find", "isdigit", "lower", "lstrip", "rstrip", "split", "startswith", "strip",
          "title", "upper"},
    dict: {"get", "items", "keys", "values"},
    list: {"index", "count"},
    tuple: {"index", "count"},
}  # fmt: skip
_LOADING = nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends


class Refused(Exception):
    """The template does what it must not, or says that something is wrong."""


def run(source: str, values: Mapping[str, Any]) -> str:
    """What the template writes; raises Refused, and nothing else, with the reason."""
    if len(source) > MOST_SOURCE:
        raise Refused(f"it has {len(source):,} characters; at most {MOST_SOURCE:,} are run")
    size, parts = 0, []
    try:
        env = Environment()
        for part in env.from_string(_Bounds().visit(env.parse(source))).generate(values):
            size += len(part)
            if size > MOST_TEXT:
                raise Refused("it writes too much")
            parts.append(part)
        return "".join(parts)
    except (jinja2.TemplateError, ArithmeticError, TypeError, ValueError, LookupError, AttributeError) as error:
        raise Refused(" ".join(str(error).split())[:200] or type(error).__name__) from None
    except RecursionError:
        raise Refused("it is nested too deeply") from None
    except MemoryError:
        raise Refused("it needs too much memory") from None


class Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset(["+", "-", "*", "/", "//", "%", "**"])

    def __init__(self) -> None:
        more = ["jinja2.ext.loopcontrols"]
        super().__init__(trim_blocks=True, lstrip_blocks=True, optimized=False, finalize=_scalar, extensions=more)
        self.left = MOST_STEPS
        self.filters = {name: self.filters[name] for name in _FILTERS} | {
            "tojson": _to_json, "string": _text, "replace": _replace, "join": _join, "count": len, "safe": _scalar,
            "_each": self.each, "_concat": _join, "_bounded": _bounded,
        }  # fmt: skip
        namespace = self.globals["namespace"]
        self.globals.clear()
        self.globals |= {"namespace": namespace, "range": _range, "raise_exception": _raise, "strftime_now": _today}

    def step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Refused("it takes too many steps")

    def each(self, items: Any) -> Any:
        """The items of a loop, each of which takes a step."""
        return _Counted(items, self.step)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" or (operator in "*%" and not _numbers(left, right)):
            raise Refused("it uses **" if operator == "**" else f"it uses {operator} on texts or lists")
        if operator == "+" and not _numbers(left, right) and len(left) + len(right) > MOST_TEXT:
            raise Refused("a text is too long")
        return _bounded(super().call_binop(context, operator, left, right))

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        allowed = next((names for kind, names in _METHODS.items() if isinstance(obj, kind)), None)
        if callable(value) and allowed is not None and attr not in allowed:
            return False
        return bool(super().is_safe_attribute(obj, attr, value))

    def wrap_str_format(self, value: Any) -> None:
        if getattr(value, "__name__", "") in ("format", "format_map"):
            raise Refused("it formats a text")

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, str) and attribute in ("replace", "join"):
            return partial(_replace if attribute == "replace" else _join_by, obj)
        return super().getattr(obj, attribute)

    def call(self, context: Any, obj: Any, /, *arguments: Any, **named: Any) -> Any:
        self.step()
        return super().call(context, obj, *arguments, **named)


class _Bounds(NodeTransformer):
    """Loops take steps, texts are joined and lists are made under a bound, and nothing else is loaded."""

    def generic_visit(self, node: Any, *arguments: Any, **named: Any) -> Any:
        if isinstance(node, _LOADING):
            raise Refused("it loads another template")
        node = super().generic_visit(node, *arguments, **named)
        if isinstance(node, nodes.For):
            node.iter = _filtered(node.iter, "_each")
        if isinstance(node, nodes.Concat):
            return _filtered(nodes.List(node.nodes, lineno=node.lineno), "_concat")
        made = isinstance(node, nodes.List | nodes.Dict | nodes.Tuple) and getattr(node, "ctx", "load") == "load"
        return _filtered(node, "_bounded") if made else node


def _filtered(node: Any, name: str) -> Any:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


class _Counted(Sequence[Any]):
    """Items whose every visit takes a step; their number is known, because `loop.last` asks for it."""

    def __init__(self, items: Any, step: Callable[[], None]) -> None:
        self._items, self._step = list(items), step

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, n: Any) -> Any:
        return self._items[n]

    def __iter__(self) -> Iterator[Any]:
        for item in self._items:
            self._step()
            yield item


def _numbers(*values: Any) -> bool:
    return all(isinstance(value, int | float) for value in values)


def _bounded(value: Any) -> Any:
    """The same; refused if it, or all that it holds counted as often as it occurs, is too large."""
    if isinstance(value, str) and len(value) > MOST_TEXT:
        raise Refused("a text is too long")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise Refused("a number is too large")
    left, stack = MOST_ITEMS, [value]
    while stack:
        item = stack.pop()
        if isinstance(item, list | tuple | dict):
            inside = list(item.values()) if isinstance(item, dict) else list(item)
            left -= 1 + len(inside)
            if left < 0:
                raise Refused("a list is too large")
            stack += inside
    return value


def _scalar(value: Any) -> Any:
    """What may be written."""
    if isinstance(value, str | int | float | None | jinja2.Undefined):
        return _bounded(value)
    raise Refused(f"it writes a {type(value).__name__} as text")


def _text(value: Any) -> str:
    return str(_scalar(value))


def _join(items: Any, by: str = "") -> str:
    texts = [_text(item) for item in items]
    if sum(map(len, texts)) + len(by) * len(texts) > MOST_TEXT:
        raise Refused("a text is too long")
    return by.join(texts)


def _join_by(by: str, items: Any) -> str:
    return _join(items, by)


def _replace(text: Any, old: str, new: str, count: int | None = None) -> str:
    text = _text(text)
    if len(text) + text.count(old) * len(new) > MOST_TEXT:
        raise Refused("a text is too long")
    return text.replace(old, new, -1 if count is None else count)


def _to_json(value: Any, indent: int | None = None, **how: Any) -> str:
    indent = None if indent is None else min(8, max(0, indent))
    return str(_bounded(json.dumps(_bounded(value), ensure_ascii=False, indent=indent)))


def _range(*bounds: int) -> range:
    found = range(*bounds)
    if len(found) > MOST_ITEMS:
        raise Refused("a range is too large")
    return found


def _raise(message: Any) -> None:
    raise Refused(f"it says: {_text(message)[:200]}")


def _today(form: str) -> str:
    if len(form) > 40 or not re.fullmatch(r"(%[a-zA-Z]|[^%])*", form):
        raise Refused("it asks for a strange date")
    return datetime.now().strftime(form)
