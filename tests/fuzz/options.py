"""Every option there is, by looking: those of the commands from their signatures, those after -o from the schemas."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

from hypothesis import strategies as st

from fuzz.case import Wanted
from fuzz.sources import Draw

Given = tuple[list[str], Wanted]  # what to type, and whether it has to be refused

LONG = {
    "steps",
    "tokens",
    "epochs",
    "seconds",
    "minutes",
    "trials",
    "seeds",
    "draws",
    "max_new",
    "accumulate",
    "k",
}  # may be large, and then take long
_SLOW = {"train.compile"}  # a minute or two, as its description says
SIZES = {"width", "depth", "feed", "inputs", "hidden", "decoder_depth", "count"}
NO_NUMBER = ("", "abc", "1+2j", "--", "½", "1,5", "[1", "9" * 5000 + "x")
TEXTS = (
    "",
    " ",
    "\x1b[2J",
    "\udcff",
    "x" * 5000,
    "-",
    "no/../out",
    "a\nb",
    "\u202e",
    "{}",
    "[1",
    "=",
    ",",
    "a=b,c",
    "nan",
    "12",
)
BROKEN = (  # after -o
    *("train.steps", "=", "=5", "steps=5", ".=1", "train.=1", ".steps=2", "nosuch.option=1", "train.nosuch=1"),
    *("task.nosuch=1", "a.b.c=1", "TRAIN.STEPS=1", "tráin.steps=1", "\udcff.x=1"),
    *(f"train.steps={value}" for value in ("{}", "2020-01-01", "9" * 5000, "[[1]]", "[" * 3000, "1 2", '"""')),
)


@dataclass(frozen=True)
class Option:
    """What is known of an option's values."""

    name: str  # as typed: `--seed`, or `train.seed`
    kinds: tuple[Any, ...]  # int, float, bool, str, Path, Literal[...]
    low: float | None = None  # the least value, or what it must be above
    high: float | None = None
    flag: bool = False
    positional: bool = False

    @property
    def short(self) -> str:
        return self.name.rpartition(".")[2].lstrip("-").replace("-", "_")

    @property
    def numeric(self) -> bool:
        return bool({int, float} & set(self.kinds)) and str not in self.kinds and bool not in self.kinds

    @property
    def choices(self) -> list[Any]:
        return [choice for kind in self.kinds if get_origin(kind) is Literal for choice in get_args(kind)]


def of_command(name: str) -> list[Option]:
    function = import_module(f"seqloom.cli.{name}").command
    found = inspect.signature(function, eval_str=True).parameters.values()
    return [_from_parameter(one) for one in found if one.name != "context"]


def _from_parameter(parameter: inspect.Parameter) -> Option:
    annotated, info = (
        get_args(parameter.annotation)[:2] if get_origin(parameter.annotation) is Annotated else (str, None)
    )
    given = (getattr(info, "default", None), *(getattr(info, "param_decls", None) or ()))
    names = [name for name in given if isinstance(name, str) and name.startswith("-")]
    name = names[0].split("/")[0] if names else "--" + parameter.name.replace("_", "-")
    kinds = _kinds(annotated)
    positional = type(info).__name__ == "ArgumentInfo"
    low, high = getattr(info, "min", None), getattr(info, "max", None)
    return Option(name, kinds, low, high, flag=kinds == (bool,), positional=positional)


@cache
def of_settings(task: str, model: str, measured: bool = False) -> list[Option]:
    """All that -o can set for this task and model; of classification, with texts or with measurements."""
    return list(_settings(task, model, measured))


def _settings(task: str, model: str, measured: bool) -> Iterator[Option]:
    from seqloom.data.shapes import find_shape
    from seqloom.runs.registry import find_config
    from seqloom.train.settings import LoraConfig, TrainConfig

    kind = find_config("tasks", task)
    shape = find_shape(kind.shapes[-1 if measured else 0])
    sections = {
        "task": kind,
        "model": find_config("models", model),
        "data": shape.options,
        "tokenizer": shape.tokenizer,
    }
    for section, config in (sections | {"train": TrainConfig, "lora": LoraConfig}).items():
        for name, field in config.model_fields.items():
            if f"{section}.{name}" in _SLOW:
                continue
            bounds = {what: value for one in field.metadata for what, value in vars_of(one).items()}
            low, high = bounds.get("ge", bounds.get("gt")), bounds.get("le", bounds.get("lt"))
            yield Option(f"{section}.{name}", _kinds(field.annotation), low, high)


def vars_of(bound: Any) -> dict[str, Any]:
    return {name: getattr(bound, name) for name in ("ge", "gt", "le", "lt") if hasattr(bound, name)}


def _kinds(annotation: Any) -> tuple[Any, ...]:
    """The alternatives of a type, without None; of a list, what is in it."""
    if get_origin(annotation) in (None, Literal):
        return (annotation,)
    return tuple(kind for part in get_args(annotation) if part not in (NoneType, ...) for kind in _kinds(part))


def extreme(draw: Draw, option: Option) -> Given:
    """A value at or beyond the borders, as words of a command line; `train.x` becomes -o train.x=VALUE."""
    value, wanted = _value(draw, option)
    if option.positional:
        return [value], "either"
    if option.flag and option.name.startswith("-"):
        return [option.name], "either"
    if option.name.startswith("-"):
        return ([f"{option.name}={value}"] if option.name.startswith("--") else [option.name, value]), wanted
    return ["-o", f"{option.name}={value}"], wanted


def _value(draw: Draw, option: Option) -> tuple[str, Wanted]:
    if option.choices:
        good = draw(st.booleans())
        return (
            (str(draw(st.sampled_from(option.choices))), "either")
            if good
            else (draw(st.sampled_from(["", "nosuch", "1e9"])), "fail")
        )
    if option.numeric:
        return _number(draw, option)
    if bool in option.kinds:
        return draw(
            st.sampled_from([("true", "either"), ("false", "either"), ("perhaps", "fail"), ("2", "fail"), ("", "fail")])
        )
    return draw(st.sampled_from(TEXTS)), "either"


def _number(draw: Draw, option: Option) -> tuple[str, Wanted]:
    ways = ["text", "low", "low", "fine", "not finite"] + ["large", "high"] * (option.short not in LONG)
    way = draw(st.sampled_from(ways))
    if way == "text":
        return draw(st.sampled_from(NO_NUMBER)), "fail"
    if way == "not finite":
        return draw(st.sampled_from(["nan", "inf", "-inf", "1e999"])), "fail"
    if way == "low":
        below = (option.low if option.low is not None else 0) - draw(st.sampled_from([1, 1000, 10**12, 10**30]))
        return str(int(below)), "fail" if option.low is not None else "either"
    if way == "high" and option.high is not None:
        return str(int(option.high) + draw(st.sampled_from([1, 10**6]))), "fail"
    if way in ("large", "high"):
        value = draw(st.sampled_from([10**5, 10**9, 2**31, 2**63, 10**18, 10**40]))
        return str(value), "fail" if option.short in SIZES and value >= 10**9 else "either"
    low = option.low or 0
    return draw(st.sampled_from([str(int(low)), str(int(low) + 1), "0.5", "1e-30", "3", "7"])), "either"


def broken(draw: Draw) -> Given:
    """What is no setting at all."""
    return ["-o", draw(st.sampled_from(BROKEN))], "fail"


def strange_words(draw: Draw) -> Given:
    """What no command knows."""
    words = [
        ["--nosuch"],
        ["--nosuch=1"],
        ["-z"],
        ["--out"],
        ["--json=maybe"],
        ["--seed", "1", "--nosuch"],
        ["--\udcff"],
    ]
    return draw(st.sampled_from(words)), "fail"


PATHS = (
    "",
    ".",
    "pipe",
    "/proc/x",
    "plain",
    "plain/x",
    "x" * 300,
    "a\nb",
    "\udcff",
    "~",
    "missing/" * 40,
)  # none outside of the folder
