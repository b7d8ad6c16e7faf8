"""Find models and tasks by name: the name of the file or folder is the name you type."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from seqloom.core.config import Strict
from seqloom.core.errors import UserError, unknown
from seqloom.core.rows import Json
from seqloom.data.options import DataOptions
from seqloom.data.shapes import find_shape
from seqloom.data.shapes.shape import AnyShape
from seqloom.runs.schema import mistake
from seqloom.runs.settings import RunConfig

if TYPE_CHECKING:
    from seqloom.core.model import ModelConfig
    from seqloom.core.task import TaskConfig


def names(kind: str) -> list[str]:
    """The names of all `models` or `tasks`, without importing them."""
    folder = Path(__file__).parent.parent / kind
    return sorted(m.name for m in iter_modules([str(folder)]) if not m.name.startswith("_"))


def find_config(kind: str, name: object) -> Any:
    """The `Config` class of a model or task."""
    if not isinstance(name, str) or name not in names(kind):
        raise unknown(kind.removesuffix("s"), str(name), names(kind))
    return import_module(f"seqloom.{kind}.{name}").Config


def feature(module: str) -> ModuleType:
    """A part of the product that stands above runs and may be missing, by name: nothing here depends on it."""
    return import_module(f"seqloom.{module}")


def task_config(config: RunConfig) -> TaskConfig:
    found: TaskConfig = section("tasks", config.task)
    return found


def model_config(config: RunConfig) -> ModelConfig:
    found: ModelConfig = section("models", config.model)
    return found


def section(kind: str, options: Mapping[str, object]) -> Any:
    """The validated options of a model or task."""
    options = dict(options)
    name = options.pop("name")
    return _checked(find_config(kind, name), options, f"a run of {name}")


def shape_of(config: RunConfig) -> AnyShape:
    return find_shape(find_config("tasks", config.task["name"]).shape(config.task))


def data_options(config: RunConfig, **changes: str | None) -> DataOptions:
    """The validated data section; `changes`: options to override."""
    options: DataOptions = _checked(shape_of(config).options, _own(shape_of(config).options, config.data), "this run")
    return options.model_copy(update=changes)


def tokenizer_options(config: RunConfig) -> Strict:
    kind = shape_of(config).tokenizer
    found: Strict = _checked(kind, _own(kind, config.tokenizer), "this run")
    return found


def check_options(config: RunConfig, file: Path) -> None:
    """Refuse settings that this version cannot have written; `file`: where they are."""
    try:
        for read in (task_config, model_config, data_options, tokenizer_options):
            read(config)
    except UserError as error:
        raise UserError(f"{file}: {error}") from None


def current(config: RunConfig) -> RunConfig:
    """Settings as this version writes them; older versions recorded the data and tokenizer options of every task, and
    lacked options that have been added since, whose defaults leave a run as it was."""
    shape = shape_of(config)
    kinds = {name: find_config(f"{name}s", getattr(config, name)["name"]) for name in ("task", "model")}
    found = {name: _since(kind) | getattr(config, name) for name, kind in kinds.items()}
    for name, kind in (("data", shape.options), ("tokenizer", shape.tokenizer)):
        found[name] = _since(kind) | _own(kind, getattr(config, name))
    return config.model_copy(update=found)


def _own(kind: type[Strict], options: Json) -> Json:
    return {name: value for name, value in options.items() if name in kind.model_fields}


def _since(kind: type[Strict]) -> Json:
    """The default of every option, as JSON."""
    fields = kind.model_fields.items()
    return {name: field.get_default(call_default_factory=True) for name, field in fields if not field.is_required()}


def _checked(kind: type[Strict], options: Json, what: str) -> Any:
    try:
        return kind.model_validate(options)
    except ValidationError as error:
        wrong = ", ".join(dict.fromkeys(str(each["loc"][0]) for each in error.errors() if each["loc"]))
        raise UserError(
            f"{what} has options unknown to this version: {wrong or mistake(error)}; was run.json edited?"
        ) from None
