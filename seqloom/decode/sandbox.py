"""A renderer for templates of strangers: jinja2's sandbox, with bounds on steps, sizes and everything written.

The sandbox keeps a template away from Python's internals, but does not stop it from using up all time and memory. So
turns of loops, calls, filters, tests, comparisons and lookups take steps of one budget, more of them where values are
large; what is written anywhere takes from another; texts, lists and numbers have a largest size; and filters, tests and
methods are those of a short list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial, wraps
from itertools import islice
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.runtime import EvalContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

MOST_SOURCE, MOST_TEXT, MOST_ITEMS = 50_000, 200_000, 10_000  # characters, characters, items
MOST_STEPS, MOST_WRITTEN = 500_000, 1_000_000  # steps, characters of output, blocks and macros together
_CHARACTERS, _ITEMS, _NODES = 100, 10, 20  # that one step pays for
_LOOKING = ("default", "first", "last", "length")  # filters that take the same time whatever the size
_WALKING = ("items", "list", "map", "reject", "rejectattr", "select", "selectattr")  # ... look at each item
_WRITING = ("capitalize", "lower", "title", "trim", "upper")  # ... make a text of a text
_COMPARING = ("!=", "<", "<=", "==", ">", ">=", "eq", "equalto", "ge", "greaterthan", "gt", "in", "le", "lessthan",
              "lt", "ne")  # fmt: skip
_DIVIDING = ("divisibleby", "even", "odd")
_TESTS = ("boolean", "callable", "defined", "false", "float", "integer", "iterable", "mapping", "none", "number",
          "sameas", "sequence", "string", "true", "undefined")  # fmt: skip
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
    try:
        env = Environment()
        text = "".join(env.from_string(_Bounds().visit(env.parse(source))).generate(values))
    except Refused:
        raise
    except RecursionError:
        raise Refused("it is nested too deeply") from None
    except MemoryError:
        raise Refused("it needs too much memory") from None
    except Exception as error:  # of jinja2, of what the template does, or of Python compiling it
        raise Refused(" ".join(str(error).split())[:200] or type(error).__name__) from None
    if len(text) > MOST_TEXT:
        raise Refused("it writes too much")
    return text


class Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset(["+", "-", "*", "/", "//", "%", "**"])

    def __init__(self) -> None:
        more = ["jinja2.ext.loopcontrols"]
        super().__init__(trim_blocks=True, lstrip_blocks=True, optimized=False, finalize=self.write, extensions=more)
        self.left, self.unwritten = MOST_STEPS, MOST_WRITTEN
        known: Mapping[str, Any] = self.filters
        tests: Mapping[str, Any] = self.tests
        namespace = self.globals["namespace"]
        own: dict[str, Callable[..., Any]] = {
            "tojson": _to_json, "string": _text, "replace": _replace, "join": _join, "safe": _scalar, "_concat": _join,
            "int": known["int"], **{name: _of_text(known[name]) for name in _WRITING},
        }  # fmt: skip
        looking: dict[str, Any] = {name: known[name] for name in _LOOKING} | {"count": len}
        self.filters = (
            {name: self._paid(done, self.pay) for name, done in own.items()}
            | {name: self._paid(known[name], self._pay_items) for name in _WALKING}
            | {name: self._paid(done, self._pay_nothing) for name, done in looking.items()}
            | {"_each": self.each, "_step": self.step, "_bounded": self.pay, "_sliced": self._made}
        )
        compared: dict[str, Any] = {name: self._paid(tests[name], self.pay) for name in _COMPARING}
        looking = {name: tests[name] for name in _TESTS} | {name: _of_number(tests[name]) for name in _DIVIDING}
        self.tests = compared | {name: self._paid(done, self._pay_nothing) for name, done in looking.items()}
        self.globals.clear()
        self.globals |= {"namespace": namespace, "range": _range, "raise_exception": _raise, "strftime_now": _today}

    def step(self, count: int = 1) -> None:
        self.left -= count
        if self.left < 0:
            raise Refused("it takes too many steps")

    def pay(self, value: Any) -> Any:
        """The same, for steps by all that it holds; refused if it is too large."""
        self.step(1 + _weight(value) // _CHARACTERS)
        return value

    def _pay_items(self, value: Any) -> None:
        self.step(len(value) // _ITEMS if hasattr(type(value), "__len__") else 0)

    def _pay_nothing(self, value: Any) -> None: ...

    def _paid(self, done: Callable[..., Any], pay: Callable[[Any], Any]) -> Callable[..., Any]:
        """A filter or test that takes steps for what it is given and for what it makes."""

        @wraps(done)  # with the mark of jinja2 for functions that get the environment as well
        def paid(*arguments: Any, **named: Any) -> Any:
            self.step()
            for value in (*arguments, *named.values()):
                pay(value)
            return self._made(done(*arguments, **named))

        return paid

    def _made(self, value: Any) -> Any:
        if isinstance(value, Iterator):  # lazy: made here, under a bound, and still an iterator
            items = list(islice(value, MOST_ITEMS + 1))
            self._pay_items(items)
            if len(items) > MOST_ITEMS:
                raise Refused("a list is too large")
            return iter(items)
        if isinstance(value, str | int):
            return self.pay(value)
        if isinstance(value, list | tuple | dict) and len(value) > MOST_ITEMS:
            raise Refused("a list is too large")
        self._pay_items(value)
        return value

    @jinja2.pass_eval_context  # with it jinja2 cannot write constants ahead, uncounted
    def write(self, context: EvalContext, value: Any) -> str:
        """What becomes of a value that is written, be it to the output, a block, or the result of a macro."""
        text = _text(value)
        self.step(1 + len(text) // _CHARACTERS)
        self.unwritten -= len(text)
        if self.unwritten < 0:
            raise Refused("it writes too much")
        return text

    def each(self, items: Any, cost: int) -> Any:
        """The items of a loop, each of which takes steps."""
        self._pay_items(items)
        return _Counted(items, partial(self.step, cost))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        self.step()
        if operator == "**" or (operator in "*%" and not _numbers(left, right)):
            raise Refused("it uses **" if operator == "**" else f"it uses {operator} on texts or lists")
        if operator == "+" and not _numbers(left, right) and len(left) + len(right) > MOST_TEXT:
            raise Refused("a text is too long")
        return self.pay(super().call_binop(context, operator, left, right))

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        allowed = next((names for kind, names in _METHODS.items() if isinstance(obj, kind)), None)
        if callable(value) and allowed is not None and attr not in allowed:
            return False
        return bool(super().is_safe_attribute(obj, attr, value))

    def wrap_str_format(self, value: Any) -> None:
        if getattr(value, "__name__", "") in ("format", "format_map"):
            raise Refused("it formats a text")

    def getattr(self, obj: Any, attribute: str) -> Any:
        self.step()
        if isinstance(obj, str) and attribute in ("replace", "join"):
            return partial(_replace if attribute == "replace" else _join_by, obj)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        self.step()
        return super().getitem(obj, argument)

    def call(self, context: Any, obj: Any, /, *arguments: Any, **named: Any) -> Any:
        self.step()
        owner = getattr(obj, "__self__", None)
        if isinstance(obj, Macro):  # pays for what it does
            return super().call(context, obj, *arguments, **named)
        if not isinstance(owner, dict):  # which is looked into, not searched
            self.pay([owner, *arguments, *(obj.args if isinstance(obj, partial) else ())])
        return self._made(super().call(context, obj, *arguments, **named))


class _Bounds(NodeTransformer):
    """Loops and blocks take steps by their size, values are made, compared and written under a bound, and nothing else
    is loaded."""

    def generic_visit(self, node: Any, *arguments: Any, **named: Any) -> Any:
        if isinstance(node, _LOADING):
            raise Refused("it loads another template")
        if isinstance(node, nodes.For) and node.recursive:
            raise Refused("it has a recursive loop")
        repeated = isinstance(node, nodes.For | nodes.Macro | nodes.CallBlock | nodes.Block)
        cost = 1 + sum(1 for _ in node.find_all(nodes.Node)) // _NODES if repeated else 0
        node = super().generic_visit(node, *arguments, **named)
        if isinstance(node, nodes.For):
            node.iter = _filtered(node.iter, "_each", cost)
        elif repeated:
            step = _filtered(nodes.Const(cost, lineno=node.lineno), "_step")
            node.body.insert(0, nodes.ExprStmt(step, lineno=node.lineno))
        if isinstance(node, nodes.TemplateData):
            return nodes.Const(node.data, lineno=node.lineno)  # written like any value, hence counted
        if isinstance(node, nodes.Concat):
            return _filtered(nodes.List(node.nodes, lineno=node.lineno), "_concat")
        if isinstance(node, nodes.Compare):
            node.expr = _filtered(node.expr, "_bounded")
            for operand in node.ops:
                operand.expr = _filtered(operand.expr, "_bounded")
        if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Slice):
            return _filtered(node, "_sliced")
        made = isinstance(node, nodes.List | nodes.Dict | nodes.Tuple) and getattr(node, "ctx", "load") == "load"
        return _filtered(node, "_bounded") if made else node


def _filtered(node: Any, name: str, *given: int) -> Any:
    more = [nodes.Const(value, lineno=node.lineno) for value in given]
    return nodes.Filter(node, name, more, [], None, None, lineno=node.lineno)


class _Counted(Sequence[Any]):
    """Items whose every visit takes steps; their number is known, because `loop.last` asks for it."""

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


def _weight(value: Any) -> int:
    """Its characters and items, those inside counted as often as they occur; refused if it is too large."""
    weight, left, stack = 0, MOST_ITEMS, [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            weight += len(item)
        elif isinstance(item, int) and abs(item) >= 2**63:
            raise Refused("a number is too large")
        elif isinstance(item, list | tuple | dict):
            left -= 1 + len(item)
            if left < 0:
                raise Refused("a list is too large")
            stack += [*item, *item.values()] if isinstance(item, dict) else item
    if isinstance(value, str) and weight > MOST_TEXT:
        raise Refused("a text is too long")
    return weight + (MOST_ITEMS - left) * _CHARACTERS // _ITEMS


def _scalar(value: Any) -> Any:
    """What may be written."""
    if isinstance(value, str | int | float | None | jinja2.Undefined):
        _weight(value)
        return value
    raise Refused(f"it writes a {type(value).__name__} as text")


def _text(value: Any) -> str:
    return str(_scalar(value))


def _of_text(done: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that refuses what jinja2 would turn into text first, such as a list."""
    return lambda value, *arguments, **named: done(_scalar(value), *arguments, **named)


def _of_number(done: Callable[..., Any]) -> Callable[..., Any]:
    """A test that divides; of a text, % would be formatting."""

    def divides(*values: Any) -> Any:
        if not _numbers(*values):
            raise Refused("it divides what is not a number")
        return done(*values)

    return divides


def _join(items: Any, by: str = "") -> str:
    texts = items if isinstance(items, str) else [_text(item) for item in items]
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
    return json.dumps(value, ensure_ascii=False, indent=indent)


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
