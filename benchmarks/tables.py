"""Text tables of the results of every_model.py, made from its JSON: one row per model, one column per point."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

SLOWER = 0.9  # ratio now / before below which a result is marked as worse
COMPARED = (  # title, kind of point, JSON key, and whether higher is better (1) or worse (-1)
    ("training: tokens/s", "train", "tokens_per_second", 1),
    ("decoding: tokens/s", "decode", "tokens_per_second", 1),
    ("training: peak memory", "train", "peak_bytes", -1),
)

Shape = tuple[int, int]  # rows, length
Cell = Callable[[str, Shape], str]
Columns = dict[str, Callable[[str], str]]  # additional columns by heading


class Kind:
    """The results of one kind of point, training or decoding, in the order of the columns."""

    def __init__(self, report: dict[str, Any], kind: str) -> None:
        self.points = {(p["rows"], p["length"]): p for p in report["points"] if p["kind"] == kind}
        size = report["size"]
        self.rows: list[Shape] = [tuple(shape) for shape in size[f"{kind}_rows"]]
        self.lengths: list[Shape] = [tuple(shape) for shape in size[f"{kind}_lengths"]]
        self.models = [name for name in report["models"] if any(name in p["figures"] for p in self.points.values())]

    @property
    def shapes(self) -> list[Shape]:
        return list(dict.fromkeys(self.rows + self.lengths))

    def figure(self, name: str, shape: Shape, key: str = "tokens_per_second") -> float | None:
        return self.points.get(shape, {"figures": {}})["figures"].get(name, {}).get(key)

    def limit(self, shape: Shape) -> float | None:
        return self.points.get(shape, {}).get("limit")

    def range_of_limits(self) -> str:
        limits = sorted(point["limit"] / 1e9 for point in self.points.values())
        unit = next(iter(self.points.values()))["unit"]
        return f"{limits[0]:,.0f} to {limits[-1]:,.0f} {unit}"

    def gain(self, name: str, shapes: list[Shape]) -> str:
        """Speedup from the first of these shapes to the last."""
        return _format_ratio(_divide(self.figure(name, shapes[-1]), self.figure(name, shapes[0])))


def table(report: dict[str, Any]) -> str:
    train, decode = Kind(report, "train"), Kind(report, "decode")
    blocks = [_machine(report)]
    for title, kind in (("training", train), ("decoding", decode)):
        heading = f"{title}: tokens/s and share of the limit, which is {kind.range_of_limits()}; by rows x length"
        blocks.append(_block(heading, kind.models, kind.shapes, _speed(kind), _ratios(kind)))
    heading = "training: peak memory, MB"
    blocks.append(_block(heading, train.models, train.shapes, _memory(train), _parameters(report)))
    return "\n\n".join(blocks + (["left out\n" + _list(report["left_out"])] if report["left_out"] else []))


def ratios(now: dict[str, Any], before: dict[str, Any]) -> str:
    """Ratios now / before, with the ratio of the hardware limit for reference; regressions are marked and listed."""
    blocks, worse = [f"now / before; {_differences(now, before)}"], []
    for title, kind, key, sign in COMPARED:
        new, old = Kind(now, kind), Kind(before, kind)
        found = {(name, shape): _ratio(new, old, name, shape, key) for name in new.models for shape in new.shapes}
        marked = [place for place, ratio in found.items() if ratio is not None and ratio**sign < SLOWER]
        worse += [f"{title} of {name} at {shape[0]} x {shape[1]}: {found[name, shape]:.2f}" for name, shape in marked]
        lines = _block(title, new.models, new.shapes, _marked(found, marked))
        if key == "tokens_per_second":
            limits = [_divide(new.limit(shape), old.limit(shape)) for shape in new.shapes]
            lines += "\n" + _row("(limit)", [f"{_format_ratio(limit)}  " for limit in limits])
        blocks.append(lines)
    blocks.append(f"worse by more than a tenth: {len(worse) or 'none'}\n{_list(worse)}".strip())
    return "\n\n".join(blocks)


def _block(heading: str, models: list[str], shapes: list[Shape], cell: Cell, more: Columns | None = None) -> str:
    more = more or {}
    lines = [heading, _row("", [f"{rows} x {length}" for rows, length in shapes], more)]
    for name in models:
        lines.append(_row(name, [cell(name, shape) for shape in shapes], [column(name) for column in more.values()]))
    return "\n".join(lines)


def _row(name: str, cells: Iterable[str], more: Iterable[str] = ()) -> str:
    return f"  {name:16}" + "".join(f"{cell:>11}" for cell in cells) + "".join(f"{cell:>11}" for cell in more)


def _speed(kind: Kind) -> Cell:
    def cell(name: str, shape: Shape) -> str:
        speed, share = kind.figure(name, shape), kind.figure(name, shape, "share")
        return "-" if speed is None else f"{_format_speed(speed)} {'   ' if share is None else f'{share:3.0%}'}"

    return cell


def _memory(kind: Kind) -> Cell:
    def cell(name: str, shape: Shape) -> str:
        peak = kind.figure(name, shape, "peak_bytes")
        return "-" if peak is None else f"{peak / 1e6:,.0f}"

    return cell


def _ratios(kind: Kind) -> Columns:
    rows, lengths = [shape[0] for shape in kind.rows], [shape[1] for shape in kind.lengths]
    return {
        f"{rows[-1]}:{rows[0]} rows": lambda name: kind.gain(name, kind.rows),
        f"{lengths[-1]}:{lengths[0]}": lambda name: kind.gain(name, kind.lengths),
    }


def _parameters(report: dict[str, Any]) -> Columns:
    return {"parameters": lambda name: f"{report['models'][name]:,}"}


def _ratio(new: Kind, old: Kind, name: str, shape: Shape, key: str) -> float | None:
    return _divide(new.figure(name, shape, key), old.figure(name, shape, key))


def _divide(new: float | None, old: float | None) -> float | None:
    return new / old if new and old else None


def _marked(found: dict[tuple[str, Shape], float | None], marked: list[tuple[str, Shape]]) -> Cell:
    return lambda name, shape: _format_ratio(found[name, shape]) + (" <" if (name, shape) in marked else "  ")


def _format_ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}"


def _format_speed(speed: float) -> str:
    """Three significant digits: 123, 1.23k, 123k."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if speed >= 0.9995 * size:
            return f"{speed / size:#.3g}".rstrip(".") + unit
    return f"{speed:.0f}"


def _machine(report: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in report["machine"].items())


def _differences(now: dict[str, Any], before: dict[str, Any]) -> str:
    """Differences between the two machines and their library versions."""
    new, old = now["machine"], before["machine"]
    changed = [f"{key}: {old.get(key)} before, {value} now" for key, value in new.items() if old.get(key) != value]
    return "; ".join(changed) or "same machine and versions"


def _list(lines: list[str]) -> str:
    return "\n".join(f"  {line}" for line in lines)
