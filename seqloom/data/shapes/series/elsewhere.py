"""Another file for a run: columns that have other names than in training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from seqloom.core.errors import UserError
from seqloom.core.quoting import some
from seqloom.core.rows import Json
from seqloom.data.role_names import flag
from seqloom.data.shapes.series.cells import is_missing, is_number
from seqloom.data.shapes.series.options import Options
from seqloom.data.shapes.series.reading import SeriesSource
from seqloom.data.shapes.series.roles import find_roles, first_cells
from seqloom.data.shapes.series.scale import SeriesScale
from seqloom.data.shapes.series.table import BY_LINE, listed

ROLES = ("targets", "past", "known")
_UNKNOWN = {"targets": None, "past": "", "known": ""}  # they may have other names here


def columns_elsewhere(spec: str, trained: Options, given: Mapping[str, object], scale: SeriesScale) -> Json:
    """Options for a file that has not all columns of training: time and series are found as in a new file, and another
    column of numbers takes the place of the only target. Raises a question where that does not settle it."""
    if trained.layout == "wide":
        return {}
    cells = first_cells(spec)
    names = {"time": trained.time, "series": trained.series}
    found: dict[str, object] = {o: None for o, name in names.items() if o not in given and _is_lost(name, cells)}
    choices = find_roles(spec, trained.model_copy(update=_UNKNOWN | found | dict(given)))
    if any(choice.path == "data.layout" for choice in choices):
        return {}
    found |= {c.path.removeprefix("data."): c.value for c in choices if c.path.removeprefix("data.") in found}
    taken = [str(name) for name in (names | found | dict(given)).values() if name]
    return found | _targets(spec, cells, {part for name in taken for part in (name, *listed(name))}, given, scale)


def _targets(spec: str, cells: Json, taken: set[str], given: Mapping[str, object], scale: SeriesScale) -> Json:
    """Another target, if one is not there and only one column could be it."""
    was = {role: _plain(scale, role) for role in ROLES}
    gone = {role: lost for role in ROLES if role not in given and (lost := [n for n in was[role] if n not in cells])}
    if not gone:
        return {}
    role, lost = next(iter(gone.items()))
    free = [name for name in cells if name and name not in taken | {name for own in was.values() for name in own}]
    numbers = [name for name in free if _is_numeric(cells[name])]
    now = ",".join(name if name in cells else (numbers or ["NAME"])[0] for name in was[role])
    if (len(gone), len(lost), len(numbers), role) != (1, 1, 1, "targets"):
        raise UserError(
            f"{spec}: no column {lost[0]!r}, one of the {role} in training ({', '.join(was[role])}); say which, in "
            f"this order: {flag(role, now)}; columns: {some(cells)}"
        )
    return {"targets": now}


def renamed(source: SeriesSource, scale: SeriesScale) -> SeriesSource:
    """The columns of each role under their names in training, in order, where the file has other names."""
    names: dict[str, str] = {}
    for role in ROLES:
        was, now = _plain(scale, role), list(getattr(source, role))
        if all(name in source.columns for name in was) or source.levels:
            continue
        if len(was) != len(now) or (role == "targets" and not source.named):
            raise UserError(
                f"{source.name}: no column {next(n for n in was if n not in source.columns)!r}; the {role} in training "
                f"were {', '.join(was)}; give as many, in this order: {flag(role, ','.join(['NAME'] * len(was)))}; "
                f"available: {some(source.columns)}"
            )
        names |= dict(zip(now, was, strict=True))
    if not names:
        return source

    def new(columns: Sequence[str]) -> list[str]:
        return [names.get(name, name) for name in columns]

    texts = dict(zip(new(list(source.texts)), source.texts.values(), strict=True))
    roles = {"targets": new(source.targets), "past": new(source.past), "known": new(source.known)}
    return replace(source, columns=new(source.columns), texts=texts, **roles)  # type: ignore[arg-type]


def _plain(scale: SeriesScale, role: str) -> list[str]:
    """The columns of a role as they stood in the training file: a column of texts has since become several."""
    found = []
    for name in scale.columns[role]:
        texts = next((c for c, levels in scale.levels.items() if name in [f"{c}={level}" for level in levels]), None)
        found.append(texts or name)
    return list(dict.fromkeys(found))


def _is_lost(name: str | None, cells: Json) -> bool:
    return bool(name) and name != BY_LINE and name not in cells and not set(listed(name)) <= set(cells)


def _is_numeric(cells: Sequence[object]) -> bool:
    value = next((cell for cell in cells if not is_missing(cell)), None)
    return value is not None and is_number(value)
