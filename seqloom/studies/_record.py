"""The result of one run of a study: the finding, and everything needed to repeat it. As JSON, NAME.json."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from seqloom.core.errors import UserError
from seqloom.core.rows import Json
from seqloom.pages.drawing import draw
from seqloom.pages.formats import NONE, short
from seqloom.pages.words import LANGUAGES
from seqloom.runs.durable import reason
from seqloom.runs.regular import read_regular
from seqloom.runs.schema import parse
from seqloom.studies._study import VERDICTS, Finding, Measured

_MOST = 16 << 20  # bytes of a record
DIGITS = 6  # significant ones that are kept, of what is no count: results are committed, and are read by people


@dataclass(frozen=True)
class Record:
    """`print(record)` shows verdict and numbers; `record.finding` has everything, `record.facts()` as JSON."""

    name: str
    quick: bool  # too small to judge by; only shows that the study works
    finding: Finding
    seconds: float
    threads: int
    versions: dict[str, str]
    command: str

    @property
    def verdict(self) -> str:
        return self.finding.verdict

    def facts(self) -> Json:
        found: Json = _rounded(asdict(self))
        return found

    def save(self, path: Path) -> None:
        from seqloom.runs.durable import write_file

        text = json.dumps(self.facts(), ensure_ascii=False, indent=1, allow_nan=False)
        write_file(path, (_joined(text) + "\n").encode())

    def told(self, language: str = "en") -> list[str]:
        """Lines for a terminal."""
        column = LANGUAGES.index(language)
        quick = ("quick run, too small to judge: ", "快速运行，规模太小，仅供参考：")[column] if self.quick else ""
        lines = [f"{self.name}: {quick}{VERDICTS[self.finding.verdict][column]}", self.finding.summary[column]]
        for one in self.finding.numbers:
            claimed = f"; {('claim', '论断')[column]}: {one.claimed[column]}" if one.claimed[column] else ""
            lines.append(f"  {one.name[column]}: {shown(one, column)}{claimed}")
        return lines

    def __str__(self) -> str:
        return "\n".join(self.told())

    def drawn(self, language: str = "en") -> str:
        """The figure, as SVG."""
        return draw(self.finding.figure, language, self.finding.caption[LANGUAGES.index(language)])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>{self.drawn()}"


def load(path: Path) -> Record:
    try:
        found: Record = TypeAdapter(Record).validate_python(parse(read_regular(path, _MOST)))
        if found.finding.verdict not in VERDICTS:
            raise ValueError(f"unknown verdict {found.finding.verdict[:20]!r}")
    except OSError as error:
        raise UserError(f"{path}: {reason(error)}; remove it, or give another --out") from None
    except ValueError as error:
        what = "not the result of a study" if isinstance(error, ValidationError) else str(error)
        raise UserError(f"{path}: {what}; remove it, or give another --out") from None
    return found


def shown(one: Measured, column: int) -> str:
    """`0.223 [0.219, 0.227], 20 seeds`"""
    unit = f" {one.unit[column]}" if one.unit[column] else ""
    if one.low is None or one.high is None:
        return short(one.value) + unit
    seeds = (f"{one.seeds} seeds", f"{one.seeds} 个种子")[column]
    return f"{short(one.value)}{unit} {limits(one)}, {seeds}"


def limits(one: Measured) -> str:
    return NONE if one.low is None or one.high is None else f"[{short(one.low)}, {short(one.high)}]"


def _rounded(value: Any) -> Any:
    if isinstance(value, float):  # counts stay exact
        return value if not math.isfinite(value) or value.is_integer() else float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list | tuple) else value


def _joined(text: str) -> str:
    """Lists of numbers on one line each."""
    return re.sub(r"\[\s+([-\d.e+,\s]+?)\s+\]", lambda found: f"[{' '.join(found[1].split())}]", text)
