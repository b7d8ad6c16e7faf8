"""Chat templates: how the messages of a chat become the tokens that a model was trained on.

A chat template is a program (Jinja) that came with somebody's weights. It runs in jinja2's sandbox with less than that
allows: no imports, a short list of filters and methods, and bounds on loops, calls, sizes and output. It never sees
what the messages say: contents are replaced by marks, and the tokens of the contents take the place of the marks. So a
message that spells a special token stays text, while those of the template become special tokens.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Protocol

import numpy as np

from seqloom.core.errors import UserError

MOST_SOURCE, MOST_TEXT, MOST_STEPS, MOST_ITEMS = 50_000, 200_000, 20_000, 10_000
_ROLES = ("system", "user", "assistant")
_FILTERS = ("capitalize", "default", "first", "int", "items", "last", "length", "list", "lower", "map", "reject",
            "rejectattr", "select", "selectattr", "title", "trim", "upper")  # fmt: skip
_METHODS = {
    str: {"capitalize", "endswith", "find", "isdigit", "lower", "lstrip", "rstrip", "split", "startswith", "strip",
          "title", "upper"},
    dict: {"get", "items", "keys", "values"},
    list: {"index", "count"},
    tuple: {"index", "count"},
}  # fmt: skip

Messages = Sequence[Mapping[str, str]]


class ChatTokenizer(Protocol):
    template: str
    bos: int
    eos: int
    specials: frozenset[int]

    def name(self, id: int) -> str: ...
    def encode(self, text: str) -> np.ndarray: ...
    def encode_marked(self, text: str) -> np.ndarray: ...


class Refused(Exception):
    """The template does what it must not, or says that these messages are wrong."""


def conversation(tokenizer: Any, messages: Messages, answer: bool = True) -> list[tuple[np.ndarray, int | None]]:
    """Token ids piece by piece: those of the template (None), and those of the content of each message (its number).

    `answer`: the assistant is to speak next.
    """
    template = getattr(tokenizer, "template", "")
    if not template:
        raise UserError("this model has no chat template: it was not made for chats; leave chat out")
    own: ChatTokenizer = tokenizer
    names = {"bos_token": own.name(own.bos), "eos_token": own.name(own.eos)}
    pieces = render(template, messages, names, answer)
    return [(own.encode_marked(text) if n is None else own.encode(text), n) for text, n in pieces]


def chat_ids(tokenizer: Any, messages: Messages) -> list[int]:
    """The whole conversation, up to where the assistant is to speak."""
    return [int(id) for ids, _ in conversation(tokenizer, messages) for id in ids]


def turn_ends(tokenizer: Any) -> set[int]:
    """The tokens that end what the assistant says: the end of a text, and what the template writes after a message."""
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    pieces = conversation(tokenizer, messages, answer=False)
    place = max(n for n, (_, message) in enumerate(pieces) if message == 1)
    after = [int(id) for ids, _ in pieces[place + 1 :] for id in ids][:1]
    return {tokenizer.eos, *(id for id in after if id in tokenizer.specials)}


def render(template: str, messages: Messages, names: Mapping[str, str], answer: bool) -> list[tuple[str, int | None]]:
    """The text of a chat in pieces, with the number of the message whose content a piece is."""
    if strange := [m["role"] for m in messages if m["role"] not in _ROLES]:
        raise UserError(f"role {strange[0]!r}: a message is of one of {', '.join(_ROLES)}")
    marks = [f"\ue000{secrets.token_hex(8)}{n}\ue001" for n in range(len(messages))]
    said = [{"role": m["role"], "content": mark} for m, mark in zip(messages, marks, strict=True)]
    text = _run(template, {"messages": said, "add_generation_prompt": answer, **names})
    found: list[tuple[str, int | None]] = []
    for part in re.split("(" + "|".join(marks) + ")", text) if marks else [text]:
        n = marks.index(part) if part in marks else None
        found += [(part if n is None else messages[n]["content"], n)] if part else []
    if missing := [n for n in range(len(marks)) if all(n != which for _, which in found)]:
        raise UserError(f"the chat template of this model leaves out what the {messages[missing[0]]['role']} says")
    return found


def _run(source: str, values: Mapping[str, Any]) -> str:
    if len(source) > MOST_SOURCE:
        raise UserError(f"the chat template has {len(source):,} characters; at most {MOST_SOURCE:,} are run")
    import jinja2

    try:
        size, parts = 0, []
        for part in _compiled(source).generate(values):
            size += len(part)
            if size > MOST_TEXT:
                raise Refused("it writes too much")
            parts.append(part)
        return "".join(parts)
    except (
        Refused,
        jinja2.TemplateError,
        ArithmeticError,
        TypeError,
        ValueError,
        LookupError,
        AttributeError,
    ) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
    except RecursionError:
        reason = "it is nested too deeply"
    except MemoryError:
        reason = "it needs too much memory"
    raise UserError(f"the chat template of this model is refused: {reason}")


def _compiled(source: str) -> Any:
    from jinja2 import nodes
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from jinja2.visitor import NodeTransformer

    steps = _Steps()

    class Environment(ImmutableSandboxedEnvironment):
        intercepted_binops = frozenset(["+", "-", "*", "/", "//", "%", "**"])

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            if operator == "**" or (operator in "*%" and not _numbers(left, right)):
                raise Refused(f"it uses {operator} on texts or lists" if operator != "**" else "it uses **")
            if operator == "+" and not _numbers(left, right) and len(left) + len(right) > MOST_TEXT:
                raise Refused("a text is too long")
            return _bounded(super().call_binop(context, operator, left, right))

        def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
            allowed = next((names for kind, names in _METHODS.items() if isinstance(obj, kind)), None)
            if callable(value) and allowed is not None and attr not in allowed:
                return False
            return bool(super().is_safe_attribute(obj, attr, value))

        def getattr(self, obj: Any, attribute: str) -> Any:
            if isinstance(obj, str) and attribute in ("replace", "join"):
                return partial(_replace if attribute == "replace" else _join_by, obj)
            return super().getattr(obj, attribute)

        def call(self, context: Any, obj: Any, /, *arguments: Any, **named: Any) -> Any:
            steps.take()
            return super().call(context, obj, *arguments, **named)

    class Bounds(NodeTransformer):
        """Loops take steps, texts are joined and lists are made under a bound, and nothing else is loaded."""

        def generic_visit(self, node: Any, *arguments: Any, **named: Any) -> Any:
            if isinstance(node, nodes.Include | nodes.Import | nodes.FromImport | nodes.Extends):
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

    env = Environment(trim_blocks=True, lstrip_blocks=True, optimized=False, finalize=_scalar, undefined=_undefined(),
                      extensions=["jinja2.ext.loopcontrols"])  # fmt: skip
    env.filters = {name: env.filters[name] for name in _FILTERS} | {
        "tojson": _to_json, "string": _text, "replace": _replace, "join": _join, "count": len, "safe": _scalar,
        "_each": steps.each, "_concat": lambda parts: _join(parts, "", bare=True), "_bounded": _bounded,
    }  # fmt: skip
    own = {"namespace": env.globals["namespace"], "range": _range, "raise_exception": _raise, "strftime_now": _today}
    env.globals.clear()
    env.globals.update(own)
    return env.from_string(Bounds().visit(env.parse(source)))


def _undefined() -> Any:
    from jinja2 import Undefined

    return Undefined


class _Steps:
    """A budget of turns of loops and calls."""

    def __init__(self) -> None:
        self.left = MOST_STEPS

    def take(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Refused("it takes too many steps")

    def each(self, items: Any) -> Any:
        if hasattr(items, "__len__"):
            return _Counted(items, self.take)
        return (self.taken(item) for item in items)

    def taken(self, item: Any) -> Any:
        self.take()
        return item


class _Counted(Sequence[Any]):
    """Items whose every visit takes a step; its length is known, because `loop.last` asks for it."""

    def __init__(self, items: Any, take: Callable[[], None]) -> None:
        self._items, self._take = list(items), take

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, n: Any) -> Any:
        return self._items[n]

    def __iter__(self) -> Iterator[Any]:
        for item in self._items:
            self._take()
            yield item


def _numbers(*values: Any) -> bool:
    return all(isinstance(value, int | float) for value in values)


def _bounded(value: Any) -> Any:
    """The same; refused if it, or all that it holds counted as often as it occurs, is too large."""
    if isinstance(value, str):
        if len(value) > MOST_TEXT:
            raise Refused("a text is too long")
    elif isinstance(value, int):
        if abs(value) >= 2**63:
            raise Refused("a number is too large")
    else:
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
    from jinja2 import Undefined

    if isinstance(value, str | int | float | None | Undefined):
        return _bounded(value) if isinstance(value, str | int) else value
    raise Refused(f"it writes a {type(value).__name__} as text")


def _text(value: Any) -> str:
    return str(_scalar(value))


def _join(items: Any, by: str = "", attribute: None = None, bare: bool = False) -> str:
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
    _bounded(value)
    return str(
        _bounded(json.dumps(value, ensure_ascii=False, indent=None if indent is None else min(8, max(0, indent))))
    )


def _range(*bounds: int) -> range:
    found = range(*bounds)
    if len(found) > MOST_ITEMS:
        raise Refused("a range is too large")
    return found


def _raise(message: Any) -> None:
    raise Refused(f"it says: {message}")


def _today(form: str) -> str:
    if len(form) > 40 or not re.fullmatch(r"(%[a-zA-Z]|[^%])*", form):
        raise Refused("it asks for a strange date")
    return datetime.now().strftime(form)
