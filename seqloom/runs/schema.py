"""What the JSON files of a run folder hold, and the seal that shows whether they still hold it.

run.json and summary.json each have a seal: the SHA-256 of the rest of the file, and which run it belongs to; that of
summary.json also says which model and which log the results are of. Files without a seal, of earlier versions, are
checked for what must be there. Nothing here imports torch.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Annotated, Any, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from seqloom.core.rows import Json

K = TypeVar("K", bound=BaseModel)

SEAL = "seal"
_DEEPEST = 64  # objects and lists within each other

Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Facts(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)


class Seal(_Facts):
    content: str  # SHA-256 of the rest of the file
    run: str | None = None  # identity of the run
    model: str | None = None  # SHA-256 of the manifest of model/
    metrics: str | None = None  # SHA-256 of metrics.jsonl


class _Part(_Facts):
    name: str
    bytes: Count
    hash: str
    file: str | None = None


class _Tokenizer(_Facts):
    kind: str
    size: Count
    hash: str


class _Base(_Facts):
    folder: str | None
    sha256: str


class _Choice(_Facts):
    path: str
    reason: str


class _Record(_Facts):
    config: Json = {}
    given: Json = {}
    settled: Json = {}
    chosen: list[_Choice] = []
    command: str = ""
    versions: dict[str, str] = {}
    device: str = ""
    processes: Count = 1
    parameters: Count = 0
    metric: str = ""
    data: dict[str, _Part] = {}
    tokenizer: _Tokenizer | None = None
    base: _Base | None = None
    merged: Json = {}
    converted: str = ""
    bare: bool = False


class _Summary(_Facts):
    parameters: Count = 0
    trained_parameters: Count = 0
    stored: Count = 0
    bytes: Count = 0
    borrowed_bytes: Count = 0
    seconds: Seconds = 0.0
    wall_seconds: Seconds = 0.0
    steps: Count = 0
    tokens: Count = 0
    best_step: Count | None = None
    scores: dict[str, Json] = {}


class Progress(_Facts):
    """progress.json of a checkpoint."""

    step: Count
    tokens: Count
    seconds: Seconds
    best: Annotated[float, Field(allow_inf_nan=False)] | None
    best_step: Count | None
    stale: Count
    world: Annotated[int, Field(ge=1)]
    run: str | None = None


_KINDS: dict[str, tuple[type[BaseModel], tuple[str, ...]]] = {  # and what every version wrote
    "run.json": (_Record, ("config", "versions", "data", "tokenizer")),
    "summary.json": (_Summary, ("parameters", "seconds", "steps", "tokens", "scores")),
}


def parse(data: bytes) -> Json:
    """A JSON object; ValueError says what else it is."""
    try:
        value = json.loads(data, parse_float=_finite, parse_constant=_not_finite)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError as error:
        known = str(error) if str(error).startswith("a number") else "not valid JSON"
        raise ValueError(known) from None
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    if _depth(value) > _DEEPEST:
        raise ValueError("nested too deeply")
    return value


def opened(name: str, data: bytes) -> tuple[Json, Seal | None]:
    """The content of a file of this name, and its seal; ValueError says what is wrong with it."""
    value = parse(data)
    given = value.pop(SEAL, None)
    seal = None if given is None else _checked(Seal, given)
    if seal and seal.content != digest(value):
        raise ValueError("changed after it was written")
    kind, needed = _KINDS[name]
    if seal is None and (missing := [key for key in needed if key not in value]):
        raise ValueError(f"{missing[0]} is missing")
    _checked(kind, value)
    return value, seal


def sealed(value: Mapping[str, Any], **belongs: str | None) -> Json:
    """`value` as JSON will give it back, with a seal."""
    return {**value, SEAL: {"content": digest(value), **belongs}}


def digest(value: Mapping[str, Any]) -> str:
    """SHA-256 of a JSON object, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def check_progress(data: bytes) -> Json:
    value = parse(data)
    _checked(Progress, value)
    return value


def _checked(kind: type[K], value: object) -> K:
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise ValueError(mistake(error)) from None


def mistake(error: Exception) -> str:
    """The first one, with its place: `train.steps: input should be a valid integer`."""
    if not isinstance(error, ValidationError):
        return f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
    first = error.errors()[0]
    place, message = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
    if first["type"] in ("model_type", "dict_type"):
        message = "must be an object: {...}"
    return f"{place + ': ' if place else ''}{message[0].lower()}{message[1:]}"


def _finite(text: str) -> float:
    return number if math.isfinite(number := float(text)) else _not_finite(text)


def _not_finite(text: str) -> NoReturn:
    raise ValueError(f"a number that is not finite, {text[:20]}")


def _depth(value: object) -> int:
    """Of objects and lists within each other."""
    level, depth = [value], 0
    while level := [part for part in level if isinstance(part, dict | list)]:
        depth += 1
        level = [inner for part in level for inner in (part.values() if isinstance(part, dict) else part)]
    return depth
