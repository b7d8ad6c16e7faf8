"""TOML of bounded size and depth, from regular files only."""

from __future__ import annotations

import re
import stat
import tomllib
from pathlib import Path
from typing import Any

from seqloom.core.errors import UserError

_LARGEST = 1_000_000  # bytes
_LONG_KEY = re.compile(r"""(?<![\w"'-])(?:[\w"'-]++\s*\.\s*){100}""")  # tomllib takes quadratic time


def read_toml(path: Path) -> dict[str, Any]:
    """A recipe, or another file of settings; nothing in it is unusual, or it is refused."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise UserError(f"{path}: not a regular file; give the TOML file itself")
        if status.st_size > _LARGEST:
            raise UserError(f"{path}: {status.st_size:,} bytes; a TOML file of settings has at most {_LARGEST:,}")
        return parse_toml(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not UTF-8 text; save it as a TOML file in UTF-8") from None
    except ValueError as error:
        raise UserError(f"{path}: not valid TOML: {error}") from None


def parse_toml(text: str) -> dict[str, Any]:
    """Raises a ValueError that says what is wrong."""
    if _LONG_KEY.search(text):
        raise ValueError("a key has 100 parts or more")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError:  # Python reads no integer of more than 4,300 digits
        raise ValueError("it has a number of thousands of digits") from None
