"""Which columns hold the text, a second text and the label.

label   few short values that recur; a usual name (label, class, sentiment, 标签, ...) decides between several
text    mostly distinct texts of several words; a usual name (text, review, comment, 内容, ...) decides
second  two columns named as a pair (premise and hypothesis, title and description, ...), or exactly two texts in a
        file without a header
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seqloom.core.choice import Choice
from seqloom.data.role_names import TWO_TEXTS, names_a_label
from seqloom.data.roles import SEPARATORS, Column, Table, ask, chosen, look, missing, texts_of, the_text

ROLES = ("column", "label", "second")
DEFAULTS = {"column": "text", "label": "label"}

Found = dict[str, tuple[Column, str]]


def labelled_roles(spec: str, given: Mapping[str, object], predict: bool = False) -> list[Choice]:
    """Choices for what was not given; none where the default names are there. Raises a question if it is unclear.

    `predict`: a label is not needed.
    """
    table = look(spec, given, ROLES)
    if table is None:
        return []
    found: Found = {}
    if "column" not in table.given and not (table.has("text") and "text" not in table.given.values()):
        found |= _texts(table)
    if not predict and "label" not in table.given and not table.has("label"):
        label = _label(table, [column.name for column, _ in found.values()])
        found["label"] = label, _reason(label)
    return [*chosen(table, DEFAULTS, found), *_separator(table, given, found)]


def _texts(table: Table) -> Found:
    free = [c for c in table.free("label" if table.has("label") else None) if not _is_label(c)]
    if "second" not in table.given:
        for first, second in TWO_TEXTS if table.header else ():
            one, other = (table.find(names, [c for c in free if c.wordy and c.filled]) for names in (first, second))
            if one and other:
                reason = "the two are named as a pair of texts"
                return {"column": (one, reason), "second": (other, reason)}
        texts = texts_of(free)
        if not table.header and len(texts) == 2 and all(column.running for column in texts):
            reason = "two columns of texts, both are read"
            return {"column": (texts[0], reason), "second": (texts[1], reason)}
    return {"column": the_text(table, free or table.free())}


def _is_label(column: Column) -> bool:
    return column.named and names_a_label(column.name) and column.label


def _label(table: Table, taken: Sequence[str]) -> Column:
    text = "text" if table.has("text") and "column" not in table.given and "column" not in taken else None
    free = table.free(*taken, text)
    candidates = [column for column in free if column.label]
    named = [column for column in candidates if table.header and names_a_label(column.name)]
    best = named or candidates
    if not best:
        raise missing(table, "label", "a label (few values that recur)")
    same = best if all(_same(best[0], column) for column in best[1:]) else []
    if same:
        return next((column for column in same if not column.number), same[0])
    whole, names = table.further(), {column.name for column in best}  # for the numbers of values in the question
    raise ask(whole, "label", "the label", [column for column in whole.columns if column.name in names])


def _same(one: Column, other: Column) -> bool:
    """Whether each value of one goes with exactly one of the other: the same labels, once as numbers, say."""
    pairs = set(zip(map(str, one.cells), map(str, other.cells), strict=True))
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def _reason(label: Column) -> str:
    mark = label.parts
    if mark is not None and mark in SEPARATORS and not label.lists:
        example = next(value for value in label.values if mark in value)
        return f"{label.size}; if cells such as {example} hold several labels: -o data.separator='{mark}'"
    return f"{label.size} that recur"


def _separator(table: Table, given: Mapping[str, object], found: Found) -> list[Choice]:
    """Lists of labels (JSONL) need a separator: one that is part of no label."""
    name = found["label"][0].name if "label" in found else str(table.given.get("label", "label"))
    column = next((column for column in table.columns if column.name == name), None)
    if given.get("separator") is not None or column is None or not column.lists:
        return []
    mark = next((mark for mark in SEPARATORS if not any(mark in value for value in column.values)), "\t")
    return [Choice("data.separator", mark, "the labels of a row are a list")]
