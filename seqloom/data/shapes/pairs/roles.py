"""Which columns hold the source and the target.

Names decide where they are usual ones: source and target, question and answer, document and summary, 原文 and 译文;
two languages, two other columns, and the columns of a file without a header are taken in their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seqloom.core.choice import Choice
from seqloom.core.errors import UserError
from seqloom.data.role_names import SOURCE_TARGET, language_of
from seqloom.data.roles import Column, Table, ask, chosen, look, missing

DEFAULTS = {"source": "source", "target": "target"}
ORDER = "in file order"

Found = dict[str, tuple[Column, str]]


def pair_roles(spec: str, given: Mapping[str, object], predict: bool = False) -> list[Choice]:
    """Choices for what was not given; none where the default names are there. Raises a question if it is unclear.

    `predict`: a target is not needed.
    """
    table = look(spec, given, tuple(DEFAULTS))
    if table is None or table.has(*(table.given.get(role, name) for role, name in DEFAULTS.items())):
        return []
    if len(table.given) == len(DEFAULTS) or (predict and ("source" in table.given or table.has("source"))):
        return []
    if predict:
        return chosen(table, DEFAULTS, _source(table))
    return chosen(table, DEFAULTS, _one(table) if table.given else _both(table))


def _both(table: Table) -> Found:
    columns = _candidates(table)
    if table.header:
        for sources, targets in SOURCE_TARGET:
            source, target = table.find(sources, columns), table.find(targets, columns)
            if source and target:
                return {"source": (source, "named like a source"), "target": (target, "named like a target")}
        languages = [column for column in columns if language_of(column.name)]
        if len(languages) == 2:
            return _in_order(languages, f"two languages, {ORDER}")
    if len(columns) < 2:
        raise missing(table, "source", "a source, and one like its target")
    if len(columns) > 2 and table.header:
        raise ask(table, "source", "the source or the target", columns)
    return _in_order(columns[:2], f"the {'only' if len(columns) == 2 else 'first'} two texts, {ORDER}")


def _source(table: Table) -> Found:
    """The source alone: of a pair that is found, or the only column that could be one."""
    columns = _candidates(table, alone=True)
    if len(columns) == 1:
        return {"source": (columns[0], "the only readable column")}
    try:
        return {"source": (_one(table) if table.given else _both(table))["source"]}
    except UserError:
        if not columns:
            raise missing(table, "source", "a source") from None
        raise ask(table, "source", "the source", columns) from None


def _in_order(columns: Sequence[Column], reason: str) -> Found:
    return {"source": (columns[0], reason), "target": (columns[1], reason)}


def _one(table: Table) -> Found:
    """The other side, if the user gave one."""
    ((role, name),) = table.given.items()
    other = next(side for side in DEFAULTS if side != role)
    columns = _candidates(table)
    for pair in SOURCE_TARGET:
        here, there = pair if role == "source" else reversed(pair)
        if table.header and name.casefold() in here and (found := table.find(there, columns)):
            return {other: (found, f"named like the {other} of {name}")}
    if table.header and (found := table.find({other}, columns)):
        return {other: (found, f"named {other}")}
    if not columns:
        raise missing(table, other, f"a {other}")
    if len(columns) > 1 and table.header:
        raise ask(table, other, f"the {other}", columns)
    return {other: (columns[0], f"the {'only' if len(columns) == 1 else 'first'} other text")}


def _candidates(table: Table, alone: bool = False) -> list[Column]:
    """Columns that could be one side: all that vary, if the file has just two; otherwise those that can be read, and
    rather texts than values that recur. `alone`: no target is needed."""
    free = [column for column in table.free() if column.filled and (alone or column.distinct > 1)]
    wanted = 1 if alone else 2 - len(table.given)
    if len(table.columns) == 2 and len(free) == wanted:
        return free
    readable = [column for column in free if column.wordy]
    texts = [column for column in readable if not column.label or len(column.values) < 3]
    return texts if len(texts) >= wanted else readable
