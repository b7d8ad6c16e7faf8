"""Which array of an NPZ file holds the measurements and which the labels; in a table, which column names the sequence.

label   few values that recur, one per sequence; a usual name (label, y, class, ...) decides between several
row     lines of one sequence follow each other, so each value of its column comes in one run
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from pathlib import Path

from seqloom.core.choice import Choice
from seqloom.core.errors import UserError
from seqloom.core.quoting import quoted
from seqloom.data.files import suffix
from seqloom.data.peek import Peek, lacking
from seqloom.data.role_names import names_a_label
from seqloom.data.roles import Column, Table, ask, chosen, look, missing
from seqloom.data.shapes.frames.arrays import declared_arrays, read_arrays
from seqloom.data.shapes.frames.npz import FRAMES, LENGTHS, OFFSETS, as_list

MOST = 5000  # labels looked at
DEFAULTS = {"label": "label", "row": "id"}


def frame_roles(spec: str, given: Mapping[str, object], predict: bool = False) -> list[Choice]:
    """Choices for what was not given; none where the default names are there. Raises a question if it is unclear.

    `predict`: a label is not needed.
    """
    if spec.startswith("sample:"):
        return []
    return _in_arrays(Path(spec), given, predict) if suffix(Path(spec)) == ".npz" else _in_table(spec, given, predict)


def lacks_frames(spec: str, names: Mapping[str, object]) -> set[str]:
    """The options that name arrays or columns which are not there; measurements may also be called `frames`."""
    if suffix(Path(spec)) != ".npz":
        return lacking(spec, {option: name for option, name in names.items() if option != "column"})
    there = _shapes(Path(spec)) if not spec.startswith("sample:") else {}
    gone = {option for option in ("column", "label") if option in names and names[option] not in there}
    return (gone - {"column"} if FRAMES in there else gone) if there else set()


def _in_arrays(path: Path, given: Mapping[str, object], predict: bool) -> list[Choice]:
    shapes, found = _shapes(path), []
    if not shapes:
        return []
    frames = str(given.get("column") or (FRAMES if FRAMES in shapes else "text"))
    if frames not in shapes:
        dimensions = 2 if OFFSETS in shapes else 3
        deep = [name for name, shape in shapes.items() if len(shape) == dimensions]
        if len(deep) != 1:
            return []
        frames = deep[0]
        found.append(Choice("data.column", frames, f"the only array of {dimensions} dimensions"))
    if predict or given.get("label") is not None or "label" in shapes:
        return found
    first = shapes[OFFSETS] if OFFSETS in shapes else shapes[frames]
    rows = first[0] - (OFFSETS in shapes) if first else 0
    if not rows:
        raise UserError(f"{path}: contains no sequences")
    others = {name: shape for name, shape in shapes.items() if len(shape) == 1 and name not in (OFFSETS, LENGTHS)}
    columns = [name for name, shape in others.items() if shape == (rows,)]
    if others and not columns:
        name, (length,) = next(iter(others.items()))
        raise UserError(
            f"{path}: {rows:,} sequences in {quoted(frames)}, but {length:,} values in {quoted(name)}; "
            "give an array with one label for each sequence"
        )
    label = _label(_as_table(path, columns))
    return [*found, Choice("data.label", label.name, f"{label.size} that recur")]


def _shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of the arrays, without reading them; none if the file cannot be read, which opening it reports."""
    try:
        return {name: array.shape for name, array in declared_arrays(path).items()}
    except UserError:
        return {}


def _as_table(path: Path, names: list[str]) -> Table:
    arrays = read_arrays(path, names)
    steps = [as_list(path, name, array[:: max(1, len(array) // MOST)]) for name, array in arrays.items()]
    return Table(Peek(str(path), True, names, list(map(list, zip(*steps, strict=True)))), {}, far=True)


def _label(table: Table) -> Column:
    candidates = [column for column in table.columns if column.label]
    best = [column for column in candidates if names_a_label(column.name)] or candidates
    if not best:
        raise missing(table, "label", "a label (few values that recur)")
    if len(best) > 1:
        raise ask(table, "label", "the label", best)
    return best[0]


def _in_table(spec: str, given: Mapping[str, object], predict: bool) -> list[Choice]:
    table = look(spec, given, tuple(DEFAULTS))
    if table is None or not table.header:
        return []
    found: dict[str, tuple[Column, str]] = {}
    row = table.given.get("row", DEFAULTS["row"])
    if row not in table.names:
        if "row" in table.given:
            return []
        inruns = [column for column in table.free() if not _is_measured(column) and _in_runs(column)]
        if not inruns:
            raise missing(table, "row", "a name of the sequence (one run of lines each)")
        finest = max(inruns, key=lambda column: column.distinct)
        found["row"] = finest, f"{finest.distinct:,} runs of lines"
        row = finest.name
    if not predict and "label" not in table.given and not table.has("label"):
        sequences = next(column for column in table.columns if column.name == row)
        steady = [c for c in table.free(row) if not _is_measured(c) and _is_constant_in(c, sequences)]
        first = [n for n, cell in enumerate(sequences.cells) if n == 0 or cell != sequences.cells[n - 1]]
        one_each = [Column(column.name, [column.cells[n] for n in first]) for column in steady]
        peeked = Peek(
            spec, True, [c.name for c in one_each], [[c.cells[n] for c in one_each] for n in range(len(first))]
        )
        label = _label(Table(peeked, {}, far=True)) if one_each else None
        if label is None:
            raise missing(table, "label", "a label (one value per sequence)")
        found["label"] = label, f"{label.size} that recur"
    return chosen(table, DEFAULTS, found)


def _is_measured(column: Column) -> bool:
    """Numbers with fractions."""
    return column.number and any("." in value for value in column.values)


def _in_runs(column: Column) -> bool:
    runs = sum(1 for _ in groupby(column.cells))
    return 1 < runs == len(set(map(str, column.cells))) < len(column.cells)


def _is_constant_in(column: Column, sequences: Column) -> bool:
    together = set(zip(map(str, sequences.cells), map(str, column.cells), strict=True))
    return len(together) == len({name for name, _ in together})
