"""JSON files that a command keeps in its folder and reads again when it is run again. A seal, the digest of their
content, shows what was cut off, edited or mixed up; files of earlier versions have none."""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from seqloom.core.errors import UserError
from seqloom.core.json_text import to_json
from seqloom.core.quoting import some
from seqloom.core.rows import Json
from seqloom.runs import durable, schema
from seqloom.runs.durable import Damaged, shown
from seqloom.runs.lock import LOCK
from seqloom.runs.regular import read_regular

_MOST = 256 << 20  # bytes

MADE_BY = {  # the file that shows what a folder is
    "run.json": "a run",
    "comparison.json": "a comparison of one data set",
    "study.json": "a study of several data sets",
    "diagnosis.json": "a diagnosis",
    "scores.jsonl": "a comparison of retrievers",
    "catalogue.sqlite": "an index",
    "export.json": "an export",
}


class Facts(BaseModel):
    """What must be in a file; there may be more."""

    model_config = ConfigDict(extra="allow", strict=True)


def check_own(folder: Path, file: str) -> None:
    """Refuse to write into the folder of something else. `file`: that is written there; every command but `study`,
    which adds one file to others, has a folder of its own, where no file of the user's can be replaced."""
    mine = MADE_BY.get(file, "the results of studies")
    if other := next((name for name in MADE_BY if name != file and (folder / name).exists()), None):
        raise UserError(f"{shown(folder)} is the folder of {MADE_BY[other]}, not of {mine}; choose another --out")
    if file not in MADE_BY or any((folder / name).exists() for name in (file, LOCK)):
        return
    if strange := sorted(path.name for path in _entries(folder) if not path.name.startswith(".")):
        there = f"not empty, and not the folder of {mine} (it has {some(strange, 3)})"
        raise UserError(f"{shown(folder)}: {there}; choose another --out")


def _entries(folder: Path) -> list[Path]:
    """Nothing if it is no folder, or cannot be read, which writing to it reports."""
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    whole = schema.sealed(json.loads(to_json(value)))
    text = json.dumps(whole, indent=1, ensure_ascii=False)
    durable.write_file(path, text.encode("utf-8", "backslashreplace") + b"\n")


def read_json(path: Path, kind: type[Facts], way_out: str) -> Json | None:
    """Its content; None if there is no such file. `way_out`: what to do about one that is damaged."""
    try:
        value = schema.parse(read_regular(path, _MOST))
        seal = value.pop(schema.SEAL, None)
        if seal is not None and seal != {"content": schema.digest(value)}:
            raise ValueError("changed after it was written")
        kind.model_validate(value)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return None
        raise Damaged(f"cannot read {shown(path)}: {durable.reason(error)}", way_out) from error
    except ValidationError as error:
        raise Damaged(f"{shown(path)}: {schema.mistake(error)}", way_out) from None
    except ValueError as error:
        raise Damaged(f"{shown(path)}: {error}", way_out) from None
    return value
